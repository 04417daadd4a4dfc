//! Direction families: distributions of the unit vectors u along which Φ is perturbed.

use serde::{Deserialize, Serialize};

/// Distribution of the directions u (spec §1). Only [`DirectionFamily::Isotropic`] is the paper's;
/// the others are ours, always labelled, never mixed into the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DirectionFamily {
    /// Uniform on the unit sphere of R^{d_I}: normalised Gaussians.
    #[default]
    Isotropic,
    /// Random signs: every pixel value moves by the same amount.
    Rademacher,
    /// Gaussian noise smoothed by a Gaussian of `sigma_px` pixels, then normalised.
    LowPass {
        /// Standard deviation of the smoothing kernel in pixels of the encoder's input.
        sigma_px: f32,
    },
    /// The gradient of the encoder's largest logit at the photograph: one direction and its antipode.
    TopLogitGradient,
    /// Leading right-singular vectors of the Jacobian of the readout, the first `count` of them.
    TopSingular {
        /// How many.
        count: usize,
    },
}
