//! Attention with its derivative, for 32-bit floats on the host.
//!
//! Each head of each group is a few products of small matrices, which stay in a core's cache from the scores
//! to the result. Scores stand key by query, so that softmax runs down the columns, whole vectors at a
//! time. Matrix products are faer's, threads are rayon's.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::buffers;
use super::host_token::{softmax_columns, softmax_derivative};

/// Smallest length by which a query or key is divided, as in PyTorch's `normalize`.
pub const LENGTH_MIN: f32 = 1e-12;

/// What is done to queries and keys before they are compared.
#[derive(Clone, Copy, Debug)]
pub enum Preparation<'a> {
    /// Nothing.
    None,
    /// Each is divided by its length: attention by cosines.
    Unit,
    /// Each pair of components i and i + width/2 is turned by an angle of its own at every token.
    Rotary {
        /// Cosines of the angles, (width/2, token).
        cos: &'a [f32],
        /// Sines of the angles, (width/2, token).
        sin: &'a [f32],
    },
}

/// Values that depend on where key and query stand in their square window.
#[derive(Clone, Copy, Debug)]
pub struct RelativeBias<'a> {
    /// (head, difference of rows, difference of columns), differences query − key from −(side − 1) on.
    pub table: &'a [f32],
    /// Side of the window.
    pub side: usize,
}

/// Shapes and constants of an attention. Layouts are (batch, queries then keys then values: heads × width,
/// group, token) for the input and (batch, heads × width, group, token) for the output; tokens attend to
/// those of their own group.
#[derive(Clone, Copy, Debug)]
pub struct Attention<'a> {
    /// Heads.
    pub heads: usize,
    /// Components of a head's query, key or value.
    pub width: usize,
    /// Groups.
    pub groups: usize,
    /// Tokens of a group.
    pub tokens: usize,
    /// Factor of each head's scores.
    pub scale: &'a [f32],
    /// What is done to queries and keys.
    pub preparation: Preparation<'a>,
    /// Added to the scores.
    pub bias: Option<RelativeBias<'a>>,
    /// Region of each token, (group, token): scores between different regions are lowered by `penalty`.
    pub regions: Option<&'a [f32]>,
    /// See `regions`.
    pub penalty: f32,
}

/// Matrices of one head in one group, reused from head to head.
#[derive(Default)]
struct Scratch {
    query: Prepared,
    key: Prepared,
    /// Attention weights, key by query.
    weights: Vec<f32>,
    /// Changes of the weights.
    changes: Vec<f32>,
    /// Tangents or cotangents of prepared queries and keys, (width, token).
    query_change: Vec<f32>,
    key_change: Vec<f32>,
    sums: Vec<f32>,
}

/// A head's queries or keys in one group, prepared, (width, token).
#[derive(Default)]
struct Prepared {
    values: Vec<f32>,
    /// 1 / length of each before it was divided, for [`Preparation::Unit`].
    inverse_length: Vec<f32>,
}

