//! A small convolutional network from a stage's feature map to the picture, trained once for an encoder and stage.
//!
//! Features are standardised; a 1×1 convolution and residual blocks work at the stage's own size; each doubling is
//! a 1×1 convolution, pixel shuffle and a residual block; the last doubling is a 3×3 convolution to twelve channels and pixel
//! shuffle to RGB (Shi et al. 2016). Residual blocks are x + conv(relu(conv(x))). Everything runs through the
//! layers of the encoders, so that a picture costs about as much as a forward pass of a small one.
//!
//! The decoders that come with the program are made by scripts/train-decoder; [`super::DecoderTrainer`] makes others.

use std::path::Path;

use burn::tensor::{Tensor, TensorData, f16};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};

use super::plan::DecoderPlan;
use crate::device::{ComputeDevice, read};
use crate::encoders::host_conv::Activation;
use crate::encoders::layers::{Conv2d, Placement};
use crate::encoders::value::Value;
use crate::encoders::weights::Weights;
use crate::features::FeatureMap;
use crate::{Error, ErrorKind, Result};

/// Number of the layout, raised when a field changes its meaning.
pub(super) const FORMAT: u32 = 1;

/// Key of the JSON in the header.
const HEADER: &str = "etascope_decoder";

/// Largest file that is read, in bytes; the shipped ones have about one megabyte.
const BYTES_MAX: u64 = 256 << 20;

/// Decoders that come with the program: encoder, stage, file.
const BUNDLED: [(&str, &str, &[u8]); 3] = [
    (
        "efficientnet_lite0",
        "blocks.1",
        include_bytes!("../../../assets/decoders/efficientnet_lite0.blocks.1.safetensors"),
    ),
    (
        "efficientnet_lite0",
        "blocks.2",
        include_bytes!("../../../assets/decoders/efficientnet_lite0.blocks.2.safetensors"),
    ),
    (
        "efficientnet_lite0",
        "blocks.4",
        include_bytes!("../../../assets/decoders/efficientnet_lite0.blocks.4.safetensors"),
    ),
];

/// What a decoder is and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecoderHeader {
    /// Number of the layout.
    pub format: u32,
    /// Registry name of the encoder.
    pub encoder: String,
    /// SHA-256 of its weights, or the seed of random ones.
    pub weights_id: String,
    /// Name of the stage.
    pub stage: String,
    /// Sizes.
    pub plan: DecoderPlan,
    /// SHA-256 over the hashes of the training photographs in their order.
    pub data_sha256: String,
    /// Photographs that it was trained on.
    pub photographs: usize,
    /// Steps of the optimiser.
    pub steps: usize,
    /// Crops in a step.
    pub batch: usize,
    /// Seed of crops, order and first values.
    pub seed: u64,
    /// Photographs held out.
    pub held_out_photographs: usize,
    /// Mean PSNR over them in dB, at the decoder's own side.
    pub held_out_psnr_db: Option<f64>,
    /// Mean LPIPS over them, where its network was at hand.
    pub held_out_lpips: Option<f64>,
    /// The program that trained it.
    pub made_by: String,
}

/// A loaded decoder.
#[derive(Debug)]
pub struct Decoder {
    header: DecoderHeader,
    device: ComputeDevice,
    at: Placement,
    layers: Vec<Conv2d>,
    /// Standardisation: scale and shift, each (1, channel, 1, 1).
    standard: [Tensor<4>; 2],
}

/// A picture of decoded features.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Values clipped to [0, 1], RGB: channel, row, column.
    pub pixels: Vec<f32>,
}

impl Decoder {
    /// The decoder that comes with the program for an encoder, its weights and a stage; `None` where there is none.
    ///
    /// # Errors
    /// [`ErrorKind::Weights`] where the bundled file is damaged, which is a fault of the build.
    pub fn bundled(
        encoder: &str,
        weights_id: &str,
        stage: &str,
        device: &ComputeDevice,
    ) -> Result<Option<Self>> {
        let found = BUNDLED
            .iter()
            .find(|(its_encoder, its_stage, _)| (*its_encoder, *its_stage) == (encoder, stage));
        let Some((_, _, file)) = found else {
            return Ok(None);
        };
        let decoder = Self::read(&format!("{encoder}.{stage}"), file, device)?;
        Ok((decoder.header.weights_id == weights_id).then_some(decoder))
    }

