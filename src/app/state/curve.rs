//! What is known of one curve.

use std::sync::Arc;

use crate::device::SelfCheck;
use crate::encoders::EncoderSpec;
use crate::geometry::{Profile, ScaleEstimate};
use crate::images::Prepared;
use crate::report::ProfileRun;

/// What is known of one curve: the trained encoder's or its twin's.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// The encoder as it was loaded.
    pub loaded: Option<Loaded>,
    /// The latest profile.
    pub run: Option<Arc<ProfileRun>>,
    /// Whether `run` answers an older question than the one now asked.
    pub stale: bool,
    /// r at one exact η.
    pub measured: Option<ScaleEstimate>,
}

/// An encoder that the worker has loaded, with the photograph as it sees it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The encoder.
    pub spec: Arc<EncoderSpec>,
    /// SHA-256 of the weights file, or the seed of the random ones.
    pub weights_id: String,
    /// The photograph as the encoder sees it.
    pub prepared: Arc<Prepared>,
    /// Five classes of largest probability; empty for random weights.
    pub top5: Vec<(String, f32)>,
    /// Comparison of the device with the CPU.
    pub self_check: Option<SelfCheck>,
    /// Whether it was loaded for another photograph or another encoder than the wanted one.
    pub stale: bool,
}

impl Curve {
    /// The latest profile.
    pub fn profile(&self) -> Option<&Profile> {
        self.run.as_ref().map(|run| &*run.profile)
    }

    /// What is known of r at `eta_l2`.
    pub fn value_at(&self, eta_l2: f64) -> ValueAtEta {
        let on_ladder = self
            .profile()
            .into_iter()
            .flat_map(|profile| &profile.scales);
        let exact = on_ladder
            .chain(&self.measured)
            .filter(|estimate| estimate.eta_l2 == eta_l2 && estimate.r.is_finite() && !self.stale)
            .max_by_key(|estimate| estimate.directions);
        if let Some(estimate) = exact {
            return ValueAtEta::Measured(estimate.clone());
        }
        self.profile()
            .and_then(|profile| interpolate(profile, eta_l2))
            .map_or(ValueAtEta::Unknown, ValueAtEta::Interpolated)
    }
}

/// What is known of r at the marked η.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueAtEta {
    /// Measured at exactly this η.
    Measured(ScaleEstimate),
    /// Read off the curve between two scales, until the measurement arrives.
    Interpolated(f64),
    /// Neither.
    Unknown,
}

/// r between two scales of a profile, linear in log η.
fn interpolate(profile: &Profile, eta_l2: f64) -> Option<f64> {
    profile.scales.windows(2).find_map(|pair| {
        let [low, high] = pair else { return None };
        let within = (low.eta_l2..=high.eta_l2).contains(&eta_l2);
        let weight = (eta_l2 / low.eta_l2).ln() / (high.eta_l2 / low.eta_l2).ln();
        let r = low.r + weight * (high.r - low.r);
        (within && r.is_finite()).then_some(r)
    })
}
