//! VGG: 3×3 convolutions in five groups, the side halved after each.
//!
//! - Paper: Simonyan and Zisserman, “Very Deep Convolutional Networks for Large-Scale Image
//!   Recognition”, ICLR 2015 (configuration D has 16 layers); with BatchNorm in torchvision.
//! - Original code: torchvision's `vgg16` and `vgg16_bn`, BSD-3-Clause, with its tensor names. For CIFAR
//!   the network of K. Liu's `kuangliu/pytorch-cifar`, MIT: convolutions with bias and BatchNorm, then
//!   one fully connected layer named `classifier`.
//! - *Pooled* is the penultimate vector: for ImageNet the 4,096 values after the ReLU of the second fully
//!   connected layer, for CIFAR the 512 means over positions of the last map.
//! - Deviations: BatchNorm is folded into the convolutions, and dropout, which acts in training only, is
//!   left out. The CIFAR original expects inputs of 32 pixels, of which one position is left; for
//!   others the mean over positions is taken.

mod config;
pub mod keys;

pub use config::{VggConfig, VggHead};
