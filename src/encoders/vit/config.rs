//! Sizes of the family, and the tensors that follow from them.

use serde::{Deserialize, Serialize};

use super::super::StageSpec;
use super::super::norm::LayerNorm;
use super::super::position_embedding::Resampling;
use super::super::tokens::{INIT_BOUND, INIT_STD, patch_parameters, projection_parameters};
use super::super::weights::{Init, Parameter};

/// Width of a block's hidden layer over its input.
pub(super) const EXPANSION: usize = 4;

/// What the head sees of the tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pooling {
    /// The class token after the last norm.
    Token,
    /// The mean over patches after the last norm.
    Average,
    /// The mean over patches, normalised (timm's `fc_norm`).
    AverageThenNorm,
}

/// How patches are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// A learned vector is added to each patch.
    Learned {
        /// Whether class and register tokens have one as well.
        for_prefix: bool,
        /// How vectors for another grid are made.
        resampling: Resampling,
    },
    /// Queries and keys of patches are turned by angles that grow with their row and column, each from −1 to 1
    /// over the image, at periods `temperature^(4k/width)`.
    Rotary {
        /// Ratio of the longest period to the shortest, nearly.
        temperature: f64,
    },
}

/// Biases of the projections to queries, keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QkvBias {
    /// All three.
    All,
    /// Queries and values.
    QueryValue,
    /// None.
    None,
}

/// A network of the family.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VitConfig {
    /// Input side for which the position embedding was trained, in pixels.
    pub native_px: usize,
    /// Side of a patch in pixels.
    pub patch: usize,
    /// Length of a token.
    pub dim: usize,
    /// Blocks.
    pub depth: usize,
    /// Heads of each block; they divide `dim`.
    pub heads: usize,
    /// Number of classes; 0 for an encoder without classifier.
    pub classes: usize,
    /// Register tokens after the class token.
    pub registers: usize,
    /// What the head sees.
    pub pooling: Pooling,
    /// How patches are told apart.
    pub position: Position,
    /// Biases of the projections to queries, keys and values.
    pub qkv_bias: QkvBias,
    /// Untrained value of the layer scale, where there is one.
    pub layer_scale: Option<f64>,
    /// ε of every layer norm.
    pub epsilon: f64,
    /// Standard deviation of untrained class and register tokens.
    pub token_std: f64,
    /// Numbers of blocks after which a stage is exposed, ascending and below `depth`; another stage is the end.
    pub exposed: Vec<usize>,
}

/// `dim`, `depth` and `heads` of the published sizes.
const SMALL: [usize; 3] = [384, 12, 6];
const BASE: [usize; 3] = [768, 12, 12];
const LARGE: [usize; 3] = [1024, 24, 16];

impl VitConfig {
    /// A plain ViT with patches of 16 pixels, as trained by augreg.
    fn plain([dim, depth, heads]: [usize; 3]) -> Self {
        Self {
            native_px: 224,
            patch: 16,
            dim,
            depth,
            heads,
            classes: 1000,
            registers: 0,
            pooling: Pooling::Token,
            position: Position::Learned {
                for_prefix: true,
                resampling: Resampling::Antialiased,
            },
            qkv_bias: QkvBias::All,
            layer_scale: None,
            epsilon: 1e-6,
            token_std: 1e-6,
            exposed: [1, 2, 3].map(|quarter| quarter * depth / 4).to_vec(),
        }
    }

    /// ViT-S/16, `vit_small_patch16_224`.
    pub fn small16() -> Self {
        Self::plain(SMALL)
    }

    /// ViT-B/16, `vit_base_patch16_224`.
    pub fn base16() -> Self {
        Self::plain(BASE)
    }

    /// ViT-L/16, `vit_large_patch16_224`.
    pub fn large16() -> Self {
        Self::plain(LARGE)
    }

    /// SynCLR ViT-B/16: a plain ViT whose class token starts like its weights.
    pub fn synclr_base16() -> Self {
        Self {
            classes: 0,
            token_std: INIT_STD,
            ..Self::base16()
        }
    }

