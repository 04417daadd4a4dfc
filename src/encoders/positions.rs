//! Positions of an activation put in another order, left out, joined by zeros, or gathered into channels.

use burn::tensor::{Int, Tensor, TensorData};
use rayon::prelude::*;

use super::buffers;
use super::layers::Placement;
use super::linear::LinearOp;
use super::value::Value;
use super::windows::{from_host, on_host};

/// Every output position is an input position or zero, and no input position is used twice: a
/// permutation in which places may be missing on either side. Its transpose is the way back.
#[derive(Clone, Debug)]
pub struct Rearrangement {
    /// Rows and columns of the input.
    input: [usize; 2],
    /// Rows and columns of the output.
    output: [usize; 2],
    /// Neighbours that stay neighbours.
    runs: Vec<Run>,
    /// Outputs that are inputs.
    covered: usize,
    /// For each output the input position, or the number of inputs where there is none.
    forward: Tensor<1, Int>,
    /// For each input the output position, or the number of outputs where there is none.
    backward: Tensor<1, Int>,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    input: usize,
    output: usize,
    len: usize,
}

impl Rearrangement {
    /// `source` tells for each output position, row after row, the input position that it takes, or
    /// `None` for zero.
    ///
    /// # Panics
    ///
    /// Where `source` has another length than `output` has positions, leaves the input, or uses a position
    /// twice: architectures make these lists, files do not.
    pub fn new(
        input: [usize; 2],
        output: [usize; 2],
        source: &[Option<usize>],
        at: &Placement,
    ) -> Self {
        let [inputs, outputs] = [input, output].map(|[rows, cols]| rows * cols);
        assert_eq!(source.len(), outputs, "a source for every output position");
        let mut target = vec![outputs; inputs];
        let mut runs: Vec<Run> = Vec::new();
        for (output, input) in source.iter().enumerate() {
            let Some(input) = *input else { continue };
            assert_eq!(target[input], outputs, "an input position is used once");
            target[input] = output;
            match runs.last_mut() {
                Some(run) if run.input + run.len == input && run.output + run.len == output => {
                    run.len += 1;
                }
                _ => runs.push(Run {
                    input,
                    output,
                    len: 1,
                }),
            }
        }
        let index = |list: Vec<i64>| {
            let len = list.len();
            Tensor::from_data(TensorData::new(list, [len]), &at.device)
        };
        let forward = source.iter().map(|input| input.unwrap_or(inputs) as i64);
        Self {
            input,
            output,
            covered: runs.iter().map(|run| run.len).sum(),
            runs,
            forward: index(forward.collect()),
            backward: index(target.into_iter().map(|output| output as i64).collect()),
        }
    }

    /// The way back: what was left out comes back as zero.
    pub fn reversed(&self) -> Self {
        Self {
            input: self.output,
            output: self.input,
            covered: self.covered,
            runs: self
                .runs
                .iter()
                .map(|run| Run {
                    input: run.output,
                    output: run.input,
                    len: run.len,
                })
                .collect(),
            forward: self.backward.clone(),
            backward: self.forward.clone(),
        }
    }

    /// The map applied to activations or tangents.
    pub fn apply(&self, x: Tensor<4>) -> Tensor<4> {
        let [batch, channels, rows, cols] = x.dims();
        let (inputs, [out_rows, out_cols]) = (rows * cols, self.output);
        let outputs = out_rows * out_cols;
        let dims = [batch, channels, out_rows, out_cols];
        if let Some(host) = on_host(&x) {
            drop(x);
            let mut result = memory(dims, self.covered == outputs);
            let planes = result.par_chunks_mut(outputs);
            let planes = planes.zip(host.storage::<f32>().par_chunks(inputs));
            planes.with_min_len(8).for_each(|(to, from)| {
                for run in &self.runs {
                    to[run.output..][..run.len].copy_from_slice(&from[run.input..][..run.len]);
                }
            });
            buffers::give_back(host);
            return from_host(result, dims);
        }
        let x = x.reshape([batch, channels, inputs]);
        let zero = Tensor::zeros([batch, channels, 1], (&x.device(), x.dtype()));
        Tensor::cat(vec![x, zero], 2)
            .select(2, self.forward.clone())
            .reshape(dims)
    }

    /// The transposed map applied to cotangents.
    pub fn transposed(&self, v: Tensor<4>) -> Tensor<4> {
        self.reversed().apply(v)
    }
}

/// Square blocks that do not overlap, each made one position whose channels are its values (input
/// channel, row in the block, column in the block): a convolution whose stride is its kernel's side is a
/// 1×1 convolution of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Side of a block.
    pub side: usize,
    /// Rows and columns of the input. Rows and columns beyond the last block are left out.
    pub input: [usize; 2],
    /// Rows and columns of blocks. Blocks that reach beyond the input are filled with zeros.
    pub output: [usize; 2],
}

impl Blocks {
    /// As many whole blocks of this side as fit.
    pub fn whole(side: usize, input: [usize; 2]) -> Self {
        let output = input.map(|len| len / side);
        Self {
            side,
            input,
            output,
        }
    }

    /// Blocks of this side that cover the input.
    pub fn covering(side: usize, input: [usize; 2]) -> Self {
        let output = input.map(|len| len.div_ceil(side));
        Self {
            side,
            input,
            output,
        }
    }

