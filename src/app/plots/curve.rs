//! What is drawn of a curve: thin single directions, the bold mean with its band, its points, and the
//! value measured at the marked η.

use eframe::egui::Color32;
use egui_plot::{
    FilledArea, HLine, Line, LineStyle, MarkerShape, PlotPoints, PlotUi, Points, VLine,
};

use crate::app::axis::Axis;
use crate::app::intent::Scene;
use crate::app::state::{Curve, SHOWN_MAX, Seen, State, ValueAtEta};
use crate::app::theme::Palette;
use crate::geometry::{Profile, ScaleEstimate};
use crate::recipe::WeightsKind;

/// Thin lines of single directions: enough to show the scatter, few enough to be told apart.
const SINGLES_MAX: usize = 12;

/// Signs of the points by the encoder's place among those that are compared: a second cue beside its
/// hue. The diamond is that of the value measured at the marker.
const SHAPES: [MarkerShape; SHOWN_MAX] = [
    MarkerShape::Circle,
    MarkerShape::Square,
    MarkerShape::Up,
    MarkerShape::Down,
];

/// Opacity of stale curves.
const STALE: f32 = 0.35;

/// One curve with everything that decides its looks.
pub(super) struct Drawn<'a> {
    pub(super) name: String,
    pub(super) profile: &'a Profile,
    pub(super) curve: &'a Curve,
    pub(super) colour: Color32,
    pub(super) weights: WeightsKind,
    slot: usize,
}

/// How a line is drawn.
#[derive(Clone, Copy)]
pub(super) struct Pen {
    pub(super) colour: Color32,
    pub(super) width: f32,
}

impl Drawn<'_> {
    pub(super) fn style(&self) -> LineStyle {
        match self.weights {
            WeightsKind::Trained => LineStyle::Solid,
            WeightsKind::Random => LineStyle::Dashed { length: 8.0 },
        }
    }

    fn shape(&self) -> MarkerShape {
        marker_shape(self.slot)
    }

    fn faded(&self, colour: Color32) -> Color32 {
        if self.curve.stale {
            colour.gamma_multiply(STALE)
        } else {
            colour
        }
    }
}

/// Sign of the points of the encoder with this place among those that are compared.
pub fn marker_shape(slot: usize) -> MarkerShape {
    SHAPES[slot % SHAPES.len()]
}

/// Name of a curve among those on screen: its weights, and its encoder where there are several.
pub fn curve_title(state: &State, seen: &Seen<'_>) -> String {
    if state.is_comparing() {
        let kind = match seen.weights {
            WeightsKind::Trained => "trained",
            WeightsKind::Random => "twin",
        };
        format!("{}, {kind}", seen.shown.spec.title)
    } else {
        curve_name(seen.weights).to_owned()
    }
}

/// Name of a curve in legends and tooltips.
pub fn curve_name(weights: WeightsKind) -> &'static str {
    match weights {
        WeightsKind::Trained => "trained",
        WeightsKind::Random => "random twin",
    }
}

pub(super) fn drawn<'a>(scene: &Scene<'a>, palette: Palette) -> Vec<Drawn<'a>> {
    let mut all: Vec<_> = scene
        .state
        .curves()
        .filter_map(|seen| {
            Some(Drawn {
                name: curve_title(scene.state, &seen),
                profile: seen.curve.profile()?,
                curve: seen.curve,
                colour: palette.encoder(seen.shown.slot),
                weights: seen.weights,
                slot: seen.shown.slot,
            })
        })
        .collect();
    // The leading encoder's curve lies on top, and a trained one over its twin.
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

pub(super) fn reference_line(plot: &mut PlotUi<'_>, y: &Axis, palette: Palette) {
    if let Some(place) = y.place(1.0) {
        plot.hline(
            HLine::new("linear prediction", place)
                .color(palette.reference)
                .width(1.0),
        );
    }
}

pub(super) fn draw_marker(plot: &mut PlotUi<'_>, x: &Axis, eta: f64, palette: Palette) {
    if let Some(place) = x.place(eta) {
        plot.vline(
            VLine::new("η", place)
                .color(palette.marker)
                .width(1.5)
                .allow_hover(false),
        );
    }
}

pub(super) fn draw_singles(plot: &mut PlotUi<'_>, curve: &Drawn<'_>, x: &Axis, y: &Axis) {
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

pub(super) fn draw_band(plot: &mut PlotUi<'_>, curve: &Drawn<'_>, x: &Axis, y: &Axis) {
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

pub(super) fn draw_line(
    plot: &mut PlotUi<'_>,
    curve: &Drawn<'_>,
    x: &Axis,
    y: &Axis,
    value: impl Fn(&ScaleEstimate) -> f64,
    pen: Pen,
) {
    let points = curve
        .profile
        .scales
        .iter()
        .map(|scale| Some([x.place(scale.eta_l2)?, y.place(value(scale))?]));
    for segment in segments(points) {
        plot.line(
            Line::new(curve.name.clone(), PlotPoints::from(segment))
                .color(curve.faded(pen.colour))
                .width(pen.width)
                .style(curve.style()),
        );
    }
}

pub(super) fn draw_points(plot: &mut PlotUi<'_>, curve: &Drawn<'_>, x: &Axis, y: &Axis) {
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

pub(super) fn draw_measured(
    plot: &mut PlotUi<'_>,
    curve: &Drawn<'_>,
    [x, y]: [&Axis; 2],
    eta: f64,
    edge: Color32,
    colour: Color32,
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
                .color(edge)
                .width(3.0)
                .allow_hover(false),
        );
    }
    plot.points(
        Points::new("measured", PlotPoints::from(vec![[at, r]]))
            .shape(MarkerShape::Diamond)
            .color(edge)
            .radius(6.5)
            .allow_hover(false),
    );
    plot.points(
        Points::new("measured", PlotPoints::from(vec![[at, r]]))
            .shape(MarkerShape::Diamond)
            .color(colour)
            .radius(4.5)
            .allow_hover(false),
    );
}
