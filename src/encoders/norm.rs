//! Layer norm over channels at each position (Ba, Kiros and Hinton 2016).

use burn::tensor::Tensor;

use super::host_norm::{self, Moments};
use super::layers::Placement;
use super::linear::LinearOp;
use super::value::Value;
use super::weights::{Init, Parameter, Weights};
use super::windows::{from_host, give_back, on_host};
use crate::Result;

/// `scale·(x − mean)/√(variance + ε) + shift`, mean and variance over the channels of one position.
#[derive(Clone, Debug)]
pub struct LayerNorm {
    scale: Tensor<1>,
    shift: Tensor<1>,
    epsilon: f64,
}

/// A layer norm at the point where its derivative was taken.
#[derive(Clone, Debug)]
pub struct NormAt {
    /// (x − mean)/σ, batch 1.
    normalised: Tensor<4>,
    /// 1/σ, (1, 1, row, column).
    inverse_deviation: Tensor<4>,
    scale: Tensor<1>,
}

impl LayerNorm {
    /// A layer norm with parameters `{key}.weight` and `{key}.bias`.
    ///
    /// # Errors
    ///
    /// As [`Weights::take`].
    pub fn load(
        weights: &mut Weights<'_>,
        key: &str,
        channels: usize,
        epsilon: f64,
        at: &Placement,
    ) -> Result<Self> {
        Ok(Self {
            scale: at.tensor(weights.take(&format!("{key}.weight"))?, [channels]),
            shift: at.tensor(weights.take(&format!("{key}.bias"))?, [channels]),
            epsilon,
        })
    }

    /// Its two tensors; untrained they are `scale` and 0.
    pub fn parameters(key: &str, channels: usize, scale: f64) -> [Parameter; 2] {
        [("weight", scale), ("bias", 0.0)].map(|(name, value)| Parameter {
            name: format!("{key}.{name}"),
            shape: vec![channels],
            init: Init::Constant(value),
            trained: true,
        })
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let dims @ [_, _, rows, cols] = x.dims();
        if let (Some(host), Some(scale), Some(shift)) =
            (on_host(&x), on_host(&self.scale), on_host(&self.shift))
        {
            let y = host_norm::layer_norm(
                host.storage(),
                rows * cols,
                scale.storage(),
                shift.storage(),
                self.epsilon as f32,
            );
            drop(host);
            give_back(x);
            return from_host(y, dims);
        }
        let (centred, inverse_deviation) = self.moments(&x);
        centred * inverse_deviation * per_channel(&self.scale) + per_channel(&self.shift)
    }

    /// x − mean, and 1/σ.
    fn moments(&self, x: &Tensor<4>) -> (Tensor<4>, Tensor<4>) {
        let [_, channels, rows, cols] = x.dims();
        if let Some(host) = on_host(x) {
            let moments = Moments::of(host.storage(), channels, rows * cols, self.epsilon as f32);
            let batch = x.dims()[0];
            let [mean, inverse_deviation] = [moments.mean, moments.inverse_deviation]
                .map(|values| from_host(values, [batch, 1, rows, cols]));
            return (x.clone() - mean, inverse_deviation);
        }
        let centred = x.clone() - x.clone().mean_dim(1);
        let variance = (centred.clone() * centred.clone()).mean_dim(1);
        let inverse_deviation = (variance + self.epsilon).sqrt().recip();
        (centred, inverse_deviation)
    }

    /// The norm at `x`, batch 1.
    fn at(&self, x: &Tensor<4>) -> NormAt {
        let (centred, inverse_deviation) = self.moments(x);
        NormAt {
            normalised: centred * inverse_deviation.clone(),
            inverse_deviation,
            scale: self.scale.clone(),
        }
    }
}

impl NormAt {
    /// The derivative applied to tangents.
    pub fn apply(&self, t: Tensor<4>) -> Tensor<4> {
        match self.on_host(&t, false) {
            Some(result) => {
                give_back(t);
                result
            }
            None => self.normalising(t) * per_channel(&self.scale),
        }
    }

    /// The transposed derivative applied to cotangents.
    pub fn transposed(&self, v: Tensor<4>) -> Tensor<4> {
        match self.on_host(&v, true) {
            Some(result) => {
                give_back(v);
                result
            }
            None => self.normalising(v * per_channel(&self.scale)),
        }
    }

    fn on_host(&self, t: &Tensor<4>, transposed: bool) -> Option<Tensor<4>> {
        let host = on_host(t)?;
        let normalised = on_host(&self.normalised)?;
        let inverse_deviation = on_host(&self.inverse_deviation)?;
        let scale = on_host(&self.scale)?;
        let norm = host_norm::NormAt {
            normalised: normalised.storage(),
            inverse_deviation: inverse_deviation.storage(),
            scale: scale.storage(),
        };
        Some(from_host(
            norm.derivative(host.storage(), transposed),
            t.dims(),
        ))
    }

    /// (t − mean t − n·mean(n·t))/σ, its own transpose.
    fn normalising(&self, t: Tensor<4>) -> Tensor<4> {
        let mean = t.clone().mean_dim(1);
        let along = (self.normalised.clone() * t.clone()).mean_dim(1);
        (t - mean - self.normalised.clone() * along) * self.inverse_deviation.clone()
    }
}

impl Value {
    /// Layer norm over the channels of each position.
    pub fn layer_norm(self, norm: &LayerNorm) -> Self {
        self.nonlinearly(
            |x| norm.forward(x),
            |x| LinearOp::LayerNorm(Box::new(norm.at(&x))),
        )
    }
}

fn per_channel(values: &Tensor<1>) -> Tensor<4> {
    let channels = values.dims()[0];
    values.clone().reshape([1, channels, 1, 1])
}