    /// DINOv2 with patches of 14 pixels, without registers or with 4.
    fn dinov2(size: [usize; 3], registers: bool) -> Self {
        let (for_prefix, resampling) = if registers {
            (false, Resampling::Antialiased)
        } else {
            (true, Resampling::Enlarged(0.1))
        };
        Self {
            native_px: 518,
            patch: 14,
            classes: 0,
            registers: if registers { 4 } else { 0 },
            position: Position::Learned {
                for_prefix,
                resampling,
            },
            layer_scale: Some(1e-5),
            ..Self::plain(size)
        }
    }

    /// DINOv2 ViT-S/14, `vit_small_patch14_dinov2` or, with 4 registers, `vit_small_patch14_reg4_dinov2`.
    pub fn dinov2_small14(registers: bool) -> Self {
        Self::dinov2(SMALL, registers)
    }

    /// DINOv2 ViT-B/14.
    pub fn dinov2_base14(registers: bool) -> Self {
        Self::dinov2(BASE, registers)
    }

    /// DINOv2 ViT-L/14.
    pub fn dinov2_large14(registers: bool) -> Self {
        Self::dinov2(LARGE, registers)
    }

    /// DINOv3 ViT-B/16, `vit_base_patch16_dinov3` with the class token as in the original. The published biases of
    /// queries and values are 0 and left out; [`QkvBias::QueryValue`] is `vit_base_patch16_dinov3_qkvb`.
    pub fn dinov3_base16() -> Self {
        Self {
            native_px: 256,
            classes: 0,
            registers: 4,
            position: Position::Rotary { temperature: 100.0 },
            qkv_bias: QkvBias::None,
            layer_scale: Some(1e-5),
            epsilon: 1e-5,
            token_std: INIT_STD,
            ..Self::plain(BASE)
        }
    }

    /// Why these sizes make no network, and what would help.
    pub(in super::super) fn fault(&self) -> Option<(String, &'static str)> {
        let Self {
            native_px,
            patch,
            dim,
            depth,
            heads,
            ..
        } = *self;
        if [native_px, patch, dim, depth, heads].contains(&0) {
            return Some((
                "a side, a width or the number of blocks is 0".into(),
                "Give each as at least 1",
            ));
        }
        if !native_px.is_multiple_of(patch) {
            return Some((
                format!("patches of {patch} do not divide the native side {native_px}"),
                "Give the side for which the position embedding was trained",
            ));
        }
        if !dim.is_multiple_of(heads) {
            return Some((
                format!("{heads} heads do not divide {dim} channels"),
                "Give a number of heads that divides the channels",
            ));
        }
        if matches!(self.position, Position::Rotary { .. }) && !self.head_width().is_multiple_of(4)
        {
            return Some((
                format!(
                    "rotary positions need heads of 4, 8, … channels, not {}",
                    self.head_width()
                ),
                "Give another number of heads",
            ));
        }
        let ascending = self.exposed.is_sorted_by(|a, b| a < b);
        if !ascending
            || self
                .exposed
                .iter()
                .any(|blocks| !(1..depth).contains(blocks))
        {
            return Some((
                format!(
                    "stages are exposed after blocks {:?} of {depth}",
                    self.exposed
                ),
                "Give ascending numbers from 1 to one less than the blocks",
            ));
        }
        None
    }

    /// Class and register tokens.
    pub(super) fn prefix(&self) -> usize {
        1 + self.registers
    }

    /// Rows, and columns, of patches of an input of `side_px`.
    pub(super) fn grid(&self, side_px: usize) -> usize {
        side_px / self.patch
    }

    /// Length of a head's queries, keys and values.
    pub(super) fn head_width(&self) -> usize {
        self.dim / self.heads
    }

    /// Whether class and register tokens have a learned vector of their position, or there is no such vector at all.
    pub(in super::super) fn embeds_prefix(&self) -> bool {
        match self.position {
            Position::Learned { for_prefix, .. } => for_prefix,
            Position::Rotary { .. } => true,
        }
    }

    /// Positions with a learned vector.
    pub(super) fn learned_positions(&self) -> Option<usize> {
        match self.position {
            Position::Learned { for_prefix, .. } => {
                let patches = self.grid(self.native_px).pow(2);
                Some(patches + if for_prefix { self.prefix() } else { 0 })
            }
            Position::Rotary { .. } => None,
        }
    }

