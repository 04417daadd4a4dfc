//! The half-precision numbers under the path that Burn gives them.

/// As in Burn.
pub mod tensor {
    pub use half::{bf16, f16};
}
