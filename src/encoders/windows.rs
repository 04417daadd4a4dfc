//! What is computed over windows of an image, on any device: convolutions, forward and transposed, and
//! maxima.
//!
//! On the CPU device in single precision they are those of [`super::host_conv`] and
//! [`super::host_pool`], elsewhere Burn's own.

use std::sync::Arc;

use burn::backend::Flex;
use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use burn::tensor::ops::{ConvOptions, ConvTransposeOptions, IndexingUpdateOp, MaxPoolOptions};
use burn::tensor::{DType, Int, Tensor, TensorData, activation, module};

use super::buffers;
use super::host_conv::{Activation, ConvShape, HostKernel, Planes};
use super::host_dense::Finish;
use super::host_pool::{self, PoolConfig, PoolShape};

/// Zeros before and after the rows and the columns of an input.
pub type Margins = [(usize, usize); 2];

/// The weights of a convolution without dilation.
#[derive(Debug)]
pub struct Kernel {
    shape: ConvShape,
    weights: Weights,
}

#[derive(Debug)]
enum Weights {
    Host(HostKernel),
    /// (output channel, input channel of the group, row, column) each.
    Device(Vec<Tensor<4>>),
}

impl Kernel {
    /// One or more kernels (output channel, input channel of the group, row, column) side by side:
    /// all read the same input, smaller ones around the centre of the largest, and their outputs
    /// follow each other. Several have one group and odd sides.
    pub fn new(parts: Vec<Tensor<4>>, stride: [usize; 2], groups: usize) -> Self {
        let dims: Vec<[usize; 4]> = parts.iter().map(Tensor::dims).collect();
        let largest = |axis: usize| dims.iter().map(|dims| dims[axis]).max().unwrap_or(0);
        let shape = ConvShape {
            channels_in: largest(1) * groups,
            channels_out: dims.iter().map(|dims| dims[0]).sum(),
            kernel: [largest(2), largest(3)],
            stride,
            groups,
        };
        let on_host = || {
            parts
                .iter()
                .map(on_host)
                .collect::<Option<Vec<FlexTensor>>>()
        };
        let weights = match shape.is_supported().then(on_host).flatten() {
            Some(parts) => {
                let parts = parts.iter().zip(&dims);
                let parts = parts.map(|(part, dims)| centred(part.storage(), *dims, shape.kernel));
                Weights::Host(HostKernel::new(&parts.collect::<Vec<_>>().concat(), shape))
            }
            None => Weights::Device(parts),
        };
        Self { shape, weights }
    }

    /// factors · act(weight ∗ x + bias) for `x` on the kernel's device and in its format. `bias` and
    /// `factors`, (1, output channel, row, column), may be left out; the latter belong to products
    /// with a derivative.
    pub fn forward(
        &self,
        x: Tensor<4>,
        bias: Option<&Tensor<1>>,
        margins: Margins,
        activation: Activation,
        factors: Option<&Tensor<4>>,
    ) -> Tensor<4> {
        let [batch, _, rows, columns] = x.dims();
        match &self.weights {
            Weights::Host(kernel) => {
                let planes = self.planes(batch, [rows, columns], margins);
                let (x, bias, factors) = (into_host(x), bias.map(host), factors.map(host));
                let finish = Finish {
                    bias: bias.as_ref().map(FlexTensor::storage),
                    range: activation.range(),
                    factors: factors.as_ref().map(FlexTensor::storage),
                };
                let y = kernel.forward(x.storage(), &planes, &finish);
                buffers::give_back(x);
                let [rows, columns] = planes.output;
                from_host(y, [batch, self.shape.channels_out, rows, columns])
            }
            Weights::Device(parts) => {
                let mut first = 0;
                let outputs = parts.iter().map(|part| {
                    let [outputs, _, rows, columns] = part.dims();
                    let bias = bias.map(|bias| bias.clone().narrow(0, first, outputs));
                    first += outputs;
                    let (x, margins) = self.at_centre(x.clone(), margins, [rows, columns]);
                    let options = self.options(margins);
                    conv2d(x, part, bias, options)
                });
                let outputs: Vec<Tensor<4>> = outputs.collect();
                let y = Tensor::cat(outputs, 1);
                let y = match activation {
                    Activation::None => y,
                    Activation::Relu => activation::relu(y),
                    Activation::Relu6 => y.clamp(0.0, 6.0),
                };
                match factors {
                    None => y,
                    Some(factors) => y * factors.clone(),
                }
            }
        }
    }

