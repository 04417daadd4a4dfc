//! The encoders whose curves are on screen.

use super::Curve;
use crate::encoders::{EncoderSpec, Readout, WeightsKind};

/// Encoders that can be compared at once: as many as there are hues that stay apart on both grounds.
pub const SHOWN_MAX: usize = 4;

/// An encoder on screen, with its curves.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The encoder.
    pub spec: &'static EncoderSpec,
    /// Its place among hues and markers, which it keeps while others come and go.
    pub slot: usize,
    /// The trained encoder's curve.
    pub trained: Curve,
    /// The random twin's curve.
    pub twin: Curve,
    /// Speed seen so far.
    pub(super) seconds_per_forward: Option<f64>,
}

impl Shown {
    /// An encoder of which nothing is known yet.
    pub(super) fn new(spec: &'static EncoderSpec, slot: usize) -> Self {
        Self {
            spec,
            slot,
            trained: Curve::default(),
            twin: Curve::default(),
            seconds_per_forward: None,
        }
    }

    /// The curve of these weights.
    pub fn curve(&self, weights: WeightsKind) -> &Curve {
        match weights {
            WeightsKind::Trained => &self.trained,
            WeightsKind::Random => &self.twin,
        }
    }

    pub(super) fn curve_mut(&mut self, weights: WeightsKind) -> &mut Curve {
        match weights {
            WeightsKind::Trained => &mut self.trained,
            WeightsKind::Random => &mut self.twin,
        }
    }

    pub(super) fn curves_mut(&mut self) -> [&mut Curve; 2] {
        [&mut self.trained, &mut self.twin]
    }

    /// Number of input values d_I.
    pub fn input_len(&self) -> usize {
        3 * self.spec.side_px * self.spec.side_px
    }
}

/// A curve on screen with what it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The encoder.
    pub shown: &'a Shown,
    /// Trained or random.
    pub weights: WeightsKind,
    /// What is known of it.
    pub curve: &'a Curve,
}

/// The readout of `spec` that answers `readout` of `lead`: a stage is the one of the same name. `None`
/// where it has none.
pub(super) fn readout_like(
    readout: &Readout,
    lead: &EncoderSpec,
    spec: &EncoderSpec,
) -> Option<Readout> {
    match readout {
        Readout::Pooled => Some(Readout::Pooled),
        Readout::Logits => (spec.logits_len > 0).then_some(Readout::Logits),
        Readout::Stage(index) => {
            let name = &lead.stages.get(*index)?.name;
            let place = spec.stages.iter().position(|stage| stage.name == *name)?;
            Some(Readout::Stage(place))
        }
    }
}
