//! Which libraries publish checkpoints of each family of networks, and under which names.
//!
//! What an architecture declares are timm's names, or torchvision's where timm has none. How others
//! call its tensors stands in a table beside each architecture (its `keys`).

use super::super::architecture::Architecture;
use super::super::convnext::keys as convnext;
use super::super::efficientnet_lite::keys as efficientnet_lite;
use super::super::resnet::keys as resnet;
use super::super::swinv2::keys as swinv2;
use super::super::vgg::keys as vgg;
use super::super::vit::keys as vit;
use super::Parameter;
use super::remap::Naming;

/// Ends of the names of tensors that no inference uses: they serve training, follow from the sizes, or
/// state a normalisation that the encoder's row states.
const UNUSED_ENDS: [&str; 12] = [
    "mask_token",
    "relative_coords_table",
    "attn_mask",
    "attn.qkv.bias_mask",
    "rope_embed.periods",
    "normalizer.new_mean",
    "normalizer.new_std",
    "normalize.mean",
    "normalize.std",
    "total_ops",
    "total_params",
    "criterion.weight",
];

/// Beginnings of the names of parts that only training uses: projection heads of self-supervised
/// training, decoders of masked autoencoders, auxiliary classifiers, and a pooling layer that no image
/// feature passes.
const UNUSED_PARTS: [&str; 8] = [
    "head.mlp.",
    "head.last_layer.",
    "dino_head.",
    "ibot_head.",
    "decoder_",
    "aux_logits.",
    "aux.",
    "pooler.dense.",
];

/// Beginnings of the names of classifiers and projection heads, which play no part in a network that is
/// used without classes.
const HEADS: [&str; 3] = ["head.", "fc.", "classifier."];

/// Whether an architecture declares no head at all.
pub(super) fn is_headless(parameters: &[Parameter]) -> bool {
    let is_head = |name: &str| HEADS.iter().any(|head| name.starts_with(head));
    !parameters.iter().any(|parameter| is_head(&parameter.name))
}

/// Whether a tensor that no architecture declares is known to play no part in inference.
pub(super) fn is_of_no_use(name: &str, is_headless: bool) -> bool {
    let ends = |end: &str| {
        name.strip_suffix(end)
            .is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    UNUSED_ENDS.iter().any(|end| ends(end))
        || UNUSED_PARTS.iter().any(|begin| name.starts_with(begin))
        || (is_headless && HEADS.iter().any(|begin| name.starts_with(begin)))
}

/// The namings under which an architecture's checkpoints are published, the declared one first.
pub fn of(architecture: &Architecture) -> Vec<Naming> {
    const TRANSFORMERS: &str = "Hugging Face transformers";
    let mut namings = vec![Naming::declared()];
    match architecture {
        Architecture::EfficientNetLite(config) => {
            let config = config.clone();
            namings.push(Naming::new("efficientnet_lite_pytorch", move |name| {
                efficientnet_lite::from_port(&config, name)
            }));
        }
        Architecture::ResNet(_) => namings.extend([
            Naming::new(TRANSFORMERS, resnet::from_transformers),
            Naming::new("kuangliu/pytorch-cifar", resnet::from_kuangliu),
        ]),
        Architecture::Vgg(_) => namings.push(Naming::new("timm", vgg::from_timm)),
        Architecture::ConvNeXt(_) => namings.extend([
            Naming::new("torchvision", convnext::from_torchvision),
            Naming::new("facebookresearch/ConvNeXt", convnext::from_original),
            Naming::new(TRANSFORMERS, convnext::from_transformers),
        ]),
        Architecture::Vit(config) => {
            let is_split = !config.embeds_prefix();
            let understood = move |renaming| match is_split {
                true => vit::with_registers(renaming),
                false => renaming,
            };
            namings.extend([
                Naming::new("torchvision", vit::from_torchvision),
                Naming::new("facebookresearch/dinov2", move |name| {
                    understood(vit::from_dinov2(name))
                }),
                Naming::new("facebookresearch/dinov3", vit::from_dinov3),
                Naming::new(TRANSFORMERS, move |name| {
                    understood(vit::from_transformers(name))
                }),
                Naming::new(TRANSFORMERS, vit::from_transformers_dinov3),
            ]);
        }
        Architecture::SwinV2(_) => namings.extend([
            Naming::new("microsoft/Swin-Transformer", swinv2::from_original),
            Naming::new("torchvision", swinv2::from_torchvision),
            Naming::new(TRANSFORMERS, swinv2::from_transformers),
        ]),
        Architecture::SqueezeNet(_) | Architecture::WideResNet(_) | Architecture::AlexNet(_) => {}
    }
    namings
}
