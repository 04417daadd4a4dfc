//! The workspace of edits: pictures above, spectrum and scores against the rank below, the rank over the whole width.

mod controls;
mod manipulations;
mod plots;
mod rank;
mod scores;
mod tiles;

use eframe::egui::{Align, Layout, ScrollArea, Ui, Vec2};

pub use controls::controls_ui;
pub use rank::rank_ui;

use super::{alternatives, heading, info};
use crate::app::explain;
use crate::app::intent::{Intent, Scene};
use crate::app::state::SeenBy;
use crate::app::theme::{self, GAP};
use crate::app::view::{EditMetric, View};
use crate::geometry::maps::Cut;
use crate::worker::Lane;

/// Share of the height that the pictures take at most.
const PICTURES_SHARE: f32 = 0.6;
/// Width of the figures right of the pictures in points.
const SCORES_WIDTH: f32 = 280.0;

/// What is cut, in the words of labels.
fn cut_name(cut: Cut) -> &'static str {
    match cut {
        Cut::Edit => "edit operator W − I",
        Cut::Map => "W",
    }
}

/// The middle of the workspace.
pub fn edit_ui(ui: &mut Ui, scene: &Scene<'_>, view: &mut View, intents: &mut Vec<Intent>) {
    heading(ui, "Edit in feature space", |ui| {
        info(ui, &explain::EDIT);
        ui.add_space(GAP);
        see_by_ui(ui, scene, intents);
    });
    let state = scene.state;
    if state.edit.fitted.is_none() {
        return nothing_yet(ui, scene);
    }
    let room = ui.available_size();
    let height = room.y * PICTURES_SHARE;
    let [pictures, _] = tiles::size(room.x - SCORES_WIDTH - 2.0 * GAP, height);
    ui.horizontal_top(|ui| {
        ui.spacing_mut().item_spacing.x = 2.0 * GAP;
        let top = Layout::top_down(Align::Min);
        let used = ui
            .allocate_ui_with_layout(Vec2::new(pictures, height), top, |ui| {
                ui.set_width(pictures);
                tiles::tiles_ui(ui, scene, view, height);
                ui.min_rect().height()
            })
            .inner;
        ui.allocate_ui_with_layout(Vec2::new(SCORES_WIDTH, used), top, |ui| {
            ui.set_width(SCORES_WIDTH);
            ScrollArea::vertical()
                .id_salt("scores")
                .max_height(used)
                .show(ui, |ui| {
                    scores::scores_ui(ui, scene);
                });
        });
    });
    ui.add_space(4.0);
    let Some(run) = &state.edit.fitted else {
        return;
    };
    if run.sweeps.is_empty() {
        ui.vertical_centered(|ui| {
            let kind = run.kind.title();
            let text = format!("The map “{kind}” has no matrix: nothing to cut to a rank.");
            ui.label(theme::note(text));
        });
        return;
    }
    ui.columns(2, |columns| {
        let [left, right] = columns else { return };
        heading(left, "Singular values σ_i", |ui| {
            info(ui, &explain::MAP_SPECTRUM);
            ui.add_space(GAP);
            ui.label(theme::note(format!("of {}", cut_name(state.edit.cut))));
        });
        plots::spectrum_plot(left, scene, left.available_size(), intents);
        heading(right, "Against the rank k", |ui| {
            info(ui, &explain::EDIT_SCORES);
            ui.add_space(GAP);
            // The row runs from right to left.
            if let Some(metric) = alternatives(ui, view.edit_metric, &METRICS) {
                view.edit_metric = metric;
            }
        });
        let size = right.available_size();
        plots::scores_plot(right, scene, view.edit_metric, size, intents);
    });
}

/// What can be drawn against the rank, from the last to the first.
const METRICS: [(EditMetric, &str, &str); 4] = [
    (
        EditMetric::Mse,
        "MSE",
        "Grey levels squared between the decoded and the edited picture",
    ),
    (
        EditMetric::Psnr,
        "PSNR",
        "Decibels between the decoded and the edited picture",
    ),
    (
        EditMetric::Ssim,
        "SSIM",
        "SSIM, 7 × 7 windows, between the decoded and the edited picture",
    ),
    (
        EditMetric::Mdncs,
        "MdnCS",
        "Median cosine between mapped and target features",
    ),
];

/// Decoder or inversion.
fn see_by_ui(ui: &mut Ui, scene: &Scene<'_>, intents: &mut Vec<Intent>) {
    let ways = [
        (
            SeenBy::Inversion,
            "Inversion",
            "Pictures sought by gradient through the encoder: any stage, some seconds",
        ),
        (
            SeenBy::Decoder,
            "Decoder",
            "Pictures by a network trained for this stage: at once",
        ),
    ];
    if let Some(way) = alternatives(ui, scene.state.edit.seen_by, &ways) {
        intents.push(Intent::SeeBy(way));
    }
    ui.label(theme::note("seen by"));
}

/// Before the first map.
fn nothing_yet(ui: &mut Ui, scene: &Scene<'_>) {
    let state = scene.state;
    let lane = state.lane(Lane::Edit);
    let text = match (&state.photo, lane.busy) {
        (None, _) => "Open a photograph to see what an edit does to its features".to_owned(),
        (Some(_), true) => (lane.progress.as_ref())
            .map_or_else(|| "starting".to_owned(), |progress| progress.stage.clone()),
        (Some(_), false) => "No map: see the message, or press Fit at the right".to_owned(),
    };
    ui.centered_and_justified(|ui| {
        ui.label(text);
    });
}
