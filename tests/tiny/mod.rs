//! The two tiny networks whose reference values PyTorch computed (tests/golden/gen_golden.py).
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use burn::tensor::{Tensor, TensorData};
use etascope::encoders::architecture::Architecture;
use etascope::encoders::efficientnet_lite::{
    Conventions, EfficientNetLite, EfficientNetLiteConfig, StageConfig,
};
use etascope::encoders::layers::Placement;
use etascope::encoders::squeezenet::{FireConfig, SqueezeNet, SqueezeNetConfig};
use etascope::encoders::weights::{Parameter, Weights};
use etascope::encoders::{Encoder, EncoderSpec};
use etascope::images::{ChannelOrder, Preprocessing, ResizeFilter};
use safetensors::{Dtype, SafeTensors};

/// A tiny network.
#[derive(Clone, Copy, Debug)]
pub enum Tiny {
    EfficientNetLite,
    SqueezeNet,
}

pub const BOTH: [Tiny; 2] = [Tiny::EfficientNetLite, Tiny::SqueezeNet];

impl Tiny {
    pub fn name(self) -> &'static str {
        match self {
            Self::EfficientNetLite => "tiny_efficientnet_lite",
            Self::SqueezeNet => "tiny_squeezenet",
        }
    }

    pub fn side_px(self) -> usize {
        match self {
            Self::EfficientNetLite => 64,
            Self::SqueezeNet => 67,
        }
    }

    pub fn weights_file(self) -> Vec<u8> {
        read_golden(&format!("{}.weights.safetensors", self.name()))
    }

    pub fn fixture(self) -> Fixture {
        Fixture::read(&format!("{}.fixture.safetensors", self.name()))
    }

    /// Response profile in raw pixels.
    pub fn profile_fixture(self) -> Fixture {
        Fixture::read(&format!("{}.profile.safetensors", self.name()))
    }

    pub fn parameters(self) -> Vec<Parameter> {
        match self {
            Self::EfficientNetLite => efficientnet_lite().parameters(),
            Self::SqueezeNet => squeezenet().parameters(),
        }
    }

    /// The network with the fixture's weights.
    pub fn load(self, at: &Placement) -> Box<dyn Encoder> {
        let file = self.weights_file();
        let weights = Weights::from_safetensors(self.name(), &file, &self.parameters());
        self.build(&mut weights.expect("the fixture's weights fit"), at)
    }

    /// The network with untrained weights.
    pub fn random(self, seed: u64, at: &Placement) -> Box<dyn Encoder> {
        self.build(&mut Weights::random(&self.parameters(), seed), at)
    }

    fn build(self, weights: &mut Weights<'_>, at: &Placement) -> Box<dyn Encoder> {
        let spec = self.spec();
        match self {
            Self::EfficientNetLite => {
                let config = efficientnet_lite();
                Box::new(EfficientNetLite::load(&config, spec, weights, at).expect("it loads"))
            }
            Self::SqueezeNet => {
                let config = squeezenet();
                Box::new(SqueezeNet::load(&config, spec, weights, at).expect("it loads"))
            }
        }
    }

    fn spec(self) -> EncoderSpec {
        let side_px = self.side_px();
        let (stages, pooled_len) = match self {
            Self::EfficientNetLite => (efficientnet_lite().stage_specs(side_px), 64),
            Self::SqueezeNet => (squeezenet().stage_specs(side_px), 32),
        };
        let channels = match self {
            Self::EfficientNetLite => ChannelOrder::Rgb,
            Self::SqueezeNet => ChannelOrder::Bgr,
        };
        EncoderSpec {
            name: self.name().into(),
            title: self.name().into(),
            source: "random numbers".into(),
            licence: "MIT".into(),
            side_px,
            pooled_len,
            logits_len: 10,
            parameters: 0,
            stages,
            preprocessing: recipe(side_px, channels),
        }
    }
}

/// What an encoder of this architecture is, with an input recipe that is nobody's.
pub fn spec(name: &str, architecture: &Architecture, side_px: usize) -> EncoderSpec {
    EncoderSpec {
        name: name.into(),
        title: name.into(),
        source: "random numbers".into(),
        licence: "MIT".into(),
        side_px,
        pooled_len: architecture.pooled_len(),
        logits_len: architecture.logits_len(),
        parameters: architecture.parameter_count(),
        stages: architecture.stage_specs(side_px),
        preprocessing: recipe(side_px, ChannelOrder::Rgb),
    }
}

