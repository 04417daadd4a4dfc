//! Frozen layers: plain tensors with the arithmetic of a layer, forward and transposed.
//!
//! A frozen encoder trains nothing, so its layers are not burn modules. BatchNorm is folded into the
//! convolution before it, in f64, when the layer is loaded, see [`super::plans`].

use std::sync::Arc;

use burn::tensor::{Device, FloatDType, Tensor, TensorCreationOptions, TensorData};

use super::host_conv::Activation;
use super::weights::{Init, Parameter, Weights};
use super::windows::{Kernel, Margins};
use crate::Result;

/// Where an encoder's tensors live and in which floating-point format.
#[derive(Clone, Debug)]
pub struct Placement {
    /// The compute device.
    pub device: Device,
    /// f32 for use, f64 for reference values on the CPU.
    pub dtype: FloatDType,
}

impl Placement {
    /// Single precision on `device`.
    pub fn f32(device: &Device) -> Self {
        Self {
            device: device.clone(),
            dtype: FloatDType::F32,
        }
    }

    /// Double precision on `device`; only the CPU offers it everywhere.
    pub fn f64(device: &Device) -> Self {
        Self {
            device: device.clone(),
            dtype: FloatDType::F64,
        }
    }

    /// Options for the creation of a tensor here.
    pub fn options(&self) -> TensorCreationOptions {
        TensorCreationOptions::new(self.device.clone()).with_dtype(self.dtype.into())
    }

    /// A tensor of `shape` holding `values`, row after row.
    pub fn tensor<const D: usize>(&self, values: Vec<f64>, shape: [usize; D]) -> Tensor<D> {
        Tensor::from_data(TensorData::new(values, shape), self.options())
    }
}

/// Zeros around a convolution's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// The same number on every side.
    Symmetric(usize),
    /// TensorFlow's `SAME`: the output side is ⌈input / stride⌉; an odd number of zeros puts the
    /// extra one below and to the right.
    Same,
}

impl Padding {
    /// Zeros before and after an input of length `input`.
    pub fn around(self, input: usize, kernel: usize, stride: usize) -> (usize, usize) {
        match self {
            Self::Symmetric(zeros) => (zeros, zeros),
            Self::Same => {
                let output = input.div_ceil(stride);
                let total = ((output - 1) * stride + kernel).saturating_sub(input);
                (total / 2, total - total / 2)
            }
        }
    }
}

/// Shape of a two-dimensional convolution with square kernel and stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvConfig {
    /// Input channels.
    pub inputs: usize,
    /// Output channels.
    pub outputs: usize,
    /// Side of the kernel.
    pub kernel: usize,
    /// Step in both directions.
    pub stride: usize,
    /// Zeros around the input.
    pub padding: Padding,
    /// 1, or `inputs` for a depthwise convolution.
    pub groups: usize,
}

impl ConvConfig {
    /// A 1×1 convolution.
    pub fn pointwise(inputs: usize, outputs: usize) -> Self {
        let padding = Padding::Symmetric(0);
        Self {
            inputs,
            outputs,
            kernel: 1,
            stride: 1,
            padding,
            groups: 1,
        }
    }

    /// Shape of the weight: output channels, input channels of a group, kernel rows and columns.
    pub fn weight_shape(&self) -> [usize; 4] {
        [
            self.outputs,
            self.inputs / self.groups,
            self.kernel,
            self.kernel,
        ]
    }

    /// Number of weights that meet in one output value.
    pub fn fan_in(&self) -> usize {
        self.inputs / self.groups * self.kernel * self.kernel
    }

    /// Side of the smallest input whose output has side `output`, which is at least 1.
    pub fn smallest_input(&self, output: usize) -> usize {
        let last = (output - 1) * self.stride;
        match self.padding {
            Padding::Symmetric(zeros) => (last + self.kernel).saturating_sub(2 * zeros).max(1),
            Padding::Same => last + 1,
        }
    }

