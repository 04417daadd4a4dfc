//! The selected encoder: what it is, where its weights are, and what can be done with it.

use eframe::egui::{Button, Grid, Label, ProgressBar, RichText, ScrollArea, Ui, Vec2};

use super::list::Place;
use super::stages::stages_ui;
use crate::app::format;
use crate::app::intent::{Intent, Scene};
use crate::app::panels::message::error_text;
use crate::app::state::{Fetch, SHOWN_MAX};
use crate::app::theme::{self, Palette};
use crate::app::view::{LibraryPage, View};
use crate::encoders::registry::Row;
use crate::encoders::weights::find::Origin;
use crate::worker::library::Holding;

/// Width of the names of the facts in points.
const NAMES: f32 = 76.0;

/// The details, in `height` points; true where what was asked for closes the card.
pub(super) fn details_ui(
    ui: &mut Ui,
    scene: &Scene<'_>,
    view: &mut View,
    holding: &Holding,
    height: f32,
    intents: &mut Vec<Intent>,
) -> bool {
    let palette = Palette::for_ui(ui);
    let row = holding.row;
    let bottom = ui.cursor().top() + height;
    ui.add(Label::new(theme::bold(&*row.spec.title)).wrap());
    ui.add_space(2.0);
    let closes = actions_ui(ui, scene, view, holding, intents);
    ui.separator();
    ScrollArea::vertical()
        .id_salt(("details", &row.spec.name))
        .max_height(bottom - ui.cursor().top())
        .auto_shrink([false, false])
        .show(ui, |ui| {
            ui.set_width(ui.available_width() - 12.0);
            facts_ui(ui, holding);
            ui.add_space(8.0);
            ui.label(theme::note("Stages: channels × rows × columns"));
            stages_ui(ui, &row.spec, palette);
        });
    closes
}

/// Names and values.
fn facts_ui(ui: &mut Ui, holding: &Holding) {
    let row = holding.row;
    let (spec, status) = (&row.spec, &holding.status);
    let place = match (&status.path, &row.origin) {
        (Some(path), _) => path.display().to_string(),
        (None, Origin::Bundled(..)) => "in the program itself".to_owned(),
        (None, origin) => format!("not here; {}", origin.describe()),
    };
    let classes = match spec.logits_len {
        0 => "no classes".to_owned(),
        count => format!("{count} classes"),
    };
    let facts = [
        ("Name", spec.name.to_string()),
        ("Source", spec.source.to_string()),
        ("Paper", row.citation.clone()),
        ("Licence", licence(row)),
        ("Note", row.note.clone()),
        ("Weights", place),
        (
            "File",
            status.size_bytes.map_or_else(
                || {
                    let about = format::file_size(status.memory_bytes);
                    format!("about {about} in single precision; the server tells when asked")
                },
                format::file_size,
            ),
        ),
        (
            "Parameters",
            format!(
                "{} · {} in memory",
                format::millions(spec.parameters),
                format::file_size(status.memory_bytes)
            ),
        ),
        ("Input", format!("{0} × {0} px", spec.side_px)),
        ("Preparation", spec.preprocessing.describe()),
        ("Feature", format!("{} values · {classes}", spec.pooled_len)),
    ];
    Grid::new(("facts of an encoder", &spec.name))
        .num_columns(2)
        .spacing(Vec2::new(8.0, 4.0))
        .min_col_width(NAMES)
        .min_row_height(16.0)
        .max_col_width(ui.available_width() - NAMES - 8.0)
        .show(ui, |ui| {
            ui.spacing_mut().interact_size.y = 0.0;
            for (name, value) in facts.into_iter().filter(|(_, value)| !value.is_empty()) {
                ui.vertical(|ui| {
                    ui.set_width(NAMES);
                    ui.label(theme::note(name));
                });
                ui.add(
                    Label::new(RichText::new(value).small())
                        .wrap()
                        .selectable(true),
                );
                ui.end_row();
            }
        });
}

fn licence(row: &Row) -> String {
    if row.gated {
        format!(
            "{}, to be accepted before the weights are given",
            row.spec.licence
        )
    } else {
        row.spec.licence.to_string()
    }
}

/// What can be done; true where it closes the card.
fn actions_ui(
    ui: &mut Ui,
    scene: &Scene<'_>,
    view: &mut View,
    holding: &Holding,
    intents: &mut Vec<Intent>,
) -> bool {
    let name: &'static str = &holding.row.spec.name;
    if holding.status.installed {
        return use_ui(ui, scene, name, intents);
    }
    let place = Place::of(holding);
    if let Origin::Page(page) = &holding.row.origin {
        ui.add(Label::new(theme::note(
            "The authors publish these weights on a page, not as a file: get the file there, and \
             open it.",
        ))
        .wrap());
        ui.hyperlink_to(RichText::new(page).small(), page);
    }
    if place == Place::ByHand {
        if !matches!(holding.row.origin, Origin::Page(_)) {
            ui.add(Label::new(theme::note(place.sentence())).wrap());
        }
        if ui.button("Open a weights file…").clicked() {
            view.library.page = LibraryPage::File;
            intents.push(Intent::BrowseWeights);
        }
        return false;
    }
    fetch_ui(ui, scene, holding, place, intents);
    false
}

