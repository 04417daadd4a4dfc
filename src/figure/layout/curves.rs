//! Curves and bands as points on the page, and where they leave free room.

use super::{Placed, Rect};
use crate::figure::spec::{Panel, Scale, Series};

/// Step at which curves are sampled to find free room.
const SAMPLING: f64 = 2.0;
/// Coordinates are kept within this, so that drawing programs can hold them.
const FAR: f64 = 1e5;

/// A point of a series on the page; `None` where it has no place.
pub(crate) fn point(placed: &Placed, x: f64, y: f64) -> Option<(f64, f64)> {
    let (xs, ys) = (&placed.x, &placed.y);
    if !(xs.scale.holds(x) && ys.scale.holds(y)) {
        return None;
    }
    let plot = &placed.plot;
    let across = plot.left + xs.scale.fraction(x, xs.range) * plot.width();
    let down = plot.bottom - ys.scale.fraction(y, ys.range) * plot.height();
    Some((across.clamp(-FAR, FAR), down.clamp(-FAR, FAR)))
}

/// Unbroken stretches of a curve.
pub(crate) fn curve(placed: &Placed, series: &Series) -> Vec<Vec<(f64, f64)>> {
    let points = series
        .x
        .iter()
        .zip(&series.y)
        .map(|(&x, &y)| point(placed, x, y));
    stretches(points)
}

/// Closed outlines of a band. An edge that has no place because it is not positive on a logarithmic
/// axis lies at the axis's lower end; where the curve or an edge is NaN the band is broken.
pub(crate) fn band(placed: &Placed, series: &Series) -> Vec<Vec<(f64, f64)>> {
    let Some(band) = &series.band else {
        return Vec::new();
    };
    let lowest = placed.y.range[0];
    let edge = |x: f64, y: f64| {
        let below = placed.y.scale == Scale::Log10 && y <= lowest;
        point(placed, x, if below { lowest } else { y })
    };
    let edges = series
        .x
        .iter()
        .zip(&series.y)
        .zip(band.low.iter().zip(&band.high))
        .map(|((&x, &y), (&low, &high))| {
            point(placed, x, y)?;
            Some((edge(x, low)?, edge(x, high)?))
        });
    stretches(edges)
        .into_iter()
        .map(|stretch| {
            let upper = stretch.iter().map(|&(_, high)| high);
            let lower = stretch.iter().rev().map(|&(low, _)| low);
            upper.chain(lower).collect()
        })
        .collect()
}

fn stretches<T>(items: impl Iterator<Item = Option<T>>) -> Vec<Vec<T>> {
    let mut all = Vec::new();
    let mut open = Vec::new();
    for item in items {
        match item {
            Some(item) => open.push(item),
            None if open.is_empty() => {}
            None => all.push(std::mem::take(&mut open)),
        }
    }
    if !open.is_empty() {
        all.push(open);
    }
    all
}

/// Points that stand for what is drawn, close enough to each other that nothing slips through.
pub(crate) fn samples(panel: &Panel, placed: &Placed) -> Vec<(f64, f64)> {
    let visible = placed.plot.grown(SAMPLING);
    let mut points = Vec::new();
    for series in &panel.series {
        for stretch in curve(placed, series) {
            points.extend(stretch.first());
            for pair in stretch.windows(2) {
                points.extend(between(pair[0], pair[1], &visible));
            }
        }
        for outline in band(placed, series) {
            // The outline goes along the upper edge and back along the lower one.
            let (upper, lower) = outline.split_at(outline.len() / 2);
            let rungs: Vec<_> = upper
                .iter()
                .copied()
                .zip(lower.iter().rev().copied())
                .collect();
            for pair in rungs.windows(2) {
                let ((high, low), (next_high, next_low)) = (pair[0], pair[1]);
                let steps = ((next_high.0 - high.0).abs() / SAMPLING).ceil().max(1.0);
                for step in 0..=steps as usize {
                    let share = step as f64 / steps;
                    let (top, bottom) = (mix(high, next_high, share), mix(low, next_low, share));
                    points.extend(between(top, bottom, &visible));
                }
            }
        }
    }
    points.retain(|&point| visible.contains(point));
    points
}

/// The point at this share of the way between two.
fn mix(from: (f64, f64), to: (f64, f64), share: f64) -> (f64, f64) {
    (
        from.0 + share * (to.0 - from.0),
        from.1 + share * (to.1 - from.1),
    )
}

/// Samples of the part of a line that lies within `bounds`, its end included.
pub(crate) fn between(from: (f64, f64), to: (f64, f64), bounds: &Rect) -> Vec<(f64, f64)> {
    // Share of the line, 0 to 1, that lies between two parallels.
    let share = |from: f64, to: f64, low: f64, high: f64| {
        if from == to {
            return if from >= low && from <= high {
                (0.0, 1.0)
            } else {
                (1.0, 0.0)
            };
        }
        let (a, b) = ((low - from) / (to - from), (high - from) / (to - from));
        (a.min(b).max(0.0), a.max(b).min(1.0))
    };
    let across = share(from.0, to.0, bounds.left, bounds.right);
    let down = share(from.1, to.1, bounds.top, bounds.bottom);
    let (start, end) = (across.0.max(down.0), across.1.min(down.1));
    if start > end {
        return Vec::new();
    }
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let steps = (dx.hypot(dy) * (end - start) / SAMPLING).ceil().max(1.0);
    (0..=steps as usize)
        .map(|step| start + (end - start) * step as f64 / steps)
        .map(|share| mix(from, to, share))
        .collect()
}

pub(crate) fn hits(area: &Rect, points: &[(f64, f64)]) -> usize {
    points.iter().filter(|&&point| area.contains(point)).count()
}
