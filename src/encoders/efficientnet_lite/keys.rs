//! What the tensors are called in other libraries.

use super::super::renaming::{Renaming, numbered, suffixed};
use super::EfficientNetLiteConfig;

/// Names of the port `efficientnet_lite_pytorch`, which counts blocks through all stages and numbers a
/// block's BatchNorms from the convolution that widens it; blocks that widen nothing lack the first.
/// `None` for a name that it does not use.
pub fn from_port(config: &EfficientNetLiteConfig, name: &str) -> Option<Renaming> {
    let Some((mut block, rest)) = numbered(name, "_blocks.") else {
        let (layer, suffix) = suffixed(name)?;
        let layer = match layer {
            "_conv_stem" => "conv_stem",
            "_bn0" => "bn1",
            "_conv_head" => "conv_head",
            "_bn1" => "bn2",
            "_fc" => "classifier",
            _ => return None,
        };
        return Some(Renaming::whole(layer, suffix));
    };
    let mut stages = config.stages.iter().enumerate();
    let (stage, widens) = stages.find_map(|(i, stage)| {
        if block < stage.blocks {
            return Some((i, stage.expansion != 1));
        }
        block -= stage.blocks;
        None
    })?;
    let (layer, suffix) = suffixed(rest)?;
    let layer = match (layer, widens) {
        ("_expand_conv", true) => "conv_pw",
        ("_bn0", true) | ("_bn1", false) => "bn1",
        ("_depthwise_conv", _) => "conv_dw",
        ("_bn1", true) | ("_bn2", false) => "bn2",
        ("_project_conv", true) => "conv_pwl",
        ("_project_conv", false) => "conv_pw",
        ("_bn2", true) => "bn3",
        _ => return None,
    };
    Some(Renaming::whole(
        &format!("blocks.{stage}.{block}.{layer}"),
        suffix,
    ))
}
