//! What one says of a profile in a line: plateau, onset, peak, crossing, shape word. The
//! rules are ours.
//!
//! Everything is read off the reliable scales alone. Between scales r is taken as linear in log η.

use serde::{Deserialize, Serialize};

use super::profile::ScaleEstimate;
use crate::digits::significant;

/// r above which the profile has left the linear regime.
pub const ONSET_LEVEL: f64 = 1.1;
/// Relative departure that ends the plateau, and distance from 1 that makes it suspect.
pub const PLATEAU_TOLERANCE: f64 = 0.05;
/// Least peak of a `bump` and least end value of a `rise`.
pub const PEAK_LEVEL: f64 = 1.2;
/// A `bump` ends at or below this fraction of its peak.
pub const FALL_FRACTION: f64 = 0.8;
/// A `decay` ends below this.
pub const DECAY_LEVEL: f64 = 0.9;
/// Fewest reliable scales from which a shape is read (ours).
pub const MIN_SCALES: usize = 5;

/// A number read off a profile, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// The number.
    Value(f64),
    /// Why it is undefined, a sentence fragment.
    Undefined(String),
}

impl Reading {
    fn undefined(reason: impl Into<String>) -> Self {
        Self::Undefined(reason.into())
    }

    /// The number, if there is one.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Value(value) => Some(*value),
            Self::Undefined(_) => None,
        }
    }

    /// Why there is no number, if there is none.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Value(_) => None,
            Self::Undefined(reason) => Some(reason),
        }
    }
}

/// The shape of a profile in a word, by [`Shape::RULE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// An interior peak and a fall.
    Bump,
    /// Largest at the last scale.
    Rise,
    /// Never above the plateau, small at the end.
    Decay,
    /// None of the others.
    Flat,
    /// The plateau is off 1, or too few scales are reliable.
    Unreliable,
}

impl Shape {
    /// The rule by which the word is chosen; the first that applies.
    pub const RULE: &str = "\
unreliable: fewer than 5 reliable scales, or a plateau off 1 by more than 5 %. \
bump: an interior peak with r* of at least 1.2, and r at the end of the ladder at most 0.8 r*. \
rise: the maximum is at the last scale and above 1.2. \
decay: never above 1.1 and below 0.9 at the end. \
flat: none of these.";

    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bump => "bump",
            Self::Rise => "rise",
            Self::Decay => "decay",
            Self::Flat => "flat",
            Self::Unreliable => "unreliable",
        }
    }
}

/// What is read off a profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Median of r over the smallest scales, up to the first whose r differs by more than 5 % from
    /// the median of those before it.
    pub plateau: Reading,
    /// Where r first exceeds 1.1, η in L2.
    pub onset_eta_l2: Reading,
    /// Place η* of the interior maximum, L2: the vertex of the parabola in log η through the
    /// largest r and its two neighbours. Defined where r exceeds 1.1.
    pub peak_eta_l2: Reading,
    /// Height r* of that parabola.
    pub peak_r: Reading,
    /// Decades of η between the two places next to the peak where r = 1 + (r* − 1)/2.
    pub half_width_decades: Reading,
    /// The first η after the peak where r falls below 1, L2.
    pub crossing_eta_l2: Reading,
    /// η of the last reliable scale, where the ladder ends for this profile, L2.
    pub end_eta_l2: Reading,
    /// r there.
    pub end_r: Reading,
    /// The word, by [`Shape::RULE`].
    pub shape: Shape,
    /// Why this word, with the figures that decided.
    pub shape_reason: String,
}

/// A point of the curve.
#[derive(Clone, Copy)]
struct Point {
    log_eta: f64,
    r: f64,
}

