//! The plots: r_η against η, and below it the two curves whose ratio it is; singular values against their index.

mod curve;
mod labels;
mod range;
mod spectrum;

use eframe::egui::{FontId, Id, Sense, Ui, Vec2, Vec2b};
use egui_plot::{AxisHints, Plot, PlotTransform};

pub use curve::{curve_name, curve_title, marker_shape};
pub use labels::{legend_entry, line_sample};
pub(in crate::app) use spectrum::nearest_index;
pub use spectrum::spectrum_plot;

use super::axis::Axis;
use super::format;
use super::intent::Scene;
use super::settings::AxisScale;
use super::theme::{Palette, SMALL};
use crate::geometry::ScaleEstimate;
use crate::recipe::grey_rms;
use curve::{
    Pen, draw_band, draw_line, draw_marker, draw_measured, draw_points, draw_singles, drawn,
    reference_line,
};
use labels::{
    Quantity, hidden_label, hover_text, label_rows, marker_readout, name_plot, reference_label,
};
use range::{displacement_range, hidden_top, r_range};

/// Room for the tick labels at the left of both plots, so that their frames are flush.
const LABEL_WIDTH: f32 = 68.0;

/// Height of a row of tick labels.
const LABEL_HEIGHT: f32 = 18.0;

/// Width of the lines that tell something, in points, and of those that they are held against where
/// both have the same hue.
const BOLD: f32 = 2.5;
const FINE: f32 = 1.25;

/// Name of the group of plots that share the η axis.
const LINK: &str = "eta axis";

/// Where a plot stood in the last frame: drags are read from it before anything is drawn, so that
/// marker and preview follow in the same frame.
#[derive(Clone, Copy)]
pub struct PlotPlace {
    /// The plot's widget.
    pub id: Id,
    /// Its coordinates.
    pub transform: PlotTransform,
}

/// The plot of r against η. `reset` shows the whole ladder again.
pub fn response_plot(ui: &mut Ui, scene: &Scene<'_>, size: Vec2, reset: bool) -> PlotPlace {
    let palette = Palette::for_ui(ui);
    let x = Axis::new(scene.settings.x_scale);
    let y = Axis::new(scene.settings.y_scale);
    let curves = drawn(scene, palette);
    let eta = scene.state.eta_l2;
    let [y_low, y_high] = r_range(&curves, scene.settings.y_scale);
    let bounds_y = [
        y.place(y_low).unwrap_or(0.0),
        y.place(y_high).unwrap_or(1.0),
    ];
    // Grey levels are those of all encoders, or of none.
    let input_len = Some(scene.state.input_len()).filter(|_| scene.state.grey_levels_agree());
    let is_comparing = scene.state.is_comparing();
    let hints = x_hints(&x, input_len, palette);

    let response = base_plot("response", scene, &x, &y, size, palette)
        .custom_x_axes(hints)
        .default_y_bounds(bounds_y[0], bounds_y[1])
        .label_formatter(|hover| hover_text(hover, &curves, &x, Quantity::Response))
        .show(ui, |plot| {
            if reset {
                plot.set_auto_bounds(Vec2b::TRUE);
            }
            reference_line(plot, &y, palette);
            for curve in &curves {
                if !is_comparing {
                    draw_singles(plot, curve, &x, &y);
                }
                draw_band(plot, curve, &x, &y);
            }
            for curve in &curves {
                let pen = Pen {
                    colour: curve.colour,
                    width: BOLD,
                };
                draw_line(plot, curve, &x, &y, |scale| scale.r, pen);
                draw_points(plot, curve, &x, &y);
            }
            draw_marker(plot, &x, eta, palette);
            for curve in &curves {
                let colour = if is_comparing {
                    curve.colour
                } else {
                    palette.marker
                };
                draw_measured(plot, curve, [&x, &y], eta, palette.text, colour);
            }
        });
    let frame = *response.transform.frame();
    if input_len.is_some() {
        label_rows(ui, frame, &["η (L2)", "grey levels"], palette);
    } else {
        label_rows(ui, frame, &["η (L2)"], palette);
    }
    if let Some(place) = y.place(1.0) {
        let at = response.transform.position_from_point_y(place);
        reference_label(ui, frame, at, palette);
    }
    let mut room = frame;
    if let Some(hidden) = hidden_top(&curves, y_high) {
        hidden_label(ui, frame, hidden, palette);
        *room.top_mut() += 20.0;
    }
    if let Some(place) = x.place(eta) {
        let at = response.transform.position_from_point_x(place);
        marker_readout(ui, scene, room, at, palette);
    }
    name_plot(&response.response, "Response r against η", &curves, |s| {
        s.r
    });
    PlotPlace {
        id: response.response.id,
        transform: response.transform,
    }
}

