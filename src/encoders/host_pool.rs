//! Maximum over windows, for 32-bit floats on the host.

use rayon::prelude::*;

use super::buffers;

/// Square windows over whose values the maximum is taken. What lies around the input is smaller than
/// every number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Side of a window.
    pub kernel: usize,
    /// Steps between windows.
    pub stride: usize,
    /// Rows and columns added on every side, at most half of `kernel`.
    pub padding: usize,
    /// Whether a last window that reaches beyond the padded edge counts.
    pub ceil: bool,
}

impl PoolConfig {
    /// Windows that lie inside the input.
    pub const fn inside(kernel: usize, stride: usize) -> Self {
        Self {
            kernel,
            stride,
            padding: 0,
            ceil: false,
        }
    }

    /// Side of the output for an input of side `input`. As in PyTorch a last window that would begin
    /// beyond the input is none, which happens where the stride exceeds the kernel.
    pub fn output_side(&self, input: usize) -> usize {
        let steps = (input + 2 * self.padding).saturating_sub(self.kernel);
        if self.ceil {
            let windows = steps.div_ceil(self.stride) + 1;
            windows.min((input + self.padding).div_ceil(self.stride))
        } else {
            steps / self.stride + 1
        }
    }

    /// Side of the smallest input over which `output` windows, at least 1, lie side by side.
    pub fn smallest_input(&self, output: usize) -> usize {
        let beyond = if self.ceil { self.stride - 1 } else { 0 };
        ((output - 1) * self.stride + self.kernel)
            .saturating_sub(2 * self.padding + beyond)
            .max(1)
    }
}

/// [`PoolConfig`] over planes of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolShape {
    /// Rows and columns of an input plane.
    pub input: [usize; 2],
    /// Rows and columns of an output plane.
    pub output: [usize; 2],
    /// The windows.
    pub pool: PoolConfig,
}

impl PoolShape {
    /// Windows over planes of `input` rows and columns.
    pub fn new(input: [usize; 2], pool: PoolConfig) -> Self {
        Self {
            input,
            output: input.map(|side| pool.output_side(side)),
            pool,
        }
    }
}

/// The maximum of every window of every plane of `x`; NaN where a window holds one.
pub fn max_pool2d(x: &[f32], shape: &PoolShape) -> Vec<f32> {
    let [height, width] = shape.input;
    let [out_height, out_width] = shape.output;
    let planes = x.len() / (height * width);
    let mut output = buffers::take(planes * out_height * out_width);
    let arch = pulp::Arch::new();
    output
        .par_chunks_mut(out_height * out_width)
        .zip(x.par_chunks(height * width))
        .for_each_init(
            || vec![0.0; width],
            |maxima, (target, plane)| {
                arch.dispatch(Plane {
                    plane,
                    shape,
                    maxima,
                    target,
                });
            },
        );
    output
}

/// As [`max_pool2d`], with the position in its plane of each window's maximum: the first of equal
/// ones, and of a NaN where there is one.
pub fn max_pool2d_with_winners(x: &[f32], shape: &PoolShape) -> (Vec<f32>, Vec<u32>) {
    let [height, width] = shape.input;
    let [out_height, out_width] = shape.output;
    let winner = |plane: &[f32], oy: usize, ox: usize| -> usize {
        let PoolConfig {
            kernel,
            stride,
            padding,
            ..
        } = shape.pool;
        let [top, left] = [oy, ox].map(|at| (at * stride).saturating_sub(padding));
        let [bottom, right] = [oy, ox].map(|at| (at * stride + kernel).saturating_sub(padding));
        let mut best = top * width + left;
        for y in top..bottom.min(height) {
            for at in y * width + left..y * width + right.min(width) {
                let (value, most) = (plane[at], plane[best]);
                if value > most || (value.is_nan() && !most.is_nan()) {
                    best = at;
                }
            }
        }
        best
    };
    let winners: Vec<u32> = x
        .par_chunks(height * width)
        .flat_map_iter(|plane| {
            let windows = 0..out_height * out_width;
            windows.map(move |window| {
                u32::try_from(winner(plane, window / out_width, window % out_width))
                    .unwrap_or(u32::MAX)
            })
        })
        .collect();
    let planes = [height * width, out_height * out_width];
    (select(x, planes, &winners), winners)
}

/// The values at `positions`, `windows` of them for each plane of `plane` values; `positions` are
/// those of one image, and all images use them.
pub fn select(x: &[f32], [plane, windows]: [usize; 2], positions: &[u32]) -> Vec<f32> {
    let mut y = buffers::take(x.len() / plane * windows);
    let planes = y.par_chunks_mut(windows).zip(x.par_chunks(plane));
    planes.enumerate().for_each(|(index, (target, source))| {
        let positions = of_plane(positions, windows, index);
        let pairs = target.iter_mut().zip(positions);
        pairs.for_each(|(value, position)| *value = source[*position as usize]);
    });
    y
}

