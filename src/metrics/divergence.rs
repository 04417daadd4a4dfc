//! Predictions as distributions over classes: their entropy, and how far two of them are apart.
//!
//! - Normalised entropy `−Σ p ln p / ln K` of K classes, from 0 (certain) to 1 (even); undefined for one class.
//! - Jensen–Shannon divergence in bits (Lin 1991): the mean of the divergences of p and q from
//!   (p + q)/2, to base 2; from 0 for equal distributions to 1 for disjoint ones. Its square root is a metric.

use crate::{Error, ErrorKind, Result};

/// Probabilities of K classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction(Vec<f64>);

impl Prediction {
    /// The softmax of class scores.
    ///
    /// # Errors
    /// [`ErrorKind::Numeric`] where there are none or one of them is not finite.
    pub fn from_logits(logits: &[f64]) -> Result<Self> {
        if logits.is_empty() || !logits.iter().all(|logit| logit.is_finite()) {
            return Err(Error::new(
                ErrorKind::Numeric,
                "cannot read the prediction",
                "the class scores are missing or not finite",
                "Use another picture or encoder",
            ));
        }
        let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = logits.iter().map(|logit| (logit - most).exp()).collect();
        // At least 1, that of the largest score.
        let sum: f64 = weights.iter().sum();
        Ok(Self(weights.iter().map(|weight| weight / sum).collect()))
    }

    /// The probabilities; their sum is 1.
    pub fn probabilities(&self) -> &[f64] {
        &self.0
    }

    /// Entropy as a share of ln K; `None` for one class.
    pub fn normalised_entropy(&self) -> Option<f64> {
        let entropy: f64 = self.0.iter().map(|&p| plogp(p)).sum();
        (self.0.len() > 1).then(|| (-entropy / (self.0.len() as f64).ln()).clamp(0.0, 1.0))
    }
}

/// Jensen–Shannon divergence in bits.
///
/// # Errors
/// [`ErrorKind::Request`] where the numbers of classes differ.
pub fn jensen_shannon_bits(p: &Prediction, q: &Prediction) -> Result<f64> {
    if p.0.len() != q.0.len() {
        return Err(super::misfit(format!(
            "one prediction has {} classes, the other {}",
            p.0.len(),
            q.0.len()
        )));
    }
    let pairs = p.0.iter().zip(&q.0);
    let nats: f64 = pairs
        .map(|(&p, &q)| relative(p, (p + q) / 2.0) + relative(q, (p + q) / 2.0))
        .sum::<f64>()
        / 2.0;
    Ok((nats / std::f64::consts::LN_2).clamp(0.0, 1.0))
}

/// p ln(p/m), with its limit 0 at p = 0. The quotient keeps what a difference of logarithms loses.
fn relative(p: f64, m: f64) -> f64 {
    if p > 0.0 { p * (p / m).ln() } else { 0.0 }
}

/// p ln p, with its limit 0 at p = 0.
fn plogp(p: f64) -> f64 {
    if p > 0.0 { p * p.ln() } else { 0.0 }
}
