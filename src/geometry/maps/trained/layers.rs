//! Layers of the networks, with PyTorch's names, first values and conventions.

use burn::tensor::{Tensor, TensorCreationOptions, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::encoders::plans::torch_default;
use crate::encoders::weights::{Init, Parameter};
use crate::geometry::learn::Live;

/// ε of BatchNorm and LayerNorm, PyTorch's default.
const EPSILON: f64 = 1e-5;

/// Share of a new batch in the running statistics of BatchNorm, PyTorch's default.
const MOMENTUM: f64 = 0.1;

/// One pass through a network: in training with dropout and the statistics of the batch, else without.
#[derive(Debug)]
pub struct Pass {
    /// Source of the dropout masks; `None` in inference.
    rng: Option<ChaCha8Rng>,
    /// Running statistics after this pass, by the name of their parameter.
    statistics: Vec<(String, Tensor<1>)>,
}

impl Pass {
    /// Without anything random.
    pub fn inference() -> Self {
        Self {
            rng: None,
            statistics: Vec::new(),
        }
    }

    /// Training, with the dropout masks that belong to this seed and step.
    pub fn training(seed: u64, step: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // The streams below belong to the parameters' first values and to the order of the epochs.
        rng.set_stream((1 << 40) + step);
        Self {
            rng: Some(rng),
            statistics: Vec::new(),
        }
    }

    /// Running statistics after this pass, by the name of their parameter.
    pub fn into_statistics(self) -> Vec<(String, Tensor<1>)> {
        self.statistics
    }

    /// Zeros in place of a share of the values and the others enlarged to keep the mean; nothing in inference.
    pub fn dropout<const D: usize>(&mut self, x: Tensor<D>, share: f64) -> Tensor<D> {
        let dims = x.dims();
        self.masked(x, dims, share)
    }

    /// The same for whole channels of (batch, channel, row, column).
    pub fn dropout2d(&mut self, x: Tensor<4>, share: f64) -> Tensor<4> {
        let [batch, channels, ..] = x.dims();
        self.masked(x, [batch, channels, 1, 1], share)
    }

    fn masked<const D: usize>(&mut self, x: Tensor<D>, shape: [usize; D], share: f64) -> Tensor<D> {
        let Some(rng) = &mut self.rng else {
            return x;
        };
        let kept = (1.0 / (1.0 - share)) as f32;
        let share = share as f32;
        let mask: Vec<f32> = (0..shape.iter().product())
            .map(|_| {
                if rng.random::<f32>() < share {
                    0.0
                } else {
                    kept
                }
            })
            .collect();
        let options = TensorCreationOptions::from((&x.device(), x.dtype()));
        let mask = Tensor::from_data(TensorData::new(mask, shape), options);
        x * mask
    }
}

/// Weight and bias of an affine layer, drawn as PyTorch draws those of `nn.Linear`.
pub fn linear_parameters(key: &str, inputs: usize, outputs: usize) -> Vec<Parameter> {
    vec![
        trained(key, "weight", vec![outputs, inputs], torch_default(inputs)),
        trained(key, "bias", vec![outputs], torch_default(inputs)),
    ]
}

/// Weight and bias of a 3×3 convolution, drawn as PyTorch draws those of `nn.Conv2d`.
pub fn conv_parameters(key: &str, inputs: usize, outputs: usize) -> Vec<Parameter> {
    let init = torch_default(9 * inputs);
    vec![
        trained(key, "weight", vec![outputs, inputs, 3, 3], init),
        trained(key, "bias", vec![outputs], init),
    ]
}

/// Scale 1 and shift 0 of a normalisation.
pub fn norm_parameters(key: &str, width: usize) -> Vec<Parameter> {
    vec![
        trained(key, "weight", vec![width], Init::Constant(1.0)),
        trained(key, "bias", vec![width], Init::Constant(0.0)),
    ]
}

/// Scale, shift and running statistics of a BatchNorm.
pub fn batch_norm_parameters(key: &str, width: usize) -> Vec<Parameter> {
    let mut parameters = norm_parameters(key, width);
    for (name, value) in [("running_mean", 0.0), ("running_var", 1.0)] {
        parameters.push(Parameter {
            trained: false,
            ..trained(key, name, vec![width], Init::Constant(value))
        });
    }
    parameters
}

/// A trained parameter.
pub fn trained(key: &str, name: &str, shape: Vec<usize>, init: Init) -> Parameter {
    Parameter {
        name: format!("{key}.{name}"),
        shape,
        init,
        trained: true,
    }
}

/// xWᵀ + b over the last axis.
pub fn linear(x: Tensor<3>, live: &Live<'_>, key: &str) -> Tensor<3> {
    let weight: Tensor<2> = live.get(&format!("{key}.weight"));
    let bias: Tensor<1> = live.get(&format!("{key}.bias"));
    affine(x, weight, bias)
}

/// xWᵀ + b over the last axis; `weight` is (outputs, inputs).
pub fn affine(x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<3> {
    let ([batch, positions, inputs], [outputs, _]) = (x.dims(), weight.dims());
    let y = x
        .reshape([batch * positions, inputs])
        .matmul(weight.transpose());
    (y + bias.reshape([1, outputs])).reshape([batch, positions, outputs])
}

/// LayerNorm over the last axis.
pub fn layer_norm(x: Tensor<3>, live: &Live<'_>, key: &str) -> Tensor<3> {
    let width = x.dims()[2];
    let weight: Tensor<1> = live.get(&format!("{key}.weight"));
    let bias: Tensor<1> = live.get(&format!("{key}.bias"));
    let centred = x.clone() - x.mean_dim(2);
    let variance = (centred.clone() * centred.clone()).mean_dim(2);
    centred / (variance + EPSILON).sqrt() * weight.reshape([1, 1, width])
        + bias.reshape([1, 1, width])
}

/// BatchNorm of (batch, channel, row, column): by the batch's own statistics in training, which then enter the running
/// ones with the unbiased variance as in PyTorch, else by the running ones.
pub fn batch_norm(x: Tensor<4>, live: &Live<'_>, pass: &mut Pass, key: &str) -> Tensor<4> {
    let [batch, channels, rows, columns] = x.dims();
    let shape = [1, channels, 1, 1];
    let of = |name: &str| -> Tensor<1> { live.get(&format!("{key}.{name}")) };
    let (mean, variance) = if pass.rng.is_some() {
        let over = |x: Tensor<4>| x.mean_dim(0).mean_dim(2).mean_dim(3);
        let mean = over(x.clone());
        let centred = x.clone() - mean.clone();
        let variance = over(centred.clone() * centred);
        let count = (batch * rows * columns) as f64;
        let unbiased = count / (count - 1.0).max(1.0);
        for (name, new) in [
            ("running_mean", mean.clone()),
            ("running_var", variance.clone() * unbiased),
        ] {
            let old = of(name).inner();
            let new = new.inner().reshape([channels]);
            let running = old * (1.0 - MOMENTUM) + new * MOMENTUM;
            pass.statistics.push((format!("{key}.{name}"), running));
        }
        (mean, variance)
    } else {
        (
            of("running_mean").reshape(shape),
            of("running_var").reshape(shape),
        )
    };
    (x - mean) / (variance + EPSILON).sqrt() * of("weight").reshape(shape)
        + of("bias").reshape(shape)
}
