//! *cnn*: 3×3 convolution C → 512, BatchNorm, ReLU, dropout of whole channels 0.2, 3×3 convolution 512 → C.

use burn::tensor::ops::ConvOptions;
use burn::tensor::{Tensor, activation, module};

use super::layers::{self, Pass};
use crate::encoders::weights::Parameter;
use crate::geometry::learn::Live;

const DROPOUT: f64 = 0.2;

pub fn parameters(channels: usize, hidden: usize) -> Vec<Parameter> {
    let mut parameters = layers::conv_parameters("conv1", channels, hidden);
    parameters.extend(layers::batch_norm_parameters("norm", hidden));
    parameters.extend(layers::conv_parameters("conv2", hidden, channels));
    parameters
}

pub fn forward(
    x: Tensor<3>,
    [rows, columns]: [usize; 2],
    live: &Live<'_>,
    pass: &mut Pass,
) -> Tensor<3> {
    let [batch, positions, channels] = x.dims();
    let conv = |x: Tensor<4>, key: &str| {
        let options = ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
        let weight = live.get(&format!("{key}.weight"));
        module::conv2d(x, weight, Some(live.get(&format!("{key}.bias"))), options)
    };
    let x = x.swap_dims(1, 2).reshape([batch, channels, rows, columns]);
    let hidden = layers::batch_norm(conv(x, "conv1"), live, pass, "norm");
    let hidden = pass.dropout2d(activation::relu(hidden), DROPOUT);
    conv(hidden, "conv2")
        .reshape([batch, channels, positions])
        .swap_dims(1, 2)
}
