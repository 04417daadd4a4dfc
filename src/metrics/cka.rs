//! Linear centred kernel alignment of two representations of the same pictures (Kornblith, Norouzi, Lee,
//! Hinton 2019).
//!
//! `CKA = ‖YᵀX‖_F² / (‖XᵀX‖_F · ‖YᵀY‖_F)` of the centred X (n×p) and Y (n×q); from 0 to 1, 1 where they differ by a
//! rotation and a scale. With few pictures and many coordinates it is biased upward: of random
//! representations with n ≪ p it is near 1. Undefined where one side is constant.

use faer::Mat;

use super::{Rows, is_constant, norm_sq, require_same_count};
use crate::Result;

/// Linear CKA; `None` where one side does not vary.
///
/// # Errors
/// [`crate::ErrorKind::Request`] where the numbers of pictures differ.
pub fn linear_cka(x: Rows<'_>, y: Rows<'_>) -> Result<Option<f64>> {
    require_same_count(&x, &y)?;
    let (xc, yc) = (x.centred(), y.centred());
    if is_constant(&xc, &x) || is_constant(&yc, &y) {
        return Ok(None);
    }
    let [cross, own_x, own_y] = if x.count() <= x.length().max(y.length()) {
        // ‖YᵀX‖² is the scalar product of XXᵀ and YYᵀ.
        let (kx, ky) = (&xc * xc.transpose(), &yc * yc.transpose());
        [inner(&kx, &ky), norm_sq(&kx), norm_sq(&ky)]
    } else {
        let gram = |a: &Mat<f64>, b: &Mat<f64>| norm_sq(&(a.transpose() * b));
        [gram(&yc, &xc), gram(&xc, &xc), gram(&yc, &yc)]
    };
    Ok(Some((cross / (own_x * own_y).sqrt()).clamp(0.0, 1.0)))
}

/// Sum of products of the entries.
fn inner(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    let columns = a.col_iter().zip(b.col_iter());
    columns
        .flat_map(|(a, b)| a.iter().zip(b.iter()))
        .map(|(a, b)| a * b)
        .sum()
}