    /// Side of the output for an input of side `input`.
    pub fn output_side(&self, input: usize) -> usize {
        let (before, after) = self.padding.around(input, self.kernel, self.stride);
        (input + before + after - self.kernel) / self.stride + 1
    }
}

/// A convolution with bias and, where set, the activation after it.
#[derive(Clone, Debug)]
pub struct Conv2d {
    config: ConvConfig,
    kernel: Arc<Kernel>,
    bias: Tensor<1>,
    activation: Activation,
}

impl Conv2d {
    /// A convolution with parameters `{key}.weight` and `{key}.bias`.
    pub fn load(
        weights: &mut Weights,
        key: &str,
        config: ConvConfig,
        at: &Placement,
    ) -> Result<Self> {
        Self::load_side_by_side(weights, &[(key, config)], at)
    }

    /// Convolutions of one input with parameters `{key}.weight` and `{key}.bias` each, whose outputs
    /// follow each other. They have one stride and one group, and give the same side.
    pub fn load_side_by_side(
        weights: &mut Weights,
        parts: &[(&str, ConvConfig)],
        at: &Placement,
    ) -> Result<Self> {
        let (mut kernels, mut biases) = (Vec::new(), Vec::new());
        for (key, config) in parts {
            let weight = weights.take(&format!("{key}.weight"))?;
            kernels.push(at.tensor(weight, config.weight_shape()));
            biases.extend(weights.take(&format!("{key}.bias"))?);
        }
        let largest = parts.iter().map(|(_, config)| *config);
        let largest = largest
            .max_by_key(|config| config.kernel)
            .expect("at least one convolution is asked for");
        let config = ConvConfig {
            outputs: biases.len(),
            ..largest
        };
        Ok(Self::side_by_side(config, kernels, biases, at))
    }

    /// A convolution with these values, row after row.
    pub(super) fn new(
        config: ConvConfig,
        weight: Vec<f64>,
        bias: Vec<f64>,
        at: &Placement,
    ) -> Self {
        Self::side_by_side(
            config,
            vec![at.tensor(weight, config.weight_shape())],
            bias,
            at,
        )
    }

    fn side_by_side(
        config: ConvConfig,
        kernels: Vec<Tensor<4>>,
        bias: Vec<f64>,
        at: &Placement,
    ) -> Self {
        let kernel = Kernel::new(kernels, [config.stride; 2], config.groups);
        Self {
            kernel: Arc::new(kernel),
            bias: at.tensor(bias, [config.outputs]),
            config,
            activation: Activation::None,
        }
    }

    /// The same layer with an activation after it.
    pub fn then(self, activation: Activation) -> Self {
        Self { activation, ..self }
    }

    /// The activation after the convolution.
    pub fn activation(&self) -> Activation {
        self.activation
    }

    /// The weights.
    pub fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }

    /// Zeros around an input of these rows and columns.
    pub fn margins(&self, [rows, cols]: [usize; 2]) -> Margins {
        let ConvConfig {
            kernel,
            stride,
            padding,
            ..
        } = self.config;
        [rows, cols].map(|side| padding.around(side, kernel, stride))
    }

    /// The layer's output, (batch, channel, row, column) as its input.
    pub fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let [_, _, rows, cols] = x.dims();
        let margins = self.margins([rows, cols]);
        self.kernel
            .forward(x, Some(&self.bias), margins, self.activation, None)
    }
}

/// Shape and names of a BatchNorm in inference.
#[derive(Clone, Debug)]
pub struct BatchNorm {
    /// Prefix of its four tensors.
    pub key: String,
    /// Channels.
    pub channels: usize,
    /// Added to the variance.
    pub epsilon: f64,
    /// Scale γ in an untrained network.
    pub initial_scale: f64,
}

impl BatchNorm {
    /// PyTorch's own ε.
    pub const TORCH_EPSILON: f64 = 1e-5;

