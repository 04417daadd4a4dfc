//! Networks without branches: convolutions and pooling one after another, then fully connected layers.
//! AlexNet and VGG have this form.
//!
//! Every convolution has its ReLU after it, and so has every fully connected layer but the last. The
//! *pooled* feature is the vector before that last layer.

use std::ops::ControlFlow;

use super::host_conv::Activation;
use super::host_pool::PoolConfig;
use super::layers::{Conv2d, Linear, Placement};
use super::plans::{ConvPlan, LinearPlan};
use super::value::Value;
use super::weights::{Parameter, Weights};
use super::{Encoder, EncoderSpec, Readout, StageSpec, Visitor};
use crate::Result;

/// A network of this form before it has weights.
#[derive(Clone, Debug)]
pub struct ChainPlan {
    /// Convolutions and pooling in their order.
    pub layers: Vec<ChainLayer>,
    /// Side of the grid to which the last map is averaged; 1 takes the mean over all positions.
    pub grid: usize,
    /// Fully connected layers with a ReLU after each.
    pub hidden: Vec<LinearPlan>,
    /// The last layer, which gives the class scores.
    pub classifier: LinearPlan,
}

/// A layer before the grid.
#[derive(Clone, Debug)]
pub struct ChainLayer {
    /// Module path of its output in the original code.
    pub name: String,
    /// Whether its output is a stage.
    pub exposed: bool,
    /// What it does.
    pub operation: ChainOperation,
}

/// What a layer before the grid does.
#[derive(Clone, Debug)]
pub enum ChainOperation {
    /// A convolution and its ReLU.
    Conv(ConvPlan),
    /// Maxima over windows.
    Pool(PoolConfig),
}

impl ChainPlan {
    /// Every tensor of the network.
    pub fn parameters(&self) -> Vec<Parameter> {
        let convolutions = self.layers.iter().filter_map(|layer| {
            let ChainOperation::Conv(conv) = &layer.operation else {
                return None;
            };
            Some(conv.parameters())
        });
        let linears = self.hidden.iter().chain([&self.classifier]);
        convolutions
            .chain(linears.map(LinearPlan::parameters))
            .flatten()
            .collect()
    }

    /// The exposed layers for an input of `side_px`.
    pub fn stage_specs(&self, side_px: usize) -> Vec<StageSpec> {
        let (mut channels, mut side) = (3, side_px);
        let mut specs = Vec::new();
        for layer in &self.layers {
            match &layer.operation {
                ChainOperation::Conv(conv) => {
                    channels = conv.config.outputs;
                    side = conv.config.output_side(side);
                }
                ChainOperation::Pool(pool) => side = pool.output_side(side),
            }
            if layer.exposed {
                specs.push(StageSpec {
                    name: layer.name.clone(),
                    shape: [channels, side, side],
                });
            }
        }
        specs
    }

    /// Side of the smallest input of which anything is left at the grid.
    pub fn smallest_side(&self) -> usize {
        let layers = self.layers.iter().rev();
        layers.fold(1, |side, layer| match &layer.operation {
            ChainOperation::Conv(conv) => conv.config.smallest_input(side),
            ChainOperation::Pool(pool) => pool.smallest_input(side),
        })
    }

    /// Length of the pooled feature.
    pub fn pooled_len(&self) -> usize {
        self.classifier.shape[0]
    }

    /// The network with these weights.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Weights`] where a value is not finite.
    pub fn load(
        &self,
        spec: EncoderSpec,
        weights: &mut Weights<'_>,
        at: &Placement,
    ) -> Result<Chain> {
        let trunk = self.load_trunk(weights, at)?;
        let mut linear = |linear: &LinearPlan| linear.load(weights, at);
        Ok(Chain {
            spec,
            trunk,
            grid: self.grid,
            hidden: self.hidden.iter().map(&mut linear).collect::<Result<_>>()?,
            classifier: linear(&self.classifier)?,
        })
    }

    /// The layers before the grid alone; nothing else of the weights is read.
    ///
    /// # Errors
    ///
    /// As [`Self::load`].
    pub fn load_trunk(&self, weights: &mut Weights<'_>, at: &Placement) -> Result<Trunk> {
        let mut layer = |layer: &ChainLayer| -> Result<(Operation, bool)> {
            let operation = match &layer.operation {
                ChainOperation::Conv(conv) => {
                    Operation::Conv(Box::new(conv.load(weights, at)?.then(Activation::Relu)))
                }
                ChainOperation::Pool(pool) => Operation::Pool(*pool),
            };
            Ok((operation, layer.exposed))
        };
        Ok(Trunk {
            layers: self.layers.iter().map(&mut layer).collect::<Result<_>>()?,
        })
    }
}

/// A loaded network of this form.
#[derive(Debug)]
pub struct Chain {
    spec: EncoderSpec,
    trunk: Trunk,
    grid: usize,
    hidden: Vec<Linear>,
    classifier: Linear,
}

/// Its layers before the grid, which take inputs of any size.
#[derive(Debug)]
pub struct Trunk {
    /// Each with whether its output is a stage.
    layers: Vec<(Operation, bool)>,
}

impl Trunk {
    /// Runs the layers on inputs in the network's own space and shows the stages by number; returns the last output.
    pub fn visit(
        &self,
        mut x: Value,
        show: &mut dyn FnMut(usize, &Value) -> ControlFlow<()>,
    ) -> ControlFlow<(), Value> {
        let mut stage = 0;
        for (operation, exposed) in &self.layers {
            x = match operation {
                Operation::Conv(conv) => x.conv2d(conv),
                Operation::Pool(pool) => x.max_pool(*pool),
            };
            if *exposed {
                show(stage, &x)?;
                stage += 1;
            }
        }
        ControlFlow::Continue(x)
    }
}

#[derive(Debug)]
enum Operation {
    Conv(Box<Conv2d>),
    Pool(PoolConfig),
}

impl Encoder for Chain {
    fn spec(&self) -> &EncoderSpec {
        &self.spec
    }

    fn visit(&self, x: Value, visitor: &mut Visitor<'_>) -> ControlFlow<()> {
        let mut show = |stage, x: &Value| visitor(Readout::Stage(stage), x);
        let x = self.trunk.visit(x, &mut show)?;
        let x = x.grid_mean(self.grid).flatten();
        let hidden = self.hidden.iter();
        let x = hidden.fold(x, |x, linear| x.linear(linear).relu());
        visitor(Readout::Pooled, &x)?;
        visitor(Readout::Logits, &x.linear(&self.classifier))
    }
}
