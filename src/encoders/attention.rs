//! Attention of tokens to those of their own group, with its derivative at the recorded queries, keys and
//! values.
//!
//! Of a head with queries Q, keys K and values V, each (width, token), the output is O = V·P with
//! P = softmax over keys of S = s·kᵀq + bias, key by query. To first order dS = s·(kᵀdq + dkᵀq),
//! dP = P∘(dS − Σ P∘dS) and dO = V·dP + dV·P; backwards V̄ = Ō·Pᵀ, S̄ = P∘(VᵀŌ − Σ P∘VᵀŌ), q̄ = s·k·S̄ and
//! k̄ = s·q·S̄ᵀ. P is computed again in every product: kept for all layers it would be by far the largest
//! part of the record, and it costs one of five products of matrices.
//!
//! On the CPU device in single precision this is [`super::host_attention`], elsewhere Burn's operations.

use std::sync::Arc;

use burn::backend::flex::FlexTensor;
use burn::tensor::{Int, Tensor, activation};

use super::host_attention::{self, LENGTH_MIN};
use super::linear::LinearOp;
use super::value::Value;
use super::windows::{from_host, give_back, on_host};

/// What is done to queries and keys before they are compared.
#[derive(Clone, Debug)]
pub enum Preparation {
    /// Nothing.
    None,
    /// Each is divided by its length: attention by cosines (Liu et al. 2022, Swin Transformer V2, section 3.2).
    Unit,
    /// Each pair of components i and i + width/2 is turned by an angle of its own at every token (Su et
    /// al. 2021, RoFormer, in the layout of halves).
    Rotary(Box<Angles>),
}

/// Angles by which queries and keys are turned, (width/2, token).
#[derive(Clone, Debug)]
pub struct Angles {
    /// Their cosines.
    pub cos: Tensor<2>,
    /// Their sines.
    pub sin: Tensor<2>,
}

/// Values added to scores by where key and query stand in a square window.
#[derive(Clone, Debug)]
pub struct RelativeBias {
    /// (head, difference), the differences query − key of rows and columns from −(side − 1) on, row after
    /// row.
    pub table: Tensor<2>,
    /// Side of the window.
    pub side: usize,
    /// Where in the table the value for a key and a query stands, key by query.
    pub index: Tensor<1, Int>,
}

impl RelativeBias {
    /// [`Self::index`] for a window of this side.
    pub fn index(side: usize) -> Vec<i64> {
        let span = 2 * side - 1;
        let difference = |query: usize, key: usize| query + side - 1 - key;
        let tokens = side * side;
        (0..tokens * tokens)
            .map(|at| {
                let (key, query) = (at / tokens, at % tokens);
                let row = difference(query / side, key / side);
                (row * span + difference(query % side, key % side)) as i64
            })
            .collect()
    }
}

/// An attention without the projections before and after it.
#[derive(Clone, Debug)]
pub struct Attention {
    /// Factor of each head's scores, (head).
    pub scale: Tensor<1>,
    /// What is done to queries and keys.
    pub preparation: Preparation,
    /// Added to the scores.
    pub bias: Option<RelativeBias>,
    /// Whole numbers, (group, token): scores between tokens of different ones are lowered by 100, as in the
    /// original of shifted windows (Liu et al. 2021, Swin Transformer).
    pub regions: Option<Tensor<2>>,
}

/// What is added to the score between tokens of different regions.
const PENALTY: f32 = -100.0;

/// An attention at the queries, keys and values where its derivative was taken.
#[derive(Clone, Debug)]
pub struct AttentionAt {
    attention: Arc<Attention>,
    /// Batch 1.
    qkv: Tensor<4>,
}

impl Value {
    /// Attention over queries, keys and values (batch, 3 × heads × width, group, token) that stand one after the
    /// other along the channels: (batch, heads × width, group, token).
    pub fn attention(self, attention: &Arc<Attention>) -> Self {
        self.nonlinearly(
            |qkv| attention.forward(qkv),
            |qkv| {
                LinearOp::Attention(Box::new(AttentionAt {
                    attention: Arc::clone(attention),
                    qkv,
                }))
            },
        )
    }
}

