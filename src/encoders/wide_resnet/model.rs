//! The network over values.

use std::ops::ControlFlow;

use super::super::host_conv::Activation;
use super::super::layers::{Conv2d, Linear, Placement, ScaleShift};
use super::super::value::Value;
use super::super::weights::Weights;
use super::super::{Encoder, EncoderSpec, Readout, Visitor};
use super::config::{BlockPlan, WideResNetConfig};
use crate::Result;

/// A loaded wide residual network.
#[derive(Debug)]
pub struct WideResNet {
    spec: EncoderSpec,
    stem: Conv2d,
    groups: Vec<Vec<Block>>,
    norm: ScaleShift,
    classifier: Linear,
}

#[derive(Debug)]
struct Block {
    norm: ScaleShift,
    first: Conv2d,
    second: Conv2d,
    shortcut: Option<Conv2d>,
}

impl WideResNet {
    /// The network of this configuration with these weights.
    pub fn load(
        config: &WideResNetConfig,
        spec: EncoderSpec,
        weights: &mut Weights<'_>,
        at: &Placement,
    ) -> Result<Self> {
        let plan = config.plan();
        let mut block = |block: &BlockPlan| -> Result<Block> {
            let shortcut = block.shortcut.as_ref();
            Ok(Block {
                norm: ScaleShift::load(weights, &block.norm, at)?,
                first: block.first.load(weights, at)?.then(Activation::Relu),
                second: block.second.load(weights, at)?,
                shortcut: shortcut.map(|plan| plan.load(weights, at)).transpose()?,
            })
        };
        let groups = plan
            .groups
            .iter()
            .map(|blocks| blocks.iter().map(&mut block).collect())
            .collect::<Result<_>>()?;
        Ok(Self {
            spec,
            groups,
            stem: plan.stem.load(weights, at)?,
            norm: ScaleShift::load(weights, &plan.norm, at)?,
            classifier: plan.classifier.load(weights, at)?,
        })
    }
}

impl Block {
    fn forward(&self, x: Value) -> Value {
        let activated = x.clone().normalise(&self.norm).relu();
        let shortcut = match &self.shortcut {
            Some(shortcut) => activated.clone().conv2d(shortcut),
            None => x,
        };
        activated.conv2d(&self.first).conv2d(&self.second) + shortcut
    }
}

impl Encoder for WideResNet {
    fn spec(&self) -> &EncoderSpec {
        &self.spec
    }

    fn visit(&self, x: Value, visitor: &mut Visitor<'_>) -> ControlFlow<()> {
        let mut x = x.conv2d(&self.stem);
        visitor(Readout::Stage(0), &x)?;
        for (i, blocks) in self.groups.iter().enumerate() {
            x = blocks.iter().fold(x, |x, block| block.forward(x));
            visitor(Readout::Stage(i + 1), &x)?;
        }
        let x = x.normalise(&self.norm).relu();
        visitor(Readout::Stage(self.groups.len() + 1), &x)?;
        let x = x.spatial_mean();
        visitor(Readout::Pooled, &x)?;
        visitor(Readout::Logits, &x.linear(&self.classifier))
    }
}
