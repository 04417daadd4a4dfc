//! Compute devices: list, choose, check.

use serde::{Deserialize, Serialize};

/// Which compute device is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceChoice {
    /// The best hardware adapter, else the CPU; never a software adapter.
    #[default]
    Auto,
    /// The CPU through burn-flex.
    Cpu,
    /// The wgpu adapter with this name, see [`DeviceInfo::name`].
    Adapter(String),
}

/// What is known of a compute device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// Name for people and for [`DeviceChoice::Adapter`]; `cpu` for the CPU.
    pub name: String,
    /// Graphics API or compute library: `vulkan`, `metal`, `dx12`, `flex`.
    pub api: String,
    /// True for adapters that run on the CPU (lavapipe, WARP, SwiftShader).
    pub software: bool,
}

/// Comparison of a device with the CPU on a fixed input, made when an encoder is loaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelfCheck {
    /// Largest relative L2 difference over stages, pooled feature and logits.
    pub largest_relative_difference: f64,
    /// Bound above which the device is not to be trusted, [`SELF_CHECK_BOUND`].
    pub bound: f64,
}

/// Largest relative difference from the CPU that rounding in another order explains: single f32
/// operations differ by up to 1e-6 of their range, and some fifty follow each other.
pub const SELF_CHECK_BOUND: f64 = 1e-3;

impl SelfCheck {
    /// Whether the device agrees with the CPU.
    pub fn passed(&self) -> bool {
        self.largest_relative_difference <= self.bound
    }
}