impl Attention<'_> {
    /// Values of one head, (width, group, token).
    fn block(&self) -> usize {
        self.width * self.row()
    }

    /// Values of one component, (group, token).
    fn row(&self) -> usize {
        self.groups * self.tokens
    }

    /// Queries, keys and values of one head, each (width, group, token).
    fn parts<'x>(&self, qkv: &'x [f32], head: usize) -> [&'x [f32]; 3] {
        [0, 1, 2].map(|part| &qkv[(part * self.heads + head) * self.block()..][..self.block()])
    }

    /// One group of a head's block, (width, token) with rows far apart.
    fn view<'x>(&self, block: &'x [f32], group: usize) -> MatRef<'x, f32> {
        MatRef::from_row_major_slice(block, self.width, self.row())
            .subcols(group * self.tokens, self.tokens)
    }

    fn view_mut<'x>(&self, block: &'x mut [f32], group: usize) -> MatMut<'x, f32> {
        MatMut::from_row_major_slice_mut(block, self.width, self.row())
            .subcols_mut(group * self.tokens, self.tokens)
    }

    /// A square matrix or one of (width, token) without gaps.
    fn packed<'x>(&self, values: &'x [f32]) -> MatRef<'x, f32> {
        MatRef::from_row_major_slice(values, values.len() / self.tokens, self.tokens)
    }

    fn packed_mut<'x>(&self, values: &'x mut [f32]) -> MatMut<'x, f32> {
        let rows = values.len() / self.tokens;
        MatMut::from_row_major_slice_mut(values, rows, self.tokens)
    }

    /// The rows of one group of a head's block.
    fn rows<'x>(&self, block: &'x [f32], group: usize) -> impl Iterator<Item = &'x [f32]> {
        let (start, len) = (group * self.tokens, self.tokens);
        block
            .chunks(self.row())
            .map(move |row| &row[start..start + len])
    }

    /// Attention over `qkv`.
    pub fn forward(&self, qkv: &[f32]) -> Vec<f32> {
        let mut output = buffers::take(qkv.len() / 3);
        output
            .par_chunks_mut(self.block())
            .enumerate()
            .for_each_init(Scratch::default, |scratch, (index, output)| {
                let (item, head) = (index / self.heads, index % self.heads);
                let qkv = &qkv[item * 3 * self.heads * self.block()..];
                let [query, key, value] = self.parts(qkv, head);
                for group in 0..self.groups {
                    self.weights(query, key, head, group, scratch);
                    product(
                        self.view_mut(output, group),
                        Accum::Replace,
                        self.view(value, group),
                        self.packed(&scratch.weights),
                        1.0,
                    );
                }
            });
        output
    }

    /// The derivative of [`Self::forward`] at `qkv` of batch 1, applied to `tangents` of its shape.
    pub fn tangent(&self, qkv: &[f32], tangents: &[f32]) -> Vec<f32> {
        let mut output = buffers::take(tangents.len() / 3);
        output
            .par_chunks_mut(self.block())
            .enumerate()
            .for_each_init(Scratch::default, |scratch, (index, output)| {
                let (item, head) = (index / self.heads, index % self.heads);
                let tangents = &tangents[item * 3 * self.heads * self.block()..];
                let [query, key, value] = self.parts(qkv, head);
                let [query_tangent, key_tangent, value_tangent] = self.parts(tangents, head);
                let scale = self.scale[head];
                for group in 0..self.groups {
                    self.weights(query, key, head, group, scratch);
                    let Scratch {
                        query,
                        key,
                        weights,
                        changes,
                        query_change,
                        key_change,
                        sums,
                    } = &mut *scratch;
                    self.prepare_tangent(query_tangent, group, query, query_change, sums);
                    self.prepare_tangent(key_tangent, group, key, key_change, sums);
                    changes.resize(weights.len(), 0.0);
                    let (keys, queries) = (self.packed(&key.values), self.packed(&query.values));
                    let out = self.packed_mut(changes);
                    let moved = self.packed(query_change);
                    product(out, Accum::Replace, keys.transpose(), moved, scale);
                    let out = self.packed_mut(changes);
                    let moved = self.packed(key_change);
                    product(out, Accum::Add, moved.transpose(), queries, scale);
                    softmax_derivative(weights, changes, self.tokens, sums);
                    product(
                        self.view_mut(output, group),
                        Accum::Replace,
                        self.view(value, group),
                        self.packed(changes),
                        1.0,
                    );
                    product(
                        self.view_mut(output, group),
                        Accum::Add,
                        self.view(value_tangent, group),
                        self.packed(weights),
                        1.0,
                    );
                }
            });
        output
    }

    /// The transposed derivative at `qkv` of batch 1, applied to `cotangents` of the output's shape.
    pub fn cotangent(&self, qkv: &[f32], cotangents: &[f32]) -> Vec<f32> {
        let mut result = buffers::take(3 * cotangents.len());
        let part = self.heads * self.block();
        // Query, key and value of one head, for each item and head.
        let tasks: Vec<[&mut [f32]; 3]> = result
            .chunks_mut(3 * part)
            .flat_map(|item| {
                let (query, rest) = item.split_at_mut(part);
                let (key, value) = rest.split_at_mut(part);
                let query = query.chunks_mut(self.block());
                let key = key.chunks_mut(self.block());
                let both = query.zip(key).zip(value.chunks_mut(self.block()));
                both.map(|((query, key), value)| [query, key, value])
            })
            .collect();
        let tasks = tasks
            .into_par_iter()
            .zip(cotangents.par_chunks(self.block()));
        tasks.enumerate().for_each_init(
            Scratch::default,
            |scratch, (index, ([query_result, key_result, value_result], cotangent))| {
                let head = index % self.heads;
                let [query, key, value] = self.parts(qkv, head);
                let scale = self.scale[head];
                for group in 0..self.groups {
                    self.weights(query, key, head, group, scratch);
                    let Scratch {
                        query,
                        key,
                        weights,
                        changes,
                        query_change,
                        key_change,
                        sums,
                    } = &mut *scratch;
                    let back = self.view(cotangent, group);
                    product(
                        self.view_mut(value_result, group),
                        Accum::Replace,
                        back,
                        self.packed(weights).transpose(),
                        1.0,
                    );
                    changes.resize(weights.len(), 0.0);
                    let values = self.view(value, group);
                    let out = self.packed_mut(changes);
                    product(out, Accum::Replace, values.transpose(), back, 1.0);
                    softmax_derivative(weights, changes, self.tokens, sums);
                    let changes = self.packed(changes);
                    for (change, other, changes) in [
                        (&mut *query_change, &*key, changes),
                        (&mut *key_change, &*query, changes.transpose()),
                    ] {
                        change.resize(self.width * self.tokens, 0.0);
                        let out = self.packed_mut(change);
                        let other = self.packed(&other.values);
                        product(out, Accum::Replace, other, changes, scale);
                    }
                    self.prepare_transposed(query_change, query, query_result, group, sums);
                    self.prepare_transposed(key_change, key, key_result, group, sums);
                }
            },
        );
        result
    }

    /// Prepared queries and keys, and attention weights, of one head in one group.
    fn weights(
        &self,
        query: &[f32],
        key: &[f32],
        head: usize,
        group: usize,
        scratch: &mut Scratch,
    ) {
        self.prepare(query, group, &mut scratch.query, &mut scratch.sums);
        self.prepare(key, group, &mut scratch.key, &mut scratch.sums);
        scratch.weights.resize(self.tokens * self.tokens, 0.0);
        let keys = self.packed(&scratch.key.values);
        let queries = self.packed(&scratch.query.values);
        let out = self.packed_mut(&mut scratch.weights);
        product(
            out,
            Accum::Replace,
            keys.transpose(),
            queries,
            self.scale[head],
        );
        if let Some(bias) = self.bias {
            let span = 2 * bias.side - 1;
            pulp::Arch::new().dispatch(AddBias {
                table: &bias.table[head * span * span..][..span * span],
                side: bias.side,
                scores: &mut scratch.weights,
            });
        }
        if let Some(regions) = self.regions {
            let regions = &regions[group * self.tokens..][..self.tokens];
            self.add_penalty(regions, &mut scratch.weights);
        }
        softmax_columns(&mut scratch.weights, self.tokens, &mut scratch.sums);
    }

    fn add_penalty(&self, regions: &[f32], scores: &mut [f32]) {
        if regions.iter().all(|region| *region == regions[0]) {
            return;
        }
        for (row, own) in scores.chunks_mut(self.tokens).zip(regions) {
            for (score, region) in row.iter_mut().zip(regions) {
                *score += if region == own { 0.0 } else { self.penalty };
            }
        }
    }

    /// One group of a head's queries or keys, prepared.
    fn prepare(&self, block: &[f32], group: usize, to: &mut Prepared, sums: &mut Vec<f32>) {
        let values = &mut to.values;
        self.pack(block, group, values);
        match self.preparation {
            Preparation::None => {}
            Preparation::Rotary { cos, sin } => turn(values, cos, sin, 1.0),
            Preparation::Unit => {
                squares(values, self.tokens, sums);
                to.inverse_length.clear();
                let inverse = sums.iter().map(|sum| 1.0 / sum.sqrt().max(LENGTH_MIN));
                to.inverse_length.extend(inverse);
                for row in values.chunks_mut(self.tokens) {
                    for (value, inverse) in row.iter_mut().zip(&to.inverse_length) {
                        *value *= inverse;
                    }
                }
            }
        }
    }

    fn pack(&self, block: &[f32], group: usize, to: &mut Vec<f32>) {
        to.clear();
        self.rows(block, group)
            .for_each(|row| to.extend_from_slice(row));
    }

    /// The derivative of [`Self::prepare`] at `at`.
    fn prepare_tangent(
        &self,
        tangent: &[f32],
        group: usize,
        at: &Prepared,
        to: &mut Vec<f32>,
        sums: &mut Vec<f32>,
    ) {
        self.pack(tangent, group, to);
        match self.preparation {
            Preparation::None => {}
            Preparation::Rotary { cos, sin } => turn(to, cos, sin, 1.0),
            Preparation::Unit => across(to, at, self.tokens, sums),
        }
    }

    /// The transpose of [`Self::prepare_tangent`]; changes `cotangent`.
    fn prepare_transposed(
        &self,
        cotangent: &mut [f32],
        at: &Prepared,
        block: &mut [f32],
        group: usize,
        sums: &mut Vec<f32>,
    ) {
        match self.preparation {
            Preparation::None => {}
            Preparation::Rotary { cos, sin } => turn(cotangent, cos, sin, -1.0),
            Preparation::Unit => across(cotangent, at, self.tokens, sums),
        }
        let rows = block.chunks_mut(self.row());
        for (row, from) in rows.zip(cotangent.chunks(self.tokens)) {
            row[group * self.tokens..][..self.tokens].copy_from_slice(from);
        }
    }
}

