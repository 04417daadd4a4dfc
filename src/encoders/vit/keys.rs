//! What the tensors are called in other libraries, see the table in [`super`]. Every function gives `None` for a
//! name that its library does not use.

use super::super::renaming::{Renaming, numbered, suffixed};

/// Names of DINOv2. They are timm's but for the registers and a token used in training.
pub fn from_dinov2(name: &str) -> Option<Renaming> {
    match name {
        "mask_token" => Some(Renaming::Unused),
        "register_tokens" => Some(Renaming::Whole("reg_token".to_owned())),
        "cls_token" | "pos_embed" => Some(Renaming::Whole(name.to_owned())),
        _ => from_dino(name),
    }
}

/// A naming of DINOv2 as it is to be understood for networks whose prefix has no position embedding: see [`super`].
pub fn with_registers(renaming: Option<Renaming>) -> Option<Renaming> {
    match renaming {
        Some(Renaming::Whole(name)) if name == "pos_embed" => {
            Some(Renaming::ClassAndPatches("cls_token".to_owned(), name))
        }
        other => other,
    }
}

/// Names of DINOv3.
pub fn from_dinov3(name: &str) -> Option<Renaming> {
    match name {
        "mask_token" | "rope_embed.periods" => return Some(Renaming::Unused),
        "storage_tokens" => return Some(Renaming::Whole("reg_token".to_owned())),
        "cls_token" => return Some(Renaming::Whole(name.to_owned())),
        _ => {}
    }
    if name.starts_with("local_cls_norm.") {
        return Some(Renaming::Unused);
    }
    let Some((i, rest)) = numbered(name, "blocks.") else {
        return from_dino(name);
    };
    match rest {
        "ls1.gamma" => Some(block(i, "gamma_1")),
        "ls2.gamma" => Some(block(i, "gamma_2")),
        "attn.qkv.bias_mask" => Some(Renaming::Unused),
        "attn.qkv.bias" => {
            let [query, value] = ["q", "v"].map(|part| format!("blocks.{i}.attn.{part}_bias"));
            Some(Renaming::QueryAndValue(query, value))
        }
        _ => from_dino(name),
    }
}

/// Names that DINOv2 and DINOv3 share with timm.
fn from_dino(name: &str) -> Option<Renaming> {
    let known = match numbered(name, "blocks.") {
        Some((_, rest)) => {
            let (layer, _) = suffixed(rest)?;
            let layers = [
                "norm1",
                "norm2",
                "attn.qkv",
                "attn.proj",
                "mlp.fc1",
                "mlp.fc2",
                "ls1",
                "ls2",
            ];
            layers.contains(&layer)
        }
        None => matches!(suffixed(name)?.0, "patch_embed.proj" | "norm"),
    };
    known.then(|| Renaming::Whole(name.to_owned()))
}

/// Names of torchvision.
pub fn from_torchvision(name: &str) -> Option<Renaming> {
    let whole = |name: &str| Some(Renaming::Whole(name.to_owned()));
    match name {
        "class_token" => return whole("cls_token"),
        "encoder.pos_embedding" => return whole("pos_embed"),
        _ => {}
    }
    let Some((i, rest)) = numbered(name, "encoder.layers.encoder_layer_") else {
        return match suffixed(name)? {
            ("conv_proj", suffix) => Some(Renaming::whole("patch_embed.proj", suffix)),
            ("encoder.ln", suffix) => Some(Renaming::whole("norm", suffix)),
            ("heads.head", suffix) => Some(Renaming::whole("head", suffix)),
            _ => None,
        };
    };
    match rest {
        "self_attention.in_proj_weight" => return Some(block(i, "attn.qkv.weight")),
        "self_attention.in_proj_bias" => return Some(block(i, "attn.qkv.bias")),
        _ => {}
    }
    let (layer, suffix) = suffixed(rest)?;
    let layer = match layer {
        "ln_1" => "norm1",
        "ln_2" => "norm2",
        "self_attention.out_proj" => "attn.proj",
        "mlp.0" | "mlp.linear_1" => "mlp.fc1",
        "mlp.3" | "mlp.linear_2" => "mlp.fc2",
        _ => return None,
    };
    Some(block(i, &format!("{layer}.{suffix}")))
}

