//! The curves: r_η, and below it the displacement and its prediction.

use eframe::egui::{Align2, FontId, Ui, Vec2};

use super::{comparison, heading, info};
use crate::app::explain;
use crate::app::intent::{Intent, Scene};
use crate::app::plots::{self, PlotPlace, curve_name, curve_title, legend_entry};
use crate::app::settings::AxisScale;
use crate::app::state::Refinement;
use crate::app::theme::{BODY, Palette};
use crate::app::view::View;
use crate::recipe::WeightsKind;
use crate::worker::Lane;

/// Share of the height that the upper plot takes.
const UPPER_SHARE: f32 = 0.62;

/// The whole panel.
pub fn response_ui(ui: &mut Ui, scene: &Scene<'_>, view: &mut View, intents: &mut Vec<Intent>) {
    let reset = std::mem::take(&mut view.reset_plots);
    let palette = Palette::for_ui(ui);
    let is_comparing = scene.state.is_comparing();

    heading(ui, "Response r_η", |ui| {
        axis_switches(ui, scene, intents);
        info(ui, &explain::RESPONSE);
        ui.add_space(8.0);
        if !is_comparing {
            legend(ui, scene, palette);
        }
    });
    if is_comparing {
        comparison::legend_ui(ui, scene, palette, intents);
    }
    let table_height = if is_comparing {
        comparison::table_height(ui, scene)
    } else {
        0.0
    };
    let heading_height = 26.0 + ui.spacing().item_spacing.y;
    let plots_height = (ui.available_height() - heading_height - 8.0 - table_height).max(160.0);
    let width = ui.available_width();
    let size = Vec2::new(width, plots_height * UPPER_SHARE);
    let upper = plots::response_plot(ui, scene, size, reset);
    if let Some(text) = nothing_yet(scene) {
        let frame = upper.transform.frame();
        // Between the line r = 1 and the top.
        let at = frame.center_top() + Vec2::new(0.0, 0.28 * frame.height());
        let font = FontId::proportional(BODY);
        let galley = ui
            .painter()
            .layout(text, font, palette.text, frame.width() - 32.0);
        let place = Align2::CENTER_CENTER.anchor_size(at, galley.size());
        ui.painter()
            .rect_filled(place.expand2(Vec2::new(10.0, 4.0)), 4.0, palette.well);
        ui.painter().galley(place.min, galley, palette.text);
    }
    ui.add_space(8.0);
    heading(ui, "Displacement and prediction, squared", |ui| {
        info(ui, &explain::DISPLACEMENT);
        ui.add_space(8.0);
        if is_comparing {
            legend_entry(ui, "linear prediction: fine", palette.weak, false, 1.25);
            legend_entry(ui, "measured: bold", palette.weak, false, 2.5);
        } else {
            legend_entry(ui, "linear prediction", palette.prediction, false, 2.5);
            let colour = palette.encoder(scene.state.lead().slot);
            legend_entry(ui, "measured", colour, false, 2.5);
        }
    });
    let size = Vec2::new(width, (ui.available_height() - table_height).max(60.0));
    let lower = plots::displacement_plot(ui, scene, size, reset);
    view.response_rect = Some(lower.transform.frame().union(*upper.transform.frame()));
    view.plots = vec![upper, lower];
    if is_comparing {
        comparison::table_ui(ui, scene, table_height, palette);
    }
}

fn legend(ui: &mut Ui, scene: &Scene<'_>, palette: Palette) {
    let colour = palette.encoder(scene.state.lead().slot);
    if scene.state.twin_shown {
        legend_entry(ui, curve_name(WeightsKind::Random), colour, true, 2.5);
    }
    if ui.available_width() > 230.0 {
        legend_entry(ui, "single pairs", colour.gamma_multiply(0.45), false, 1.0);
    }
    legend_entry(ui, "trained ± s.e.", colour, false, 2.5);
}

fn axis_switches(ui: &mut Ui, scene: &Scene<'_>, intents: &mut Vec<Intent>) {
    let toggled = |scale| match scale {
        AxisScale::Log => AxisScale::Linear,
        AxisScale::Linear => AxisScale::Log,
    };
    let settings = scene.settings;
    let is_log = settings.y_scale == AxisScale::Log;
    if ui
        .selectable_label(is_log, "log r")
        .on_hover_text("Logarithmic r axis (Y)")
        .clicked()
    {
        intents.push(Intent::YScale(toggled(settings.y_scale)));
    }
    let is_log = settings.x_scale == AxisScale::Log;
    if ui
        .selectable_label(is_log, "log η")
        .on_hover_text("Logarithmic η axis (X)")
        .clicked()
    {
        intents.push(Intent::XScale(toggled(settings.x_scale)));
    }
}

/// What stands in the empty plot.
fn nothing_yet(scene: &Scene<'_>) -> Option<String> {
    let state = scene.state;
    let undefined = state.curves().find_map(|seen| {
        let reason = seen.curve.profile()?.undefined.as_ref()?;
        let title = curve_title(state, &seen);
        Some(format!("r of the curve “{title}” is undefined: {reason}"))
    });
    if undefined.is_some() {
        return undefined;
    }
    if state.curves().any(|seen| seen.curve.run.is_some()) {
        return None;
    }
    if state.photo.is_none() && !state.lane(Lane::Image).busy {
        return Some("Open a photograph to see its response profile".to_owned());
    }
    Some(match state.refinement {
        Refinement::AwaitsStart => "Press Start to begin".to_owned(),
        Refinement::Stopped => "Stopped. Press space to start again".to_owned(),
        _ => state
            .visible_work()
            .and_then(|(_, lane)| lane.progress.as_ref())
            .map_or_else(|| "starting".to_owned(), |progress| progress.stage.clone()),
    })
}

/// Moves the marker where the pointer drags it in a plot, judged by where the plots stood in the last
/// frame, before anything of this frame is drawn.
pub fn dragged_eta(ui: &Ui, scene: &Scene<'_>, places: &[PlotPlace]) -> Option<f64> {
    let axis = crate::app::axis::Axis::new(scene.settings.x_scale);
    places.iter().find_map(|place| {
        let response = ui.ctx().read_response(place.id)?;
        let is_held = response.dragged_by(eframe::egui::PointerButton::Primary)
            || response.is_pointer_button_down_on() && ui.input(|i| i.pointer.primary_down());
        let pointer = response.interact_pointer_pos().filter(|_| is_held)?;
        Some(axis.value(place.transform.value_from_position(pointer).x))
    })
}
