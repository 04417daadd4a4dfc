//! Per-channel normalisation of feature vectors.

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::features::FeatureMap;

/// Added to each standard deviation, so that a dead channel divides by no zero (Krey, Neukirch, Strodthoff
/// 2026).
pub const EPSILON: f64 = 1e-6;

/// Mean and standard deviation of each channel over the unedited training maps. The same statistics are
/// used for source and target, and undone after the map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Normalisation {
    mean: Vec<f64>,
    /// Standard deviation + [`EPSILON`].
    scale: Vec<f64>,
}

impl Normalisation {
    /// From the mean and standard deviation of each channel, as many of both.
    pub fn new(mean: Vec<f64>, std: Vec<f64>) -> Self {
        let scale = std.iter().map(|std| std + EPSILON).collect();
        Self { mean, scale }
    }

    pub(super) fn from_parts(mean: Vec<f64>, scale: Vec<f64>) -> Self {
        Self { mean, scale }
    }

    /// Mean of each channel.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// What each channel is divided by: its standard deviation + 10⁻⁶.
    pub fn scale(&self) -> &[f64] {
        &self.scale
    }

    /// One normalised vector.
    pub fn normalised(&self, vector: &[f64]) -> Vec<f64> {
        let parts = vector.iter().zip(&self.mean).zip(&self.scale);
        parts.map(|((v, mean), scale)| (v - mean) / scale).collect()
    }

    /// (v − mean) / scale at every position.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Request`] where the map has another number of channels.
    pub fn apply(&self, map: &FeatureMap) -> Result<FeatureMap> {
        self.each(map, |v, mean, scale| (v - mean) / scale)
    }

    /// v · scale + mean at every position.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Request`] where the map has another number of channels.
    pub fn undo(&self, map: &FeatureMap) -> Result<FeatureMap> {
        self.each(map, |v, mean, scale| v * scale + mean)
    }

    fn each(&self, map: &FeatureMap, value: impl Fn(f64, f64, f64) -> f64) -> Result<FeatureMap> {
        super::require_channels(map, self.mean.len())?;
        let statistics = || self.mean.iter().zip(&self.scale);
        let vectors: Vec<f32> = map
            .vectors()
            .chunks_exact(map.channels())
            .flat_map(|vector| vector.iter().zip(statistics()))
            .map(|(&v, (&mean, &scale))| value(f64::from(v), mean, scale) as f32)
            .collect();
        FeatureMap::from_vectors(map.shape(), vectors)
    }
}