    /// The map applied to activations or tangents.
    pub fn apply(&self, x: Tensor<4>) -> Tensor<4> {
        let [batch, channels, rows, cols] = x.dims();
        let (side, [out_rows, out_cols]) = (self.side, self.output);
        let area = side * side;
        let dims = [batch, channels * area, out_rows, out_cols];
        if let Some(host) = on_host(&x) {
            drop(x);
            let within = self.reaches(|whole, input| whole <= input);
            let mut result = memory(dims, within);
            let planes = result.par_chunks_mut(area * out_rows * out_cols);
            let planes = planes.zip(host.storage::<f32>().par_chunks(rows * cols));
            planes.for_each(|(to, from)| {
                self.each_row(from, |row, offset, out| {
                    let start = offset * out_rows * out_cols + out * out_cols;
                    let stride = out_rows * out_cols;
                    for column in 0..side {
                        let to = &mut to[start + column * stride..][..out_cols];
                        let from = row.get(column..).unwrap_or_default();
                        for (to, from) in to.iter_mut().zip(from.iter().step_by(side)) {
                            *to = *from;
                        }
                    }
                });
            });
            buffers::give_back(host);
            return from_host(result, dims);
        }
        fitted(x, self.output.map(|len| len * side))
            .reshape([batch * channels, out_rows, side, out_cols, side])
            .permute([0, 2, 4, 1, 3])
            .reshape(dims)
    }

    /// Whether rows and columns of whole blocks compare so with those of the input.
    fn reaches(&self, compare: impl Fn(usize, usize) -> bool) -> bool {
        (0..2).all(|axis| compare(self.output[axis] * self.side, self.input[axis]))
    }

    /// Rows of a plane that lie in blocks, each with its row in the block times `side`, and the row of
    /// blocks.
    fn each_row<'a>(&self, plane: &'a [f32], mut visit: impl FnMut(&'a [f32], usize, usize)) {
        let rows = plane.chunks(self.input[1]);
        for (y, row) in rows.take(self.output[0] * self.side).enumerate() {
            visit(row, y % self.side * self.side, y / self.side);
        }
    }

    /// The transposed map applied to cotangents.
    pub fn transposed(&self, v: Tensor<4>) -> Tensor<4> {
        let [batch, channels, out_rows, out_cols] = v.dims();
        let (side, [rows, cols]) = (self.side, self.input);
        let area = side * side;
        let dims = [batch, channels / area, rows, cols];
        if let Some(host) = on_host(&v) {
            drop(v);
            let within = self.reaches(|whole, input| input <= whole);
            let mut result = memory(dims, within);
            let planes = result.par_chunks_mut(rows * cols);
            let from = host.storage::<f32>().par_chunks(area * out_rows * out_cols);
            planes.zip(from).for_each(|(to, from)| {
                let lines = to.chunks_mut(cols).take(out_rows * side);
                for (y, line) in lines.enumerate() {
                    let offset = y % side * side * out_rows * out_cols + y / side * out_cols;
                    for column in 0..side.min(cols) {
                        let from = &from[offset + column * out_rows * out_cols..][..out_cols];
                        for (to, from) in line[column..].iter_mut().step_by(side).zip(from) {
                            *to = *from;
                        }
                    }
                }
            });
            buffers::give_back(host);
            return from_host(result, dims);
        }
        let whole = v
            .reshape([batch * channels / area, side, side, out_rows, out_cols])
            .permute([0, 3, 1, 4, 2])
            .reshape([batch, channels / area, out_rows * side, out_cols * side]);
        fitted(whole, self.input)
    }
}

/// Memory for a result of which every value is written, or, where that is not so, zeros.
fn memory(dims: [usize; 4], written: bool) -> Vec<f32> {
    let mut memory = buffers::take(dims.iter().product());
    if !written {
        memory.fill(0.0);
    }
    memory
}

/// The upper left part of `x` with these rows and columns, filled up with zeros where it has fewer.
fn fitted(x: Tensor<4>, [rows, cols]: [usize; 2]) -> Tensor<4> {
    let [batch, channels, own_rows, own_cols] = x.dims();
    let x = x
        .narrow(2, 0, rows.min(own_rows))
        .narrow(3, 0, cols.min(own_cols));
    let zeros = |rows, cols| Tensor::zeros([batch, channels, rows, cols], (&x.device(), x.dtype()));
    let x = if cols > own_cols {
        let side = zeros(x.dims()[2], cols - own_cols);
        Tensor::cat(vec![x.clone(), side], 3)
    } else {
        x.clone()
    };
    if rows > own_rows {
        let below = Tensor::zeros(
            [batch, channels, rows - own_rows, cols],
            (&x.device(), x.dtype()),
        );
        Tensor::cat(vec![x, below], 2)
    } else {
        x
    }
}

impl Value {
    /// Positions in another order.
    pub fn rearranged(self, rearrangement: &Rearrangement) -> Self {
        self.linearly(
            |x| rearrangement.apply(x),
            || LinearOp::Rearrangement(Box::new(rearrangement.clone())),
        )
    }

    /// Blocks gathered into channels.
    pub fn blocks(self, blocks: Blocks) -> Self {
        self.linearly(|x| blocks.apply(x), || LinearOp::Blocks(blocks))
    }
}
