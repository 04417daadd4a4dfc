//! What is on screen only while encoders are compared: a legend that takes and gives, and one row of
//! figures for each curve.

use eframe::egui::{
    Align, Button, FontId, Grid, Layout, Rect, Role, ScrollArea, Sense, Stroke, StrokeKind, Ui,
    Vec2, WidgetInfo,
};

use super::explain_by;
use super::summary::{ROWS, reading, shape};
use crate::app::explain;
use crate::app::intent::{Intent, Scene};
use crate::app::plots::{curve_title, line_sample};
use crate::app::state::{Seen, Shown};
use crate::app::theme::{self, Palette, SMALL};
use crate::recipe::WeightsKind;

/// Length of a line in the legend and in the table.
const SAMPLE: f32 = 28.0;
/// Height of a row of the table, and distance between columns, in points.
pub(super) const ROW: f32 = 22.0;
pub(super) const SPACING: f32 = 6.0;
/// Rows that the table shows at once.
const ROWS_MAX: usize = 9;
/// Width of a figure, of the word of the shape, and least width of a name, in points.
const FIGURE: f32 = 42.0;
const SHAPE: f32 = 52.0;
const NAME_MIN: f32 = 112.0;

/// The legend: each encoder with its lines, to be let lead or taken off the screen.
pub fn legend_ui(ui: &mut Ui, scene: &Scene<'_>, palette: Palette, intents: &mut Vec<Intent>) {
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing = Vec2::new(4.0, 4.0);
        for (place, shown) in scene.state.shown.iter().enumerate() {
            let name: &'static str = &shown.spec.name;
            if entry_ui(ui, scene, shown, place == 0, palette).clicked() && place > 0 {
                intents.push(Intent::Encoder(name));
            }
            let remove = format!("Remove {} from the comparison", shown.spec.title);
            let button = Button::new("×")
                .min_size(Vec2::splat(22.0))
                .stroke(Stroke::NONE);
            if ui
                .add(button)
                .accessible_name(&*remove)
                .on_hover_text(&*remove)
                .clicked()
            {
                intents.push(Intent::RemoveEncoder(name));
            }
            if scene.state.recipe_of(shown).is_none() {
                let text = "has no such readout: choose “pooled”";
                ui.label(theme::note(text).color(palette.warning));
            }
            ui.add_space(8.0);
        }
    });
}

/// The lines of an encoder with its title.
fn entry_ui(
    ui: &mut Ui,
    scene: &Scene<'_>,
    shown: &Shown,
    leads: bool,
    palette: Palette,
) -> eframe::egui::Response {
    let colour = palette.encoder(shown.slot);
    let font = if leads {
        theme::bold_font(SMALL)
    } else {
        FontId::proportional(SMALL)
    };
    let title = shown.spec.title.to_string();
    let galley = ui.painter().layout_no_wrap(title, font, palette.text);
    let lines = if scene.state.twin_shown { 2.0 } else { 1.0 };
    let samples = lines * (SAMPLE + 6.0);
    let size = Vec2::new(4.0 + samples + galley.size().x + 4.0, 22.0);
    let (rect, response) = ui.allocate_exact_size(size, Sense::click());
    if response.hovered() || response.has_focus() {
        let stroke = Stroke::new(1.0, palette.rim);
        ui.painter()
            .rect_stroke(rect, 4.0, stroke, StrokeKind::Inside);
    }
    let mut left = rect.left() + 4.0;
    for dashed in [false, true].into_iter().take(lines as usize) {
        let place =
            Rect::from_min_size([left, rect.top()].into(), Vec2::new(SAMPLE, rect.height()));
        line_sample(ui.painter(), place, colour, dashed, shown.slot);
        left += SAMPLE + 6.0;
    }
    let top = rect.center().y - galley.size().y / 2.0;
    ui.painter()
        .galley([left, top].into(), galley, palette.text);
    let side = shown.spec.side_px;
    let text = if leads {
        format!(
            "{} leads: the image is shown as it sees it",
            shown.spec.title
        )
    } else {
        format!("Show the image as {} sees it", shown.spec.title)
    };
    response.widget_info(|| WidgetInfo::selected(Role::Button, true, leads, &text));
    let twin = if scene.state.twin_shown {
        "; solid: trained, dashed: random twin"
    } else {
        ""
    };
    response.on_hover_text(format!("{text}\nInput {side} × {side} px{twin}"))
}

