//! Singular values and scores against the rank, with the cut drawn in.

use eframe::egui::{Align2, FontId, PointerButton, RichText, Sense, Ui, Vec2, Vec2b};
use egui_plot::{
    AxisHints, Corner, GridInput, GridMark, HLine, Legend, Line, LineStyle, Plot, PlotBounds,
    PlotPoint, PlotPoints, PlotResponse, Points, Text, VLine,
};

use crate::app::axis::Axis;
use crate::app::format;
use crate::app::intent::{Intent, Scene};
use crate::app::settings::AxisScale;
use crate::app::theme::{Palette, SMALL};
use crate::app::view::EditMetric;
use crate::worker::edit::{EditRun, FeatureScores, PictureScores, Sweep};

/// Width kept for the labels at the left, so that both plots end alike.
const LABEL_WIDTH: f32 = 40.0;
/// Smallest singular value that is drawn, relative to the largest: rounding lies below.
const LEAST: f64 = 1e-9;
/// Opacity of what answers an older question.
const STALE: f32 = 0.35;

/// The place of a rank: logarithmic, with room for 0.
pub(super) fn place(rank: f64) -> f64 {
    (1.0 + rank).log10()
}

/// The rank at a place.
pub(super) fn rank_at(place: f64) -> f64 {
    10f64.powf(place) - 1.0
}

/// Ranks that carry a label up to the largest.
pub(super) fn labelled(full: usize) -> Vec<usize> {
    let mut ranks = vec![0];
    let mut decade = 1;
    while decade <= full {
        ranks.extend(
            [1, 2, 5]
                .map(|digit| digit * decade)
                .iter()
                .filter(|&&rank| rank <= full),
        );
        decade *= 10;
    }
    // The largest is always named; a neighbour too close to it is not.
    let is_far = |rank: usize| place(full as f64) - place(rank as f64) > 0.12;
    ranks.retain(|&rank| is_far(rank));
    ranks.push(full);
    ranks
}

/// The singular values of what is cut; those that are kept are filled.
pub(super) fn spectrum_plot(ui: &mut Ui, scene: &Scene<'_>, size: Vec2, intents: &mut Vec<Intent>) {
    let edit = &scene.state.edit;
    let (Some(sweep), Some(rank)) = (
        edit.fitted.as_ref().and_then(|run| run.sweep(edit.cut)),
        edit.rank_within(),
    ) else {
        return;
    };
    let palette = Palette::for_ui(ui);
    let y = Axis::new(AxisScale::Log);
    let largest = sweep
        .values
        .first()
        .copied()
        .unwrap_or(1.0)
        .max(f64::MIN_POSITIVE);
    let drawn = |value: f64| value.max(LEAST * largest);
    let points = |kept: bool| -> Vec<[f64; 2]> {
        let values = sweep.values.iter().enumerate();
        values
            .filter(|(i, _)| (*i < rank) == kept)
            .filter_map(|(i, &value)| Some([place((i + 1) as f64), y.place(drawn(value))?]))
            .collect()
    };
    let least = sweep.values.last().copied().map_or(largest, drawn);
    let bounds = [least.log10() - 0.15, largest.log10() + 0.15];
    let colour = faded(palette.encoder(0), scene);
    let plot =
        base_plot("map spectrum", &y, sweep.values.len(), size, palette).label_formatter(|hover| {
            let near = hover_rank(hover);
            let value = near.checked_sub(1).and_then(|i| sweep.values.get(i));
            value.map(|value| format!("σ_{near} = {}", format::significant(*value, 4)))
        });
    let response = plot.show(ui, |plot| {
        plot.set_plot_bounds(bounds_of(sweep.values.len(), bounds));
        for kept in [true, false] {
            plot.points(
                Points::new(
                    if kept { "kept" } else { "cut" },
                    PlotPoints::from(points(kept)),
                )
                .color(if kept { colour } else { palette.weak })
                .filled(kept)
                .radius(if kept { 3.0 } else { 2.5 }),
            );
        }
        plot.vline(
            VLine::new("", place(rank as f64))
                .color(palette.marker)
                .width(1.5)
                .allow_hover(false),
        );
    });
    describe(
        &response,
        &format!("Singular values; kept {rank} of {}", sweep.values.len()),
    );
    drag(&response, sweep.values.len(), intents);
}

