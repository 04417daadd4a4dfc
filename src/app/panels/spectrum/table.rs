//! What is read off each spectrum, one row a curve.

use eframe::egui::{FontId, Grid, Label, RichText, ScrollArea, Sense, Ui, Vec2};

use super::controls::{EXACT, time_text};
use crate::app::explain::{self, Explanation};
use crate::app::format::{self, UNDEFINED};
use crate::app::intent::{Intent, Scene};
use crate::app::panels::comparison::{ROW, SPACING, header, name_ui};
use crate::app::panels::summary::figure;
use crate::app::state::Seen;
use crate::app::theme::{self, Palette, SMALL};
use crate::geometry::spectrum::{Bounds, SpectrumReadout};
use crate::report::SpectrumRun;

/// Rows that the table shows at once.
const ROWS_MAX: usize = 9;
/// Height of the note below the table, in points.
const NOTE: f32 = 26.0;
/// Least width of a name.
const NAME_MIN: f32 = 104.0;

/// A figure: its text, or why there is none.
type Cell = Result<String, &'static str>;

/// A column: width in points, heading, explanation, and how it is read.
type Column = (
    f32,
    &'static str,
    &'static Explanation,
    fn(&SpectrumRun) -> Cell,
);

const COLUMNS: [Column; 9] = [
    (38.0, "values", &explain::VALUE_COUNT, |run| {
        Ok(run.spectrum.rank().to_string())
    }),
    (46.0, "entropy", &explain::ENTROPY, |run| {
        read(run, |readout| format::significant(readout.entropy_nats, 3))
    }),
    (46.0, "eff. rank", &explain::EFFECTIVE_RANK, |run| {
        read(run, |readout| {
            format::significant(readout.effective_rank, 3)
        })
    }),
    (38.0, "stable", &explain::STABLE_RANK, |run| {
        read(run, |readout| format::significant(readout.stable_rank, 3))
    }),
    (34.0, "top 1", &explain::ENERGY, |run| energy(run, 0)),
    (34.0, "top 5", &explain::ENERGY, |run| energy(run, 1)),
    (38.0, "top 10", &explain::ENERGY, |run| energy(run, 2)),
    (46.0, "cond.", &explain::CONDITION, |run| {
        let readout = run.spectrum.readout().ok_or(no_readout(run))?;
        let condition = readout.condition.ok_or("the least value is rounding")?;
        Ok(format::significant(condition, 2))
    }),
    (40.0, "error", &explain::SPECTRUM_ERROR, |run| {
        let Bounds::Within(errors) = &run.spectrum.bounds else {
            return Err("exact: good to rounding");
        };
        let relative = errors.iter().zip(&run.spectrum.values);
        let largest = relative.map(|(error, value)| error / value);
        let largest = largest.reduce(f64::max).ok_or("there is no value")?;
        Ok(format!("{} %", format::significant(100.0 * largest, 2)))
    }),
];

fn no_readout(run: &SpectrumRun) -> &'static str {
    match run.spectrum.bounds {
        Bounds::Exact => "every value is zero",
        Bounds::Within(_) => "only the whole spectrum has it: choose “exact”",
    }
}

fn read(run: &SpectrumRun, text: impl Fn(&SpectrumReadout) -> String) -> Cell {
    let readout = run.spectrum.readout().ok_or(no_readout(run))?;
    Ok(text(&readout))
}

fn energy(run: &SpectrumRun, place: usize) -> Cell {
    read(run, |readout| {
        let share = readout.energy_top.get(place).copied().unwrap_or(f64::NAN);
        format!("{} %", format::significant(100.0 * share, 2))
    })
}

/// Whether a spectrum on screen is a leading part, which has no readings.
fn is_partial(scene: &Scene<'_>) -> bool {
    let runs = scene.state.exportable_spectra();
    scene.state.spectrum.method != EXACT
        && runs.iter().any(|run| run.spectrum.bounds != Bounds::Exact)
}

/// Height of the rows that are seen at once, in points.
fn rows_height(scene: &Scene<'_>) -> f32 {
    let rows = (scene.state.curves().count() + 1).min(ROWS_MAX);
    rows as f32 * ROW + 2.0
}

/// Room that the table takes below the plot, in points.
pub(super) fn height(ui: &Ui, scene: &Scene<'_>) -> f32 {
    rows_height(scene) + NOTE + 2.0 * ui.spacing().item_spacing.y
}

/// The whole table, and where it lacks figures how to have them.
pub(super) fn table_ui(
    ui: &mut Ui,
    scene: &Scene<'_>,
    palette: Palette,
    intents: &mut Vec<Intent>,
) {
    let figures: f32 = COLUMNS.iter().map(|(width, ..)| width + SPACING).sum();
    // A little less, so that rounding asks for no scroll bar.
    let name = (ui.available_width() - figures - 4.0).max(NAME_MIN);
    ScrollArea::both()
        .id_salt("spectra")
        .max_height(rows_height(scene))
        .min_scrolled_height(0.0)
        .auto_shrink([false, false])
        .show(ui, |ui| {
            Grid::new("table of spectra")
                .num_columns(COLUMNS.len() + 1)
                .spacing(Vec2::new(SPACING, 0.0))
                .min_row_height(ROW)
                .show(ui, |ui| {
                    ui.allocate_exact_size(Vec2::new(name, ROW), Sense::hover());
                    for (width, title, about, _) in COLUMNS {
                        header(ui, width, title, about);
                    }
                    ui.end_row();
                    for seen in scene.state.curves() {
                        row_ui(ui, scene, &seen, name, palette);
                    }
                });
        });
    ui.horizontal(|ui| {
        ui.set_min_height(NOTE);
        note_ui(ui, scene, intents);
    });
}

/// How to have the figures that are missing, or how many values there are to be seen.
fn note_ui(ui: &mut Ui, scene: &Scene<'_>, intents: &mut Vec<Intent>) {
    if is_partial(scene) && !scene.state.is_exact_refused() {
        let text = format!("Exact · {}", time_text(scene, EXACT));
        if ui.button(text).clicked() {
            intents.push(Intent::SpectrumMethod(EXACT));
        }
        let text = "gives entropy, ranks, energies and condition";
        ui.add(Label::new(theme::note(text)).truncate());
        return;
    }
    let runs = scene.state.exportable_spectra();
    if runs
        .iter()
        .any(|run| run.spectrum.rank() < run.spectrum.values.len())
    {
        let text = "Values below 10⁻⁶ σ₁ are rounding and not drawn";
        ui.add(Label::new(theme::note(text)).truncate());
    }
}

fn row_ui(ui: &mut Ui, scene: &Scene<'_>, seen: &Seen<'_>, name: f32, palette: Palette) {
    name_ui(ui, scene, seen, name, palette);
    ui.style_mut().override_font_id = Some(FontId::proportional(SMALL));
    let stale = scene.state.is_spectrum_stale(seen);
    for (width, _, _, read) in COLUMNS {
        let cell = match &seen.curve.spectrum {
            Some(run) => read(run),
            None if scene.state.too_large(seen.shown).is_some() => {
                Err("the Jacobian is too large for its whole spectrum")
            }
            None => Err("not computed yet"),
        };
        let (text, reason) = match cell {
            Ok(text) => (RichText::new(text), None),
            Err(reason) => (RichText::new(UNDEFINED).weak(), Some(reason.to_owned())),
        };
        figure(ui, width, text, reason, stale);
    }
    ui.style_mut().override_font_id = None;
    ui.end_row();
}
