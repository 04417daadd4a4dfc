//! The network over values.

use std::ops::ControlFlow;

use super::super::host_conv::Activation;
use super::super::host_pool::PoolConfig;
use super::super::layers::{Conv2d, Linear, Placement};
use super::super::plans::load_branch;
use super::super::value::Value;
use super::super::weights::Weights;
use super::super::{Encoder, EncoderSpec, Readout, Visitor};
use super::config::{BlockPlan, ResNetConfig};
use crate::Result;

/// A loaded ResNet.
#[derive(Debug)]
pub struct ResNet {
    spec: EncoderSpec,
    stem: Conv2d,
    pool: Option<PoolConfig>,
    stages: Vec<Vec<Block>>,
    classifier: Option<Linear>,
}

#[derive(Debug)]
struct Block {
    layers: Vec<Conv2d>,
    shortcut: Option<Conv2d>,
}

impl ResNet {
    /// The network of this configuration with these weights.
    pub fn load(
        config: &ResNetConfig,
        spec: EncoderSpec,
        weights: &mut Weights<'_>,
        at: &Placement,
    ) -> Result<Self> {
        let plan = config.plan();
        let mut block = |block: &BlockPlan| -> Result<Block> {
            let shortcut = block.shortcut.as_ref();
            Ok(Block {
                // The last ReLU follows the sum.
                layers: load_branch(&block.layers, Activation::Relu, weights, at)?,
                shortcut: shortcut.map(|plan| plan.load(weights, at)).transpose()?,
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
            stem: plan.stem.load(weights, at)?.then(Activation::Relu),
            pool: plan.pool,
            classifier: (plan.classifier.as_ref())
                .map(|plan| plan.load(weights, at))
                .transpose()?,
        })
    }
}

impl Block {
    fn forward(&self, x: Value) -> Value {
        let shortcut = match &self.shortcut {
            Some(shortcut) => x.clone().conv2d(shortcut),
            None => x.clone(),
        };
        let y = self.layers.iter().fold(x, Value::conv2d);
        (y + shortcut).relu()
    }
}

impl Encoder for ResNet {
    fn spec(&self) -> &EncoderSpec {
        &self.spec
    }

    fn visit(&self, x: Value, visitor: &mut Visitor<'_>) -> ControlFlow<()> {
        let mut x = x.conv2d(&self.stem);
        visitor(Readout::Stage(0), &x)?;
        let mut stage = 1;
        if let Some(pool) = self.pool {
            x = x.max_pool(pool);
            visitor(Readout::Stage(stage), &x)?;
            stage += 1;
        }
        for (i, blocks) in self.stages.iter().enumerate() {
            x = blocks.iter().fold(x, |x, block| block.forward(x));
            visitor(Readout::Stage(stage + i), &x)?;
        }
        let x = x.spatial_mean();
        visitor(Readout::Pooled, &x)?;
        match &self.classifier {
            Some(classifier) => visitor(Readout::Logits, &x.linear(classifier)),
            None => ControlFlow::Continue(()),
        }
    }
}
