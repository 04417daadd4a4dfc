//! Convolution with bias and activation in one pass, for 32-bit floats on the host.
//!
//! The CPU device spends nearly all of a forward pass in convolutions. Burn's own leave the bias and
//! the activation to further passes over memory, and convert to channels-last for every dense
//! kernel; here each output is finished while it is still in the cache. Matrix products are faer's,
//! threads are rayon's.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

/// Function applied to every output of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// The identity.
    None,
    /// max(x, 0).
    Relu,
    /// min(max(x, 0), 6).
    Relu6,
}

impl Activation {
    /// Smallest and largest value that the activation lets through.
    pub fn range(self) -> (f32, f32) {
        match self {
            Self::None => (f32::NEG_INFINITY, f32::INFINITY),
            Self::Relu => (0.0, f32::INFINITY),
            Self::Relu6 => (0.0, 6.0),
        }
    }
}

/// Shapes of a two-dimensional convolution without dilation; layouts are (batch, channel, row,
/// column) and (output channel, input channel of the group, row, column).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvShape {
    /// Batch size.
    pub batch: usize,
    /// Input channels.
    pub channels_in: usize,
    /// Output channels.
    pub channels_out: usize,
    /// Rows and columns of the input.
    pub input: [usize; 2],
    /// Rows and columns of the output.
    pub output: [usize; 2],
    /// Rows and columns of the kernel.
    pub kernel: [usize; 2],
    /// Steps between outputs, in rows and columns.
    pub stride: [usize; 2],
    /// Rows of zeros above and columns of zeros to the left of the input.
    pub padding: [usize; 2],
    /// Channel groups.
    pub groups: usize,
}

impl ConvShape {
    /// Whether [`conv2d`] has a path for these shapes: dense or depthwise.
    pub fn is_supported(&self) -> bool {
        self.groups == 1 || self.is_depthwise()
    }

    /// Whether [`conv2d_transposed`] has a path for these shapes: less padding than kernel.
    pub fn has_transpose(&self) -> bool {
        self.is_supported() && (0..2).all(|axis| self.padding[axis] < self.kernel[axis])
    }

    fn is_depthwise(&self) -> bool {
        self.groups == self.channels_in && self.groups == self.channels_out
    }

    fn is_pointwise(&self) -> bool {
        self.groups == 1
            && self.kernel == [1, 1]
            && self.stride == [1, 1]
            && self.padding == [0, 0]
            && self.input == self.output
    }

    fn input_plane(&self) -> usize {
        self.input[0] * self.input[1]
    }

    fn output_plane(&self) -> usize {
        self.output[0] * self.output[1]
    }
}

/// Columns of a matrix product finished at a time: with some hundred channels a tile of inputs and
/// outputs stays in a core's second-level cache.
const TILE_COLUMNS: usize = 1024;

/// Below this many outputs a plane, several images share one matrix product: products with few
/// columns run at a third of the speed.
const COLUMNS_MIN: usize = 256;

/// act(weight ∗ x + bias) of shape (batch, channels_out, rows, columns).
///
/// `x`, `weight` and `bias` must have the lengths that `shape` says.
///
/// # Panics
///
/// For a shape that [`ConvShape::is_supported`] denies: no path here computes other groups.
pub fn conv2d(
    x: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    shape: &ConvShape,
    activation: Activation,
) -> Vec<f32> {
    assert!(
        shape.is_supported(),
        "neither a dense nor a depthwise convolution: {shape:?}"
    );
    let mut output = vec![0.0; shape.batch * shape.channels_out * shape.output_plane()];
    if shape.is_depthwise() && shape.groups > 1 {
        depthwise(x, weight, bias, shape, activation, &mut output);
    } else {
        dense(x, weight, bias, shape, activation, &mut output);
    }
    output
}

