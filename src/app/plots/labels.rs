//! What is written on and about the plots.

use eframe::egui::{
    Align2, Color32, FontId, Painter, Pos2, Rect, Response, Role, Sense, Shape, Stroke, StrokeKind,
    Ui, Vec2, WidgetInfo,
};
use egui_plot::{HoverPosition, MarkerShape};

use super::LABEL_HEIGHT;
use super::curve::{Drawn, curve_title, marker_shape};
use crate::app::axis::Axis;
use crate::app::format;
use crate::app::intent::Scene;
use crate::app::state::{Seen, ValueAtEta};
use crate::app::theme::{Palette, SMALL};
use crate::geometry::ScaleEstimate;
use crate::recipe::WeightsKind;

/// Length of a line in a legend.
const LINE_SAMPLE: f32 = 24.0;

/// What a hovered point says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    Response,
    Displacement,
}

pub(super) fn hover_text(
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
pub(super) fn label_rows(ui: &Ui, frame: Rect, names: &[&str], palette: Palette) {
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

pub(super) fn reference_label(ui: &Ui, frame: Rect, y: f32, palette: Palette) {
    if frame.y_range().contains(y) {
        let painter = ui.painter().with_clip_rect(frame);
        // Below the plateau, where curves that begin at r = 1 leave room; above it at the edge.
        let is_low = y + 26.0 > frame.bottom();
        let (anchor, offset) = if is_low {
            (Align2::LEFT_BOTTOM, -6.0)
        } else {
            (Align2::LEFT_TOP, 8.0)
        };
        let at = Pos2::new(frame.left() + 8.0, y + offset);
        let font = FontId::proportional(SMALL);
        painter.text(at, anchor, "linear prediction", font, palette.reference);
    }
}

pub(super) fn hidden_label(ui: &Ui, frame: Rect, hidden: f64, palette: Palette) {
    let text = format!(
        "↑ a random twin rises to {}; log r (Y) shows it",
        format::significant(hidden, 3)
    );
    let at = frame.right_top() + Vec2::new(-8.0, 6.0);
    let font = FontId::proportional(SMALL);
    let painter = ui.painter().with_clip_rect(frame);
    let galley = painter.layout_no_wrap(text, font, palette.text);
    let rect = Align2::RIGHT_TOP.anchor_size(at, galley.size());
    painter.rect_filled(rect.expand2(Vec2::new(4.0, 2.0)), 3.0, palette.well);
    painter.galley(rect.min, galley, palette.text);
}

/// The measured values beside the marker line.
pub(super) fn marker_readout(ui: &Ui, scene: &Scene<'_>, frame: Rect, x: f32, palette: Palette) {
    if !frame.x_range().contains(x) {
        return;
    }
    let is_comparing = scene.state.is_comparing();
    let mut rows: Vec<Row<'_>> = vec![(
        format!("η = {}", format::significant(scene.state.eta_l2, 3)),
        palette.marker,
        None,
    )];
    for seen in scene.state.curves() {
        // Of several encoders the lines themselves are the shorter names.
        let (name, sample) = if is_comparing {
            (String::new(), Some(seen))
        } else {
            (curve_title(scene.state, &seen) + "  ", None)
        };
        let (text, colour) = match seen.curve.value_at(scene.state.eta_l2) {
            ValueAtEta::Measured(e) => (
                format!("{name}r = {}", format::with_error(e.r, e.r_se)),
                palette.text,
            ),
            ValueAtEta::Interpolated(r) => (
                format!("{name}r ≈ {}", format::significant(r, 3)),
                palette.weak,
            ),
            ValueAtEta::Unknown => continue,
        };
        rows.push((text, colour, sample));
    }
    marker_box(ui, rows, frame, x, is_comparing, palette);
}

/// A row beside a marker: text, its colour, and the curve whose line stands before it.
pub(super) type Row<'a> = (String, Color32, Option<Seen<'a>>);

/// A small card beside the marker at `x`: left of it where that is preferred and there is room, else right.
pub(super) fn marker_box(
    ui: &Ui,
    rows: Vec<Row<'_>>,
    frame: Rect,
    x: f32,
    prefers_left: bool,
    palette: Palette,
) {
    let painter = ui.painter().with_clip_rect(frame);
    let font = FontId::proportional(SMALL);
    let has_samples = rows.iter().any(|(.., sample)| sample.is_some());
    let galleys: Vec<_> = rows
        .into_iter()
        .map(|(text, colour, sample)| {
            let galley = painter.layout_no_wrap(text, font.clone(), colour);
            (galley, colour, sample)
        })
        .collect();
    let indent = if has_samples { LINE_SAMPLE + 6.0 } else { 0.0 };
    let width = galleys
        .iter()
        .map(|(galley, ..)| galley.size().x)
        .fold(0.0, f32::max);
    let height: f32 = galleys.iter().map(|(galley, ..)| galley.size().y).sum();
    let size = Vec2::new(indent + width + 16.0, height + 8.0);
    // Right of the line where there is room; of several encoders left, where their curves still agree.
    let (right, left) = (x + 8.0, x - 8.0 - size.x);
    let is_right = if prefers_left {
        left < frame.left()
    } else {
        right + size.x < frame.right()
    };
    let left = if is_right { right } else { left };
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
        StrokeKind::Inside,
    );
    let mut top = rect.top() + 4.0;
    for (galley, colour, sample) in galleys {
        let step = galley.size().y;
        let left = rect.left() + 8.0;
        let mut at = Pos2::new(left, top);
        if let Some(seen) = sample {
            let place = Rect::from_min_size(at, Vec2::new(LINE_SAMPLE, step));
            let hue = palette.encoder(seen.shown.slot);
            let dashed = seen.weights == WeightsKind::Random;
            line_sample(&painter, place, hue, dashed, seen.shown.slot);
            at.x += indent;
        }
        painter.galley(at, galley, colour);
        top += step;
    }
}

/// What a screen reader says of a plot.
pub(super) fn name_plot(
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

/// A sample of a curve's line with its sign, in a rectangle.
pub fn line_sample(painter: &Painter, rect: Rect, colour: Color32, dashed: bool, slot: usize) {
    let ends = [rect.left_center(), rect.right_center()];
    let stroke = Stroke::new(2.0, colour);
    if dashed {
        painter.extend(Shape::dashed_line(&ends, stroke, 5.0, 3.0));
    } else {
        painter.line_segment(ends, stroke);
    }
    let (at, side) = (rect.center(), 4.0);
    match marker_shape(slot) {
        MarkerShape::Square => {
            let square = Rect::from_center_size(at, Vec2::splat(2.0 * side - 1.0));
            painter.rect_filled(square, 0.0, colour);
        }
        shape @ (MarkerShape::Up | MarkerShape::Down) => {
            let up = if shape == MarkerShape::Up { -1.0 } else { 1.0 };
            let corners = [(0.0, 1.0), (-1.0, -0.8), (1.0, -0.8)]
                .map(|(x, y): (f32, f32)| at + Vec2::new(x, y * up) * (side + 0.5));
            painter.add(Shape::convex_polygon(
                corners.to_vec(),
                colour,
                Stroke::NONE,
            ));
        }
        _ => {
            painter.circle_filled(at, side, colour);
        }
    }
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
