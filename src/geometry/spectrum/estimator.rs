//! The singular spectrum of a Jacobian, in steps of one batch.

use std::sync::Arc;

use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, Mat, MatRef, Par};
use serde::{Deserialize, Serialize};

use super::SpectrumReadout;
use super::leading::{Leading, LeadingSearch, eigen, right_vector};
use crate::geometry::field::{Field, require_finite};
use crate::geometry::profile::Cost;
use crate::geometry::trace::{norm_sq, require_room};
use crate::{Error, ErrorKind, Result};

/// Most values of J that are held for an exact spectrum: 1 GiB in f32, a feature of 1,783 values at 224 px.
pub const JACOBIAN_MAX: usize = 1 << 28;

/// Longest feature of an exact spectrum: the decomposition of its Gram matrix, one step that cannot be
/// cancelled, takes time with the cube of it, some ten seconds for these.
pub const FEATURE_MAX: usize = 4096;

/// Values of each row that are widened to f64 at once when products are taken.
const GRAM_BLOCK: usize = 4096;

/// How the spectrum is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpectrumMethod {
    /// All singular values, by the d_Z rows of J: d_Z VJPs.
    Exact {
        /// How many of the largest, and of the least, right-singular vectors to keep.
        vectors: usize,
    },
    /// The leading ones, with an error each.
    Leading {
        /// How many.
        count: usize,
    },
}

impl SpectrumMethod {
    /// Whether a Jacobian of these sides is small enough for its whole spectrum: [`JACOBIAN_MAX`],
    /// [`FEATURE_MAX`].
    pub fn is_exact_affordable(output_len: usize, input_len: usize) -> bool {
        let values = output_len.checked_mul(input_len);
        output_len <= FEATURE_MAX && values.is_some_and(|values| values <= JACOBIAN_MAX)
    }

    /// The leading part that nearly spans the feature space is found from all rows, which costs less.
    fn needs_all_rows(self, output_len: usize) -> bool {
        match self {
            Self::Exact { .. } => true,
            Self::Leading { count } => count.saturating_add(super::OVERSAMPLING) >= output_len,
        }
    }
}

/// How far a singular value of J may be from the one that is given.
#[derive(Clone, Debug, PartialEq)]
pub enum Bounds {
    /// None but rounding: values below about 1e-7 σ₁ are not told from zero, since rows are kept in f32.
    Exact,
    /// For each value, a distance within which J has a singular value: ‖Jv − σu‖/√2, exact products
    /// assumed. That it is the one of the same number is likely and not certain.
    Within(Vec<f64>),
}

/// The singular spectrum of a Jacobian, or its leading part.
#[derive(Clone, Debug, PartialEq)]
pub struct JacobianSpectrum {
    /// Singular values, descending: min(d_Z, d_I) of an exact spectrum.
    pub values: Vec<f64>,
    /// Their errors.
    pub bounds: Bounds,
    /// Right-singular vectors of the largest values, d_I values of unit norm each. Of v and −v, which are both
    /// singular vectors, it is the one whose entry of largest magnitude is positive.
    pub top: Vec<Arc<[f32]>>,
    /// Right-singular vectors of the least values that are above rounding, the least first; none unless the
    /// spectrum is exact. The null space of J, which is all there is beyond d_Z dimensions, is not
    /// among them.
    pub bottom: Vec<Arc<[f32]>>,
}

impl JacobianSpectrum {
    /// Values that are above the rounding of an exact spectrum's rows; of a leading part, all.
    pub fn rank(&self) -> usize {
        let floor = match self.bounds {
            Bounds::Exact => ROW_PRECISION * self.values.first().copied().unwrap_or_default(),
            Bounds::Within(_) => 0.0,
        };
        self.values
            .iter()
            .take_while(|&&value| value > floor)
            .count()
    }

