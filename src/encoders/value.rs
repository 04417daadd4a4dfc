//! An activation that may carry the derivative of everything before it.
//!
//! Encoders are written once, over [`Value`]. A plain value is a tensor. A traced value also records
//! each operation's linear map at the point where it was computed (its derivative), so that one pass
//! at a photograph gives exact products with the Jacobian and its transpose, see
//! [`super::linear::Linearised`]. The rule of each operation stands beside the operation.

use std::cell::RefCell;
use std::ops::Add;
use std::rc::Rc;

use burn::tensor::{Tensor, TensorCreationOptions, TensorData, activation};

use super::host_conv::Activation;
use super::host_pool::PoolConfig;
use super::layers::{Conv2d, Linear, ScaleShift};
use super::linear::{
    LinearOp, Linearised, Step, pixel_shuffle, reverse_channels, separable, spatial_mean,
};
use super::windows::{max_pool2d, max_pool2d_with_winners};

/// An activation (batch, channel, row, column); vectors have one row and one column.
#[derive(Clone, Debug)]
pub struct Value {
    primal: Tensor<4>,
    trace: Option<Trace>,
}

/// Where a traced value stands in the record of its computation.
#[derive(Clone, Debug)]
struct Trace {
    record: Rc<RefCell<Vec<Step>>>,
    activation: usize,
}

impl Value {
    /// An activation without derivative.
    pub fn plain(primal: Tensor<4>) -> Self {
        Self {
            primal,
            trace: None,
        }
    }

    /// The input of a computation whose derivative is wanted; batch 1.
    pub fn traced(primal: Tensor<4>) -> Self {
        let trace = Trace {
            record: Rc::default(),
            activation: 0,
        };
        Self {
            primal,
            trace: Some(trace),
        }
    }

    /// The activation itself.
    pub fn primal(&self) -> &Tensor<4> {
        &self.primal
    }

    /// The activation itself.
    pub fn into_primal(self) -> Tensor<4> {
        self.primal
    }

    /// The Jacobian of this value with respect to the traced input; `None` for a plain value.
    pub fn linearised(&self) -> Option<Linearised> {
        let trace = self.trace.as_ref()?;
        let steps = trace.record.borrow()[..trace.activation].to_vec();
        Some(Linearised::new(steps))
    }

    /// Rows and columns.
    fn side(&self) -> [usize; 2] {
        let [_, _, rows, cols] = self.primal.dims();
        [rows, cols]
    }

    /// The value `primal` that comes from this one; its derivative is made only if traced.
    fn map(
        trace: Option<Trace>,
        primal: Tensor<4>,
        op: impl FnOnce(&Tensor<4>) -> LinearOp,
    ) -> Self {
        let trace = trace.map(|trace| {
            let step = Step::Map(Box::new(op(&primal)), trace.activation);
            trace.then(step)
        });
        Self { primal, trace }
    }

    /// The result of a linear operation: its derivative `op` does not depend on this value.
    pub(super) fn linearly(
        self,
        operation: impl FnOnce(Tensor<4>) -> Tensor<4>,
        op: impl FnOnce() -> LinearOp,
    ) -> Self {
        Self::map(self.trace, operation(self.primal), |_| op())
    }

    /// The result of an operation whose derivative needs its input, batch 1.
    pub(super) fn nonlinearly(
        self,
        operation: impl FnOnce(Tensor<4>) -> Tensor<4>,
        op: impl FnOnce(Tensor<4>) -> LinearOp,
    ) -> Self {
        let input = self.trace.is_some().then(|| self.primal.clone());
        let primal = operation(self.primal);
        match input {
            None => Self::plain(primal),
            Some(input) => Self::map(self.trace, primal, |_| op(input)),
        }
    }

    /// The result of an operation whose derivative is the identity.
    pub(super) fn unchanged(self, operation: impl FnOnce(Tensor<4>) -> Tensor<4>) -> Self {
        Self {
            primal: operation(self.primal),
            trace: self.trace,
        }
    }

    /// A convolution with bias and its activation.
    pub fn conv2d(self, conv: &Conv2d) -> Self {
        let input = self.side();
        Self::map(self.trace, conv.forward(self.primal), |y| {
            LinearOp::Convolution {
                kernel: conv.kernel().clone(),
                margins: conv.margins(input),
                input,
                factors: derivative(conv.activation(), y),
            }
        })
    }

    /// `max(x, 0)`; the derivative at 0 is 0.
    pub fn relu(self) -> Self {
        Self::map(self.trace, activation::relu(self.primal), |y| {
            LinearOp::Diagonal(indicator(y.clone().greater_elem(0.0), y))
        })
    }

    /// Maximum over square windows. The derivative follows the first of equal values.
    pub fn max_pool(self, pool: PoolConfig) -> Self {
        let Some(trace) = self.trace else {
            return Self::plain(max_pool2d(self.primal, pool));
        };
        let (primal, winners) = max_pool2d_with_winners(self.primal, pool);
        Self::map(Some(trace), primal, |_| LinearOp::Selection(winners))
    }

