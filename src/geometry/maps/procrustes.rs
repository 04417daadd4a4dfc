//! *orthogonal Procrustes*: the rotation that brings the centred vectors nearest to their targets.

use super::affine::AffineMap;
use super::sums::Moments;
use crate::Result;

/// `W = UVᵀ` from the singular value decomposition of `Σ(y − ȳ)(x − x̄)ᵀ` (Schönemann 1966), applied with the
/// means that it was fitted with: ŷ = W(x − x̄) + ȳ. Reflections are allowed.
///
/// Where the products have no full rank, W is one of several best; it is always orthogonal.
///
/// # Errors
/// [`crate::ErrorKind::Numeric`] where the decomposition fails.
pub fn procrustes(moments: &Moments) -> Result<AffineMap> {
    let svd = moments
        .cross_products
        .svd()
        .map_err(|error| super::undecomposed(format!("{error:?}")))?;
    AffineMap::new(
        svd.U() * svd.V().transpose(),
        moments.source_mean.clone(),
        moments.target_mean.clone(),
    )
}
