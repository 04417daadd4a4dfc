//! The two plots: r_η against η, and below it the two curves whose ratio it is.

use eframe::egui::{
    Align2, Color32, FontId, Id, Pos2, Rect, Response, Role, Sense, Shape, Stroke, Ui, Vec2, Vec2b,
    WidgetInfo,
};
use egui_plot::{
    AxisHints, FilledArea, HLine, HoverPosition, Line, LineStyle, MarkerShape, Plot, PlotPoints,
    PlotTransform, PlotUi, Points, VLine,
};

use super::axis::Axis;
use super::format;
use super::intent::Scene;
use super::settings::AxisScale;
use super::state::{Curve, ValueAtEta};
use super::theme::{Palette, SMALL};
use crate::geometry::{Profile, ScaleEstimate};
use crate::recipe::{WeightsKind, grey_rms};

/// Thin lines of single directions: enough to show the scatter, few enough to be told apart.
const SINGLES_MAX: usize = 12;
/// Room for the tick labels at the left of both plots, so that their frames are flush.
const LABEL_WIDTH: f32 = 68.0;
/// Height of a row of tick labels.
const LABEL_HEIGHT: f32 = 18.0;
/// Opacity of stale curves.
const STALE: f32 = 0.35;
/// Length of a line in a legend.
const LINE_SAMPLE: f32 = 24.0;
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

/// One curve with everything that decides its looks.
struct Drawn<'a> {
    name: String,
    profile: &'a Profile,
    curve: &'a Curve,
    colour: Color32,
    weights: WeightsKind,
}

impl Drawn<'_> {
    fn style(&self) -> LineStyle {
        match self.weights {
            WeightsKind::Trained => LineStyle::Solid,
            WeightsKind::Random => LineStyle::Dashed { length: 8.0 },
        }
    }

    fn shape(&self) -> MarkerShape {
        match self.weights {
            WeightsKind::Trained => MarkerShape::Circle,
            WeightsKind::Random => MarkerShape::Square,
        }
    }

    fn faded(&self, colour: Color32) -> Color32 {
        if self.curve.stale {
            colour.gamma_multiply(STALE)
        } else {
            colour
        }
    }
}

/// Name of a curve in legends and tooltips.
pub fn curve_name(weights: WeightsKind) -> &'static str {
    match weights {
        WeightsKind::Trained => "trained",
        WeightsKind::Random => "random twin",
    }
}

fn drawn<'a>(scene: &Scene<'a>, palette: Palette) -> Vec<Drawn<'a>> {
    let colour = palette.encoder(scene.state.encoder_index());
    let mut all: Vec<_> = scene
        .state
        .curves()
        .filter_map(|(weights, curve)| {
            let profile = curve.profile()?;
            Some(Drawn {
                name: curve_name(weights).to_owned(),
                profile,
                curve,
                colour,
                weights,
            })
        })
        .collect();
    // The trained curve lies on top.
    all.reverse();
    all
}