impl Summary {
    /// Reads the summary off a profile; scales that are unreliable or whose r is not finite are
    /// left out. `scales` in ascending order of η.
    pub fn of(scales: &[ScaleEstimate]) -> Self {
        let points: Vec<Point> = scales
            .iter()
            .filter(|scale| scale.reliable && scale.r.is_finite())
            .map(|scale| Point {
                log_eta: scale.eta_l2.log10(),
                r: scale.r,
            })
            .collect();
        let Some(&end) = points.last() else {
            return Self::empty("no scale is measured reliably");
        };
        let plateau = plateau(&points);
        let peak = peak(&points);
        let (shape, shape_reason) = shape(&points, plateau, &peak);
        let (peak_eta_l2, peak_r, half_width_decades, crossing_eta_l2) = match &peak {
            Ok((index, peak)) => (
                Reading::Value(10f64.powf(peak.log_eta)),
                Reading::Value(peak.r),
                half_width(&points, *index, *peak),
                crossing(&points, *index),
            ),
            Err(reason) => {
                let none = || Reading::undefined(reason.clone());
                (none(), none(), none(), none())
            }
        };
        Self {
            plateau: Reading::Value(plateau),
            onset_eta_l2: onset(&points),
            peak_eta_l2,
            peak_r,
            half_width_decades,
            crossing_eta_l2,
            end_eta_l2: Reading::Value(10f64.powf(end.log_eta)),
            end_r: Reading::Value(end.r),
            shape,
            shape_reason,
        }
    }

    /// The summary of nothing: every reading undefined for the same reason.
    pub fn empty(reason: &str) -> Self {
        let none = || Reading::undefined(reason);
        Self {
            plateau: none(),
            onset_eta_l2: none(),
            peak_eta_l2: none(),
            peak_r: none(),
            half_width_decades: none(),
            crossing_eta_l2: none(),
            end_eta_l2: none(),
            end_r: none(),
            shape: Shape::Unreliable,
            shape_reason: reason.to_owned(),
        }
    }
}

fn plateau(points: &[Point]) -> f64 {
    let mut level = points[0].r;
    let mut values = vec![level];
    for point in &points[1..] {
        if (point.r - level).abs() > PLATEAU_TOLERANCE * level.abs() {
            break;
        }
        values.push(point.r);
        level = median(&values);
    }
    level
}

fn onset(points: &[Point]) -> Reading {
    match points.iter().position(|point| point.r > ONSET_LEVEL) {
        None => Reading::undefined(format!("r never exceeds {ONSET_LEVEL}")),
        Some(0) => Reading::undefined(format!(
            "r exceeds {ONSET_LEVEL} at the smallest reliable scale already"
        )),
        Some(i) => Reading::Value(10f64.powf(where_r_is(ONSET_LEVEL, points[i - 1], points[i]))),
    }
}

/// Index of the largest r and the refined peak, or why there is none.
fn peak(points: &[Point]) -> Result<(usize, Point), String> {
    let index = index_of_maximum(points);
    if points[index].r <= ONSET_LEVEL {
        Err(format!("r never exceeds {ONSET_LEVEL}"))
    } else if index == 0 {
        Err("r is largest at the smallest reliable scale".to_owned())
    } else if index + 1 == points.len() {
        Err("r is largest at the last scale: the ladder ends before the curve turns".to_owned())
    } else {
        Ok((
            index,
            vertex(points[index - 1], points[index], points[index + 1]),
        ))
    }
}

/// Vertex of the parabola through three points of which the middle one is not lowest.
fn vertex(left: Point, middle: Point, right: Point) -> Point {
    let (a, b) = (
        left.log_eta - middle.log_eta,
        right.log_eta - middle.log_eta,
    );
    let slope_left = (left.r - middle.r) / a;
    let slope_right = (right.r - middle.r) / b;
    // r = middle.r + linear·t + curvature·t², t = log η − middle.
    let curvature = (slope_right - slope_left) / (b - a);
    let linear = slope_left - curvature * a;
    if curvature < 0.0 {
        let t = -linear / (2.0 * curvature);
        Point {
            log_eta: middle.log_eta + t,
            r: middle.r + linear * t / 2.0,
        }
    } else {
        // Three equal values: the middle one is as good as any.
        middle
    }
}