    /// Encoders and stages of the decoders that come with the program.
    pub fn bundled_stages() -> impl Iterator<Item = (&'static str, &'static str)> {
        BUNDLED.iter().map(|(encoder, stage, _)| (*encoder, *stage))
    }

    /// Reads a decoder from a file.
    ///
    /// # Errors
    /// [`ErrorKind::Weights`] where the file cannot be read, is damaged, is no decoder or one of a later version.
    pub fn open(path: &Path, device: &ComputeDevice) -> Result<Self> {
        let source = path.display().to_string();
        let size = std::fs::metadata(path)
            .map_err(|error| refused(&source, error.to_string()))?
            .len();
        if size > BYTES_MAX {
            return Err(refused(
                &source,
                format!("it has {size} bytes, more than any decoder"),
            ));
        }
        let bytes = std::fs::read(path).map_err(|error| refused(&source, error.to_string()))?;
        Self::read(&source, &bytes, device)
    }

    /// Reads a decoder from a file in memory; `source` names it.
    ///
    /// # Errors
    /// As [`Decoder::open`].
    pub fn read(source: &str, file: &[u8], device: &ComputeDevice) -> Result<Self> {
        let header = read_header(source, file)?;
        let parameters = header.plan.parameters();
        let mut weights = Weights::from_safetensors(source, file, &parameters)?;
        let at = Placement::f32(&device.device);
        device.guard(&format!("cannot load the decoder “{source}”"), || {
            Self::load(header, &mut weights, device, &at)
        })
    }

    /// The decoder of this header with these weights.
    ///
    /// # Errors
    /// [`ErrorKind::Weights`] where a value is not finite or a scale is not positive.
    pub fn load(
        header: DecoderHeader,
        weights: &mut Weights<'_>,
        device: &ComputeDevice,
        at: &Placement,
    ) -> Result<Self> {
        let plans = header.plan.layers();
        let layers = plans.iter().map(|plan| {
            let layer = Conv2d::load(weights, &plan.key, plan.config, at)?;
            let is_first = plan.key.ends_with(".first");
            Ok(layer.then(if is_first {
                Activation::Relu
            } else {
                Activation::None
            }))
        });
        let layers = layers.collect::<Result<_>>()?;
        let (mean, scale) = (weights.take("mean")?, weights.take("scale")?);
        if !scale.iter().all(|&scale| scale > 0.0) {
            return Err(refused(
                &header.stage,
                "its standardisation makes no sense".to_owned(),
            ));
        }
        let shift = mean.iter().zip(&scale).map(|(mean, scale)| -mean / scale);
        let shift: Vec<f64> = shift.collect();
        let factor = scale.iter().map(|scale| 1.0 / scale).collect();
        let shape = [1, header.plan.channels, 1, 1];
        Ok(Self {
            layers,
            standard: [at.tensor(factor, shape), at.tensor(shift, shape)],
            device: device.clone(),
            at: at.clone(),
            header,
        })
    }

    /// What it is and where it comes from.
    pub fn header(&self) -> &DecoderHeader {
        &self.header
    }

    /// The picture of feature maps (batch, channel, row, column), not clipped.
    pub fn forward(&self, features: Value) -> Value {
        let plan = &self.header.plan;
        let mut layers = self.layers.iter();
        let mut next = || {
            layers
                .next()
                .expect("a decoder has as many layers as its plan")
        };
        let [scale, shift] = self.standard.clone();
        let mut x = features.scale_shift(scale, shift).conv2d(next());
        let block = |x: Value, first: &Conv2d, second: &Conv2d| {
            let y = x.clone().conv2d(first).conv2d(second);
            y + x
        };
        for _ in 0..plan.blocks {
            x = block(x, next(), next());
        }
        for _ in &plan.doublings {
            x = x.conv2d(next()).pixel_shuffle(2);
            x = block(x, next(), next());
        }
        x.conv2d(next()).pixel_shuffle(2)
    }