    /// Mean over rows and columns.
    pub fn spatial_mean(self) -> Self {
        let input = self.side();
        Self::map(self.trace, spatial_mean(self.primal), |_| {
            LinearOp::SpatialMean { input }
        })
    }

    /// An affine map of vectors.
    pub fn linear(self, linear: &Linear) -> Self {
        Self::map(self.trace, linear.forward(self.primal), |_| {
            LinearOp::Matrix(linear.weight().clone())
        })
    }

    /// `scale·x + shift` with one scale and one shift a channel, (1, channel, 1, 1).
    pub fn scale_shift(self, scale: Tensor<4>, shift: Tensor<4>) -> Self {
        Self::map(self.trace, self.primal * scale.clone() + shift, |_| {
            LinearOp::Diagonal(scale)
        })
    }

    /// A BatchNorm that is not part of a convolution.
    pub fn normalise(self, norm: &ScaleShift) -> Self {
        let [scale, shift] = norm.factors();
        self.scale_shift(scale, shift)
    }

    /// Means over a grid of `grid`×`grid` windows that cover rows and columns, as PyTorch's adaptive
    /// average pooling lays them: window i of n begins at ⌊i·side/n⌋ and ends before ⌈(i+1)·side/n⌉.
    /// Windows overlap where the side is no multiple of the grid's.
    pub fn grid_mean(self, grid: usize) -> Self {
        let input = self.side();
        if grid == 1 {
            return self.spatial_mean();
        }
        if input == [grid; 2] {
            return self;
        }
        let options = TensorCreationOptions::from((&self.primal.device(), self.primal.dtype()));
        let matrices = input.map(|side| {
            let data = TensorData::new(window_means(side, grid), [grid, side]);
            Tensor::<2>::from_data(data, options.clone())
        });
        let primal = separable(self.primal, matrices.clone());
        Self::map(self.trace, primal, |_| {
            LinearOp::Separable(Box::new(matrices))
        })
    }

    /// All values of each input as one vector: channel by channel, row by row.
    pub fn flatten(self) -> Self {
        let [batch, channels, rows, cols] = self.primal.dims();
        let primal = self.primal.reshape([batch, channels * rows * cols, 1, 1]);
        Self::map(self.trace, primal, |_| LinearOp::Flatten {
            input: [channels, rows, cols],
        })
    }

    /// Groups of `factor²` channels laid out as squares of `factor`×`factor` positions: PyTorch's
    /// `pixel_shuffle` (Shi et al. 2016). The number of channels is a multiple of `factor²`.
    pub fn pixel_shuffle(self, factor: usize) -> Self {
        Self::map(self.trace, pixel_shuffle(self.primal, factor), |_| {
            LinearOp::PixelShuffle { factor }
        })
    }

    /// The channels in reverse order: RGB to BGR.
    pub fn reverse_channels(self) -> Self {
        Self::map(self.trace, reverse_channels(self.primal), |_| {
            LinearOp::ReverseChannels
        })
    }
}

impl Add for Value {
    type Output = Self;

    /// The sum of two values of one computation.
    fn add(self, other: Self) -> Self {
        let trace = self.trace.zip(other.trace).map(|(a, b)| {
            let step = Step::Sum(a.activation, b.activation);
            a.then(step)
        });
        Self {
            primal: self.primal + other.primal,
            trace,
        }
    }
}

impl Trace {
    fn then(self, step: Step) -> Self {
        let mut record = self.record.borrow_mut();
        record.push(step);
        let activation = record.len();
        drop(record);
        Self {
            record: self.record,
            activation,
        }
    }
}

/// The derivative of an activation that gave `y`: 1 where the result lies strictly inside the
/// activation's range, else 0.
fn derivative(activation: Activation, y: &Tensor<4>) -> Option<Tensor<4>> {
    if activation == Activation::None {
        return None;
    }
    let (low, high) = activation.range();
    let mut inside = y.clone().greater_elem(low);
    if high.is_finite() {
        inside = inside.bool_and(y.clone().lower_elem(high));
    }
    Some(indicator(inside, y))
}

/// 1 where `mask` holds, else 0, in the format of `like`.
fn indicator(mask: Tensor<4, burn::tensor::Bool>, like: &Tensor<4>) -> Tensor<4> {
    like.zeros_like().mask_fill(mask, 1.0)
}

/// The matrix (windows, positions) that takes the mean over each window of [`Value::grid_mean`].
fn window_means(side: usize, grid: usize) -> Vec<f64> {
    (0..grid)
        .flat_map(|i| {
            let window = i * side / grid..((i + 1) * side).div_ceil(grid);
            let weight = 1.0 / window.len() as f64;
            (0..side).map(move |p| if window.contains(&p) { weight } else { 0.0 })
        })
        .collect()
}