/// The plot of measured displacement and linear prediction against η.
pub fn displacement_plot(ui: &mut Ui, scene: &Scene<'_>, size: Vec2, reset: bool) -> PlotPlace {
    let palette = Palette::for_ui(ui);
    let x = Axis::new(scene.settings.x_scale);
    let y = Axis::new(AxisScale::Log);
    let curves = drawn(scene, palette);
    let [y_low, y_high] = displacement_range(&curves);
    let bounds_y = [
        y.place(y_low).unwrap_or(-1.0),
        y.place(y_high).unwrap_or(1.0),
    ];
    let hints = x_hints(&x, None, palette);
    let is_comparing = scene.state.is_comparing();

    let response = base_plot("displacement", scene, &x, &y, size, palette)
        .custom_x_axes(hints)
        .default_y_bounds(bounds_y[0], bounds_y[1])
        .label_formatter(|hover| hover_text(hover, &curves, &x, Quantity::Displacement))
        .show(ui, |plot| {
            if reset {
                plot.set_auto_bounds(Vec2b::TRUE);
            }
            for curve in &curves {
                let prediction = |scale: &ScaleEstimate| scale.prediction_sq;
                let pen = if is_comparing {
                    Pen {
                        colour: curve.colour,
                        width: FINE,
                    }
                } else {
                    Pen {
                        colour: palette.prediction,
                        width: BOLD,
                    }
                };
                draw_line(plot, curve, &x, &y, prediction, pen);
                let displacement = |scale: &ScaleEstimate| scale.displacement_sq;
                let pen = Pen {
                    colour: curve.colour,
                    width: BOLD,
                };
                draw_line(plot, curve, &x, &y, displacement, pen);
            }
            draw_marker(plot, &x, scene.state.eta_l2, palette);
        });
    let frame = *response.transform.frame();
    label_rows(ui, frame, &["η (L2)"], palette);
    name_plot(
        &response.response,
        "Displacement and prediction against η",
        &curves,
        |s| s.displacement_sq,
    );
    PlotPlace {
        id: response.response.id,
        transform: response.transform,
    }
}

fn base_plot<'a>(
    name: &'static str,
    scene: &Scene<'_>,
    x: &'a Axis,
    y: &'a Axis,
    size: Vec2,
    palette: Palette,
) -> Plot<'a> {
    let [low, high] = scene.state.eta_range();
    // Half a tick of margin on a logarithmic axis; a linear one begins at 0.
    let [left, right] = match scene.settings.x_scale {
        AxisScale::Log => [low.log10() - 0.12, high.log10() + 0.12],
        AxisScale::Linear => [-0.02 * high, 1.02 * high],
    };
    framed_plot(name, [x, y], size, [left, right], palette)
        .link_axis(Id::unique(LINK), Vec2b::new(true, false))
        .link_cursor(Id::unique(LINK), Vec2b::new(true, false))
}

/// A plot on our axes with our grid, between two places of the horizontal axis.
fn framed_plot<'a>(
    name: &'static str,
    [x, y]: [&'a Axis; 2],
    size: Vec2,
    [left, right]: [f64; 2],
    palette: Palette,
) -> Plot<'a> {
    let y_hints = AxisHints::new_y()
        .formatter(|mark, range| y.label(mark, range))
        .min_thickness(LABEL_WIDTH)
        .label_spacing(12.0..=16.0)
        .tick_label_font(FontId::proportional(SMALL))
        .tick_label_color(palette.weak);
    Plot::new(name)
        .width(size.x)
        .height(size.y)
        .sense(Sense::click_and_drag())
        .allow_drag(Vec2b::TRUE)
        .pan_pointer_button(eframe::egui::PointerButton::Secondary)
        .allow_boxed_zoom(false)
        .allow_scroll(false)
        .allow_double_click_reset(false)
        .allow_axis_zoom_drag(false)
        .default_x_bounds(left, right)
        .x_grid_spacer(|input| x.grid(input))
        .y_grid_spacer(|input| y.labelled_grid(input))
        .grid_spacing(6.0..=40.0)
        .grid_fade(0.8)
        .grid_color(palette.grid)
        .custom_y_axes(vec![y_hints])
        .show_crosshair(false)
        .cursor_color(palette.weak.gamma_multiply(0.5))
}

/// Rows of tick labels below a plot: η, and with an input length the same as pixel RMS.
fn x_hints<'a>(x: &'a Axis, input_len: Option<usize>, palette: Palette) -> Vec<AxisHints<'a>> {
    let row = || {
        AxisHints::new_x()
            .min_thickness(LABEL_HEIGHT)
            .label_spacing(24.0..=32.0)
            .tick_label_font(FontId::proportional(SMALL))
            .tick_label_color(palette.weak)
    };
    let mut rows = vec![row().formatter(|mark, range| x.label(mark, range))];
    if let Some(len) = input_len {
        rows.push(row().formatter(move |mark, range| {
            x.labelled_value(mark, range)
                .map(|(eta, _)| format::significant(grey_rms(eta, len), 2))
                .unwrap_or_default()
        }));
    }
    rows
}
