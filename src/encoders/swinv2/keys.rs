//! What the tensors are called in other libraries, see the table in [`super`]. Every function gives `None` for a
//! name that its library does not use.

use super::super::renaming::{Renaming, numbered, suffixed};

/// Names of the original code.
pub fn from_original(name: &str) -> Option<Renaming> {
    let buffers = [
        "relative_position_index",
        "relative_coords_table",
        "attn_mask",
    ];
    if buffers.iter().any(|buffer| name.ends_with(buffer)) {
        return Some(Renaming::Unused);
    }
    let whole = |name: String| Some(Renaming::Whole(name));
    if let Some((i, rest)) = numbered(name, "layers.") {
        return match rest.strip_prefix("downsample.") {
            Some(rest) => whole(format!("layers.{}.downsample.{rest}", i + 1)),
            None if rest.starts_with("blocks.") => whole(name.to_owned()),
            None => None,
        };
    }
    match suffixed(name)? {
        ("patch_embed.proj" | "patch_embed.norm" | "norm", _) => whole(name.to_owned()),
        ("head", suffix) => Some(Renaming::whole("head.fc", suffix)),
        _ => None,
    }
}

/// Names of torchvision.
pub fn from_torchvision(name: &str) -> Option<Renaming> {
    let buffers = ["relative_position_index", "relative_coords_table"];
    if buffers.iter().any(|buffer| name.ends_with(buffer)) {
        return Some(Renaming::Unused);
    }
    let whole = |name: String| Some(Renaming::Whole(name));
    let Some((feature, rest)) = numbered(name, "features.") else {
        return match suffixed(name)? {
            ("norm", suffix) => Some(Renaming::whole("norm", suffix)),
            ("head", suffix) => Some(Renaming::whole("head.fc", suffix)),
            _ => None,
        };
    };
    let stage = feature / 2;
    if feature == 0 {
        return match suffixed(rest)? {
            ("0", suffix) => Some(Renaming::whole("patch_embed.proj", suffix)),
            ("2", suffix) => Some(Renaming::whole("patch_embed.norm", suffix)),
            _ => None,
        };
    }
    if feature % 2 == 0 {
        return matches!(suffixed(rest)?.0, "reduction" | "norm")
            .then(|| Renaming::Whole(format!("layers.{stage}.downsample.{rest}")));
    }
    let (j, rest) = numbered(rest, "")?;
    let key = format!("layers.{stage}.blocks.{j}");
    match rest {
        "attn.logit_scale" => return whole(format!("{key}.{rest}")),
        "attn.qkv.bias" => {
            let [query, value] = ["q", "v"].map(|part| format!("{key}.attn.{part}_bias"));
            return Some(Renaming::QueryAndValue(query, value));
        }
        _ => {}
    }
    let (layer, suffix) = suffixed(rest)?;
    let layer = match layer {
        "norm1" | "norm2" | "attn.qkv" | "attn.proj" | "attn.cpb_mlp.0" | "attn.cpb_mlp.2" => layer,
        "mlp.0" => "mlp.fc1",
        "mlp.3" => "mlp.fc2",
        _ => return None,
    };
    whole(format!("{key}.{layer}.{suffix}"))
}

/// Names of transformers' `Swinv2ForImageClassification`, with or without the prefix `swinv2.`.
pub fn from_transformers(name: &str) -> Option<Renaming> {
    let name = name.strip_prefix("swinv2.").unwrap_or(name);
    let whole = |name: String| Some(Renaming::Whole(name));
    let Some((i, rest)) = numbered(name, "encoder.layers.") else {
        return match suffixed(name)? {
            ("embeddings.patch_embeddings.projection", suffix) => {
                Some(Renaming::whole("patch_embed.proj", suffix))
            }
            ("embeddings.norm", suffix) => Some(Renaming::whole("patch_embed.norm", suffix)),
            ("layernorm", suffix) => Some(Renaming::whole("norm", suffix)),
            ("classifier", suffix) => Some(Renaming::whole("head.fc", suffix)),
            _ => None,
        };
    };
    if let Some(rest) = rest.strip_prefix("downsample.") {
        return whole(format!("layers.{}.downsample.{rest}", i + 1));
    }
    let (j, rest) = numbered(rest, "blocks.")?;
    let key = format!("layers.{i}.blocks.{j}");
    let third = |part| Some(Renaming::Third(format!("{key}.attn.qkv.weight"), part));
    match rest {
        "attention.self.query.weight" => return third(0),
        "attention.self.key.weight" => return third(1),
        "attention.self.value.weight" => return third(2),
        "attention.self.query.bias" => return whole(format!("{key}.attn.q_bias")),
        "attention.self.value.bias" => return whole(format!("{key}.attn.v_bias")),
        "attention.self.logit_scale" => return whole(format!("{key}.attn.logit_scale")),
        _ => {}
    }
    let (layer, suffix) = suffixed(rest)?;
    let layer = match layer {
        "attention.self.continuous_position_bias_mlp.0" => "attn.cpb_mlp.0",
        "attention.self.continuous_position_bias_mlp.2" => "attn.cpb_mlp.2",
        "attention.output.dense" => "attn.proj",
        "layernorm_before" => "norm1",
        "layernorm_after" => "norm2",
        "intermediate.dense" => "mlp.fc1",
        "output.dense" => "mlp.fc2",
        _ => return None,
    };
    whole(format!("{key}.{layer}.{suffix}"))
}