/// The transpose of the convolution's linear map: Wᵀ·v of shape (batch, channels_in, rows, columns)
/// of the input, for `v` of the output's shape.
pub fn conv2d_transposed(v: &[f32], weight: &[f32], shape: &ConvShape) -> Vec<f32> {
    let transposed = ConvShape {
        batch: shape.batch,
        channels_in: shape.channels_out,
        channels_out: shape.channels_in,
        input: [0, 1].map(|axis| (shape.output[axis] - 1) * shape.stride[axis] + 1),
        output: shape.input,
        kernel: shape.kernel,
        stride: [1, 1],
        padding: [0, 1].map(|axis| shape.kernel[axis] - 1 - shape.padding[axis]),
        groups: shape.groups,
    };
    let weight = transposed_weight(weight, shape);
    if shape.stride == [1, 1] {
        conv2d(v, &weight, None, &transposed, Activation::None)
    } else {
        let spread = spread(v, shape.output, shape.stride, transposed.input);
        conv2d(&spread, &weight, None, &transposed, Activation::None)
    }
}

/// Kernels turned by 180°, input and output channels exchanged within each group.
fn transposed_weight(weight: &[f32], shape: &ConvShape) -> Vec<f32> {
    let elements = shape.kernel[0] * shape.kernel[1];
    let inputs = shape.channels_in / shape.groups;
    let outputs = shape.channels_out / shape.groups;
    let mut transposed = vec![0.0; weight.len()];
    for (index, kernel) in weight.chunks(elements).enumerate() {
        let (channel, input) = (index / inputs, index % inputs);
        let (group, output) = (channel / outputs, channel % outputs);
        let target = &mut transposed[((group * inputs + input) * outputs + output) * elements..];
        for (value, from) in target.iter_mut().zip(kernel.iter().rev()) {
            *value = *from;
        }
    }
    transposed
}

/// Planes of size `from` with `stride − 1` zeros between neighbours, of size `to`.
fn spread(v: &[f32], from: [usize; 2], stride: [usize; 2], to: [usize; 2]) -> Vec<f32> {
    let mut spread = vec![0.0; v.len() / (from[0] * from[1]) * to[0] * to[1]];
    let planes = v
        .par_chunks(from[0] * from[1])
        .zip(spread.par_chunks_mut(to[0] * to[1]));
    planes.for_each(|(plane, target)| {
        let rows = plane
            .chunks(from[1])
            .zip(target.chunks_mut(to[1]).step_by(stride[0]));
        for (row, target) in rows {
            for (value, from) in target.iter_mut().step_by(stride[1]).zip(row) {
                *value = *from;
            }
        }
    });
    spread
}

/// Output channels of a few neighbouring images, to be computed by one thread.
struct Block<'a> {
    first_image: usize,
    first_channel: usize,
    /// All output channels of these images, or some of one image.
    output: &'a mut [f32],
}