/// Adds to each score what the table holds for its key and query.
struct AddBias<'a> {
    /// See [`RelativeBias`], of one head.
    table: &'a [f32],
    side: usize,
    scores: &'a mut [f32],
}

impl pulp::WithSimd for AddBias<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let side = self.side;
        let span = 2 * side - 1;
        for (key, row) in self.scores.chunks_mut(side * side).enumerate() {
            let (key_row, key_column) = (key / side, key % side);
            for (query_row, row) in row.chunks_mut(side).enumerate() {
                let start = (query_row + side - 1 - key_row) * span + side - 1 - key_column;
                for (score, bias) in row.iter_mut().zip(&self.table[start..]) {
                    *score += bias;
                }
            }
        }
    }
}

fn product(
    out: MatMut<'_, f32>,
    accum: Accum,
    lhs: MatRef<'_, f32>,
    rhs: MatRef<'_, f32>,
    factor: f32,
) {
    matmul(out, accum, lhs, rhs, factor, Par::Seq);
}

/// Σ over the rows of the squares of each column.
fn squares(values: &[f32], len: usize, sums: &mut Vec<f32>) {
    sums.clear();
    sums.resize(len, 0.0);
    for row in values.chunks(len) {
        for (sum, value) in sums.iter_mut().zip(row) {
            *sum += value * value;
        }
    }
}

/// The derivative of division by the length, its own transpose: `(t − n (n·t)) / length` in each column.
fn across(t: &mut [f32], at: &Prepared, len: usize, sums: &mut Vec<f32>) {
    sums.clear();
    sums.resize(len, 0.0);
    for (row, normal) in t.chunks(len).zip(at.values.chunks(len)) {
        for ((sum, t), normal) in sums.iter_mut().zip(row).zip(normal) {
            *sum += t * normal;
        }
    }
    for (row, normal) in t.chunks_mut(len).zip(at.values.chunks(len)) {
        let factors = sums.iter().zip(&at.inverse_length);
        for ((t, normal), (sum, inverse)) in row.iter_mut().zip(normal).zip(factors) {
            *t = (*t - normal * sum) * inverse;
        }
    }
}

/// Turns components i and i + width/2 of every column by its angle, backwards where `sign` is −1.
fn turn(values: &mut [f32], cos: &[f32], sin: &[f32], sign: f32) {
    let (first, second) = values.split_at_mut(values.len() / 2);
    let angles = cos.iter().zip(sin);
    for ((a, b), (cos, sin)) in first.iter_mut().zip(second).zip(angles) {
        let sin = sign * sin;
        (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
    }
}
