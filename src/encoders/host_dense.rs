//! Dense convolution of 32-bit floats on the host, without unfolding.
//!
//! Every dense convolution here, forward or transposed, of any stride, is one sweep: the input planes
//! are copied once with their padding (split by the stride, so that neighbouring outputs read
//! neighbouring inputs) and then treated as one long row, over which each element of the kernel is a
//! shift. A block of output channels and three vectors of positions stay in registers while the sums
//! run over input channels and kernel elements; bias and activation are applied before the sums leave
//! them. A few sums between the rows are computed in vain. Kernels of one element read the
//! input in place, or over small planes are swept in panels (`host_pointwise`).

use std::ops::Range;

use rayon::prelude::*;

use super::host_planes::{Phases, PlaceRow, place_row, split_phases};
use super::host_pointwise;

/// Output channels of a block.
pub(super) const ROWS: usize = 8;

/// Vectors of positions whose sums are in registers at a time.
const VECTORS: usize = 3;

/// Most values in a vector, whatever the processor.
const LANES_MAX: usize = 16;

/// Values that a sweep may read and write beyond the last position.
pub(super) const SLACK: usize = VECTORS * LANES_MAX;

/// Input values swept at a time: they stay in a core's second-level cache while the blocks of output
/// channels pass over them.
pub(super) const CHUNK_VALUES: usize = 96 * 1024;

/// Below this many positions a plane, several images are swept together, so that few vectors end
/// half empty.
const POSITIONS_MIN: usize = 256;

/// An element of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tap {
    pub(super) channel: usize,
    row: usize,
    column: usize,
}

/// A kernel (output channel, input channel, row, column) in the order in which a sweep reads it.
#[derive(Debug)]
pub struct Packed {
    pub(super) outputs: usize,
    pub(super) channels: usize,
    pub(super) kernel: [usize; 2],
    /// The different lists of elements; most kernels have one.
    pub(super) taps: Vec<Vec<Tap>>,
    pub(super) blocks: Vec<Block>,
}

/// Some neighbouring output channels.
#[derive(Debug)]
pub(super) struct Block {
    /// Index of its list of elements: those that are not zero for all of its channels.
    pub(super) taps: usize,
    /// For each element the weights of the block's channels.
    pub(super) weights: Vec<[f32; ROWS]>,
}

impl Packed {
    /// Packs a kernel of `outputs` × `channels` × rows × columns. Elements that are zero for a whole
    /// block of output channels cost nothing later.
    pub fn new(weight: &[f32], outputs: usize, channels: usize, kernel: [usize; 2]) -> Self {
        let [rows, columns] = kernel;
        let row_len = channels * rows * columns;
        let mut packed = Self {
            outputs,
            channels,
            kernel,
            taps: Vec::new(),
            blocks: Vec::new(),
        };
        let in_order = |block: &[f32]| {
            let mut taps = Vec::with_capacity(row_len);
            let mut weights = Vec::with_capacity(row_len);
            for at in 0..row_len {
                let mut lanes = [0.0; ROWS];
                for (lane, row) in lanes.iter_mut().zip(block.chunks(row_len)) {
                    *lane = row[at];
                }
                if lanes.iter().any(|&weight| weight != 0.0) {
                    taps.push(Tap {
                        channel: at / (rows * columns),
                        row: at / columns % rows,
                        column: at % columns,
                    });
                    weights.push(lanes);
                }
            }
            (taps, weights)
        };
        let blocks = weight.par_chunks((ROWS * row_len).max(1));
        for (taps, weights) in blocks.map(in_order).collect::<Vec<_>>() {
            let known = packed.taps.iter().position(|list| *list == taps);
            let taps = known.unwrap_or_else(|| {
                packed.taps.push(taps);
                packed.taps.len() - 1
            });
            packed.blocks.push(Block { taps, weights });
        }
        packed
    }

    /// The kernel as it was given.
    pub fn unpacked(&self) -> Vec<f32> {
        let [rows, columns] = self.kernel;
        let row_len = self.channels * rows * columns;
        let mut weight = vec![0.0; self.outputs * row_len];
        let targets = weight.par_chunks_mut((ROWS * row_len).max(1));
        self.blocks
            .par_iter()
            .zip(targets)
            .for_each(|(block, target)| {
                for (tap, lanes) in self.taps[block.taps].iter().zip(&block.weights) {
                    let at = (tap.channel * rows + tap.row) * columns + tap.column;
                    for (row, weight) in target.chunks_mut(row_len).zip(lanes) {
                        row[at] = *weight;
                    }
                }
            });
        weight
    }
}

