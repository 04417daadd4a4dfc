//! What the tensors are called in other libraries. Every function gives `None` for a name that its
//! library does not use.

use super::super::renaming::{Renaming, numbered, suffixed};

/// Names of transformers' `ResNetForImageClassification`, with or without the prefix `resnet.`:
/// `encoder.stages.i.layers.j.layer.k` for the convolutions of `layer{i+1}.j`, each with its BatchNorm
/// as `convolution` and `normalization`.
pub fn from_transformers(name: &str) -> Option<Renaming> {
    let name = name.strip_prefix("resnet.").unwrap_or(name);
    let Some((stage, rest)) = numbered(name, "encoder.stages.") else {
        return match suffixed(name)? {
            ("embedder.embedder.convolution", suffix) => Some(Renaming::whole("conv1", suffix)),
            ("embedder.embedder.normalization", suffix) => Some(Renaming::whole("bn1", suffix)),
            ("classifier.1", suffix) => Some(Renaming::whole("fc", suffix)),
            _ => None,
        };
    };
    let (block, rest) = numbered(rest, "layers.")?;
    let key = format!("layer{}.{block}", stage + 1);
    if let Some((layer, rest)) = numbered(rest, "layer.") {
        let (part, suffix) = suffixed(rest)?;
        let part = match part {
            "convolution" => "conv",
            "normalization" => "bn",
            _ => return None,
        };
        return Some(Renaming::whole(
            &format!("{key}.{part}{}", layer + 1),
            suffix,
        ));
    }
    let (part, suffix) = suffixed(rest)?;
    let place = match part {
        "shortcut.convolution" => 0,
        "shortcut.normalization" => 1,
        _ => return None,
    };
    Some(Renaming::whole(
        &format!("{key}.downsample.{place}"),
        suffix,
    ))
}

/// Names of `kuangliu/pytorch-cifar`, the usual ResNets for small images: torchvision's but for
/// `shortcut` and `linear`.
pub fn from_kuangliu(name: &str) -> Option<Renaming> {
    if let Some(suffix) = name.strip_prefix("linear.") {
        return Some(Renaming::whole("fc", suffix));
    }
    Some(Renaming::Whole(name.replace(".shortcut.", ".downsample.")))
}