impl Attention {
    fn heads(&self) -> usize {
        self.scale.dims()[0]
    }

    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method itself serves one lifetime only"
    )]
    fn forward(&self, qkv: Tensor<4>) -> Tensor<4> {
        if let Some(output) = self.on_host(&qkv, |attention, qkv| attention.forward(qkv)) {
            let dims = qkv.dims();
            give_back(qkv);
            return uploaded(output, dims, 1);
        }
        let [query, key, value] = self.parts(qkv);
        let weights = self.weights(self.prepared(query), self.prepared(key));
        joined(product(value, weights))
    }

    /// `compute` with the shapes and constants on the host and the values of `x` there; `None` where they
    /// are not in single precision on the CPU device. `x` has queries, keys and values.
    fn on_host<T>(
        &self,
        x: &Tensor<4>,
        compute: impl FnOnce(&host_attention::Attention<'_>, &[f32]) -> T,
    ) -> Option<T> {
        use host_attention::{Preparation as Host, RelativeBias as HostBias};
        let values = on_host(x)?;
        let scale = on_host(&self.scale)?;
        let angles = match &self.preparation {
            Preparation::Rotary(angles) => Some((on_host(&angles.cos)?, on_host(&angles.sin)?)),
            _ => None,
        };
        let table = match &self.bias {
            Some(bias) => Some(on_host(&bias.table)?),
            None => None,
        };
        let regions = match &self.regions {
            Some(regions) => Some(on_host(regions)?),
            None => None,
        };
        let preparation = match (&self.preparation, &angles) {
            (Preparation::Unit, _) => Host::Unit,
            (_, Some((cos, sin))) => Host::Rotary {
                cos: cos.storage(),
                sin: sin.storage(),
            },
            _ => Host::None,
        };
        let bias = self.bias.as_ref().zip(table.as_ref());
        let [_, channels, groups, tokens] = x.dims();
        let heads = self.heads();
        let attention = host_attention::Attention {
            heads,
            width: channels / (3 * heads),
            groups,
            tokens,
            scale: scale.storage(),
            preparation,
            bias: bias.map(|(bias, table)| HostBias {
                table: table.storage(),
                side: bias.side,
            }),
            regions: regions.as_ref().map(FlexTensor::storage),
            penalty: PENALTY,
        };
        Some(compute(&attention, values.storage()))
    }

    /// Queries, keys and values, each (batch, head, group, width, token).
    fn parts(&self, qkv: Tensor<4>) -> [Tensor<5>; 3] {
        let dim = qkv.dims()[1] / 3;
        [0, 1, 2].map(|part| self.split(qkv.clone().narrow(1, part * dim, dim)))
    }

    /// (batch, head × width, group, token) as (batch, head, group, width, token).
    fn split(&self, x: Tensor<4>) -> Tensor<5> {
        let [batch, channels, groups, tokens] = x.dims();
        let heads = self.heads();
        x.reshape([batch, heads, channels / heads, groups, tokens])
            .swap_dims(2, 3)
    }

    /// Attention weights, (batch, head, group, key, query), of prepared queries and keys.
    fn weights(&self, query: Tensor<5>, key: Tensor<5>) -> Tensor<5> {
        let heads = self.heads();
        let mut scores = self.scaled(product(key.swap_dims(3, 4), query));
        let [.., tokens] = scores.dims();
        if let Some(bias) = &self.bias {
            let values = bias.table.clone().select(1, bias.index.clone());
            scores = scores + values.reshape([1, heads, 1, tokens, tokens]);
        }
        if let Some(regions) = &self.regions {
            let [groups, _] = regions.dims();
            let key = regions.clone().reshape([1, 1, groups, tokens, 1]);
            let query = regions.clone().reshape([1, 1, groups, 1, tokens]);
            // Whole numbers that differ do so by at least 1.
            scores = scores + (key - query).abs().clamp(0.0, 1.0) * PENALTY;
        }
        activation::softmax(scores, 3)
    }

    fn scaled(&self, x: Tensor<5>) -> Tensor<5> {
        x * self.scale.clone().reshape([1, self.heads(), 1, 1, 1])
    }

    fn prepared(&self, x: Tensor<5>) -> Tensor<5> {
        match &self.preparation {
            Preparation::None => x,
            Preparation::Unit => {
                let length = length(&x);
                x / length
            }
            Preparation::Rotary(angles) => angles.turn(x, false),
        }
    }

    /// The derivative of the preparation of `at`, applied to `t`.
    fn prepared_tangent(&self, at: &Tensor<5>, t: Tensor<5>) -> Tensor<5> {
        match &self.preparation {
            Preparation::None => t,
            Preparation::Unit => across(at, t),
            Preparation::Rotary(angles) => angles.turn(t, false),
        }
    }

    /// Its transpose.
    fn prepared_transposed(&self, at: &Tensor<5>, v: Tensor<5>) -> Tensor<5> {
        match &self.preparation {
            Preparation::None => v,
            Preparation::Unit => across(at, v),
            Preparation::Rotary(angles) => angles.turn(v, true),
        }
    }
}

