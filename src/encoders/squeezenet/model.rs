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
    expand: Conv2d,
    expand_wide: Conv2d,
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
        let mut conv = |key: &str, conv: ConvConfig| Conv2d::load(weights, key, conv, at);
        let mut layer = |layer: &LayerPlan| -> Result<Layer> {
            let operation = match &layer.kind {
                LayerKind::Pool => Operation::Pool,
                LayerKind::Fire(fire) => {
                    let mut part = |(name, config): (&str, ConvConfig)| {
                        conv(&format!("{}.{name}", layer.key), config)
                    };
                    let [squeeze, expand, expand_wide] = fire.convolutions();
                    Operation::Fire(Box::new(Fire {
                        squeeze: part(squeeze)?.then(Activation::Relu),
                        expand: part(expand)?.then(Activation::Relu),
                        expand_wide: part(expand_wide)?.then(Activation::Relu),
                    }))
                }
            };
            Ok(Layer {
                operation,
                exposed: layer.exposed,
            })
        };
        Ok(Self {
            spec,
            layers: plan.layers.iter().map(&mut layer).collect::<Result<_>>()?,
            stem: conv("features.0", plan.stem)?,
            classifier: conv("classifier.1", plan.classifier)?.then(Activation::Relu),
        })
    }
}

impl Operation {
    fn forward(&self, x: Value) -> Value {
        match self {
            Self::Pool => x.max_pool(POOL),
            Self::Fire(fire) => {
                let squeezed = x.conv2d(&fire.squeeze);
                let narrow = squeezed.clone().conv2d(&fire.expand);
                narrow.concat(squeezed.conv2d(&fire.expand_wide))
            }
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
        let mut x = x.relu();
        let mut stage = 0;
        for layer in &self.layers {
            x = layer.operation.forward(x);
            if layer.exposed {
                stage += 1;
                visitor(Readout::Stage(stage), &x)?;
            }
        }
        visitor(Readout::Pooled, &x.clone().spatial_mean())?;
        visitor(Readout::Logits, &x.conv2d(&self.classifier).spatial_mean())
    }
}
