//! Maps that are trained by gradient descent (Krey, Neukirch, Strodthoff 2026): linear, mlp, cnn and transformer.
//!
//! A [`Network`] is a kind and its sizes; each kind has a file with its parameters and its pass. A [`Trainer`] fits it to pairs
//! of feature maps, batch by batch; what comes out is an [`EditMap`](super::EditMap) like any other, with a [`TrainedMap`]
//! inside. Networks work on normalised, reordered maps as [batch, position, channel].
//!
//! *Stated* in the paper: the layers and their widths, dropout, loss, AdamW with rate and decay, batch, epochs. *Ours*: what PyTorch
//! does where nothing is said (first values, feed-forward width 4·512 and normalisation after each half of a transformer
//! layer), patience of the early stop, the transformer with a position code.

mod checkpoint;
mod cnn;
mod data;
mod layers;
mod linear;
pub mod loss;
mod mlp;
mod trainer;
mod transformer;

use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};

pub use self::data::{Pair, TrainingData, score};
pub use self::layers::Pass;
pub use self::loss::Loss;
pub use self::trainer::{EpochReport, Step, Trainer, TrainingConfig};
use crate::Result;
use crate::device::{ComputeDevice, read};
use crate::encoders::layers::Placement;
use crate::encoders::weights::Parameter;
use crate::features::FeatureMap;
use crate::geometry::learn::{Live, Parameters};
use crate::{Error, ErrorKind};

/// Width of hidden layers in the paper.
pub const HIDDEN: usize = 512;

/// A kind of trained map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkKind {
    /// Wx + b, one for all positions.
    Linear,
    /// C → 512 → ReLU → dropout → C at each position.
    Mlp,
    /// 3×3 convolution to 512, BatchNorm, ReLU, dropout of channels, 3×3 convolution back.
    Cnn,
    /// A transformer over the positions, which it cannot tell apart: the authors' version.
    Transformer,
    /// The same with a learnt position code (ours).
    TransformerWithPositions,
}

impl NetworkKind {
    /// Name for labels.
    pub fn title(self) -> &'static str {
        match self {
            Self::Linear => "linear, trained",
            Self::Mlp => "mlp",
            Self::Cnn => "cnn",
            Self::Transformer => "transformer, no position code",
            Self::TransformerWithPositions => "transformer with position code",
        }
    }
}

/// A kind with its sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// What it is.
    pub kind: NetworkKind,
    /// Channels, rows and columns of the maps that it takes, after the reorder.
    pub shape: [usize; 3],
    /// Width of hidden layers, [`HIDDEN`] in the paper.
    pub hidden: usize,
}

impl Network {
    /// The paper's sizes for maps of this shape (channels, rows, columns).
    pub fn new(kind: NetworkKind, shape: [usize; 3]) -> Self {
        Self {
            kind,
            shape,
            hidden: HIDDEN,
        }
    }

    /// Its parameters under PyTorch's names, with the values before training.
    pub fn parameters(&self) -> Vec<Parameter> {
        let channels = self.shape[0];
        match self.kind {
            NetworkKind::Linear => linear::parameters(channels),
            NetworkKind::Mlp => mlp::parameters(channels, self.hidden),
            NetworkKind::Cnn => cnn::parameters(channels, self.hidden),
            NetworkKind::Transformer => transformer::parameters(channels, self.hidden, None),
            NetworkKind::TransformerWithPositions => {
                transformer::parameters(channels, self.hidden, Some(self.positions()))
            }
        }
    }

    /// The pass: normalised vectors in and out, [batch, position, channel].
    pub fn forward(&self, x: Tensor<3>, live: &Live<'_>, pass: &mut Pass) -> Tensor<3> {
        match self.kind {
            NetworkKind::Linear => linear::forward(x, live),
            NetworkKind::Mlp => mlp::forward(x, live, pass),
            NetworkKind::Cnn => cnn::forward(x, [self.shape[1], self.shape[2]], live, pass),
            NetworkKind::Transformer => transformer::forward(x, live, pass, false),
            NetworkKind::TransformerWithPositions => transformer::forward(x, live, pass, true),
        }
    }

    fn positions(&self) -> usize {
        self.shape[1] * self.shape[2]
    }

