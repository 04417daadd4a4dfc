//! The plot of singular values against their index.

use eframe::egui::{Color32, Rect, Role, Ui, Vec2, Vec2b, WidgetInfo};
use egui_plot::{
    HoverPosition, Line, LineStyle, MarkerShape, PlotPoint, PlotPoints, PlotUi, Points, VLine,
};

use super::curve::{curve_title, marker_shape};
use super::labels::{Row, label_rows, marker_box};
use super::{BOLD, PlotPlace, framed_plot};
use crate::app::axis::Axis;
use crate::app::format;
use crate::app::intent::Scene;
use crate::app::settings::AxisScale;
use crate::app::state::{Seen, Selected};
use crate::app::theme::Palette;
use crate::geometry::spectrum::Bounds;
use crate::recipe::WeightsKind;
use crate::report::SpectrumRun;

/// Most values whose points are drawn one by one.
const MARKED_MAX: usize = 32;

/// Opacity of stale curves.
const STALE: f32 = 0.35;

/// Decades that an axis shows below the largest value when nothing is known yet.
const EMPTY_DECADES: f64 = 2.0;

/// One spectrum with everything that decides its looks.
struct Drawn<'a> {
    seen: Seen<'a>,
    run: &'a SpectrumRun,
    name: String,
    colour: Color32,
    stale: bool,
}

impl Drawn<'_> {
    /// Values above rounding, with their index counted from 1.
    fn values(&self) -> impl Iterator<Item = (usize, f64)> {
        let spectrum = &self.run.spectrum;
        let values = spectrum.values.iter().take(spectrum.rank()).copied();
        (1..).zip(values)
    }

    fn value(&self, index: usize) -> Option<f64> {
        self.run.spectrum.values.get(index.checked_sub(1)?).copied()
    }

    /// The bound of a value's error, if it has one.
    fn error(&self, index: usize) -> Option<f64> {
        match &self.run.spectrum.bounds {
            Bounds::Exact => None,
            Bounds::Within(errors) => errors.get(index.checked_sub(1)?).copied(),
        }
    }

    fn style(&self) -> LineStyle {
        match self.seen.weights {
            WeightsKind::Trained => LineStyle::Solid,
            WeightsKind::Random => LineStyle::Dashed { length: 8.0 },
        }
    }
}

fn drawn<'a>(scene: &Scene<'a>, palette: Palette) -> Vec<Drawn<'a>> {
    let mut all: Vec<_> = (scene.state.curves())
        .filter_map(|seen| {
            let run = seen.curve.spectrum.as_deref()?;
            let stale = scene.state.is_spectrum_stale(&seen);
            let colour = palette.encoder(seen.shown.slot);
            Some(Drawn {
                seen,
                run,
                name: curve_title(scene.state, &seen),
                colour: if stale {
                    colour.gamma_multiply(STALE)
                } else {
                    colour
                },
                stale,
            })
        })
        .collect();
    // The leading encoder's curve lies on top, and a trained one over its twin.
    all.reverse();
    all
}

/// The plot. `reset` shows the whole spectra again.
pub fn spectrum_plot(ui: &mut Ui, scene: &Scene<'_>, size: Vec2, reset: bool) -> PlotPlace {
    let palette = Palette::for_ui(ui);
    let [x, y] = scene.settings.spectrum_scales.map(Axis::new);
    let curves = drawn(scene, palette);
    let selected = scene.state.spectrum.selected;
    let [bottom, top] = value_places(&curves, scene.settings.spectrum_scales[1], &y);
    let sides = index_places(&curves, scene.settings.spectrum_scales[0]);

    let response = framed_plot("spectrum", [&x, &y], size, sides, palette)
        .custom_x_axes(super::x_hints(&x, None, palette))
        .default_y_bounds(bottom, top)
        .label_formatter(|hover| hover_text(hover, &curves, &x))
        .show(ui, |plot| {
            if reset {
                plot.set_auto_bounds(Vec2b::TRUE);
            }
            for curve in &curves {
                draw(plot, curve, [&x, &y]);
            }
            if let Selected::Index(index) = selected
                && let Some(place) = x.place(index as f64)
            {
                let line = VLine::new("index", place).color(palette.marker).width(1.5);
                plot.vline(line.allow_hover(false));
                for curve in &curves {
                    mark(plot, curve, index, [&x, &y], palette);
                }
            }
        });
    let frame = *response.transform.frame();
    label_rows(ui, frame, &["index i"], palette);
    if let Selected::Index(index) = selected {
        readout(ui, scene, &curves, index, frame, palette);
    }
    response.response.widget_info(|| {
        let mut text = "Singular values against their index".to_owned();
        for curve in curves.iter().rev() {
            if let Some(first) = curve.value(1) {
                let count = curve.run.spectrum.values.len();
                let first = format::significant(first, 3);
                text += &format!("; {}: {count} values, the largest {first}", curve.name);
            }
        }
        WidgetInfo::labeled(Role::Figure, true, text)
    });
    PlotPlace {
        id: response.response.id,
        transform: response.transform,
    }
}

