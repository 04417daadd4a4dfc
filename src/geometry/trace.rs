//! Trace of JJᵀ, which is that of JᵀJ, from products with J and Jᵀ.
//!
//! Hutch++ (Meyer, Musco, Musco and Woodruff 2021): with an orthonormal basis Q of the leading
//! subspace, tr JJᵀ = Σ‖Jᵀqᵢ‖² + E‖Jᵀ(I − QQᵀ)z‖² for z of independent random signs. The first part
//! is exact, the second is sampled where little is left to sample.

use std::sync::Arc;

use faer::Mat;

use super::directions::{signs, stream};
use super::field::{Field, require_finite};
use super::profile::Cost;
use crate::recipe::TraceMethod;
use crate::{Error, ErrorKind, Result};

/// Largest sketch and most probes of Hutch++: with more, the exact trace of a pooled feature is cheaper.
pub const HUTCH_MAX: usize = 1024;

/// Most values of a basis, 1 GiB of them: the search for it holds about four arrays of its size.
const BASIS_MAX: usize = 1 << 27;

/// Streams of the generator from here on belong to this module; directions use those below.
const SKETCH_STREAM: u64 = 1 << 63;
const PROBE_STREAM: u64 = SKETCH_STREAM | 1 << 62;

/// An estimate of tr(JᵀJ).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceEstimate {
    /// tr(JᵀJ).
    pub trace: f64,
    /// Its standard error; 0 where it is exact.
    pub se: f64,
}

/// Estimates tr(JᵀJ) in steps of one batch.
pub struct TraceEstimator {
    seed: u64,
    output_len: usize,
    probes: usize,
    stage: Stage,
}

enum Stage {
    /// Finding the leading subspace.
    Sketch(Subspace),
    /// Σ‖Jᵀqᵢ‖² over its basis; `done` of them are in `sum`.
    Leading {
        subspace: Subspace,
        done: usize,
        sum: f64,
    },
    /// ‖Jᵀ(I − QQᵀ)z‖² so far.
    Complement {
        subspace: Subspace,
        leading: f64,
        samples: Vec<f64>,
    },
    /// Σ‖Jᵀeᵢ‖² over the coordinates; `done` of them are in `sum`.
    Coordinates {
        done: usize,
        sum: f64,
    },
    Done(TraceEstimate),
}

impl TraceEstimator {
    /// An estimator for a feature of `output_len` values. Where a sketch would span the whole
    /// feature space the exact sum is taken instead: it costs less.
    pub fn new(method: TraceMethod, seed: u64, output_len: usize) -> Self {
        let (probes, stage) = match method {
            TraceMethod::HutchPlusPlus { sketch, probes } if sketch < output_len => (
                probes,
                Stage::Sketch(Subspace::new(sketch, 1, seed, output_len)),
            ),
            _ => (0, Stage::Coordinates { done: 0, sum: 0.0 }),
        };
        Self {
            seed,
            output_len,
            probes,
            stage,
        }
    }

    /// Work that a whole estimate takes.
    pub fn planned_cost(method: TraceMethod, output_len: usize) -> Cost {
        match method {
            TraceMethod::HutchPlusPlus { sketch, probes } if sketch < output_len => {
                let mut cost = Subspace::planned_cost(sketch, 1, output_len);
                cost.vjps = cost.vjps.saturating_add(sketch).saturating_add(probes);
                cost
            }
            _ => Cost {
                vjps: output_len,
                ..Cost::default()
            },
        }
    }

    /// Work still to be done.
    pub fn remaining(&self) -> Cost {
        let vjps = |vjps| Cost {
            vjps,
            ..Cost::default()
        };
        match &self.stage {
            Stage::Sketch(subspace) => {
                let mut cost = subspace.remaining();
                cost.vjps += subspace.dimension() + self.probes;
                cost
            }
            Stage::Leading { subspace, done, .. } => {
                vjps(subspace.dimension() - done + self.probes)
            }
            Stage::Complement { samples, .. } => vjps(self.probes - samples.len()),
            Stage::Coordinates { done, .. } => vjps(self.output_len - done),
            Stage::Done(_) => Cost::default(),
        }
    }

    /// The estimate, once there is one.
    pub fn estimate(&self) -> Option<TraceEstimate> {
        match self.stage {
            Stage::Done(estimate) => Some(estimate),
            _ => None,
        }
    }

