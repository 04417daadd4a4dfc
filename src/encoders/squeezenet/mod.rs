//! SqueezeNet 1.0 and 1.1: fire modules, which squeeze by 1×1 convolutions and expand by 1×1 and 3×3.
//!
//! - Paper: Iandola et al., “SqueezeNet: AlexNet-level accuracy with 50x fewer parameters and <0.5MB
//!   model size”, arXiv 1602.07360, 2016; version 1.1 by the same authors.
//! - Original code: `forresti/SqueezeNet` (Caffe), BSD-2-Clause. Tensor names are those of
//!   torchvision's `squeezenet1_0` and `squeezenet1_1`, whose weights take RGB.
//! - The bundled weights of 1.1 are the Caffe ones by way of Keras: the input is BGR. As in torchvision the
//!   first convolution is not padded, and pooling windows reach beyond the edge (ceil mode).
//! - Deviations: dropout, which acts in training only, is left out. The network has no penultimate
//!   vector of its own; *pooled* is the mean over positions of the last fire module.

mod config;
mod model;

pub use config::{FireConfig, SqueezeNetConfig};
pub use model::SqueezeNet;
