//! What a trained map is fitted to.

use burn::tensor::{Int, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::device::read;

/// Weight of the mean squared error in [`Loss::Blend`].
const MSE_SHARE: f64 = 0.3;

/// Weight of the cosine part in [`Loss::Blend`].
const COSINE_SHARE: f64 = 0.7;

/// Difference at which [`Loss::Huber`] turns from square to linear, PyTorch's default.
const HUBER_DELTA: f64 = 1.0;

/// Least denominator of a cosine, as in [`crate::metrics::cosine`].
const EPSILON: f64 = crate::metrics::cosine::EPSILON;

/// Least square of a length: the derivative of the root at 0 is no number.
const LEAST_SQUARE: f64 = 1e-24;

/// A loss of mapped against target vectors, both normalised, as means over the batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// 0.3 · MSE + 0.7 · (1 − median over a map's positions of the cosine): the paper's.
    #[default]
    Blend,
    /// Mean squared error.
    Mse,
    /// Huber's loss with δ = 1: d²/2 for |d| ≤ 1, |d| − 1/2 beyond.
    Huber,
    /// 1 − mean over positions of the cosine.
    MeanCosine,
}

impl Loss {
    /// Name for labels.
    pub fn title(self) -> &'static str {
        match self {
            Self::Blend => "0.3 MSE + 0.7 (1 − median cosine)",
            Self::Mse => "MSE",
            Self::Huber => "Huber, δ = 1",
            Self::MeanCosine => "1 − mean cosine",
        }
    }

    /// The loss of (batch, position, channel) values, a tensor of one value.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Device`] where the cosines cannot be read.
    pub fn of(self, mapped: Tensor<3>, target: Tensor<3>) -> Result<Tensor<1>> {
        match self {
            Self::Blend => {
                let error = mse(mapped.clone(), target.clone());
                let cosine = median(cosines(mapped, target))?;
                Ok(error * MSE_SHARE + (cosine * -1.0 + 1.0) * COSINE_SHARE)
            }
            Self::Mse => Ok(mse(mapped, target)),
            Self::Huber => {
                let size = (mapped - target).abs();
                // d²/2 up to δ, and from there on the line that continues it.
                let inner = size.clone().clamp_max(HUBER_DELTA);
                Ok((inner.clone() * (size - inner * 0.5)).mean())
            }
            Self::MeanCosine => Ok(cosines(mapped, target).mean() * -1.0 + 1.0),
        }
    }
}

fn mse(mapped: Tensor<3>, target: Tensor<3>) -> Tensor<1> {
    let difference = mapped - target;
    (difference.clone() * difference).mean()
}

/// The cosine at each position, (batch, position).
fn cosines(a: Tensor<3>, b: Tensor<3>) -> Tensor<2> {
    let [batch, positions, _] = a.dims();
    let length = |x: Tensor<3>| (x.clone() * x).sum_dim(2).clamp_min(LEAST_SQUARE).sqrt();
    let lengths = (length(a.clone()) * length(b.clone())).clamp_min(EPSILON);
    ((a * b).sum_dim(2) / lengths).reshape([batch, positions])
}

/// Mean over the batch of the median over positions; of an even number the mean of the middle two, as everywhere in this
/// program. The derivative goes to the positions in the middle.
fn median(cosines: Tensor<2>) -> Result<Tensor<1>> {
    let [batch, positions] = cosines.dims();
    let values = read(cosines.clone().reshape([1, 1, batch, positions]))?;
    let mut middle = Vec::with_capacity(2 * batch);
    for row in values.chunks_exact(positions.max(1)) {
        let mut order: Vec<usize> = (0..positions).collect();
        order.sort_by(|&a, &b| row[a].total_cmp(&row[b]));
        middle.extend([(positions - 1) / 2, positions / 2].map(|place| order[place] as i64));
    }
    let indices = TensorData::new(middle, [batch, 2]);
    let indices = Tensor::<2, Int>::from_data(indices, &cosines.device());
    Ok(cosines.gather(1, indices).mean())
}
