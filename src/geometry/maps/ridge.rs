//! *ridge*: centred, with a penalty on W; and *ridge toward the identity* (ours), with a penalty on W − I.

use faer::prelude::Solve;
use faer::{Mat, Side};

use super::affine::AffineMap;
use super::sums::Moments;
use crate::{Error, ErrorKind, Result};

/// The paper's penalty, on the un-averaged Gram matrix.
pub const GAMMA: f64 = 1.0;

/// `W = S_yx (S_xx + γI)⁻¹` of the centred, un-averaged products (Krey, Neukirch, Strodthoff 2026, whose
/// vectors are rows).
///
/// # Errors
/// [`ErrorKind::Request`] for γ that is negative or not finite; [`ErrorKind::Numeric`] where the system cannot be
/// solved, as with γ = 0 and fewer vectors than channels.
pub fn ridge(moments: &Moments, gamma: f64) -> Result<AffineMap> {
    penalised(moments, gamma, 0.0)
}

/// `(S_xx + γ̄I) Wᵀ = S_xy + γ̄I`, `γ̄ = γ · tr(S_xx)/C`: where data are short the map falls back to *no change*, not to zero
/// (ours).
///
/// # Errors
/// As [`ridge`].
pub fn ridge_to_identity(moments: &Moments, gamma: f64) -> Result<AffineMap> {
    let size = moments.channels();
    let mean = (0..size)
        .map(|c| moments.source_products[(c, c)])
        .sum::<f64>()
        / size as f64;
    penalised(moments, gamma * mean, gamma * mean)
}

/// Minimises Σ‖y − ȳ − W(x − x̄)‖² + penalty · ‖W − toward/penalty · I‖².
fn penalised(moments: &Moments, penalty: f64, toward: f64) -> Result<AffineMap> {
    if !(penalty >= 0.0 && penalty.is_finite()) {
        return Err(Error::new(
            ErrorKind::Request,
            "cannot fit a ridge map",
            format!("the penalty is {penalty}"),
            "Give a γ of 0 or above",
        ));
    }
    let size = moments.channels();
    let mut system = moments.source_products.clone();
    let mut right: Mat<f64> = moments.cross_products.transpose().to_owned();
    for c in 0..size {
        system[(c, c)] += penalty;
        right[(c, c)] += toward;
    }
    let factor = system.llt(Side::Lower).map_err(|_| {
        Error::new(
            ErrorKind::Numeric,
            "cannot fit a ridge map",
            "its equations have no unique solution",
            "Give a larger γ or use more pictures",
        )
    })?;
    AffineMap::new(
        factor.solve(&right).transpose().to_owned(),
        moments.source_mean.clone(),
        moments.target_mean.clone(),
    )
}

/// Fits with each γ and keeps the one with the smallest mean squared error on validation pictures, of two
/// equal ones the larger. Nothing is encoded again. Also the error of each, in the order given.
///
/// # Errors
/// [`ErrorKind::Request`] where there is no candidate, and what fitting says.
pub fn choose_gamma(
    fit: impl Fn(f64) -> Result<AffineMap>,
    candidates: &[f64],
    validation: &Moments,
) -> Result<(f64, Vec<f64>)> {
    let errors: Vec<f64> = candidates
        .iter()
        .map(|&gamma| fit(gamma)?.mean_squared_error(validation))
        .collect::<Result<_>>()?;
    let better = |a: &usize, b: &usize| {
        (errors[*a].total_cmp(&errors[*b])).then(candidates[*b].total_cmp(&candidates[*a]))
    };
    let best = (0..candidates.len()).min_by(better).ok_or_else(|| {
        Error::new(
            ErrorKind::Request,
            "cannot choose γ",
            "there is no candidate",
            "Give at least one",
        )
    })?;
    Ok((candidates[best], errors))
}