/// Dense convolution as a matrix product: directly for 1×1 kernels, else over unfolded patches.
fn dense(
    x: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    shape: &ConvShape,
    activation: Activation,
    output: &mut [f32],
) {
    let plane = shape.output_plane();
    let image_len = shape.channels_in * shape.input_plane();
    let inner = shape.channels_in * shape.kernel[0] * shape.kernel[1];
    let threads = rayon::current_num_threads();
    // Images that share a product, without leaving a thread idle.
    let images = COLUMNS_MIN
        .div_ceil(plane)
        .min(shape.batch / threads)
        .max(1);
    // Fewer images than threads are split by output channels.
    let parts = if shape.batch >= threads {
        1
    } else {
        threads.div_ceil(shape.batch)
    };
    let part_channels = shape.channels_out.div_ceil(parts);
    let blocks: Vec<Block<'_>> = output
        .chunks_mut(images * shape.channels_out * plane)
        .enumerate()
        .flat_map(|(index, output)| {
            let part_len = if parts == 1 {
                output.len()
            } else {
                part_channels * plane
            };
            output
                .chunks_mut(part_len)
                .enumerate()
                .map(move |(part, output)| Block {
                    first_image: index * images,
                    first_channel: part * part_channels,
                    output,
                })
        })
        .collect();
    let (arch, range) = (pulp::Arch::new(), activation.range());
    let finish = |values: &mut [f32], bias| {
        arch.dispatch(Finish {
            values,
            bias,
            range,
        });
    };
    blocks.into_par_iter().for_each_init(
        <(Vec<f32>, Vec<f32>)>::default,
        |(patches, product), block| {
            let images = if parts == 1 {
                block.output.len() / (shape.channels_out * plane)
            } else {
                1
            };
            let channels = block.output.len() / (images * plane);
            let bias = |channel| bias.map_or(0.0, |bias| bias[block.first_channel + channel]);
            let lhs = &weight[block.first_channel * inner..][..channels * inner];
            let lhs = MatRef::from_row_major_slice(lhs, channels, inner);
            let x = &x[block.first_image * image_len..][..images * image_len];
            if images > 1 {
                unfold_images(x, shape, patches);
                let rhs = MatRef::from_row_major_slice(patches, inner, images * plane);
                product.resize(channels * images * plane, 0.0);
                let out = MatMut::from_row_major_slice_mut(product, channels, images * plane);
                matmul(out, Accum::Replace, lhs, rhs, 1.0, Par::Seq);
                for (channel, row) in product.chunks_mut(images * plane).enumerate() {
                    finish(row, bias(channel));
                    for (image, values) in row.chunks(plane).enumerate() {
                        block.output[(image * channels + channel) * plane..][..plane]
                            .copy_from_slice(values);
                    }
                }
                return;
            }
            for start in (0..plane).step_by(TILE_COLUMNS) {
                let columns = TILE_COLUMNS.min(plane - start);
                let out = MatMut::from_row_major_slice_mut(&mut *block.output, channels, plane);
                let out = out.subcols_mut(start, columns);
                let rhs = if shape.is_pointwise() {
                    MatRef::from_row_major_slice(x, inner, plane).subcols(start, columns)
                } else {
                    patches.resize(inner * columns, 0.0);
                    unfold(x, shape, start, columns, |row| row * columns, patches);
                    MatRef::from_row_major_slice(patches.as_slice(), inner, columns)
                };
                matmul(out, Accum::Replace, lhs, rhs, 1.0, Par::Seq);
                for (channel, row) in block.output.chunks_mut(plane).enumerate() {
                    finish(&mut row[start..start + columns], bias(channel));
                }
            }
        },
    );
}

/// The patches of several images side by side, as [`unfold`] writes them for one.
fn unfold_images(x: &[f32], shape: &ConvShape, patches: &mut Vec<f32>) {
    let plane = shape.output_plane();
    let image_len = shape.channels_in * shape.input_plane();
    let inner = shape.channels_in * shape.kernel[0] * shape.kernel[1];
    let images = x.len() / image_len;
    patches.resize(inner * images * plane, 0.0);
    for (index, image) in x.chunks(image_len).enumerate() {
        let row_start = |row| (row * images + index) * plane;
        if shape.is_pointwise() {
            for (row, values) in image.chunks(plane).enumerate() {
                patches[row_start(row)..][..plane].copy_from_slice(values);
            }
        } else {
            unfold(image, shape, 0, plane, row_start, patches);
        }
    }
}

/// Adds the bias and applies the activation.
struct Finish<'a> {
    values: &'a mut [f32],
    bias: f32,
    range: (f32, f32),
}

impl pulp::WithSimd for Finish<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let (low, high) = self.range;
        for value in self.values {
            // Comparisons written so that NaN passes through, as in Burn's own activations.
            let sum = *value + self.bias;
            let sum = if sum < low { low } else { sum };
            *value = if sum > high { high } else { sum };
        }
    }
}

/// `target[i] = source[i · stride]`, for as many as both hold.
fn copy_strided(source: &[f32], stride: usize, target: &mut [f32]) {
    match stride {
        1 => {
            let len = target.len().min(source.len());
            target[..len].copy_from_slice(&source[..len]);
        }
        2 => {
            // In pairs, which the compiler turns into shuffles.
            let pairs = source.chunks_exact(2);
            let last = pairs.remainder().first();
            let odd_one = source.len() / 2;
            if let (Some(value), Some(last)) = (target.get_mut(odd_one), last) {
                *value = *last;
            }
            target
                .iter_mut()
                .zip(pairs)
                .for_each(|(value, pair)| *value = pair[0]);
        }
        _ => {
            let source = source.iter().step_by(stride);
            target
                .iter_mut()
                .zip(source)
                .for_each(|(value, from)| *value = *from);
        }
    }
}

