//! SqueezeNet 1.1: fire modules, which squeeze by 1×1 convolutions and expand by 1×1 and 3×3.
//!
//! - Paper: Iandola et al., “SqueezeNet: AlexNet-level accuracy with 50x fewer parameters and <0.5MB
//!   model size”, arXiv 1602.07360, 2016; version 1.1 by the same authors.
//! - Original code: `forresti/SqueezeNet` (Caffe), BSD-2-Clause. Tensor names are those of
//!   torchvision's `squeezenet1_1`.
//! - The bundled weights are the Caffe ones by way of Keras: the input is BGR, the first convolution
//!   is not padded, and pooling windows reach beyond the edge (ceil mode), as in torchvision.
//! - Deviations: dropout, which acts in training only, is left out. The network has no penultimate
//!   vector of its own; *pooled* is the mean over positions of the last fire module.

mod config;
mod model;

pub use config::{FireConfig, SqueezeNetConfig};
pub use model::SqueezeNet;
