//! *mlp*: C → 512 → ReLU → dropout 0.2 → C at each position.

use burn::tensor::{Tensor, activation};

use super::layers::{self, Pass};
use crate::encoders::weights::Parameter;
use crate::geometry::learn::Live;

const DROPOUT: f64 = 0.2;

pub fn parameters(channels: usize, hidden: usize) -> Vec<Parameter> {
    let mut parameters = layers::linear_parameters("hidden", channels, hidden);
    parameters.extend(layers::linear_parameters("output", hidden, channels));
    parameters
}

pub fn forward(x: Tensor<3>, live: &Live<'_>, pass: &mut Pass) -> Tensor<3> {
    let hidden = activation::relu(layers::linear(x, live, "hidden"));
    layers::linear(pass.dropout(hidden, DROPOUT), live, "output")
}
