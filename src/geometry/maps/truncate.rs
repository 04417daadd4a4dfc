//! Maps cut to a rank.

use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use serde::{Deserialize, Serialize};

use super::affine::{AffineMap, columns, from_columns};
use crate::Result;
use crate::features::FeatureMap;

/// Which matrix is cut. The two are never shown under one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// The map's W: `ŷ = W_k x + b`, the bias kept (Krey, Neukirch, Strodthoff 2026). W is near the identity, so
    /// that this mostly cuts the photograph away; rank 0 is the bias alone.
    Map,
    /// The edit operator E = W − I: `ŷ = x + E_k(x − x̄) + (ȳ − x̄)` (ours). This cuts the edit; rank 0 moves every
    /// vector by the mean displacement alone, as the additive map does.
    Edit,
}

impl Cut {
    /// Name for labels and files.
    pub fn title(self) -> &'static str {
        match self {
            Self::Map => "W cut to rank k",
            Self::Edit => "edit operator W − I cut to rank k",
        }
    }
}

/// Singular value decomposition U S Vᵀ of W or E, C × C.
///
/// Order: singular values descend. Signs: in each right-singular vector (column of V) the entry of largest
/// magnitude, the first of equal ones, is positive; its left-singular vector follows. Of a repeated
/// singular value the vectors are any basis of their space.
#[derive(Clone, Debug)]
pub struct Decomposition {
    cut: Cut,
    left: Mat<f64>,
    values: Vec<f64>,
    right: Mat<f64>,
}

impl Decomposition {
    /// Decomposes what is to be cut of a map.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Numeric`] where the decomposition fails.
    pub fn new(map: &AffineMap, cut: Cut) -> Result<Self> {
        let svd = match cut {
            Cut::Map => map.weight().svd(),
            Cut::Edit => map.edit_operator().svd(),
        }
        .map_err(|error| super::undecomposed(format!("{error:?}")))?;
        let (mut left, mut right) = (svd.U().to_owned(), svd.V().to_owned());
        for j in 0..right.ncols() {
            let column = right.col_as_slice(j);
            // `max_by` keeps the last of equal ones.
            let largest = column
                .iter()
                .rev()
                .max_by(|a, b| a.abs().total_cmp(&b.abs()));
            if largest.is_some_and(|&value| value < 0.0) {
                for side in [&mut left, &mut right] {
                    side.col_as_slice_mut(j)
                        .iter_mut()
                        .for_each(|value| *value = -*value);
                }
            }
        }
        Ok(Self {
            cut,
            left,
            values: svd.S().column_vector().iter().copied().collect(),
            right,
        })
    }

    /// What was decomposed.
    pub fn cut(&self) -> Cut {
        self.cut
    }

    /// U: left-singular vectors as columns.
    pub fn left(&self) -> MatRef<'_, f64> {
        self.left.as_ref()
    }

    /// Singular values, descending.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// V: right-singular vectors as columns.
    pub fn right(&self) -> MatRef<'_, f64> {
        self.right.as_ref()
    }
}

/// One feature map under a map cut to any rank.
///
/// The scores S Vᵀx of all ranks are computed once; a rank is then a prefix of them, and moving it by one is
/// an update of rank one, C products a position instead of C². Kept in f64, so that going back and forth leaves
/// no trace in f32.
pub struct Truncation {
    decomposition: Arc<Decomposition>,
    /// Scores times singular values, C × positions.
    scores: Mat<f64>,
    /// ŷ at rank 0 as columns.
    base: Mat<f64>,
    /// ŷ at `rank` as columns.
    current: Mat<f64>,
    rank: usize,
    like: FeatureMap,
}

impl Truncation {
    /// Starts at rank 0. `decomposition` is one of `map`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Request`] where the feature map or the decomposition has another number of channels.
    pub fn new(
        map: &AffineMap,
        decomposition: Arc<Decomposition>,
        features: &FeatureMap,
    ) -> Result<Self> {
        super::require_channels(features, map.channels())?;
        super::require_channels(features, decomposition.values.len())?;
        let (input, base) = match decomposition.cut {
            Cut::Map => {
                let bias = map.bias();
                let base = Mat::from_fn(map.channels(), features.positions(), |i, _| bias[i]);
                (columns(features, None), base)
            }
            Cut::Edit => {
                let means = map.source_mean().iter().zip(map.target_mean());
                let back: Vec<f64> = means.map(|(x, y)| x - y).collect();
                let base = columns(features, Some(&back));
                (columns(features, Some(map.source_mean())), base)
            }
        };
        let mut scores = decomposition.right.transpose() * input;
        for mut column in scores.col_iter_mut() {
            let parts = column.as_mut().iter_mut().zip(&decomposition.values);
            parts.for_each(|(score, value)| *score *= value);
        }
        Ok(Self {
            decomposition,
            scores,
            current: base.clone(),
            base,
            rank: 0,
            like: features.clone(),
        })
    }

    /// The rank at which it stands.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The largest rank C, at which nothing is cut.
    pub fn full_rank(&self) -> usize {
        self.decomposition.values.len()
    }

    /// ŷ at rank k; above the largest rank, at that.
    ///
    /// # Errors
    /// None in practice: the shape is that of the feature map at the start.
    pub fn at(&mut self, rank: usize) -> Result<FeatureMap> {
        let rank = rank.min(self.full_rank());
        if rank < self.rank.abs_diff(rank) {
            // Nearer to rank 0.
            self.current.copy_from(&self.base);
            self.rank = 0;
        }
        let (from, to) = (self.rank.min(rank), self.rank.max(rank));
        if from < to {
            matmul(
                self.current.as_mut(),
                Accum::Add,
                self.decomposition.left.subcols(from, to - from),
                self.scores.subrows(from, to - from),
                if rank > self.rank { 1.0 } else { -1.0 },
                Par::rayon(0),
            );
        }
        self.rank = rank;
        let zeros = vec![0.0; self.like.channels()];
        from_columns(&self.current, &self.like, &zeros)
    }
}
