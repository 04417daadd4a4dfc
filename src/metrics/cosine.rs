//! Median cosine similarity over positions (MdnCS; Krey, Neukirch, Strodthoff 2026).
//!
//! `MdnCS(A, B) = median over positions p of ⟨a_p, b_p⟩ / max(‖a_p‖·‖b_p‖, ε)`, from −1 to 1, 1 for vectors
//! of the same directions; it says nothing of lengths. The masked form takes the positions of a mask alone.
//!
//! Degenerate cases: where both vectors are zero there is no cosine, and the position is left out, in
//! which the value differs from the 0 of a plain division by ε; where one of them is zero it is 0. With
//! no position left (an empty mask) the value is undefined. With an even number of positions the median is
//! the mean of the middle two.
//!
//! Two quantities share the formula and must not share a name: *MdnCS (features)*, of a mapped and a
//! target feature map at the stage of the map, and *MdnCS (images)*, of two pictures that one fixed
//! encoder reads.

use crate::Result;
use crate::features::FeatureMap;

/// Least denominator: PyTorch's default for the cosine.
pub const EPSILON: f64 = 1e-8;

/// Cosine of two vectors of equal length, summed in f64; `None` where both are zero.
pub fn cosine(a: &[f32], b: &[f32]) -> Option<f64> {
    let (mut aa, mut bb, mut ab) = (0.0, 0.0, 0.0);
    for (&a, &b) in a.iter().zip(b) {
        let (a, b) = (f64::from(a), f64::from(b));
        aa += a * a;
        bb += b * b;
        ab += a * b;
    }
    (aa > 0.0 || bb > 0.0).then(|| ab / (aa.sqrt() * bb.sqrt()).max(EPSILON))
}

/// MdnCS over all positions.
///
/// # Errors
/// [`crate::ErrorKind::Request`] where the maps have different shapes.
pub fn median_cosine(a: &FeatureMap, b: &FeatureMap) -> Result<Option<f64>> {
    let mut defined: Vec<f64> = cosines(a, b)?.into_iter().flatten().collect();
    Ok(median(&mut defined))
}

/// MdnCS over the positions of a mask, given for each position, row after row.
///
/// # Errors
/// [`crate::ErrorKind::Request`] where the maps or the mask have different shapes.
pub fn masked_median_cosine(a: &FeatureMap, b: &FeatureMap, mask: &[bool]) -> Result<Option<f64>> {
    if mask.len() != a.positions() {
        return Err(super::misfit(format!(
            "the mask has {} positions, the feature maps {}",
            mask.len(),
            a.positions()
        )));
    }
    let inside = cosines(a, b)?.into_iter().zip(mask);
    let mut inside: Vec<f64> = inside
        .filter_map(|(cosine, &is_inside)| cosine.filter(|_| is_inside))
        .collect();
    Ok(median(&mut inside))
}

/// The cosine at each position, row after row; `None` where both vectors are zero.
///
/// # Errors
/// [`crate::ErrorKind::Request`] where the maps have different shapes.
pub fn cosines(a: &FeatureMap, b: &FeatureMap) -> Result<Vec<Option<f64>>> {
    if a.shape() != b.shape() {
        return Err(super::misfit(format!(
            "the feature maps have the shapes {:?} and {:?}",
            a.shape(),
            b.shape()
        )));
    }
    let length = a.channels();
    let pairs = a
        .vectors()
        .chunks_exact(length)
        .zip(b.vectors().chunks_exact(length));
    Ok(pairs.map(|(a, b)| cosine(a, b)).collect())
}

/// Median; of an even number of values the mean of the middle two; `None` of none and where one is not
/// a number.
fn median(values: &mut [f64]) -> Option<f64> {
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get(values.len().checked_sub(1)? / 2)?;
    Some((lower + upper) / 2.0)
}
