//! The directions in which the feature moves least, by shifting.
//!
//! The least eigenvector of JᵀJ is the leading one of σ₁²I − JᵀJ: a random vector is multiplied by
//! I − JᵀJ/σ₁² and scaled to unit norm, again and again. Every part of it shrinks by 1 − σ²/σ₁² a step, so
//! that what J moves most is gone first, and what it does not move at all stays.
//!
//! Where the input is longer than the feature (d_I > d_Z), J has a null space of d_I − d_Z dimensions or more; the
//! search ends near it, at a direction that depends on the seed. The gain ‖Jv‖ that is left says how near.

use std::sync::Arc;

use crate::Result;
use crate::geometry::directions::{gaussian, stream, unit};
use crate::geometry::field::{Field, require_finite};
use crate::geometry::profile::Cost;
use crate::geometry::trace::norm_sq;

/// Stream of the generator; those of directions and of the trace are others.
const BOTTOM_STREAM: u64 = 1 << 61;

/// Steps by default (ours): what has σ above σ₁/4 shrinks to an eighth and below.
pub const STEPS: usize = 32;

/// A direction that the feature hardly answers to.
#[derive(Clone, Debug, PartialEq)]
pub struct BottomDirection {
    /// Unit L2 norm, d_I values.
    pub direction: Arc<[f32]>,
    /// ‖Jv‖: an upper bound of the least singular value over R^{d_I}.
    pub gain: f64,
    /// ‖JᵀJv − ‖Jv‖² v‖ / σ₁²: 0 for a singular direction.
    pub residual: f64,
}

/// The search, in steps of one JVP and one VJP.
pub struct BottomSearch {
    largest: f64,
    steps_left: usize,
    direction: Arc<[f32]>,
    found: Option<BottomDirection>,
}

impl BottomSearch {
    /// Starts from a Gaussian vector, a function of the seed. `largest` is σ₁, or a little above; where it is too small the search does not
    /// converge.
    pub fn new(largest: f64, steps: usize, seed: u64, input_len: usize) -> Self {
        let start = gaussian(&mut stream(seed, BOTTOM_STREAM), input_len);
        Self {
            largest,
            steps_left: steps,
            direction: unit(&start),
            found: None,
        }
    }

    /// What is known; after the last step the answer.
    pub fn found(&self) -> Option<&BottomDirection> {
        self.found.as_ref()
    }

    /// One step; true once all are done.
    ///
    /// # Errors
    /// Those of the field, and [`crate::ErrorKind::Numeric`] for a product that is not finite.
    pub fn step(&mut self, field: &mut dyn Field, cost: &mut Cost) -> Result<bool> {
        let images = field.jvp(std::slice::from_ref(&self.direction))?;
        require_finite(&images, "a Jacobian–vector product")?;
        let back = field.vjp(&images)?;
        require_finite(&back, "a vector–Jacobian product")?;
        cost.jvps += 1;
        cost.vjps += 1;
        let gain_sq = norm_sq(&images);
        let scale = self.largest * self.largest;
        let pairs = || self.direction.iter().zip(&back);
        let residual_sq: f64 = pairs()
            .map(|(&v, back)| (back - gain_sq * f64::from(v)).powi(2))
            .sum();
        // A Jacobian that is zero moves nothing: any direction is one of its least.
        let is_zero = scale <= 0.0;
        self.found = Some(BottomDirection {
            direction: Arc::clone(&self.direction),
            gain: gain_sq.sqrt(),
            residual: if is_zero {
                0.0
            } else {
                residual_sq.sqrt() / scale
            },
        });
        if self.steps_left == 0 || is_zero {
            self.steps_left = 0;
            return Ok(true);
        }
        let moved: Vec<f64> = pairs()
            .map(|(&v, back)| f64::from(v) - back / scale)
            .collect();
        self.steps_left -= 1;
        if moved.iter().any(|&v| v != 0.0) {
            self.direction = unit(&moved);
        }
        Ok(false)
    }
}
