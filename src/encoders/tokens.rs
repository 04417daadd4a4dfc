//! The remaining operations of transformers, and the names and initialisation that their layers share.

use burn::tensor::Tensor;

use super::host_token;
use super::layers::{Conv2d, ConvConfig, Placement};
use super::linear::LinearOp;
use super::value::Value;
use super::weights::{Init, Parameter, Weights};
use super::windows::{from_host, give_back, on_host};
use crate::Result;

/// Standard deviation of untrained projections, in all originals here.
pub const INIT_STD: f64 = 0.02;

/// timm and PyTorch cut the normal distribution of untrained weights off at ±2, not at two standard
/// deviations.
pub const INIT_BOUND: f64 = 2.0;

impl Value {
    /// x·Φ(x), with the distribution function Φ of the standard normal (GELU without approximation).
    pub fn gelu(self) -> Self {
        self.nonlinearly(gelu, |x| LinearOp::Diagonal(gelu_derivative(x)))
    }

    /// The sum with a constant that is the same for every item of the batch: its derivative is 0.
    pub fn plus(self, constant: &Tensor<4>) -> Self {
        self.unchanged(|x| x + constant.clone())
    }
}

fn gelu(x: Tensor<4>) -> Tensor<4> {
    if let Some(host) = on_host(&x) {
        let y = host_token::gelu(host.storage());
        drop(host);
        let dims = x.dims();
        give_back(x);
        return from_host(y, dims);
    }
    x.clone() * distribution(&x)
}

/// Φ(x).
fn distribution(x: &Tensor<4>) -> Tensor<4> {
    (x.clone() * std::f64::consts::FRAC_1_SQRT_2).erf() * 0.5 + 0.5
}

/// Φ(x) + x·φ(x). Burn's own derivative of GELU is that of the approximation by tanh.
fn gelu_derivative(x: Tensor<4>) -> Tensor<4> {
    if let Some(host) = on_host(&x) {
        return from_host(host_token::gelu_derivative(host.storage()), x.dims());
    }
    let bell = (x.clone() * x.clone() * -0.5).exp();
    let density = bell * (0.5 * std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2);
    distribution(&x) + x * density
}

/// The weight and, where there is one, the bias of an affine map of channels: weights normal with
/// [`INIT_STD`], bias 0.
pub fn projection_parameters(
    key: &str,
    [inputs, outputs]: [usize; 2],
    bias: bool,
) -> Vec<Parameter> {
    let weight = Parameter {
        name: format!("{key}.weight"),
        shape: vec![outputs, inputs],
        init: Init::TruncatedNormal {
            std: INIT_STD,
            bound: INIT_BOUND,
        },
        trained: true,
    };
    let bias = bias.then(|| Parameter {
        name: format!("{key}.bias"),
        shape: vec![outputs],
        init: Init::Constant(0.0),
        trained: true,
    });
    std::iter::once(weight).chain(bias).collect()
}

/// Weight and bias of a convolution that cuts an image into patches, with PyTorch's initialisation of
/// convolutions: uniform within 1/√(values of a patch).
pub fn patch_parameters(key: &str, inputs: usize, outputs: usize, side: usize) -> [Parameter; 2] {
    let bound = 1.0 / ((inputs * side * side) as f64).sqrt();
    [
        ("weight", vec![outputs, inputs, side, side]),
        ("bias", vec![outputs]),
    ]
    .map(|(name, shape)| Parameter {
        name: format!("{key}.{name}"),
        shape,
        init: Init::Uniform { bound },
        trained: true,
    })
}

/// An affine map of channels with parameters `{key}.weight` and `{key}.bias`.
///
/// # Errors
///
/// As [`Weights::take`].
pub fn projection(
    weights: &mut Weights<'_>,
    key: &str,
    [inputs, outputs]: [usize; 2],
    at: &Placement,
) -> Result<Conv2d> {
    Conv2d::load(weights, key, ConvConfig::pointwise(inputs, outputs), at)
}

/// The same followed by one factor for each output (layer scale), which is multiplied into weight and bias
/// in double precision.
///
/// # Errors
///
/// As [`Weights::take`].
pub fn scaled_projection(
    weights: &mut Weights<'_>,
    key: &str,
    [inputs, outputs]: [usize; 2],
    factors: Option<&str>,
    at: &Placement,
) -> Result<Conv2d> {
    let Some(factors) = factors else {
        return projection(weights, key, [inputs, outputs], at);
    };
    let mut weight = weights.take(&format!("{key}.weight"))?;
    let mut bias = weights.take(&format!("{key}.bias"))?;
    let factors = weights.take(factors)?;
    let rows = weight.chunks_exact_mut(inputs).zip(&mut bias);
    for ((row, bias), factor) in rows.zip(factors) {
        row.iter_mut().for_each(|weight| *weight *= factor);
        *bias *= factor;
    }
    let config = ConvConfig::pointwise(inputs, outputs);
    Ok(Conv2d::new(config, weight, bias, at))
}