/// Room that the table takes below the plots, in points.
pub fn table_height(ui: &Ui, scene: &Scene<'_>) -> f32 {
    let rows = (scene.state.curves().count() + 1).min(ROWS_MAX);
    rows as f32 * ROW + 2.0 * ui.spacing().item_spacing.y
}

/// One row of figures for each curve.
pub fn table_ui(ui: &mut Ui, scene: &Scene<'_>, height: f32, palette: Palette) {
    let figures = ROWS.len() as f32 * (FIGURE + SPACING) + SHAPE + SPACING;
    let name = (ui.available_width() - figures).max(NAME_MIN);
    ScrollArea::both()
        .id_salt("comparison")
        .max_height(height)
        .auto_shrink([false, false])
        .show(ui, |ui| {
            Grid::new("comparison table")
                .num_columns(ROWS.len() + 2)
                .spacing(Vec2::new(SPACING, 0.0))
                .min_row_height(ROW)
                .show(ui, |ui| {
                    ui.allocate_exact_size(Vec2::new(name, ROW), Sense::hover());
                    for (title, about, _) in ROWS {
                        header(ui, FIGURE, short(title), about);
                    }
                    header(ui, SHAPE, "shape", &explain::SHAPE);
                    ui.end_row();
                    for seen in scene.state.curves() {
                        name_ui(ui, scene, &seen, name, palette);
                        ui.style_mut().override_font_id = Some(FontId::proportional(SMALL));
                        for (_, _, read) in ROWS {
                            reading(ui, FIGURE, seen.curve, read);
                        }
                        shape(ui, SHAPE, seen.curve);
                        ui.style_mut().override_font_id = None;
                        ui.end_row();
                    }
                });
        });
}

/// A heading in the words that fit a narrow column.
fn short(title: &'static str) -> &'static str {
    match title {
        "Plateau" => "plateau",
        "Onset η" => "onset η",
        "Peak r*" => "r*",
        "Peak η*" => "η*",
        "Width, dec." => "width",
        "Crossing η" => "cross η",
        "End r" => "end r",
        other => other,
    }
}

/// The heading of a column, which explains it.
pub(super) fn header(ui: &mut Ui, width: f32, title: &str, about: &explain::Explanation) {
    let layout = Layout::right_to_left(Align::Center);
    ui.allocate_ui_with_layout(Vec2::new(width, ROW), layout, |ui| {
        ui.set_min_width(width);
        ui.push_id(title, |ui| {
            let button = Button::new(theme::note(title)).frame(false);
            explain_by(&ui.add(button), about);
        });
    });
}

/// The line and the name of a curve.
pub(super) fn name_ui(
    ui: &mut Ui,
    scene: &Scene<'_>,
    seen: &Seen<'_>,
    width: f32,
    palette: Palette,
) {
    let (rect, response) = ui.allocate_exact_size(Vec2::new(width, ROW), Sense::hover());
    let sample = Rect::from_min_size(rect.min, Vec2::new(SAMPLE, ROW));
    let dashed = seen.weights == WeightsKind::Random;
    let colour = palette.encoder(seen.shown.slot);
    line_sample(ui.painter(), sample, colour, dashed, seen.shown.slot);
    let title = curve_title(scene.state, seen);
    let text = if dashed {
        "its random twin".to_owned()
    } else {
        seen.shown.spec.title.to_string()
    };
    let mut job = eframe::egui::text::LayoutJob::simple_singleline(
        text,
        FontId::proportional(SMALL),
        palette.text,
    );
    job.wrap = eframe::egui::text::TextWrapping::truncate_at_width(width - SAMPLE - 8.0);
    let galley = ui.painter().layout_job(job);
    let at = [
        rect.left() + SAMPLE + 8.0,
        rect.center().y - galley.size().y / 2.0,
    ];
    ui.painter().galley(at.into(), galley, palette.text);
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &title));
    response.on_hover_text(title);
}
