//! Representational dissimilarity matrices and their rank correlation (Kriegeskorte, Mur, Bandettini 2008).
//!
//! The RDM of n pictures holds a dissimilarity of each pair; two encoders are compared by Spearman's
//! correlation of the pairs, from −1 to 1. It is undefined for fewer than three pictures, where a
//! dissimilarity is (a zero or constant vector), and where all pairs are equally far apart.

use faer::Mat;
use serde::{Deserialize, Serialize};

use super::{Rows, require_same_count};
use crate::Result;

/// Dissimilarity of two vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dissimilarity {
    /// 1 − Pearson's correlation of the coordinates: that of the original paper.
    #[default]
    Correlation,
    /// 1 − cosine.
    Cosine,
}

/// Spearman's correlation of two encoders' RDMs; `None` where it is undefined.
///
/// # Errors
/// [`crate::ErrorKind::Request`] where the numbers of pictures differ.
pub fn rdm_spearman(x: Rows<'_>, y: Rows<'_>, dissimilarity: Dissimilarity) -> Result<Option<f64>> {
    require_same_count(&x, &y)?;
    let rdm = |rows: &Rows<'_>| condensed_rdm(&rows.matrix().to_owned(), dissimilarity);
    Ok(rdm(&x).zip(rdm(&y)).and_then(|(x, y)| spearman(&x, &y)))
}

/// Dissimilarities of all pairs i < j of rows, i slowest; `None` where one is undefined.
pub(super) fn condensed_rdm(rows: &Mat<f64>, dissimilarity: Dissimilarity) -> Option<Vec<f64>> {
    let (n, length) = (rows.nrows(), rows.ncols());
    let mut unit = rows.clone();
    for i in 0..n {
        let size = unit.row(i).norm_l2();
        if dissimilarity == Dissimilarity::Correlation {
            let mean = unit.row(i).sum() / length as f64;
            unit.row_mut(i).iter_mut().for_each(|value| *value -= mean);
        }
        let norm = unit.row(i).norm_l2();
        // A constant row leaves no more than rounding.
        if norm.is_nan() || norm <= 64.0 * f64::EPSILON * size {
            return None;
        }
        unit.row_mut(i).iter_mut().for_each(|value| *value /= norm);
    }
    let gram = &unit * unit.transpose();
    let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    Some(pairs.map(|(i, j)| 1.0 - gram[(i, j)]).collect())
}

/// Spearman's rank correlation: Pearson's of the ranks, equal values having the mean of their ranks; `None`
/// for fewer than two values, for lists of different lengths and where one is constant.
pub fn spearman(x: &[f64], y: &[f64]) -> Option<f64> {
    if x.len() != y.len() {
        return None;
    }
    let (x, y) = (ranks(x)?, ranks(y)?);
    // Ranks have the mean (n + 1)/2, which is subtracted in ranks().
    let product = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let scale = (product(&x, &x) * product(&y, &y)).sqrt();
    (scale > 0.0).then(|| (product(&x, &y) / scale).clamp(-1.0, 1.0))
}

/// Ranks minus their mean; `None` where a value is not a number.
fn ranks(values: &[f64]) -> Option<Vec<f64>> {
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    // `==`, so that 0 and −0 are equal.
    for group in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = first as f64 + (group.len() as f64 - 1.0) / 2.0;
        group.iter().for_each(|&i| ranks[i] = rank - middle);
        first += group.len();
    }
    Some(ranks)
}
