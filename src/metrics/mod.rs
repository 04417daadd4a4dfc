//! Metrics: how far two pictures, two feature maps, two predictions or two encoders are apart.
//!
//! One file a metric, each with formula, range, units, reference and degenerate cases. A value that is
//! undefined is `None`, never NaN and never a number that could be taken for one; sizes that do not fit
//! together are an error.

pub mod agreement;
pub mod cka;
pub mod cosine;
pub mod divergence;
pub mod edit_mask;
pub mod lpips;
pub mod mse;
pub mod procrustes;
pub mod rdm;
pub mod ssim;
pub mod stability;

use faer::{Mat, MatRef};

use crate::images::Picture;
use crate::{Error, ErrorKind, Result};

/// Feature vectors, one a row: of n pictures from one encoder, for the metrics that compare
/// encoders.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    values: &'a [f64],
    length: usize,
}

impl<'a> Rows<'a> {
    /// Rows of `length` values, one after another.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where there is none or the last is not whole; [`ErrorKind::Numeric`] where a
    /// value is not finite.
    pub fn new(values: &'a [f64], length: usize) -> Result<Self> {
        if length == 0 || values.is_empty() || !values.len().is_multiple_of(length) {
            return Err(misfit(format!(
                "{} values are not whole vectors of {length}",
                values.len()
            )));
        }
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(Error::new(
                ErrorKind::Numeric,
                "cannot compare representations",
                format!(
                    "value {} of vector {} is not a finite number",
                    at % length,
                    at / length
                ),
                "Use other pictures or another readout",
            ));
        }
        Ok(Self { values, length })
    }

    /// Number n of vectors.
    pub fn count(&self) -> usize {
        self.values.len() / self.length
    }

    /// Length D of a vector.
    pub fn length(&self) -> usize {
        self.length
    }

    fn matrix(&self) -> MatRef<'a, f64> {
        MatRef::from_row_major_slice(self.values, self.count(), self.length)
    }

    /// With the mean of each coordinate subtracted.
    fn centred(&self) -> Mat<f64> {
        let matrix = self.matrix();
        let n = self.count() as f64;
        let means: Vec<f64> = matrix
            .col_iter()
            .map(|column| column.iter().sum::<f64>() / n)
            .collect();
        Mat::from_fn(self.count(), self.length, |i, j| matrix[(i, j)] - means[j])
    }
}

/// The same pictures must stand behind two sets of vectors.
fn require_same_count(a: &Rows<'_>, b: &Rows<'_>) -> Result<()> {
    if a.count() == b.count() {
        return Ok(());
    }
    Err(misfit(format!(
        "there are {} vectors on one side and {} on the other",
        a.count(),
        b.count()
    )))
}

fn require_same_size(a: &Picture, b: &Picture) -> Result<()> {
    if (a.width(), a.height()) == (b.width(), b.height()) {
        return Ok(());
    }
    Err(misfit(format!(
        "the pictures have {} × {} and {} × {} pixels",
        a.width(),
        a.height(),
        b.width(),
        b.height()
    )))
}

fn misfit(why: String) -> Error {
    Error::new(
        ErrorKind::Request,
        "cannot compare",
        why,
        "Compare things of the same size",
    )
}

/// Sum of squares of all entries.
fn norm_sq(matrix: &Mat<f64>) -> f64 {
    matrix.squared_norm_l2()
}

/// Whether a centred matrix is no more than rounding of the rows that it was made of.
fn is_constant(centred: &Mat<f64>, rows: &Rows<'_>) -> bool {
    let whole: f64 = rows.values.iter().map(|value| value * value).sum();
    norm_sq(centred) <= whole * (64.0 * f64::EPSILON).powi(2)
}
