//! What a transformer computes value by value and position by position, for 32-bit floats on the host:
//! GELU, layer norm over channels, their derivatives, and softmax.
//!
//! On the CPU device Burn's own run on one thread, one pass over memory for each elementary operation.
//! Here the functions are written out, so that the compiler can use whole vector registers, and threads
//! are rayon's.

use rayon::prelude::*;

/// Values of one task: long enough to pay for the hand-over to a thread.
const TASK: usize = 8192;

/// x·Φ(x) with the distribution function Φ of the standard normal: GELU as first defined (Hendrycks and
/// Gimpel 2016), not its approximation by tanh.
pub fn gelu(x: &[f32]) -> Vec<f32> {
    elementwise(x, |x| x * Normal::at(x).distribution)
}

/// Its derivative Φ(x) + x·φ(x).
pub fn gelu_derivative(x: &[f32]) -> Vec<f32> {
    elementwise(x, |x| {
        let normal = Normal::at(x);
        x.mul_add(normal.density, normal.distribution)
    })
}

fn elementwise(x: &[f32], function: impl Fn(f32) -> f32 + Copy + Sync) -> Vec<f32> {
    let arch = pulp::Arch::new();
    let mut y = vec![0.0; x.len()];
    y.par_chunks_mut(TASK)
        .zip(x.par_chunks(TASK))
        .for_each(|(y, x)| {
            arch.dispatch(
                #[inline(always)]
                || {
                    for (y, x) in y.iter_mut().zip(x) {
                        *y = function(*x);
                    }
                },
            );
        });
    y
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

/// exp(x) for x ≤ 0, to 2 units in the last place; below −87 its value there, 1.6e-38.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // Written so that NaN passes through.
    let x = if x < -87.0 { -87.0 } else { x };
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
    mantissa * f32::from_bits(exponent)
}

/// Softmax over the rows of a matrix with rows of `len` values: each column is made to sum to 1.
pub fn softmax_columns(matrix: &mut [f32], len: usize, scratch: &mut Vec<f32>) {
    scratch.clear();
    scratch.resize(2 * len, 0.0);
    let (most, sum) = scratch.split_at_mut(len);
    most.fill(f32::NEG_INFINITY);
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
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
        },
    );
}

/// The derivative of [`softmax_columns`], its own transpose: `change ← p·(change − Σ p·change)`, the
/// sum over each column.
pub fn softmax_derivative(p: &[f32], change: &mut [f32], len: usize, scratch: &mut Vec<f32>) {
    scratch.clear();
    scratch.resize(len, 0.0);
    let sum = scratch.as_mut_slice();
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
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
        },
    );
}

/// Positions whose channels one task sums up.
const TILE: usize = 128;

/// Channels summed before they are added to a total: as in pairwise summation rounding grows more slowly, and
/// totals are read and written less often.
const GROUP: usize = 8;

/// x normalised at each position over the channels, (batch, channel, position), with mean and 1/σ.
pub struct Moments {
    /// Mean over the channels, (batch, position).
    pub mean: Vec<f32>,
    /// 1 / √(variance + ε), (batch, position).
    pub inverse_deviation: Vec<f32>,
}

impl Moments {
    /// Of `x`, (batch, `channels`, `plane`).
    pub fn of(x: &[f32], channels: usize, plane: usize, epsilon: f32) -> Self {
        let mut mean = vec![0.0; x.len() / channels];
        let mut inverse_deviation = vec![0.0; x.len() / channels];
        let arch = pulp::Arch::new();
        let share = 1.0 / channels as f32;
        let images = x.par_chunks(channels * plane).zip(
            mean.par_chunks_mut(plane)
                .zip(inverse_deviation.par_chunks_mut(plane)),
        );
        images.for_each(|(image, (mean, deviation))| {
            let tiles = mean
                .par_chunks_mut(TILE)
                .zip(deviation.par_chunks_mut(TILE))
                .enumerate();
            tiles.for_each(|(index, (mean, deviation))| {
                let tile = Tile {
                    image,
                    plane,
                    start: index * TILE,
                };
                arch.dispatch(
                    #[inline(always)]
                    || {
                        tile.sum(mean, |_, value, _| value);
                        mean.iter_mut().for_each(|mean| *mean *= share);
                        tile.sum(deviation, |column, value, _| {
                            let difference = value - mean[column];
                            difference * difference
                        });
                        for deviation in deviation.iter_mut() {
                            *deviation = 1.0 / deviation.mul_add(share, epsilon).sqrt();
                        }
                    },
                );
            });
        });
        Self {
            mean,
            inverse_deviation,
        }
    }
}