fn recipe(side_px: usize, channels: ChannelOrder) -> Preprocessing {
    Preprocessing {
        resize_px: side_px,
        squash: true,
        filter: ResizeFilter::Bicubic,
        fractional: false,
        crop_px: side_px,
        mean: [0.4, 0.5, 0.6],
        std: [0.2, 0.25, 0.3],
        channels,
    }
}

fn efficientnet_lite() -> EfficientNetLiteConfig {
    let stage = |blocks, kernel, stride, expansion, channels| StageConfig {
        blocks,
        kernel,
        stride,
        expansion,
        channels,
    };
    EfficientNetLiteConfig {
        stem: 8,
        stages: vec![
            stage(1, 3, 1, 1, 8),
            stage(2, 3, 2, 6, 8),
            stage(2, 5, 2, 6, 16),
            stage(1, 3, 2, 6, 16),
            stage(2, 5, 1, 6, 24),
            stage(1, 5, 2, 6, 24),
            stage(1, 3, 1, 6, 32),
        ],
        head: 64,
        classes: 10,
        conventions: Conventions::TensorFlow,
    }
}

fn squeezenet() -> SqueezeNetConfig {
    let fires = [
        (2, 4),
        (2, 4),
        (4, 8),
        (4, 8),
        (6, 12),
        (6, 12),
        (8, 16),
        (8, 16),
    ];
    SqueezeNetConfig {
        stem: 8,
        stem_kernel: 3,
        pooled_fires: [0, 2, 4],
        fires: fires.map(|(squeeze, expand)| FireConfig { squeeze, expand }),
        classes: 10,
    }
}

pub fn golden_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

pub fn read_golden(name: &str) -> Vec<u8> {
    std::fs::read(golden_path(name)).expect("the fixture is committed")
}

/// Reference tensors by name, in f64.
pub struct Fixture(BTreeMap<String, (Vec<usize>, Vec<f64>)>);

impl Fixture {
    pub fn read(name: &str) -> Self {
        let bytes = read_golden(name);
        let file = SafeTensors::deserialize(&bytes).expect("the fixture is sound");
        let tensors = file.tensors().into_iter().map(|(name, view)| {
            let values = match view.dtype() {
                Dtype::F64 => view.data().chunks_exact(8).map(f64_from).collect(),
                Dtype::F32 => view.data().chunks_exact(4).map(f32_from).collect(),
                Dtype::U8 => view.data().iter().map(|&byte| f64::from(byte)).collect(),
                Dtype::I8 => view
                    .data()
                    .iter()
                    .map(|&byte| f64::from(byte as i8))
                    .collect(),
                other => panic!("{name} is {other:?}"),
            };
            (name, (view.shape().to_vec(), values))
        });
        Self(tensors.collect())
    }

    pub fn get(&self, name: &str) -> &[f64] {
        &self
            .0
            .get(name)
            .unwrap_or_else(|| panic!("the fixture has {name}"))
            .1
    }

    /// Names of all tensors.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub fn shape(&self, name: &str) -> &[usize] {
        &self.0[name].0
    }

    /// Names of the stages in the order of execution.
    pub fn stages(&self) -> Vec<&str> {
        let mut stages: Vec<&str> = self
            .0
            .keys()
            .map(String::as_str)
            .filter(|key| key.starts_with("stage."))
            .collect();
        stages.sort_by_key(|key| key.split('.').nth(1).and_then(|n| n.parse::<usize>().ok()));
        stages
    }

    /// A four-dimensional tensor; vectors (batch, length) get one row and one column.
    pub fn tensor(&self, name: &str, at: &Placement) -> Tensor<4> {
        let mut shape = self.shape(name).to_vec();
        shape.resize(4, 1);
        let data = TensorData::new(self.get(name).to_vec(), shape);
        Tensor::from_data(data, at.options())
    }
}

fn f64_from(bytes: &[u8]) -> f64 {
    f64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

fn f32_from(bytes: &[u8]) -> f64 {
    f64::from(f32::from_le_bytes(bytes.try_into().expect("four bytes")))
}

pub fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// ‖a − b‖ / ‖b‖.
pub fn relative(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let difference: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    (difference / b.iter().map(|b| b * b).sum::<f64>()).sqrt()
}

pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}