/// Where a sweep finds its inputs and leaves its outputs.
#[derive(Clone, Copy, Debug)]
pub struct Sweep {
    /// Images.
    pub batch: usize,
    /// Rows and columns of an input plane.
    pub input: [usize; 2],
    /// Zeros above and to the left of an input plane.
    pub padding: [usize; 2],
    /// Steps of the kernel between positions, in rows and columns of the input.
    pub stride: [usize; 2],
    /// Rows and columns of positions at which sums are formed.
    pub positions: [usize; 2],
    /// Rows and columns of an output plane.
    pub output: [usize; 2],
    /// Rows and columns of the output that one position fills, each place by a packed row of its own, see
    /// [`PackedRows`].
    pub spread: [usize; 2],
    /// Rows and columns that the first position fills before the output begins.
    pub skip: [usize; 2],
}

/// Where the kernel of a channel and one of the places that a position fills stands among the packed rows.
///
/// The channels of a block share a place: kernels of different places have their zeros at different elements, and only
/// elements that are zero for the whole block are left out.
#[derive(Clone, Copy, Debug)]
pub struct PackedRows {
    /// Places.
    places: usize,
    /// Channels in a group: all kernels of one group and place follow each other.
    group: usize,
}

impl PackedRows {
    /// For this many output channels and places.
    pub fn new(channels: usize, places: usize) -> Self {
        let group = if channels.is_multiple_of(ROWS) {
            ROWS
        } else {
            1
        };
        Self { places, group }
    }

    /// The packed row of a channel and a place.
    pub fn row(self, channel: usize, place: usize) -> usize {
        let group = channel / self.group;
        (group * self.places + place) * self.group + channel % self.group
    }

    /// Channel and place of a packed row.
    pub(super) fn of(self, row: usize) -> (usize, usize) {
        let (group, place) = (
            row / self.group / self.places,
            row / self.group % self.places,
        );
        (group * self.group + row % self.group, place)
    }

    /// Numbers of channels whose packed rows begin with a block are the multiples of this.
    fn granule(self) -> usize {
        self.group.max(ROWS / gcd(ROWS, self.places))
    }
}

/// What happens to a sum.
#[derive(Clone, Copy, Debug)]
pub struct Finish<'a> {
    /// Added to each output channel.
    pub bias: Option<&'a [f32]>,
    /// Smallest and largest value.
    pub range: (f32, f32),
    /// Multiplied in at last: one factor for each output value of an image.
    pub factors: Option<&'a [f32]>,
}

/// The sums of `packed` over `x` (image, channel, row, column), finished, in `output` (image,
/// channel, row, column), every value of which is written. `source_factors`, where given, multiply
/// the input values of every image first.
///
/// The lengths must be those that `packed` and `sweep` say.
pub fn sweep(
    x: &[f32],
    source_factors: Option<&[f32]>,
    packed: &Packed,
    sweep: &Sweep,
    finish: &Finish<'_>,
    output: &mut [f32],
) {
    if host_pointwise::suits(packed, sweep) {
        return host_pointwise::sweep(x, source_factors, packed, sweep, finish, output);
    }
    let plan = Plan::new(packed, sweep, source_factors.is_some());
    let plane = sweep.output[0] * sweep.output[1];
    let image_len = packed.channels * sweep.input[0] * sweep.input[1];
    let channels = packed.outputs / (sweep.spread[0] * sweep.spread[1]);
    let granule = plan.rows.granule();
    let arch = pulp::Arch::new();
    let scratch = || (vec![0.0; plan.source_len()], vec![0.0; plan.flat_len()]);
    units(output, sweep.batch, plan.images, [channels, plane], granule)
        .into_par_iter()
        .for_each_init(scratch, |(source, flat), unit| {
            let x = &x[unit.first_image * image_len..][..unit.images * image_len];
            let source = if plan.in_place {
                x
            } else {
                plan.fill(x, source_factors, source);
                source.as_slice()
            };
            plan.run(arch, source, finish, unit, flat);
        });
}

/// Images that are swept together, without leaving a thread idle.
pub(super) fn images_together(positions: usize, batch: usize) -> usize {
    let images = POSITIONS_MIN.div_ceil(positions);
    images.min(batch / rayon::current_num_threads()).max(1)
}