    /// What is wrong with the sizes, if anything.
    pub(super) fn fault(&self) -> Option<String> {
        const LARGEST: usize = 1 << 14;
        let [channels, rows, columns] = self.shape;
        let sizes = [channels, rows, columns, self.hidden];
        if sizes.iter().any(|&n| n == 0 || n > LARGEST) {
            return Some("it names a size of 0 or beyond 16,384".to_owned());
        }
        let is_transformer = matches!(
            self.kind,
            NetworkKind::Transformer | NetworkKind::TransformerWithPositions
        );
        (is_transformer && !self.hidden.is_multiple_of(transformer::HEADS)).then(|| {
            format!(
                "the width {} is no multiple of {} heads",
                self.hidden,
                transformer::HEADS
            )
        })
    }
}

/// How a map was trained, kept in its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainingRecord {
    /// Kind and sizes.
    pub network: Network,
    /// Rates, batch, loss, seed.
    pub config: TrainingConfig,
    /// One entry an epoch.
    pub history: Vec<EpochReport>,
    /// The epoch whose weights these are, counted from 1.
    pub best_epoch: usize,
}

/// A trained network: the part of an [`EditMap`](super::EditMap) that works on normalised, reordered maps. It runs on the CPU
/// device.
#[derive(Clone, Debug)]
pub struct TrainedMap {
    record: TrainingRecord,
    parameters: Parameters,
}

impl TrainedMap {
    /// From its parameters in the order of [`Network::parameters`].
    ///
    /// # Errors
    /// [`ErrorKind::Weights`] where they are not those of the network or the sizes make no sense.
    pub fn new(record: TrainingRecord, values: Vec<Vec<f32>>) -> Result<Self> {
        let refuse = |why: String| {
            Err(Error::new(
                ErrorKind::Weights,
                "cannot use a trained map",
                why,
                "Train it again, or use another copy of its file",
            ))
        };
        if let Some(why) = record.network.fault() {
            return refuse(why);
        }
        let declared = record.network.parameters();
        let is_fitting = declared.len() == values.len()
            && declared
                .iter()
                .zip(&values)
                .all(|(parameter, values)| parameter.len() == values.len());
        if !is_fitting {
            return refuse("its arrays are not those of its network".to_owned());
        }
        let at = Placement::f32(&ComputeDevice::cpu().device);
        let parameters = Parameters::from_values(declared, values, &at);
        Ok(Self { record, parameters })
    }

    /// How it was trained.
    pub fn record(&self) -> &TrainingRecord {
        &self.record
    }

    /// Names, shapes and values of the parameters.
    ///
    /// # Errors
    /// [`ErrorKind::Device`] where they cannot be read.
    pub fn arrays(&self) -> Result<Vec<(Parameter, Vec<f32>)>> {
        let declared = self.parameters.declared().iter().cloned();
        Ok(declared.zip(self.parameters.read()?).collect())
    }

    /// ŷ of a normalised, reordered map.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where it has another shape; a linear map and an mlp take any grid, a cnn and a
    /// transformer without position code too.
    pub fn apply(&self, features: &FeatureMap) -> Result<FeatureMap> {
        let network = Network {
            shape: features.shape(),
            ..self.record.network
        };
        super::require_channels(features, self.record.network.shape[0])?;
        let has_positions = network.kind == NetworkKind::TransformerWithPositions;
        if has_positions && network.shape != self.record.network.shape {
            return Err(Error::new(
                ErrorKind::Request,
                "cannot map the features",
                format!(
                    "they have the shape {:?}, and the position code is for {:?}",
                    network.shape, self.record.network.shape
                ),
                "Use pictures of the size that the map was trained at",
            ));
        }
        let device = ComputeDevice::cpu();
        let mapped = device.guard("cannot map the features", || {
            let at = Placement::f32(&device.device);
            let shape = [1, features.positions(), features.channels()];
            let data = TensorData::new(features.vectors().to_vec(), shape);
            let x = Tensor::from_data(data, at.options());
            let y = network.forward(x, &self.parameters.live(), &mut Pass::inference());
            read(y.unsqueeze())
        })?;
        let mapped: Vec<f32> = mapped.into_iter().map(|value| value as f32).collect();
        FeatureMap::from_vectors(features.shape(), mapped)
    }
}
