//! The summary table: what is read off each curve, in figures and a word.

use eframe::egui::{Align, Grid, Layout, RichText, Ui, Vec2};

use super::{INFO_SIDE, info};
use crate::app::explain::{self, Explanation};
use crate::app::format::{self, UNDEFINED};
use crate::app::intent::Scene;
use crate::app::state::{Curve, Seen};
use crate::app::theme::{self, Palette};
use crate::geometry::Summary;
use crate::geometry::summary::Reading;
use crate::recipe::WeightsKind;

/// Distance between columns.
const SPACING: f32 = 8.0;
/// Width of the names.
const NAMES: f32 = 76.0;

/// A row: name, explanation, and how it is read.
pub(super) type Row = (&'static str, &'static Explanation, fn(&Summary) -> &Reading);

pub(super) const ROWS: [Row; 7] = [
    ("Plateau", &explain::PLATEAU, |s| &s.plateau),
    ("Onset η", &explain::ONSET, |s| &s.onset_eta_l2),
    ("Peak r*", &explain::PEAK, |s| &s.peak_r),
    ("Peak η*", &explain::PEAK, |s| &s.peak_eta_l2),
    ("Width, dec.", &explain::WIDTH, |s| &s.half_width_decades),
    ("Crossing η", &explain::CROSSING, |s| &s.crossing_eta_l2),
    ("End r", &explain::END, |s| &s.end_r),
];

/// The whole table.
pub fn summary_ui(ui: &mut Ui, scene: &Scene<'_>) {
    let curves: Vec<Seen<'_>> = scene.state.curves().collect();
    let count = curves.len() as f32;
    // The figures share what names and ⓘ leave, so that ⓘ stands below the others of the panel.
    let room = ui.available_width() - NAMES - INFO_SIDE - (count + 1.0) * SPACING;
    let column = room / count;
    Grid::new("summary")
        .num_columns(4)
        .spacing(Vec2::new(SPACING, 2.0))
        .min_row_height(20.0)
        .show(ui, |ui| {
            name(ui, "");
            for seen in &curves {
                let title = match seen.weights {
                    WeightsKind::Trained => "trained",
                    WeightsKind::Random => "twin",
                };
                figure(ui, column, RichText::new(title).small().weak(), None, false);
            }
            ui.end_row();
            for (title, about, read) in ROWS {
                name(ui, title);
                for seen in &curves {
                    reading(ui, column, seen.curve, read);
                }
                ui.push_id(title, |ui| info(ui, about));
                ui.end_row();
            }
            name(ui, "Shape");
            for seen in &curves {
                shape(ui, column, seen.curve);
            }
            ui.push_id("Shape", |ui| info(ui, &explain::SHAPE));
            ui.end_row();
        });
}

fn name(ui: &mut Ui, text: &str) {
    ui.allocate_ui_with_layout(
        Vec2::new(NAMES, 20.0),
        Layout::left_to_right(Align::Center),
        |ui| {
            ui.set_min_width(NAMES);
            ui.label(theme::note(text));
        },
    );
}

pub(super) fn reading(ui: &mut Ui, column: f32, curve: &Curve, read: fn(&Summary) -> &Reading) {
    let Some(profile) = curve.profile() else {
        let reason = "not measured yet".to_owned();
        figure(
            ui,
            column,
            RichText::new(UNDEFINED).weak(),
            Some(reason),
            false,
        );
        return;
    };
    match read(&profile.summary) {
        Reading::Value(value) => {
            let text = RichText::new(format::significant(*value, 3));
            figure(ui, column, text, None, curve.stale);
        }
        Reading::Undefined(reason) => {
            let text = RichText::new(UNDEFINED);
            figure(ui, column, text, Some(reason.clone()), curve.stale);
        }
    }
}

pub(super) fn shape(ui: &mut Ui, column: f32, curve: &Curve) {
    match curve.profile() {
        Some(profile) => {
            let word = theme::bold(profile.summary.shape.word());
            let reason = profile.summary.shape_reason.clone();
            figure(ui, column, word, Some(reason), curve.stale);
        }
        None => figure(
            ui,
            column,
            RichText::new(UNDEFINED).weak(),
            Some("not measured yet".to_owned()),
            false,
        ),
    }
}

/// A figure, flush right in a column of fixed width.
pub(super) fn figure(
    ui: &mut Ui,
    column: f32,
    text: RichText,
    reason: Option<String>,
    stale: bool,
) {
    let palette = Palette::for_ui(ui);
    let text = if stale {
        text.color(palette.weak)
    } else {
        text
    };
    ui.allocate_ui_with_layout(
        Vec2::new(column, 20.0),
        Layout::right_to_left(Align::Center),
        |ui| {
            ui.set_min_width(column);
            let response = ui.label(text);
            if let Some(reason) = reason {
                response.on_hover_text(reason);
            }
        },
    );
}
