//! The derivative of an encoder at one input, as a sequence of linear maps.
//!
//! A forward pass over a traced [`super::value::Value`] leaves here what each of its operations is to
//! first order. Replayed forwards the sequence gives J·t, replayed backwards and transposed Jᵀ·v, for
//! many tangents or cotangents at once and each at about the cost of one forward pass: the pass at
//! the input itself is not repeated.

use std::sync::Arc;

use burn::tensor::Tensor;

use super::attention::AttentionAt;
use super::host_conv::Activation;
use super::layers;
use super::norm::NormAt;
use super::positions::{Blocks, Rearrangement};
use super::windows::{Kernel, Margins, Winners};

/// One linear map between activations (batch, channel, row, column).
#[derive(Clone, Debug)]
pub enum LinearOp {
    /// A convolution without bias, and the derivative of the activation after it.
    Convolution {
        /// The weights.
        kernel: Arc<Kernel>,
        /// Zeros around the input.
        margins: Margins,
        /// Rows and columns of the input.
        input: [usize; 2],
        /// The 0 and 1 of the activation, (1, channel, row, column) of the output.
        factors: Option<Tensor<4>>,
    },
    /// Multiplication by factors that broadcast over the batch: the 0 and 1 of a ReLU, or a scale.
    Diagonal(Tensor<4>),
    /// Selection of each window's largest position.
    Selection(Winners),
    /// Mean over rows and columns.
    SpatialMean {
        /// Rows and columns of the input.
        input: [usize; 2],
    },
    /// A matrix (inputs, outputs) applied to vectors (batch, inputs, 1, 1).
    Matrix(Tensor<2>),
    /// Reversal of the order of the channels.
    ReverseChannels,
    /// A matrix that combines the rows of every plane and one that combines its columns, each
    /// (outputs, inputs).
    Separable(Box<[Tensor<2>; 2]>),
    /// Channels laid out as squares of positions, see [`pixel_shuffle`].
    PixelShuffle {
        /// Side of a square.
        factor: usize,
    },
    /// All values of an input as one vector.
    Flatten {
        /// Channels, rows and columns of the input.
        input: [usize; 3],
    },
    /// A layer norm.
    LayerNorm(Box<NormAt>),
    /// An attention.
    Attention(Box<AttentionAt>),
    /// Positions in another order.
    Rearrangement(Box<Rearrangement>),
    /// Blocks gathered into channels.
    Blocks(Blocks),
}

impl LinearOp {
    /// The map applied to tangents.
    pub fn apply(&self, t: Tensor<4>) -> Tensor<4> {
        match self {
            Self::Convolution {
                kernel,
                margins,
                factors,
                ..
            } => kernel.forward(t, None, *margins, Activation::None, factors.as_ref()),
            Self::Diagonal(factors) => t * factors.clone(),
            Self::Selection(winners) => winners.select(t),
            Self::SpatialMean { .. } => spatial_mean(t),
            Self::Matrix(weight) => layers::matrix(t, weight),
            Self::ReverseChannels => reverse_channels(t),
            Self::Separable(matrices) => separable(t, (**matrices).clone()),
            Self::PixelShuffle { factor } => pixel_shuffle(t, *factor),
            Self::Flatten { input } => {
                let batch = t.dims()[0];
                t.reshape([batch, input.iter().product(), 1, 1])
            }
            Self::LayerNorm(norm) => norm.apply(t),
            Self::Attention(attention) => attention.apply(t),
            Self::Rearrangement(rearrangement) => rearrangement.apply(t),
            Self::Blocks(blocks) => blocks.apply(t),
        }
    }

    /// The transposed map applied to cotangents.
    pub fn transposed(&self, v: Tensor<4>) -> Tensor<4> {
        match self {
            Self::Convolution {
                kernel,
                margins,
                input,
                factors,
            } => kernel.transposed(v, factors.as_ref(), *margins, *input),
            Self::Diagonal(factors) => v * factors.clone(),
            Self::Selection(winners) => winners.restore(v),
            Self::SpatialMean { input } => {
                let [batch, channels, ..] = v.dims();
                (v / (input[0] * input[1]) as f64).expand([batch, channels, input[0], input[1]])
            }
            Self::Matrix(weight) => layers::matrix(v, &weight.clone().transpose()),
            Self::ReverseChannels => reverse_channels(v),
            Self::Separable(matrices) => separable(v, (**matrices).clone().map(Tensor::transpose)),
            Self::PixelShuffle { factor } => pixel_unshuffle(v, *factor),
            Self::Flatten {
                input: [channels, rows, cols],
            } => {
                let batch = v.dims()[0];
                v.reshape([batch, *channels, *rows, *cols])
            }
            Self::LayerNorm(norm) => norm.transposed(v),
            Self::Attention(attention) => attention.transposed(v),
            Self::Rearrangement(rearrangement) => rearrangement.transposed(v),
            Self::Blocks(blocks) => blocks.transposed(v),
        }
    }
}

/// The channels in reverse order, copied plane by plane: on the CPU Burn's own `flip` goes value by
/// value.
pub fn reverse_channels(x: Tensor<4>) -> Tensor<4> {
    let channels = x.dims()[1];
    let planes = (0..channels)
        .rev()
        .map(|channel| x.clone().narrow(1, channel, 1));
    Tensor::cat(planes.collect(), 1)
}

/// Mean over rows and columns, (batch, channel, 1, 1).
pub fn spatial_mean(x: Tensor<4>) -> Tensor<4> {
    let [batch, channels, rows, cols] = x.dims();
    x.reshape([batch, channels, rows * cols])
        .mean_dim(2)
        .reshape([batch, channels, 1, 1])
}

