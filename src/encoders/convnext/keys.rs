//! What the tensors are called in other libraries, see the table in [`super`]. Every function gives `None` for a
//! name that its library does not use.

use super::super::renaming::{Renaming, numbered, suffixed};

/// Names of the original code.
pub fn from_original(name: &str) -> Option<Renaming> {
    if let Some((i, rest)) = numbered(name, "downsample_layers.") {
        return Some(patches(i, rest));
    }
    if let Some((i, rest)) = numbered(name, "stages.") {
        let (j, rest) = numbered(rest, "")?;
        let rest = match rest.split_once('.') {
            None if rest == "gamma" => rest.to_owned(),
            Some(("dwconv", suffix)) => format!("conv_dw.{suffix}"),
            Some(("norm", suffix)) => format!("norm.{suffix}"),
            Some(("pwconv1", suffix)) => format!("mlp.fc1.{suffix}"),
            Some(("pwconv2", suffix)) => format!("mlp.fc2.{suffix}"),
            _ => return None,
        };
        return Some(block(i, j, &rest));
    }
    match suffixed(name)? {
        ("norm", suffix) => Some(Renaming::whole("head.norm", suffix)),
        ("head", suffix) => Some(Renaming::whole("head.fc", suffix)),
        _ => None,
    }
}

/// Names of torchvision.
pub fn from_torchvision(name: &str) -> Option<Renaming> {
    if let Some((feature, rest)) = numbered(name, "features.") {
        if feature % 2 == 0 {
            return Some(patches(feature / 2, rest));
        }
        let (j, rest) = numbered(rest, "")?;
        let rest = match rest.strip_prefix("block.").and_then(suffixed) {
            None if rest == "layer_scale" => "gamma".to_owned(),
            Some(("0", suffix)) => format!("conv_dw.{suffix}"),
            Some(("2", suffix)) => format!("norm.{suffix}"),
            Some(("3", suffix)) => format!("mlp.fc1.{suffix}"),
            Some(("5", suffix)) => format!("mlp.fc2.{suffix}"),
            _ => return None,
        };
        return Some(block(feature / 2, j, &rest));
    }
    match suffixed(name)? {
        ("classifier.0", suffix) => Some(Renaming::whole("head.norm", suffix)),
        ("classifier.2", suffix) => Some(Renaming::whole("head.fc", suffix)),
        _ => None,
    }
}

/// Names of transformers' `ConvNextForImageClassification`, with or without the prefix `convnext.`.
pub fn from_transformers(name: &str) -> Option<Renaming> {
    let name = name.strip_prefix("convnext.").unwrap_or(name);
    if let Some((i, rest)) = numbered(name, "encoder.stages.") {
        if let Some(rest) = rest.strip_prefix("downsampling_layer.") {
            return Some(patches(i, rest));
        }
        let (j, rest) = numbered(rest, "layers.")?;
        let rest = match rest.split_once('.') {
            None if rest == "layer_scale_parameter" => "gamma".to_owned(),
            Some(("dwconv", suffix)) => format!("conv_dw.{suffix}"),
            Some(("layernorm", suffix)) => format!("norm.{suffix}"),
            Some(("pwconv1", suffix)) => format!("mlp.fc1.{suffix}"),
            Some(("pwconv2", suffix)) => format!("mlp.fc2.{suffix}"),
            _ => return None,
        };
        return Some(block(i, j, &rest));
    }
    match suffixed(name)? {
        ("embeddings.patch_embeddings", suffix) => Some(Renaming::whole("stem.0", suffix)),
        ("embeddings.layernorm", suffix) => Some(Renaming::whole("stem.1", suffix)),
        ("layernorm", suffix) => Some(Renaming::whole("head.norm", suffix)),
        ("classifier", suffix) => Some(Renaming::whole("head.fc", suffix)),
        _ => None,
    }
}

/// The patches before stage `i`; `rest` is `0.weight` and the like.
fn patches(i: usize, rest: &str) -> Renaming {
    Renaming::Whole(if i == 0 {
        format!("stem.{rest}")
    } else {
        format!("stages.{i}.downsample.{rest}")
    })
}

fn block(i: usize, j: usize, rest: &str) -> Renaming {
    Renaming::Whole(format!("stages.{i}.blocks.{j}.{rest}"))
}
