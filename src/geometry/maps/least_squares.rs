//! *linear*: Wx + b by least squares, one for all positions.

use faer::{Mat, Side};

use super::affine::AffineMap;
use super::sums::Moments;
use crate::Result;

/// Share of the largest eigenvalue of the Gram matrix below which a direction counts as absent: products in
/// f32 say nothing of smaller ones.
const GRAM_PRECISION: f64 = 1e-7;

/// The W of least norm among those that minimise Σ‖y − Wx − b‖². Directions in which the vectors do not
/// vary are mapped to zero.
///
/// # Errors
/// [`crate::ErrorKind::Numeric`] where the Gram matrix cannot be decomposed.
pub fn linear(moments: &Moments) -> Result<AffineMap> {
    let eigen = moments
        .source_products
        .self_adjoint_eigen(Side::Lower)
        .map_err(|error| super::undecomposed(format!("{error:?}")))?;
    let size = moments.channels();
    let (vectors, values) = (eigen.U(), eigen.S());
    // Eigenvalues ascend.
    let floor = GRAM_PRECISION * values[size - 1];
    let scaled = Mat::from_fn(size, size, |i, j| {
        if values[j] > floor {
            vectors[(i, j)] / values[j]
        } else {
            0.0
        }
    });
    let weight = &moments.cross_products * scaled * vectors.transpose();
    AffineMap::new(
        weight,
        moments.source_mean.clone(),
        moments.target_mean.clone(),
    )
}
