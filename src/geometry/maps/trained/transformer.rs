//! *transformer*: C → 512, four layers of eight heads, dropout 0.1, → C, over the positions of a map.
//!
//! A layer is PyTorch's `nn.TransformerEncoderLayer` with its defaults: attention, then a feed-forward part of four times
//! the width with ReLU, each added to its input and normalised after. Without position code the authors' version: a
//! permutation of the positions permutes the result. The code that is offered beside it (ours) is learnt and added once,
//! after the first layer, as in a vision transformer.

use burn::tensor::{Tensor, activation};

use super::layers::{self, Pass};
use crate::encoders::weights::{Init, Parameter};
use crate::geometry::learn::Live;

/// Layers.
const LAYERS: usize = 4;

/// Heads of a layer, of which the width is a multiple.
pub const HEADS: usize = 8;

const DROPOUT: f64 = 0.1;

/// Width of the feed-forward part over the model's, PyTorch's 2048 at 512.
const FEED_FORWARD: usize = 4;

/// Standard deviation of an untrained position code, as in vision transformers.
const CODE_STD: f64 = 0.02;

pub fn parameters(channels: usize, hidden: usize, positions: Option<usize>) -> Vec<Parameter> {
    let mut parameters = layers::linear_parameters("input", channels, hidden);
    if let Some(positions) = positions {
        let init = Init::Normal { std: CODE_STD };
        let shape = vec![positions, hidden];
        parameters.push(layers::trained("positions", "weight", shape, init));
    }
    for layer in 0..LAYERS {
        let key = format!("layers.{layer}");
        let attention = format!("{key}.self_attn");
        // xavier_uniform_ over the three matrices together, and zeros.
        let bound = (6.0 / (4 * hidden) as f64).sqrt();
        let of = |name, shape, init| layers::trained(&attention, name, shape, init);
        parameters.push(of(
            "in_proj_weight",
            vec![3 * hidden, hidden],
            Init::Uniform { bound },
        ));
        parameters.push(of("in_proj_bias", vec![3 * hidden], Init::Constant(0.0)));
        let mut out = layers::linear_parameters(&format!("{attention}.out_proj"), hidden, hidden);
        out[1].init = Init::Constant(0.0);
        parameters.extend(out);
        let wide = FEED_FORWARD * hidden;
        parameters.extend(layers::linear_parameters(
            &format!("{key}.linear1"),
            hidden,
            wide,
        ));
        parameters.extend(layers::linear_parameters(
            &format!("{key}.linear2"),
            wide,
            hidden,
        ));
        for norm in ["norm1", "norm2"] {
            parameters.extend(layers::norm_parameters(&format!("{key}.{norm}"), hidden));
        }
    }
    parameters.extend(layers::linear_parameters("output", hidden, channels));
    parameters
}

pub fn forward(x: Tensor<3>, live: &Live<'_>, pass: &mut Pass, has_positions: bool) -> Tensor<3> {
    let mut x = layers::linear(x, live, "input");
    if has_positions {
        let code: Tensor<2> = live.get("positions.weight");
        x = x + code.unsqueeze();
    }
    for layer in 0..LAYERS {
        let key = format!("layers.{layer}");
        let attended = attention(x.clone(), live, pass, &format!("{key}.self_attn"));
        let attended = pass.dropout(attended, DROPOUT);
        x = layers::layer_norm(x + attended, live, &format!("{key}.norm1"));
        let wide = activation::relu(layers::linear(x.clone(), live, &format!("{key}.linear1")));
        let wide = pass.dropout(wide, DROPOUT);
        let narrow = layers::linear(wide, live, &format!("{key}.linear2"));
        let narrow = pass.dropout(narrow, DROPOUT);
        x = layers::layer_norm(x + narrow, live, &format!("{key}.norm2"));
    }
    layers::linear(x, live, "output")
}

fn attention(x: Tensor<3>, live: &Live<'_>, pass: &mut Pass, key: &str) -> Tensor<3> {
    let [batch, positions, width] = x.dims();
    let head = width / HEADS;
    let weight: Tensor<2> = live.get(&format!("{key}.in_proj_weight"));
    let bias: Tensor<1> = live.get(&format!("{key}.in_proj_bias"));
    let all = layers::affine(x, weight, bias);
    let part = |which: usize| {
        all.clone()
            .narrow(2, which * width, width)
            .reshape([batch, positions, HEADS, head])
            .swap_dims(1, 2)
    };
    let (query, key_part, value) = (part(0), part(1), part(2));
    let scores = query.matmul(key_part.swap_dims(2, 3)) / (head as f64).sqrt();
    let weights = pass.dropout(activation::softmax(scores, 3), DROPOUT);
    let mixed = weights
        .matmul(value)
        .swap_dims(1, 2)
        .reshape([batch, positions, width]);
    layers::linear(mixed, live, &format!("{key}.out_proj"))
}