/// The work on the planes of `channels` output channels in each of `batch` images, `images` at a time. Fewer images than
/// threads are split by output channels, at multiples of `granule`.
pub(super) fn units(
    output: &mut [f32],
    batch: usize,
    images: usize,
    [channels, plane]: [usize; 2],
    granule: usize,
) -> Vec<Unit<'_>> {
    let threads = rayon::current_num_threads();
    let split = batch < threads;
    let part_channels = if split {
        let parts = threads.div_ceil(batch);
        channels.div_ceil(parts).next_multiple_of(granule)
    } else {
        channels
    };
    let image_len = channels * plane;
    let groups = output.chunks_mut(images * image_len).enumerate();
    let units = groups.flat_map(|(index, output)| {
        let first_image = index * images;
        let images = output.len() / image_len;
        let parts = output.chunks_mut(images * part_channels * plane);
        parts.enumerate().map(move |(part, output)| Unit {
            first_image,
            images,
            first_channel: part * part_channels,
            output,
        })
    });
    units.collect()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Output channels of a few neighbouring images, to be computed by one thread.
pub(super) struct Unit<'a> {
    pub first_image: usize,
    pub images: usize,
    pub first_channel: usize,
    /// All output channels of these images, or some of one image.
    pub output: &'a mut [f32],
}

/// How a sweep goes about its work.
struct Plan<'a> {
    packed: &'a Packed,
    sweep: &'a Sweep,
    rows: PackedRows,
    /// Images swept together.
    images: usize,
    /// Whether the input is read where it lies.
    in_place: bool,
    /// Whether sums are written where they belong: positions are the output's, row after row.
    tight: bool,
    /// Rows and columns of one phase of an input plane, wide enough for the last position.
    phase: [usize; 2],
    /// Distance between the phases in the copied input.
    phase_stride: usize,
    /// For each list of elements the distance of its inputs from a position.
    offsets: Vec<Vec<usize>>,
    /// Positions swept at a time; whole rows where sums are brought into place row by row.
    chunk: usize,
}

impl<'a> Plan<'a> {
    fn new(packed: &'a Packed, sweep: &'a Sweep, scaled: bool) -> Self {
        let [positions_y, positions_x] = sweep.positions;
        let [stride_y, stride_x] = sweep.stride;
        let phase = [0, 1]
            .map(|axis| sweep.positions[axis] + (packed.kernel[axis] - 1) / sweep.stride[axis]);
        let phase_len = phase[0] * phase[1];
        let images = images_together(positions_y * positions_x, sweep.batch);
        let whole = sweep.spread == [1, 1]
            && sweep.output == sweep.positions
            && phase[1] == positions_x
            && positions_y * positions_x >= LANES_MAX
            && images == 1;
        let phase_stride = images * phase_len;
        let offset = |tap: &Tap| {
            let phases = tap.channel * stride_y + tap.row % stride_y;
            let phases = phases * stride_x + tap.column % stride_x;
            phases * phase_stride + tap.row / stride_y * phase[1] + tap.column / stride_x
        };
        let offsets = packed.taps.iter();
        let offsets = offsets.map(|taps| taps.iter().map(offset).collect());
        let chunk = CHUNK_VALUES / (packed.channels * stride_y * stride_x).max(1);
        // Either way no vector ends half empty but the last.
        let granule = if whole { SLACK } else { phase[1] };
        let places = sweep.spread[0] * sweep.spread[1];
        Self {
            packed,
            sweep,
            rows: PackedRows::new(packed.outputs / places, places),
            images,
            in_place: whole && host_pointwise::is_pointwise(packed, sweep) && !scaled,
            tight: whole,
            phase,
            phase_stride,
            offsets: offsets.collect(),
            chunk: (chunk / granule).max(1) * granule,
        }
    }

    fn source_len(&self) -> usize {
        if self.in_place {
            return 0;
        }
        let phases = self.packed.channels * self.sweep.stride[0] * self.sweep.stride[1];
        phases * self.phase_stride + SLACK
    }

    /// Distance between the output channels of a block before they are brought into place.
    fn flat_stride(&self) -> usize {
        self.chunk.min(self.images * self.phase[0] * self.phase[1]) + SLACK
    }

    fn flat_len(&self) -> usize {
        if self.tight {
            0
        } else {
            ROWS * self.flat_stride()
        }
    }