/// Ends of the index axis, as places.
fn index_places(curves: &[Drawn<'_>], scale: AxisScale) -> [f64; 2] {
    let last = curves.iter().map(|curve| curve.run.spectrum.rank());
    let last = last.fold(1, usize::max).max(10) as f64;
    match scale {
        AxisScale::Log => [-0.06, last.log10() + 0.06],
        AxisScale::Linear => [-0.02 * last, 1.02 * last],
    }
}

/// Ends of the axis of values, as places.
fn value_places(curves: &[Drawn<'_>], scale: AxisScale, axis: &Axis) -> [f64; 2] {
    let values = || {
        let all = curves.iter().flat_map(Drawn::values);
        all.map(|(_, value)| value).filter(|value| *value > 0.0)
    };
    let top = values().reduce(f64::max).unwrap_or(1.0);
    match scale {
        AxisScale::Log => {
            let ends = curves.iter().flat_map(|curve| {
                let low = |(i, value)| value - curve.error(i).unwrap_or_default();
                curve.values().map(low)
            });
            let bottom = ends
                .chain(values())
                .filter(|low| *low > 0.0)
                .reduce(f64::min)
                .unwrap_or(top * 10f64.powf(-EMPTY_DECADES));
            // Sixths of a decade, so that a new spectrum of the same size leaves the axis where it is; below them room
            // for the last label above those of the index.
            let step = |value: f64, round: fn(f64) -> f64| round(value.log10() * 6.0) / 6.0;
            let (low, high) = (step(bottom, f64::floor), step(top * 1.1, f64::ceil));
            [low - 0.05 * (high - low), high]
        }
        // Room above the first value for what is written at the marker.
        AxisScale::Linear => [-0.03 * top, 1.1 * top].map(|end| axis.place(end).unwrap_or(end)),
    }
}

fn draw(plot: &mut PlotUi<'_>, curve: &Drawn<'_>, [x, y]: [&Axis; 2]) {
    let place = |(index, value): (usize, f64)| Some([x.place(index as f64)?, y.place(value)?]);
    let points: Vec<[f64; 2]> = curve.values().filter_map(place).collect();
    for (index, value) in curve.values() {
        let Some(error) = curve.error(index) else {
            break;
        };
        // On a logarithmic axis a bound that reaches 0 ends at a tenth of its value.
        let low = y.place(value - error).or_else(|| y.place(0.1 * value));
        let ends = (x.place(index as f64), low, y.place(value + error));
        if let (Some(x), Some(low), Some(high)) = ends {
            let bar = Line::new("", PlotPoints::from(vec![[x, low], [x, high]]));
            plot.line(bar.color(curve.colour).width(1.5).allow_hover(false));
        }
    }
    if points.len() <= MARKED_MAX {
        let marks = Points::new(curve.name.clone(), PlotPoints::from(points.clone()))
            .shape(marker_shape(curve.seen.shown.slot))
            .color(curve.colour)
            .radius(3.5);
        plot.points(marks);
    }
    let line = Line::new(curve.name.clone(), PlotPoints::from(points));
    plot.line(line.color(curve.colour).width(BOLD).style(curve.style()));
}

/// The diamond on a curve at the marked index.
fn mark(
    plot: &mut PlotUi<'_>,
    curve: &Drawn<'_>,
    index: usize,
    [x, y]: [&Axis; 2],
    palette: Palette,
) {
    let value = curve.value(index).and_then(|value| y.place(value));
    let (Some(at), Some(value)) = (x.place(index as f64), value) else {
        return;
    };
    for (colour, radius) in [(palette.text, 6.5), (curve.colour, 4.5)] {
        let diamond = Points::new("selected", PlotPoints::from(vec![[at, value]]))
            .shape(MarkerShape::Diamond)
            .color(colour)
            .radius(radius);
        plot.points(diamond.allow_hover(false));
    }
}

/// The values at the marked index.
fn readout(
    ui: &Ui,
    scene: &Scene<'_>,
    curves: &[Drawn<'_>],
    index: usize,
    frame: Rect,
    palette: Palette,
) {
    let mut rows: Vec<Row<'_>> = vec![(format!("i = {index}"), palette.marker, None)];
    for curve in curves.iter().rev() {
        let Some(value) = curve.value(index) else {
            continue;
        };
        let error = curve.error(index).unwrap_or(f64::NAN);
        let (name, sample) = if scene.state.is_comparing() {
            (String::new(), Some(curve.seen))
        } else {
            (format!("{}  ", curve.name), None)
        };
        let colour = if curve.stale {
            palette.weak
        } else {
            palette.text
        };
        let text = format!("{name}σ = {}", format::with_error(value, error));
        rows.push((text, colour, sample));
    }
    // In the corner that falling curves leave free, wherever the marker stands.
    marker_box(ui, rows, frame, frame.right(), true, palette);
}

fn hover_text(hover: &HoverPosition<'_>, curves: &[Drawn<'_>], x: &Axis) -> Option<String> {
    let HoverPosition::NearDataPoint {
        plot_name,
        position,
        ..
    } = hover
    else {
        return None;
    };
    let curve = curves.iter().find(|curve| curve.name == *plot_name)?;
    let index = index_at(x, position)?;
    let value = curve.value(index)?;
    let error = curve.error(index).unwrap_or(f64::NAN);
    let mut text = format!(
        "{}\ni = {index} of {}\nσ = {}",
        curve.name,
        curve.run.feature_len.min(curve.run.input_len),
        format::with_error(value, error)
    );
    if curve.stale {
        text += "\nstale: answers an older question";
    }
    Some(text)
}

/// The index, counted from 1, that is nearest to a place of the plot.
fn index_at(x: &Axis, position: &PlotPoint) -> Option<usize> {
    nearest_index(x.value(position.x))
}

/// The index, counted from 1, that is nearest to a value of the index axis.
pub(in crate::app) fn nearest_index(value: f64) -> Option<usize> {
    value.is_finite().then(|| value.round().max(1.0) as usize)
}
