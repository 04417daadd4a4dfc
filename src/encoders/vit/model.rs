//! The network over values.

use std::ops::ControlFlow;
use std::sync::Arc;

use burn::tensor::Tensor;

use super::super::attention::{Angles, Attention, Preparation};
use super::super::layers::{Conv2d, ConvConfig, Linear, Placement};
use super::super::norm::LayerNorm;
use super::super::position_embedding::resample;
use super::super::positions::{Blocks, Rearrangement};
use super::super::tokens::{projection, scaled_projection};
use super::super::value::Value;
use super::super::weights::Weights;
use super::super::{Encoder, EncoderSpec, Readout, Visitor};
use super::config::{EXPANSION, Pooling, Position, QkvBias, VitConfig};
use crate::Result;

/// A loaded Vision Transformer.
#[derive(Debug)]
pub struct Vit {
    spec: EncoderSpec,
    /// Side of a patch.
    patch: usize,
    patches: Conv2d,
    /// Class and register tokens, and the position embedding of all, (1, channel, 1, token).
    embedding: Tensor<4>,
    /// From patches (row, column) to the places behind class and register tokens.
    into_tokens: Rearrangement,
    /// The patches of all tokens, (row, column).
    patches_only: Rearrangement,
    /// The class token of all tokens.
    class_only: Rearrangement,
    attention: Arc<Attention>,
    blocks: Vec<Block>,
    exposed: Vec<usize>,
    norm: LayerNorm,
    pooling: Pooling,
    classifier: Option<Linear>,
}

#[derive(Debug)]
struct Block {
    norm1: LayerNorm,
    qkv: Conv2d,
    /// With the layer scale.
    project: Conv2d,
    norm2: LayerNorm,
    expand: Conv2d,
    /// With the layer scale.
    contract: Conv2d,
}

impl Vit {
    /// The network of this configuration with these weights, for inputs of the side that `spec` says.
    ///
    /// # Errors
    ///
    /// As [`Weights::take`].
    pub fn load(
        config: &VitConfig,
        spec: EncoderSpec,
        weights: &mut Weights<'_>,
        at: &Placement,
    ) -> Result<Self> {
        let (dim, patch) = (config.dim, config.patch);
        let grid = config.grid(spec.side_px);
        let tokens = config.prefix() + grid * grid;
        let patch_tokens: Vec<Option<usize>> = (config.prefix()..tokens).map(Some).collect();
        let patches_only = Rearrangement::new([1, tokens], [grid, grid], &patch_tokens, at);
        let classes = config.classes;
        Ok(Self {
            spec,
            patch,
            patches: projection(weights, "patch_embed.proj", [3 * patch * patch, dim], at)?,
            embedding: at.tensor(embedding(config, grid, weights)?, [1, dim, 1, tokens]),
            into_tokens: patches_only.reversed(),
            patches_only,
            class_only: Rearrangement::new([1, tokens], [1, 1], &[Some(0)], at),
            attention: Arc::new(attention(config, grid, at)),
            blocks: (0..config.depth)
                .map(|i| Block::load(config, &format!("blocks.{i}"), weights, at))
                .collect::<Result<_>>()?,
            exposed: config.exposed.clone(),
            norm: LayerNorm::load(weights, config.norm_key(), dim, config.epsilon, at)?,
            pooling: config.pooling,
            classifier: (classes > 0)
                .then(|| Linear::load(weights, "head", [dim, classes], at))
                .transpose()?,
        })
    }
}

/// What is added to the tokens of a grid of patches, (channel, token): class and register tokens, which stand at
/// places that are 0 before, and the position embedding.
fn embedding(config: &VitConfig, grid: usize, weights: &mut Weights<'_>) -> Result<Vec<f64>> {
    let dim = config.dim;
    let mut tokens = weights.take("cls_token")?;
    if config.registers > 0 {
        tokens.extend(weights.take("reg_token")?);
    }
    match config.position {
        Position::Rotary { .. } => tokens.resize(tokens.len() + grid * grid * dim, 0.0),
        Position::Learned {
            for_prefix,
            resampling,
        } => {
            let mut learned = weights.take("pos_embed")?;
            if for_prefix {
                let patches = learned.split_off(tokens.len());
                let both = tokens.iter_mut().zip(learned);
                both.for_each(|(token, position)| *token += position);
                learned = patches;
            }
            let sides = [config.grid(config.native_px), grid];
            tokens.extend(resample(&learned, dim, sides, resampling));
        }
    }
    let channel = |channel: usize| tokens.iter().skip(channel).step_by(dim).copied();
    Ok((0..dim).flat_map(channel).collect())
}

fn attention(config: &VitConfig, grid: usize, at: &Placement) -> Attention {
    let width = config.head_width();
    let preparation = match config.position {
        Position::Learned { .. } => Preparation::None,
        Position::Rotary { temperature } => {
            let angles = rotary_angles(config, grid, temperature);
            let shape = [width / 2, config.prefix() + grid * grid];
            let [cos, sin] = [f64::cos, f64::sin]
                .map(|function| at.tensor(angles.iter().copied().map(function).collect(), shape));
            Preparation::Rotary(Box::new(Angles { cos, sin }))
        }
    };
    Attention {
        scale: at.tensor(
            vec![(width as f64).sqrt().recip(); config.heads],
            [config.heads],
        ),
        preparation,
        bias: None,
        regions: None,
    }
}