    /// The transpose of `factors · (weight ∗ x)`: from cotangents of the output to cotangents of the
    /// input, which has `input` rows and columns. The margins before the input are smaller than the
    /// kernel.
    pub fn transposed(
        &self,
        cotangent: Tensor<4>,
        factors: Option<&Tensor<4>>,
        margins: Margins,
        input: [usize; 2],
    ) -> Tensor<4> {
        let batch = cotangent.dims()[0];
        match &self.weights {
            Weights::Host(kernel) => {
                let planes = self.planes(batch, input, margins);
                let (v, factors) = (into_host(cotangent), factors.map(host));
                let factors = factors.as_ref().map(FlexTensor::storage);
                let x = kernel.transposed(v.storage(), factors, &planes);
                buffers::give_back(v);
                from_host(x, [batch, self.shape.channels_in, input[0], input[1]])
            }
            Weights::Device(parts) => {
                let cotangent = match factors {
                    None => cotangent,
                    Some(factors) => cotangent * factors.clone(),
                };
                let mut first = 0;
                let inputs = parts.iter().map(|part| {
                    let outputs = part.dims()[0];
                    let cotangent = cotangent.clone().narrow(1, first, outputs);
                    first += outputs;
                    self.part_transposed(cotangent, part, margins, input)
                });
                inputs
                    .reduce(|sum, part| sum + part)
                    .expect("a kernel has at least one part")
            }
        }
    }

    fn planes(&self, batch: usize, input: [usize; 2], margins: Margins) -> Planes {
        let output = [0, 1].map(|axis| {
            let (before, after) = margins[axis];
            (input[axis] + before + after - self.shape.kernel[axis]) / self.shape.stride[axis] + 1
        });
        Planes {
            batch,
            input,
            output,
            padding: margins.map(|(before, _)| before),
        }
    }

    fn options(&self, margins: Margins) -> ConvOptions<2> {
        ConvOptions::new_with_padding(self.shape.stride, margins, [1; 2], self.shape.groups)
    }

    /// What is left of the margins for a smaller kernel around the centre; where that is less than
    /// nothing, the input loses its border.
    fn at_centre(
        &self,
        x: Tensor<4>,
        margins: Margins,
        kernel: [usize; 2],
    ) -> (Tensor<4>, Margins) {
        let mut x = x;
        let margins = [0, 1].map(|axis| {
            let inset = (self.shape.kernel[axis] - kernel[axis]) / 2;
            let (before, after) = margins[axis];
            let cut = [before, after].map(|margin| inset.saturating_sub(margin));
            if cut != [0, 0] {
                let len = x.dims()[2 + axis] - cut[0] - cut[1];
                x = x.clone().narrow(2 + axis, cut[0], len);
            }
            (before.saturating_sub(inset), after.saturating_sub(inset))
        });
        (x, margins)
    }

    fn part_transposed(
        &self,
        cotangent: Tensor<4>,
        weight: &Tensor<4>,
        margins: Margins,
        input: [usize; 2],
    ) -> Tensor<4> {
        let [_, _, rows, columns] = weight.dims();
        let kernel = [rows, columns];
        let ConvShape { stride, groups, .. } = self.shape;
        let inset = [0, 1].map(|axis| (self.shape.kernel[axis] - kernel[axis]) / 2);
        let inside = (0..2).all(|axis| {
            let (before, after) = margins[axis];
            let least = inset[axis];
            [before, after]
                .iter()
                .all(|margin| (least..kernel[axis] + least).contains(margin))
        });
        if stride == [1, 1] && inside {
            // Again a convolution: by the mirrored kernel with inputs and outputs exchanged.
            let margins = [0, 1].map(|axis| {
                let (before, after) = margins[axis];
                let [before, after] = [before, after].map(|margin| margin - inset[axis]);
                (kernel[axis] - 1 - before, kernel[axis] - 1 - after)
            });
            let options = ConvOptions::new_with_padding([1; 2], margins, [1; 2], groups);
            return conv2d(cotangent, &mirrored(weight, groups), None, options);
        }
        let [_, _, rows, columns] = cotangent.dims();
        let output = [rows, columns];
        // What the strided windows leave over at the end of the padded input, and before it.
        let whole = [0, 1].map(|axis| margins[axis].0 + input[axis] + margins[axis].1);
        let rest = [0, 1].map(|axis| {
            whole[axis] - inset[axis] - ((output[axis] - 1) * stride[axis] + kernel[axis])
        });
        let transposed = ConvTransposeOptions::new(stride, [0; 2], rest, [1; 2], groups);
        let padded = module::conv_transpose2d(cotangent, weight.clone(), None, transposed);
        let mut x = padded;
        for axis in 0..2 {
            let before = margins[axis].0;
            // The padded input begins `before` ahead of the input, the result `inset` behind it.
            x = if before >= inset[axis] {
                x.narrow(2 + axis, before - inset[axis], input[axis])
            } else {
                let lost = inset[axis] - before;
                let mut dims = x.dims();
                dims[2 + axis] = lost;
                let zeros = Tensor::zeros(dims, (&x.device(), x.dtype()));
                let kept = (input[axis] - lost).min(x.dims()[2 + axis]);
                Tensor::cat(vec![zeros, x.narrow(2 + axis, 0, kept)], 2 + axis)
            };
        }
        x
    }
}

