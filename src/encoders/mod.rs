//! Encoders: architectures, their weights, and the registry of those that the program knows.

pub mod alexnet;
pub mod architecture;
pub mod attention;
mod buffers;
pub mod chain;
pub mod convnext;
pub mod efficientnet_lite;
pub mod host_attention;
pub mod host_conv;
pub mod host_dense;
pub mod host_norm;
pub mod host_planes;
mod host_pointwise;
pub mod host_pool;
pub mod host_token;
pub mod layers;
pub mod linear;
pub mod norm;
pub mod plans;
pub mod position_embedding;
pub mod positions;
pub mod registry;
pub mod renaming;
pub mod resnet;
pub mod squeezenet;
pub mod swinv2;
pub mod tokens;
pub mod value;
pub mod vgg;
pub mod vit;
pub mod weights;
pub mod wide_resnet;
pub mod windows;

use std::ops::ControlFlow;
use std::sync::Arc;

use burn::tensor::{Tensor, TensorCreationOptions, TensorData};
use serde::{Deserialize, Serialize};

use crate::images::{ChannelOrder, Preprocessing};
use crate::{Error, ErrorKind, Result};
use value::Value;

/// Which output of an encoder is taken as the feature Φ(x).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Readout {
    /// The pooled penultimate vector: the paper's feature.
    #[default]
    Pooled,
    /// The class scores before softmax.
    Logits,
    /// The flattened feature map of the stage with this index, see [`EncoderSpec::stages`].
    Stage(usize),
}

/// Which parameters an encoder carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WeightsKind {
    /// The published, trained parameters.
    #[default]
    Trained,
    /// The architecture's published random initialisation: the *twin*.
    Random,
}

impl WeightsKind {
    /// `trained` or `random`, as written in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trained => "trained",
            Self::Random => "random",
        }
    }
}

/// One stage of an encoder: a place where a feature map is exposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageSpec {
    /// Module path in the original code, for example `blocks.2`.
    pub name: String,
    /// Channels C, rows h and columns w of the feature map at the native input side.
    pub shape: [usize; 3],
}

/// What is known of an encoder before its weights are read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EncoderSpec {
    /// Registry name, for example `efficientnet_lite0`.
    pub name: Arc<str>,
    /// Name for people, for example `EfficientNet-Lite0`.
    pub title: Arc<str>,
    /// Paper and original code.
    pub source: Arc<str>,
    /// Licence of the weights.
    pub licence: Arc<str>,
    /// Input side in pixels.
    pub side_px: usize,
    /// Length of the pooled feature.
    pub pooled_len: usize,
    /// Number of classes; 0 for an encoder without classifier.
    pub logits_len: usize,
    /// Parameters, BatchNorm statistics not counted.
    pub parameters: usize,
    /// Stages in the order of execution.
    pub stages: Vec<StageSpec>,
    /// The checkpoint's own input recipe.
    pub preprocessing: Preprocessing,
}

impl EncoderSpec {
    /// Length of a readout's feature: of the flattened map for a stage.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Request`] where the encoder has no such stage or no classifier.
    pub fn readout_len(&self, readout: &Readout) -> Result<usize> {
        Ok(self.readout_shape(readout)?.iter().product())
    }

    /// A readout as it is written: `pooled`, `logits` or `stage:NAME`; `None` where the encoder has no such stage.
    pub fn readout_name(&self, readout: &Readout) -> Option<String> {
        match readout {
            Readout::Pooled => Some("pooled".to_owned()),
            Readout::Logits => Some("logits".to_owned()),
            Readout::Stage(index) => {
                let stage = self.stages.get(*index)?;
                Some(format!("stage:{}", stage.name))
            }
        }
    }

    /// Channels, rows and columns of a readout's feature; vectors have one row and one column.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Request`] where the encoder has no such stage or no classifier.
    pub fn readout_shape(&self, readout: &Readout) -> Result<[usize; 3]> {
        match readout {
            Readout::Pooled => Ok([self.pooled_len, 1, 1]),
            Readout::Logits if self.logits_len == 0 => Err(Error::new(
                ErrorKind::Request,
                format!("cannot read the logits of {}", self.title),
                "it was trained without classes and has no classifier",
                "Choose the pooled feature or a stage",
            )),
            Readout::Logits => Ok([self.logits_len, 1, 1]),
            Readout::Stage(index) => {
                self.stages
                    .get(*index)
                    .map(|stage| stage.shape)
                    .ok_or_else(|| {
                        Error::new(
                            ErrorKind::Request,
                            format!("cannot read stage {index} of {}", self.title),
                            format!("it has {} stages, counted from 0", self.stages.len()),
                            "Choose one of them, the pooled feature or the logits",
                        )
                    })
            }
        }
    }
}

/// Called with each exposed value in the order of execution; breaks to leave the rest out.
pub type Visitor<'a> = dyn FnMut(Readout, &Value) -> ControlFlow<()> + 'a;

/// An architecture with its weights.
pub trait Encoder: Send + Sync {
    /// What it is.
    fn spec(&self) -> &EncoderSpec;

    /// Runs the network on inputs in its own space (batch, channel, row, column), normalised and in
    /// the network's channel order, and shows the stages, the pooled feature and the logits.
    fn visit(&self, x: Value, visitor: &mut Visitor<'_>) -> ControlFlow<()>;

    /// The readout for inputs in the network's own space; nothing beyond it is computed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Request`] where the encoder has no such stage or no classifier.
    fn forward_normalised(&self, x: Value, readout: &Readout) -> Result<Value> {
        self.spec().readout_shape(readout)?;
        let mut found = None;
        let _ = self.visit(x, &mut |place, value| {
            if place != *readout {
                return ControlFlow::Continue(());
            }
            found = Some(value.clone());
            ControlFlow::Break(())
        });
        Ok(found
            .expect("an encoder shows every stage of its spec, the pooled feature and the logits"))
    }

    /// The readout for RGB pixels in [0, 1], (batch, 3, row, column). Values beyond [0, 1] are not
    /// clipped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Request`] where the encoder has no such stage or no classifier.
    fn forward(&self, pixels: Value, readout: &Readout) -> Result<Value> {
        self.forward_normalised(self.normalised(pixels), readout)
    }

    /// RGB pixels in [0, 1] brought into the network's own space: channel order, mean, standard
    /// deviation.
    fn normalised(&self, pixels: Value) -> Value {
        normalised(pixels, &self.spec().preprocessing)
    }
}

/// RGB pixels in [0, 1] brought into the space of a network that reads pictures by `recipe`.
pub fn normalised(pixels: Value, recipe: &Preprocessing) -> Value {
    let pixels = match recipe.channels {
        ChannelOrder::Rgb => pixels,
        ChannelOrder::Bgr => pixels.reverse_channels(),
    };
    let (device, dtype) = (pixels.primal().device(), pixels.primal().dtype());
    let per_channel = |values: [f64; 3]| {
        let options = TensorCreationOptions::from((&device, dtype));
        Tensor::from_data(TensorData::new(values.to_vec(), [1, 3, 1, 1]), options)
    };
    let [mean, std] = [recipe.mean, recipe.std].map(|values| values.map(f64::from));
    let scale = std.map(|std| 1.0 / std);
    let shift = [0, 1, 2].map(|channel| -mean[channel] * scale[channel]);
    pixels.scale_shift(per_channel(scale), per_channel(shift))
}
