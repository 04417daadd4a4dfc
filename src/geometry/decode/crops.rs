//! What a decoder in training is shown: random squares of photographs, and pictures at its own side.

use std::f64::consts::PI;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::Result;
use crate::images::Photo;
use crate::images::crop::Square;

/// A square of a photograph at `side` pixels, mirrored and tinted at random: values in [0, 1], channel, row, column. Its size
/// in the photograph is between `side` and all of it.
pub fn random_crop(photo: &Photo, side: usize, rng: &mut ChaCha8Rng) -> Result<Vec<f32>> {
    let size = [photo.width as usize, photo.height as usize];
    let short = size[0].min(size[1]);
    let sides = [side.min(short) as f64, short as f64];
    let square = Square::draw(size, sides, rng);
    let mut planes = square.cut(photo, side)?.planes();
    tint(&mut planes, rng);
    Ok(planes)
}

/// Colour changes such as edits make: a turn of the hue, grayscale, another exposure.
fn tint(planes: &mut [f32], rng: &mut ChaCha8Rng) {
    let area = planes.len() / 3;
    let turn = (rng.random::<f64>() < 0.25).then(|| 2.0 * PI * rng.random::<f64>());
    let is_grey = rng.random::<f64>() < 0.1;
    let gamma = (rng.random::<f64>() < 0.5).then(|| (0.8 * rng.random::<f32>() - 0.4).exp());
    for at in 0..area {
        let mut rgb = [0, 1, 2].map(|channel| planes[channel * area + at]);
        if let Some(angle) = turn {
            // About the grey axis, which is a turn of the hue up to saturation.
            let (sin, cos) = (angle.sin() as f32, angle.cos() as f32);
            let mean = (1.0 - cos) * (rgb[0] + rgb[1] + rgb[2]) / 3.0;
            let root = 3.0_f32.sqrt();
            rgb = [0, 1, 2]
                .map(|c| mean + cos * rgb[c] + sin * (rgb[(c + 2) % 3] - rgb[(c + 1) % 3]) / root);
        }
        if is_grey {
            // Weights of ITU-R BT.601.
            rgb = [0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]; 3];
        }
        for (channel, value) in rgb.into_iter().enumerate() {
            let value = value.clamp(0.0, 1.0);
            planes[channel * area + at] = gamma.map_or(value, |gamma| value.powf(gamma));
        }
    }
}

/// The matrix (to, from) of means over windows of equal length, which need not be whole.
pub fn window_means(from: usize, to: usize) -> Vec<f64> {
    let length = from as f64 / to as f64;
    let mut matrix = vec![0.0; from * to];
    for (i, row) in matrix.chunks_exact_mut(from).enumerate() {
        let (start, end) = (i as f64 * length, (i + 1) as f64 * length);
        for (p, weight) in row.iter_mut().enumerate() {
            let overlap = end.min((p + 1) as f64) - start.max(p as f64);
            *weight = overlap.max(0.0) / length;
        }
    }
    matrix
}
