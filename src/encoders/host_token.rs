//! What a transformer computes value by value and position by position, for 32-bit floats on the host:
//! GELU, layer norm over channels, their derivatives, and softmax.
//!
//! On the CPU device Burn's own run on one thread, one pass over memory for each elementary operation.
//! Here the functions are written out, so that the compiler can use whole vector registers, and threads
//! are rayon's.

use rayon::prelude::*;

use super::buffers;

/// Values of one task: long enough to pay for the hand-over to a thread.
const TASK: usize = 8192;

/// x·Φ(x) with the distribution function Φ of the standard normal: GELU as first defined (Hendrycks and
/// Gimpel 2016), not its approximation by tanh.
pub fn gelu(x: &[f32]) -> Vec<f32> {
    elementwise(
        x,
        #[inline(always)]
        |x| x * Normal::at(x).distribution,
    )
}

/// Its derivative Φ(x) + x·φ(x).
pub fn gelu_derivative(x: &[f32]) -> Vec<f32> {
    elementwise(
        x,
        #[inline(always)]
        |x| {
            let normal = Normal::at(x);
            x.mul_add(normal.density, normal.distribution)
        },
    )
}

fn elementwise<F: Fn(f32) -> f32 + Copy + Sync>(x: &[f32], function: F) -> Vec<f32> {
    let arch = pulp::Arch::new();
    let mut y = buffers::take(x.len());
    y.par_chunks_mut(TASK)
        .zip(x.par_chunks(TASK))
        .for_each(|(y, x)| arch.dispatch(Elementwise { x, y, function }));
    y
}

/// `y[i] = function(x[i])`. Like all the tasks here it is a structure, not a closure: only so is it sure to be compiled
/// as a whole for the processor at hand.
struct Elementwise<'a, F> {
    x: &'a [f32],
    y: &'a mut [f32],
    function: F,
}

impl<F: Fn(f32) -> f32> pulp::WithSimd for Elementwise<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        for (y, x) in self.y.iter_mut().zip(self.x) {
            *y = (self.function)(*x);
        }
    }
}

/// The standard normal at one point.
struct Normal {
    distribution: f32,
    density: f32,
}

impl Normal {
    /// With t = 1 / (1 + 0.4 |x| / √2), Φ(−|x|) = exp(−x²/2) · P(t). The polynomial P was fitted to
    /// ½·exp(z²)·erfc(z) on 0 ≤ z ≤ 10 for the least largest relative error, 3.0e-8; rounding included,
    /// Φ is right to 1.2e-6 of itself for |x| < 6, and x·Φ to 4e-7.
    #[inline(always)]
    fn at(x: f32) -> Self {
        const P: [f32; 10] = [
            1.320_254_5e-5,
            0.112_541_29,
            0.115_677_56,
            0.088_708_2,
            0.134_318_71,
            -0.034_283_12,
            0.137_893_66,
            -0.031_842_686,
            -0.037_374_742,
            0.014_347_932,
        ];
        let t = 1.0 / x.abs().mul_add(0.4 * std::f32::consts::FRAC_1_SQRT_2, 1.0);
        let polynomial = P.iter().rev().fold(0.0, |sum: f32, p| sum.mul_add(t, *p));
        let bell = exp(-0.5 * x * x);
        let tail = bell * polynomial;
        Self {
            distribution: if x < 0.0 { tail } else { 1.0 - tail },
            density: bell * 0.398_942_3, // 1/√(2π)
        }
    }
}

/// exp(x) for x ≤ 0, to 2 units in the last place; 0 below −87, where it nears the smallest normal number: products
/// with subnormal ones are slow.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // x = n·ln 2 + r with |r| ≤ ln 2 / 2: the sum with 1.5·2²³ rounds to a whole number, which then
    // stands in the last bits.
    const ROUND: f32 = 12_582_912.0;
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    // ln 2 in two parts, the first of them exact in products with a small n.
    let r = n.mul_add(-0.693_145_75, x);
    let r = n.mul_add(-1.428_606_8e-6, r);
    // Taylor's series; its next term is below 1.2e-8.
    let series = [
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    let mantissa = series.iter().fold(0.0, |sum: f32, c| sum.mul_add(r, *c));
    let exponent = shifted.to_bits().wrapping_add(127) << 23;
    // Written so that NaN passes through.
    if x < -87.0 {
        0.0
    } else {
        mantissa * f32::from_bits(exponent)
    }
}