    /// The picture of a feature map, clipped to [0, 1].
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where it has another number of channels; [`ErrorKind::Device`] where the device fails.
    pub fn decode(&self, features: &FeatureMap) -> Result<Decoded> {
        let [channels, rows, columns] = features.shape();
        if channels != self.header.plan.channels {
            return Err(Error::new(
                ErrorKind::Request,
                "cannot decode the features",
                format!(
                    "they have {channels} channels, and the decoder of {} {} takes {}",
                    self.header.encoder, self.header.stage, self.header.plan.channels
                ),
                "Use the encoder and stage that the decoder was trained for",
            ));
        }
        let values = self.device.guard("cannot decode the features", || {
            let planes = features.planes();
            let data = TensorData::new(planes, [1, channels, rows, columns]);
            let input = Tensor::from_data(data, self.at.options());
            read(self.forward(Value::plain(input)).into_primal())
        })?;
        let scale = self.header.plan.enlargement();
        Ok(Decoded {
            rows: rows * scale,
            columns: columns * scale,
            pixels: values
                .into_iter()
                .map(|value| value.clamp(0.0, 1.0) as f32)
                .collect(),
        })
    }
}

/// A decoder as a file: parameters in f16, standardisation in f32; `tensors` are those of [`DecoderPlan::parameters`] in their
/// order.
///
/// # Errors
/// [`ErrorKind::Numeric`] where a value leaves the range of f16.
pub fn file_of(header: &DecoderHeader, tensors: &[Vec<f32>]) -> Result<Vec<u8>> {
    let declared = header.plan.parameters();
    let unwritten = |why: String| {
        Error::new(
            ErrorKind::Internal,
            "cannot write a decoder",
            why,
            "This is a fault of the program; please report it",
        )
    };
    let mut stored = Vec::new();
    for (parameter, values) in declared.iter().zip(tensors) {
        let halves = values.iter().map(|&value| f16::from_f32(value));
        let (dtype, bytes): (_, Vec<u8>) = if parameter.trained {
            if !halves.clone().all(f16::is_finite) {
                return Err(Error::new(
                    ErrorKind::Numeric,
                    "cannot write a decoder",
                    format!("{} holds a number beyond f16", parameter.name),
                    "The training diverged; use a smaller learning rate",
                ));
            }
            (Dtype::F16, halves.flat_map(f16::to_le_bytes).collect())
        } else {
            let bytes = values.iter().flat_map(|value| value.to_le_bytes());
            (Dtype::F32, bytes.collect())
        };
        stored.push((parameter, dtype, bytes));
    }
    let views = stored
        .iter()
        .map(|(parameter, dtype, bytes)| {
            let view = TensorView::new(*dtype, parameter.shape.clone(), bytes)
                .map_err(|error| unwritten(error.to_string()))?;
            Ok((parameter.name.as_str(), view))
        })
        .collect::<Result<Vec<_>>>()?;
    let json = serde_json::to_string(header).map_err(|error| unwritten(error.to_string()))?;
    let metadata = [(HEADER.to_owned(), json)].into();
    safetensors::serialize(views, Some(metadata)).map_err(|error| unwritten(error.to_string()))
}

fn read_header(source: &str, file: &[u8]) -> Result<DecoderHeader> {
    let (_, metadata) = SafeTensors::read_metadata(file).map_err(|error| {
        refused(
            source,
            format!("it is not a whole safetensors file ({error})"),
        )
    })?;
    let entries = metadata.metadata().as_ref();
    let text = entries
        .and_then(|entries| entries.get(HEADER))
        .ok_or_else(|| {
            refused(
                source,
                "it is a safetensors file, but not a decoder".to_owned(),
            )
        })?;
    let damaged =
        |error: serde_json::Error| refused(source, format!("its header is damaged ({error})"));
    // The number is read first: a later layout may have fields that this version does not know.
    let number: serde_json::Value = serde_json::from_str(text).map_err(damaged)?;
    let format = number.get("format").and_then(serde_json::Value::as_u64);
    if format != Some(u64::from(FORMAT)) {
        return Err(refused(
            source,
            format!("it has another layout than {FORMAT}, the one that this version reads"),
        ));
    }
    let header: DecoderHeader = serde_json::from_str(text).map_err(damaged)?;
    match header.plan.fault() {
        None => Ok(header),
        Some(why) => Err(refused(source, why)),
    }
}

fn refused(source: &str, why: String) -> Error {
    Error::new(
        ErrorKind::Weights,
        format!("cannot use the decoder “{source}”"),
        why,
        "Use another file, or train the decoder again",
    )
}
