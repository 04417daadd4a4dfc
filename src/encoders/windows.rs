//! What is computed over windows of an image, on any device: convolutions, forward and transposed, and
//! maxima.
//!
//! On the CPU device in single precision they are those of [`super::host_conv`] and
//! [`super::host_pool`], elsewhere Burn's own.

use burn::backend::Flex;
use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use burn::tensor::ops::{ConvOptions, ConvTransposeOptions, MaxPoolOptions};
use burn::tensor::{DType, Tensor, TensorData, activation, module};

use super::host_conv::{self, Activation, ConvShape};
use super::host_pool::{self, PoolShape};

/// A convolution followed by an activation; `bias` is left out for tangents.
pub fn conv2d(
    x: Tensor<4>,
    weight: &Tensor<4>,
    bias: Option<&Tensor<1>>,
    options: &ConvOptions<2>,
    activation: Activation,
) -> Tensor<4> {
    let [_, _, rows, cols] = x.dims();
    let shape = conv_shape(x.dims()[0], weight, options, [rows, cols]);
    if let Some(shape) = shape
        && let (Some(x), Some(weight)) = (on_host(&x), on_host(weight))
        && let Some(bias) = bias.map_or(Some(None), |bias| on_host(bias).map(Some))
    {
        let bias = bias.as_ref().map(FlexTensor::storage);
        let y = host_conv::conv2d(x.storage(), weight.storage(), bias, &shape, activation);
        let dims = [
            shape.batch,
            shape.channels_out,
            shape.output[0],
            shape.output[1],
        ];
        return from_host(y, dims);
    }
    let y = if is_pointwise(weight, options) {
        pointwise(x, weight, bias)
    } else {
        module::conv2d(x, weight.clone(), bias.cloned(), options.clone())
    };
    match activation {
        Activation::None => y,
        Activation::Relu => activation::relu(y),
        Activation::Relu6 => y.clamp(0.0, 6.0),
    }
}

fn is_pointwise(weight: &Tensor<4>, options: &ConvOptions<2>) -> bool {
    let [_, _, rows, cols] = weight.dims();
    [rows, cols] == [1, 1]
        && options.stride == [1, 1]
        && options.padding == [(0, 0), (0, 0)]
        && options.groups == 1
}

/// A 1×1 convolution as one product of matrices, which every device does well.
fn pointwise(x: Tensor<4>, weight: &Tensor<4>, bias: Option<&Tensor<1>>) -> Tensor<4> {
    let ([batch, inputs, rows, cols], [outputs, ..]) = (x.dims(), weight.dims());
    let weight = weight.clone().reshape([1, outputs, inputs]);
    let y = weight.matmul(x.reshape([batch, inputs, rows * cols]));
    let y = y.reshape([batch, outputs, rows, cols]);
    match bias {
        Some(bias) => y + bias.clone().reshape([1, outputs, 1, 1]),
        None => y,
    }
}

/// Maximum over square windows without padding; a last window that reaches beyond the edge counts
/// (ceil mode).
pub fn max_pool2d(x: Tensor<4>, kernel: usize, stride: usize) -> Tensor<4> {
    let [batch, channels, rows, cols] = x.dims();
    if let Some(x) = on_host(&x) {
        let shape = PoolShape::new([rows, cols], kernel, stride);
        let y = host_pool::max_pool2d(x.storage(), &shape);
        return from_host(y, [batch, channels, shape.output[0], shape.output[1]]);
    }
    module::max_pool2d(x, pool_options(kernel, stride))
}

/// Options of [`max_pool2d`] as Burn takes them.
pub fn pool_options(kernel: usize, stride: usize) -> MaxPoolOptions<2> {
    MaxPoolOptions::new([kernel; 2])
        .with_stride([stride; 2])
        .with_ceil_mode(true)
}

/// The shapes of a convolution that [`host_conv`] knows; `None` for others.
fn conv_shape(
    batch: usize,
    weight: &Tensor<4>,
    options: &ConvOptions<2>,
    input: [usize; 2],
) -> Option<ConvShape> {
    let [channels_out, inputs_of_group, rows, cols] = weight.dims();
    let kernel = [rows, cols];
    let output = [0, 1].map(|i| {
        let (before, after) = options.padding[i];
        (input[i] + before + after - kernel[i]) / options.stride[i] + 1
    });
    let shape = ConvShape {
        batch,
        channels_in: inputs_of_group * options.groups,
        channels_out,
        input,
        output,
        kernel,
        stride: options.stride,
        padding: options.padding_begin(),
        groups: options.groups,
    };
    (options.dilation == [1, 1] && shape.is_supported()).then_some(shape)
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

/// A single-precision tensor on the CPU device.
pub(super) fn from_host(values: Vec<f32>, dims: [usize; 4]) -> Tensor<4> {
    let tensor = FlexTensor::from_data(TensorData::new(values, dims));
    Tensor::from_primitive::<Flex>(tensor)
}

/// The transpose of [`conv2d`] without bias: from cotangents of its output to cotangents of its
/// input, which has `input` rows and columns.
pub fn conv2d_transposed(
    cotangent: Tensor<4>,
    weight: &Tensor<4>,
    options: &ConvOptions<2>,
    input: [usize; 2],
) -> Tensor<4> {
    let shape = conv_shape(cotangent.dims()[0], weight, options, input);
    if let Some(shape) = shape
        && shape.has_transpose()
        && let (Some(v), Some(weight)) = (on_host(&cotangent), on_host(weight))
    {
        let values = host_conv::conv2d_transposed(v.storage(), weight.storage(), &shape);
        return from_host(values, [shape.batch, shape.channels_in, input[0], input[1]]);
    }
    let [_, _, rows, cols] = weight.dims();
    let kernel = [rows, cols];
    let inside = (0..2).all(|i| {
        let (before, after) = options.padding[i];
        before < kernel[i] && after < kernel[i]
    });
    if options.stride == [1, 1] && inside {
        // Again a convolution: by the mirrored kernel with inputs and outputs exchanged.
        let padding = [0, 1].map(|i| {
            let (before, after) = options.padding[i];
            (kernel[i] - 1 - before, kernel[i] - 1 - after)
        });
        let options = ConvOptions::new_with_padding([1; 2], padding, [1; 2], options.groups);
        return conv2d(
            cotangent,
            &mirrored(weight, options.groups),
            None,
            &options,
            Activation::None,
        );
    }
    let [_, _, rows, cols] = cotangent.dims();
    let output = [rows, cols];
    // What the strided windows leave over at the end of the padded input.
    let rest = [0, 1].map(|i| {
        let (before, after) = options.padding[i];
        input[i] + before + after - ((output[i] - 1) * options.stride[i] + kernel[i])
    });
    let transposed =
        ConvTransposeOptions::new(options.stride, [0; 2], rest, [1; 2], options.groups);
    let padded = module::conv_transpose2d(cotangent, weight.clone(), None, transposed);
    let [(top, _), (left, _)] = options.padding;
    padded.narrow(2, top, input[0]).narrow(3, left, input[1])
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