/// Softmax over the rows of a matrix with rows of `len` values: each column is made to sum to 1.
pub fn softmax_columns(matrix: &mut [f32], len: usize, scratch: &mut Vec<f32>) {
    scratch.clear();
    scratch.resize(2 * len, 0.0);
    let (most, sum) = scratch.split_at_mut(len);
    pulp::Arch::new().dispatch(Softmax { matrix, most, sum });
}

struct Softmax<'a> {
    matrix: &'a mut [f32],
    most: &'a mut [f32],
    /// 0.
    sum: &'a mut [f32],
}

impl pulp::WithSimd for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self { matrix, most, sum } = self;
        let len = most.len();
        most.fill(f32::NEG_INFINITY);
        for row in matrix.chunks(len) {
            for (most, value) in most.iter_mut().zip(row) {
                // NaN takes part below.
                *most = if *value > *most { *value } else { *most };
            }
        }
        for row in matrix.chunks_mut(len) {
            for ((value, most), sum) in row.iter_mut().zip(&*most).zip(&mut *sum) {
                *value = exp(*value - most);
                *sum += *value;
            }
        }
        for sum in &mut *sum {
            *sum = 1.0 / *sum;
        }
        for row in matrix.chunks_mut(len) {
            for (value, sum) in row.iter_mut().zip(&*sum) {
                *value *= sum;
            }
        }
    }
}

/// The derivative of [`softmax_columns`], its own transpose: `change ← p·(change − Σ p·change)`, the
/// sum over each column.
pub fn softmax_derivative(p: &[f32], change: &mut [f32], len: usize, scratch: &mut Vec<f32>) {
    scratch.clear();
    scratch.resize(len, 0.0);
    let sum = scratch.as_mut_slice();
    pulp::Arch::new().dispatch(SoftmaxDerivative { p, change, sum });
}

struct SoftmaxDerivative<'a> {
    p: &'a [f32],
    change: &'a mut [f32],
    /// 0.
    sum: &'a mut [f32],
}

impl pulp::WithSimd for SoftmaxDerivative<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self { p, change, sum } = self;
        let len = sum.len();
        for (p, change) in p.chunks(len).zip(change.chunks_mut(len)) {
            for ((p, change), sum) in p.iter().zip(change).zip(&mut *sum) {
                *change *= p;
                *sum += *change;
            }
        }
        for (p, change) in p.chunks(len).zip(change.chunks_mut(len)) {
            for ((p, change), sum) in p.iter().zip(change).zip(&*sum) {
                *change = p.mul_add(-sum, *change);
            }
        }
    }
}

/// Positions whose channels one task sums up.
const TILE: usize = 128;

/// Channels summed before they are added to a total: as in pairwise summation rounding grows more slowly, and
/// totals are read and written less often.
const GROUP: usize = 8;

/// Some neighbouring positions of an image (channel, position).
#[derive(Clone, Copy)]
struct Tile<'a> {
    image: &'a [f32],
    plane: usize,
    start: usize,
}

impl Tile<'_> {
    /// For each column of the tile the sum over channels of `term(column, value, channel)`.
    #[inline(always)]
    fn sum(&self, sums: &mut [f32], term: impl Fn(usize, f32, usize) -> f32) {
        sums.fill(0.0);
        let mut group = [0.0; TILE];
        let group = &mut group[..sums.len()];
        for (index, rows) in self.image.chunks(GROUP * self.plane).enumerate() {
            group.fill(0.0);
            for (offset, row) in rows.chunks(self.plane).enumerate() {
                let row = &row[self.start..][..sums.len()];
                for (column, (sum, value)) in group.iter_mut().zip(row).enumerate() {
                    *sum += term(column, *value, index * GROUP + offset);
                }
            }
            for (sum, part) in sums.iter_mut().zip(&*group) {
                *sum += part;
            }
        }
    }
}

