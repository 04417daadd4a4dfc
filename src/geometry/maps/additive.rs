//! *additive*: x + δ, one constant vector for all positions.

use super::sums::Moments;
use crate::Result;
use crate::features::FeatureMap;

/// δ = ȳ − x̄, which minimises Σ‖y − x − δ‖².
pub fn additive(moments: &Moments) -> Vec<f64> {
    let means = moments.target_mean.iter().zip(&moments.source_mean);
    means.map(|(y, x)| y - x).collect()
}

/// x + δ at every position.
///
/// # Errors
/// [`crate::ErrorKind::Request`] where the map has another number of channels.
pub fn shifted(map: &FeatureMap, delta: &[f64]) -> Result<FeatureMap> {
    super::require_channels(map, delta.len())?;
    let vectors = map.vectors().iter().zip(delta.iter().cycle());
    let vectors: Vec<f32> = vectors
        .map(|(&x, delta)| (f64::from(x) + delta) as f32)
        .collect();
    FeatureMap::from_vectors(map.shape(), vectors)
}
