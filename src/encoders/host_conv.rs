//! Convolution with bias and activation in one pass, for 32-bit floats on the host.
//!
//! The CPU device spends nearly all of a forward pass in convolutions. Burn's own leave the bias and
//! the activation to further passes over memory, and convert to channels-last for every dense
//! kernel; here each output is finished while it is still in registers. Kernels are put in order once,
//! for either direction at its first use. Threads are rayon's.

use std::sync::OnceLock;

use rayon::prelude::*;

use super::buffers;
use super::host_dense::{self, Finish, Packed, PackedRows, Sweep};
use super::host_planes::{Phases, PlaceRow, place_row, split_phases};

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
    /// Input channels.
    pub channels_in: usize,
    /// Output channels.
    pub channels_out: usize,
    /// Rows and columns of the kernel.
    pub kernel: [usize; 2],
    /// Steps between outputs, in rows and columns.
    pub stride: [usize; 2],
    /// Channel groups.
    pub groups: usize,
}

impl ConvShape {
    /// Whether there is a path here for these shapes: dense or depthwise.
    pub fn is_supported(&self) -> bool {
        self.groups == 1 || self.is_depthwise()
    }

    fn is_depthwise(&self) -> bool {
        self.groups == self.channels_in && self.groups == self.channels_out
    }
}

/// Where a convolution finds its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planes {
    /// Images.
    pub batch: usize,
    /// Rows and columns of the input.
    pub input: [usize; 2],
    /// Rows and columns of the output.
    pub output: [usize; 2],
    /// Rows of zeros above and columns of zeros to the left of the input; in a transposed convolution
    /// fewer than the kernel has.
    pub padding: [usize; 2],
}

/// The weights of a convolution, in the order in which the processor reads them.
#[derive(Debug)]
pub struct HostKernel {
    shape: ConvShape,
    weights: Weights,
}

#[derive(Debug)]
enum Weights {
    Dense {
        forward: Packed,
        transposed: OnceLock<Packed>,
    },
    /// One small kernel a channel.
    Depthwise(Vec<f32>),
}

impl HostKernel {
    /// Puts the weights (output channel, input channel of the group, row, column) in order.
    ///
    /// # Panics
    ///
    /// For a shape that [`ConvShape::is_supported`] denies: no path here computes other groups.
    pub fn new(weight: &[f32], shape: ConvShape) -> Self {
        assert!(
            shape.is_supported(),
            "neither a dense nor a depthwise convolution: {shape:?}"
        );
        let weights = if shape.groups > 1 {
            Weights::Depthwise(weight.to_vec())
        } else {
            Weights::Dense {
                forward: Packed::new(weight, shape.channels_out, shape.channels_in, shape.kernel),
                transposed: OnceLock::new(),
            }
        };
        Self { shape, weights }
    }

    /// What it was made for.
    pub fn shape(&self) -> &ConvShape {
        &self.shape
    }

    /// weight ∗ x, finished, of shape (batch, channels_out, rows, columns).
    pub fn forward(&self, x: &[f32], planes: &Planes, finish: &Finish<'_>) -> Vec<f32> {
        let Planes {
            batch,
            input,
            output,
            padding,
        } = *planes;
        let mut y = buffers::take(batch * self.shape.channels_out * output[0] * output[1]);
        let sweep = Sweep {
            batch,
            input,
            padding,
            stride: self.shape.stride,
            positions: output,
            output,
            spread: [1, 1],
            skip: [0, 0],
        };
        match &self.weights {
            Weights::Dense { forward, .. } => {
                host_dense::sweep(x, None, forward, &sweep, finish, &mut y);
            }
            Weights::Depthwise(weight) => {
                let kernel = (weight.as_slice(), self.shape.kernel);
                let parts = [forward_part(self.shape.kernel)];
                depthwise(x, None, kernel, &parts, &sweep, finish, &mut y);
            }
        }
        y
    }