/// A score against the rank, with the lines that it is seen against.
pub(super) fn scores_plot(
    ui: &mut Ui,
    scene: &Scene<'_>,
    metric: EditMetric,
    size: Vec2,
    intents: &mut Vec<Intent>,
) {
    let edit = &scene.state.edit;
    let (Some(run), Some(rank)) = (edit.fitted.as_ref(), edit.rank_within()) else {
        return;
    };
    let Some(sweep) = run.sweep(edit.cut) else {
        return;
    };
    let palette = Palette::for_ui(ui);
    let curves = curves(scene, sweep, metric);
    let lines = lines(run, metric);
    let values = (curves
        .iter()
        .flat_map(|(_, points)| points)
        .map(|point| point[1]))
    .chain(lines.iter().map(|(_, value)| *value))
    .filter(|value| value.is_finite());
    let [low, high] = values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], value| {
        [low.min(value), high.max(value)]
    });
    let bounds = if low < high {
        [low - 0.08 * (high - low), high + 0.08 * (high - low)]
    } else {
        [0.0, 1.0]
    };
    let y = Axis::new(AxisScale::Linear);
    let hovered = curves.clone();
    let plot = base_plot("edit scores", &y, sweep.values.len(), size, palette)
        .legend(
            Legend::default()
                .text_style(eframe::egui::TextStyle::Small)
                .background_alpha(0.8)
                .position(Corner::RightBottom),
        )
        .label_formatter(move |hover| {
            let near = hover_rank(hover);
            let parts = hovered.iter().filter_map(|(name, points)| {
                let point = points
                    .iter()
                    .find(|point| rank_at(point[0]).round() as usize == near)?;
                Some(format!("{name}: {}", format::significant(point[1], 4)))
            });
            let parts: Vec<String> = parts.collect();
            (!parts.is_empty()).then(|| format!("rank {near}\n{}", parts.join("\n")))
        });
    let response = plot.show(ui, |plot| {
        plot.set_plot_bounds(bounds_of(sweep.values.len(), bounds));
        for (i, (name, value)) in lines.iter().enumerate() {
            let style = [
                LineStyle::dotted_loose(),
                LineStyle::dashed_loose(),
                LineStyle::dashed_dense(),
            ][i % 3];
            plot.hline(
                HLine::new("", *value)
                    .color(palette.reference)
                    .width(1.25)
                    .style(style),
            );
            // Named at its left end, clear of the curves, which rise to the right.
            let at = PlotPoint::new(place(0.0), *value);
            let name = RichText::new(*name).small().color(palette.weak);
            plot.text(Text::new("", at, name).anchor(Align2::LEFT_BOTTOM));
        }
        for (i, (name, points)) in curves.iter().enumerate() {
            let colour = faded(
                if i == 0 {
                    palette.encoder(0)
                } else {
                    palette.prediction
                },
                scene,
            );
            let style = if i == 0 {
                LineStyle::Solid
            } else {
                LineStyle::dashed_dense()
            };
            plot.line(
                Line::new(*name, PlotPoints::from(points.clone()))
                    .color(colour)
                    .width(2.0)
                    .style(style),
            );
            if points.len() < 48 {
                plot.points(
                    Points::new(*name, PlotPoints::from(points.clone()))
                        .color(colour)
                        .radius(2.5),
                );
            }
        }
        plot.vline(
            VLine::new("", place(rank as f64))
                .color(palette.marker)
                .width(1.5)
                .allow_hover(false),
        );
    });
    describe(
        &response,
        &format!("Scores against the rank, at rank {rank}"),
    );
    drag(&response, sweep.values.len(), intents);
}

