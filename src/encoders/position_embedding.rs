//! Learned position embeddings brought to another grid, on the host in double precision, as the originals do
//! it in single precision.

use serde::{Deserialize, Serialize};

/// How an original resamples its position embedding. All are bicubic, separable, with pixel centres at
/// halves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resampling {
    /// Keys' kernel with a = −1/2, widened by the factor of reduction, its weights normalised over the grid:
    /// PyTorch's `interpolate(antialias=True)`, as in timm's `resample_abs_pos_embed` and in DINOv2 with registers.
    Antialiased,
    /// Keys' kernel with a = −3/4 and the border repeated, at a scale computed for a grid that is larger by
    /// this many positions: PyTorch's `interpolate(scale_factor=…)`, as in DINOv2 without registers, which adds 0.1.
    Enlarged(f64),
}

/// One output position of a line: input positions with their weights.
type Taps = Vec<(usize, f64)>;

/// `embedding` (position, channel) of a square grid of side `from`, positions row after row, for one of side `to`.
pub fn resample(
    embedding: &[f64],
    channels: usize,
    [from, to]: [usize; 2],
    resampling: Resampling,
) -> Vec<f64> {
    if from == to {
        return embedding.to_vec();
    }
    let taps: Vec<Taps> = (0..to)
        .map(|position| match resampling {
            Resampling::Antialiased => antialiased(position, from, to),
            Resampling::Enlarged(by) => {
                interpolated(position, from, from as f64 / (to as f64 + by))
            }
        })
        .collect();
    // First along the columns of each row, then along the rows.
    let mut narrowed = vec![0.0; from * to * channels];
    for (row, line) in embedding.chunks(from * channels).enumerate() {
        for (column, taps) in taps.iter().enumerate() {
            let target = &mut narrowed[(row * to + column) * channels..][..channels];
            add_weighted(
                taps,
                |source| &line[source * channels..][..channels],
                target,
            );
        }
    }
    let line = to * channels;
    let mut resampled = vec![0.0; to * line];
    for (taps, target) in taps.iter().zip(resampled.chunks_mut(line)) {
        add_weighted(taps, |source| &narrowed[source * line..][..line], target);
    }
    resampled
}

fn add_weighted<'a>(taps: &Taps, source: impl Fn(usize) -> &'a [f64], target: &mut [f64]) {
    for (at, weight) in taps {
        for (target, value) in target.iter_mut().zip(source(*at)) {
            *target += weight * value;
        }
    }
}

/// Keys' cubic convolution kernel (1981).
fn kernel(x: f64, a: f64) -> f64 {
    let x = x.abs();
    if x < 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((x - 5.0) * x + 8.0) * a * x - 4.0 * a
    } else {
        0.0
    }
}

fn antialiased(position: usize, from: usize, to: usize) -> Taps {
    let scale = from as f64 / to as f64;
    let width = scale.max(1.0);
    let centre = scale * (position as f64 + 0.5);
    // The first and the last position whose centre lies under the kernel.
    let first = (centre - 2.0 * width + 0.5).max(0.0) as usize;
    let last = ((centre + 2.0 * width + 0.5) as usize).min(from);
    let weight = |at: usize| kernel((at as f64 + 0.5 - centre) / width, -0.5);
    let sum: f64 = (first..last).map(weight).sum();
    (first..last).map(|at| (at, weight(at) / sum)).collect()
}

fn interpolated(position: usize, from: usize, scale: f64) -> Taps {
    let centre = scale * (position as f64 + 0.5) - 0.5;
    let before = centre.floor();
    [-1.0, 0.0, 1.0, 2.0]
        .map(|offset| {
            let at = (before + offset).clamp(0.0, from as f64 - 1.0) as usize;
            (at, kernel(before + offset - centre, -0.75))
        })
        .to_vec()
}
