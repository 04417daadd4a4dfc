//! A differentiable map seen at one point.

use std::sync::Arc;

use crate::{Error, ErrorKind, Result};

/// One perturbed input x + ηu.
#[derive(Clone, Debug)]
pub struct Perturbation {
    /// Direction u, `input_len` values, unit L2 norm.
    pub direction: Arc<[f32]>,
    /// Signed step η: negative for the antipode.
    pub eta_l2: f64,
}

/// A differentiable map Φ: R^{d_I} → R^{d_Z} at a fixed point x.
///
/// Values cross this interface as flat host arrays: inputs and tangents in the order of the
/// photograph's pixels (channel, row, column), features flattened. A field may be an encoder on a
/// device or, in tests, a map with a closed form. Methods take `&mut self` because a device-backed
/// field keeps buffers.
pub trait Field {
    /// Length d_I of the input.
    fn input_len(&self) -> usize;
    /// Length d_Z of the feature.
    fn output_len(&self) -> usize;
    /// How many inputs, tangents or cotangents to hand over in one call for best throughput. Larger
    /// calls are allowed and are split by the field.
    fn batch(&self) -> usize;
    /// Φ(x + ηu) for each perturbation: `steps.len() · d_Z` values, row after row.
    ///
    /// The sum x + ηu is formed in the field's own precision and is never clipped.
    fn features(&mut self, steps: &[Perturbation]) -> Result<Vec<f64>>;
    /// Φ at x after every input value moved by one unit in the last place up or down at random
    /// (seeded), evaluated in another batch position than [`Field::features`] would use first: what
    /// rounding alone does to Φ. d_Z values.
    fn rounding_probe(&mut self, seed: u64) -> Result<Vec<f64>>;
    /// J·t for each tangent (each d_I values): `tangents.len() · d_Z` values.
    fn jvp(&mut self, tangents: &[Arc<[f32]>]) -> Result<Vec<f64>>;
    /// Jᵀ·v for each cotangent; `cotangents` holds whole rows of d_Z values, and the answer as many
    /// rows of d_I values.
    fn vjp(&mut self, cotangents: &[f64]) -> Result<Vec<f64>>;
    /// Gradient of the largest logit at x, d_I values, whatever the readout.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] for a map that has no logits, which is what this default says.
    fn top_logit_gradient(&mut self) -> Result<Vec<f64>> {
        Err(Error::new(
            ErrorKind::Request,
            "cannot use the gradient of the largest logit as a direction",
            "this encoder has no classifier",
            "Choose another direction family",
        ))
    }
}

/// Refuses values that are not finite; `what` names them.
pub(super) fn require_finite(values: &[f64], what: &str) -> Result<()> {
    let Some(at) = values.iter().position(|value| !value.is_finite()) else {
        return Ok(());
    };
    Err(Error::new(
        ErrorKind::Numeric,
        format!("cannot use {what}"),
        format!("its value {at} is not a finite number"),
        "Use smaller perturbations, another photograph, another readout or another device",
    ))
}
