//! Gradient descent: named parameters and the AdamW rule.
//!
//! A network that is trained here is a list of [`Parameter`](crate::encoders::weights::Parameter)s and a plain function over tensors. It needs no modules:
//! values lie in flat tensors under the names of the file, are drawn as those of an encoder are, and the
//! derivative is Burn's autodiff. Whatever is random comes from seeds and counters, so that a run can be repeated and
//! resumed to the last bit on the CPU device.

mod adamw;
mod parameters;

pub use adamw::{AdamW, Moments};
pub use parameters::{Live, Parameters, read_flat};
