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
        let centre = |i: usize, n: usize| (i as f64 + 0.5) / n as f64;
        let mut covered = Vec::with_capacity(rows * columns);
        for row in 0..rows {
            for column in 0..columns {
                let (x, y) = (centre(column, columns), centre(row, rows));
                covered.push(self.discs.iter().any(|disc| {
                    (x - f64::from(disc.x)).hypot(y - f64::from(disc.y)) <= f64::from(disc.radius)
                }));
            }
        }
        covered
    }
}