    /// The transpose of the convolution's linear map: Wᵀ·(factors·v) of shape (batch, channels_in,
    /// rows, columns) of the input, for `v` of the output's shape and, where given, one factor for
    /// each output value of an image.
    pub fn transposed(&self, v: &[f32], factors: Option<&[f32]>, planes: &Planes) -> Vec<f32> {
        let ConvShape { kernel, stride, .. } = self.shape;
        // Input row y has y + padding = stride·q + p: rows of equal p are one correlation over q,
        // with every stride-th row of the kernel, and q is counted from the first that is needed.
        let first = [0, 1].map(|axis| planes.padding[axis] / stride[axis]);
        let sweep = Sweep {
            batch: planes.batch,
            input: planes.output,
            padding: [0, 1].map(|axis| kernel[axis].div_ceil(stride[axis]) - 1 - first[axis]),
            stride: [1, 1],
            positions: [0, 1].map(|axis| {
                (planes.input[axis] - 1 + planes.padding[axis]) / stride[axis] + 1 - first[axis]
            }),
            output: planes.input,
            spread: stride,
            skip: [0, 1].map(|axis| planes.padding[axis] % stride[axis]),
        };
        let finish = Finish {
            bias: None,
            range: Activation::None.range(),
            factors: None,
        };
        let len = planes.batch * self.shape.channels_in * planes.input[0] * planes.input[1];
        let mut x = buffers::take(len);
        match &self.weights {
            Weights::Dense {
                forward,
                transposed,
            } => {
                let packed = transposed.get_or_init(|| transpose(&forward.unpacked(), &self.shape));
                host_dense::sweep(v, factors, packed, &sweep, &finish, &mut x);
            }
            Weights::Depthwise(weight) => {
                let kernel = (weight.as_slice(), kernel);
                let parts = transposed_parts(&self.shape);
                depthwise(v, factors, kernel, &parts, &sweep, &finish, &mut x);
            }
        }
        x
    }
}

/// Kernels that give the input's rows and columns of each remainder by the stride, elements in reverse order. The
/// remainders of row and column are the places of [`PackedRows`], the input's channels its channels.
fn transpose(weight: &[f32], shape: &ConvShape) -> Packed {
    let [rows, columns] = shape.kernel;
    let [stride_y, stride_x] = shape.stride;
    let taps = [rows.div_ceil(stride_y), columns.div_ceil(stride_x)];
    let row_len = shape.channels_out * taps[0] * taps[1];
    let places = stride_y * stride_x;
    let outputs = shape.channels_in * places;
    let packed_rows = PackedRows::new(shape.channels_in, places);
    let mut transposed = vec![0.0; outputs * row_len];
    let targets = transposed.par_chunks_mut(row_len.max(1)).enumerate();
    targets.for_each(|(row, target)| {
        let (input, place) = packed_rows.of(row);
        for output in 0..shape.channels_out {
            let start = (output * shape.channels_in + input) * rows * columns;
            let kernel = &weight[start..start + rows * columns];
            for (at, value) in kernel.iter().enumerate() {
                let (ky, kx) = (at / columns, at % columns);
                if ky % stride_y * stride_x + kx % stride_x == place {
                    let (ty, tx) = (taps[0] - 1 - ky / stride_y, taps[1] - 1 - kx / stride_x);
                    target[(output * taps[0] + ty) * taps[1] + tx] = *value;
                }
            }
        }
    });
    Packed::new(&transposed, outputs, shape.channels_out, taps)
}

/// Most outputs that [`Accumulate`] holds in registers at a time, whatever the processor.
const LANES: usize = 64;

/// Some elements of a depthwise kernel, and the outputs of a position that they make.
struct Part {
    /// Row and column of the output among those that a position fills.
    place: [usize; 2],
    /// Index of each element in the kernel.
    elements: Vec<usize>,
    /// Row and column of each element's input, seen from the position.
    inputs: Vec<[usize; 2]>,
}

/// All elements of a kernel, for one output a position.
fn forward_part([rows, columns]: [usize; 2]) -> Part {
    Part {
        place: [0, 0],
        elements: (0..rows * columns).collect(),
        inputs: (0..rows * columns)
            .map(|element| [element / columns, element % columns])
            .collect(),
    }
}

