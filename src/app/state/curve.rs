//! What is known of one curve.

use std::sync::Arc;

use crate::device::SelfCheck;
use crate::encoders::EncoderSpec;
use crate::geometry::profile::Basis;
use crate::geometry::{Profile, ScaleEstimate};
use crate::images::Prepared;
use crate::report::{ProfileRun, SpectrumRun};
use crate::worker::LeastRun;

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
    /// The latest singular spectrum.
    pub spectrum: Option<Arc<SpectrumRun>>,
    /// The latest direction that moves the feature least.
    pub least: Option<Arc<LeastRun>>,
    /// Whether r is to be measured at the marked η, anew if it was before.
    pub(super) measure_due: bool,
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

    /// Whether `run` answers the question that is now asked.
    pub(super) fn is_current(&self) -> bool {
        self.run.is_some() && !self.stale
    }

    /// Whether the curve itself has the last word on r at `eta_l2`: finished, with that scale.
    pub(super) fn is_final_at(&self, eta_l2: f64) -> bool {
        self.profile().is_some_and(|profile| {
            profile.finished && profile.scales.iter().any(|scale| scale.eta_l2 == eta_l2)
        })
    }

    /// Takes a newer profile; r is due to be measured again where its denominator is a better one.
    pub(super) fn take_run(&mut self, run: Arc<ProfileRun>) {
        let is_better = !self.is_current()
            || (has_trace(&run.profile) && !self.profile().is_some_and(has_trace));
        self.run = Some(run);
        self.stale = false;
        self.measure_due |= is_better;
    }

    /// Takes a measurement, unless a better one of the same η is known: the first answer of two
    /// rests on few directions.
    pub(super) fn take_measured(&mut self, estimate: ScaleEstimate) {
        let is_poorer = self.measured.as_ref().is_some_and(|known| {
            known.eta_l2 == estimate.eta_l2 && quality(known) > quality(&estimate)
        });
        if !is_poorer {
            self.measured = Some(estimate);
        }
    }

    /// What is known of r at `eta_l2`.
    pub fn value_at(&self, eta_l2: f64) -> ValueAtEta {
        let has_trace = self.profile().is_some_and(has_trace);
        // What was measured before the trace was known gives way to the curve that has it.
        let measured = self
            .measured
            .iter()
            .filter(|estimate| estimate.basis == Basis::Trace || !has_trace)
            .filter(|_| !self.is_final_at(eta_l2));
        let on_ladder = self
            .profile()
            .into_iter()
            .flat_map(|profile| &profile.scales);
        let exact = measured
            .chain(on_ladder)
            .filter(|estimate| estimate.eta_l2 == eta_l2 && estimate.r.is_finite() && !self.stale)
            .max_by_key(|estimate| quality(estimate));
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

/// Orders estimates at the same η: the trace as denominator counts most, then the directions.
fn quality(estimate: &ScaleEstimate) -> (bool, usize) {
    (estimate.basis == Basis::Trace, estimate.directions)
}

/// Whether a profile rests on the trace, at least where scales have enough pairs for it.
fn has_trace(profile: &Profile) -> bool {
    profile
        .scales
        .iter()
        .any(|scale| scale.basis == Basis::Trace)
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
