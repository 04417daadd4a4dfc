//! Which positions of a feature map an edit touches, from the two pictures.
//!
//! Both pictures are smoothed by a 5 × 5 Gaussian; a pixel differs where the L2 norm of the difference of its
//! three channels exceeds 50 grey levels of 255; a position of the grid is touched where any pixel of its
//! cell differs (Krey, Neukirch, Strodthoff 2026, whose grid is the 9 × 9 of ConvNeXt-B's deepest stage).
//!
//! Ours, where the source is silent: the Gaussian is that of OpenCV for this size, weights
//! (1, 4, 6, 4, 1)/16 along each axis, rounded to grey levels, borders mirrored without repeating the
//! border; cells are those of adaptive pooling, from ⌊iH/h⌋ to ⌈(i+1)H/h⌉, which share a line of pixels
//! where the sides do not divide.

use crate::Result;
use crate::images::Picture;

/// L2 difference in grey levels above which a pixel differs.
pub const THRESHOLD_LEVELS: f64 = 50.0;

/// Weights of the Gaussian along one axis, in sixteenths.
const KERNEL: [u32; 5] = [1, 4, 6, 4, 1];

/// Touched positions of a grid of `rows · columns`, row after row.
///
/// # Errors
/// [`crate::ErrorKind::Request`] where the pictures have different sizes.
pub fn edit_mask(
    original: &Picture,
    edited: &Picture,
    rows: usize,
    columns: usize,
) -> Result<Vec<bool>> {
    super::require_same_size(original, edited)?;
    let differs = differing_pixels(&smoothed(original), &smoothed(edited));
    let (height, width) = (original.height(), original.width());
    Ok(any_pool(&differs, height, width, rows, columns))
}

/// Whether any of `height · width` flags is set in the cell of each position of a grid of
/// `rows · columns`: also for masks that were painted.
pub fn any_pool(
    flags: &[bool],
    height: usize,
    width: usize,
    rows: usize,
    columns: usize,
) -> Vec<bool> {
    let cell =
        |i: usize, cells: usize, side: usize| i * side / cells..((i + 1) * side).div_ceil(cells);
    let mut pooled = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        for column in 0..columns {
            let across = cell(column, columns, width);
            pooled.push(
                cell(row, rows, height).any(|y| flags[y * width..][across.clone()].contains(&true)),
            );
        }
    }
    pooled
}

fn differing_pixels(a: &[u8], b: &[u8]) -> Vec<bool> {
    let pixels = a.chunks_exact(3).zip(b.chunks_exact(3));
    pixels
        .map(|(a, b)| {
            let parts = a.iter().zip(b);
            let sum: u32 = parts.map(|(&a, &b)| u32::from(a.abs_diff(b)).pow(2)).sum();
            f64::from(sum).sqrt() > THRESHOLD_LEVELS
        })
        .collect()
}

/// Smoothed in integers; the order of the axes does not matter, since only the end is rounded.
fn smoothed(picture: &Picture) -> Vec<u8> {
    let (width, height) = (picture.width(), picture.height());
    let rgb = picture.rgb();
    let mut across = vec![0_u32; rgb.len()];
    for row in 0..height {
        for column in 0..width {
            for (k, weight) in KERNEL.iter().enumerate() {
                let from = 3 * (row * width + mirrored(column, k, width));
                for c in 0..3 {
                    across[3 * (row * width + column) + c] += weight * u32::from(rgb[from + c]);
                }
            }
        }
    }
    let mut out = Vec::with_capacity(rgb.len());
    for row in 0..height {
        let rows: [usize; 5] = std::array::from_fn(|k| mirrored(row, k, height));
        for at in 0..3 * width {
            let taps = rows.iter().zip(KERNEL);
            let sum: u32 = taps
                .map(|(row, weight)| weight * across[3 * width * row + at])
                .sum();
            out.push(((sum + 128) >> 8) as u8);
        }
    }
    out
}

/// Place of tap `k` around `place`, mirrored at borders that are not repeated: c b | a b c | b a.
fn mirrored(place: usize, k: usize, side: usize) -> usize {
    if side == 1 {
        return 0;
    }
    let period = 2 * (side as isize - 1);
    let place = (place as isize + k as isize - 2).rem_euclid(period);
    place.min(period - place) as usize
}
