//! *linear*: Wx + b, one for all positions, trained like the others, for comparison with the closed form.

use burn::tensor::Tensor;

use super::layers;
use crate::encoders::weights::Parameter;
use crate::geometry::learn::Live;

pub fn parameters(channels: usize) -> Vec<Parameter> {
    layers::linear_parameters("linear", channels, channels)
}

pub fn forward(x: Tensor<3>, live: &Live<'_>) -> Tensor<3> {
    layers::linear(x, live, "linear")
}
