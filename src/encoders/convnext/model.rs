//! The network over values.

use std::ops::ControlFlow;

use super::super::layers::{Conv2d, Linear, Placement};
use super::super::norm::LayerNorm;
use super::super::positions::Blocks;
use super::super::tokens::{projection, scaled_projection};
use super::super::value::Value;
use super::super::weights::Weights;
use super::super::{Encoder, EncoderSpec, Readout, Visitor};
use super::config::{ConvNeXtConfig, EXPANSION, NORM_EPSILON, PATCH, depthwise, patch_keys};
use crate::Result;

/// A loaded ConvNeXt.
#[derive(Debug)]
pub struct ConvNeXt {
    spec: EncoderSpec,
    stages: Vec<Stage>,
    norm: LayerNorm,
    classifier: Option<Linear>,
}

#[derive(Debug)]
struct Stage {
    /// Side of the patches before the stage.
    patch: usize,
    patches: Conv2d,
    /// After the patches of the first stage, before those of the others.
    norm: LayerNorm,
    norm_first: bool,
    blocks: Vec<Block>,
}

#[derive(Debug)]
struct Block {
    depthwise: Conv2d,
    norm: LayerNorm,
    expand: Conv2d,
    /// With the layer scale.
    project: Conv2d,
}

impl ConvNeXt {
    /// The network of this configuration with these weights.
    ///
    /// # Errors
    ///
    /// As [`Weights::take`].
    pub fn load(
        config: &ConvNeXtConfig,
        spec: EncoderSpec,
        weights: &mut Weights<'_>,
        at: &Placement,
    ) -> Result<Self> {
        let mut inputs = 3;
        let mut stages = Vec::with_capacity(config.dims.len());
        for (i, (&depth, &dim)) in config.depths.iter().zip(&config.dims).enumerate() {
            let [norm, conv] = patch_keys(i);
            let normed = if i == 0 { dim } else { inputs };
            let patch = PATCH[i];
            stages.push(Stage {
                patch,
                patches: projection(weights, &conv, [inputs * patch * patch, dim], at)?,
                norm: LayerNorm::load(weights, &norm, normed, NORM_EPSILON, at)?,
                norm_first: i > 0,
                blocks: (0..depth)
                    .map(|j| Block::load(&format!("stages.{i}.blocks.{j}"), dim, weights, at))
                    .collect::<Result<_>>()?,
            });
            inputs = dim;
        }
        let classes = config.classes;
        Ok(Self {
            spec,
            stages,
            norm: LayerNorm::load(weights, "head.norm", inputs, NORM_EPSILON, at)?,
            classifier: (classes > 0)
                .then(|| Linear::load(weights, "head.fc", [inputs, classes], at))
                .transpose()?,
        })
    }
}

impl Stage {
    fn forward(&self, x: Value) -> Value {
        let cut = |x: Value| {
            let [_, _, rows, cols] = x.primal().dims();
            x.blocks(Blocks::whole(self.patch, [rows, cols]))
                .conv2d(&self.patches)
        };
        let x = if self.norm_first {
            cut(x.layer_norm(&self.norm))
        } else {
            cut(x).layer_norm(&self.norm)
        };
        self.blocks.iter().fold(x, |x, block| block.forward(x))
    }
}

impl Block {
    fn load(key: &str, dim: usize, weights: &mut Weights<'_>, at: &Placement) -> Result<Self> {
        let hidden = EXPANSION * dim;
        let gamma = format!("{key}.gamma");
        Ok(Self {
            depthwise: Conv2d::load(weights, &format!("{key}.conv_dw"), depthwise(dim), at)?,
            norm: LayerNorm::load(weights, &format!("{key}.norm"), dim, NORM_EPSILON, at)?,
            expand: projection(weights, &format!("{key}.mlp.fc1"), [dim, hidden], at)?,
            project: scaled_projection(
                weights,
                &format!("{key}.mlp.fc2"),
                [hidden, dim],
                Some(&gamma),
                at,
            )?,
        })
    }

    fn forward(&self, x: Value) -> Value {
        let input = x.clone();
        let y = x
            .conv2d(&self.depthwise)
            .layer_norm(&self.norm)
            .conv2d(&self.expand)
            .gelu()
            .conv2d(&self.project);
        y + input
    }
}

impl Encoder for ConvNeXt {
    fn spec(&self) -> &EncoderSpec {
        &self.spec
    }

    fn visit(&self, mut x: Value, visitor: &mut Visitor<'_>) -> ControlFlow<()> {
        for (i, stage) in self.stages.iter().enumerate() {
            x = stage.forward(x);
            visitor(Readout::Stage(i), &x)?;
        }
        let x = x.spatial_mean().layer_norm(&self.norm);
        visitor(Readout::Pooled, &x)?;
        match &self.classifier {
            Some(classifier) => visitor(Readout::Logits, &x.linear(classifier)),
            None => ControlFlow::Continue(()),
        }
    }
}
