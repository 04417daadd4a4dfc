//! The workspace of singular spectra: the curves with what is read off them.

mod controls;
mod direction;
mod table;

use eframe::egui::{Align2, FontId, PointerButton, Ui, Vec2};

pub use self::controls::controls_ui;
pub(super) use self::direction::{HEIGHT, direction_ui, distortion};
use super::{comparison, heading, info};
use crate::app::axis::Axis;
use crate::app::explain;
use crate::app::intent::{Intent, Scene};
use crate::app::plots::{self, PlotPlace, curve_name, legend_entry, nearest_index};
use crate::app::settings::AxisScale;
use crate::app::state::Refinement;
use crate::app::theme::{BODY, Palette};
use crate::app::ui_command::UiCommand;
use crate::app::view::View;
use crate::recipe::WeightsKind;
use crate::worker::Lane;

/// Width from which the heading is written in full, in points.
const TITLE_ROOM: f32 = 420.0;

/// The curves and the table below them.
pub fn spectrum_ui(ui: &mut Ui, scene: &Scene<'_>, view: &mut View, intents: &mut Vec<Intent>) {
    let reset = std::mem::take(&mut view.reset_plots);
    // The welcome speaks of the response.
    view.response_rect = None;
    let palette = Palette::for_ui(ui);
    let is_comparing = scene.state.is_comparing();
    let width = ui.available_width();
    let title = if width < TITLE_ROOM {
        "Singular values σ_i"
    } else {
        "Singular values σ_i of the Jacobian"
    };
    heading(ui, title, |ui| {
        axis_switches(ui, scene, intents);
        info(ui, &explain::SPECTRUM);
        ui.add_space(8.0);
        if !is_comparing && width >= TITLE_ROOM {
            legend(ui, scene, palette);
        }
    });
    if is_comparing {
        comparison::legend_ui(ui, scene, palette, intents);
    }
    let table_height = table::height(ui, scene);
    let height = (ui.available_height() - table_height).max(160.0);
    let size = Vec2::new(ui.available_width(), height);
    let place = plots::spectrum_plot(ui, scene, size, reset);
    if let Some(text) = nothing_yet(scene) {
        let frame = place.transform.frame();
        let font = FontId::proportional(BODY);
        let galley = ui
            .painter()
            .layout(text, font, palette.text, frame.width() - 32.0);
        let at = Align2::CENTER_CENTER.anchor_size(frame.center(), galley.size());
        ui.painter()
            .rect_filled(at.expand2(Vec2::new(10.0, 4.0)), 4.0, palette.well);
        ui.painter().galley(at.min, galley, palette.text);
    }
    view.spectrum_plot = Some(place);
    table::table_ui(ui, scene, palette, intents);
}

fn legend(ui: &mut Ui, scene: &Scene<'_>, palette: Palette) {
    let colour = palette.encoder(scene.state.lead().slot);
    if scene.state.twin_shown {
        legend_entry(ui, curve_name(WeightsKind::Random), colour, true, 2.5);
    }
    legend_entry(ui, curve_name(WeightsKind::Trained), colour, false, 2.5);
}

fn axis_switches(ui: &mut Ui, scene: &Scene<'_>, intents: &mut Vec<Intent>) {
    let [x, y] = scene.settings.spectrum_scales;
    let switches = [
        (
            y,
            "log σ",
            "Logarithmic axis of σ (Y)",
            UiCommand::ToggleYScale,
        ),
        (
            x,
            "log i",
            "Logarithmic axis of the index (X)",
            UiCommand::ToggleXScale,
        ),
    ];
    for (scale, text, tooltip, command) in switches {
        let switch = ui.selectable_label(scale == AxisScale::Log, text);
        if switch.on_hover_text(tooltip).clicked() {
            intents.push(Intent::Do(command));
        }
    }
}

/// What stands in the plot while there is no curve.
fn nothing_yet(scene: &Scene<'_>) -> Option<String> {
    let state = scene.state;
    let runs = state.exportable_spectra();
    if let Some(run) = runs.iter().find(|run| run.spectrum.rank() == 0)
        && runs.iter().all(|run| run.spectrum.rank() == 0)
    {
        return Some(format!(
            "Every singular value of {} is zero at this photograph",
            run.encoder_title
        ));
    }
    if !runs.is_empty() {
        return None;
    }
    if state.photo.is_none() && !state.lane(Lane::Image).busy {
        return Some("Open a photograph to see the spectrum of the Jacobian there".to_owned());
    }
    if let Some([output_len, input_len]) = state.too_large(state.lead()) {
        return Some(format!(
            "A Jacobian of {output_len} × {input_len} values is too large for its whole spectrum: choose leading \
             values"
        ));
    }
    Some(match state.spectrum.refinement {
        Refinement::Stopped => "Stopped. Press space to start again".to_owned(),
        _ => state
            .visible_work()
            .and_then(|(_, lane)| lane.progress.as_ref())
            .map_or_else(|| "starting".to_owned(), |progress| progress.stage.clone()),
    })
}

/// The index where the pointer drags the marker in the plot, judged by where the plot stood in the last frame,
/// before anything of this frame is drawn.
pub fn dragged_index(ui: &Ui, scene: &Scene<'_>, place: Option<&PlotPlace>) -> Option<usize> {
    let place = place?;
    let response = ui.ctx().read_response(place.id)?;
    // A click can begin and end between two frames.
    let is_held = response.dragged_by(PointerButton::Primary)
        || response.clicked_by(PointerButton::Primary)
        || response.is_pointer_button_down_on() && ui.input(|input| input.pointer.primary_down());
    let pointer = response.interact_pointer_pos().filter(|_| is_held)?;
    let axis = Axis::new(scene.settings.spectrum_scales[0]);
    nearest_index(axis.value(place.transform.value_from_position(pointer).x))
}
