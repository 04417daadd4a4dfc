//! Smoothing by a Gaussian.

/// Where values beyond a border come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Border {
    /// The opposite side, `d a b c d | a b c d | a b c`. Every pixel of smoothed noise keeps the same
    /// variance.
    Wrapped,
    /// Mirrored at the border, whose values are repeated: `d c b a | a b c d | d c b a`. A picture
    /// keeps its mean, and no edge appears that is not in it.
    Mirrored,
}

impl Border {
    /// Place in a line of `n` values that stands for any `place`.
    fn inside(self, place: isize, n: usize) -> usize {
        let n = n as isize;
        match self {
            Self::Wrapped => place.rem_euclid(n) as usize,
            Self::Mirrored => {
                let place = place.rem_euclid(2 * n);
                place.min(2 * n - 1 - place) as usize
            }
        }
    }
}

/// Smooths each channel by a Gaussian of `sigma_px` pixels (above 0), sampled at whole pixels and cut
/// off at 4σ.
///
/// `values` in the order (channel, row, column), `rows · columns` for each channel.
pub fn smooth(values: &mut [f64], rows: usize, columns: usize, sigma_px: f64, border: Border) {
    if values.is_empty() {
        return;
    }
    let radius = (4.0 * sigma_px + 0.5) as usize;
    let mut kernel: Vec<f64> = (0..=2 * radius)
        .map(|i| {
            let t = i as f64 - radius as f64;
            (-t * t / (2.0 * sigma_px * sigma_px)).exp()
        })
        .collect();
    let sum: f64 = kernel.iter().sum();
    kernel.iter_mut().for_each(|k| *k /= sum);

    for channel in values.chunks_exact_mut(rows * columns) {
        for row in channel.chunks_exact_mut(columns) {
            let smooth = convolution(row, &kernel, radius, border);
            row.copy_from_slice(&smooth);
        }
        for column in 0..columns {
            let line: Vec<f64> = (0..rows)
                .map(|row| channel[row * columns + column])
                .collect();
            for (row, value) in convolution(&line, &kernel, radius, border)
                .into_iter()
                .enumerate()
            {
                channel[row * columns + column] = value;
            }
        }
    }
}

fn convolution(line: &[f64], kernel: &[f64], radius: usize, border: Border) -> Vec<f64> {
    let n = line.len();
    // The line with `radius` more values on either side.
    let padded: Vec<f64> = (0..n + 2 * radius)
        .map(|i| line[border.inside(i as isize - radius as isize, n)])
        .collect();
    padded
        .windows(kernel.len())
        .map(|window| window.iter().zip(kernel).map(|(v, k)| v * k).sum())
        .collect()
}
