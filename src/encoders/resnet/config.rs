//! Sizes of the family, and the layers that follow from them.

use serde::{Deserialize, Serialize};

use super::super::StageSpec;
use super::super::host_pool::PoolConfig;
use super::super::layers::{BatchNorm, ConvConfig, Padding};
use super::super::plans::{ConvPlan, LinearPlan, he_fan_out, torch_default};
use super::super::weights::Parameter;

/// The first layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stem {
    /// A 7×7 convolution of stride 2, then maxima over 3×3 windows at stride 2.
    ImageNet,
    /// A 3×3 convolution of stride 1.
    Cifar,
}

/// The convolutions of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// Two of 3×3.
    Basic,
    /// 1×1, 3×3, and 1×1 to four times the stage's width.
    Bottleneck {
        /// Channels of the 3×3 convolution over the stage's width.
        widening: usize,
    },
}

/// A stage: blocks of one width, the first of which halves the side in all stages but the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResNetStage {
    /// Number of blocks.
    pub blocks: usize,
    /// Width: the output channels of basic blocks, a quarter of those of bottlenecks.
    pub width: usize,
}

/// A network of the family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResNetConfig {
    /// The first layers.
    pub stem: Stem,
    /// Output channels of the first convolution.
    pub stem_channels: usize,
    /// What blocks are made of.
    pub block: Block,
    /// The stages after the stem.
    pub stages: Vec<ResNetStage>,
    /// Number of classes; 0 leaves the classifier out.
    pub classes: usize,
    /// Whether the last BatchNorm of each block begins with scale 0, so that an untrained block passes
    /// its input on: timm's default. In torchvision's default it begins with 1.
    #[serde(default)]
    pub zero_init_last: bool,
}

/// Output channels of a bottleneck over the stage's width.
const EXPANSION: usize = 4;

const POOL: PoolConfig = PoolConfig {
    kernel: 3,
    stride: 2,
    padding: 1,
    ceil: false,
};

impl ResNetConfig {
    fn imagenet(block: Block, blocks: [usize; 4]) -> Self {
        let widths = [64, 128, 256, 512];
        let stages = blocks.into_iter().zip(widths);
        Self {
            stem: Stem::ImageNet,
            stem_channels: 64,
            block,
            stages: stages
                .map(|(blocks, width)| ResNetStage { blocks, width })
                .collect(),
            classes: 1000,
            zero_init_last: false,
        }
    }

    /// ResNet-18.
    pub fn resnet18() -> Self {
        Self::imagenet(Block::Basic, [2, 2, 2, 2])
    }

    /// ResNet-34.
    pub fn resnet34() -> Self {
        Self::imagenet(Block::Basic, [3, 4, 6, 3])
    }

    /// ResNet-50.
    pub fn resnet50() -> Self {
        Self::imagenet(Block::Bottleneck { widening: 1 }, [3, 4, 6, 3])
    }

    /// ResNet-101.
    pub fn resnet101() -> Self {
        Self::imagenet(Block::Bottleneck { widening: 1 }, [3, 4, 23, 3])
    }

    /// ResNet-152.
    pub fn resnet152() -> Self {
        Self::imagenet(Block::Bottleneck { widening: 1 }, [3, 8, 36, 3])
    }

    /// ResNet-50 with bottlenecks twice as wide.
    pub fn wide_resnet50_2() -> Self {
        Self::imagenet(Block::Bottleneck { widening: 2 }, [3, 4, 6, 3])
    }

    /// ResNet-101 with bottlenecks twice as wide.
    pub fn wide_resnet101_2() -> Self {
        Self::imagenet(Block::Bottleneck { widening: 2 }, [3, 4, 23, 3])
    }

    /// The same network for small images: the CIFAR stem and this number of classes.
    pub fn for_cifar(self, classes: usize) -> Self {
        Self {
            stem: Stem::Cifar,
            classes,
            ..self
        }
    }

    /// Length of the pooled feature.
    pub fn pooled_len(&self) -> usize {
        self.stages
            .last()
            .map_or(self.stem_channels, |stage| self.outputs(stage))
    }

    fn outputs(&self, stage: &ResNetStage) -> usize {
        match self.block {
            Block::Basic => stage.width,
            Block::Bottleneck { .. } => EXPANSION * stage.width,
        }
    }

    /// The stages exposed for an input of `side_px`: stem, its pooling, each group of blocks.
    pub fn stage_specs(&self, side_px: usize) -> Vec<StageSpec> {
        let plan = self.plan();
        let mut channels = self.stem_channels;
        let mut side = plan.stem.config.output_side(side_px);
        let spec = |name: &str, channels, side| StageSpec {
            name: name.to_owned(),
            shape: [channels, side, side],
        };
        let mut specs = vec![spec("relu", channels, side)];
        if let Some(pool) = &plan.pool {
            side = pool.output_side(side);
            specs.push(spec("maxpool", channels, side));
        }
        for (i, blocks) in plan.stages.iter().enumerate() {
            for layer in blocks.iter().flat_map(|block| &block.layers) {
                channels = layer.config.outputs;
                side = layer.config.output_side(side);
            }
            specs.push(spec(&format!("layer{}", i + 1), channels, side));
        }
        specs
    }

