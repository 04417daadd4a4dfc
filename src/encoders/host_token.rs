//! GELU and softmax with their derivatives, for 32-bit floats on the host.
//!
//! On the CPU device Burn's own run on one thread, one pass over memory for each elementary operation.
//! Here the functions are written out, so that the compiler can use whole vector registers, and threads
//! are rayon's.

use rayon::prelude::*;

use super::buffers;

/// Values of one task: long enough to pay for the hand-over to a thread.
pub(super) const TASK: usize = 8192;

/// x·Φ(x) with the distribution function Φ of the standard normal: GELU as first defined (Hendrycks and
/// Gimpel 2016), not its approximation by tanh.
pub fn gelu(x: &[f32]) -> Vec<f32> {
    elementwise(
        x,
        #[inline(always)]
        |x| x * Normal::at(x).distribution,
    )
}

/// Its derivative Φ(x) + x·φ(x).
pub fn gelu_derivative(x: &[f32]) -> Vec<f32> {
    elementwise(
        x,
        #[inline(always)]
        |x| {
            let normal = Normal::at(x);
            x.mul_add(normal.density, normal.distribution)
        },
    )
}

fn elementwise<F: Fn(f32) -> f32 + Copy + Sync>(x: &[f32], function: F) -> Vec<f32> {
    let arch = pulp::Arch::new();
    let mut y = buffers::take(x.len());
    y.par_chunks_mut(TASK)
        .zip(x.par_chunks(TASK))
        .for_each(|(y, x)| arch.dispatch(Elementwise { x, y, function }));
    y
}

/// `y[i] = function(x[i])`. Like all the tasks here it is a structure, not a closure: only so is it sure to be compiled
/// as a whole for the processor at hand.
struct Elementwise<'a, F> {
    x: &'a [f32],
    y: &'a mut [f32],
    function: F,
}

impl<F: Fn(f32) -> f32> pulp::WithSimd for Elementwise<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        for (y, x) in self.y.iter_mut().zip(self.x) {
            *y = (self.function)(*x);
        }
    }
}

/// The standard normal at one point.
struct Normal {
    distribution: f32,
    density: f32,
}

impl Normal {
    /// With t = 1 / (1 + 0.4 |x| / √2), Φ(−|x|) = exp(−x²/2) · P(t). The polynomial P was fitted to
    /// ½·exp(z²)·erfc(z) on 0 ≤ z ≤ 10 for the least largest relative error, 3.0e-8; rounding included,
    /// Φ is right to 1.2e-6 of itself for |x| < 6, and x·Φ to 4e-7.
    #[inline(always)]
    fn at(x: f32) -> Self {
        const P: [f32; 10] = [
            1.320_254_5e-5,
            0.112_541_29,
            0.115_677_56,
            0.088_708_2,
            0.134_318_71,
            -0.034_283_12,
            0.137_893_66,
            -0.031_842_686,
            -0.037_374_742,
            0.014_347_932,
        ];
        let t = 1.0 / x.abs().mul_add(0.4 * std::f32::consts::FRAC_1_SQRT_2, 1.0);
        let polynomial = P.iter().rev().fold(0.0, |sum: f32, p| sum.mul_add(t, *p));
        let bell = exp(-0.5 * x * x);
        let tail = bell * polynomial;
        Self {
            distribution: if x < 0.0 { tail } else { 1.0 - tail },
            density: bell * 0.398_942_3, // 1/√(2π)
        }
    }
}

/// exp(x) for x ≤ 0, to 2 units in the last place; 0 below −87, where it nears the smallest normal number: products
/// with subnormal ones are slow.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // x = n·ln 2 + r with |r| ≤ ln 2 / 2: the sum with 1.5·2²³ rounds to a whole number, which then
    // stands in the last bits.
    const ROUND: f32 = 12_582_912.0;
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    // ln 2 in two parts, the first of them exact in products with a small n.
    let r = n.mul_add(-0.693_145_75, x);
    let r = n.mul_add(-1.428_606_8e-6, r);
    // Taylor's series; its next term is below 1.2e-8.
    let series = [
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    let mantissa = series.iter().fold(0.0, |sum: f32, c| sum.mul_add(r, *c));
    let exponent = shifted.to_bits().wrapping_add(127) << 23;
    // Written so that NaN passes through.
    if x < -87.0 {
        0.0
    } else {
        mantissa * f32::from_bits(exponent)
    }
}

/// Softmax over the rows of a matrix with rows of `len` values: each column is made to sum to 1.
pub fn softmax_columns(matrix: &mut [f32], len: usize, scratch: &mut Vec<f32>) {
    scratch.clear();
    scratch.resize(2 * len, 0.0);
    let (most, sum) = scratch.split_at_mut(len);
    pulp::Arch::new().dispatch(Softmax { matrix, most, sum });
}

struct Softmax<'a> {
    matrix: &'a mut [f32],
    most: &'a mut [f32],
    /// 0.
    sum: &'a mut [f32],
}

impl pulp::WithSimd for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self { matrix, most, sum } = self;
        let len = most.len();
        most.fill(f32::NEG_INFINITY);
        for row in matrix.chunks(len) {
            for (most, value) in most.iter_mut().zip(row) {
                // NaN takes part below.
                *most = if *value > *most { *value } else { *most };
            }
        }
        for row in matrix.chunks_mut(len) {
            for ((value, most), sum) in row.iter_mut().zip(&*most).zip(&mut *sum) {
                *value = exp(*value - most);
                *sum += *value;
            }
        }
        for sum in &mut *sum {
            *sum = 1.0 / *sum;
        }
        for row in matrix.chunks_mut(len) {
            for (value, sum) in row.iter_mut().zip(&*sum) {
                *value *= sum;
            }
        }
    }
}

/// The derivative of [`softmax_columns`], its own transpose: `change ← p·(change − Σ p·change)`, the
/// sum over each column.
pub fn softmax_derivative(p: &[f32], change: &mut [f32], len: usize, scratch: &mut Vec<f32>) {
    scratch.clear();
    scratch.resize(len, 0.0);
    let sum = scratch.as_mut_slice();
    pulp::Arch::new().dispatch(SoftmaxDerivative { p, change, sum });
}

struct SoftmaxDerivative<'a> {
    p: &'a [f32],
    change: &'a mut [f32],
    /// 0.
    sum: &'a mut [f32],
}

impl pulp::WithSimd for SoftmaxDerivative<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self { p, change, sum } = self;
        let len = sum.len();
        for (p, change) in p.chunks(len).zip(change.chunks_mut(len)) {
            for ((p, change), sum) in p.iter().zip(change).zip(&mut *sum) {
                *change *= p;
                *sum += *change;
            }
        }
        for (p, change) in p.chunks(len).zip(change.chunks_mut(len)) {
            for ((p, change), sum) in p.iter().zip(change).zip(&*sum) {
                *change = p.mul_add(-sum, *change);
            }
        }
    }
}
