//! Affine maps of feature vectors, one for all positions.

use faer::{Mat, MatRef};

use super::sums::Moments;
use crate::features::FeatureMap;
use crate::{Error, ErrorKind, Result};

/// ŷ = W(x − x̄) + ȳ, which is Wx + b with b = ȳ − Wx̄. Vectors are columns: W maps from the right.
///
/// The two means are kept, not b alone, because cutting the rank needs them.
#[derive(Clone, Debug)]
pub struct AffineMap {
    weight: Mat<f64>,
    source_mean: Vec<f64>,
    target_mean: Vec<f64>,
}

impl AffineMap {
    /// From W (C × C) and the means x̄ and ȳ.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where the sizes differ; [`ErrorKind::Numeric`] where a number is not finite.
    pub fn new(weight: Mat<f64>, source_mean: Vec<f64>, target_mean: Vec<f64>) -> Result<Self> {
        let size = source_mean.len();
        if (weight.nrows(), weight.ncols()) != (size, size) || target_mean.len() != size {
            return Err(Error::new(
                ErrorKind::Request,
                "cannot use the map",
                format!(
                    "a matrix of {} × {} does not go with means of {size} and {} values",
                    weight.nrows(),
                    weight.ncols(),
                    target_mean.len()
                ),
                "Fit it again",
            ));
        }
        let means = source_mean.iter().chain(&target_mean);
        if !weight.is_all_finite() || !means.clone().all(|value| value.is_finite()) {
            return Err(Error::new(
                ErrorKind::Numeric,
                "cannot use the map",
                "one of its numbers is not finite",
                "Fit it again with more pictures or a larger γ",
            ));
        }
        Ok(Self {
            weight,
            source_mean,
            target_mean,
        })
    }

    /// From W and the bias b, for vectors of mean x̄.
    ///
    /// # Errors
    /// As [`AffineMap::new`].
    pub fn from_bias(weight: Mat<f64>, bias: &[f64], source_mean: Vec<f64>) -> Result<Self> {
        let mut target_mean = bias.to_vec();
        if weight.ncols() == source_mean.len() && weight.nrows() == bias.len() {
            add(&mut target_mean, &product(&weight, &source_mean), 1.0);
        }
        Self::new(weight, source_mean, target_mean)
    }

    /// Length C of a vector.
    pub fn channels(&self) -> usize {
        self.source_mean.len()
    }

    /// W, C × C.
    pub fn weight(&self) -> MatRef<'_, f64> {
        self.weight.as_ref()
    }

    /// x̄: the mean of the unedited vectors that it was fitted to.
    pub fn source_mean(&self) -> &[f64] {
        &self.source_mean
    }

    /// ȳ = f(x̄).
    pub fn target_mean(&self) -> &[f64] {
        &self.target_mean
    }

    /// b = ȳ − Wx̄.
    pub fn bias(&self) -> Vec<f64> {
        let mut bias = self.target_mean.clone();
        add(&mut bias, &product(&self.weight, &self.source_mean), -1.0);
        bias
    }

    /// The edit operator E = W − I.
    pub fn edit_operator(&self) -> Mat<f64> {
        let size = self.channels();
        &self.weight - Mat::<f64>::identity(size, size)
    }

    /// ŷ at every position, computed in f64.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where the map has another number of channels.
    pub fn apply(&self, map: &FeatureMap) -> Result<FeatureMap> {
        super::require_channels(map, self.channels())?;
        let mapped = &self.weight * columns(map, Some(&self.source_mean));
        from_columns(&mapped, map, &self.target_mean)
    }

    /// This map and then another, as one.
    ///
    /// # Errors
    /// As [`AffineMap::new`].
    pub fn then(&self, next: &Self) -> Result<Self> {
        if next.channels() != self.channels() {
            return Err(super::wrong_channels(self.channels(), next.channels()));
        }
        let mut way = self.target_mean.clone();
        add(&mut way, &next.source_mean, -1.0);
        let mut target_mean = product(&next.weight, &way);
        add(&mut target_mean, &next.target_mean, 1.0);
        Self::new(
            &next.weight * &self.weight,
            self.source_mean.clone(),
            target_mean,
        )
    }

    /// Mean over vectors and channels of the squared error (y − ŷ)² on pairs that are known by their moments
    /// alone, such as those of validation pictures.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where the moments have another number of channels.
    pub fn mean_squared_error(&self, pairs: &Moments) -> Result<f64> {
        if pairs.channels() != self.channels() {
            return Err(super::wrong_channels(self.channels(), pairs.channels()));
        }
        // Σ‖y − ȳ − W(x − x̄)‖² = tr Syy − 2 tr W Sxy + tr W Sxx Wᵀ, with the means of these pairs.
        let explained = &self.weight * &pairs.source_products;
        let mut sum: f64 = pairs.target_squares.iter().sum();
        for j in 0..self.channels() {
            for i in 0..self.channels() {
                sum +=
                    self.weight[(i, j)] * (explained[(i, j)] - 2.0 * pairs.cross_products[(i, j)]);
            }
        }
        // What the means miss.
        let mut way = pairs.source_mean.clone();
        add(&mut way, &self.source_mean, -1.0);
        let mut miss = product(&self.weight, &way);
        add(&mut miss, &self.target_mean, 1.0);
        add(&mut miss, &pairs.target_mean, -1.0);
        let miss: f64 = miss.iter().map(|value| value * value).sum();
        Ok((sum / pairs.count + miss).max(0.0) / self.channels() as f64)
    }
}

/// Vectors as columns in f64, minus a mean.
pub(super) fn columns(map: &FeatureMap, mean: Option<&[f64]>) -> Mat<f64> {
    let size = map.channels();
    let vectors = map.vectors();
    Mat::from_fn(size, map.positions(), |i, j| {
        f64::from(vectors[j * size + i]) - mean.map_or(0.0, |mean| mean[i])
    })
}

/// The feature map of the shape of another from its vectors as columns, plus a constant vector.
pub(super) fn from_columns(
    columns: &Mat<f64>,
    like: &FeatureMap,
    plus: &[f64],
) -> Result<FeatureMap> {
    let vectors: Vec<f32> = columns
        .col_iter()
        .flat_map(|column| {
            column
                .iter()
                .zip(plus)
                .map(|(value, plus)| (value + plus) as f32)
        })
        .collect();
    FeatureMap::from_vectors(like.shape(), vectors)
}

/// W times a vector of its width.
fn product(weight: &Mat<f64>, vector: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; weight.nrows()];
    for (column, &value) in weight.col_iter().zip(vector) {
        let parts = out.iter_mut().zip(column.iter());
        parts.for_each(|(out, weight)| *out += weight * value);
    }
    out
}

fn add(to: &mut [f64], values: &[f64], factor: f64) {
    let parts = to.iter_mut().zip(values);
    parts.for_each(|(to, value)| *to += factor * value);
}
