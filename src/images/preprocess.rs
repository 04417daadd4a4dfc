//! From a photograph to an encoder's input: resize, crop, scale to [0, 1].

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Interpolation of the resize, with antialiasing as in Pillow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResizeFilter {
    /// Pillow's `BICUBIC` (a = −0.5).
    Bicubic,
    /// Pillow's `BILINEAR`.
    Bilinear,
    /// Pillow's `NEAREST`.
    Nearest,
}

/// Order of the channels that the network reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChannelOrder {
    /// Red, green, blue.
    Rgb,
    /// Blue, green, red (Caffe).
    Bgr,
}

/// A checkpoint's own input recipe. Mean and standard deviation are folded into the encoder, so that
/// perturbations live in raw [0, 1] pixels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preprocessing {
    /// Length of the shorter side after the resize, in pixels; with `squash` both sides.
    pub resize_px: usize,
    /// True where the original resizes both sides to `resize_px` and ignores the aspect ratio.
    pub squash: bool,
    /// Interpolation of the resize.
    pub filter: ResizeFilter,
    /// Side of the centre crop in pixels: the encoder's input side.
    pub crop_px: usize,
    /// Mean per channel in the network's channel order, on the [0, 1] scale.
    pub mean: [f32; 3],
    /// Standard deviation per channel in the network's channel order, on the [0, 1] scale.
    pub std: [f32; 3],
    /// Order of the channels that the network reads; [`Prepared`] is always RGB.
    pub channels: ChannelOrder,
}

/// A photograph as an encoder sees it, before normalisation.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// Side of the square input in pixels.
    pub side_px: usize,
    /// Pixel values in [0, 1], RGB, channel after channel, row after row: `3 · side² `.
    pub pixels: Arc<[f32]>,
    /// What was done, for people: `451 × 300 → 385 × 256 bicubic → centre 224 × 224`.
    pub steps: String,
}