/// The elements that give the rows and columns of each remainder by the stride, in reverse order.
fn transposed_parts(shape: &ConvShape) -> Vec<Part> {
    let ConvShape { kernel, stride, .. } = shape;
    let places = (0..stride[0]).flat_map(|y| (0..stride[1]).map(move |x| [y, x]));
    let part = |place: [usize; 2]| {
        let elements: Vec<usize> = (0..kernel[0] * kernel[1])
            .filter(|element| {
                element / kernel[1] % stride[0] == place[0]
                    && element % kernel[1] % stride[1] == place[1]
            })
            .collect();
        let last = [0, 1].map(|axis| kernel[axis].div_ceil(stride[axis]) - 1);
        let input = |element: &usize| {
            let at = [element / kernel[1], element % kernel[1]];
            [0, 1].map(|axis| last[axis] - at[axis] / stride[axis])
        };
        Part {
            place,
            inputs: elements.iter().map(input).collect(),
            elements,
        }
    };
    places.map(part).collect()
}

/// The sums of one channel's kernel over its plane. As in a dense sweep each padded plane is split by
/// the stride and treated as one long row.
fn depthwise(
    x: &[f32],
    source_factors: Option<&[f32]>,
    (weight, kernel): (&[f32], [usize; 2]),
    parts: &[Part],
    sweep: &Sweep,
    finish: &Finish<'_>,
    output: &mut [f32],
) {
    let [stride_y, stride_x] = sweep.stride;
    let [height, width] = sweep.positions;
    let input_plane = sweep.input[0] * sweep.input[1];
    let output_plane = sweep.output[0] * sweep.output[1];
    let channels = x.len() / (sweep.batch * input_plane);
    // Rows and columns of one phase, wide enough for the last position's last kernel element.
    let reach = |axis: usize| {
        let inputs = parts.iter().flat_map(|part| &part.inputs);
        inputs
            .map(|input| input[axis] / sweep.stride[axis])
            .max()
            .unwrap_or(0)
    };
    let phase = [height + reach(0), width + reach(1)];
    // Room for the last block of lanes to read past the end.
    let distance = phase[0] * phase[1] + LANES;
    let flat_len = ((height - 1) * phase[1] + width).next_multiple_of(LANES);
    let offset = |[y, x]: &[usize; 2]| {
        let phases = (y % stride_y) * stride_x + x % stride_x;
        phases * distance + (y / stride_y) * phase[1] + x / stride_x
    };
    let taps: Vec<Vec<usize>> = parts
        .iter()
        .map(|part| part.inputs.iter().map(offset).collect())
        .collect();
    let phases_of = Phases {
        columns: sweep.input[1],
        padding: sweep.padding,
        stride: sweep.stride,
        phase,
        distance,
    };
    let scratch = || {
        (
            vec![0.0; stride_y * stride_x * distance],
            vec![0.0; flat_len],
        )
    };
    let elements = kernel[0] * kernel[1];
    let arch = pulp::Arch::new();
    output
        .par_chunks_mut(output_plane)
        .enumerate()
        .for_each_init(scratch, |(phases, flat), (index, plane)| {
            let channel = index % channels;
            let source = &x[index * input_plane..][..input_plane];
            let factors = source_factors.map(|all| &all[channel * input_plane..][..input_plane]);
            split_phases(source, factors, &phases_of, phases);
            let weight = &weight[channel * elements..][..elements];
            for (part, taps) in parts.iter().zip(&taps) {
                arch.dispatch(Accumulate {
                    phases,
                    taps,
                    elements: &part.elements,
                    kernel: weight,
                    bias: finish.bias.map_or(0.0, |bias| bias[channel]),
                    range: finish.range,
                    flat,
                });
                for (position, sums) in flat.chunks(phase[1]).take(height).enumerate() {
                    let to = PlaceRow {
                        sums: &sums[..width],
                        factors: finish.factors.map(|all| &all[channel * output_plane..]),
                        position,
                        place: part.place,
                    };
                    place_row(&to, sweep, plane);
                }
            }
        });
}

/// flat[i] = act(bias + Σ kernel[elements[t]] · phases[taps[t] + i]), a block of lanes at a time.
struct Accumulate<'a> {
    phases: &'a [f32],
    taps: &'a [usize],
    elements: &'a [usize],
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
            for (tap, element) in self.taps.iter().zip(self.elements) {
                let values = &self.phases[tap + start..][..4 * S::F32_LANES];
                let (values, _) = S::as_simd_f32s(values);
                let weight = simd.splat_f32s(self.kernel[*element]);
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
