//! Structural similarity (Wang, Bovik, Sheikh, Simoncelli 2004).
//!
//! In each window, with means μ, variances σ² and covariance σ_ab of one channel of the two pictures,
//! `(2μ_aμ_b + C₁)(2σ_ab + C₂) / ((μ_a² + μ_b² + C₁)(σ_a² + σ_b² + C₂))`, `C₁ = (0.01·255)²`, `C₂ = (0.03·255)²`;
//! averaged over the windows that lie inside the picture and over the channels. From −1 to 1, 1 for equal
//! pictures. Undefined for pictures smaller than the window.
//!
//! Two windows that give different values and are always named: [`Window::Uniform`], scikit-image's default,
//! and [`Window::Gaussian`], that of the original paper.

use crate::Result;
use crate::images::Picture;

/// Range of grey levels.
const RANGE: f64 = 255.0;
const C1: f64 = (0.01 * RANGE) * (0.01 * RANGE);
const C2: f64 = (0.03 * RANGE) * (0.03 * RANGE);

/// The window over which moments are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// 7 × 7 pixels of equal weight, variances with the divisor n − 1.
    Uniform,
    /// A Gaussian of σ = 1.5 px, cut off at 3.5σ (11 × 11 pixels), variances with the divisor n.
    Gaussian,
}

impl Window {
    /// Name for people and files.
    pub fn title(self) -> &'static str {
        match self {
            Self::Uniform => "SSIM (7 × 7 uniform)",
            Self::Gaussian => "SSIM (Gaussian, σ 1.5)",
        }
    }

    /// Weights along one axis, with the sum 1, and what variances are multiplied by.
    fn kernel(self) -> (Vec<f64>, f64) {
        match self {
            Self::Uniform => {
                const SIDE: usize = 7;
                let n = (SIDE * SIDE) as f64;
                (vec![1.0 / SIDE as f64; SIDE], n / (n - 1.0))
            }
            Self::Gaussian => {
                const SIGMA: f64 = 1.5;
                const RADIUS: i32 = 5;
                let weights: Vec<f64> = (-RADIUS..=RADIUS)
                    .map(|t| (-f64::from(t * t) / (2.0 * SIGMA * SIGMA)).exp())
                    .collect();
                let sum: f64 = weights.iter().sum();
                (weights.iter().map(|weight| weight / sum).collect(), 1.0)
            }
        }
    }
}

/// SSIM of two pictures; `None` where they are smaller than the window.
///
/// # Errors
/// [`crate::ErrorKind::Request`] where the pictures have different sizes.
pub fn ssim(a: &Picture, b: &Picture, window: Window) -> Result<Option<f64>> {
    super::require_same_size(a, b)?;
    let (kernel, correction) = window.kernel();
    let (width, height) = (a.width(), a.height());
    if width < kernel.len() || height < kernel.len() {
        return Ok(None);
    }
    let mut sum = 0.0;
    for channel in 0..3 {
        let values = |picture: &Picture| -> Vec<f64> {
            let values = picture.rgb()[channel..].iter().step_by(3);
            values.map(|&value| f64::from(value)).collect()
        };
        let (a, b) = (values(a), values(b));
        let mean = |f: fn(f64, f64) -> f64| {
            let products: Vec<f64> = a.iter().zip(&b).map(|(&a, &b)| f(a, b)).collect();
            windowed(&products, width, &kernel)
        };
        let (mean_a, mean_b) = (mean(|a, _| a), mean(|_, b| b));
        let (aa, bb, ab) = (mean(|a, _| a * a), mean(|_, b| b * b), mean(|a, b| a * b));
        let mut total = 0.0;
        for i in 0..aa.len() {
            let (ma, mb) = (mean_a[i], mean_b[i]);
            let var_a = correction * (aa[i] - ma * ma);
            let var_b = correction * (bb[i] - mb * mb);
            let covariance = correction * (ab[i] - ma * mb);
            total += (2.0 * ma * mb + C1) * (2.0 * covariance + C2)
                / ((ma * ma + mb * mb + C1) * (var_a + var_b + C2));
        }
        sum += total / aa.len() as f64;
    }
    Ok(Some(sum / 3.0))
}

/// Weighted means over all windows that lie inside.
fn windowed(values: &[f64], width: usize, kernel: &[f64]) -> Vec<f64> {
    let new_width = width + 1 - kernel.len();
    let across: Vec<f64> = values
        .chunks_exact(width)
        .flat_map(|row| row.windows(kernel.len()))
        .map(|window| window.iter().zip(kernel).map(|(v, k)| v * k).sum())
        .collect();
    let height = values.len() / width;
    let mut out = vec![0.0; new_width * (height + 1 - kernel.len())];
    for (row, out) in out.chunks_exact_mut(new_width).enumerate() {
        for (weight, line) in kernel
            .iter()
            .zip(across[row * new_width..].chunks_exact(new_width))
        {
            out.iter_mut()
                .zip(line)
                .for_each(|(out, v)| *out += weight * v);
        }
    }
    out
}