/// Names of transformers' ViT and DINOv2 models, in published files and in the state dictionaries of
/// version 5, with or without the prefix `vit.`, `deit.`, `dinov2.` or `dinov2_with_registers.`. The heads of `…ForImageClassification` are those of ViT only: DINOv2's sees other features.
pub fn from_transformers(name: &str) -> Option<Renaming> {
    let prefixes = ["vit.", "deit.", "dinov2.", "dinov2_with_registers."];
    let stripped = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix));
    let name = stripped.unwrap_or(name);
    let whole = |name: &str| Some(Renaming::Whole(name.to_owned()));
    match name {
        "embeddings.cls_token" => return whole("cls_token"),
        "embeddings.register_tokens" => return whole("reg_token"),
        "embeddings.position_embeddings" => return whole("pos_embed"),
        "embeddings.mask_token" => return Some(Renaming::Unused),
        _ => {}
    }
    let layer = numbered(name, "encoder.layer.").or_else(|| numbered(name, "layers."));
    let Some((i, rest)) = layer else {
        return match suffixed(name)? {
            ("embeddings.patch_embeddings.projection", suffix) => {
                Some(Renaming::whole("patch_embed.proj", suffix))
            }
            ("layernorm", suffix) => Some(Renaming::whole("norm", suffix)),
            ("classifier", suffix) => Some(Renaming::whole("head", suffix)),
            ("pooler.dense", _) => Some(Renaming::Unused),
            _ => None,
        };
    };
    let (layer, suffix) = suffixed(rest)?;
    let layer = match layer {
        "attention.attention.query" | "attention.q_proj" => return Some(third(i, suffix, 0)),
        "attention.attention.key" | "attention.k_proj" => return Some(third(i, suffix, 1)),
        "attention.attention.value" | "attention.v_proj" => return Some(third(i, suffix, 2)),
        "layernorm_before" | "norm1" => "norm1",
        "layernorm_after" | "norm2" => "norm2",
        "attention.output.dense" | "attention.o_proj" => "attn.proj",
        "intermediate.dense" | "mlp.fc1" => "mlp.fc1",
        "output.dense" | "mlp.fc2" => "mlp.fc2",
        "layer_scale1" => return Some(block(i, "ls1.gamma")),
        "layer_scale2" => return Some(block(i, "ls2.gamma")),
        _ => return None,
    };
    Some(block(i, &format!("{layer}.{suffix}")))
}

/// Names of transformers' DINOv3 model.
pub fn from_transformers_dinov3(name: &str) -> Option<Renaming> {
    let whole = |name: &str| Some(Renaming::Whole(name.to_owned()));
    match name {
        "embeddings.cls_token" => return whole("cls_token"),
        "embeddings.register_tokens" => return whole("reg_token"),
        "embeddings.mask_token" | "rope_embeddings.inv_freq" => return Some(Renaming::Unused),
        _ => {}
    }
    let name = name.strip_prefix("model.").unwrap_or(name);
    let Some((i, rest)) = numbered(name, "layer.") else {
        return match suffixed(name)? {
            ("embeddings.patch_embeddings", suffix) => {
                Some(Renaming::whole("patch_embed.proj", suffix))
            }
            ("norm", suffix) => Some(Renaming::whole("norm", suffix)),
            _ => None,
        };
    };
    let (layer, suffix) = suffixed(rest)?;
    let layer = match (layer, suffix) {
        ("attention.q_proj", "weight") => return Some(third(i, suffix, 0)),
        ("attention.k_proj", "weight") => return Some(third(i, suffix, 1)),
        ("attention.v_proj", "weight") => return Some(third(i, suffix, 2)),
        ("attention.q_proj", "bias") => return Some(block(i, "attn.q_bias")),
        ("attention.v_proj", "bias") => return Some(block(i, "attn.v_bias")),
        ("layer_scale1", _) => return Some(block(i, "gamma_1")),
        ("layer_scale2", _) => return Some(block(i, "gamma_2")),
        ("norm1" | "norm2", _) => layer,
        ("attention.o_proj", _) => "attn.proj",
        ("mlp.up_proj", _) => "mlp.fc1",
        ("mlp.down_proj", _) => "mlp.fc2",
        _ => return None,
    };
    Some(block(i, &format!("{layer}.{suffix}")))
}

fn block(i: usize, rest: &str) -> Renaming {
    Renaming::Whole(format!("blocks.{i}.{rest}"))
}

fn third(i: usize, suffix: &str, part: usize) -> Renaming {
    Renaming::Third(format!("blocks.{i}.attn.qkv.{suffix}"), part)
}
