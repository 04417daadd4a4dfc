//! Maps with a closed form, or small enough to be trusted, behind the trait that encoders have.

#![allow(dead_code)] // Each test binary uses its own part of them.

use std::sync::{Arc, Weak};

use etascope::geometry::{Field, Perturbation};
use etascope::{Error, ErrorKind, Result};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

/// A differentiable map given by its value and its two products.
pub trait Map {
    fn output_len(&self) -> usize;
    fn value(&self, x: &[f64]) -> Vec<f64>;
    fn jvp(&self, x: &[f64], tangent: &[f64]) -> Vec<f64>;
    fn vjp(&self, x: &[f64], cotangent: &[f64]) -> Vec<f64>;
    /// Whether the map computes in f32, so that its input must be rounded to f32 first.
    fn is_single(&self) -> bool {
        false
    }
}

/// A map at a point, with a record of what was asked of it.
pub struct MapField<M> {
    pub map: M,
    pub x: Vec<f64>,
    pub batch: usize,
    /// Rows of every call so far.
    pub calls: Vec<usize>,
    /// The directions of every call so far.
    pub seen: Vec<Weak<[f32]>>,
    /// Answer of `top_logit_gradient`.
    pub logit_gradient: Option<Vec<f64>>,
}

impl<M: Map> MapField<M> {
    pub fn new(map: M, x: Vec<f64>) -> Self {
        let (calls, seen) = (Vec::new(), Vec::new());
        Self {
            map,
            x,
            batch: 8,
            calls,
            seen,
            logit_gradient: None,
        }
    }

    fn round(&self, value: f64) -> f64 {
        if self.map.is_single() {
            f64::from(value as f32)
        } else {
            value
        }
    }

    fn record<'a>(&mut self, directions: impl ExactSizeIterator<Item = &'a Arc<[f32]>>) {
        self.calls.push(directions.len());
        self.seen.extend(directions.map(Arc::downgrade));
    }
}

impl<M: Map> Field for MapField<M> {
    fn input_len(&self) -> usize {
        self.x.len()
    }

    fn output_len(&self) -> usize {
        self.map.output_len()
    }

    fn batch(&self) -> usize {
        self.batch
    }

    fn features(&mut self, steps: &[Perturbation]) -> Result<Vec<f64>> {
        self.record(steps.iter().map(|step| &step.direction));
        let at = |step: &Perturbation| -> Vec<f64> {
            let moved = self.x.iter().zip(step.direction.iter());
            moved
                .map(|(x, u)| self.round(x + self.round(step.eta_l2 * f64::from(*u))))
                .collect()
        };
        Ok(steps
            .iter()
            .flat_map(|step| self.map.value(&at(step)))
            .collect())
    }

    fn rounding_probe(&mut self, seed: u64) -> Result<Vec<f64>> {
        self.calls.push(1);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let nudge = |x: f64, up: bool| match (self.map.is_single(), up) {
            (true, true) => f64::from((x as f32).next_up()),
            (true, false) => f64::from((x as f32).next_down()),
            (false, true) => x.next_up(),
            (false, false) => x.next_down(),
        };
        let x: Vec<f64> = self
            .x
            .iter()
            .map(|&x| nudge(x, rng.next_u32() & 1 == 1))
            .collect();
        Ok(self.map.value(&x))
    }

    fn jvp(&mut self, tangents: &[Arc<[f32]>]) -> Result<Vec<f64>> {
        self.record(tangents.iter());
        let wide = |t: &Arc<[f32]>| t.iter().map(|&t| f64::from(t)).collect::<Vec<_>>();
        Ok(tangents
            .iter()
            .flat_map(|t| self.map.jvp(&self.x, &wide(t)))
            .collect())
    }

    fn vjp(&mut self, cotangents: &[f64]) -> Result<Vec<f64>> {
        let rows = cotangents.chunks_exact(self.map.output_len());
        self.calls.push(rows.len());
        Ok(rows.flat_map(|v| self.map.vjp(&self.x, v)).collect())
    }

