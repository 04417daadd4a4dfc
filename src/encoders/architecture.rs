//! Every architecture with its sizes: what a network is before it has weights.

use serde::{Deserialize, Serialize};

use super::convnext::{ConvNeXt, ConvNeXtConfig};
use super::efficientnet_lite::{EfficientNetLite, EfficientNetLiteConfig};
use super::layers::Placement;
use super::squeezenet::{SqueezeNet, SqueezeNetConfig};
use super::swinv2::{SwinV2, SwinV2Config};
use super::vit::{Vit, VitConfig};
use super::weights::{Parameter, Weights};
use super::{Encoder, EncoderSpec, StageSpec};
use crate::Result;

/// A network of one of the families that the program computes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "snake_case")]
pub enum Architecture {
    /// EfficientNet-Lite.
    EfficientNetLite(EfficientNetLiteConfig),
    /// SqueezeNet.
    SqueezeNet(SqueezeNetConfig),
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
    /// Every tensor of the network, with the initialisation of the original library.
    pub fn parameters(&self) -> Vec<Parameter> {
        match self {
            Self::EfficientNetLite(config) => config.parameters(),
            Self::SqueezeNet(config) => config.parameters(),
            Self::ConvNeXt(config) => config.parameters(),
            Self::Vit(config) => config.parameters(),
            Self::SwinV2(config) => config.parameters(),
        }
    }

    /// Number of trained values: the running statistics of BatchNorm are not counted.
    pub fn parameter_count(&self) -> usize {
        self.parameters()
            .iter()
            .filter(|parameter| parameter.trained)
            .map(Parameter::len)
            .sum()
    }

    /// The stages for a square input of `side_px`, in the order of execution.
    pub fn stage_specs(&self, side_px: usize) -> Vec<StageSpec> {
        match self {
            Self::EfficientNetLite(config) => config.stage_specs(side_px),
            Self::SqueezeNet(config) => config.stage_specs(side_px),
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
            Self::ConvNeXt(config) => Box::new(ConvNeXt::load(config, spec, weights, at)?),
            Self::Vit(config) => Box::new(Vit::load(config, spec, weights, at)?),
            Self::SwinV2(config) => Box::new(SwinV2::load(config, spec, weights, at)?),
        })
    }
}
