//! The network over values.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::super::attention::{Attention, Preparation, RelativeBias};
use super::super::layers::{Conv2d, ConvConfig, Linear, Placement};
use super::super::norm::LayerNorm;
use super::super::positions::Blocks;
use super::super::tokens::projection;
use super::super::value::Value;
use super::super::weights::Weights;
use super::super::{Encoder, EncoderSpec, Readout, Visitor};
use super::config::{EXPANSION, NORM_EPSILON, PATCH, SwinV2Config, sides};
use super::window::{Windows, bias_table};
use crate::Result;

/// Largest factor of the scores: they are cosines divided by a temperature of at least 0.01.
const SCALE_MAX: f64 = 100.0;

/// A loaded Swin Transformer V2.
#[derive(Debug)]
pub struct SwinV2 {
    spec: EncoderSpec,
    stages: Vec<Stage>,
    norm: LayerNorm,
    classifier: Option<Linear>,
}

#[derive(Debug)]
struct Stage {
    /// Side of the patches, or of the squares merged, before the stage.
    patch: usize,
    patches: Conv2d,
    patch_norm: LayerNorm,
    /// Each with its windows: every second one's are shifted.
    blocks: Vec<(Block, Arc<Windows>)>,
}

#[derive(Debug)]
struct Block {
    qkv: Conv2d,
    attention: Arc<Attention>,
    project: Conv2d,
    norm1: LayerNorm,
    expand: Conv2d,
    contract: Conv2d,
    norm2: LayerNorm,
}

impl SwinV2 {
    /// The network of this configuration with these weights, for inputs of the side that `spec` says.
    ///
    /// # Errors
    ///
    /// As [`Weights::take`].
    pub fn load(
        config: &SwinV2Config,
        spec: EncoderSpec,
        weights: &mut Weights<'_>,
        at: &Placement,
    ) -> Result<Self> {
        let sides = sides(spec.side_px);
        let (dim, classes) = (config.pooled_len(), config.classes);
        Ok(Self {
            spec,
            stages: (0..4)
                .map(|i| Stage::load(config, i, sides[i], weights, at))
                .collect::<Result<_>>()?,
            norm: LayerNorm::load(weights, "norm", dim, NORM_EPSILON, at)?,
            classifier: (classes > 0)
                .then(|| Linear::load(weights, "head.fc", [dim, classes], at))
                .transpose()?,
        })
    }
}

impl Stage {
    fn load(
        config: &SwinV2Config,
        i: usize,
        side: usize,
        weights: &mut Weights<'_>,
        at: &Placement,
    ) -> Result<Self> {
        let dim = config.channels(i);
        let (patch, patches, norm) = if i == 0 {
            let inputs = 3 * PATCH * PATCH;
            let patches = projection(weights, "patch_embed.proj", [inputs, dim], at)?;
            (PATCH, patches, "patch_embed.norm".to_owned())
        } else {
            let key = format!("layers.{i}.downsample");
            let patches = merging(&key, dim, weights, at)?;
            (2, patches, format!("{key}.norm"))
        };
        let windows =
            [false, true].map(|shifted| Arc::new(Windows::new(side, config.window, shifted, at)));
        let patch_norm = LayerNorm::load(weights, &norm, dim, NORM_EPSILON, at)?;
        let blocks = (0..config.depths[i]).map(|j| {
            let windows = &windows[j % 2];
            let block = Block::load(config, [i, j], windows, weights, at)?;
            Ok((block, Arc::clone(windows)))
        });
        Ok(Self {
            patch,
            patches,
            patch_norm,
            blocks: blocks.collect::<Result<_>>()?,
        })
    }

    fn forward(&self, x: Value) -> Value {
        let [_, _, rows, cols] = x.primal().dims();
        let x = x
            .blocks(Blocks::covering(self.patch, [rows, cols]))
            .conv2d(&self.patches)
            .layer_norm(&self.patch_norm);
        self.blocks
            .iter()
            .fold(x, |x, (block, windows)| block.forward(x, windows))
    }
}

