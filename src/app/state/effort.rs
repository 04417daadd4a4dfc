//! What a profile costs, in forward passes, for estimates of its time.

use crate::encoders::{EncoderSpec, Readout};
use crate::geometry::profile::Cost;
use crate::recipe::{Estimator, ProfileRecipe, TraceMethod};

/// Work of a Jacobian–vector product in forward passes (measured 2.03–2.20 for ConvNeXt-T).
const JVP_FORWARDS: f64 = 2.1;
/// Work of a vector–Jacobian product in forward passes (measured 2.7–3.1).
const VJP_FORWARDS: f64 = 2.9;

/// Work that was done.
pub(super) fn forward_equivalents(cost: Cost) -> f64 {
    cost.forwards as f64 + JVP_FORWARDS * cost.jvps as f64 + VJP_FORWARDS * cost.vjps as f64
}

/// Work of a recipe, if no scale stops early.
pub(super) fn planned_forwards(recipe: &ProfileRecipe, spec: &EncoderSpec) -> f64 {
    let forwards = (2 * recipe.pairs_max * recipe.etas_l2.len()) as f64;
    let products = match (recipe.estimator, recipe.trace) {
        (Estimator::Paper, _) => recipe.jvps as f64 * JVP_FORWARDS,
        // A product with JJᵀ is one VJP and one JVP; the sketch is multiplied twice.
        (Estimator::ControlVariate, TraceMethod::HutchPlusPlus { sketch, probes }) => {
            let products = (2 * sketch + probes) as f64;
            recipe.pairs_max as f64 * JVP_FORWARDS + products * (JVP_FORWARDS + VJP_FORWARDS)
        }
        (Estimator::ControlVariate, TraceMethod::Exact) => {
            let rows = feature_len(spec, &recipe.readout) as f64;
            recipe.pairs_max as f64 * JVP_FORWARDS + rows * VJP_FORWARDS
        }
    };
    forwards + products
}

/// Length d_Z of the feature.
fn feature_len(spec: &EncoderSpec, readout: &Readout) -> usize {
    match readout {
        Readout::Pooled => spec.pooled_len,
        Readout::Logits => spec.logits_len,
        Readout::Stage(index) => spec
            .stages
            .get(*index)
            .map_or(spec.pooled_len, |stage| stage.shape.iter().product()),
    }
}