/// Some neighbouring positions of an image (channel, position).
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

/// Layer norm over channels: `scale·(x − mean)/σ + shift`, with one scale and one shift a channel.
pub fn layer_norm(x: &[f32], plane: usize, scale: &[f32], shift: &[f32], epsilon: f32) -> Vec<f32> {
    let channels = scale.len();
    let moments = Moments::of(x, channels, plane, epsilon);
    let mut y = vec![0.0; x.len()];
    let arch = pulp::Arch::new();
    let rows = y.par_chunks_mut(plane).zip(x.par_chunks(plane));
    rows.with_min_len(TASK.div_ceil(plane))
        .enumerate()
        .for_each(|(index, (y, x))| {
            let (image, channel) = (index / channels, index % channels);
            let mean = &moments.mean[image * plane..][..plane];
            let deviation = &moments.inverse_deviation[image * plane..][..plane];
            let (scale, shift) = (scale[channel], shift[channel]);
            arch.dispatch(
                #[inline(always)]
                || {
                    for ((y, x), (mean, deviation)) in
                        y.iter_mut().zip(x).zip(mean.iter().zip(deviation))
                    {
                        *y = ((x - mean) * deviation).mul_add(scale, shift);
                    }
                },
            );
        });
    y
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
        let mut means = vec![0.0; t.len() / channels];
        let mut products = vec![0.0; t.len() / channels];
        let arch = pulp::Arch::new();
        let share = 1.0 / channels as f32;
        let before = |channel: usize| if transposed { self.scale[channel] } else { 1.0 };
        let images = t.par_chunks(channels * plane).zip(
            means
                .par_chunks_mut(plane)
                .zip(products.par_chunks_mut(plane)),
        );
        images.for_each(|(image, (means, products))| {
            let tiles = means
                .par_chunks_mut(TILE)
                .zip(products.par_chunks_mut(TILE))
                .enumerate();
            tiles.for_each(|(index, (means, products))| {
                let start = index * TILE;
                let tile = Tile {
                    image,
                    plane,
                    start,
                };
                arch.dispatch(
                    #[inline(always)]
                    || {
                        tile.sum(means, |_, value, channel| before(channel) * value);
                        tile.sum(products, |column, value, channel| {
                            let normalised = self.normalised[channel * plane + start + column];
                            before(channel) * value * normalised
                        });
                        let both = means.iter_mut().chain(products.iter_mut());
                        both.for_each(|value| *value *= share);
                    },
                );
            });
        });
        let mut result = vec![0.0; t.len()];
        let rows = result.par_chunks_mut(plane).zip(t.par_chunks(plane));
        rows.with_min_len(TASK.div_ceil(plane))
            .enumerate()
            .for_each(|(index, (result, t))| {
                let (image, channel) = (index / channels, index % channels);
                let means = &means[image * plane..][..plane];
                let products = &products[image * plane..][..plane];
                let normalised = &self.normalised[channel * plane..][..plane];
                let (before, after) = if transposed {
                    (self.scale[channel], 1.0)
                } else {
                    (1.0, self.scale[channel])
                };
                arch.dispatch(
                    #[inline(always)]
                    || {
                        let sums = means.iter().zip(products);
                        let at = normalised.iter().zip(self.inverse_deviation);
                        for (((result, t), (mean, product)), (normalised, deviation)) in
                            result.iter_mut().zip(t).zip(sums).zip(at)
                        {
                            let centred = before.mul_add(*t, -mean);
                            *result = after * deviation * normalised.mul_add(-product, centred);
                        }
                    },
                );
            });
        result
    }
}