/// The transpose of [`select`]: planes that are zero but for the values brought back to `positions`,
/// summed where windows share one.
pub fn restore(v: &[f32], [plane, windows]: [usize; 2], positions: &[u32]) -> Vec<f32> {
    let mut x = buffers::take(v.len() / windows * plane);
    let planes = x.par_chunks_mut(plane).zip(v.par_chunks(windows));
    planes.enumerate().for_each(|(index, (target, source))| {
        let positions = of_plane(positions, windows, index);
        target.fill(0.0);
        let pairs = source.iter().zip(positions);
        pairs.for_each(|(value, position)| target[*position as usize] += value);
    });
    x
}

fn of_plane(positions: &[u32], windows: usize, index: usize) -> &[u32] {
    let channels = positions.len() / windows;
    &positions[index % channels * windows..][..windows]
}

/// One plane, compiled for the processor at hand.
struct Plane<'a> {
    plane: &'a [f32],
    shape: &'a PoolShape,
    /// Room for one row.
    maxima: &'a mut [f32],
    target: &'a mut [f32],
}

impl pulp::WithSimd for Plane<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self {
            plane,
            shape:
                PoolShape {
                    input,
                    output,
                    pool,
                },
            maxima,
            target,
        } = self;
        let PoolConfig {
            kernel,
            stride,
            padding,
            ..
        } = *pool;
        // Windows overlap: first over the rows of a window, then over the columns of the result.
        for (oy, target) in target.chunks_mut(output[1]).enumerate() {
            let top = (oy * stride).saturating_sub(padding);
            let bottom = (oy * stride + kernel).saturating_sub(padding);
            let rows = &plane[top * input[1]..bottom.min(input[0]) * input[1]];
            let (first, others) = rows.split_at(input[1]);
            if others.len() == 2 * input[1] {
                // The usual three rows in one pass.
                let (second, third) = others.split_at(input[1]);
                let rows = first.iter().zip(second).zip(third);
                maxima
                    .iter_mut()
                    .zip(rows)
                    .for_each(|(most, ((a, b), c))| *most = max(max(*a, *b), *c));
            } else {
                maxima.copy_from_slice(first);
                for row in others.chunks(input[1]) {
                    maxima
                        .iter_mut()
                        .zip(row)
                        .for_each(|(most, value)| *most = max(*most, *value));
                }
            }
            if (kernel, stride, padding) == (3, 2, 0) {
                max_of_threes(maxima, target);
                continue;
            }
            target.fill(f32::NEG_INFINITY);
            for offset in 0..kernel {
                // The first windows have this column of theirs to the left of the input.
                let outside = padding.saturating_sub(offset).div_ceil(stride);
                let column = outside * stride + offset - padding;
                if outside < target.len() && column < maxima.len() {
                    max_strided(&maxima[column..], stride, &mut target[outside..]);
                }
            }
        }
    }
}

/// `target[i]` = the largest of `source[2 i]` and the two after it, as far as there are any.
#[inline(always)]
fn max_of_threes(source: &[f32], target: &mut [f32]) {
    // In pairs, which the compiler turns into shuffles.
    let pairs = source.chunks_exact(2);
    let following = source.get(2..).unwrap_or_default().chunks_exact(2);
    let whole = pairs.len().min(following.len()).min(target.len());
    target
        .iter_mut()
        .zip(pairs.zip(following))
        .for_each(|(most, (pair, next))| *most = max(max(pair[0], pair[1]), next[0]));
    for (index, most) in target.iter_mut().enumerate().skip(whole) {
        let window = source[2 * index..].iter().take(3).copied();
        *most = window.fold(f32::NEG_INFINITY, max);
    }
}

/// `target[i] = max(target[i], source[i · stride])`, for as many as both hold.
#[inline(always)]
fn max_strided(source: &[f32], stride: usize, target: &mut [f32]) {
    if stride == 2 {
        // In pairs, which the compiler turns into shuffles.
        let pairs = source.chunks_exact(2);
        if let (Some(most), [last]) = (target.get_mut(source.len() / 2), pairs.remainder()) {
            *most = max(*most, *last);
        }
        target
            .iter_mut()
            .zip(pairs)
            .for_each(|(most, pair)| *most = max(*most, pair[0]));
    } else {
        let source = source.iter().step_by(stride);
        target
            .iter_mut()
            .zip(source)
            .for_each(|(most, value)| *most = max(*most, *value));
    }
}

/// The larger value, or NaN if one of them is.
#[inline(always)]
fn max(a: f32, b: f32) -> f32 {
    if b > a || b.is_nan() { b } else { a }
}
