//! Sizes of the family, and the tensors that follow from them.

use serde::{Deserialize, Serialize};

use super::super::StageSpec;
use super::super::layers::{BatchNorm, ConvConfig, Padding};
use super::super::plans::{ConvPlan, LinearPlan};
use super::super::weights::{Init, Parameter};

/// For which of two libraries the weights were trained, which differ in padding and in the ε of BatchNorm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conventions {
    /// `SAME` padding and ε = 10⁻³: the original, timm's `tf_efficientnet_lite0` … `4`.
    #[default]
    TensorFlow,
    /// The same zeros on every side and ε = 10⁻⁵: timm's `efficientnet_lite0` … `4`.
    PyTorch,
}

impl Conventions {
    fn padding(self, kernel: usize) -> Padding {
        match self {
            Self::TensorFlow => Padding::Same,
            Self::PyTorch => Padding::Symmetric(kernel / 2),
        }
    }

    fn epsilon(self) -> f64 {
        match self {
            Self::TensorFlow => 1e-3,
            Self::PyTorch => BatchNorm::TORCH_EPSILON,
        }
    }
}

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
    /// Padding and ε.
    #[serde(default)]
    pub conventions: Conventions,
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
            conventions: Conventions::TensorFlow,
        }
    }

    /// EfficientNet-Lite1.
    pub fn lite1() -> Self {
        Self::lite0().scaled(1.0, 1.1)
    }

    /// EfficientNet-Lite2.
    pub fn lite2() -> Self {
        Self::lite0().scaled(1.1, 1.2)
    }

    /// EfficientNet-Lite3.
    pub fn lite3() -> Self {
        Self::lite0().scaled(1.2, 1.4)
    }

    /// EfficientNet-Lite4.
    pub fn lite4() -> Self {
        Self::lite0().scaled(1.4, 1.8)
    }

    /// The network with `width` times the channels, in multiples of eight, and `depth` times the
    /// blocks, rounded up. The number of blocks of first and last stage stays, and so do stem and head.
    fn scaled(mut self, width: f64, depth: f64) -> Self {
        let last = self.stages.len() - 1;
        for (i, stage) in self.stages.iter_mut().enumerate() {
            stage.channels = multiple_of_eight(width * stage.channels as f64);
            if i != 0 && i != last {
                stage.blocks = (depth * stage.blocks as f64).ceil() as usize;
            }
        }
        self
    }

    /// The same network with the conventions of another library.
    pub fn with_conventions(self, conventions: Conventions) -> Self {
        Self {
            conventions,
            ..self
        }
    }

    /// The stages exposed for an input of `side_px`: stem, each group of blocks, head.
    pub fn stage_specs(&self, side_px: usize) -> Vec<StageSpec> {
        let plan = self.plan();
        let mut side = plan.stem.config.output_side(side_px);
        let mut specs = vec![StageSpec {
            name: "bn1".into(),
            shape: [self.stem, side, side],
        }];
        for (i, (stage, blocks)) in self.stages.iter().zip(&plan.stages).enumerate() {
            for layer in blocks.iter().flat_map(|block| &block.layers) {
                side = layer.config.output_side(side);
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
        layers
            .flat_map(ConvPlan::parameters)
            .chain(plan.classifier.parameters())
            .collect()
    }

    pub(super) fn plan(&self) -> Plan {
        let mut inputs = self.stem;
        let stages = self.stages.iter().enumerate().map(|(i, stage)| {
            let blocks = (0..stage.blocks).map(|j| {
                let stride = if j == 0 { stage.stride } else { 1 };
                let block = self.block_plan(&format!("blocks.{i}.{j}"), inputs, stride, stage);
                inputs = stage.channels;
                block
            });
            blocks.collect()
        });
        let stages = stages.collect();
        let stem = self.spatial(3, self.stem, 3, 2, 1);
        let head = ConvConfig::pointwise(inputs, self.head);
        Plan {
            stem: self.layer("conv_stem", "bn1", stem),
            stages,
            head: self.layer("conv_head", "bn2", head),
            classifier: LinearPlan {
                key: "classifier".into(),
                shape: [self.head, self.classes],
                init: Init::Uniform {
                    bound: 1.0 / (self.classes as f64).sqrt(),
                },
                bias: Init::Constant(0.0),
            },
        }
    }

    fn block_plan(
        &self,
        key: &str,
        inputs: usize,
        stride: usize,
        stage: &StageConfig,
    ) -> BlockPlan {
        let hidden = inputs * stage.expansion;
        let depthwise = self.spatial(hidden, hidden, stage.kernel, stride, hidden);
        let project = ConvConfig::pointwise(hidden, stage.channels);
        let layer = |conv: &str, norm: &str, config| {
            self.layer(&format!("{key}.{conv}"), &format!("{key}.{norm}"), config)
        };
        let layers = if stage.expansion == 1 {
            vec![
                layer("conv_dw", "bn1", depthwise),
                layer("conv_pw", "bn2", project),
            ]
        } else {
            vec![
                layer("conv_pw", "bn1", ConvConfig::pointwise(inputs, hidden)),
                layer("conv_dw", "bn2", depthwise),
                layer("conv_pwl", "bn3", project),
            ]
        };
        BlockPlan {
            layers,
            skip: stride == 1 && inputs == stage.channels,
        }
    }

    /// A convolution without bias and the BatchNorm after it.
    fn layer(&self, key: &str, norm: &str, conv: ConvConfig) -> ConvPlan {
        let fan_out = conv.kernel * conv.kernel * conv.outputs / conv.groups;
        let init = Init::Normal {
            std: (2.0 / fan_out as f64).sqrt(),
        };
        let norm = BatchNorm::new(norm.to_owned(), conv.outputs, self.conventions.epsilon());
        ConvPlan::with_norm(key.to_owned(), conv, init, norm)
    }

    fn spatial(
        &self,
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
            padding: self.conventions.padding(kernel),
            groups,
        }
    }
}

/// The multiple of 8 nearest to `channels`, or the next one where that would take away more than a tenth.
fn multiple_of_eight(channels: f64) -> usize {
    let nearest = (8.0 * (channels / 8.0 + 0.5).floor()).max(8.0);
    if nearest < 0.9 * channels {
        nearest as usize + 8
    } else {
        nearest as usize
    }
}

/// All layers with their names.
pub(super) struct Plan {
    pub stem: ConvPlan,
    pub stages: Vec<Vec<BlockPlan>>,
    pub head: ConvPlan,
    pub classifier: LinearPlan,
}

/// A block: layers with ReLU6 between them and none after the last.
pub(super) struct BlockPlan {
    pub layers: Vec<ConvPlan>,
    /// Whether the block's input is added to its output.
    pub skip: bool,
}
