//! The head of LPIPS v0.1 (Zhang, Isola, Efros, Shechtman, Wang 2018): from feature maps of two pictures at
//! the layers of a network to one distance.
//!
//! At each layer the vectors of both maps are scaled to unit length, `v / (‖v‖ + 10⁻¹⁰)`, their squared
//! difference is weighted channel by channel (a learnt 1 × 1 convolution without bias, weights ≥ 0) and averaged
//! over positions; the layers' values are added. From 0 up, 0 for equal maps; no units.
//!
//! The network is no part of this: [`crate::geometry::perceptual`] has AlexNet, whose input is scaled to [−1, 1] and
//! then normalised. Feeding it [0, 1] is the classic mistake.

use crate::features::FeatureMap;
use crate::{Error, ErrorKind, Result};

/// Added to a length before dividing by it, as the original does: a zero vector stays zero.
const EPSILON: f64 = 1e-10;

/// One layer: the maps of the two pictures and the weight of each channel.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'a> {
    /// Feature map of the first picture.
    pub a: &'a FeatureMap,
    /// Feature map of the second.
    pub b: &'a FeatureMap,
    /// One weight a channel.
    pub weights: &'a [f32],
}

/// LPIPS from its layers.
///
/// # Errors
/// [`ErrorKind::Request`] where there is no layer or the shapes of one differ.
pub fn lpips_head(layers: &[Layer<'_>]) -> Result<f64> {
    if layers.is_empty() {
        return Err(Error::new(
            ErrorKind::Request,
            "cannot compute LPIPS",
            "there is no layer",
            "Give the feature maps of its network",
        ));
    }
    layers.iter().map(layer_distance).sum()
}

fn layer_distance(layer: &Layer<'_>) -> Result<f64> {
    let Layer { a, b, weights } = layer;
    if a.shape() != b.shape() || weights.len() != a.channels() {
        return Err(super::misfit(format!(
            "the feature maps have the shapes {:?} and {:?}, and there are {} weights",
            a.shape(),
            b.shape(),
            weights.len()
        )));
    }
    let length = a.channels();
    let pairs = a
        .vectors()
        .chunks_exact(length)
        .zip(b.vectors().chunks_exact(length));
    let sum: f64 = pairs
        .map(|(a, b)| {
            let scale = |v: &[f32]| {
                let norm_sq: f64 = v.iter().map(|&v| f64::from(v).powi(2)).sum();
                1.0 / (norm_sq.sqrt() + EPSILON)
            };
            let (scale_a, scale_b) = (scale(a), scale(b));
            let channels = a.iter().zip(b).zip(*weights);
            channels
                .map(|((&a, &b), &weight)| {
                    let difference = f64::from(a) * scale_a - f64::from(b) * scale_b;
                    f64::from(weight) * difference * difference
                })
                .sum::<f64>()
        })
        .sum();
    Ok(sum / a.positions() as f64)
}