    fn top_logit_gradient(&mut self) -> Result<Vec<f64>> {
        self.logit_gradient
            .clone()
            .ok_or_else(|| Error::new(ErrorKind::Request, "no direction", "no classifier", ""))
    }
}

pub fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

pub fn gaussians(rng: &mut impl Rng, len: usize) -> Vec<f64> {
    rng.sample_iter(StandardNormal).take(len).collect()
}

/// Φ = A x with a dense A, row after row.
pub struct Linear {
    pub rows: usize,
    pub matrix: Vec<f64>,
}

impl Linear {
    /// Gaussian entries; row `i` is scaled by `scale(i)`.
    pub fn random(seed: u64, rows: usize, columns: usize, scale: impl Fn(usize) -> f64) -> Self {
        let mut matrix = gaussians(&mut rng(seed), rows * columns);
        for (i, row) in matrix.chunks_exact_mut(columns).enumerate() {
            row.iter_mut().for_each(|a| *a *= scale(i));
        }
        Self { rows, matrix }
    }

    /// tr(JᵀJ).
    pub fn trace(&self) -> f64 {
        self.matrix.iter().map(|a| a * a).sum()
    }
}

impl Map for Linear {
    fn output_len(&self) -> usize {
        self.rows
    }

    fn value(&self, x: &[f64]) -> Vec<f64> {
        self.matrix
            .chunks_exact(x.len())
            .map(|row| dot(row, x))
            .collect()
    }

    fn jvp(&self, _: &[f64], tangent: &[f64]) -> Vec<f64> {
        self.value(tangent)
    }

    fn vjp(&self, x: &[f64], cotangent: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; x.len()];
        for (row, v) in self.matrix.chunks_exact(x.len()).zip(cotangent) {
            out.iter_mut().zip(row).for_each(|(o, a)| *o += v * a);
        }
        out
    }
}

/// Φ_i = a_i (x_i + (c/2) x_i²). At x = 0 in d dimensions r = 1 + 3c²η²/(4(d+2)), whatever a: both
/// E D and E‖Ju‖² are the same combination Σa_i² of terms that do not depend on i.
pub struct Quadratic {
    pub a: Vec<f64>,
    pub c: f64,
}

impl Quadratic {
    pub fn r(&self, eta: f64) -> f64 {
        1.0 + 3.0 * (self.c * eta).powi(2) / (4.0 * (self.a.len() as f64 + 2.0))
    }
}

impl Map for Quadratic {
    fn output_len(&self) -> usize {
        self.a.len()
    }

    fn value(&self, x: &[f64]) -> Vec<f64> {
        self.a
            .iter()
            .zip(x)
            .map(|(a, x)| a * (x + self.c / 2.0 * x * x))
            .collect()
    }

    fn jvp(&self, x: &[f64], tangent: &[f64]) -> Vec<f64> {
        let slopes = self.a.iter().zip(x).map(|(a, x)| a * (1.0 + self.c * x));
        slopes.zip(tangent).map(|(slope, t)| slope * t).collect()
    }

    fn vjp(&self, x: &[f64], cotangent: &[f64]) -> Vec<f64> {
        self.jvp(x, cotangent)
    }
}

/// J = H diag(σ) H′ with fast orthogonal mixings H, H′: any spectrum, at a length that is a power
/// of two, without a dense matrix.
pub struct Planted {
    pub sigma: Vec<f64>,
    left: Vec<f64>,
    right: Vec<f64>,
}

impl Planted {
    pub fn new(seed: u64, sigma: Vec<f64>) -> Self {
        assert!(sigma.len().is_power_of_two());
        let mut rng = rng(seed);
        let mut signs = || {
            (0..sigma.len())
                .map(|_| if rng.next_u32() & 1 == 1 { 1.0 } else { -1.0 })
                .collect()
        };
        let (left, right) = (signs(), signs());
        Self { sigma, left, right }
    }

