//! EfficientNet-Lite: EfficientNet without squeeze-and-excitation, with ReLU6 for Swish and with stem
//! and head that do not scale.
//!
//! - Paper: Tan and Le, “EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks”,
//!   ICML 2019; the Lite family: R. Liu, “Higher accuracy on vision models with EfficientNet-Lite”,
//!   TensorFlow blog, March 2020.
//! - Original code: `tensorflow/tpu`, `models/official/efficientnet/lite`, Apache-2.0. Tensor names
//!   are those of timm's `tf_efficientnet_lite0` … `4`.
//! - Deviations: BatchNorm is folded into the convolutions, and dropout and stochastic depth, which
//!   act in training only, are left out.

mod config;
pub mod keys;
mod model;

pub use config::{Conventions, EfficientNetLiteConfig, StageConfig};
pub use model::EfficientNetLite;
