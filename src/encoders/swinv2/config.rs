//! Sizes of the family, and the tensors that follow from them.

use serde::{Deserialize, Serialize};

use super::super::StageSpec;
use super::super::norm::LayerNorm;
use super::super::tokens::{patch_parameters, projection_parameters};
use super::super::weights::{Init, Parameter};

/// ε of every layer norm.
pub(super) const NORM_EPSILON: f64 = 1e-5;

/// Width of a block's hidden layer over its input.
pub(super) const EXPANSION: usize = 4;

/// Side of a patch in pixels.
pub(super) const PATCH: usize = 4;

/// Hidden units of the network that computes position biases.
pub(super) const BIAS_HIDDEN: usize = 512;

/// A network of the family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwinV2Config {
    /// Channels of the first stage; each later one has twice as many.
    pub dim: usize,
    /// Blocks of each stage.
    pub depths: [usize; 4],
    /// Heads of each stage.
    pub heads: [usize; 4],
    /// Side of a window, in positions; a stage with fewer positions a side is one window.
    pub window: usize,
    /// Side of the window for which each stage's position bias was trained; 0 for the stage's own.
    pub pretrained_windows: [usize; 4],
    /// Number of classes; 0 leaves the classifier out.
    pub classes: usize,
}

impl SwinV2Config {
    /// SwinV2-T with a window of 8 or 16 positions, `swinv2_tiny_window8_256`.
    pub fn tiny(window: usize) -> Self {
        Self {
            dim: 96,
            depths: [2, 2, 6, 2],
            heads: [3, 6, 12, 24],
            window,
            pretrained_windows: [0; 4],
            classes: 1000,
        }
    }

    /// SwinV2-S with a window of 8 or 16 positions, `swinv2_small_window8_256`.
    pub fn small(window: usize) -> Self {
        Self {
            depths: [2, 2, 18, 2],
            ..Self::tiny(window)
        }
    }

    /// SwinV2-B with a window of 8 or 16 positions, `swinv2_base_window8_256`.
    pub fn base(window: usize) -> Self {
        Self {
            dim: 128,
            heads: [4, 8, 16, 32],
            ..Self::small(window)
        }
    }

    /// SwinV2-B trained at 192 px with windows of 12, then tuned with windows of 16 at 256 px or of 24 at 384 px:
    /// `swinv2_base_window12to16_192to256`, `swinv2_base_window12to24_192to384`.
    pub fn base_from_192(window: usize) -> Self {
        Self {
            pretrained_windows: [12, 12, 12, 6],
            ..Self::base(window)
        }
    }

    /// Why these sizes make no network, and what would help.
    pub(in super::super) fn fault(&self) -> Option<(String, &'static str)> {
        if self.window == 0 || self.heads.contains(&0) {
            return Some((
                "the window or a number of heads is 0".into(),
                "Give each as at least 1",
            ));
        }
        let uneven = (0..4).find(|&i| !self.channels(i).is_multiple_of(self.heads[i]))?;
        Some((
            format!(
                "{} heads do not divide the {} channels of stage {uneven}",
                self.heads[uneven],
                self.channels(uneven)
            ),
            "Give a number of heads that divides the channels",
        ))
    }

    /// Channels of stage `i`.
    pub(super) fn channels(&self, i: usize) -> usize {
        self.dim << i
    }

    /// The four stages for an input of `side_px`, a multiple of 4.
    pub fn stage_specs(&self, side_px: usize) -> Vec<StageSpec> {
        let sides = sides(side_px).into_iter().enumerate();
        sides
            .map(|(i, side)| StageSpec {
                name: format!("layers.{i}"),
                shape: [self.channels(i), side, side],
            })
            .collect()
    }

    /// Length of the pooled feature.
    pub fn pooled_len(&self) -> usize {
        self.channels(3)
    }

    /// Every tensor of the network. Untrained weights are normal with standard deviation 0.02, biases 0, the norms
    /// at the end of each branch 0, so that every block starts as the identity, as in the original.
    pub fn parameters(&self) -> Vec<Parameter> {
        let mut parameters = patch_parameters("patch_embed.proj", 3, self.dim, PATCH).to_vec();
        parameters.extend(LayerNorm::parameters("patch_embed.norm", self.dim, 1.0));
        for i in 0..4 {
            let (dim, heads) = (self.channels(i), self.heads[i]);
            if i > 0 {
                let key = format!("layers.{i}.downsample");
                let reduction = [2 * dim, dim];
                let name = format!("{key}.reduction");
                parameters.extend(projection_parameters(&name, reduction, false));
                parameters.extend(LayerNorm::parameters(&format!("{key}.norm"), dim, 1.0));
            }
            for j in 0..self.depths[i] {
                parameters.extend(block_parameters(
                    &format!("layers.{i}.blocks.{j}"),
                    dim,
                    heads,
                ));
            }
        }
        let dim = self.pooled_len();
        parameters.extend(LayerNorm::parameters("norm", dim, 1.0));
        if self.classes > 0 {
            parameters.extend(projection_parameters("head.fc", [dim, self.classes], true));
        }
        parameters
    }
}

/// Positions a side of each stage, for an input of `side_px`.
pub(super) fn sides(side_px: usize) -> [usize; 4] {
    let mut side = side_px / PATCH;
    [0, 1, 2, 3].map(|i| {
        if i > 0 {
            side = side.div_ceil(2);
        }
        side
    })
}

fn block_parameters(key: &str, dim: usize, heads: usize) -> Vec<Parameter> {
    let of = |name: &str, shape: [usize; 2], bias: bool| {
        projection_parameters(&format!("{key}.{name}"), shape, bias)
    };
    let constant = |name: &str, shape: Vec<usize>, value: f64| Parameter {
        name: format!("{key}.{name}"),
        shape,
        init: Init::Constant(value),
        trained: true,
    };
    let hidden = EXPANSION * dim;
    let mut parameters = vec![
        constant("attn.logit_scale", vec![heads, 1, 1], 10.0_f64.ln()),
        constant("attn.q_bias", vec![dim], 0.0),
        constant("attn.v_bias", vec![dim], 0.0),
    ];
    parameters.extend(of("attn.cpb_mlp.0", [2, BIAS_HIDDEN], true));
    parameters.extend(of("attn.cpb_mlp.2", [BIAS_HIDDEN, heads], false));
    parameters.extend(of("attn.qkv", [dim, 3 * dim], false));
    parameters.extend(of("attn.proj", [dim, dim], true));
    parameters.extend(LayerNorm::parameters(&format!("{key}.norm1"), dim, 0.0));
    parameters.extend(of("mlp.fc1", [dim, hidden], true));
    parameters.extend(of("mlp.fc2", [hidden, dim], true));
    parameters.extend(LayerNorm::parameters(&format!("{key}.norm2"), dim, 0.0));
    parameters
}
