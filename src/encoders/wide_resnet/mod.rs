//! Wide residual networks for CIFAR: few, wide blocks with BatchNorm and ReLU before each convolution.
//!
//! - Paper: Zagoruyko and Komodakis, “Wide Residual Networks”, BMVC 2016, arXiv 1605.07146; WRN-28-10
//!   has depth 28 and widening factor 10.
//! - Original code: `szagoruyko/wide-residual-networks` (Torch), BSD-2-Clause. Tensor names are those of
//!   `xternalz/WideResNet-pytorch`, MIT, which many published CIFAR networks share; its initialisation is
//!   that of the Torch original.
//! - As there, a block that changes the width takes its shortcut from the activated input, the others from
//!   the input itself.
//! - *Pooled* is the mean over positions of the last map, after its BatchNorm and ReLU.
//! - Deviations: the BatchNorm between the two convolutions of a block is folded into the first; those
//!   after a sum stay a scale and a shift. Dropout, which acts in training only, is left out. The
//!   original's mean is over 8×8 positions, which is all of them for inputs of 32 pixels.

mod config;
mod model;

pub use config::WideResNetConfig;
pub use model::WideResNet;
