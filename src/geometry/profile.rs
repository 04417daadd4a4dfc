//! The response profile r_η (Szymkowiak, Pałubicki and Adamczewski 2026; spec §1).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::summary::Summary;

/// The estimate of r at one scale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScaleEstimate {
    /// Perturbation magnitude η, L2 in raw [0, 1] pixels.
    pub eta_l2: f64,
    /// The same as pixel RMS in grey levels of 255.
    pub eta_grey_rms: f64,
    /// r_η, dimensionless; NaN where undefined (all-zero Jacobian).
    pub r: f64,
    /// Standard error of `r`; NaN until two pairs were measured.
    pub r_se: f64,
    /// Mean ‖Φ(x+ηu) − Φ(x)‖² over the directions.
    pub displacement_sq: f64,
    /// Its linear prediction η² E‖Ju‖².
    pub prediction_sq: f64,
    /// Directions measured, antipodes counted.
    pub directions: usize,
    /// False where twice the rounding energy exceeds 5 % of `displacement_sq`.
    pub reliable: bool,
}

/// A response profile, possibly still sharpening.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// One estimate for each η, ascending.
    pub scales: Vec<ScaleEstimate>,
    /// r of single antithetic pairs (first few), each with one value a scale and its own ‖Ju‖² as
    /// denominator; NaN where not measured.
    pub singles: Vec<Vec<f64>>,
    /// Estimate of g = tr(JᵀJ)/d_I = E‖Ju‖² and its standard error.
    pub mean_jvp_sq: f64,
    /// Standard error of `mean_jvp_sq`.
    pub mean_jvp_sq_se: f64,
    /// ν²: energy by which Φ moves when only rounding changes.
    pub rounding_sq: f64,
    /// ‖Φ(x)‖.
    pub feature_norm: f64,
    /// Antithetic pairs measured so far at the scale that has most.
    pub pairs: usize,
    /// Forward passes, JVPs and VJPs spent so far.
    pub cost: Cost,
    /// Fraction of the planned work that is done, 0 to 1.
    pub fraction: f64,
    /// True once the stop rule is met or all directions were used.
    pub finished: bool,
    /// Plateau, onset, peak, crossing, shape.
    pub summary: Summary,
    /// First direction u of the set, for the preview (channel, row, column; unit L2 norm).
    #[serde(skip)]
    pub shown_direction: Arc<[f32]>,
}

/// Work spent on a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Forward passes of one image.
    pub forwards: usize,
    /// Jacobian–vector products.
    pub jvps: usize,
    /// Vector–Jacobian products.
    pub vjps: usize,
}
