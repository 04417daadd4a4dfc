//! The response profile r_η (Szymkowiak, Pałubicki and Adamczewski 2026, arXiv 2609.39115):
//!
//! r_η(x) = E_u ‖Φ(x+ηu) − Φ(x)‖² / (η² E_u ‖Ju‖²)
//!
//! Squared norms, ratio of means; every direction is measured together with its antipode, so that
//! the odd Taylor term cancels and r = 1 + O(η²).

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use super::summary::Summary;

/// How many pairs [`Profile::singles`] shows.
pub const SINGLES: usize = 16;
/// Probes from which ν² is averaged, in each of the two ways of [`Profile::rounding_sq`].
pub const ROUNDING_PROBES: usize = 4;
/// A scale is unreliable where 2ν² exceeds this fraction of the displacement (stated in the paper).
pub const FLOOR_FRACTION: f64 = 0.05;
/// Most pairs that [`super::Profiler::measure`] spends on a random family.
pub const MEASURE_PAIRS: usize = 8;
/// Most pairs that it spends on a fixed set, whose members differ in kind, so that a few of them are no
/// sample of the others: as many as the window lets one ask for, some batches.
pub const MEASURE_SET_PAIRS: usize = 32;

/// The estimate of r at one scale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScaleEstimate {
    /// Perturbation magnitude η, L2 in raw [0, 1] pixels.
    pub eta_l2: f64,
    /// The same as pixel RMS in grey levels of 255.
    pub eta_grey_rms: f64,
    /// r_η, dimensionless: `displacement_sq / prediction_sq`. NaN where undefined (see
    /// [`Profile::undefined`]) or not measured yet.
    #[serde(deserialize_with = "nan_from_null")]
    pub r: f64,
    /// Standard error of `r`. NaN until two pairs were measured, and for families that are a fixed
    /// set of directions and no sample.
    #[serde(deserialize_with = "nan_from_null")]
    pub r_se: f64,
    /// Estimate of E_u ‖Φ(x+ηu) − Φ(x)‖²; under [`Basis::Trace`] with the control variate.
    #[serde(deserialize_with = "nan_from_null")]
    pub displacement_sq: f64,
    /// Its linear prediction η² E‖Ju‖².
    #[serde(deserialize_with = "nan_from_null")]
    pub prediction_sq: f64,
    /// Directions measured, antipodes counted.
    pub directions: usize,
    /// False where twice the rounding energy exceeds 5 % of the mean displacement, or where nothing
    /// moved. True as long as the rounding energy is not known.
    pub reliable: bool,
    /// How the denominator was obtained.
    pub basis: Basis,
}

/// A response profile, possibly still sharpening.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// One estimate for each η, ascending.
    pub scales: Vec<ScaleEstimate>,
    /// r of single antithetic pairs (first few), each with one value a scale and its own ‖Ju‖² as
    /// denominator; NaN where not measured.
    #[serde(deserialize_with = "nans_from_nulls")]
    pub singles: Vec<Vec<f64>>,
    /// Estimate of E‖Ju‖²: tr(JᵀJ)/d_I once the trace is known, the mean over JVPs before, and for
    /// estimators and families that use no trace.
    #[serde(deserialize_with = "nan_from_null")]
    pub mean_jvp_sq: f64,
    /// Standard error of `mean_jvp_sq`; 0 where it is exact.
    #[serde(deserialize_with = "nan_from_null")]
    pub mean_jvp_sq_se: f64,
    /// ν²: energy by which Φ moves when only rounding changes; NaN while not measured.
    ///
    /// The larger of two means over [`ROUNDING_PROBES`]: ‖Φ(x′) − Φ(x)‖² for x′ that differ from x
    /// by ±1 unit in the last place, and ‖Φ(x+εu) − Φ(x) − εJu‖² for steps εu of some tens
    /// of such units. The second is needed because one unit leaves many roundings as they were: on
    /// small networks the first alone was up to nine times too small.
    #[serde(deserialize_with = "nan_from_null")]
    pub rounding_sq: f64,
    /// ‖Φ(x)‖; NaN while not measured.
    #[serde(deserialize_with = "nan_from_null")]
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
    /// Why r is undefined everywhere, a sentence fragment; `None` where it is defined.
    pub undefined: Option<String>,
    /// First direction u of the set, for the preview (channel, row, column; unit L2 norm);
    /// empty while it is not known.
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

/// How the denominator of r was obtained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Mean ‖Ju‖² over the same directions as the displacements. A profile begins with it, and
    /// stays with it for families whose E‖Ju‖² is not known from the trace.
    #[default]
    SameDirections,
    /// tr(JᵀJ)/d_I, with ‖Ju‖² of the same directions as control variate.
    Trace,
    /// Mean ‖Ju‖² over the first directions of the set: [`crate::recipe::Estimator::Paper`].
    FirstDirections,
}

impl Basis {
    /// Name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::SameDirections => "JVPs of the same directions",
            Self::Trace => "trace, JVPs as control variate",
            Self::FirstDirections => "JVPs of the first directions",
        }
    }
}

impl Cost {
    /// Passes through the encoder of any kind; their prices differ by a small factor only.
    pub(super) fn passes(self) -> usize {
        self.forwards + self.jvps + self.vjps
    }
}

/// JSON has no NaN; it is written as null.
fn nan_from_null<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

fn nans_from_nulls<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Vec<Vec<f64>>, D::Error> {
    let rows: Vec<Vec<Option<f64>>> = Vec::deserialize(deserializer)?;
    let value = |value: Option<f64>| value.unwrap_or(f64::NAN);
    Ok(rows
        .into_iter()
        .map(|row| row.into_iter().map(value).collect())
        .collect())
}