    /// What is read off the spectrum: only where it is exact and J is not zero.
    pub fn readout(&self) -> Option<SpectrumReadout> {
        match self.bounds {
            Bounds::Exact => SpectrumReadout::with_precision(&self.values, ROW_PRECISION),
            Bounds::Within(_) => None,
        }
    }
}

/// Finds a spectrum in steps of one batch.
pub struct SpectrumEstimator {
    stage: Stage,
}

enum Stage {
    /// Collecting the rows Jᵀe_i.
    Rows {
        top: usize,
        bottom: usize,
        rows: Vec<Arc<[f32]>>,
    },
    Search(LeadingSearch),
    /// ‖Jv − σu‖/√2 of the triples so far.
    Residuals {
        leading: Leading,
        errors: Vec<f64>,
    },
    Done(JacobianSpectrum),
}

/// Below this share of the largest singular value a row combination is rounding of f32.
const ROW_PRECISION: f64 = 1e-6;

impl SpectrumEstimator {
    /// A search for the spectrum of a field; `seed` starts the randomised one. Where a leading part would
    /// nearly span the feature space it is found from all rows, which costs less.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where an exact spectrum, or the basis of a leading part, would be too large, or no
    /// value is asked for.
    pub fn new(
        method: SpectrumMethod,
        seed: u64,
        output_len: usize,
        input_len: usize,
    ) -> Result<Self> {
        let refuse = |what: &str, why: String, remedy: &str| {
            Err(Error::new(ErrorKind::Request, what, why, remedy))
        };
        let (top, bottom) = match method {
            SpectrumMethod::Exact { vectors } => (vectors, vectors),
            SpectrumMethod::Leading { count } => (count, 0),
        };
        if method == (SpectrumMethod::Leading { count: 0 }) {
            return refuse(
                "cannot find singular values",
                "none is asked for".to_owned(),
                "Ask for at least one",
            );
        }
        let stage = if !method.needs_all_rows(output_len) {
            require_room(top.saturating_add(super::OVERSAMPLING), output_len)?;
            Stage::Search(LeadingSearch::new(top, seed, output_len))
        } else if SpectrumMethod::is_exact_affordable(output_len, input_len) {
            Stage::Rows {
                top,
                bottom,
                rows: Vec::new(),
            }
        } else {
            return refuse(
                "cannot find the whole singular spectrum",
                format!("a Jacobian of {output_len} × {input_len} values is too large"),
                "Ask for a few leading singular values, or choose the pooled feature",
            );
        };
        Ok(Self { stage })
    }

    /// Work that the whole search takes.
    pub fn planned_cost(method: SpectrumMethod, output_len: usize) -> Cost {
        match method {
            SpectrumMethod::Leading { count } if !method.needs_all_rows(output_len) => {
                let mut cost = LeadingSearch::planned_cost(count, output_len);
                cost.jvps += count;
                cost
            }
            _ => Cost {
                vjps: output_len,
                ..Cost::default()
            },
        }
    }

    /// The spectrum, once there is one.
    pub fn spectrum(&self) -> Option<&JacobianSpectrum> {
        match &self.stage {
            Stage::Done(spectrum) => Some(spectrum),
            _ => None,
        }
    }