    /// A BatchNorm that begins as the identity, but for ε.
    pub fn new(key: String, channels: usize, epsilon: f64) -> Self {
        Self {
            key,
            channels,
            epsilon,
            initial_scale: 1.0,
        }
    }

    /// The four tensors; in an untrained network the shift is 0 and the statistics are those of unit
    /// variance around 0.
    pub fn parameters(&self) -> [Parameter; 4] {
        let of = |name: &str, value: f64, trained: bool| Parameter {
            name: format!("{}.{name}", self.key),
            shape: vec![self.channels],
            init: Init::Constant(value),
            trained,
        };
        [
            of("weight", self.initial_scale, true),
            of("bias", 0.0, true),
            of("running_mean", 0.0, false),
            of("running_var", 1.0, false),
        ]
    }

    /// Scale and shift per channel that it amounts to.
    pub(super) fn load(&self, weights: &mut Weights) -> Result<(Vec<f64>, Vec<f64>)> {
        let [gamma, beta, mean, variance] = ["weight", "bias", "running_mean", "running_var"]
            .map(|name| format!("{}.{name}", self.key));
        let variance = weights.take(&variance)?;
        let scale: Vec<f64> = weights
            .take(&gamma)?
            .iter()
            .zip(&variance)
            .map(|(gamma, variance)| gamma / (variance + self.epsilon).sqrt())
            .collect();
        let mean = weights.take(&mean)?;
        let shift = weights
            .take(&beta)?
            .iter()
            .zip(mean.iter().zip(&scale))
            .map(|(beta, (mean, scale))| beta - mean * scale)
            .collect();
        Ok((scale, shift))
    }
}

/// A BatchNorm with no convolution directly before it: one scale and one shift a channel.
#[derive(Clone, Debug)]
pub struct ScaleShift {
    /// (1, channel, 1, 1).
    scale: Tensor<4>,
    shift: Tensor<4>,
}

impl ScaleShift {
    /// What the BatchNorm `norm` amounts to.
    pub fn load(weights: &mut Weights<'_>, norm: &BatchNorm, at: &Placement) -> Result<Self> {
        let (scale, shift) = norm.load(weights)?;
        let [scale, shift] = [scale, shift].map(|v| at.tensor(v, [1, norm.channels, 1, 1]));
        Ok(Self { scale, shift })
    }

    /// Scale and shift, each (1, channel, 1, 1).
    pub fn factors(&self) -> [Tensor<4>; 2] {
        [self.scale.clone(), self.shift.clone()]
    }
}

/// An affine map of vectors.
#[derive(Clone, Debug)]
pub struct Linear {
    /// (inputs, outputs).
    weight: Tensor<2>,
    bias: Tensor<1>,
}

impl Linear {
    /// A map with parameters `{key}.weight` (outputs × inputs) and `{key}.bias`.
    pub fn load(
        weights: &mut Weights,
        key: &str,
        [inputs, outputs]: [usize; 2],
        at: &Placement,
    ) -> Result<Self> {
        let weight = weights.tensor(&format!("{key}.weight"), [outputs, inputs], at)?;
        let bias = weights.tensor(&format!("{key}.bias"), [outputs], at)?;
        Ok(Self {
            weight: weight.transpose(),
            bias,
        })
    }

    /// The weight, (inputs, outputs).
    pub fn weight(&self) -> &Tensor<2> {
        &self.weight
    }

    /// The layer's output (batch, outputs, 1, 1) for an input (batch, inputs, 1, 1).
    pub fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let outputs = self.bias.dims()[0];
        matrix(x, &self.weight) + self.bias.clone().reshape([1, outputs, 1, 1])
    }
}

/// Vectors (batch, inputs, 1, 1) times a matrix (inputs, outputs).
pub fn matrix(x: Tensor<4>, weight: &Tensor<2>) -> Tensor<4> {
    let ([batch, inputs, _, _], [_, outputs]) = (x.dims(), weight.dims());
    x.reshape([batch, inputs])
        .matmul(weight.clone())
        .reshape([batch, outputs, 1, 1])
}
