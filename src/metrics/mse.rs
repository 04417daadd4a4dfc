//! Mean squared error of grey levels, and the peak signal-to-noise ratio.
//!
//! `MSE = mean (a − b)²` over all pixels and channels, in squared grey levels of 255, from 0 to 255².
//! `PSNR = 10 log₁₀(255² / MSE)` in decibels, from 0 up; undefined for equal pictures, where it has no bound.

use crate::Result;
use crate::images::Picture;

/// MSE in squared grey levels.
///
/// # Errors
/// [`crate::ErrorKind::Request`] where the pictures have different sizes.
pub fn mse(a: &Picture, b: &Picture) -> Result<f64> {
    super::require_same_size(a, b)?;
    let pairs = a.rgb().iter().zip(b.rgb());
    let sum: u64 = pairs.map(|(&a, &b)| u64::from(a.abs_diff(b)).pow(2)).sum();
    Ok(sum as f64 / a.rgb().len() as f64)
}

/// PSNR in decibels; `None` for equal pictures.
///
/// # Errors
/// [`crate::ErrorKind::Request`] where the pictures have different sizes.
pub fn psnr(a: &Picture, b: &Picture) -> Result<Option<f64>> {
    let mse = mse(a, b)?;
    Ok((mse > 0.0).then(|| 10.0 * (255.0_f64.powi(2) / mse).log10()))
}
