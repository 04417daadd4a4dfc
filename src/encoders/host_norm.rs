//! Layer norm over channels with its derivative, for 32-bit floats on the host.
//!
//! First sums over the channels, a tile of positions at a time, then each channel's row: both in whole vectors, on
//! all threads.

use rayon::prelude::*;

use super::buffers;
use super::host_token::TASK;

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
