//! Sizes of the family, and the tensors that follow from them.

use serde::{Deserialize, Serialize};

use super::super::StageSpec;
use super::super::layers::{ConvConfig, Padding};
use super::super::norm::LayerNorm;
use super::super::tokens::{INIT_BOUND, INIT_STD, projection_parameters};
use super::super::weights::{Init, Parameter};

/// ε of every layer norm.
pub(super) const NORM_EPSILON: f64 = 1e-6;

/// Layer scale of an untrained network.
const LAYER_SCALE: f64 = 1e-6;

/// Width of a block's hidden layer over its input.
pub(super) const EXPANSION: usize = 4;

/// Sides of the patches before each stage.
pub(super) const PATCH: [usize; 4] = [4, 2, 2, 2];

/// A network of the family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConvNeXtConfig {
    /// Blocks of each stage.
    pub depths: [usize; 4],
    /// Channels of each stage.
    pub dims: [usize; 4],
    /// Number of classes; 0 leaves the classifier out.
    pub classes: usize,
}

impl ConvNeXtConfig {
    fn new(depths: [usize; 4], first: usize) -> Self {
        Self {
            depths,
            dims: [first, 2 * first, 4 * first, 8 * first],
            classes: 1000,
        }
    }

    /// ConvNeXt-T, `convnext_tiny`.
    pub fn tiny() -> Self {
        Self::new([3, 3, 9, 3], 96)
    }

    /// ConvNeXt-S, `convnext_small`.
    pub fn small() -> Self {
        Self::new([3, 3, 27, 3], 96)
    }

    /// ConvNeXt-B, `convnext_base`.
    pub fn base() -> Self {
        Self::new([3, 3, 27, 3], 128)
    }

    /// ConvNeXt-L, `convnext_large`.
    pub fn large() -> Self {
        Self::new([3, 3, 27, 3], 192)
    }

    /// The four stages for an input of `side_px`, at least 32.
    pub fn stage_specs(&self, side_px: usize) -> Vec<StageSpec> {
        let mut side = side_px;
        let stages = self.dims.iter().zip(PATCH).enumerate();
        stages
            .map(|(i, (channels, patch))| {
                side /= patch;
                StageSpec {
                    name: format!("stages.{i}"),
                    shape: [*channels, side, side],
                }
            })
            .collect()
    }

    /// Length of the pooled feature.
    pub fn pooled_len(&self) -> usize {
        self.dims[3]
    }

    /// Every tensor of the network. Untrained weights are normal with standard deviation 0.02, biases 0, the
    /// layer scale 1e-6, as in the original.
    pub fn parameters(&self) -> Vec<Parameter> {
        let mut parameters = Vec::new();
        let mut inputs = 3;
        for (i, (&depth, &dim)) in self.depths.iter().zip(&self.dims).enumerate() {
            let [norm, conv] = patch_keys(i);
            parameters.extend(convolution(&conv, [dim, inputs, PATCH[i], PATCH[i]]));
            let normed = if i == 0 { dim } else { inputs };
            parameters.extend(LayerNorm::parameters(&norm, normed, 1.0));
            for j in 0..depth {
                let key = format!("stages.{i}.blocks.{j}");
                let hidden = EXPANSION * dim;
                parameters.extend(convolution(&format!("{key}.conv_dw"), [dim, 1, 7, 7]));
                parameters.extend(LayerNorm::parameters(&format!("{key}.norm"), dim, 1.0));
                parameters.extend(projection_parameters(
                    &format!("{key}.mlp.fc1"),
                    [dim, hidden],
                    true,
                ));
                parameters.extend(projection_parameters(
                    &format!("{key}.mlp.fc2"),
                    [hidden, dim],
                    true,
                ));
                parameters.push(Parameter {
                    name: format!("{key}.gamma"),
                    shape: vec![dim],
                    init: Init::Constant(LAYER_SCALE),
                    trained: true,
                });
            }
            inputs = dim;
        }
        parameters.extend(LayerNorm::parameters("head.norm", inputs, 1.0));
        if self.classes > 0 {
            parameters.extend(projection_parameters(
                "head.fc",
                [inputs, self.classes],
                true,
            ));
        }
        parameters
    }
}

/// Keys of the norm and the convolution that make patches before stage `i`. Before the first stage the norm
/// stands after the convolution, later before it.
pub(super) fn patch_keys(i: usize) -> [String; 2] {
    if i == 0 {
        ["stem.1".to_owned(), "stem.0".to_owned()]
    } else {
        [0, 1].map(|k| format!("stages.{i}.downsample.{k}"))
    }
}

/// The depthwise convolution of a block.
pub(super) fn depthwise(channels: usize) -> ConvConfig {
    ConvConfig {
        inputs: channels,
        outputs: channels,
        kernel: 7,
        stride: 1,
        padding: Padding::Symmetric(3),
        groups: channels,
    }
}

fn convolution(key: &str, shape: [usize; 4]) -> [Parameter; 2] {
    let weight = Parameter {
        name: format!("{key}.weight"),
        shape: shape.to_vec(),
        init: Init::TruncatedNormal {
            std: INIT_STD,
            bound: INIT_BOUND,
        },
        trained: true,
    };
    let bias = Parameter {
        name: format!("{key}.bias"),
        shape: vec![shape[0]],
        init: Init::Constant(0.0),
        trained: true,
    };
    [weight, bias]
}
