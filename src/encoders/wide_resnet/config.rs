//! Sizes of the family, and the layers that follow from them.

use serde::{Deserialize, Serialize};

use super::super::StageSpec;
use super::super::layers::{BatchNorm, ConvConfig, Padding};
use super::super::plans::{ConvPlan, LinearPlan, he_fan_out, torch_default};
use super::super::weights::{Init, Parameter};
use crate::{Error, ErrorKind, Result};

/// A network of the family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WideResNetConfig {
    /// Output channels of the first convolution.
    pub stem: usize,
    /// Output channels of the groups; all but the first halve the side.
    pub widths: Vec<usize>,
    /// Blocks in each group.
    pub blocks: usize,
    /// Number of classes.
    pub classes: usize,
}

impl WideResNetConfig {
    /// WRN-`depth`-`factor`: three groups of `factor` times 16, 32 and 64 channels. The depth counts the
    /// convolutions along the longest path, the shortcuts' among them as in the paper.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Request`] where `depth` is not 6n + 4 with n ≥ 1, or `factor` is 0.
    pub fn wrn(depth: usize, factor: usize, classes: usize) -> Result<Self> {
        if depth < 10 || depth % 6 != 4 || factor == 0 {
            return Err(Error::new(
                ErrorKind::Request,
                format!("there is no WRN-{depth}-{factor}"),
                "a wide residual network has depth 6n + 4 and a widening factor of at least 1",
                "Choose a depth such as 16, 22, 28 or 40",
            ));
        }
        Ok(Self {
            stem: 16,
            widths: [16, 32, 64].map(|width| factor * width).to_vec(),
            blocks: (depth - 4) / 6,
            classes,
        })
    }

    /// WRN-28-10 for CIFAR-10.
    pub fn wrn28_10() -> Self {
        Self {
            stem: 16,
            widths: vec![160, 320, 640],
            blocks: 4,
            classes: 10,
        }
    }

    /// Length of the pooled feature.
    pub fn pooled_len(&self) -> usize {
        self.widths.last().copied().unwrap_or(self.stem)
    }

    /// The stages exposed for an input of `side_px`: first convolution, each group, and the last map
    /// after its BatchNorm and ReLU.
    pub fn stage_specs(&self, side_px: usize) -> Vec<StageSpec> {
        let plan = self.plan();
        let spec = |name: &str, channels, side| StageSpec {
            name: name.to_owned(),
            shape: [channels, side, side],
        };
        let mut side = plan.stem.config.output_side(side_px);
        let mut specs = vec![spec("conv1", self.stem, side)];
        for ((blocks, &width), n) in plan.groups.iter().zip(&self.widths).zip(1..) {
            for block in blocks {
                side = block.first.config.output_side(side);
            }
            specs.push(spec(&format!("block{n}"), width, side));
        }
        specs.push(spec("relu", self.pooled_len(), side));
        specs
    }

    /// Every tensor of the network, with the original's initialisation: convolutions normal with variance
    /// 2 / fan-out, the classifier's weight uniform within 1/√fan-in and its bias 0.
    pub fn parameters(&self) -> Vec<Parameter> {
        let plan = self.plan();
        let mut parameters = plan.stem.parameters();
        for block in plan.groups.iter().flatten() {
            parameters.extend(block.norm.parameters());
            let layers = [&block.first, &block.second].into_iter();
            let layers = layers.chain(&block.shortcut);
            parameters.extend(layers.flat_map(ConvPlan::parameters));
        }
        parameters.extend(plan.norm.parameters());
        parameters.extend(plan.classifier.parameters());
        parameters
    }

    pub(super) fn plan(&self) -> Plan {
        let mut inputs = self.stem;
        let groups = self.widths.iter().enumerate().map(|(i, &width)| {
            let blocks = (0..self.blocks).map(|j| {
                let stride = if i > 0 && j == 0 { 2 } else { 1 };
                let key = format!("block{}.layer.{j}", i + 1);
                let block = BlockPlan::new(&key, inputs, width, stride);
                inputs = width;
                block
            });
            blocks.collect()
        });
        let groups = groups.collect();
        Plan {
            stem: conv("conv1".into(), spatial(3, self.stem, 1), None),
            groups,
            norm: norm("bn1".into(), inputs),
            classifier: LinearPlan {
                key: "fc".into(),
                shape: [inputs, self.classes],
                init: torch_default(inputs),
                bias: Init::Constant(0.0),
            },
        }
    }
}

/// All layers with their names.
pub(super) struct Plan {
    pub stem: ConvPlan,
    pub groups: Vec<Vec<BlockPlan>>,
    pub norm: BatchNorm,
    pub classifier: LinearPlan,
}

/// A block.
pub(super) struct BlockPlan {
    /// Before the first convolution.
    pub norm: BatchNorm,
    pub first: ConvPlan,
    pub second: ConvPlan,
    /// Brings the activated input to the shape of the block's output.
    pub shortcut: Option<ConvPlan>,
}

impl BlockPlan {
    fn new(key: &str, inputs: usize, outputs: usize, stride: usize) -> Self {
        let shortcut = (stride != 1 || inputs != outputs).then(|| {
            let config = ConvConfig {
                stride,
                ..ConvConfig::pointwise(inputs, outputs)
            };
            conv(format!("{key}.convShortcut"), config, None)
        });
        let between = norm(format!("{key}.bn2"), outputs);
        Self {
            norm: norm(format!("{key}.bn1"), inputs),
            first: conv(
                format!("{key}.conv1"),
                spatial(inputs, outputs, stride),
                Some(between),
            ),
            second: conv(format!("{key}.conv2"), spatial(outputs, outputs, 1), None),
            shortcut,
        }
    }
}

fn norm(key: String, channels: usize) -> BatchNorm {
    BatchNorm::new(key, channels, BatchNorm::TORCH_EPSILON)
}

fn conv(key: String, config: ConvConfig, norm: Option<BatchNorm>) -> ConvPlan {
    ConvPlan {
        key,
        config,
        init: he_fan_out(&config),
        bias: None,
        norm,
    }
}

/// A 3×3 convolution.
fn spatial(inputs: usize, outputs: usize, stride: usize) -> ConvConfig {
    ConvConfig {
        inputs,
        outputs,
        kernel: 3,
        stride,
        padding: Padding::Symmetric(1),
        groups: 1,
    }
}
