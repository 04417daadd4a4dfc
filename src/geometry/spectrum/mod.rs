//! Singular spectra: of an encoder's Jacobian at a photograph, and what is read off any spectrum.
//!
//! The singular values of J are the square roots of the eigenvalues of JJᵀ. Where d_Z products Jᵀe_i and their
//! memory are affordable the whole spectrum is exact; else the leading part comes from randomised subspace
//! iteration (Halko, Martinsson, Tropp 2011), each value with a bound of its error. Right-singular vectors are
//! the directions in which the feature moves most; the least are found by shifting ([`bottom`]). As images they are the
//! eigendistortions of Berardino, Ballé, Laparra and Simoncelli (2017).

pub mod bottom;
mod estimator;
mod leading;

pub use self::bottom::{BottomDirection, BottomSearch};
pub use self::estimator::{
    Bounds, FEATURE_MAX, JACOBIAN_MAX, JacobianSpectrum, SpectrumEstimator, SpectrumMethod,
};
pub(super) use self::leading::{LeadingSearch, OVERSAMPLING};

/// What is read off a whole spectrum of singular values σ, with p = σ²/Σσ².
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpectrumReadout {
    /// −Σ p ln p in nats, from 0 to ln C of C values.
    pub entropy_nats: f64,
    /// exp(entropy), from 1 to C.
    pub effective_rank: f64,
    /// Σσ²/σ₁², from 1 to C.
    pub stable_rank: f64,
    /// Share of Σσ² in the first 1, 5 and 10 values.
    pub energy_top: [f64; 3],
    /// σ₁/σ_C; `None` where the least value is zero up to the precision of the values.
    pub condition: Option<f64>,
}

/// Numbers of leading values whose energy is read.
pub const ENERGY_TOP: [usize; 3] = [1, 5, 10];

impl SpectrumReadout {
    /// Reads a spectrum in descending order that was computed in f64; `None` where it is empty, all zero or not
    /// finite.
    pub fn of(values: &[f64]) -> Option<Self> {
        Self::with_precision(values, f64::EPSILON * values.len() as f64)
    }

    /// The same for values that are good to `precision` of the largest.
    fn with_precision(values: &[f64], precision: f64) -> Option<Self> {
        let (&first, &last) = (values.first()?, values.last()?);
        if !values.iter().all(|value| value.is_finite()) || first <= 0.0 {
            return None;
        }
        // Relative to the largest, so that no square overflows or vanishes.
        let energies: Vec<f64> = values.iter().map(|value| (value / first).powi(2)).collect();
        let total: f64 = energies.iter().sum();
        let shares = energies.iter().map(|energy| energy / total);
        let entropy_nats: f64 = shares.filter(|&p| p > 0.0).map(|p| -p * p.ln()).sum();
        let energy = |count: usize| energies.iter().take(count).sum::<f64>() / total;
        Some(Self {
            entropy_nats,
            effective_rank: entropy_nats.exp(),
            stable_rank: total,
            energy_top: ENERGY_TOP.map(energy),
            condition: (last > precision * first).then(|| first / last),
        })
    }
}
