//! AlexNet: five convolutions and three fully connected layers.
//!
//! - Papers: Krizhevsky, Sutskever and Hinton, “ImageNet Classification with Deep Convolutional Neural
//!   Networks”, NeurIPS 2012; in the form on one processor of Krizhevsky, “One weird trick for
//!   parallelizing convolutional neural networks”, arXiv 1404.5997, 2014.
//! - Original code: torchvision's `alexnet`, BSD-3-Clause. Tensor names are its own.
//! - *Pooled* is the 4,096-vector after the ReLU of the second fully connected layer. The first five
//!   stages, each after its ReLU, are those that LPIPS compares (Zhang et al., “The Unreasonable
//!   Effectiveness of Deep Features as a Perceptual Metric”, CVPR 2018).
//! - Deviations: dropout, which acts in training only, is left out.

mod config;

pub use config::AlexNetConfig;
