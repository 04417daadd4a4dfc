//! What is read off a map on given vectors: the weight of its bias, and how far and where to it moves.

use faer::Col;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use super::affine::{AffineMap, columns};
use crate::features::FeatureMap;
use crate::metrics::cosine::cosine;
use crate::{Error, ErrorKind, Result};

/// How much of a map's answer its bias is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BiasReadout {
    /// Mean over positions of ‖Wx‖ / (‖Wx‖ + ‖b‖); `None` where all are zero.
    pub linear_share: Option<f64>,
    /// Mean over positions of the cosine of Wx with Wx + b; `None` where it is defined nowhere.
    pub cosine: Option<f64>,
    /// ‖b‖.
    pub bias_norm: f64,
}

/// Reads the bias at the vectors of a feature map. Wx is without b.
///
/// # Errors
/// [`ErrorKind::Request`] where the feature map has another number of channels.
pub fn bias_readout(map: &AffineMap, features: &FeatureMap) -> Result<BiasReadout> {
    super::require_channels(features, map.channels())?;
    let bias: Col<f64> = map.bias().into_iter().collect();
    let bias_norm = bias.norm_l2();
    let linear = map.weight() * columns(features, None);
    let (mut shares, mut cosines) = (Vec::new(), Vec::new());
    for wx in linear.col_iter() {
        let norm = wx.norm_l2();
        if norm + bias_norm > 0.0 {
            shares.push(norm / (norm + bias_norm));
        }
        let whole = wx + &bias;
        let scale = norm * whole.norm_l2();
        if scale > 0.0 {
            cosines.push((wx.transpose() * &whole) / scale);
        }
    }
    Ok(BiasReadout {
        linear_share: mean(&shares),
        cosine: mean(&cosines),
        bias_norm,
    })
}

/// How the displacement ŷ − x of a map compares with the target's y − x, over positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DisplacementReadout {
    /// Mean cosine of the two displacements; `None` where it is defined nowhere.
    pub cosine: Option<f64>,
    /// Mean ‖ŷ − y‖.
    pub endpoint_error: f64,
    /// ‖ŷ − x‖ regressed on ‖y − x‖ by least squares; `None` where all targets move equally far.
    pub regression: Option<Regression>,
}

/// A line through points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Regression {
    /// Slope.
    pub slope: f64,
    /// Intercept, in units of the feature.
    pub intercept: f64,
    /// Root mean squared residual (divisor n).
    pub rmse: f64,
}

/// Compares displacements: `source` x (reordered where the edit turns the picture), `target` y, `mapped` ŷ.
///
/// # Errors
/// [`ErrorKind::Request`] where the shapes differ.
pub fn displacement_readout(
    source: &FeatureMap,
    target: &FeatureMap,
    mapped: &FeatureMap,
) -> Result<DisplacementReadout> {
    let wanted = difference(target, source)?;
    let made = difference(mapped, source)?;
    let missed = difference(mapped, target)?;
    let length = source.channels();
    let norms = |values: &[f32]| -> Vec<f64> {
        let vectors = values.chunks_exact(length);
        vectors.map(norm).collect()
    };
    let pairs = wanted.chunks_exact(length).zip(made.chunks_exact(length));
    // A displacement of length zero has no direction.
    let cosines: Vec<f64> = pairs
        .filter(|(a, b)| norm(a) > 0.0 && norm(b) > 0.0)
        .filter_map(|(a, b)| cosine(a, b))
        .collect();
    let errors = norms(&missed);
    Ok(DisplacementReadout {
        cosine: mean(&cosines),
        endpoint_error: errors.iter().sum::<f64>() / errors.len() as f64,
        regression: regression(&norms(&wanted), &norms(&made)),
    })
}

/// Least squares of y on x; `None` where x does not vary.
fn regression(x: &[f64], y: &[f64]) -> Option<Regression> {
    let (mean_x, mean_y) = (mean(x)?, mean(y)?);
    let pairs = || x.iter().zip(y).map(|(x, y)| (x - mean_x, y - mean_y));
    let xx: f64 = pairs().map(|(x, _)| x * x).sum();
    // What rounding of equal distances leaves.
    if xx <= (1e-12 * mean_x).powi(2) * x.len() as f64 {
        return None;
    }
    let slope = pairs().map(|(x, y)| x * y).sum::<f64>() / xx;
    let residuals: f64 = pairs().map(|(x, y)| (y - slope * x).powi(2)).sum();
    Some(Regression {
        slope,
        intercept: mean_y - slope * mean_x,
        rmse: (residuals / x.len() as f64).sqrt(),
    })
}

/// The control of matched magnitude: each vector z moved by `factor` (0.5, 1, 2 in the paper) times
/// ‖f(z) − z‖ in a direction drawn uniformly and independently of all others, a function of the seed.
///
/// # Errors
/// [`ErrorKind::Request`] where the shapes differ.
pub fn matched_magnitude(
    source: &FeatureMap,
    mapped: &FeatureMap,
    factor: f64,
    seed: u64,
) -> Result<FeatureMap> {
    let moved = difference(mapped, source)?;
    let length = source.channels();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut vectors = Vec::with_capacity(moved.len());
    for (z, way) in source
        .vectors()
        .chunks_exact(length)
        .zip(moved.chunks_exact(length))
    {
        let direction: Vec<f64> = (0..length).map(|_| rng.sample(StandardNormal)).collect();
        // A Gaussian vector is zero with probability 0.
        let scale = factor * norm(way) / direction.iter().map(|v| v * v).sum::<f64>().sqrt();
        let parts = z.iter().zip(direction);
        vectors.extend(parts.map(|(&z, v)| (f64::from(z) + scale * v) as f32));
    }
    FeatureMap::from_vectors(source.shape(), vectors)
}

fn difference(to: &FeatureMap, from: &FeatureMap) -> Result<Vec<f32>> {
    if to.shape() != from.shape() {
        return Err(Error::new(
            ErrorKind::Request,
            "cannot compare displacements",
            format!(
                "feature maps have the shapes {:?} and {:?}",
                to.shape(),
                from.shape()
            ),
            "Use feature maps of one stage; reorder the source where the picture was turned",
        ));
    }
    let pairs = to.vectors().iter().zip(from.vectors());
    Ok(pairs.map(|(to, from)| to - from).collect())
}

fn norm(vector: &[f32]) -> f64 {
    let squares = vector.iter().map(|&value| f64::from(value).powi(2));
    squares.sum::<f64>().sqrt()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