    /// Does at most one batch of products; true once the spectrum is there.
    ///
    /// # Errors
    /// Those of the field, and [`ErrorKind::Numeric`] for a product that is not finite.
    pub fn step(&mut self, field: &mut dyn Field, cost: &mut Cost) -> Result<bool> {
        let (d_z, batch) = (field.output_len(), field.batch().max(1));
        match &mut self.stage {
            Stage::Rows { top, bottom, rows } => {
                let (first, end) = (rows.len(), (rows.len() + batch).min(d_z));
                let mut cotangents = vec![0.0; (end - first) * d_z];
                for (row, i) in (first..end).enumerate() {
                    cotangents[row * d_z + i] = 1.0;
                }
                let products = field.vjp(&cotangents)?;
                require_finite(&products, "a vector–Jacobian product")?;
                cost.vjps += end - first;
                rows.extend(
                    products
                        .chunks_exact(field.input_len())
                        .map(|row| row.iter().map(|&v| v as f32).collect::<Arc<[f32]>>()),
                );
                if rows.len() == d_z {
                    self.stage = Stage::Done(exact(rows, *top, *bottom)?);
                }
            }
            Stage::Search(search) => {
                if let Some(leading) = search.step(field, cost)? {
                    self.stage = Stage::Residuals {
                        leading,
                        errors: Vec::new(),
                    };
                }
            }
            Stage::Residuals { leading, errors } => {
                let first = errors.len();
                let end = (first + batch).min(leading.values.len());
                if first < end {
                    let images = field.jvp(&leading.right[first..end])?;
                    require_finite(&images, "a Jacobian–vector product")?;
                    cost.jvps += end - first;
                    for (i, image) in (first..end).zip(images.chunks_exact(d_z)) {
                        let parts = image.iter().zip(&leading.left[i]);
                        let residual: Vec<f64> = parts
                            .map(|(image, left)| image - leading.values[i] * left)
                            .collect();
                        errors.push((norm_sq(&residual) / 2.0).sqrt());
                    }
                }
                if errors.len() == leading.values.len() {
                    self.stage = Stage::Done(JacobianSpectrum {
                        values: std::mem::take(&mut leading.values),
                        bounds: Bounds::Within(std::mem::take(errors)),
                        top: leading.right.drain(..).map(oriented).collect(),
                        bottom: Vec::new(),
                    });
                }
            }
            Stage::Done(_) => {}
        }
        Ok(matches!(self.stage, Stage::Done(_)))
    }
}

/// The spectrum of the matrix with these rows.
fn exact(rows: &[Arc<[f32]>], top: usize, bottom: usize) -> Result<JacobianSpectrum> {
    let (mut values, basis) = eigen(&gram(rows))?;
    // J has no more singular values than its shorter side.
    values.truncate(rows.first().map_or(0, |row| row.len()));
    let floor = ROW_PRECISION * values.first().copied().unwrap_or_default();
    let rank = values.iter().take_while(|&&value| value > floor).count();
    let vector = |j: usize| oriented(right_vector(rows, basis.col_as_slice(j)));
    Ok(JacobianSpectrum {
        top: (0..rank.min(top)).map(vector).collect(),
        bottom: (rank.saturating_sub(bottom)..rank)
            .rev()
            .map(vector)
            .collect(),
        values,
        bounds: Bounds::Exact,
    })
}

/// Of v and −v the one whose entry of largest magnitude, the first of several, is positive.
fn oriented(vector: Arc<[f32]>) -> Arc<[f32]> {
    let largest = vector.iter().fold(0.0f32, |largest, &value| {
        if value.abs() > largest.abs() {
            value
        } else {
            largest
        }
    });
    if largest < 0.0 {
        vector.iter().map(|value| -value).collect()
    } else {
        vector
    }
}

/// JJᵀ of the rows in f64, on all threads: in f32, singular values below 3e-4 σ₁ would drown.
fn gram(rows: &[Arc<[f32]>]) -> Mat<f64> {
    let n = rows.len();
    let len = rows.first().map_or(0, |row| row.len());
    let mut gram = Mat::<f64>::zeros(n, n);
    let mut block = Vec::with_capacity(n * GRAM_BLOCK.min(len));
    for start in (0..len).step_by(GRAM_BLOCK) {
        let end = (start + GRAM_BLOCK).min(len);
        block.clear();
        for row in rows {
            block.extend(row[start..end].iter().map(|&value| f64::from(value)));
        }
        let part = MatRef::from_row_major_slice(&block, n, end - start);
        triangular::matmul(
            gram.as_mut(),
            BlockStructure::TriangularLower,
            Accum::Add,
            part,
            BlockStructure::Rectangular,
            part.transpose(),
            BlockStructure::Rectangular,
            1.0,
            Par::rayon(0),
        );
    }
    // The decomposition reads the lower half alone.
    gram
}
