//! Every architecture with its sizes: what a network is before it has weights.

use serde::{Deserialize, Serialize};

use super::alexnet::AlexNetConfig;
use super::efficientnet_lite::{Conventions, EfficientNetLite, EfficientNetLiteConfig};
use super::layers::Placement;
use super::resnet::{ResNet, ResNetConfig};
use super::squeezenet::{SqueezeNet, SqueezeNetConfig};
use super::vgg::VggConfig;
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
}

impl Architecture {
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
        }
    }

    /// Whether the sizes, which may come from a file, make a network for square inputs of `side_px`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Request`] where a tensor would be empty, a window cannot move, or the input is too
    /// small.
    pub fn check(&self, side_px: usize) -> Result<()> {
        let refuse = |why: String, remedy: &str| {
            let what = format!("cannot build the network for inputs of {side_px} pixels");
            Err(Error::new(ErrorKind::Request, what, why, remedy))
        };
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
            Self::SqueezeNet(config) => config.smallest_side(),
            Self::Vgg(config) => config.plan().smallest_side(),
            Self::AlexNet(config) => config.plan().smallest_side(),
        }
    }

    /// The stages for a square input of `side_px`, at least [`Self::smallest_side`], in the order of
    /// execution.
    pub fn stage_specs(&self, side_px: usize) -> Vec<StageSpec> {
        match self {
            Self::EfficientNetLite(config) => config.stage_specs(side_px),
            Self::SqueezeNet(config) => config.stage_specs(side_px),
            Self::ResNet(config) => config.stage_specs(side_px),
            Self::Vgg(config) => config.plan().stage_specs(side_px),
            Self::WideResNet(config) => config.stage_specs(side_px),
            Self::AlexNet(config) => config.plan().stage_specs(side_px),
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
        }
    }

    /// Number of classes.
    pub fn logits_len(&self) -> usize {
        match self {
            Self::EfficientNetLite(config) => config.classes,
            Self::SqueezeNet(config) => config.classes,
            Self::ResNet(config) => config.classes,
            Self::Vgg(config) => config.classes,
            Self::WideResNet(config) => config.classes,
            Self::AlexNet(config) => config.classes,
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
        })
    }
}