    /// Right-singular vector `i`: row i of H′.
    pub fn right_vector(&self, i: usize) -> Vec<f64> {
        let mut v = vec![0.0; self.sigma.len()];
        v[i] = 1.0;
        hadamard(&mut v);
        v.iter().zip(&self.right).map(|(v, s)| v * s).collect()
    }
}

impl Map for Planted {
    fn output_len(&self) -> usize {
        self.sigma.len()
    }

    fn value(&self, x: &[f64]) -> Vec<f64> {
        let mut v: Vec<f64> = x.iter().zip(&self.right).map(|(x, s)| x * s).collect();
        hadamard(&mut v);
        v.iter_mut().zip(&self.sigma).for_each(|(v, s)| *v *= s);
        hadamard(&mut v);
        v.iter().zip(&self.left).map(|(v, s)| v * s).collect()
    }

    fn jvp(&self, _: &[f64], tangent: &[f64]) -> Vec<f64> {
        self.value(tangent)
    }

    fn vjp(&self, _: &[f64], cotangent: &[f64]) -> Vec<f64> {
        let mut v: Vec<f64> = cotangent
            .iter()
            .zip(&self.left)
            .map(|(x, s)| x * s)
            .collect();
        hadamard(&mut v);
        v.iter_mut().zip(&self.sigma).for_each(|(v, s)| *v *= s);
        hadamard(&mut v);
        v.iter().zip(&self.right).map(|(v, s)| v * s).collect()
    }
}

/// The orthonormal, symmetric Walsh–Hadamard transform.
fn hadamard(values: &mut [f64]) {
    let n = values.len();
    let mut half = 1;
    while half < n {
        for start in (0..n).step_by(2 * half) {
            for i in start..start + half {
                let (a, b) = (values[i], values[i + half]);
                values[i] = a + b;
                values[i + half] = a - b;
            }
        }
        half *= 2;
    }
    let scale = (n as f64).sqrt().recip();
    values.iter_mut().for_each(|v| *v *= scale);
}

/// f32 or f64.
pub trait Scalar: Copy {
    const IS_SINGLE: bool;
    fn of(value: f64) -> Self;
    fn wide(self) -> f64;
    /// self + a·b, rounded after each operation.
    fn plus(self, a: Self, b: Self) -> Self;
    fn tanh(self) -> Self;
}

macro_rules! scalar {
    ($type:ty, $single:literal) => {
        impl Scalar for $type {
            const IS_SINGLE: bool = $single;
            fn of(value: f64) -> Self {
                value as $type
            }
            fn wide(self) -> f64 {
                f64::from(self)
            }
            fn plus(self, a: Self, b: Self) -> Self {
                self + a * b
            }
            fn tanh(self) -> Self {
                self.tanh()
            }
        }
    };
}
scalar!(f32, true);
scalar!(f64, false);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    Relu,
    Tanh,
}

/// A dense network of two layers, Φ = B a(A (x − ½) + b), in one precision throughout.
///
/// Rows of A and columns of B shrink along the index, so that few directions dominate the Jacobian
/// and ‖Ju‖² varies from direction to direction as much as in a real encoder (25–47 %).
pub struct Net<T> {
    columns: usize,
    hidden: usize,
    outputs: usize,
    activation: Activation,
    a: Vec<T>,
    bias: Vec<T>,
    b: Vec<T>,
}

impl<T: Scalar> Net<T> {
    pub fn random(seed: u64, sizes: [usize; 3], gain: f64, activation: Activation) -> Self {
        let [columns, hidden, outputs] = sizes;
        let mut rng = rng(seed);
        let mut a = gaussians(&mut rng, hidden * columns);
        for (i, row) in a.chunks_exact_mut(columns).enumerate() {
            let scale = gain / (1.0 + i as f64).powf(0.25);
            row.iter_mut().for_each(|w| *w *= scale);
        }
        let bias: Vec<f64> = gaussians(&mut rng, hidden);
        let mut b = gaussians(&mut rng, outputs * hidden);
        for row in b.chunks_exact_mut(hidden) {
            row.iter_mut()
                .enumerate()
                .for_each(|(i, w)| *w /= (1.0 + i as f64).powf(0.25));
        }
        let cast = |values: Vec<f64>| values.into_iter().map(T::of).collect();
        Self {
            columns,
            hidden,
            outputs,
            activation,
            a: cast(a),
            bias: cast(bias),
            b: cast(b),
        }
    }

