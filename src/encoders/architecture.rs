//! Every architecture with its sizes: what a network is before it has weights.

use serde::{Deserialize, Serialize};

use super::alexnet::AlexNetConfig;
use super::convnext::{ConvNeXt, ConvNeXtConfig};
use super::efficientnet_lite::{Conventions, EfficientNetLite, EfficientNetLiteConfig};
use super::layers::Placement;
use super::resnet::{ResNet, ResNetConfig};
use super::squeezenet::{SqueezeNet, SqueezeNetConfig};
use super::swinv2::{SwinV2, SwinV2Config};
use super::vgg::VggConfig;
use super::vit::{Vit, VitConfig};
use super::weights::{Parameter, Weights};
use super::wide_resnet::{WideResNet, WideResNetConfig};
use super::{Encoder, EncoderSpec, StageSpec};
use crate::{Error, ErrorKind, Result};

/// A network of one of the families that the program computes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "snake_case")]
pub enum Architecture {
    /// EfficientNet-Lite.
    #[serde(rename = "efficientnet_lite")]
    EfficientNetLite(EfficientNetLiteConfig),
    /// SqueezeNet.
    #[serde(rename = "squeezenet")]
    SqueezeNet(SqueezeNetConfig),
    /// ResNet.
    #[serde(rename = "resnet")]
    ResNet(ResNetConfig),
    /// VGG.
    Vgg(VggConfig),
    /// Wide residual networks for CIFAR.
    #[serde(rename = "wide_resnet")]
    WideResNet(WideResNetConfig),
    /// AlexNet.
    #[serde(rename = "alexnet")]
    AlexNet(AlexNetConfig),
    /// ConvNeXt.
    #[serde(rename = "convnext")]
    ConvNeXt(ConvNeXtConfig),
    /// Vision Transformer, DINOv2, DINOv3 and SynCLR.
    Vit(VitConfig),
    /// Swin Transformer V2.
    #[serde(rename = "swinv2")]
    SwinV2(SwinV2Config),
}

impl Architecture {
    /// Names of the published networks, see [`Self::published`].
    pub const PUBLISHED: [&str; 45] = [
        "tf_efficientnet_lite0",
        "tf_efficientnet_lite1",
        "tf_efficientnet_lite2",
        "tf_efficientnet_lite3",
        "tf_efficientnet_lite4",
        "efficientnet_lite0",
        "efficientnet_lite1",
        "efficientnet_lite2",
        "efficientnet_lite3",
        "efficientnet_lite4",
        "resnet18",
        "resnet34",
        "resnet50",
        "resnet101",
        "resnet152",
        "wide_resnet50_2",
        "wide_resnet101_2",
        "resnet18_cifar",
        "vgg16",
        "vgg16_bn",
        "vgg16_cifar",
        "wrn28_10_cifar",
        "alexnet",
        "squeezenet1_0",
        "squeezenet1_1",
        "convnext_tiny",
        "convnext_small",
        "convnext_base",
        "convnext_large",
        "vit_small_patch16_224",
        "vit_base_patch16_224",
        "vit_large_patch16_224",
        "synclr_vit_base_patch16",
        "vit_small_patch14_dinov2",
        "vit_base_patch14_dinov2",
        "vit_large_patch14_dinov2",
        "vit_small_patch14_reg4_dinov2",
        "vit_base_patch14_reg4_dinov2",
        "vit_large_patch14_reg4_dinov2",
        "vit_base_patch16_dinov3",
        "swinv2_tiny_window8_256",
        "swinv2_small_window8_256",
        "swinv2_base_window8_256",
        "swinv2_base_window12to16_192to256",
        "swinv2_base_window12to24_192to384",
    ];