/// Two sums over the channels at each position, (batch, position): `visit` fills those of one tile.
fn of_positions(
    x: &[f32],
    channels: usize,
    plane: usize,
    visit: impl Fn(Tile<'_>, &mut [f32], &mut [f32]) + Sync,
) -> [Vec<f32>; 2] {
    let [mut first, mut second] = [0, 1].map(|_| vec![0.0; x.len() / channels]);
    let images = x.par_chunks(channels * plane).zip(
        first
            .par_chunks_mut(plane)
            .zip(second.par_chunks_mut(plane)),
    );
    images.for_each(|(image, (first, second))| {
        let tiles = first
            .par_chunks_mut(TILE)
            .zip(second.par_chunks_mut(TILE))
            .enumerate();
        tiles.for_each(|(index, (first, second))| {
            let start = index * TILE;
            let tile = Tile {
                image,
                plane,
                start,
            };
            visit(tile, first, second);
        });
    });
    [first, second]
}

/// `visit(row of the result, row of x, image, channel)` for every channel of every image.
fn of_rows(
    x: &[f32],
    channels: usize,
    plane: usize,
    visit: impl Fn(&mut [f32], &[f32], usize, usize) + Sync,
) -> Vec<f32> {
    let mut result = buffers::take(x.len());
    result
        .par_chunks_mut(plane)
        .zip(x.par_chunks(plane))
        .with_min_len(TASK.div_ceil(plane))
        .enumerate()
        .for_each(|(index, (result, x))| visit(result, x, index / channels, index % channels));
    result
}

/// Mean and deviation over the channels of each position, (batch, position).
pub struct Moments {
    /// Mean.
    pub mean: Vec<f32>,
    /// 1 / √(variance + ε).
    pub inverse_deviation: Vec<f32>,
}

impl Moments {
    /// Of `x`, (batch, `channels`, `plane`).
    pub fn of(x: &[f32], channels: usize, plane: usize, epsilon: f32) -> Self {
        let (arch, share) = (pulp::Arch::new(), 1.0 / channels as f32);
        let [mean, inverse_deviation] =
            of_positions(x, channels, plane, |tile, mean, inverse_deviation| {
                arch.dispatch(TileMoments {
                    tile,
                    share,
                    epsilon,
                    mean,
                    inverse_deviation,
                });
            });
        Self {
            mean,
            inverse_deviation,
        }
    }
}

struct TileMoments<'a> {
    tile: Tile<'a>,
    /// 1 / channels.
    share: f32,
    epsilon: f32,
    mean: &'a mut [f32],
    inverse_deviation: &'a mut [f32],
}

impl pulp::WithSimd for TileMoments<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self {
            tile,
            share,
            epsilon,
            mean,
            inverse_deviation,
        } = self;
        tile.sum(
            mean,
            #[inline(always)]
            |_, value, _| value,
        );
        for mean in &mut *mean {
            *mean *= share;
        }
        tile.sum(
            inverse_deviation,
            #[inline(always)]
            |column, value, _| {
                let difference = value - mean[column];
                difference * difference
            },
        );
        for value in inverse_deviation {
            *value = 1.0 / value.mul_add(share, epsilon).sqrt();
        }
    }
}

/// Layer norm over channels: `scale·(x − mean)/σ + shift`, with one scale and one shift a channel.
pub fn layer_norm(x: &[f32], plane: usize, scale: &[f32], shift: &[f32], epsilon: f32) -> Vec<f32> {
    let channels = scale.len();
    let moments = Moments::of(x, channels, plane, epsilon);
    let arch = pulp::Arch::new();
    of_rows(x, channels, plane, |y, x, image, channel| {
        arch.dispatch(NormRow {
            y,
            x,
            mean: &moments.mean[image * plane..][..plane],
            inverse_deviation: &moments.inverse_deviation[image * plane..][..plane],
            scale: scale[channel],
            shift: shift[channel],
        });
    })
}

