//! Orthogonal Procrustes distance of two representations of the same pictures (Schönemann 1966; Ding, Denain,
//! Steinhardt 2021).
//!
//! `d = min over rotations R of ‖A − BR‖_F² = ‖A‖² + ‖B‖² − 2‖AᵀB‖_*`, with A and B centred and scaled to
//! ‖·‖_F = 1, so that `d = 2 − 2‖AᵀB‖_*`: a sum over all entries, not their mean, from 0 (equal up to rotation and scale)
//! to 2. Sides of different lengths are compared as if the shorter had zeros added. Undefined where one
//! side is constant.

use faer::{Mat, Side};

use super::{Rows, is_constant, norm_sq, require_same_count};
use crate::{Error, ErrorKind, Result};

/// Procrustes distance; `None` where one side does not vary.
///
/// # Errors
/// [`ErrorKind::Request`] where the numbers of pictures differ; [`ErrorKind::Numeric`] where the decomposition
/// fails.
pub fn procrustes_distance(x: Rows<'_>, y: Rows<'_>) -> Result<Option<f64>> {
    require_same_count(&x, &y)?;
    let (xc, yc) = (x.centred(), y.centred());
    if is_constant(&xc, &x) || is_constant(&yc, &y) {
        return Ok(None);
    }
    let scale = (norm_sq(&xc) * norm_sq(&yc)).sqrt();
    // With few pictures A is replaced by the root of AAᵀ, from which it differs by a rotation alone.
    let (a, b) = if x.count() < x.length().min(y.length()) {
        (root(&xc)?, root(&yc)?)
    } else {
        (xc, yc)
    };
    let singular = (a.transpose() * &b)
        .singular_values()
        .map_err(|_| failed())?;
    let nuclear: f64 = singular.iter().sum::<f64>() / scale;
    Ok(Some((2.0 - 2.0 * nuclear).clamp(0.0, 2.0)))
}

/// The symmetric square root of AAᵀ.
fn root(a: &Mat<f64>) -> Result<Mat<f64>> {
    let gram = a * a.transpose();
    let eigen = gram.self_adjoint_eigen(Side::Lower).map_err(|_| failed())?;
    let vectors = eigen.U();
    let scaled = Mat::from_fn(gram.nrows(), gram.ncols(), |i, j| {
        vectors[(i, j)] * eigen.S()[j].max(0.0).sqrt()
    });
    Ok(scaled * vectors.transpose())
}

fn failed() -> Error {
    Error::new(
        ErrorKind::Numeric,
        "cannot compute the Procrustes distance",
        "a matrix could not be decomposed",
        "Use other pictures",
    )
}