    /// Copies images into phases; the padding around them stays zero from call to call.
    fn fill(&self, x: &[f32], factors: Option<&[f32]>, source: &mut [f32]) {
        let plane = self.sweep.input[0] * self.sweep.input[1];
        let phases = self.sweep.stride[0] * self.sweep.stride[1];
        for (index, values) in x.chunks(plane).enumerate() {
            let (image, channel) = (index / self.packed.channels, index % self.packed.channels);
            let factors = factors.map(|factors| &factors[channel * plane..][..plane]);
            let start =
                channel * phases * self.phase_stride + image * self.phase[0] * self.phase[1];
            split_phases(
                values,
                factors,
                &Phases {
                    columns: self.sweep.input[1],
                    padding: self.sweep.padding,
                    stride: self.sweep.stride,
                    phase: self.phase,
                    distance: self.phase_stride,
                },
                &mut source[start..],
            );
        }
    }

    fn run(
        &self,
        arch: pulp::Arch,
        source: &[f32],
        finish: &Finish<'_>,
        unit: Unit<'_>,
        flat: &mut [f32],
    ) {
        let spread = self.sweep.spread[0] * self.sweep.spread[1];
        let plane = self.sweep.output[0] * self.sweep.output[1];
        let images = unit.images;
        let channels = unit.output.len() / (images * plane);
        let (first_row, rows) = (unit.first_channel * spread, channels * spread);
        // The last image's last rows of padding hold no position.
        let position_rows = (images - 1) * self.phase[0] + self.sweep.positions[0];
        let positions = position_rows * self.phase[1];
        for start in (0..positions).step_by(self.chunk) {
            let end = (start + self.chunk).min(positions);
            let blocks = self.packed.blocks[first_row / ROWS..].iter().enumerate();
            for (index, block) in blocks.take(rows.div_ceil(ROWS)) {
                let row = index * ROWS;
                let mut bias = [0.0; ROWS];
                if let Some(biases) = finish.bias {
                    for (lane, bias) in bias.iter_mut().enumerate().take(rows - row) {
                        *bias = biases[self.rows.of(first_row + row + lane).0];
                    }
                }
                let rows = ROWS.min(rows - row);
                let halo = self.phase[1] - self.sweep.positions[1];
                let span = [start, end - halo];
                let mut tiles = Tiles {
                    source,
                    offsets: &self.offsets[block.taps],
                    weights: &block.weights,
                    bias,
                    range: finish.range,
                    factors: None,
                    rows,
                    span,
                    tight: self.tight,
                    target: &mut *flat,
                    target_stride: self.flat_stride(),
                    target_start: span[0],
                };
                if self.tight {
                    tiles.factors = finish
                        .factors
                        .map(|factors| &factors[(first_row + row) * plane..]);
                    tiles.target = &mut unit.output[row * plane..];
                    tiles.target_stride = plane;
                    tiles.target_start = 0;
                    arch.dispatch(tiles);
                    continue;
                }
                arch.dispatch(tiles);
                for lane in 0..rows {
                    let sums = &flat[lane * self.flat_stride()..];
                    let place = Place {
                        row: row + lane,
                        channels,
                        factors: finish
                            .factors
                            .map(|factors| &factors[unit.first_channel * plane..]),
                    };
                    let position_rows = start / self.phase[1]..end / self.phase[1];
                    self.place(sums, position_rows, &place, unit.output);
                }
            }
        }
    }

    /// Brings the sums of one packed row to the places where they belong.
    fn place(&self, sums: &[f32], rows: Range<usize>, to: &Place<'_>, output: &mut [f32]) {
        let spread_x = self.sweep.spread[1];
        let plane = self.sweep.output[0] * self.sweep.output[1];
        let (channel, part) = self.rows.of(to.row);
        for (row, sums) in rows.zip(sums.chunks(self.phase[1])) {
            let (image, position) = (row / self.phase[0], row % self.phase[0]);
            if position >= self.sweep.positions[0] {
                continue;
            }
            let row = PlaceRow {
                sums: &sums[..self.sweep.positions[1]],
                factors: to.factors.map(|factors| &factors[channel * plane..]),
                position,
                place: [part / spread_x, part % spread_x],
            };
            let start = (image * to.channels + channel) * plane;
            place_row(&row, self.sweep, &mut output[start..][..plane]);
        }
    }
}

/// Where the sums of a packed row belong.
struct Place<'a> {
    /// The packed row, counted from the first channel of the output given.
    row: usize,
    /// Channels of an image in that output.
    channels: usize,
    /// Factors from that channel on.
    factors: Option<&'a [f32]>,
}

