//! Sizes of a decoder, and the tensors that follow from them.

use serde::{Deserialize, Serialize};

use crate::encoders::layers::{ConvConfig, Padding};
use crate::encoders::weights::{Init, Parameter};

/// Sizes of a decoder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecoderPlan {
    /// Channels of the feature map.
    pub channels: usize,
    /// Width at the feature map's own size.
    pub width: usize,
    /// Residual blocks there.
    pub blocks: usize,
    /// Width after each doubling but the last, which gives RGB.
    pub doublings: Vec<usize>,
}

impl DecoderPlan {
    /// Sizes that suit a stage of this shape (channels, rows, columns): as many doublings as give a picture of at most twice
    /// as many numbers as the feature map has, and of at most `side_px`; widths from 96 halving (ours; the sides are those of
    /// the decoders that come with the program).
    pub fn suited_to([channels, rows, columns]: [usize; 3], side_px: usize) -> Self {
        const WIDTH: usize = 96;
        let numbers = channels * rows * columns;
        let fits = |side: usize| 3 * side * side <= 2 * numbers && side <= side_px;
        let (mut doublings, mut side, mut width) = (Vec::new(), 4 * rows, WIDTH);
        while fits(side) && width > 6 {
            width /= 2;
            doublings.push(width);
            side *= 2;
        }
        Self {
            channels,
            width: WIDTH,
            blocks: 2,
            doublings,
        }
    }

    /// Side of the picture over the side of the feature map.
    pub fn enlargement(&self) -> usize {
        2 << self.doublings.len()
    }

    /// Every tensor under its name in files, with its distribution before training: PyTorch's own for convolutions,
    /// a tenth of it for the last of each residual block, and grey for the picture.
    pub fn parameters(&self) -> Vec<Parameter> {
        let mut parameters = Vec::new();
        for layer in self.layers() {
            let bound = 1.0 / (layer.config.fan_in() as f64).sqrt();
            let scale = if layer.is_last_of_block { 0.1 } else { 1.0 };
            parameters.push(Parameter {
                name: format!("{}.weight", layer.key),
                shape: layer.config.weight_shape().to_vec(),
                init: Init::Uniform {
                    bound: bound * scale,
                },
                trained: true,
            });
            let init = if layer.key == "output" {
                Init::Constant(0.5)
            } else {
                Init::Uniform { bound }
            };
            parameters.push(Parameter {
                name: format!("{}.bias", layer.key),
                shape: vec![layer.config.outputs],
                init,
                trained: true,
            });
        }
        parameters.push(constant(
            "mean".into(),
            vec![self.channels],
            Init::Constant(0.0),
        ));
        parameters.push(constant(
            "scale".into(),
            vec![self.channels],
            Init::Constant(1.0),
        ));
        parameters
    }

    /// All convolutions in the order of execution.
    pub(super) fn layers(&self) -> Vec<LayerPlan> {
        let spatial = |inputs, outputs| ConvConfig {
            inputs,
            outputs,
            kernel: 3,
            stride: 1,
            padding: Padding::Symmetric(1),
            groups: 1,
        };
        let layer = |key: String, config| LayerPlan {
            is_last_of_block: key.ends_with(".second"),
            key,
            config,
        };
        let block = |key: String, width| {
            ["first", "second"].map(|part| layer(format!("{key}.{part}"), spatial(width, width)))
        };
        let mut width = self.width;
        let mut layers = vec![layer(
            "input".into(),
            ConvConfig::pointwise(self.channels, width),
        )];
        for i in 0..self.blocks {
            layers.extend(block(format!("trunk.{i}"), width));
        }
        for (i, &next) in self.doublings.iter().enumerate() {
            let expand = ConvConfig::pointwise(width, 4 * next);
            layers.push(layer(format!("expand.{i}"), expand));
            layers.extend(block(format!("refine.{i}"), next));
            width = next;
        }
        layers.push(layer("output".into(), spatial(width, 12)));
        layers
    }

    /// What is wrong with the sizes, if anything: each must be at least 1, and the whole must be a network that a
    /// computer can hold.
    pub(super) fn fault(&self) -> Option<String> {
        const LARGEST: usize = 1 << 14;
        let widths = [self.channels, self.width].into_iter();
        let widths = widths.chain(self.doublings.iter().copied());
        if widths.into_iter().any(|n| n == 0 || n > LARGEST) {
            return Some("it names a width of 0 or beyond 16,384".to_owned());
        }
        (self.blocks > 64 || self.doublings.len() > 8)
            .then(|| "it names more than 64 blocks or 8 doublings".to_owned())
    }
}

/// A convolution before it has weights.
pub(super) struct LayerPlan {
    pub key: String,
    pub config: ConvConfig,
    is_last_of_block: bool,
}

fn constant(name: String, shape: Vec<usize>, init: Init) -> Parameter {
    Parameter {
        name,
        shape,
        init,
        trained: false,
    }
}
