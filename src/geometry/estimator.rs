//! The statistics of r_η: from displacements and ‖Ju‖² of a few directions to a ratio with a
//! standard error. [`first_directions`] is the estimator of Szymkowiak, Pałubicki and Adamczewski
//! (2026, arXiv 2609.39115); the others are ours.
//!
//! `y` holds D/η² and `q` holds ‖Ju‖² of the same directions in the same order, one value for an
//! antithetic pair: its two squared displacements are averaged, its two ‖Ju‖² are equal.

use super::trace::mean_and_se;

/// Fewest pairs from which the coefficient of the control variate is fitted.
pub const MIN_PAIRS: usize = 8;

/// E‖Ju‖² as known from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reference {
    /// E‖Ju‖².
    pub mean: f64,
    /// Its standard error.
    pub se: f64,
}

/// An estimate of r.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// r.
    pub r: f64,
    /// Its standard error; NaN below two pairs.
    pub se: f64,
    /// The part of `se` that more pairs reduce.
    pub sampling_se: f64,
    /// E‖Ju‖² by which r was divided.
    pub denominator: f64,
}

/// mean(y) / mean(q) over the same directions; standard error by the delta method.
pub fn paired(y: &[f64], q: &[f64]) -> Ratio {
    let denominator = mean(q);
    let r = mean(y) / denominator;
    let residuals: Vec<f64> = y.iter().zip(q).map(|(y, q)| y - r * q).collect();
    let se = mean_and_se(&residuals).1 / denominator;
    Ratio {
        r,
        se,
        sampling_se: se,
        denominator,
    }
}

/// mean(y) / mean(q) where `q` comes from the first directions of the set and `y` from another
/// number of them; standard error by the delta method, the directions in common counted.
pub fn first_directions(y: &[f64], q: &[f64]) -> Ratio {
    let (n, m) = (y.len(), q.len());
    let common = n.min(m);
    let (mean_y, se_y) = mean_and_se(y);
    let (mean_q, se_q) = mean_and_se(q);
    let r = mean_y / mean_q;
    let (_, sxy, _) = moments(&y[..common], &q[..common]);
    // Covariance of the two means: each common direction enters both.
    let covariance = sxy / (common as f64 - 1.0) * common as f64 / (n as f64 * m as f64);
    let variance = se_y.powi(2) - 2.0 * r * covariance + (r * se_q).powi(2);
    let se = variance.max(0.0).sqrt() / mean_q;
    // `max` above turns a NaN into 0.
    let se = if common < 2 { f64::NAN } else { se };
    Ratio {
        r,
        se,
        sampling_se: se,
        denominator: mean_q,
    }
}

/// Slope of y on q: the coefficient of the control variate. `None` for too few pairs or where q
/// does not vary, so that there is nothing to correct.
pub fn coefficient(y: &[f64], q: &[f64]) -> Option<f64> {
    let (sxx, sxy, _) = moments(y, q);
    // 1e-6 is the relative accuracy of ‖Ju‖² in f32.
    let floor = q.len() as f64 * (1e-6 * mean(q)).powi(2);
    (q.len() >= MIN_PAIRS && sxx > floor).then(|| sxy / sxx)
}

/// [mean(y) − c (mean(q) − g)] / g with c fitted from the pairs. `None` where c cannot be fitted or the
/// correction exceeds what is corrected.
///
/// The standard error is that of a regression of y on q read at q = g, with the error of g by the
/// delta method, ∂r/∂g = (c − r)/g.
pub fn control_variate(y: &[f64], q: &[f64], g: Reference) -> Option<Ratio> {
    let c = coefficient(y, q)?;
    let n = y.len() as f64;
    let (sxx, sxy, syy) = moments(y, q);
    let residual_variance = (syy - c * sxy).max(0.0) / (n - 2.0);
    let distance = mean(q) - g.mean;
    let variance = residual_variance * (1.0 / n + distance * distance / sxx);
    with_variance(mean(y) - c * distance, c, variance, g)
}

/// The same with a coefficient from elsewhere. `None` where the correction exceeds what is corrected.
pub fn corrected(y: &[f64], q: &[f64], g: Reference, c: f64) -> Option<Ratio> {
    let residuals: Vec<f64> = y.iter().zip(q).map(|(y, q)| y - c * q).collect();
    let (mean, se) = mean_and_se(&residuals);
    with_variance(mean + c * g.mean, c, se * se, g)
}

/// `None` for r ≤ 0: the straight line may leave the range of a sum of squares when it is read far
/// from its data.
fn with_variance(numerator: f64, c: f64, variance: f64, g: Reference) -> Option<Ratio> {
    let r = numerator / g.mean;
    let sampling_se = variance.sqrt() / g.mean;
    let se = sampling_se.hypot((c - r) / g.mean * g.se);
    (r > 0.0).then_some(Ratio {
        r,
        se,
        sampling_se,
        denominator: g.mean,
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Σ(q−q̄)², Σ(q−q̄)(y−ȳ), Σ(y−ȳ)².
fn moments(y: &[f64], q: &[f64]) -> (f64, f64, f64) {
    let (mean_y, mean_q) = (mean(y), mean(q));
    let (mut sxx, mut sxy, mut syy) = (0.0, 0.0, 0.0);
    for (y, q) in y.iter().zip(q) {
        let (dy, dq) = (y - mean_y, q - mean_q);
        sxx += dq * dq;
        sxy += dq * dy;
        syy += dy * dy;
    }
    (sxx, sxy, syy)
}