    /// Does one batch of products; true once the estimate is there.
    ///
    /// # Errors
    /// Those of the field, and [`crate::ErrorKind::Numeric`] for a product that is not finite.
    pub fn step(&mut self, field: &mut dyn Field, cost: &mut Cost) -> Result<bool> {
        let (seed, d_z, batch) = (self.seed, self.output_len, field.batch().max(1));
        match &mut self.stage {
            Stage::Sketch(subspace) => {
                if subspace.step(field, cost)? {
                    let subspace = std::mem::take(subspace);
                    self.stage = Stage::Leading {
                        subspace,
                        done: 0,
                        sum: 0.0,
                    };
                }
            }
            Stage::Leading {
                subspace,
                done,
                sum,
            } => {
                let norms = vjp_norms_sq(field, subspace.rows(*done, batch), cost)?;
                *done += norms.len();
                // One by one: the order of summation must not depend on the batch.
                norms.iter().for_each(|norm| *sum += norm);
                if *done == subspace.dimension() {
                    let (subspace, leading) = (std::mem::take(subspace), *sum);
                    self.stage = Stage::Complement {
                        subspace,
                        leading,
                        samples: Vec::new(),
                    };
                }
            }
            Stage::Complement {
                subspace,
                leading,
                samples,
            } => {
                let end = (samples.len() + batch).min(self.probes);
                let mut cotangents = Vec::with_capacity((end - samples.len()) * d_z);
                for i in samples.len()..end {
                    let mut probe = signs(&mut stream(seed, PROBE_STREAM | i as u64), d_z);
                    subspace.project_out(&mut probe);
                    cotangents.extend(probe);
                }
                samples.extend(vjp_norms_sq(field, &cotangents, cost)?);
                if samples.len() == self.probes {
                    let (mean, se) = mean_and_se(samples);
                    self.stage = Stage::Done(TraceEstimate {
                        trace: *leading + mean,
                        se,
                    });
                }
            }
            Stage::Coordinates { done, sum } => {
                let end = (*done + batch).min(d_z);
                let mut cotangents = vec![0.0; (end - *done) * d_z];
                for (row, i) in (*done..end).enumerate() {
                    cotangents[row * d_z + i] = 1.0;
                }
                let norms = vjp_norms_sq(field, &cotangents, cost)?;
                norms.iter().for_each(|norm| *sum += norm);
                *done = end;
                if end == d_z {
                    self.stage = Stage::Done(TraceEstimate {
                        trace: *sum,
                        se: 0.0,
                    });
                }
            }
            Stage::Done(_) => {}
        }
        Ok(matches!(self.stage, Stage::Done(_)))
    }
}

/// ‖Jᵀv‖² of each row.
fn vjp_norms_sq(field: &mut dyn Field, cotangents: &[f64], cost: &mut Cost) -> Result<Vec<f64>> {
    let products = field.vjp(cotangents)?;
    require_finite(&products, "a vector–Jacobian product")?;
    cost.vjps += cotangents.len() / field.output_len();
    Ok(products
        .chunks_exact(field.input_len())
        .map(norm_sq)
        .collect())
}

pub(super) fn norm_sq(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum()
}

/// Mean and its standard error; the latter is NaN for fewer than two values.
pub(super) fn mean_and_se(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let se = if values.len() < 2 {
        f64::NAN
    } else {
        (squares / (n - 1.0) / n).sqrt()
    };
    (mean, se)
}

/// Randomised subspace iteration on JJᵀ: an orthonormal basis of its leading subspace.
#[derive(Default)]
pub(super) struct Subspace {
    output_len: usize,
    dimension: usize,
    /// `dimension` rows of `output_len` values: random signs at first, then orthonormal.
    basis: Vec<f64>,
    /// Products of JJᵀ with the first rows of the basis.
    products: Vec<f64>,
    /// Jᵀ times the next rows, on their way to J.
    tangents: Vec<Arc<[f32]>>,
    applications_left: usize,
}

impl Subspace {
    /// A basis of `dimension` vectors, at most `output_len`, after `applications` products of JJᵀ
    /// with random vectors.
    pub fn new(dimension: usize, applications: usize, seed: u64, output_len: usize) -> Self {
        let (dimension, applications) = sizes(dimension, applications, output_len);
        let mut basis = Vec::with_capacity(dimension * output_len);
        for i in 0..dimension {
            if applications == 0 {
                basis.extend((0..output_len).map(|j| f64::from(u8::from(i == j))));
            } else {
                basis.extend(signs(
                    &mut stream(seed, SKETCH_STREAM | i as u64),
                    output_len,
                ));
            }
        }
        Self {
            output_len,
            dimension,
            basis,
            products: Vec::new(),
            tangents: Vec::new(),
            applications_left: applications,
        }
    }