fn half_width(points: &[Point], index: usize, peak: Point) -> Reading {
    let level = 1.0 + (peak.r - 1.0) / 2.0;
    let below = |point: &Point| point.r < level;
    let Some(left) = points[..index].iter().rposition(below) else {
        return Reading::undefined("r stays above half height on the side of small η");
    };
    let Some(right) = points[index + 1..].iter().position(below) else {
        return Reading::undefined("r stays above half height to the end of the ladder");
    };
    let right = index + 1 + right;
    // On a coarse ladder the largest sample itself may lie below half of the refined peak.
    if below(&points[index]) {
        return Reading::undefined("the ladder is too coarse at the peak");
    }
    let from = where_r_is(level, points[left], points[left + 1]);
    let to = where_r_is(level, points[right - 1], points[right]);
    Reading::Value(to - from)
}

fn crossing(points: &[Point], index: usize) -> Reading {
    match points[index + 1..].iter().position(|point| point.r < 1.0) {
        None => Reading::undefined("r stays above 1 to the end of the ladder"),
        Some(i) => {
            let i = index + 1 + i;
            Reading::Value(10f64.powf(where_r_is(1.0, points[i - 1], points[i])))
        }
    }
}

fn shape(points: &[Point], plateau: f64, peak: &Result<(usize, Point), String>) -> (Shape, String) {
    let n = points.len();
    let end = points[n - 1];
    let end_eta = digits(10f64.powf(end.log_eta));
    let end_r = digits(end.r);
    let largest = index_of_maximum(points);
    if n < MIN_SCALES {
        let reason = format!("only {n} scales are reliable; a shape needs {MIN_SCALES}");
        return (Shape::Unreliable, reason);
    }
    if (plateau - 1.0).abs() > PLATEAU_TOLERANCE {
        let reason = format!(
            "the plateau is {}, more than 5 % off 1: the linear regime is not reached, or saturated \
             pixels break it",
            digits(plateau)
        );
        return (Shape::Unreliable, reason);
    }
    if let Ok((_, peak)) = peak
        && peak.r >= PEAK_LEVEL
        && end.r <= FALL_FRACTION * peak.r
    {
        let (eta, r) = (digits(10f64.powf(peak.log_eta)), digits(peak.r));
        let reason = format!(
            "r peaks at {r} at η = {eta} and is {end_r} where the ladder ends, η = {end_eta}"
        );
        return (Shape::Bump, reason);
    }
    if largest + 1 == n && end.r > PEAK_LEVEL {
        let reason = format!("r is largest, {end_r}, where the ladder ends, η = {end_eta}");
        return (Shape::Rise, reason);
    }
    if points[largest].r <= ONSET_LEVEL && end.r < DECAY_LEVEL {
        let reason = format!(
            "r never exceeds {ONSET_LEVEL} and is {end_r} where the ladder ends, η = {end_eta}"
        );
        return (Shape::Decay, reason);
    }
    let reason = format!(
        "r is at most {} and is {end_r} where the ladder ends, η = {end_eta}: no other rule applies",
        digits(points[largest].r)
    );
    (Shape::Flat, reason)
}

/// log η where the segment from `a` to `b` has the value `level`, which lies between theirs.
fn where_r_is(level: f64, a: Point, b: Point) -> f64 {
    a.log_eta + (b.log_eta - a.log_eta) * (level - a.r) / (b.r - a.r)
}

fn index_of_maximum(points: &[Point]) -> usize {
    let mut best = 0;
    for (i, point) in points.iter().enumerate() {
        if point.r > points[best].r {
            best = i;
        }
    }
    best
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[half]
    } else {
        (sorted[half - 1] + sorted[half]) / 2.0
    }
}

/// Three significant digits for a sentence.
fn digits(value: f64) -> String {
    significant(value, 3)
}