/// The merging of squares of 2 × 2 positions to `dim` channels. Its weight counts the inputs by (column, row,
/// channel), blocks by (channel, row, column).
fn merging(key: &str, dim: usize, weights: &mut Weights<'_>, at: &Placement) -> Result<Conv2d> {
    let channels = dim / 2;
    let inputs = 4 * channels;
    let weight = weights.take(&format!("{key}.reduction.weight"))?;
    let reordered = weight
        .chunks_exact(inputs)
        .flat_map(|row| {
            (0..inputs).map(|input| {
                let (channel, y, x) = (input / 4, input / 2 % 2, input % 2);
                row[(2 * x + y) * channels + channel]
            })
        })
        .collect();
    let config = ConvConfig::pointwise(inputs, dim);
    Ok(Conv2d::new(config, reordered, vec![0.0; dim], at))
}

impl Block {
    fn load(
        config: &SwinV2Config,
        [stage, index]: [usize; 2],
        windows: &Windows,
        weights: &mut Weights<'_>,
        at: &Placement,
    ) -> Result<Self> {
        let (dim, heads) = (config.channels(stage), config.heads[stage]);
        let hidden = EXPANSION * dim;
        let name = |part: &str| format!("layers.{stage}.blocks.{index}.{part}");
        let trained = config.pretrained_windows[stage];
        let table = bias_table(&name("attn"), heads, windows.side, trained, weights)?;
        let differences = (2 * windows.side - 1).pow(2);
        let mut scale = weights.take(&name("attn.logit_scale"))?;
        scale
            .iter_mut()
            .for_each(|scale| *scale = scale.exp().min(SCALE_MAX));
        let attention = Attention {
            scale: at.tensor(scale, [heads]),
            preparation: Preparation::Unit,
            bias: Some(RelativeBias {
                table: at.tensor(table, [heads, differences]),
                side: windows.side,
                index: windows.bias_index.clone(),
            }),
            regions: windows.regions.clone(),
        };
        let mut qkv_bias = weights.take(&name("attn.q_bias"))?;
        qkv_bias.resize(2 * dim, 0.0);
        qkv_bias.extend(weights.take(&name("attn.v_bias"))?);
        let qkv_weight = weights.take(&name("attn.qkv.weight"))?;
        let qkv = ConvConfig::pointwise(dim, 3 * dim);
        Ok(Self {
            qkv: Conv2d::new(qkv, qkv_weight, qkv_bias, at),
            attention: Arc::new(attention),
            project: projection(weights, &name("attn.proj"), [dim, dim], at)?,
            norm1: LayerNorm::load(weights, &name("norm1"), dim, NORM_EPSILON, at)?,
            expand: projection(weights, &name("mlp.fc1"), [dim, hidden], at)?,
            contract: projection(weights, &name("mlp.fc2"), [hidden, dim], at)?,
            norm2: LayerNorm::load(weights, &name("norm2"), dim, NORM_EPSILON, at)?,
        })
    }

    fn forward(&self, x: Value, windows: &Windows) -> Value {
        let y = x
            .clone()
            .rearranged(&windows.partition)
            .conv2d(&self.qkv)
            .attention(&self.attention)
            .conv2d(&self.project)
            .rearranged(&windows.merge)
            .layer_norm(&self.norm1);
        let x = y + x;
        let y = x
            .clone()
            .conv2d(&self.expand)
            .gelu()
            .conv2d(&self.contract)
            .layer_norm(&self.norm2);
        y + x
    }
}

impl Encoder for SwinV2 {
    fn spec(&self) -> &EncoderSpec {
        &self.spec
    }

    fn visit(&self, mut x: Value, visitor: &mut Visitor<'_>) -> ControlFlow<()> {
        for (i, stage) in self.stages.iter().enumerate() {
            x = stage.forward(x);
            visitor(Readout::Stage(i), &x)?;
        }
        let x = x.layer_norm(&self.norm).spatial_mean();
        visitor(Readout::Pooled, &x)?;
        match &self.classifier {
            Some(classifier) => visitor(Readout::Logits, &x.linear(classifier)),
            None => ControlFlow::Continue(()),
        }
    }
}