/// A convolution by Burn.
fn conv2d(
    x: Tensor<4>,
    weight: &Tensor<4>,
    bias: Option<Tensor<1>>,
    options: ConvOptions<2>,
) -> Tensor<4> {
    let ([batch, inputs, rows, cols], [outputs, .., kernel_rows, kernel_cols]) =
        (x.dims(), weight.dims());
    let pointwise = [kernel_rows, kernel_cols] == [1, 1]
        && options.stride == [1, 1]
        && options.padding == [(0, 0), (0, 0)]
        && options.groups == 1;
    if !pointwise {
        return module::conv2d(x, weight.clone(), bias, options);
    }
    // One product of matrices, which every device does well.
    let weight = weight.clone().reshape([1, outputs, inputs]);
    let y = weight.matmul(x.reshape([batch, inputs, rows * cols]));
    let y = y.reshape([batch, outputs, rows, cols]);
    match bias {
        Some(bias) => y + bias.reshape([1, outputs, 1, 1]),
        None => y,
    }
}

/// The kernels `weight` of shape `dims`, with zeros around them to fill `kernel`.
fn centred(weight: &[f32], dims: [usize; 4], kernel: [usize; 2]) -> Vec<f32> {
    let [outputs, inputs, rows, columns] = dims;
    if [rows, columns] == kernel {
        return weight.to_vec();
    }
    let (top, left) = ((kernel[0] - rows) / 2, (kernel[1] - columns) / 2);
    let mut whole = vec![0.0; outputs * inputs * kernel[0] * kernel[1]];
    let targets = whole.chunks_mut(kernel[0] * kernel[1]);
    for (target, part) in targets.zip(weight.chunks(rows * columns)) {
        for (y, row) in part.chunks(columns).enumerate() {
            target[(top + y) * kernel[1] + left..][..columns].copy_from_slice(row);
        }
    }
    whole
}

/// The kernel turned by 180° with input and output channels of each group exchanged.
fn mirrored(weight: &Tensor<4>, groups: usize) -> Tensor<4> {
    let [outputs, inputs, rows, cols] = weight.dims();
    let exchanged = weight
        .clone()
        .reshape([groups, outputs / groups, inputs, rows, cols])
        .swap_dims(1, 2)
        .reshape([groups * inputs, outputs / groups, rows, cols]);
    if rows * cols == 1 {
        exchanged
    } else {
        exchanged.flip([2, 3])
    }
}

/// Maximum over square windows.
pub fn max_pool2d(x: Tensor<4>, pool: PoolConfig) -> Tensor<4> {
    let [batch, channels, rows, cols] = x.dims();
    if let Some(values) = on_host(&x) {
        drop(x);
        let shape = PoolShape::new([rows, cols], pool);
        let y = host_pool::max_pool2d(values.storage(), &shape);
        buffers::give_back(values);
        return from_host(y, [batch, channels, shape.output[0], shape.output[1]]);
    }
    module::max_pool2d(x, pool_options(pool))
}

/// As [`max_pool2d`] for one image, with the position of each window's largest value, the first of
/// equal ones.
pub fn max_pool2d_with_winners(x: Tensor<4>, pool: PoolConfig) -> (Tensor<4>, Winners) {
    let [_, channels, rows, cols] = x.dims();
    let input = [rows, cols];
    if let Some(x) = on_host(&x) {
        let shape = PoolShape::new(input, pool);
        let (y, positions) = host_pool::max_pool2d_with_winners(x.storage(), &shape);
        let output = shape.output;
        let winners = Winners {
            input,
            output,
            positions: Positions::Host(positions.into()),
        };
        return (from_host(y, [1, channels, output[0], output[1]]), winners);
    }
    let options = pool_options(pool);
    let (y, positions) = module::max_pool2d_with_indices(x, options);
    let [_, channels, rows, cols] = y.dims();
    let winners = Winners {
        input,
        output: [rows, cols],
        positions: Positions::Device(Box::new(positions.reshape([1, channels, rows * cols]))),
    };
    (y, winners)
}

