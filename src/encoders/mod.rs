//! Encoders: architectures, their weights, and the registry of those that the program knows.

pub mod efficientnet_lite;
pub mod layers;
pub mod registry;
pub mod squeezenet;
pub mod value;
pub mod weights;

use serde::{Deserialize, Serialize};

/// Which output of an encoder is taken as the feature Φ(x).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Readout {
    /// The pooled penultimate vector: the paper's feature.
    #[default]
    Pooled,
    /// The class scores before softmax.
    Logits,
    /// The flattened feature map of the stage with this index, see [`EncoderSpec::stages`].
    Stage(usize),
}

/// One stage of an encoder: a place where a feature map is exposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageSpec {
    /// Module path in the original code, for example `blocks.2`.
    pub name: String,
    /// Channels C, rows h and columns w of the feature map at the native input side.
    pub shape: [usize; 3],
}

/// What is known of an encoder before its weights are read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EncoderSpec {
    /// Registry name, for example `efficientnet_lite0`.
    pub name: &'static str,
    /// Name for people, for example `EfficientNet-Lite0`.
    pub title: &'static str,
    /// Paper and original code.
    pub source: &'static str,
    /// Licence of the weights.
    pub licence: &'static str,
    /// Input side in pixels.
    pub side_px: usize,
    /// Length of the pooled feature.
    pub pooled_len: usize,
    /// Number of classes.
    pub logits_len: usize,
    /// Parameters, BatchNorm statistics not counted.
    pub parameters: usize,
    /// Stages in the order of execution.
    pub stages: Vec<StageSpec>,
    /// The checkpoint's own input recipe.
    pub preprocessing: crate::images::Preprocessing,
}