/// Use and compare.
fn use_ui(ui: &mut Ui, scene: &Scene<'_>, name: &'static str, intents: &mut Vec<Intent>) -> bool {
    let state = scene.state;
    let leads = *state.spec().name == *name;
    let is_shown = state.shows(name);
    let mut closes = false;
    ui.horizontal(|ui| {
        let size = Vec2::new(0.0, 28.0);
        let button = ui.add_enabled(!leads, Button::new("Use").min_size(size));
        let hint = "Show the curves of this encoder in place of the leading one (Enter)";
        let button = button.on_hover_text(hint);
        if button
            .on_disabled_hover_text("This encoder leads already")
            .clicked()
        {
            intents.push(Intent::Encoder(name));
            closes = true;
        }
        if is_shown {
            let is_last = !state.is_comparing();
            let button = Button::new("Remove from comparison").min_size(size);
            let response = ui.add_enabled(!is_last, button);
            if response
                .on_disabled_hover_text("The only encoder on screen")
                .clicked()
            {
                intents.push(Intent::RemoveEncoder(name));
            }
        } else {
            let is_full = state.shown.len() >= SHOWN_MAX;
            let button = Button::new("Add to comparison").min_size(size);
            let response = ui
                .add_enabled(!is_full, button)
                .on_hover_text("Draw its curves beside those on screen");
            let full = format!("{SHOWN_MAX} encoders are on screen already: remove one first");
            if response.on_disabled_hover_text(full).clicked() {
                intents.push(Intent::AddEncoder(name));
            }
        }
    });
    let text = match (leads, is_shown, state.shown.len()) {
        (true, _, 1) => "On screen.".to_owned(),
        (true, ..) => "On screen; it leads.".to_owned(),
        (false, true, _) => "On screen, in the comparison.".to_owned(),
        (false, false, 1) => return closes,
        (false, false, count) => format!("{count} of {SHOWN_MAX} encoders are on screen."),
    };
    ui.label(theme::note(text));
    closes
}

/// Fetching, from the question to the end.
fn fetch_ui(
    ui: &mut Ui,
    scene: &Scene<'_>,
    holding: &Holding,
    place: Place,
    intents: &mut Vec<Intent>,
) {
    let row = holding.row;
    let name: &'static str = &row.spec.name;
    let wrapped = |ui: &mut Ui, text: String| {
        ui.add(Label::new(theme::note(text)).wrap());
    };
    match scene.state.library.fetches.get(name) {
        None | Some(Fetch::Done) => {
            wrapped(ui, place.sentence().to_owned());
            let button = Button::new("Fetch…").min_size(Vec2::new(0.0, 28.0));
            let hint = "Ask the server for size and place first; nothing is fetched yet (Enter)";
            if ui.add(button).on_hover_text(hint).clicked() {
                intents.push(Intent::Look(name));
            }
        }
        Some(Fetch::Asking) => {
            wrapped(ui, "Asking the server for the size of the file…".to_owned());
            if ui.button("Cancel").clicked() {
                intents.push(Intent::StopFetching(name));
            }
        }
        Some(Fetch::Offered(offer)) => {
            let size = offer
                .size_bytes
                .map_or_else(|| "A file of unknown size".to_owned(), format::file_size);
            ui.label(theme::bold(format!("{size}, licence {}", licence(row))));
            wrapped(ui, format!("from {}", offer.url));
            wrapped(ui, format!("to {}", offer.path.display()));
            ui.horizontal(|ui| {
                let size = Vec2::new(0.0, 28.0);
                if ui.add(Button::new("Fetch now").min_size(size)).clicked() {
                    intents.push(Intent::Fetch(name));
                }
                if ui.add(Button::new("Not now").min_size(size)).clicked() {
                    intents.push(Intent::StopFetching(name));
                }
            });
        }
        Some(Fetch::Running {
            done_bytes,
            total_bytes,
            stopping,
        }) => {
            let done = format::file_size(*done_bytes);
            let (text, fraction) = match total_bytes {
                Some(total) => (
                    format!("{done} of {}", format::file_size(*total)),
                    *done_bytes as f32 / (*total).max(1) as f32,
                ),
                None => (format!("{done}; the size is not known"), 0.0),
            };
            let text = if *stopping {
                "Stopping; what arrived is kept…".to_owned()
            } else {
                format!("Fetching: {text}")
            };
            ui.label(theme::note(text));
            let bar = ProgressBar::new(fraction).desired_height(8.0);
            ui.add(bar).accessible_name("Progress of fetching");
            if ui.add_enabled(!stopping, Button::new("Cancel")).clicked() {
                intents.push(Intent::StopFetching(name));
            }
        }
        Some(Fetch::Failed(error)) => {
            ScrollArea::vertical()
                .id_salt("why fetching failed")
                .max_height(180.0)
                .show(ui, |ui| error_text(ui, error));
            ui.horizontal(|ui| {
                if ui.button("Try again").clicked() {
                    intents.push(Intent::Look(name));
                }
                if ui.button("Not now").clicked() {
                    intents.push(Intent::StopFetching(name));
                }
            });
        }
    }
}
