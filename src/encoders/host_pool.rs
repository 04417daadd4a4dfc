//! Maximum over windows, for 32-bit floats on the host.

use rayon::prelude::*;

/// Square windows without padding; windows at the end may reach beyond the edge (ceil mode).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolShape {
    /// Rows and columns of an input plane.
    pub input: [usize; 2],
    /// Rows and columns of an output plane.
    pub output: [usize; 2],
    /// Side of a window.
    pub kernel: usize,
    /// Steps between windows.
    pub stride: usize,
}

/// The maximum of every window of every plane of `x`; NaN where a window holds one.
pub fn max_pool2d(x: &[f32], shape: &PoolShape) -> Vec<f32> {
    let [height, width] = shape.input;
    let [out_height, out_width] = shape.output;
    let planes = x.len() / (height * width);
    let mut output = vec![0.0; planes * out_height * out_width];
    // Most windows overlap: first over the rows of a window, which lie side by side in memory, then
    // over the columns of the result.
    let row_of_maxima = || vec![0.0; width];
    output
        .par_chunks_mut(out_height * out_width)
        .zip(x.par_chunks(height * width))
        .for_each_init(row_of_maxima, |maxima, (target, plane)| {
            for (oy, target) in target.chunks_mut(out_width).enumerate() {
                let top = oy * shape.stride;
                let rows = plane[top * width..].chunks(width).take(shape.kernel);
                for (i, row) in rows.enumerate() {
                    if i == 0 {
                        maxima.copy_from_slice(row);
                    } else {
                        maxima
                            .iter_mut()
                            .zip(row)
                            .for_each(|(most, &value)| *most = max(*most, value));
                    }
                }
                for (ox, value) in target.iter_mut().enumerate() {
                    let window = &maxima[ox * shape.stride..];
                    let window = &window[..shape.kernel.min(window.len())];
                    *value = window[1..]
                        .iter()
                        .fold(window[0], |most, &value| max(most, value));
                }
            }
        });
    output
}

/// The larger value, or NaN if one of them is.
#[inline(always)]
fn max(a: f32, b: f32) -> f32 {
    if b > a || b.is_nan() { b } else { a }
}