/// Angles (pair of components, token): of rows for the first half of the pairs, of columns for the second; 0 for
/// class and register tokens (DINOv3, `RopePositionEmbedding`).
fn rotary_angles(config: &VitConfig, grid: usize, temperature: f64) -> Vec<f64> {
    let pairs = config.head_width() / 2;
    let each = pairs / 2;
    let coordinate = |index: usize| 2.0 * (index as f64 + 0.5) / grid as f64 - 1.0;
    (0..pairs)
        .flat_map(|pair| {
            let exponent = 2.0 * (pair % each) as f64 / pairs as f64;
            let frequency = std::f64::consts::TAU / temperature.powf(exponent);
            let prefix = std::iter::repeat_n(0.0, config.prefix());
            prefix.chain((0..grid * grid).map(move |patch| {
                let index = if pair < each {
                    patch / grid
                } else {
                    patch % grid
                };
                frequency * coordinate(index)
            }))
        })
        .collect()
}

impl Block {
    fn load(
        config: &VitConfig,
        key: &str,
        weights: &mut Weights<'_>,
        at: &Placement,
    ) -> Result<Self> {
        let dim = config.dim;
        let hidden = EXPANSION * dim;
        let name = |part: &str| format!("{key}.{part}");
        let [scale1, scale2] = config.scale_keys(key);
        Ok(Self {
            norm1: LayerNorm::load(weights, &name("norm1"), dim, config.epsilon, at)?,
            qkv: qkv(config, &name("attn"), weights, at)?,
            project: scaled_projection(
                weights,
                &name("attn.proj"),
                [dim, dim],
                scale1.as_deref(),
                at,
            )?,
            norm2: LayerNorm::load(weights, &name("norm2"), dim, config.epsilon, at)?,
            expand: projection(weights, &name("mlp.fc1"), [dim, hidden], at)?,
            contract: scaled_projection(
                weights,
                &name("mlp.fc2"),
                [hidden, dim],
                scale2.as_deref(),
                at,
            )?,
        })
    }

    fn forward(&self, x: Value, attention: &Arc<Attention>) -> Value {
        let y = x
            .clone()
            .layer_norm(&self.norm1)
            .conv2d(&self.qkv)
            .attention(attention)
            .conv2d(&self.project);
        let x = y + x;
        let y = x
            .clone()
            .layer_norm(&self.norm2)
            .conv2d(&self.expand)
            .gelu()
            .conv2d(&self.contract);
        y + x
    }
}

fn qkv(config: &VitConfig, key: &str, weights: &mut Weights<'_>, at: &Placement) -> Result<Conv2d> {
    let dim = config.dim;
    let weight = weights.take(&format!("{key}.qkv.weight"))?;
    let bias = match config.qkv_bias {
        QkvBias::All => weights.take(&format!("{key}.qkv.bias"))?,
        QkvBias::QueryValue => {
            let mut bias = weights.take(&format!("{key}.q_bias"))?;
            bias.resize(2 * dim, 0.0);
            bias.extend(weights.take(&format!("{key}.v_bias"))?);
            bias
        }
        QkvBias::None => vec![0.0; 3 * dim],
    };
    let conv = ConvConfig::pointwise(dim, 3 * dim);
    Ok(Conv2d::new(conv, weight, bias, at))
}

impl Encoder for Vit {
    fn spec(&self) -> &EncoderSpec {
        &self.spec
    }

    fn visit(&self, x: Value, visitor: &mut Visitor<'_>) -> ControlFlow<()> {
        let [_, _, rows, cols] = x.primal().dims();
        let mut x = x
            .blocks(Blocks::whole(self.patch, [rows, cols]))
            .conv2d(&self.patches)
            .rearranged(&self.into_tokens)
            .plus(&self.embedding);
        let patches = |x: &Value| x.clone().rearranged(&self.patches_only);
        let mut exposed = self.exposed.iter().enumerate().peekable();
        for (i, block) in self.blocks.iter().enumerate() {
            x = block.forward(x, &self.attention);
            if let Some((stage, _)) = exposed.next_if(|(_, blocks)| **blocks == i + 1) {
                visitor(Readout::Stage(stage), &patches(&x))?;
            }
        }
        let last = Readout::Stage(self.exposed.len());
        let pooled = match self.pooling {
            Pooling::Token | Pooling::Average => {
                let x = x.layer_norm(&self.norm);
                let map = patches(&x);
                visitor(last, &map)?;
                match self.pooling {
                    Pooling::Token => x.rearranged(&self.class_only),
                    _ => map.spatial_mean(),
                }
            }
            Pooling::AverageThenNorm => {
                let map = patches(&x);
                visitor(last, &map)?;
                map.spatial_mean().layer_norm(&self.norm)
            }
        };
        visitor(Readout::Pooled, &pooled)?;
        match &self.classifier {
            Some(classifier) => visitor(Readout::Logits, &pooled.linear(classifier)),
            None => ControlFlow::Continue(()),
        }
    }
}