    /// The family's name for people.
    pub fn family(&self) -> &'static str {
        match self {
            Self::EfficientNetLite(_) => "EfficientNet-Lite",
            Self::SqueezeNet(_) => "SqueezeNet",
            Self::ResNet(_) => "ResNet",
            Self::Vgg(_) => "VGG",
            Self::WideResNet(_) => "Wide ResNet",
            Self::AlexNet(_) => "AlexNet",
            Self::ConvNeXt(_) => "ConvNeXt",
            Self::Vit(_) => "ViT",
            Self::SwinV2(_) => "Swin V2",
        }
    }

    /// The published network of this name: torchvision's and timm's names, with `_cifar` for networks of
    /// ten classes whose stem suits 32 pixels. `None` where there is none.
    pub fn published(name: &str) -> Option<Self> {
        let lite = |size: &str, conventions| {
            let config = match size {
                "0" => EfficientNetLiteConfig::lite0(),
                "1" => EfficientNetLiteConfig::lite1(),
                "2" => EfficientNetLiteConfig::lite2(),
                "3" => EfficientNetLiteConfig::lite3(),
                "4" => EfficientNetLiteConfig::lite4(),
                _ => return None,
            };
            Some(Self::EfficientNetLite(config.with_conventions(conventions)))
        };
        if let Some(size) = name.strip_prefix("tf_efficientnet_lite") {
            return lite(size, Conventions::TensorFlow);
        }
        if let Some(size) = name.strip_prefix("efficientnet_lite") {
            return lite(size, Conventions::PyTorch);
        }
        Some(match name {
            "resnet18" => Self::ResNet(ResNetConfig::resnet18()),
            "resnet34" => Self::ResNet(ResNetConfig::resnet34()),
            "resnet50" => Self::ResNet(ResNetConfig::resnet50()),
            "resnet101" => Self::ResNet(ResNetConfig::resnet101()),
            "resnet152" => Self::ResNet(ResNetConfig::resnet152()),
            "wide_resnet50_2" => Self::ResNet(ResNetConfig::wide_resnet50_2()),
            "wide_resnet101_2" => Self::ResNet(ResNetConfig::wide_resnet101_2()),
            "resnet18_cifar" => Self::ResNet(ResNetConfig::resnet18().for_cifar(10)),
            "vgg16" => Self::Vgg(VggConfig::vgg16()),
            "vgg16_bn" => Self::Vgg(VggConfig::vgg16_bn()),
            "vgg16_cifar" => Self::Vgg(VggConfig::vgg16_cifar()),
            "wrn28_10_cifar" => Self::WideResNet(WideResNetConfig::wrn28_10()),
            "alexnet" => Self::AlexNet(AlexNetConfig::alexnet()),
            "squeezenet1_0" => Self::SqueezeNet(SqueezeNetConfig::v1_0()),
            "squeezenet1_1" => Self::SqueezeNet(SqueezeNetConfig::v1_1()),
            "convnext_tiny" => Self::ConvNeXt(ConvNeXtConfig::tiny()),
            "convnext_small" => Self::ConvNeXt(ConvNeXtConfig::small()),
            "convnext_base" => Self::ConvNeXt(ConvNeXtConfig::base()),
            "convnext_large" => Self::ConvNeXt(ConvNeXtConfig::large()),
            "vit_small_patch16_224" => Self::Vit(VitConfig::small16()),
            "vit_base_patch16_224" => Self::Vit(VitConfig::base16()),
            "vit_large_patch16_224" => Self::Vit(VitConfig::large16()),
            "synclr_vit_base_patch16" => Self::Vit(VitConfig::synclr_base16()),
            "vit_small_patch14_dinov2" => Self::Vit(VitConfig::dinov2_small14(false)),
            "vit_base_patch14_dinov2" => Self::Vit(VitConfig::dinov2_base14(false)),
            "vit_large_patch14_dinov2" => Self::Vit(VitConfig::dinov2_large14(false)),
            "vit_small_patch14_reg4_dinov2" => Self::Vit(VitConfig::dinov2_small14(true)),
            "vit_base_patch14_reg4_dinov2" => Self::Vit(VitConfig::dinov2_base14(true)),
            "vit_large_patch14_reg4_dinov2" => Self::Vit(VitConfig::dinov2_large14(true)),
            "vit_base_patch16_dinov3" => Self::Vit(VitConfig::dinov3_base16()),
            "swinv2_tiny_window8_256" => Self::SwinV2(SwinV2Config::tiny(8)),
            "swinv2_small_window8_256" => Self::SwinV2(SwinV2Config::small(8)),
            "swinv2_base_window8_256" => Self::SwinV2(SwinV2Config::base(8)),
            "swinv2_base_window12to16_192to256" => Self::SwinV2(SwinV2Config::base_from_192(16)),
            "swinv2_base_window12to24_192to384" => Self::SwinV2(SwinV2Config::base_from_192(24)),
            _ => return None,
        })
    }

    /// Every tensor of the network, with the initialisation of the original library.
    pub fn parameters(&self) -> Vec<Parameter> {
        match self {
            Self::EfficientNetLite(config) => config.parameters(),
            Self::SqueezeNet(config) => config.parameters(),
            Self::ResNet(config) => config.parameters(),
            Self::Vgg(config) => config.plan().parameters(),
            Self::WideResNet(config) => config.parameters(),
            Self::AlexNet(config) => config.plan().parameters(),
            Self::ConvNeXt(config) => config.parameters(),
            Self::Vit(config) => config.parameters(),
            Self::SwinV2(config) => config.parameters(),
        }
    }

    /// Whether the sizes, which may come from a file, make a network for square inputs of `side_px`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Request`] where a tensor would be empty, a window cannot move, heads do not divide the
    /// channels, or the input is too small or no multiple of [`Self::side_step`].
    pub fn check(&self, side_px: usize) -> Result<()> {
        let refuse = |why: String, remedy: &str| {
            let what = format!("cannot build the network for inputs of {side_px} pixels");
            Err(Error::new(ErrorKind::Request, what, why, remedy))
        };
        let fault = match self {
            Self::Vit(config) => config.fault(),
            Self::SwinV2(config) => config.fault(),
            _ => None,
        };
        if let Some((why, remedy)) = fault {
            return refuse(why, remedy);
        }
        if let Some(empty) = self.parameters().iter().find(|tensor| tensor.is_empty()) {
            return refuse(
                format!("its sizes leave the tensor {} without values", empty.name),
                "Give every width, kernel and number of classes as at least 1",
            );
        }
        if let Self::EfficientNetLite(config) = self
            && config
                .stages
                .iter()
                .any(|s| s.stride == 0 || s.kernel % 2 == 0)
        {
            return refuse(
                "a stage has stride 0 or a kernel of even side".into(),
                "Use strides of at least 1 and kernels such as 3 or 5",
            );
        }
        let smallest = self.smallest_side();
        if side_px < smallest {
            return refuse(
                "nothing would be left of them after its convolutions and pooling".into(),
                &format!("Use inputs of at least {smallest} pixels"),
            );
        }
        let step = self.side_step();
        if !side_px.is_multiple_of(step) {
            return refuse(
                format!("its patches take inputs in multiples of {step} px"),
                "Use inputs of such a side",
            );
        }
        Ok(())
    }

    /// Number of trained values: the running statistics of BatchNorm are not counted.
    pub fn parameter_count(&self) -> usize {
        self.parameters()
            .iter()
            .filter(|parameter| parameter.trained)
            .map(Parameter::len)
            .sum()
    }

    /// Side of the smallest square input that the network can compute.
    pub fn smallest_side(&self) -> usize {
        match self {
            // Padding leaves at least one position of any input.
            Self::EfficientNetLite(_) | Self::ResNet(_) | Self::WideResNet(_) => 1,
            // Strides of 32 in all, without padding.
            Self::ConvNeXt(_) | Self::SwinV2(_) => 32,
            Self::Vit(config) => config.patch,
            Self::SqueezeNet(config) => config.smallest_side(),
            Self::Vgg(config) => config.plan().smallest_side(),
            Self::AlexNet(config) => config.plan().smallest_side(),
        }
    }

    /// What the side of an input must be a multiple of.
    pub fn side_step(&self) -> usize {
        match self {
            Self::Vit(config) => config.patch,
            Self::SwinV2(_) => 4,
            _ => 1,
        }
    }

    /// The stages for a square input of `side_px`, at least [`Self::smallest_side`] and a multiple of
    /// [`Self::side_step`], in the order of execution.
    pub fn stage_specs(&self, side_px: usize) -> Vec<StageSpec> {
        match self {
            Self::EfficientNetLite(config) => config.stage_specs(side_px),
            Self::SqueezeNet(config) => config.stage_specs(side_px),
            Self::ResNet(config) => config.stage_specs(side_px),
            Self::Vgg(config) => config.plan().stage_specs(side_px),
            Self::WideResNet(config) => config.stage_specs(side_px),
            Self::AlexNet(config) => config.plan().stage_specs(side_px),
            Self::ConvNeXt(config) => config.stage_specs(side_px),
            Self::Vit(config) => config.stage_specs(side_px),
            Self::SwinV2(config) => config.stage_specs(side_px),
        }
    }

    /// Length of the pooled feature.
    pub fn pooled_len(&self) -> usize {
        match self {
            Self::EfficientNetLite(config) => config.head,
            Self::SqueezeNet(config) => config.pooled_len(),
            Self::ResNet(config) => config.pooled_len(),
            Self::Vgg(config) => config.plan().pooled_len(),
            Self::WideResNet(config) => config.pooled_len(),
            Self::AlexNet(config) => config.hidden,
            Self::ConvNeXt(config) => config.pooled_len(),
            Self::Vit(config) => config.dim,
            Self::SwinV2(config) => config.pooled_len(),
        }
    }

    /// Number of classes; 0 for a network without classifier.
    pub fn logits_len(&self) -> usize {
        match self {
            Self::EfficientNetLite(config) => config.classes,
            Self::SqueezeNet(config) => config.classes,
            Self::ResNet(config) => config.classes,
            Self::Vgg(config) => config.classes,
            Self::WideResNet(config) => config.classes,
            Self::AlexNet(config) => config.classes,
            Self::ConvNeXt(config) => config.classes,
            Self::Vit(config) => config.classes,
            Self::SwinV2(config) => config.classes,
        }
    }

    /// The network with these weights, each of [`Self::parameters`] taken once.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Weights`] where a value is not finite.
    pub fn load(
        &self,
        spec: EncoderSpec,
        weights: &mut Weights<'_>,
        at: &Placement,
    ) -> Result<Box<dyn Encoder>> {
        Ok(match self {
            Self::EfficientNetLite(config) => {
                Box::new(EfficientNetLite::load(config, spec, weights, at)?)
            }
            Self::SqueezeNet(config) => Box::new(SqueezeNet::load(config, spec, weights, at)?),
            Self::ResNet(config) => Box::new(ResNet::load(config, spec, weights, at)?),
            Self::Vgg(config) => Box::new(config.plan().load(spec, weights, at)?),
            Self::WideResNet(config) => Box::new(WideResNet::load(config, spec, weights, at)?),
            Self::AlexNet(config) => Box::new(config.plan().load(spec, weights, at)?),
            Self::ConvNeXt(config) => Box::new(ConvNeXt::load(config, spec, weights, at)?),
            Self::Vit(config) => Box::new(Vit::load(config, spec, weights, at)?),
            Self::SwinV2(config) => Box::new(SwinV2::load(config, spec, weights, at)?),
        })
    }
}
