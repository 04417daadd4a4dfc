//! Sizes of the network, and the tensors that follow from them.

use serde::{Deserialize, Serialize};

use super::super::StageSpec;
use super::super::host_pool::PoolConfig;
use super::super::layers::{ConvConfig, Padding};
use super::super::weights::{Init, Parameter};

/// Channels of a fire module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FireConfig {
    /// Outputs of the squeezing 1×1 convolution.
    pub squeeze: usize,
    /// Outputs of each of the two expanding convolutions.
    pub expand: usize,
}

/// A network with a first convolution, eight fire modules and three poolings among them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SqueezeNetConfig {
    /// Output channels of the first convolution.
    pub stem: usize,
    /// Side of its kernel.
    pub stem_kernel: usize,
    /// The fire modules, counted from 0, with a pooling layer before them.
    pub pooled_fires: [usize; 3],
    /// The eight fire modules.
    pub fires: [FireConfig; 8],
    /// Number of classes.
    pub classes: usize,
}

/// Every pooling: a last window that reaches beyond the edge counts.
pub(super) const POOL: PoolConfig = PoolConfig {
    kernel: 3,
    stride: 2,
    padding: 0,
    ceil: true,
};

/// Place of the first layer after the stem and its ReLU in torchvision's `features`.
const FIRST_LAYER: usize = 2;

impl SqueezeNetConfig {
    /// SqueezeNet 1.0.
    pub fn v1_0() -> Self {
        Self {
            stem: 96,
            stem_kernel: 7,
            pooled_fires: [0, 3, 7],
            ..Self::v1_1()
        }
    }

    /// SqueezeNet 1.1: a smaller first convolution, and pooling earlier.
    pub fn v1_1() -> Self {
        let fire = |squeeze, expand| FireConfig { squeeze, expand };
        Self {
            stem: 64,
            stem_kernel: 3,
            pooled_fires: [0, 2, 4],
            fires: [
                fire(16, 64),
                fire(16, 64),
                fire(32, 128),
                fire(32, 128),
                fire(48, 192),
                fire(48, 192),
                fire(64, 256),
                fire(64, 256),
            ],
            classes: 1000,
        }
    }

    /// Length of the pooled feature.
    pub fn pooled_len(&self) -> usize {
        2 * self.fires[7].expand
    }

    /// Side of the smallest input of which anything is left at the last fire module.
    pub fn smallest_side(&self) -> usize {
        let pools = self.pooled_fires.iter();
        let side = pools.fold(1, |side, _| POOL.smallest_input(side));
        self.plan().stem.smallest_input(side)
    }

    /// The stages exposed for an input of `side_px`: first convolution (before its ReLU), each
    /// pooling layer, the fire module before it, and the last.
    pub fn stage_specs(&self, side_px: usize) -> Vec<StageSpec> {
        let plan = self.plan();
        let (mut channels, mut side) = (self.stem, plan.stem.output_side(side_px));
        let mut specs = vec![StageSpec {
            name: "features.0".into(),
            shape: [channels, side, side],
        }];
        for layer in &plan.layers {
            match &layer.kind {
                LayerKind::Pool => side = POOL.output_side(side),
                LayerKind::Fire(fire) => channels = 2 * fire.expand.outputs,
            }
            if layer.exposed {
                specs.push(StageSpec {
                    name: layer.key.clone(),
                    shape: [channels, side, side],
                });
            }
        }
        specs
    }

    /// Every tensor of the network, with torchvision's initialisation: convolutions uniform within
    /// √(6 / fan-in), the classifying one normal with standard deviation 0.01, biases 0.
    pub fn parameters(&self) -> Vec<Parameter> {
        let plan = self.plan();
        let mut parameters = Vec::new();
        let mut declare = |key: &str, conv: ConvConfig, init: Init| {
            let of = |name: &str, shape: Vec<usize>, init: Init| Parameter {
                name: format!("{key}.{name}"),
                shape,
                init,
                trained: true,
            };
            parameters.push(of("weight", conv.weight_shape().to_vec(), init));
            parameters.push(of("bias", vec![conv.outputs], Init::Constant(0.0)));
        };
        let kaiming = |conv: &ConvConfig| Init::Uniform {
            bound: (6.0 / conv.fan_in() as f64).sqrt(),
        };
        declare("features.0", plan.stem, kaiming(&plan.stem));
        for layer in &plan.layers {
            let LayerKind::Fire(fire) = &layer.kind else {
                continue;
            };
            for (name, conv) in fire.convolutions() {
                declare(&format!("{}.{name}", layer.key), conv, kaiming(&conv));
            }
        }
        declare("classifier.1", plan.classifier, Init::Normal { std: 0.01 });
        parameters
    }

    pub(super) fn plan(&self) -> Plan {
        let mut inputs = self.stem;
        let mut kinds = Vec::new();
        for (i, fire) in self.fires.iter().enumerate() {
            if self.pooled_fires.contains(&i) {
                kinds.push(LayerKind::Pool);
            }
            kinds.push(LayerKind::Fire(FirePlan {
                squeeze: ConvConfig::pointwise(inputs, fire.squeeze),
                expand: ConvConfig::pointwise(fire.squeeze, fire.expand),
                expand_wide: spatial(fire.squeeze, fire.expand, 3, 1, Padding::Symmetric(1)),
            }));
            inputs = 2 * fire.expand;
        }
        let pools: Vec<bool> = kinds
            .iter()
            .map(|kind| matches!(kind, LayerKind::Pool))
            .collect();
        let layers = kinds.into_iter().enumerate().map(|(i, kind)| LayerPlan {
            key: format!("features.{}", FIRST_LAYER + i),
            exposed: pools[i] || pools.get(i + 1).is_none_or(|&next| next),
            kind,
        });
        Plan {
            stem: spatial(3, self.stem, self.stem_kernel, 2, Padding::Symmetric(0)),
            layers: layers.collect(),
            classifier: ConvConfig::pointwise(inputs, self.classes),
        }
    }
}

/// All layers with their names.
pub(super) struct Plan {
    pub stem: ConvConfig,
    pub layers: Vec<LayerPlan>,
    pub classifier: ConvConfig,
}

/// A layer between the stem's ReLU and the classifier.
pub(super) struct LayerPlan {
    pub key: String,
    /// Whether its output is a stage.
    pub exposed: bool,
    pub kind: LayerKind,
}

pub(super) enum LayerKind {
    Pool,
    Fire(FirePlan),
}

/// A fire module.
pub(super) struct FirePlan {
    pub squeeze: ConvConfig,
    pub expand: ConvConfig,
    pub expand_wide: ConvConfig,
}

impl FirePlan {
    /// Its convolutions with torchvision's names.
    pub fn convolutions(&self) -> [(&'static str, ConvConfig); 3] {
        [
            ("squeeze", self.squeeze),
            ("expand1x1", self.expand),
            ("expand3x3", self.expand_wide),
        ]
    }
}

fn spatial(
    inputs: usize,
    outputs: usize,
    kernel: usize,
    stride: usize,
    padding: Padding,
) -> ConvConfig {
    ConvConfig {
        inputs,
        outputs,
        kernel,
        stride,
        padding,
        groups: 1,
    }
}