/// Runs of neighbouring points that all have a place.
fn segments(points: impl Iterator<Item = Option<[f64; 2]>>) -> Vec<Vec<[f64; 2]>> {
    let mut all = vec![Vec::new()];
    for point in points {
        match point {
            Some(point) => {
                if let Some(last) = all.last_mut() {
                    last.push(point);
                }
            }
            None => all.push(Vec::new()),
        }
    }
    all.retain(|segment| !segment.is_empty());
    all
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
    let input_len = scene.state.input_len();
    let hints = x_hints(&x, Some(input_len), palette);

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
                draw_singles(plot, curve, &x, &y);
                draw_band(plot, curve, &x, &y);
            }
            for curve in &curves {
                draw_line(
                    plot,
                    curve,
                    &x,
                    &y,
                    |scale| scale.r,
                    curve.colour,
                    curve.style(),
                );
                draw_points(plot, curve, &x, &y);
            }
            draw_marker(plot, &x, eta, palette);
            for curve in &curves {
                draw_measured(plot, curve, &x, &y, eta, palette);
            }
        });
    let frame = *response.transform.frame();
    label_rows(ui, frame, &["η (L2)", "grey levels"], palette);
    if let Some(place) = y.place(1.0) {
        let at = response.transform.position_from_point_y(place);
        reference_label(ui, frame, at, palette);
    }
    if let Some(place) = x.place(eta) {
        let at = response.transform.position_from_point_x(place);
        marker_readout(ui, scene, frame, at, palette);
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
                draw_line(
                    plot,
                    curve,
                    &x,
                    &y,
                    prediction,
                    palette.prediction,
                    curve.style(),
                );
                let displacement = |scale: &ScaleEstimate| scale.displacement_sq;
                draw_line(
                    plot,
                    curve,
                    &x,
                    &y,
                    displacement,
                    curve.colour,
                    curve.style(),
                );
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
        .link_axis(Id::unique(LINK), Vec2b::new(true, false))
        .link_cursor(Id::unique(LINK), Vec2b::new(true, false))
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

/// Least and largest r to be shown; steps of the upper end are coarse, so that a sharpening curve
/// does not make the axis jump.
fn r_range(curves: &[Drawn<'_>], scale: AxisScale) -> [f64; 2] {
    let values = || {
        curves
            .iter()
            .flat_map(|curve| &curve.profile.scales)
            .map(|scale| scale.r)
            .filter(|r| r.is_finite())
    };
    let top = values().fold(1.4, f64::max) * 1.08;
    match scale {
        // A little below 0, so that its label has room above those of the η axis.
        AxisScale::Linear => [-0.03 * coarse_above(top), coarse_above(top)],
        AxisScale::Log => {
            let bottom = values().filter(|r| *r > 0.0).fold(0.5, f64::min);
            // Thirds of a decade.
            let step =
                |value: f64, round: fn(f64) -> f64| 10f64.powf(round(value.log10() * 3.0) / 3.0);
            [step(bottom * 0.9, f64::floor), step(top, f64::ceil)]
        }
    }
}

fn coarse_above(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let steps = [1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps
        .iter()
        .map(|step| step * decade)
        .find(|top| *top >= value)
        .unwrap_or(10.0 * decade)
}

fn displacement_range(curves: &[Drawn<'_>]) -> [f64; 2] {
    let values = || {
        curves
            .iter()
            .flat_map(|curve| &curve.profile.scales)
            .flat_map(|scale| [scale.displacement_sq, scale.prediction_sq])
            .filter(|value| value.is_finite() && *value > 0.0)
    };
    let (low, high) = values().fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
    if low > high {
        return [10f64.powf(-4.33), 1e4];
    }
    // A third of a decade below the last label, so that it has room above those of the η axis.
    [
        10f64.powf(low.log10().floor() - 0.33),
        10f64.powf(high.log10().ceil()),
    ]
}

fn reference_line(plot: &mut PlotUi<'_>, y: &Axis, palette: Palette) {
    if let Some(place) = y.place(1.0) {
        plot.hline(
            HLine::new("linear prediction", place)
                .color(palette.reference)
                .width(1.0),
        );
    }
}

fn draw_marker(plot: &mut PlotUi<'_>, x: &Axis, eta: f64, palette: Palette) {
    if let Some(place) = x.place(eta) {
        plot.vline(
            VLine::new("η", place)
                .color(palette.marker)
                .width(1.5)
                .allow_hover(false),
        );
    }
}

fn draw_singles(plot: &mut PlotUi<'_>, curve: &Drawn<'_>, x: &Axis, y: &Axis) {
    for single in curve.profile.singles.iter().take(SINGLES_MAX) {
        let points = curve
            .profile
            .scales
            .iter()
            .zip(single)
            .map(|(scale, &r)| Some([x.place(scale.eta_l2)?, y.place(r)?]));
        for segment in segments(points) {
            plot.line(
                Line::new("", PlotPoints::from(segment))
                    .color(curve.faded(curve.colour.gamma_multiply(0.22)))
                    .width(1.0)
                    .style(curve.style())
                    .allow_hover(false),
            );
        }
    }
}

fn draw_band(plot: &mut PlotUi<'_>, curve: &Drawn<'_>, x: &Axis, y: &Axis) {
    let edges = curve.profile.scales.iter().map(|scale| {
        let (low, high) = (scale.r - scale.r_se, scale.r + scale.r_se);
        // On a logarithmic axis a band that reaches 0 ends at a tenth of its curve.
        let low = y.place(low).or_else(|| y.place(0.1 * scale.r))?;
        Some((x.place(scale.eta_l2)?, low, y.place(high)?))
    });
    let mut parts: Vec<Vec<(f64, f64, f64)>> = vec![Vec::new()];
    for edge in edges {
        match edge {
            Some(edge) => parts
                .last_mut()
                .into_iter()
                .for_each(|part| part.push(edge)),
            None => parts.push(Vec::new()),
        }
    }
    for part in parts.into_iter().filter(|part| part.len() > 1) {
        let column = |pick: fn(&(f64, f64, f64)) -> f64| part.iter().map(pick).collect::<Vec<_>>();
        plot.add(
            FilledArea::new("", &column(|e| e.0), &column(|e| e.1), &column(|e| e.2))
                .fill_color(curve.faded(curve.colour.gamma_multiply(0.28)))
                .allow_hover(false),
        );
    }
}

fn draw_line(
    plot: &mut PlotUi<'_>,
    curve: &Drawn<'_>,
    x: &Axis,
    y: &Axis,
    value: impl Fn(&ScaleEstimate) -> f64,
    colour: Color32,
    style: LineStyle,
) {
    let points = curve
        .profile
        .scales
        .iter()
        .map(|scale| Some([x.place(scale.eta_l2)?, y.place(value(scale))?]));
    for segment in segments(points) {
        plot.line(
            Line::new(curve.name.clone(), PlotPoints::from(segment))
                .color(curve.faded(colour))
                .width(2.5)
                .style(style),
        );
    }
}

fn draw_points(plot: &mut PlotUi<'_>, curve: &Drawn<'_>, x: &Axis, y: &Axis) {
    for reliable in [true, false] {
        let points: Vec<[f64; 2]> = curve
            .profile
            .scales
            .iter()
            .filter(|scale| scale.reliable == reliable)
            .filter_map(|scale| Some([x.place(scale.eta_l2)?, y.place(scale.r)?]))
            .collect();
        plot.points(
            Points::new(curve.name.clone(), PlotPoints::from(points))
                .shape(curve.shape())
                .color(curve.faded(curve.colour))
                .filled(reliable)
                .radius(if reliable { 3.5 } else { 5.0 }),
        );
    }
}

fn draw_measured(
    plot: &mut PlotUi<'_>,
    curve: &Drawn<'_>,
    x: &Axis,
    y: &Axis,
    eta: f64,
    palette: Palette,
) {
    let ValueAtEta::Measured(estimate) = curve.curve.value_at(eta) else {
        return;
    };
    let (Some(at), Some(r)) = (x.place(estimate.eta_l2), y.place(estimate.r)) else {
        return;
    };
    let ends = [estimate.r - estimate.r_se, estimate.r + estimate.r_se].map(|end| y.place(end));
    if let [Some(low), Some(high)] = ends {
        plot.line(
            Line::new("", PlotPoints::from(vec![[at, low], [at, high]]))
                .color(palette.text)
                .width(3.0)
                .allow_hover(false),
        );
    }
    plot.points(
        Points::new("measured", PlotPoints::from(vec![[at, r]]))
            .shape(MarkerShape::Diamond)
            .color(palette.text)
            .radius(6.5)
            .allow_hover(false),
    );
    plot.points(
        Points::new("measured", PlotPoints::from(vec![[at, r]]))
            .shape(MarkerShape::Diamond)
            .color(palette.marker)
            .radius(4.5)
            .allow_hover(false),
    );
}

/// What a hovered point says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quantity {
    Response,
    Displacement,
}

fn hover_text(
    hover: &HoverPosition<'_>,
    curves: &[Drawn<'_>],
    x: &Axis,
    quantity: Quantity,
) -> Option<String> {
    let HoverPosition::NearDataPoint {
        plot_name,
        position,
        ..
    } = hover
    else {
        return None;
    };
    let curve = curves.iter().find(|curve| curve.name == *plot_name)?;
    let scale = curve.profile.scales.iter().min_by(|a, b| {
        let distance = |s: &ScaleEstimate| {
            x.place(s.eta_l2)
                .map_or(f64::INFINITY, |place| (place - position.x).abs())
        };
        distance(a).total_cmp(&distance(b))
    })?;
    let mut text = format!(
        "{}\nη = {} = {} grey levels RMS\n",
        curve.name,
        format::significant(scale.eta_l2, 3),
        format::significant(scale.eta_grey_rms, 3),
    );
    text += &match quantity {
        Quantity::Response => format!("r = {}", format::with_error(scale.r, scale.r_se)),
        Quantity::Displacement => format!(
            "displacement² = {}\nprediction² = {}",
            format::significant(scale.displacement_sq, 3),
            format::significant(scale.prediction_sq, 3)
        ),
    };
    text += &format!("\n{} directions", scale.directions);
    if !scale.reliable {
        text += "\nunreliable: below the floating-point floor";
    }
    if curve.curve.stale {
        text += "\nstale: answers an older question";
    }
    Some(text)
}

/// Units of the rows of tick labels, in the corner left of them.
fn label_rows(ui: &Ui, frame: Rect, names: &[&str], palette: Palette) {
    for (row, name) in names.iter().enumerate() {
        let at = Pos2::new(
            frame.left() - 8.0,
            frame.bottom() + 2.0 + row as f32 * LABEL_HEIGHT,
        );
        let font = FontId::proportional(SMALL);
        ui.painter()
            .text(at, Align2::RIGHT_TOP, name, font, palette.weak);
    }
}

fn reference_label(ui: &Ui, frame: Rect, y: f32, palette: Palette) {
    if frame.y_range().contains(y) {
        let painter = ui.painter().with_clip_rect(frame);
        // Below the plateau, where curves that begin at r = 1 leave room.
        let at = Pos2::new(frame.left() + 8.0, y + 8.0);
        let font = FontId::proportional(SMALL);
        painter.text(
            at,
            Align2::LEFT_TOP,
            "linear prediction",
            font,
            palette.reference,
        );
    }
}

/// The measured values beside the marker line.
fn marker_readout(ui: &Ui, scene: &Scene<'_>, frame: Rect, x: f32, palette: Palette) {
    if !frame.x_range().contains(x) {
        return;
    }
    let painter = ui.painter().with_clip_rect(frame);
    let font = FontId::proportional(SMALL);
    let mut rows = vec![(
        format!("η = {}", format::significant(scene.state.eta_l2, 3)),
        palette.marker,
    )];
    for (weights, curve) in scene.state.curves() {
        let name = curve_name(weights);
        let (text, colour) = match curve.value_at(scene.state.eta_l2) {
            ValueAtEta::Measured(e) => (
                format!("{name}  r = {}", format::with_error(e.r, e.r_se)),
                palette.text,
            ),
            ValueAtEta::Interpolated(r) => (
                format!("{name}  r ≈ {}", format::significant(r, 3)),
                palette.weak,
            ),
            ValueAtEta::Unknown => continue,
        };
        rows.push((text, colour));
    }
    let galleys: Vec<_> = rows
        .into_iter()
        .map(|(text, colour)| (painter.layout_no_wrap(text, font.clone(), colour), colour))
        .collect();
    let width = galleys
        .iter()
        .map(|(galley, _)| galley.size().x)
        .fold(0.0, f32::max);
    let height: f32 = galleys.iter().map(|(galley, _)| galley.size().y).sum();
    let size = Vec2::new(width + 16.0, height + 8.0);
    // Right of the line where there is room.
    let left = if x + 8.0 + size.x < frame.right() {
        x + 8.0
    } else {
        x - 8.0 - size.x
    };
    let rect = Rect::from_min_size(Pos2::new(left, frame.top() + 8.0), size);
    painter.add(Shape::rect_filled(
        rect,
        4.0,
        palette.card.gamma_multiply(0.9),
    ));
    painter.rect_stroke(
        rect,
        4.0,
        Stroke::new(1.0, palette.edge),
        eframe::egui::StrokeKind::Inside,
    );
    let mut top = rect.top() + 4.0;
    for (galley, colour) in galleys {
        let step = galley.size().y;
        painter.galley(Pos2::new(rect.left() + 8.0, top), galley, colour);
        top += step;
    }
}

/// What a screen reader says of a plot.
fn name_plot(
    response: &Response,
    title: &str,
    curves: &[Drawn<'_>],
    value: impl Fn(&ScaleEstimate) -> f64,
) {
    response.widget_info(|| {
        let mut text = title.to_owned();
        for curve in curves {
            let largest = curve
                .profile
                .scales
                .iter()
                .filter(|s| value(s).is_finite())
                .max_by(|a, b| value(a).total_cmp(&value(b)));
            if let Some(scale) = largest {
                text += &format!(
                    "; {}: largest {} at η {}",
                    curve.name,
                    format::significant(value(scale), 3),
                    format::significant(scale.eta_l2, 3)
                );
            }
        }
        WidgetInfo::labeled(Role::Figure, true, text)
    });
}

/// A sample of a curve's line for a legend, with its name; left out where there is no room.
pub fn legend_entry(ui: &mut Ui, name: &str, colour: Color32, dashed: bool, width: f32) {
    let palette = Palette::for_ui(ui);
    let font = FontId::proportional(SMALL);
    let galley = ui
        .painter()
        .layout_no_wrap(name.to_owned(), font, palette.weak);
    let size = Vec2::new(LINE_SAMPLE + 6.0 + galley.size().x, galley.size().y);
    if size.x > ui.available_width() {
        return;
    }
    let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
    let left = rect.left_center();
    let ends = [left, left + Vec2::new(LINE_SAMPLE, 0.0)];
    let stroke = Stroke::new(width, colour);
    if dashed {
        ui.painter()
            .extend(Shape::dashed_line(&ends, stroke, 6.0, 4.0));
    } else {
        ui.painter().line_segment(ends, stroke);
    }
    let at = Pos2::new(ends[1].x + 6.0, rect.top());
    ui.painter().galley(at, galley, palette.weak);
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, name));
}
