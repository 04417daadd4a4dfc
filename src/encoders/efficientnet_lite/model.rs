//! The network over values.

use std::ops::ControlFlow;

use super::super::host_conv::Activation;
use super::super::layers::{Conv2d, Linear, Placement};
use super::super::plans::load_branch;
use super::super::value::Value;
use super::super::weights::Weights;
use super::super::{Encoder, EncoderSpec, Readout, Visitor};
use super::config::{BlockPlan, EfficientNetLiteConfig};
use crate::Result;

/// A loaded EfficientNet-Lite.
#[derive(Debug)]
pub struct EfficientNetLite {
    spec: EncoderSpec,
    stem: Conv2d,
    stages: Vec<Vec<Block>>,
    head: Conv2d,
    classifier: Linear,
}

#[derive(Debug)]
struct Block {
    layers: Vec<Conv2d>,
    skip: bool,
}

impl EfficientNetLite {
    /// The network of this configuration with these weights.
    pub fn load(
        config: &EfficientNetLiteConfig,
        spec: EncoderSpec,
        weights: &mut Weights<'_>,
        at: &Placement,
    ) -> Result<Self> {
        let plan = config.plan();
        let mut block = |block: &BlockPlan| -> Result<Block> {
            Ok(Block {
                layers: load_branch(&block.layers, Activation::Relu6, weights, at)?,
                skip: block.skip,
            })
        };
        let stages = plan
            .stages
            .iter()
            .map(|blocks| blocks.iter().map(&mut block).collect())
            .collect::<Result<_>>()?;
        Ok(Self {
            spec,
            stages,
            stem: plan.stem.load(weights, at)?.then(Activation::Relu6),
            head: plan.head.load(weights, at)?.then(Activation::Relu6),
            classifier: plan.classifier.load(weights, at)?,
        })
    }
}

impl Block {
    fn forward(&self, x: Value) -> Value {
        let input = self.skip.then(|| x.clone());
        let mut y = x;
        for layer in &self.layers {
            y = y.conv2d(layer);
        }
        match input {
            Some(input) => y + input,
            None => y,
        }
    }
}

impl Encoder for EfficientNetLite {
    fn spec(&self) -> &EncoderSpec {
        &self.spec
    }

    fn visit(&self, x: Value, visitor: &mut Visitor<'_>) -> ControlFlow<()> {
        let mut x = x.conv2d(&self.stem);
        visitor(Readout::Stage(0), &x)?;
        for (i, stage) in self.stages.iter().enumerate() {
            x = stage.iter().fold(x, |x, block| block.forward(x));
            visitor(Readout::Stage(i + 1), &x)?;
        }
        let x = x.conv2d(&self.head);
        visitor(Readout::Stage(self.stages.len() + 1), &x)?;
        let x = x.spatial_mean();
        visitor(Readout::Pooled, &x)?;
        visitor(Readout::Logits, &x.linear(&self.classifier))
    }
}
