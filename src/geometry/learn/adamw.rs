//! AdamW (Loshchilov and Hutter 2019), as PyTorch computes it; without weight decay it is Adam (Kingma and Ba 2015).

use burn::tensor::Tensor;

/// Decay rate of the first moment, PyTorch's default.
const BETA_1: f64 = 0.9;

/// Decay rate of the second moment, PyTorch's default.
const BETA_2: f64 = 0.999;

/// Added to the root of the second moment, PyTorch's default.
const EPSILON: f64 = 1e-8;

/// Moments of one parameter's gradients.
#[derive(Clone, Debug)]
pub struct Moments {
    /// Running mean of the gradient.
    pub first: Tensor<1>,
    /// Running mean of its square.
    pub second: Tensor<1>,
    /// Steps that this parameter has made.
    pub steps: u32,
}

/// The optimiser's state, one entry for each parameter.
#[derive(Clone, Debug)]
pub struct AdamW {
    decay: f64,
    moments: Vec<Option<Moments>>,
}

impl AdamW {
    /// At rest, with a weight decay of `decay` per unit of learning rate.
    pub fn new(decay: f64) -> Self {
        Self {
            decay,
            moments: Vec::new(),
        }
    }

    /// From moments that were kept; `None` for parameters that have made no step.
    pub fn from_moments(decay: f64, moments: Vec<Option<Moments>>) -> Self {
        Self { decay, moments }
    }

    /// The moments so far, in the order of the parameters; parameters at the end may be missing.
    pub fn moments(&self) -> &[Option<Moments>] {
        &self.moments
    }

    /// Parameter `index` after a step along `gradient` at learning rate `rate`.
    ///
    /// `p ← p − rate·decay·p − rate·m̂ / (√v̂ + ε)` with the bias-corrected moments m̂ and v̂.
    pub fn step(
        &mut self,
        index: usize,
        value: Tensor<1>,
        gradient: Tensor<1>,
        rate: f64,
    ) -> Tensor<1> {
        if self.moments.len() <= index {
            self.moments.resize(index + 1, None);
        }
        let (first, second, steps) = match self.moments[index].take() {
            Some(Moments {
                first,
                second,
                steps,
            }) => (
                first * BETA_1 + gradient.clone() * (1.0 - BETA_1),
                second * BETA_2 + gradient.clone() * gradient * (1.0 - BETA_2),
                steps + 1,
            ),
            None => (
                gradient.clone() * (1.0 - BETA_1),
                gradient.clone() * gradient * (1.0 - BETA_2),
                1,
            ),
        };
        let correction = |beta: f64| 1.0 - beta.powf(f64::from(steps));
        let root = second.clone().sqrt() / correction(BETA_2).sqrt() + EPSILON;
        let value =
            value * (1.0 - rate * self.decay) - first.clone() / root * (rate / correction(BETA_1));
        self.moments[index] = Some(Moments {
            first,
            second,
            steps,
        });
        value
    }
}
