//! Layers before they have weights: names in weight files, shapes, and the values they begin with.

use super::host_conv::Activation;
use super::layers::{BatchNorm, Conv2d, ConvConfig, Linear, Placement};
use super::weights::{Init, Parameter, Weights};
use crate::Result;

/// A convolution, its bias where it has one, and the BatchNorm directly after it where there is one.
#[derive(Clone, Debug)]
pub struct ConvPlan {
    /// Prefix of its weight and bias.
    pub key: String,
    /// Its shape.
    pub config: ConvConfig,
    /// Distribution of the weight in an untrained network.
    pub init: Init,
    /// Distribution of the bias in an untrained network; `None` for a convolution without bias.
    pub bias: Option<Init>,
    /// The BatchNorm after it.
    pub norm: Option<BatchNorm>,
}

impl ConvPlan {
    /// A convolution without bias and with the BatchNorm `norm` after it.
    pub fn with_norm(key: String, config: ConvConfig, init: Init, norm: BatchNorm) -> Self {
        Self {
            key,
            config,
            init,
            bias: None,
            norm: Some(norm),
        }
    }

    /// Its tensors in the order of the original libraries.
    pub fn parameters(&self) -> Vec<Parameter> {
        let shape = self.config.weight_shape().to_vec();
        let mut parameters = vec![trained(&self.key, "weight", shape, self.init)];
        if let Some(init) = self.bias {
            parameters.push(trained(&self.key, "bias", vec![self.config.outputs], init));
        }
        if let Some(norm) = &self.norm {
            parameters.extend(norm.parameters());
        }
        parameters
    }

    /// The layer, into which the BatchNorm is folded: `w ← w·s`, `b ← b·s + β − μ·s` with
    /// `s = γ/√(σ²+ε)`.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Weights`] where a value is not finite.
    pub fn load(&self, weights: &mut Weights<'_>, at: &Placement) -> Result<Conv2d> {
        let mut weight = weights.take(&format!("{}.weight", self.key))?;
        let mut bias = match self.bias {
            Some(_) => weights.take(&format!("{}.bias", self.key))?,
            None => vec![0.0; self.config.outputs],
        };
        if let Some(norm) = &self.norm {
            let (scale, shift) = norm.load(weights)?;
            for (row, factor) in weight.chunks_exact_mut(self.config.fan_in()).zip(&scale) {
                row.iter_mut().for_each(|w| *w *= factor);
            }
            for (bias, (scale, shift)) in bias.iter_mut().zip(scale.iter().zip(&shift)) {
                *bias = *bias * scale + shift;
            }
        }
        Ok(Conv2d::new(self.config, weight, bias, at))
    }
}

/// The convolutions of a residual block's branch, with `activation` after each but the last, which is
/// linear.
///
/// # Errors
///
/// As [`ConvPlan::load`].
pub fn load_branch(
    plans: &[ConvPlan],
    activation: Activation,
    weights: &mut Weights<'_>,
    at: &Placement,
) -> Result<Vec<Conv2d>> {
    let layers = plans.iter().enumerate().map(|(index, plan)| {
        let is_last = index + 1 == plans.len();
        let activation = if is_last {
            Activation::None
        } else {
            activation
        };
        Ok(plan.load(weights, at)?.then(activation))
    });
    layers.collect()
}

/// An affine map of vectors.
#[derive(Clone, Debug)]
pub struct LinearPlan {
    /// Prefix of its weight and bias.
    pub key: String,
    /// Inputs and outputs.
    pub shape: [usize; 2],
    /// Distribution of the weight in an untrained network.
    pub init: Init,
    /// Distribution of the bias in an untrained network.
    pub bias: Init,
}

impl LinearPlan {
    /// Its tensors in the order of the original libraries.
    pub fn parameters(&self) -> Vec<Parameter> {
        let [inputs, outputs] = self.shape;
        vec![
            trained(&self.key, "weight", vec![outputs, inputs], self.init),
            trained(&self.key, "bias", vec![outputs], self.bias),
        ]
    }

    /// The layer.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Weights`] where a value is not finite.
    pub fn load(&self, weights: &mut Weights<'_>, at: &Placement) -> Result<Linear> {
        Linear::load(weights, &self.key, self.shape, at)
    }
}

fn trained(key: &str, name: &str, shape: Vec<usize>, init: Init) -> Parameter {
    Parameter {
        name: format!("{key}.{name}"),
        shape,
        init,
        trained: true,
    }
}

/// Normal with variance 2 / (kernel² · outputs): He et al. 2015, PyTorch's
/// `kaiming_normal_(mode="fan_out", nonlinearity="relu")`.
pub fn he_fan_out(conv: &ConvConfig) -> Init {
    let fan_out = conv.kernel * conv.kernel * conv.outputs;
    Init::Normal {
        std: (2.0 / fan_out as f64).sqrt(),
    }
}

/// Uniform within 1/√fan-in: what PyTorch gives weights and biases of `Conv2d` and `Linear` by itself.
pub fn torch_default(fan_in: usize) -> Init {
    Init::Uniform {
        bound: 1.0 / (fan_in as f64).sqrt(),
    }
}