    /// Keys of a block's two layer scales, where it has them.
    pub(super) fn scale_keys(&self, block: &str) -> [Option<String>; 2] {
        [1, 2].map(|i| {
            self.layer_scale.map(|_| match self.position {
                Position::Learned { .. } => format!("{block}.ls{i}.gamma"),
                Position::Rotary { .. } => format!("{block}.gamma_{i}"),
            })
        })
    }

    /// Key of the last norm.
    pub(super) fn norm_key(&self) -> &'static str {
        match self.pooling {
            Pooling::AverageThenNorm => "fc_norm",
            Pooling::Token | Pooling::Average => "norm",
        }
    }

    /// The patches after the exposed blocks and at the end, for an input of `side_px`, a multiple of the patch.
    pub fn stage_specs(&self, side_px: usize) -> Vec<StageSpec> {
        let grid = self.grid(side_px);
        let last = match self.pooling {
            Pooling::AverageThenNorm => format!("blocks.{}", self.depth - 1),
            Pooling::Token | Pooling::Average => "norm".to_owned(),
        };
        let exposed = self.exposed.iter();
        exposed
            .map(|blocks| format!("blocks.{}", blocks - 1))
            .chain([last])
            .map(|name| StageSpec {
                name,
                shape: [self.dim, grid, grid],
            })
            .collect()
    }

    /// Every tensor of the network. Untrained weights and position embeddings are normal with standard deviation 0.02,
    /// biases 0, the patch projection as PyTorch's convolutions, as in timm, DINOv2 and DINOv3.
    pub fn parameters(&self) -> Vec<Parameter> {
        let dim = self.dim;
        let normal = |name: &str, shape: [usize; 3], std: f64| Parameter {
            name: name.to_owned(),
            shape: shape.to_vec(),
            init: Init::TruncatedNormal {
                std,
                bound: INIT_BOUND,
            },
            trained: true,
        };
        let constant = |name: String, value: f64| Parameter {
            name,
            shape: vec![dim],
            init: Init::Constant(value),
            trained: true,
        };
        let mut parameters = vec![normal("cls_token", [1, 1, dim], self.token_std)];
        if self.registers > 0 {
            let shape = [1, self.registers, dim];
            parameters.push(normal("reg_token", shape, self.token_std));
        }
        if let Some(positions) = self.learned_positions() {
            parameters.push(normal("pos_embed", [1, positions, dim], INIT_STD));
        }
        parameters.extend(patch_parameters("patch_embed.proj", 3, dim, self.patch));
        for i in 0..self.depth {
            let key = format!("blocks.{i}");
            let of = |name: &str, shape: [usize; 2], bias: bool| {
                projection_parameters(&format!("{key}.{name}"), shape, bias)
            };
            let hidden = EXPANSION * dim;
            parameters.extend(LayerNorm::parameters(&format!("{key}.norm1"), dim, 1.0));
            let all = self.qkv_bias == QkvBias::All;
            parameters.extend(of("attn.qkv", [dim, 3 * dim], all));
            if self.qkv_bias == QkvBias::QueryValue {
                let biases = ["q", "v"].map(|part| format!("{key}.attn.{part}_bias"));
                parameters.extend(biases.map(|name| constant(name, 0.0)));
            }
            parameters.extend(of("attn.proj", [dim, dim], true));
            parameters.extend(LayerNorm::parameters(&format!("{key}.norm2"), dim, 1.0));
            parameters.extend(of("mlp.fc1", [dim, hidden], true));
            parameters.extend(of("mlp.fc2", [hidden, dim], true));
            let scales = self.scale_keys(&key).into_iter().flatten();
            let value = self.layer_scale.unwrap_or(1.0);
            parameters.extend(scales.map(|name| constant(name, value)));
        }
        parameters.extend(LayerNorm::parameters(self.norm_key(), dim, 1.0));
        if self.classes > 0 {
            parameters.extend(projection_parameters("head", [dim, self.classes], true));
        }
        parameters
    }
}