type Curve = (&'static str, Vec<[f64; 2]>);

fn curves(scene: &Scene<'_>, sweep: &Sweep, metric: EditMetric) -> Vec<Curve> {
    let of_features = |value: fn(&FeatureScores) -> Option<f64>| -> Vec<[f64; 2]> {
        let scores = sweep.scores.iter().map(|(rank, score)| (*rank, score));
        scores
            .filter_map(|(rank, score)| Some([place(rank as f64), value(score)?]))
            .collect()
    };
    let of_pictures = |value: fn(&PictureScores) -> Option<f64>| -> Vec<[f64; 2]> {
        let seen = scene.state.edit.seen_scores.iter();
        seen.filter(|(cut, ..)| *cut == sweep.cut)
            .filter_map(|(_, rank, scores)| Some([place(*rank as f64), value(scores)?]))
            .collect()
    };
    let curves = match metric {
        EditMetric::Mdncs => vec![
            ("all positions", of_features(|score| score.mdncs)),
            (
                "touched by the edit",
                of_features(|score| score.mdncs_masked),
            ),
        ],
        EditMetric::Ssim => vec![("decoded", of_pictures(|score| score.ssim_uniform))],
        EditMetric::Psnr => vec![("decoded", of_pictures(|score| score.psnr_db))],
        EditMetric::Mse => vec![("decoded", of_pictures(|score| Some(score.mse)))],
    };
    curves
        .into_iter()
        .filter(|(_, points)| !points.is_empty())
        .collect()
}

/// What a curve is seen against.
fn lines(run: &EditRun, metric: EditMetric) -> Vec<(&'static str, f64)> {
    let of_pictures = |value: fn(&PictureScores) -> Option<f64>| {
        let seen = run.seen.as_ref();
        [
            (
                "unedited",
                seen.and_then(|seen| value(&seen.original.scores)),
            ),
            (
                "target itself",
                seen.and_then(|seen| value(&seen.target.scores)),
            ),
        ]
    };
    let lines = match metric {
        EditMetric::Mdncs => [
            ("identity", run.identity.mdncs),
            ("full map", run.full.mdncs),
        ],
        EditMetric::Ssim => of_pictures(|score| score.ssim_uniform),
        EditMetric::Psnr => of_pictures(|score| score.psnr_db),
        EditMetric::Mse => of_pictures(|score| Some(score.mse)),
    };
    lines
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

fn faded(colour: eframe::egui::Color32, scene: &Scene<'_>) -> eframe::egui::Color32 {
    if scene.state.is_edit_stale() {
        colour.gamma_multiply(STALE)
    } else {
        colour
    }
}

fn hover_rank(hover: &egui_plot::HoverPosition<'_>) -> usize {
    let at = match hover {
        egui_plot::HoverPosition::NearDataPoint { position, .. } => *position,
        egui_plot::HoverPosition::Elsewhere { position } => *position,
    };
    rank_of(at)
}

fn rank_of(at: PlotPoint) -> usize {
    rank_at(at.x).round().max(0.0) as usize
}

/// All ranks across, and what was asked for upwards.
fn bounds_of(full: usize, [bottom, top]: [f64; 2]) -> PlotBounds {
    let [left, right] = [place(0.0) - 0.04, place(full as f64) + 0.04];
    PlotBounds::from_min_max([left, bottom], [right, top])
}

fn base_plot<'a>(
    name: &'static str,
    y: &'a Axis,
    full: usize,
    size: Vec2,
    palette: Palette,
) -> Plot<'a> {
    let marks = labelled(full);
    let grid = marks.clone();
    let hints = |axis: AxisHints<'a>| {
        axis.tick_label_font(FontId::proportional(SMALL))
            .tick_label_color(palette.weak)
    };
    let x_axis = hints(AxisHints::new_x())
        .label_spacing(8.0..=12.0)
        .formatter(move |mark, _| {
            let rank = marks.iter().find(|&&rank| place(rank as f64) == mark.value);
            rank.map(ToString::to_string).unwrap_or_default()
        });
    let y_axis = hints(AxisHints::new_y())
        .min_thickness(LABEL_WIDTH)
        .label_spacing(12.0..=16.0)
        .formatter(|mark, range| y.label(mark, range));
    Plot::new(name)
        .width(size.x)
        .height(size.y)
        .sense(Sense::click_and_drag())
        .allow_drag(Vec2b::FALSE)
        .allow_zoom(Vec2b::FALSE)
        .allow_boxed_zoom(false)
        .allow_scroll(false)
        .allow_double_click_reset(false)
        .allow_axis_zoom_drag(false)
        .x_grid_spacer(move |_: GridInput| {
            let mark = |&rank: &usize| GridMark {
                value: place(rank as f64),
                step_size: 0.3,
            };
            grid.iter().map(mark).collect()
        })
        .y_grid_spacer(|input| y.labelled_grid(input))
        .grid_spacing(6.0..=40.0)
        .grid_color(palette.grid)
        .custom_x_axes(vec![x_axis])
        .custom_y_axes(vec![y_axis])
        .show_crosshair(false)
}

/// Moves the rank to where the pointer is held.
fn drag(response: &PlotResponse<()>, full: usize, intents: &mut Vec<Intent>) {
    let is_held =
        response.response.dragged_by(PointerButton::Primary) || response.response.clicked();
    if let Some(pointer) = response.response.interact_pointer_pos().filter(|_| is_held) {
        let at = response.transform.value_from_position(pointer);
        intents.push(Intent::Rank(rank_of(at).min(full)));
    }
}

fn describe(response: &PlotResponse<()>, name: &str) {
    response
        .response
        .widget_info(|| eframe::egui::WidgetInfo::labeled(eframe::egui::Role::Image, true, name));
}