    /// Every tensor of the network, with torchvision's initialisation: convolutions normal with variance
    /// 2 / fan-out, the classifier uniform within 1/√fan-in.
    pub fn parameters(&self) -> Vec<Parameter> {
        let plan = self.plan();
        let blocks = plan.stages.iter().flatten();
        let layers = blocks.flat_map(|block| block.layers.iter().chain(&block.shortcut));
        std::iter::once(&plan.stem)
            .chain(layers)
            .flat_map(ConvPlan::parameters)
            .chain(plan.classifier.iter().flat_map(LinearPlan::parameters))
            .collect()
    }

    pub(super) fn plan(&self) -> Plan {
        let (kernel, stride, pool) = match self.stem {
            Stem::ImageNet => (7, 2, Some(POOL)),
            Stem::Cifar => (3, 1, None),
        };
        let stem = conv_norm(
            "conv1",
            "bn1",
            spatial(3, self.stem_channels, kernel, stride),
        );
        let mut inputs = self.stem_channels;
        let stages = self.stages.iter().enumerate().map(|(i, stage)| {
            let blocks = (0..stage.blocks).map(|j| {
                let stride = if i > 0 && j == 0 { 2 } else { 1 };
                let block = self.block_plan(&format!("layer{}.{j}", i + 1), inputs, stride, stage);
                inputs = self.outputs(stage);
                block
            });
            blocks.collect()
        });
        let stages = stages.collect();
        Plan {
            stem,
            pool,
            stages,
            classifier: (self.classes > 0).then(|| LinearPlan {
                key: "fc".into(),
                shape: [inputs, self.classes],
                init: torch_default(inputs),
                bias: torch_default(inputs),
            }),
        }
    }

    fn block_plan(
        &self,
        key: &str,
        inputs: usize,
        stride: usize,
        stage: &ResNetStage,
    ) -> BlockPlan {
        let outputs = self.outputs(stage);
        let convolutions = match self.block {
            Block::Basic => vec![
                spatial(inputs, outputs, 3, stride),
                spatial(outputs, outputs, 3, 1),
            ],
            Block::Bottleneck { widening } => {
                let hidden = widening * stage.width;
                vec![
                    ConvConfig::pointwise(inputs, hidden),
                    spatial(hidden, hidden, 3, stride),
                    ConvConfig::pointwise(hidden, outputs),
                ]
            }
        };
        let mut layers: Vec<ConvPlan> = convolutions
            .into_iter()
            .zip(1..)
            .map(|(conv, n)| conv_norm(&format!("{key}.conv{n}"), &format!("{key}.bn{n}"), conv))
            .collect();
        if let Some(norm) = layers.last_mut().and_then(|layer| layer.norm.as_mut())
            && self.zero_init_last
        {
            norm.initial_scale = 0.0;
        }
        let shortcut = (stride != 1 || inputs != outputs).then(|| {
            let conv = ConvConfig {
                stride,
                ..ConvConfig::pointwise(inputs, outputs)
            };
            conv_norm(
                &format!("{key}.downsample.0"),
                &format!("{key}.downsample.1"),
                conv,
            )
        });
        BlockPlan { layers, shortcut }
    }
}

/// All layers with their names.
pub(super) struct Plan {
    pub stem: ConvPlan,
    pub pool: Option<PoolConfig>,
    pub stages: Vec<Vec<BlockPlan>>,
    pub classifier: Option<LinearPlan>,
}

/// A block: layers with a ReLU between them and one after the sum with the block's input.
pub(super) struct BlockPlan {
    pub layers: Vec<ConvPlan>,
    /// Brings the block's input to the shape of its output.
    pub shortcut: Option<ConvPlan>,
}

/// A convolution that keeps the side but for its stride.
fn spatial(inputs: usize, outputs: usize, kernel: usize, stride: usize) -> ConvConfig {
    ConvConfig {
        inputs,
        outputs,
        kernel,
        stride,
        padding: Padding::Symmetric(kernel / 2),
        groups: 1,
    }
}

fn conv_norm(key: &str, norm: &str, conv: ConvConfig) -> ConvPlan {
    let norm = BatchNorm::new(norm.to_owned(), conv.outputs, BatchNorm::TORCH_EPSILON);
    ConvPlan::with_norm(key.to_owned(), conv, he_fan_out(&conv), norm)
}