    pub fn planned_cost(dimension: usize, applications: usize, output_len: usize) -> Cost {
        let (dimension, applications) = sizes(dimension, applications, output_len);
        let products = dimension.saturating_mul(applications);
        Cost {
            forwards: 0,
            jvps: products,
            vjps: products,
        }
    }

    pub fn remaining(&self) -> Cost {
        let jvps = self.dimension * self.applications_left - self.products_done();
        Cost {
            forwards: 0,
            jvps,
            vjps: jvps - self.tangents.len(),
        }
    }

    pub fn dimension(&self) -> usize {
        self.dimension
    }

    fn products_done(&self) -> usize {
        self.products.len() / self.output_len
    }

    /// Up to `count` rows of the basis from row `first` on.
    pub fn rows(&self, first: usize, count: usize) -> &[f64] {
        let end = (first + count.max(1)).min(self.dimension);
        &self.basis[first * self.output_len..end * self.output_len]
    }

    /// One batch of JVPs or of VJPs; true once the basis is there (then nothing is done).
    pub fn step(&mut self, field: &mut dyn Field, cost: &mut Cost) -> Result<bool> {
        if self.applications_left == 0 {
            return Ok(true);
        }
        if self.tangents.is_empty() {
            let cotangents = self.rows(self.products_done(), field.batch());
            let tangents = field.vjp(cotangents)?;
            require_finite(&tangents, "a vector–Jacobian product")?;
            self.tangents = tangents
                .chunks_exact(field.input_len())
                .map(|row| row.iter().map(|&v| v as f32).collect())
                .collect();
            cost.vjps += self.tangents.len();
            return Ok(false);
        }
        let products = field.jvp(&self.tangents)?;
        require_finite(&products, "a Jacobian–vector product")?;
        cost.jvps += self.tangents.len();
        self.products.extend(products);
        self.tangents.clear();
        if self.products_done() == self.dimension {
            self.basis = orthonormal(&self.products, self.dimension, self.output_len);
            self.products.clear();
            self.applications_left -= 1;
        }
        Ok(self.applications_left == 0)
    }

    /// Σ wᵢqᵢ over the vectors of the basis.
    pub fn combination(&self, weights: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; self.output_len];
        for (row, weight) in self.basis.chunks_exact(self.output_len).zip(weights) {
            sum.iter_mut().zip(row).for_each(|(s, q)| *s += weight * q);
        }
        sum
    }

    /// Subtracts from `vector` its part in the subspace.
    pub fn project_out(&self, vector: &mut [f64]) {
        for row in self.basis.chunks_exact(self.output_len) {
            let part: f64 = row.iter().zip(vector.iter()).map(|(q, v)| q * v).sum();
            vector.iter_mut().zip(row).for_each(|(v, q)| *v -= part * q);
        }
    }
}

/// Refuses a subspace whose basis would not fit in memory.
pub(super) fn require_room(dimension: usize, output_len: usize) -> Result<()> {
    if dimension >= output_len || dimension.saturating_mul(output_len) <= BASIS_MAX {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Request,
        "cannot search the leading directions of the feature",
        format!("{dimension} vectors of its {output_len} values would not fit in memory"),
        format!(
            "Ask for at most {}, or choose the pooled feature",
            BASIS_MAX / output_len
        ),
    ))
}

/// The dimension is at most that of the whole space, which needs no search.
fn sizes(dimension: usize, applications: usize, output_len: usize) -> (usize, usize) {
    if dimension >= output_len {
        (output_len, 0)
    } else {
        (dimension, applications)
    }
}

/// An orthonormal basis whose span holds the given rows: also where these are dependent, because
/// the factor Q of Householder's QR is orthonormal whatever the columns.
fn orthonormal(rows: &[f64], count: usize, len: usize) -> Vec<f64> {
    let q = Mat::from_fn(len, count, |i, j| rows[j * len + i])
        .qr()
        .compute_thin_Q();
    (0..count)
        .flat_map(|j| (0..len).map(move |i| (i, j)))
        .map(|(i, j)| q[(i, j)])
        .collect()
}