    pub fn pre_activations(&self, x: &[f64]) -> Vec<T> {
        let rows = self.a.chunks_exact(self.columns).zip(&self.bias);
        rows.map(|(row, &bias)| {
            // The centring is exact in either precision for pixels between 1/4 and 1.
            row.iter()
                .zip(x)
                .fold(bias, |sum, (&w, &x)| sum.plus(w, T::of(x - 0.5)))
        })
        .collect()
    }

    /// Distance from x to the nearest place where a ReLU switches.
    pub fn region_radius(&self, x: &[f64]) -> f64 {
        let rows = self.a.chunks_exact(self.columns);
        self.pre_activations(x)
            .iter()
            .zip(rows)
            .map(|(z, row)| {
                z.wide().abs() / row.iter().map(|w| w.wide().powi(2)).sum::<f64>().sqrt()
            })
            .fold(f64::INFINITY, f64::min)
    }

    fn activate(&self, z: T) -> T {
        match self.activation {
            Activation::Tanh => z.tanh(),
            Activation::Relu => T::of(z.wide().max(0.0)),
        }
    }

    fn slopes(&self, x: &[f64]) -> Vec<f64> {
        let slope = |z: &T| match self.activation {
            Activation::Tanh => 1.0 - z.wide().tanh().powi(2),
            Activation::Relu => f64::from(u8::from(z.wide() > 0.0)),
        };
        self.pre_activations(x).iter().map(slope).collect()
    }
}

impl<T: Scalar> Map for Net<T> {
    fn output_len(&self) -> usize {
        self.outputs
    }

    fn value(&self, x: &[f64]) -> Vec<f64> {
        let hidden: Vec<T> = self
            .pre_activations(x)
            .iter()
            .map(|&z| self.activate(z))
            .collect();
        let rows = self.b.chunks_exact(self.hidden);
        rows.map(|row| {
            row.iter()
                .zip(&hidden)
                .fold(T::of(0.0), |sum, (&w, &h)| sum.plus(w, h))
                .wide()
        })
        .collect()
    }

    fn jvp(&self, x: &[f64], tangent: &[f64]) -> Vec<f64> {
        let rows = self.a.chunks_exact(self.columns);
        let inner: Vec<f64> = rows
            .zip(self.slopes(x))
            .map(|(row, s)| {
                s * row
                    .iter()
                    .zip(tangent)
                    .map(|(w, t)| w.wide() * t)
                    .sum::<f64>()
            })
            .collect();
        let rows = self.b.chunks_exact(self.hidden);
        rows.map(|row| row.iter().zip(&inner).map(|(w, h)| w.wide() * h).sum())
            .collect()
    }

    fn vjp(&self, x: &[f64], cotangent: &[f64]) -> Vec<f64> {
        let mut inner = vec![0.0; self.hidden];
        for (row, v) in self.b.chunks_exact(self.hidden).zip(cotangent) {
            inner
                .iter_mut()
                .zip(row)
                .for_each(|(h, w)| *h += v * w.wide());
        }
        inner
            .iter_mut()
            .zip(self.slopes(x))
            .for_each(|(h, s)| *h *= s);
        let mut out = vec![0.0; self.columns];
        for (row, h) in self.a.chunks_exact(self.columns).zip(inner) {
            out.iter_mut()
                .zip(row)
                .for_each(|(o, w)| *o += h * w.wide());
        }
        out
    }

    fn is_single(&self) -> bool {
        T::IS_SINGLE
    }
}

/// A photograph of random 8-bit pixels.
pub fn photograph(seed: u64, len: usize) -> Vec<f64> {
    let mut rng = rng(seed);
    (0..len)
        .map(|_| f64::from((rng.next_u32() % 256) as f32 / 255.0))
        .collect()
}

pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