struct NormRow<'a> {
    y: &'a mut [f32],
    x: &'a [f32],
    mean: &'a [f32],
    inverse_deviation: &'a [f32],
    scale: f32,
    shift: f32,
}

impl pulp::WithSimd for NormRow<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let moments = self.mean.iter().zip(self.inverse_deviation);
        for ((y, x), (mean, inverse)) in self.y.iter_mut().zip(self.x).zip(moments) {
            *y = ((x - mean) * inverse).mul_add(self.scale, self.shift);
        }
    }
}

/// A layer norm at the point where it was computed.
pub struct NormAt<'a> {
    /// (x − mean)/σ there, (channel, position).
    pub normalised: &'a [f32],
    /// 1/σ at each position.
    pub inverse_deviation: &'a [f32],
    /// Scale of each channel.
    pub scale: &'a [f32],
}

impl NormAt<'_> {
    /// The derivative applied to tangents `t`, (batch, channel, position), or, with `transposed`, its
    /// transpose applied to cotangents. With n = (x − mean)/σ the derivative of n is
    /// N·t = (t − mean t − n·mean(n·t))/σ, which is its own transpose; the scale follows it or precedes it.
    pub fn derivative(&self, t: &[f32], transposed: bool) -> Vec<f32> {
        let (channels, plane) = (self.scale.len(), self.inverse_deviation.len());
        let (arch, share) = (pulp::Arch::new(), 1.0 / channels as f32);
        let [means, along] = of_positions(t, channels, plane, |tile, mean, along| {
            arch.dispatch(TileProjections {
                tile,
                share,
                normalised: self.normalised,
                before: transposed.then_some(self.scale),
                mean,
                along,
            });
        });
        of_rows(t, channels, plane, |result, t, image, channel| {
            let scale = self.scale[channel];
            let (before, after) = if transposed {
                (scale, 1.0)
            } else {
                (1.0, scale)
            };
            arch.dispatch(NormDerivativeRow {
                result,
                t,
                normalised: &self.normalised[channel * plane..][..plane],
                inverse_deviation: self.inverse_deviation,
                mean: &means[image * plane..][..plane],
                along: &along[image * plane..][..plane],
                before,
                after,
            });
        })
    }
}

/// Means over the channels of t and of n·t.
struct TileProjections<'a> {
    tile: Tile<'a>,
    /// 1 / channels.
    share: f32,
    normalised: &'a [f32],
    /// Factor of each channel of t.
    before: Option<&'a [f32]>,
    mean: &'a mut [f32],
    along: &'a mut [f32],
}

impl pulp::WithSimd for TileProjections<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self {
            tile,
            share,
            normalised,
            before,
            mean,
            along,
        } = self;
        let factor = |channel: usize| before.map_or(1.0, |before| before[channel]);
        let columns = mean.len();
        tile.sum(
            mean,
            #[inline(always)]
            |_, value, channel| factor(channel) * value,
        );
        tile.sum(
            along,
            #[inline(always)]
            |column, value, channel| {
                let normalised = &normalised[channel * tile.plane + tile.start..][..columns];
                factor(channel) * value * normalised[column]
            },
        );
        for value in mean.iter_mut().chain(along) {
            *value *= share;
        }
    }
}

struct NormDerivativeRow<'a> {
    result: &'a mut [f32],
    t: &'a [f32],
    normalised: &'a [f32],
    inverse_deviation: &'a [f32],
    mean: &'a [f32],
    along: &'a [f32],
    before: f32,
    after: f32,
}

impl pulp::WithSimd for NormDerivativeRow<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let projections = self.mean.iter().zip(self.along);
        let at = self.normalised.iter().zip(self.inverse_deviation);
        let values = self.result.iter_mut().zip(self.t);
        for (((result, t), (mean, along)), (normalised, inverse)) in values.zip(projections).zip(at)
        {
            let centred = self.before.mul_add(*t, -mean);
            *result = self.after * inverse * normalised.mul_add(-along, centred);
        }
    }
}
