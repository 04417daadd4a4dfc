//! Sizes of the family, and the tensors that follow from them.

use serde::{Deserialize, Serialize};

use super::super::StageSpec;
use super::super::layers::{BatchNorm, ConvConfig, Padding};
use super::super::weights::{Init, Parameter};

/// ε of every BatchNorm, as in the TensorFlow original.
const NORM_EPSILON: f64 = 1e-3;

/// A stage: blocks of one width, the first of which may halve the side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageConfig {
    /// Number of blocks.
    pub blocks: usize,
    /// Side of the depthwise kernel.
    pub kernel: usize,
    /// Stride of the first block.
    pub stride: usize,
    /// Width of the hidden layer over the block's input; 1 means a depthwise-separable block, which
    /// has no expansion.
    pub expansion: usize,
    /// Output channels.
    pub channels: usize,
}

/// A network of the family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EfficientNetLiteConfig {
    /// Output channels of the stem.
    pub stem: usize,
    /// The stages between stem and head.
    pub stages: Vec<StageConfig>,
    /// Length of the pooled feature.
    pub head: usize,
    /// Number of classes.
    pub classes: usize,
}

impl EfficientNetLiteConfig {
    /// EfficientNet-Lite0: width and depth multipliers 1.
    pub fn lite0() -> Self {
        let stage = |blocks, kernel, stride, expansion, channels| StageConfig {
            blocks,
            kernel,
            stride,
            expansion,
            channels,
        };
        Self {
            stem: 32,
            stages: vec![
                stage(1, 3, 1, 1, 16),
                stage(2, 3, 2, 6, 24),
                stage(2, 5, 2, 6, 40),
                stage(3, 3, 2, 6, 80),
                stage(3, 5, 1, 6, 112),
                stage(4, 5, 2, 6, 192),
                stage(1, 3, 1, 6, 320),
            ],
            head: 1280,
            classes: 1000,
        }
    }

    /// The stages exposed for an input of `side_px`: stem, each group of blocks, head.
    pub fn stage_specs(&self, side_px: usize) -> Vec<StageSpec> {
        let plan = self.plan();
        let mut side = plan.stem.conv.output_side(side_px);
        let mut specs = vec![StageSpec {
            name: "bn1".into(),
            shape: [self.stem, side, side],
        }];
        for (i, (stage, blocks)) in self.stages.iter().zip(&plan.stages).enumerate() {
            for layer in blocks.iter().flat_map(|block| &block.layers) {
                side = layer.conv.output_side(side);
            }
            let shape = [stage.channels, side, side];
            specs.push(StageSpec {
                name: format!("blocks.{i}"),
                shape,
            });
        }
        specs.push(StageSpec {
            name: "bn2".into(),
            shape: [self.head, side, side],
        });
        specs
    }

    /// Every tensor of the network, with timm's initialisation (that of the TensorFlow original):
    /// convolutions normal with variance 2 / (kernel² · output channels of a group), classifier
    /// uniform within 1/√classes.
    pub fn parameters(&self) -> Vec<Parameter> {
        let plan = self.plan();
        let blocks = plan.stages.iter().flatten().flat_map(|block| &block.layers);
        let layers = std::iter::once(&plan.stem)
            .chain(blocks)
            .chain([&plan.head]);
        let mut parameters: Vec<Parameter> = layers.flat_map(ConvNorm::parameters).collect();
        let bound = 1.0 / (self.classes as f64).sqrt();
        parameters.push(Parameter {
            name: "classifier.weight".into(),
            shape: vec![self.classes, self.head],
            init: Init::Uniform { bound },
            trained: true,
        });
        parameters.push(Parameter {
            name: "classifier.bias".into(),
            shape: vec![self.classes],
            init: Init::Constant(0.0),
            trained: true,
        });
        parameters
    }

    pub(super) fn plan(&self) -> Plan {
        let mut inputs = self.stem;
        let stages = self.stages.iter().enumerate().map(|(i, stage)| {
            let blocks = (0..stage.blocks).map(|j| {
                let stride = if j == 0 { stage.stride } else { 1 };
                let block = BlockPlan::new(&format!("blocks.{i}.{j}"), inputs, stride, stage);
                inputs = stage.channels;
                block
            });
            blocks.collect()
        });
        let stages = stages.collect();
        Plan {
            stem: ConvNorm::new("conv_stem", "bn1", spatial(3, self.stem, 3, 2, 1)),
            stages,
            head: ConvNorm::new("conv_head", "bn2", ConvConfig::pointwise(inputs, self.head)),
        }
    }
}

/// All layers but the classifier, with their names.
pub(super) struct Plan {
    pub stem: ConvNorm,
    pub stages: Vec<Vec<BlockPlan>>,
    pub head: ConvNorm,
}

/// A block: layers with ReLU6 between them and none after the last.
pub(super) struct BlockPlan {
    pub layers: Vec<ConvNorm>,
    /// Whether the block's input is added to its output.
    pub skip: bool,
}

impl BlockPlan {
    fn new(key: &str, inputs: usize, stride: usize, stage: &StageConfig) -> Self {
        let hidden = inputs * stage.expansion;
        let depthwise = spatial(hidden, hidden, stage.kernel, stride, hidden);
        let layer = |conv: &str, norm: &str, config| {
            ConvNorm::new(&format!("{key}.{conv}"), &format!("{key}.{norm}"), config)
        };
        let layers = if stage.expansion == 1 {
            vec![
                layer("conv_dw", "bn1", depthwise),
                layer(
                    "conv_pw",
                    "bn2",
                    ConvConfig::pointwise(hidden, stage.channels),
                ),
            ]
        } else {
            vec![
                layer("conv_pw", "bn1", ConvConfig::pointwise(inputs, hidden)),
                layer("conv_dw", "bn2", depthwise),
                layer(
                    "conv_pwl",
                    "bn3",
                    ConvConfig::pointwise(hidden, stage.channels),
                ),
            ]
        };
        Self {
            layers,
            skip: stride == 1 && inputs == stage.channels,
        }
    }
}

fn spatial(
    inputs: usize,
    outputs: usize,
    kernel: usize,
    stride: usize,
    groups: usize,
) -> ConvConfig {
    ConvConfig {
        inputs,
        outputs,
        kernel,
        stride,
        padding: Padding::Same,
        groups,
    }
}

/// A convolution without bias and the BatchNorm after it.
pub(super) struct ConvNorm {
    pub key: String,
    pub conv: ConvConfig,
    pub norm: BatchNorm,
}

impl ConvNorm {
    fn new(key: &str, norm: &str, conv: ConvConfig) -> Self {
        let norm = BatchNorm {
            key: norm.to_owned(),
            channels: conv.outputs,
            epsilon: NORM_EPSILON,
        };
        Self {
            key: key.to_owned(),
            conv,
            norm,
        }
    }

    fn parameters(&self) -> Vec<Parameter> {
        let conv = &self.conv;
        let fan_out = conv.kernel * conv.kernel * conv.outputs / conv.groups;
        let weight = Parameter {
            name: format!("{}.weight", self.key),
            shape: conv.weight_shape().to_vec(),
            init: Init::Normal {
                std: (2.0 / fan_out as f64).sqrt(),
            },
            trained: true,
        };
        std::iter::once(weight)
            .chain(self.norm.parameters())
            .collect()
    }
}
