//! Mean squared error of grey levels, and the peak signal-to-noise ratio.
//!
//! `MSE = mean (a − b)²` over all pixels and channels, in squared grey levels of 255, from 0 to 255².
//! `PSNR = 10 log₁₀(255² / MSE)` in decibels, from 0 up; undefined for equal pictures, where it has no bound.

use crate::Result;
use crate::features::FeatureMap;
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

/// Mean squared difference of the values of two feature maps, in their own units, summed in f64.
///
/// # Errors
/// [`crate::ErrorKind::Request`] where the maps have different shapes.
pub fn features_mse(a: &FeatureMap, b: &FeatureMap) -> Result<f64> {
    if a.shape() != b.shape() {
        return Err(super::misfit(format!(
            "the feature maps have the shapes {:?} and {:?}",
            a.shape(),
            b.shape()
        )));
    }
    let pairs = a.vectors().iter().zip(b.vectors());
    let sum: f64 = pairs
        .map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2))
        .sum();
    Ok(sum / a.vectors().len() as f64)
}