/// The sums of a block of packed rows over a span of positions, a tile at a time.
pub(super) struct Tiles<'a> {
    pub source: &'a [f32],
    pub offsets: &'a [usize],
    pub weights: &'a [[f32; ROWS]],
    pub bias: [f32; ROWS],
    pub range: (f32, f32),
    /// Of the target's values, from its first.
    pub factors: Option<&'a [f32]>,
    /// Rows that are wanted.
    pub rows: usize,
    pub span: [usize; 2],
    /// Whether the last tile must end with the span, because other values follow: then it begins
    /// earlier, and some sums are formed twice.
    pub tight: bool,
    pub target: &'a mut [f32],
    pub target_stride: usize,
    /// Position of the target's first value.
    pub target_start: usize,
}

impl pulp::WithSimd for Tiles<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) {
        // With 32 registers a whole block's sums fit beside the values, with 16 half of them.
        if S::REGISTER_COUNT >= 32 {
            self.cover::<S, ROWS>(simd);
        } else {
            self.cover::<S, { ROWS / 2 }>(simd);
        }
    }
}

impl Tiles<'_> {
    #[inline(always)]
    fn cover<S: pulp::Simd, const HEIGHT: usize>(mut self, simd: S) {
        let [mut at, end] = self.span;
        while at < end {
            let vectors = (end - at).div_ceil(S::F32_LANES).min(VECTORS);
            let vectors = if self.tight {
                vectors.min(end / S::F32_LANES)
            } else {
                vectors
            };
            let len = vectors * S::F32_LANES;
            let start = if self.tight { at.min(end - len) } else { at };
            for first in (0..self.rows).step_by(HEIGHT) {
                match vectors {
                    3 => self.tile::<S, HEIGHT, 3>(simd, start, first),
                    2 => self.tile::<S, HEIGHT, 2>(simd, start, first),
                    _ => self.tile::<S, HEIGHT, 1>(simd, start, first),
                }
            }
            at += len;
        }
    }

    #[inline(always)]
    fn tile<S: pulp::Simd, const HEIGHT: usize, const WIDTH: usize>(
        &mut self,
        simd: S,
        start: usize,
        first: usize,
    ) {
        let mut sums = [[simd.splat_f32s(0.0); WIDTH]; HEIGHT];
        for (sums, bias) in sums.iter_mut().zip(&self.bias[first..][..HEIGHT]) {
            *sums = [simd.splat_f32s(*bias); WIDTH];
        }
        let source = &self.source[start..];
        for (offset, weights) in self.offsets.iter().zip(self.weights) {
            let values = &source[*offset..][..WIDTH * S::F32_LANES];
            let (values, _) = S::as_simd_f32s(values);
            let mut held = [simd.splat_f32s(0.0); WIDTH];
            held.copy_from_slice(values);
            let weights = &weights[first..][..HEIGHT];
            for (sums, weight) in sums.iter_mut().zip(weights) {
                let weight = simd.splat_f32s(*weight);
                for (sum, value) in sums.iter_mut().zip(held) {
                    *sum = simd.mul_add_f32s(weight, value, *sum);
                }
            }
        }
        // Written out, because an array that is indexed by a variable is in memory, and the sums must
        // stay in registers.
        macro_rules! finish {
            ($($lane:literal)*) => {$(
                if let Some(sums) = sums.get($lane)
                    && first + $lane < self.rows
                {
                    self.finish(simd, *sums, start, first + $lane);
                }
            )*};
        }
        finish!(0 1 2 3 4 5 6 7);
    }

    /// Finishes the sums of one packed row and stores them.
    #[inline(always)]
    fn finish<S: pulp::Simd, const WIDTH: usize>(
        &mut self,
        simd: S,
        sums: [S::f32s; WIDTH],
        start: usize,
        row: usize,
    ) {
        let (low, high) = (simd.splat_f32s(self.range.0), simd.splat_f32s(self.range.1));
        let at = row * self.target_stride + start - self.target_start;
        let target = &mut self.target[at..][..WIDTH * S::F32_LANES];
        let (target, _) = S::as_mut_simd_f32s(target);
        for (value, sum) in target.iter_mut().zip(sums) {
            // Selections keep NaN, which a minimum or maximum may drop.
            let sum = simd.select_f32s(simd.less_than_f32s(sum, low), low, sum);
            *value = simd.select_f32s(simd.less_than_f32s(high, sum), high, sum);
        }
        if let Some(factors) = self.factors {
            let factors = &factors[at..][..WIDTH * S::F32_LANES];
            let (factors, _) = S::as_simd_f32s(factors);
            for (value, factor) in target.iter_mut().zip(factors) {
                *value = simd.mul_f32s(*value, *factor);
            }
        }
    }
}