/// Writes the patches under output columns `start..start + columns`: a row for each kernel element
/// (input channel, kernel row, kernel column), which begins in `patches` where `row_start` says.
fn unfold(
    image: &[f32],
    shape: &ConvShape,
    start: usize,
    columns: usize,
    row_start: impl Fn(usize) -> usize,
    patches: &mut [f32],
) {
    let [height, width] = shape.input;
    let [kernel_rows, kernel_columns] = shape.kernel;
    let [stride_rows, stride_columns] = shape.stride;
    let [top, left] = shape.padding;
    let out_width = shape.output[1];
    let mut row = 0;
    for channel in image.chunks(height * width) {
        for ky in 0..kernel_rows {
            for kx in 0..kernel_columns {
                let patches = &mut patches[row_start(row)..][..columns];
                row += 1;
                // Outputs ox with 0 <= ox·stride + kx − left < width read the image, others zeros.
                let first = left.saturating_sub(kx).div_ceil(stride_columns);
                let last = (width + left).saturating_sub(kx).div_ceil(stride_columns);
                // One row of outputs at a time.
                let mut at = 0;
                while at < columns {
                    let (oy, ox) = ((start + at) / out_width, (start + at) % out_width);
                    let run = (out_width - ox).min(columns - at);
                    let target = &mut patches[at..at + run];
                    at += run;
                    let y = (oy * stride_rows + ky)
                        .checked_sub(top)
                        .filter(|y| *y < height);
                    let (first, last) = (first.max(ox).min(ox + run), last.max(ox).min(ox + run));
                    let Some(y) = y.filter(|_| first < last) else {
                        target.fill(0.0);
                        continue;
                    };
                    let source =
                        &image_row(channel, y, width)[first * stride_columns + kx - left..];
                    target[..first - ox].fill(0.0);
                    target[last - ox..].fill(0.0);
                    let target = &mut target[first - ox..last - ox];
                    if stride_columns == 1 {
                        target.copy_from_slice(&source[..target.len()]);
                    } else {
                        for (value, from) in
                            target.iter_mut().zip(source.iter().step_by(stride_columns))
                        {
                            *value = *from;
                        }
                    }
                }
            }
        }
    }
}

fn image_row(channel: &[f32], y: usize, width: usize) -> &[f32] {
    &channel[y * width..][..width]
}

/// Most outputs that [`Accumulate`] holds in registers at a time, whatever the processor.
const LANES: usize = 64;

/// Depthwise convolution. Each padded plane is split by the stride into phases in which
/// neighbouring outputs read neighbouring inputs, and is then treated as one long row: a few outputs
/// between the rows are computed in vain, and every load is contiguous.
fn depthwise(
    x: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    shape: &ConvShape,
    activation: Activation,
    output: &mut [f32],
) {
    let [kernel_rows, kernel_columns] = shape.kernel;
    let [stride_rows, stride_columns] = shape.stride;
    let [out_height, out_width] = shape.output;
    // Rows and columns of one phase, wide enough for the last output's last kernel element.
    let phase_width = out_width + (kernel_columns - 1) / stride_columns;
    let phase_height = out_height + (kernel_rows - 1) / stride_rows;
    // Room for the last block of lanes to read past the end.
    let phase_len = phase_width * phase_height + LANES;
    let flat_len = (out_height - 1) * phase_width + out_width;
    let taps: Vec<usize> = (0..kernel_rows)
        .flat_map(|ky| (0..kernel_columns).map(move |kx| (ky, kx)))
        .map(|(ky, kx)| {
            let phase = (ky % stride_rows) * stride_columns + kx % stride_columns;
            phase * phase_len + (ky / stride_rows) * phase_width + kx / stride_columns
        })
        .collect();
    let scratch = || {
        let phases = vec![0.0; stride_rows * stride_columns * phase_len];
        (phases, vec![0.0; flat_len.next_multiple_of(LANES)])
    };
    let arch = pulp::Arch::new();
    output
        .par_chunks_mut(shape.output_plane())
        .enumerate()
        .for_each_init(scratch, |(phases, flat), (index, plane)| {
            let channel = index % shape.channels_out;
            let source = &x[index * shape.input_plane()..][..shape.input_plane()];
            split_phases(
                source,
                shape,
                [phase_height, phase_width],
                phase_len,
                phases,
            );
            let kernel = &weight[channel * taps.len()..][..taps.len()];
            let bias = bias.map_or(0.0, |bias| bias[channel]);
            let range = activation.range();
            arch.dispatch(Accumulate {
                phases,
                taps: &taps,
                kernel,
                bias,
                range,
                flat,
            });
            for (row, from) in plane.chunks_mut(out_width).zip(flat.chunks(phase_width)) {
                row.copy_from_slice(&from[..out_width]);
            }
        });
}

