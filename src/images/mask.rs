//! Masks painted on a picture.

use serde::{Deserialize, Serialize};

/// A disc, in fractions of the picture's width and height from its top left corner; the picture is
/// taken as square.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disc {
    /// Centre, from left (0) to right (1).
    pub x: f32,
    /// Centre, from top (0) to bottom (1).
    pub y: f32,
    /// Radius, as a fraction of the side.
    pub radius: f32,
}

impl Disc {
    /// Whether its numbers are finite and its radius is positive.
    pub fn is_valid(&self) -> bool {
        self.x.is_finite() && self.y.is_finite() && self.radius.is_finite() && self.radius > 0.0
    }
}

/// A part of a picture: the union of discs, as a brush leaves it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mask {
    /// In the order in which they were painted; the order means nothing.
    pub discs: Vec<Disc>,
}

impl Mask {
    /// Which of `rows · columns` pixels, row after row, belong to it: those whose centre lies in a
    /// disc.
    pub fn covered(&self, rows: usize, columns: usize) -> Vec<bool> {
        let mut covered = vec![false; rows * columns];
        for disc in &self.discs {
            let [x, y, radius] = [disc.x, disc.y, disc.radius].map(f64::from);
            for row in span(y, radius, rows) {
                for column in span(x, radius, columns) {
                    let (dx, dy) = (centre(column, columns) - x, centre(row, rows) - y);
                    covered[row * columns + column] |= dx * dx + dy * dy <= radius * radius;
                }
            }
        }
        covered
    }
}

/// Centre of pixel `i` of `n`, as a fraction of the side.
fn centre(i: usize, n: usize) -> f64 {
    (i as f64 + 0.5) / n as f64
}

/// The pixels of `n` that a disc can reach along one axis.
fn span(centre: f64, radius: f64, n: usize) -> std::ops::Range<usize> {
    let edge = |place: f64| (place * n as f64).clamp(0.0, n as f64);
    edge(centre - radius).floor() as usize..edge(centre + radius).ceil() as usize
}