fn pool_options(pool: PoolConfig) -> MaxPoolOptions<2> {
    MaxPoolOptions::new([pool.kernel; 2])
        .with_stride([pool.stride; 2])
        .with_padding([pool.padding; 2])
        .with_ceil_mode(pool.ceil)
}

/// Where each window of an image found its largest value.
#[derive(Clone, Debug)]
pub struct Winners {
    /// Rows and columns of the input.
    input: [usize; 2],
    /// Rows and columns of the output.
    output: [usize; 2],
    positions: Positions,
}

/// Positions in the plane of a channel, for each channel and window.
#[derive(Clone, Debug)]
enum Positions {
    Host(Arc<[u32]>),
    /// (1, channel, window).
    Device(Box<Tensor<3, Int>>),
}

impl Winners {
    /// The values at these positions, for a batch of inputs.
    pub fn select(&self, t: Tensor<4>) -> Tensor<4> {
        let [batch, channels, rows, cols] = t.dims();
        let output = [batch, channels, self.output[0], self.output[1]];
        match &self.positions {
            Positions::Host(positions) => {
                let t = into_host(t);
                let planes = [rows * cols, self.output[0] * self.output[1]];
                let y = host_pool::select(t.storage(), planes, positions);
                buffers::give_back(t);
                from_host(y, output)
            }
            Positions::Device(positions) => {
                let windows = self.output[0] * self.output[1];
                let positions = positions
                    .as_ref()
                    .clone()
                    .expand([batch, channels, windows]);
                t.reshape([batch, channels, rows * cols])
                    .gather(2, positions)
                    .reshape(output)
            }
        }
    }

    /// The transpose of [`Winners::select`]: values brought back to these positions, summed where
    /// windows share one.
    pub fn restore(&self, v: Tensor<4>) -> Tensor<4> {
        let [batch, channels, ..] = v.dims();
        let (plane, windows) = (
            self.input[0] * self.input[1],
            self.output[0] * self.output[1],
        );
        let input = [batch, channels, self.input[0], self.input[1]];
        match &self.positions {
            Positions::Host(positions) => {
                let v = into_host(v);
                let x = host_pool::restore(v.storage(), [plane, windows], positions);
                buffers::give_back(v);
                from_host(x, input)
            }
            Positions::Device(positions) => {
                let positions = positions
                    .as_ref()
                    .clone()
                    .expand([batch, channels, windows]);
                let v_flat = v.clone().reshape([batch, channels, windows]);
                Tensor::zeros([batch, channels, plane], (&v.device(), v.dtype()))
                    .scatter(2, positions, v_flat, IndexingUpdateOp::Add)
                    .reshape(input)
            }
        }
    }
}

/// The values of a single-precision tensor on the CPU device, row after row; `None` elsewhere.
pub(super) fn on_host<const D: usize>(tensor: &Tensor<D>) -> Option<FlexTensor> {
    if tensor.dtype() != DType::F32 {
        return None;
    }
    let mut tensor = tensor.clone().try_into_primitive::<Flex>().ok()?;
    if tensor.layout().start_offset() != 0
        || tensor.bytes().len() != 4 * tensor.shape().num_elements()
    {
        // A view of a larger tensor.
        tensor = FlexTensor::from_data(TensorData::new(
            tensor.to_contiguous().as_slice::<f32>()?.to_vec(),
            tensor.shape(),
        ));
    }
    Some(tensor.to_contiguous())
}

/// The values of a tensor that belongs to a kernel or to winners on the host.
fn host<const D: usize>(tensor: &Tensor<D>) -> FlexTensor {
    on_host(tensor).expect("an encoder's tensors share its device and format")
}

/// As [`host`], for a tensor that is not needed any more: nobody else may hold the values then.
fn into_host<const D: usize>(tensor: Tensor<D>) -> FlexTensor {
    let values = host(&tensor);
    drop(tensor);
    values
}

/// Keeps the memory of a tensor on the CPU device that is not needed any more.
pub(super) fn give_back<const D: usize>(tensor: Tensor<D>) {
    if let Some(values) = on_host(&tensor) {
        drop(tensor);
        buffers::give_back(values);
    }
}

/// A single-precision tensor on the CPU device.
pub(super) fn from_host(values: Vec<f32>, dims: [usize; 4]) -> Tensor<4> {
    let tensor = FlexTensor::from_data(TensorData::new(values, dims));
    Tensor::from_primitive::<Flex>(tensor)
}
