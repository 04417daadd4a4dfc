//! Leading singular vectors of a Jacobian by randomised subspace iteration.

use std::sync::Arc;

use faer::{Mat, Side};

use crate::geometry::directions::unit;
use crate::geometry::field::{Field, require_finite};
use crate::geometry::profile::Cost;
use crate::geometry::trace::Subspace;
use crate::{Error, ErrorKind, Result};

/// Extra dimensions of the subspace in which singular vectors are sought (ours).
pub(in crate::geometry) const OVERSAMPLING: usize = 5;
/// Power steps that sharpen it (ours).
const POWER_STEPS: usize = 2;
/// A singular value below this fraction of the largest is taken as zero: f32 products carry no more.
pub(super) const SINGULAR_FLOOR: f64 = 1e-5;

/// With Q an orthonormal basis of the leading left-singular subspace, the leading right-singular vectors of J
/// are those of QᵀJ.
pub(in crate::geometry) struct LeadingSearch {
    count: usize,
    subspace: Subspace,
    /// Rows of QᵀJ so far.
    rows: Vec<Arc<[f32]>>,
}

/// Leading singular triples, largest first. Triples that are zero up to rounding are left out.
pub(in crate::geometry) struct Leading {
    pub values: Vec<f64>,
    /// Right-singular vectors of unit norm.
    pub right: Vec<Arc<[f32]>>,
    /// Left-singular vectors of unit norm, one row each.
    pub left: Vec<Vec<f64>>,
}

impl LeadingSearch {
    pub fn new(count: usize, seed: u64, output_len: usize) -> Self {
        let dimension = count.saturating_add(OVERSAMPLING);
        let subspace = Subspace::new(dimension, 1 + POWER_STEPS, seed, output_len);
        Self {
            count,
            subspace,
            rows: Vec::new(),
        }
    }

    pub fn planned_cost(count: usize, output_len: usize) -> Cost {
        let dimension = count.saturating_add(OVERSAMPLING);
        let mut cost = Subspace::planned_cost(dimension, 1 + POWER_STEPS, output_len);
        cost.vjps += dimension.min(output_len);
        cost
    }

    /// One batch of products; the triples once they are there.
    pub fn step(&mut self, field: &mut dyn Field, cost: &mut Cost) -> Result<Option<Leading>> {
        if !self.subspace.step(field, cost)? {
            return Ok(None);
        }
        let cotangents = self.subspace.rows(self.rows.len(), field.batch());
        cost.vjps += cotangents.len() / field.output_len();
        let products = field.vjp(cotangents)?;
        require_finite(&products, "a vector–Jacobian product")?;
        self.rows.extend(
            products
                .chunks_exact(field.input_len())
                .map(|row| row.iter().map(|&v| v as f32).collect::<Arc<[f32]>>()),
        );
        if self.rows.len() < self.subspace.dimension() {
            return Ok(None);
        }
        let gram = Mat::from_fn(self.rows.len(), self.rows.len(), |i, j| {
            dot(&self.rows[i], &self.rows[j])
        });
        let mut leading = triples(&gram, &self.rows, self.count)?;
        for left in &mut leading.left {
            *left = self.subspace.combination(left);
        }
        Ok(Some(leading))
    }
}

/// The first `count` singular triples of the matrix with these rows, by the eigenvectors w of its Gram matrix:
/// the right vector is Bᵀw/σ, the left one w.
pub(super) fn triples(gram: &Mat<f64>, rows: &[Arc<[f32]>], count: usize) -> Result<Leading> {
    let (values, vectors) = eigen(gram)?;
    let mut leading = Leading {
        values: Vec::new(),
        right: Vec::new(),
        left: Vec::new(),
    };
    let floor = SINGULAR_FLOOR * values.first().copied().unwrap_or_default();
    for (j, &value) in values.iter().enumerate().take(count) {
        if value <= floor {
            break;
        }
        let left: Vec<f64> = vectors.col_as_slice(j).to_vec();
        leading.right.push(right_vector(rows, &left));
        leading.left.push(left);
        leading.values.push(value);
    }
    Ok(leading)
}

/// Bᵀw, scaled to unit norm, for the matrix B with these rows.
pub(super) fn right_vector(rows: &[Arc<[f32]>], w: &[f64]) -> Arc<[f32]> {
    let mut vector = vec![0.0; rows.first().map_or(0, |row| row.len())];
    for (row, weight) in rows.iter().zip(w) {
        let parts = vector.iter_mut().zip(row.iter());
        parts.for_each(|(v, &b)| *v += weight * f64::from(b));
    }
    unit(&vector)
}

/// Square roots of the eigenvalues of a Gram matrix, descending, and its eigenvectors as columns.
pub(super) fn eigen(gram: &Mat<f64>) -> Result<(Vec<f64>, Mat<f64>)> {
    let eigen = gram.self_adjoint_eigen(Side::Lower).map_err(|error| {
        Error::new(
            ErrorKind::Numeric,
            "cannot find the singular vectors of the Jacobian",
            format!("{error:?}"),
            "Choose another photograph or readout",
        )
    })?;
    let n = gram.nrows();
    // Eigenvalues ascend; below zero they are rounding.
    let values = (0..n).rev().map(|j| eigen.S()[j].max(0.0).sqrt());
    let vectors = Mat::from_fn(n, n, |i, j| eigen.U()[(i, n - 1 - j)]);
    Ok((values.collect(), vectors))
}

pub(super) fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(&a, &b)| f64::from(a) * f64::from(b))
        .sum()
}
