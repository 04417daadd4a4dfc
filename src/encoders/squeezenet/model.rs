//! The network over values.

use std::ops::ControlFlow;

use super::super::host_conv::Activation;
use super::super::layers::{Conv2d, ConvConfig, Placement};
use super::super::value::Value;
use super::super::weights::Weights;
use super::super::{Encoder, EncoderSpec, Readout, Visitor};
use super::config::{LayerKind, LayerPlan, POOL, SqueezeNetConfig};
use crate::Result;

/// A loaded SqueezeNet.
#[derive(Debug)]
pub struct SqueezeNet {
    spec: EncoderSpec,
    stem: Conv2d,
    layers: Vec<Layer>,
    classifier: Conv2d,
}

#[derive(Debug)]
struct Layer {
    operation: Operation,
    exposed: bool,
}

#[derive(Debug)]
enum Operation {
    Pool,
    Fire(Box<Fire>),
}

#[derive(Debug)]
struct Fire {
    squeeze: Conv2d,
    /// Both expanding convolutions, side by side.
    expand: Conv2d,
}

impl SqueezeNet {
    /// The network of this configuration with these weights.
    pub fn load(
        config: &SqueezeNetConfig,
        spec: EncoderSpec,
        weights: &mut Weights<'_>,
        at: &Placement,
    ) -> Result<Self> {
        let plan = config.plan();
        let mut layer = |layer: &LayerPlan| -> Result<Layer> {
            let operation = match &layer.kind {
                LayerKind::Pool => Operation::Pool,
                LayerKind::Fire(fire) => {
                    let keyed = |(name, config)| (format!("{}.{name}", layer.key), config);
                    let [squeeze, narrow, wide] = fire.convolutions().map(keyed);
                    let expand = [(narrow.0.as_str(), narrow.1), (wide.0.as_str(), wide.1)];
                    let expand = Conv2d::load_side_by_side(weights, &expand, at)?;
                    let squeeze = Conv2d::load(weights, &squeeze.0, squeeze.1, at)?;
                    Operation::Fire(Box::new(Fire {
                        squeeze: squeeze.then(Activation::Relu),
                        expand: expand.then(Activation::Relu),
                    }))
                }
            };
            Ok(Layer {
                operation,
                exposed: layer.exposed,
            })
        };
        let layers = plan.layers.iter().map(&mut layer).collect::<Result<_>>()?;
        let mut conv = |key: &str, config: ConvConfig| Conv2d::load(weights, key, config, at);
        Ok(Self {
            spec,
            layers,
            stem: conv("features.0", plan.stem)?,
            classifier: conv("classifier.1", plan.classifier)?.then(Activation::Relu),
        })
    }
}

impl Operation {
    fn forward(&self, x: Value) -> Value {
        match self {
            Self::Pool => x.max_pool(POOL),
            Self::Fire(fire) => x.conv2d(&fire.squeeze).conv2d(&fire.expand),
        }
    }
}

impl Encoder for SqueezeNet {
    fn spec(&self) -> &EncoderSpec {
        &self.spec
    }

    fn visit(&self, x: Value, visitor: &mut Visitor<'_>) -> ControlFlow<()> {
        let x = x.conv2d(&self.stem);
        visitor(Readout::Stage(0), &x)?;
        let mut x = x;
        let mut stage = 0;
        for (index, layer) in self.layers.iter().enumerate() {
            x = layer.operation.forward(x);
            if index == 0 {
                // The stem's ReLU, after the pooling that follows it: both orders give the same, and
                // this one clamps a quarter of the values.
                x = x.relu();
            }
            if layer.exposed {
                stage += 1;
                visitor(Readout::Stage(stage), &x)?;
            }
        }
        visitor(Readout::Pooled, &x.clone().spatial_mean())?;
        visitor(Readout::Logits, &x.conv2d(&self.classifier).spatial_mean())
    }
}
