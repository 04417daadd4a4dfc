//! ResNet: blocks whose input is added to their output.
//!
//! - Papers: He, Zhang, Ren and Sun, “Deep Residual Learning for Image Recognition”, CVPR 2016;
//!   Zagoruyko and Komodakis, “Wide Residual Networks”, BMVC 2016, for those with wide bottlenecks.
//! - Original code: torchvision's `resnet18` … `resnet152`, `wide_resnet50_2` and `wide_resnet101_2`,
//!   BSD-3-Clause. Tensor names are its own, which timm shares. As there, the 3×3 convolution of a
//!   bottleneck carries the stride (“v1.5”), not the first 1×1 one as in the paper.
//! - For CIFAR the stem is a 3×3 convolution of stride 1 and there is no pooling, as is usual for
//!   inputs of 32 pixels; names and blocks stay.
//! - *Pooled* is the mean over positions of the last map.
//! - Deviations: BatchNorm is folded into the convolutions.

mod config;
pub mod keys;
mod model;

pub use config::{Block, ResNetConfig, ResNetStage, Stem};
pub use model::ResNet;