impl AttentionAt {
    /// The derivative applied to tangents of queries, keys and values.
    pub fn apply(&self, t: Tensor<4>) -> Tensor<4> {
        let attention = &self.attention;
        let on_cpu = on_host(&t).and_then(|t| {
            attention.on_host(&self.qkv, |attention, qkv| {
                attention.tangent(qkv, t.storage())
            })
        });
        if let Some(output) = on_cpu {
            give_back(t);
            return uploaded(output, self.qkv.dims(), 1);
        }
        let [query, key, value] = attention.parts(self.qkv.clone());
        let [query_tangent, key_tangent, value_tangent] = attention.parts(t);
        let query_tangent = attention.prepared_tangent(&query, query_tangent);
        let key_tangent = attention.prepared_tangent(&key, key_tangent);
        let (query, key) = (attention.prepared(query), attention.prepared(key));
        let weights = attention.weights(query.clone(), key.clone());
        let scores = product(key.swap_dims(3, 4), query_tangent)
            + product(key_tangent.swap_dims(3, 4), query);
        let changes = softmax_derivative(&weights, attention.scaled(scores));
        joined(product(value, changes) + product(value_tangent, weights))
    }

    /// The transposed derivative applied to cotangents of the output.
    pub fn transposed(&self, v: Tensor<4>) -> Tensor<4> {
        let attention = &self.attention;
        let on_cpu = on_host(&v).and_then(|v| {
            attention.on_host(&self.qkv, |attention, qkv| {
                attention.cotangent(qkv, v.storage())
            })
        });
        if let Some(result) = on_cpu {
            give_back(v);
            return uploaded(result, self.qkv.dims(), 3);
        }
        let [query_at, key_at, value] = attention.parts(self.qkv.clone());
        let query = attention.prepared(query_at.clone());
        let key = attention.prepared(key_at.clone());
        let weights = attention.weights(query.clone(), key.clone());
        let back = attention.split(v);
        let value_back = product(back.clone(), weights.clone().swap_dims(3, 4));
        let scores = product(value.swap_dims(3, 4), back);
        let scores = attention.scaled(softmax_derivative(&weights, scores));
        let query_back = product(key, scores.clone());
        let key_back = product(query, scores.swap_dims(3, 4));
        let parts = vec![
            joined(attention.prepared_transposed(&query_at, query_back)),
            joined(attention.prepared_transposed(&key_at, key_back)),
            joined(value_back),
        ];
        Tensor::cat(parts, 1)
    }
}

/// `parts` of queries, keys and values, of which all three have the shape `dims` with another batch.
fn uploaded(
    values: Vec<f32>,
    [_, channels, groups, tokens]: [usize; 4],
    parts: usize,
) -> Tensor<4> {
    let channels = channels / 3 * parts;
    let batch = values.len() / (channels * groups * tokens);
    from_host(values, [batch, channels, groups, tokens])
}

/// (batch, head, group, width, token) as (batch, head × width, group, token).
fn joined(x: Tensor<5>) -> Tensor<4> {
    let [batch, heads, groups, width, tokens] = x.dims();
    x.swap_dims(2, 3)
        .reshape([batch, heads * width, groups, tokens])
}

/// Products of the matrices on the last two axes; a batch of 1 serves every item of the other.
fn product(a: Tensor<5>, b: Tensor<5>) -> Tensor<5> {
    let [batch_a, heads, groups, rows, inner] = a.dims();
    let [batch_b, .., columns] = b.dims();
    let a = a.reshape([batch_a, heads * groups, rows, inner]);
    let b = b.reshape([batch_b, heads * groups, inner, columns]);
    let batch = batch_a.max(batch_b);
    a.matmul(b).reshape([batch, heads, groups, rows, columns])
}

/// `p·(change − Σ p·change)`, the sum over keys.
fn softmax_derivative(weights: &Tensor<5>, change: Tensor<5>) -> Tensor<5> {
    let change = change * weights.clone();
    let sum = change.clone().sum_dim(3);
    change - weights.clone() * sum
}

/// Length of each vector, at least [`LENGTH_MIN`].
fn length(x: &Tensor<5>) -> Tensor<5> {
    let squares = x.clone() * x.clone();
    squares.sum_dim(3).sqrt().clamp_min(LENGTH_MIN)
}

/// The derivative of division by the length at `at`, its own transpose: `(t − n (n·t)) / length`.
fn across(at: &Tensor<5>, t: Tensor<5>) -> Tensor<5> {
    let length = length(at);
    let normal = at.clone() / length.clone();
    let along = (normal.clone() * t.clone()).sum_dim(3);
    (t - normal * along) / length
}

impl Angles {
    /// Components i and i + width/2 of `x` turned by their angles, or back.
    fn turn(&self, x: Tensor<5>, back: bool) -> Tensor<5> {
        let [_, _, _, width, tokens] = x.dims();
        let half = width / 2;
        let [cos, sin] =
            [&self.cos, &self.sin].map(|values| values.clone().reshape([1, 1, 1, half, tokens]));
        let sin = if back { -sin } else { sin };
        let (a, b) = (x.clone().narrow(3, 0, half), x.narrow(3, half, half));
        let first = a.clone() * cos.clone() - b.clone() * sin.clone();
        Tensor::cat(vec![first, b * cos + a * sin], 3)
    }
}