/// Groups of `factor²` channels laid out as squares of `factor`×`factor` positions: value (i, j) of a square
/// comes from channel i·factor + j of its group.
pub fn pixel_shuffle(x: Tensor<4>, factor: usize) -> Tensor<4> {
    let [batch, channels, rows, cols] = x.dims();
    let channels = channels / (factor * factor);
    x.reshape([batch * channels, factor, factor, rows, cols])
        .permute([0, 3, 1, 4, 2])
        .reshape([batch, channels, rows * factor, cols * factor])
}

/// The inverse of [`pixel_shuffle`], which is also its transpose.
fn pixel_unshuffle(x: Tensor<4>, factor: usize) -> Tensor<4> {
    let [batch, channels, rows, cols] = x.dims();
    let [rows, cols] = [rows, cols].map(|side| side / factor);
    x.reshape([batch * channels, rows, factor, cols, factor])
        .permute([0, 2, 4, 1, 3])
        .reshape([batch, channels * factor * factor, rows, cols])
}

/// Every plane X becomes `rows · X · colsᵀ`; both matrices are (outputs, inputs).
pub fn separable(x: Tensor<4>, [rows, cols]: [Tensor<2>; 2]) -> Tensor<4> {
    let [batch, channels, height, width] = x.dims();
    let ([out_height, _], [out_width, _]) = (rows.dims(), cols.dims());
    let planes = batch * channels;
    x.reshape([planes * height, width])
        .matmul(cols.transpose())
        .reshape([planes, height, out_width])
        .swap_dims(1, 2)
        .reshape([planes * out_width, height])
        .matmul(rows.transpose())
        .reshape([planes, out_width, out_height])
        .swap_dims(1, 2)
        .reshape([batch, channels, out_height, out_width])
}

/// One step of the sequence. Step i computes activation i + 1 from earlier ones; activation 0 is the
/// input.
#[derive(Clone, Debug)]
pub enum Step {
    /// A linear map of one activation.
    Map(Box<LinearOp>, usize),
    /// The sum of two activations.
    Sum(usize, usize),
}

impl Step {
    fn sources(&self) -> Vec<usize> {
        match self {
            Self::Map(_, source) => vec![*source],
            Self::Sum(a, b) => vec![*a, *b],
        }
    }
}

/// The Jacobian J of a traced computation at its input.
#[derive(Clone, Debug)]
pub struct Linearised {
    steps: Vec<Step>,
    /// How often each activation is used by later steps.
    uses: Vec<usize>,
}

impl Linearised {
    /// The Jacobian of the last step's result with respect to the input. Steps that do not lead to
    /// the result are passed over.
    pub(super) fn new(steps: Vec<Step>) -> Self {
        let mut uses = vec![0; steps.len() + 1];
        uses[steps.len()] = 1; // by the caller
        for (i, step) in steps.iter().enumerate().rev() {
            if uses[i + 1] > 0 {
                step.sources()
                    .into_iter()
                    .for_each(|source| uses[source] += 1);
            }
        }
        Self { steps, uses }
    }

    /// The steps that lead to the result, each with the activation that it computes.
    fn live_steps(&self) -> impl DoubleEndedIterator<Item = (usize, &Step)> {
        let steps = self.steps.iter().enumerate().map(|(i, step)| (i + 1, step));
        steps.filter(|(target, _)| self.uses[*target] > 0)
    }

    /// J·t for a batch of tangents of the input's shape.
    pub fn jvp(&self, tangents: Tensor<4>) -> Tensor<4> {
        let mut live = Activations::new(self.uses.clone());
        live.put(0, tangents);
        for (target, step) in self.live_steps() {
            let result = match step {
                Step::Map(op, source) => op.apply(live.next_use(*source)),
                Step::Sum(a, b) => live.next_use(*a) + live.next_use(*b),
            };
            live.put(target, result);
        }
        live.next_use(self.steps.len())
    }

    /// Jᵀ·v for a batch of cotangents of the result's shape.
    pub fn vjp(&self, cotangents: Tensor<4>) -> Tensor<4> {
        let mut sums: Vec<Option<Tensor<4>>> = vec![None; self.steps.len() + 1];
        sums[self.steps.len()] = Some(cotangents);
        for (target, step) in self.live_steps().rev() {
            let v = sums[target]
                .take()
                .expect("a live step's result was used by a later one");
            let mut add = |source: usize, v: Tensor<4>| {
                sums[source] = Some(match sums[source].take() {
                    Some(sum) => sum + v,
                    None => v,
                });
            };
            match step {
                Step::Map(op, source) => add(*source, op.transposed(v)),
                Step::Sum(a, b) => {
                    add(*a, v.clone());
                    add(*b, v);
                }
            }
        }
        sums[0]
            .take()
            .expect("every computation starts at the input")
    }
}

/// Activations that are still needed; each is given away, not copied, at its last use, so that an
/// operation may reuse its memory.
struct Activations {
    remaining: Vec<usize>,
    values: Vec<Option<Tensor<4>>>,
}

impl Activations {
    fn new(uses: Vec<usize>) -> Self {
        let values = vec![None; uses.len()];
        Self {
            remaining: uses,
            values,
        }
    }

    fn put(&mut self, index: usize, value: Tensor<4>) {
        self.values[index] = Some(value);
    }

    fn next_use(&mut self, index: usize) -> Tensor<4> {
        self.remaining[index] -= 1;
        let value = &mut self.values[index];
        let value = if self.remaining[index] == 0 {
            value.take()
        } else {
            value.clone()
        };
        value.expect("an activation is computed before it is used")
    }
}