/// Copies a plane into its phases; the padding around it stays zero from call to call.
fn split_phases(
    source: &[f32],
    shape: &ConvShape,
    [phase_height, phase_width]: [usize; 2],
    phase_len: usize,
    phases: &mut [f32],
) {
    let [stride_rows, stride_columns] = shape.stride;
    let [top, left] = shape.padding;
    for (y, row) in source.chunks(shape.input[1]).enumerate() {
        let (phase_row, line) = ((y + top) % stride_rows, (y + top) / stride_rows);
        if line >= phase_height {
            // Rows below the last kernel element of the last output.
            break;
        }
        let base = phase_row * stride_columns * phase_len + line * phase_width;
        for phase_column in 0..stride_columns {
            // First input column x with (x + left) % stride == phase_column.
            let first = (phase_column + stride_columns - left % stride_columns) % stride_columns;
            let at = (first + left) / stride_columns;
            if at >= phase_width || first >= row.len() {
                continue;
            }
            let target = &mut phases[base + phase_column * phase_len..][at..phase_width];
            copy_strided(&row[first..], stride_columns, target);
        }
    }
}

/// flat[i] = act(bias + Σ kernel[t] · phases[taps[t] + i]), a block of lanes at a time.
struct Accumulate<'a> {
    phases: &'a [f32],
    taps: &'a [usize],
    kernel: &'a [f32],
    bias: f32,
    range: (f32, f32),
    flat: &'a mut [f32],
}

impl pulp::WithSimd for Accumulate<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) {
        let bias = simd.splat_f32s(self.bias);
        let (low, high) = (simd.splat_f32s(self.range.0), simd.splat_f32s(self.range.1));
        let (target, _) = S::as_mut_simd_f32s(self.flat);
        // Four sums, each in a register of its own, hide the latency of the additions.
        for (block, target) in target.chunks_exact_mut(4).enumerate() {
            let start = block * 4 * S::F32_LANES;
            let mut sums = [bias; 4];
            for (tap, weight) in self.taps.iter().zip(self.kernel) {
                let values = &self.phases[tap + start..][..4 * S::F32_LANES];
                let (values, _) = S::as_simd_f32s(values);
                let weight = simd.splat_f32s(*weight);
                if let [a, b, c, d] = values {
                    sums[0] = simd.mul_add_f32s(weight, *a, sums[0]);
                    sums[1] = simd.mul_add_f32s(weight, *b, sums[1]);
                    sums[2] = simd.mul_add_f32s(weight, *c, sums[2]);
                    sums[3] = simd.mul_add_f32s(weight, *d, sums[3]);
                }
            }
            for (value, sum) in target.iter_mut().zip(sums) {
                // Selections keep NaN, which a minimum or maximum may drop.
                let sum = simd.select_f32s(simd.less_than_f32s(sum, low), low, sum);
                *value = simd.select_f32s(simd.less_than_f32s(high, sum), high, sum);
            }
        }
    }
}
