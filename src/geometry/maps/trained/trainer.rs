//! Training, batch by batch: whoever stops calling [`Trainer::step`] has cancelled it and loses nothing.

use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::data::{Pair, TrainingData, common_shape, normalisation, order};
use super::loss::Loss;
use super::{Network, NetworkKind, Pass, TrainedMap, TrainingRecord};
use crate::device::{ComputeDevice, read};
use crate::encoders::layers::Placement;
use crate::features::FeatureMap;
use crate::geometry::learn::{AdamW, Parameters};
use crate::geometry::maps::{EditMap, Fitted, MapKind, Normalisation, reorder};
use crate::images::GridSymmetry;
use crate::metrics::cosine;
use crate::{Error, ErrorKind, Result};

/// How to train. The defaults are the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainingConfig {
    /// What is made small.
    pub loss: Loss,
    /// Learning rate of AdamW.
    pub rate: f64,
    /// Its weight decay.
    pub decay: f64,
    /// Pairs in a batch.
    pub batch: usize,
    /// Epochs at most.
    pub epochs: usize,
    /// Epochs without a better validation loss after which it stops (ours; the paper gives no number).
    pub patience: usize,
    /// Seed of the first weights, the order of the pairs and dropout.
    pub seed: u64,
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            loss: Loss::Blend,
            rate: 1e-4,
            decay: 1e-4,
            batch: 64,
            epochs: 100,
            patience: 10,
            seed: 0,
        }
    }
}

/// Scores after an epoch. MdnCS is that of features in their own units, as for every other map.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochReport {
    /// Counted from 1.
    pub epoch: usize,
    /// Mean loss of the training batches, with dropout.
    pub train_loss: f64,
    /// Loss on the validation pairs.
    pub validation_loss: f64,
    /// Mean MdnCS of the validation pairs; `None` where it is undefined.
    pub validation_cosine: Option<f64>,
    /// Mean MdnCS of the held-out pairs; `None` without any.
    pub held_out_cosine: Option<f64>,
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// One batch.
    Batch {
        /// Epoch, counted from 1.
        epoch: usize,
        /// Batches of it that are done.
        done: usize,
        /// Batches in an epoch.
        of: usize,
        /// Its loss.
        loss: f64,
    },
    /// The last batch of an epoch, and the scores after it.
    Epoch(EpochReport),
    /// Nothing: the training is over.
    Finished,
}

/// A training on its way.
pub struct Trainer {
    pub(super) network: Network,
    pub(super) config: TrainingConfig,
    pub(super) reorder: Vec<GridSymmetry>,
    pub(super) normalisation: Option<Normalisation>,
    data: TrainingData,
    device: ComputeDevice,
    pub(super) at: Placement,
    pub(super) parameters: Parameters,
    pub(super) optimiser: AdamW,
    pub(super) progress: Progress,
    /// Parameters of the epoch with the least validation loss.
    pub(super) best: Option<Parameters>,
    /// Order of the training pairs in this epoch.
    order: Vec<usize>,
}

/// Where a training stands, all of it numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// Epochs that are complete.
    pub epochs: usize,
    /// Batches of the present epoch that are done.
    pub batches: usize,
    /// Their losses, added.
    pub loss_sum: f64,
    /// Steps of the optimiser.
    pub steps: u64,
    /// One entry a complete epoch.
    pub history: Vec<EpochReport>,
    /// The epoch with the least validation loss, counted from 1; 0 before the first.
    pub best_epoch: usize,
}

impl Trainer {
    /// A training of `kind` with hidden layers of `hidden` channels, [`super::HIDDEN`] in the paper.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where a part is empty that must not be, shapes differ or a number of the configuration makes no
    /// sense; [`ErrorKind::Numeric`] where a feature is not finite.
    pub fn new(
        kind: NetworkKind,
        hidden: usize,
        config: TrainingConfig,
        reorder: Vec<GridSymmetry>,
        is_normalised: bool,
        data: TrainingData,
        device: &ComputeDevice,
    ) -> Result<Self> {
        let is_rate = |rate: f64| rate.is_finite() && rate >= 0.0;
        if config.rate <= 0.0
            || !is_rate(config.rate)
            || !is_rate(config.decay)
            || config.batch == 0
            || config.epochs == 0
        {
            return Err(refused(
                format!("{config:?} makes no sense"),
                "Use a positive rate, batch and number of epochs",
            ));
        }
        for (part, name) in [(&data.train, "train on"), (&data.validation, "validate")] {
            if part.is_empty() {
                return Err(refused(
                    format!("there are no pictures to {name}"),
                    "Use more photographs, or another share for validation",
                ));
            }
        }
        let shape = common_shape(&data, &reorder)?;
        let network = Network {
            kind,
            shape,
            hidden,
        };
        if let Some(why) = network.fault() {
            return Err(refused(why, "Use another width or another kind of map"));
        }
        let at = Placement::f32(&device.device);
        Ok(Self {
            normalisation: is_normalised.then(|| normalisation(&data.train)),
            parameters: Parameters::random(network.parameters(), config.seed, &at)?,
            optimiser: AdamW::new(config.decay),
            progress: Progress::default(),
            best: None,
            order: order(config.seed, 0, data.train.len()),
            network,
            config,
            reorder,
            data,
            device: device.clone(),
            at,
        })
    }

    /// Kind and sizes.
    pub fn network(&self) -> Network {
        self.network
    }

    /// One entry for each complete epoch.
    pub fn history(&self) -> &[EpochReport] {
        &self.progress.history
    }

    /// Whether the epochs or the patience are at their end.
    pub fn is_finished(&self) -> bool {
        let Progress {
            epochs, best_epoch, ..
        } = self.progress;
        epochs >= self.config.epochs
            || (epochs > 0 && epochs - best_epoch >= self.config.patience.max(1))
    }

    /// One batch, and after the last of an epoch its scores.
    ///
    /// # Errors
    /// [`ErrorKind::Numeric`] where the loss is not finite, and then nothing has changed; [`ErrorKind::Device`] where the
    /// device fails.
    pub fn step(&mut self) -> Result<Step> {
        if self.is_finished() {
            return Ok(Step::Finished);
        }
        let device = self.device.clone();
        device.guard("cannot train the map", || self.step_on_device())
    }

    fn step_on_device(&mut self) -> Result<Step> {
        let batches = self.data.train.len().div_ceil(self.config.batch);
        if self.progress.batches >= batches {
            // The scores after the last batch had failed.
            return self.end_epoch(batches).map(Step::Epoch);
        }
        let start = self.progress.batches * self.config.batch;
        let end = (start + self.config.batch).min(self.order.len());
        let pairs: Vec<&Pair> = self.order[start..end]
            .iter()
            .map(|&at| &self.data.train[at])
            .collect();
        let (x, y) = self.tensors(&pairs)?;
        let live = self.parameters.tracked();
        let mut pass = Pass::training(self.config.seed, self.progress.steps);
        let mapped = self.network.forward(x.autodiff(), &live, &mut pass);
        let loss = self.config.loss.of(mapped, y.autodiff())?;
        let value = number(&loss.clone().inner())?;
        let mut gradients = loss.backward();
        let live = live.into_values();
        let rate = self.config.rate;
        self.parameters
            .descend(&live, &mut gradients, &mut self.optimiser, rate);
        for (name, statistic) in pass.into_statistics() {
            self.parameters.replace(&name, statistic);
        }
        self.progress.steps += 1;
        self.progress.batches += 1;
        self.progress.loss_sum += value;
        if self.progress.batches < batches {
            return Ok(Step::Batch {
                epoch: self.progress.epochs + 1,
                done: self.progress.batches,
                of: batches,
                loss: value,
            });
        }
        self.end_epoch(batches).map(Step::Epoch)
    }

    fn end_epoch(&mut self, batches: usize) -> Result<EpochReport> {
        let epoch = self.progress.epochs + 1;
        let (validation_loss, validation_cosine) = self.scores(&self.data.validation)?;
        let held_out_cosine = if self.data.held_out.is_empty() {
            None
        } else {
            self.scores(&self.data.held_out)?.1
        };
        let report = EpochReport {
            epoch,
            train_loss: self.progress.loss_sum / batches as f64,
            validation_loss,
            validation_cosine,
            held_out_cosine,
        };
        let least = self.progress.history.iter().map(|r| r.validation_loss);
        let least = least.fold(f64::INFINITY, f64::min);
        if validation_loss < least {
            self.progress.best_epoch = epoch;
            self.best = Some(self.parameters.clone());
        }
        self.progress.history.push(report);
        self.progress.epochs = epoch;
        self.progress.batches = 0;
        self.progress.loss_sum = 0.0;
        self.order = order(self.config.seed, epoch, self.data.train.len());
        Ok(report)
    }

    /// Loss and mean MdnCS of pairs under the present parameters.
    fn scores(&self, pairs: &[Pair]) -> Result<(f64, Option<f64>)> {
        let (mut loss_sum, mut cosines) = (0.0, Vec::new());
        let live = self.parameters.live();
        for chunk in pairs.chunks(self.config.batch) {
            let chunk: Vec<&Pair> = chunk.iter().collect();
            let (x, y) = self.tensors(&chunk)?;
            let mapped = self.network.forward(x, &live, &mut Pass::inference());
            let loss = self.config.loss.of(mapped.clone(), y)?;
            loss_sum += number(&loss)? * chunk.len() as f64;
            let values = read(mapped.unsqueeze())?;
            let values: Vec<f32> = values.into_iter().map(|value| value as f32).collect();
            let len = values.len() / chunk.len();
            for (values, pair) in values.chunks_exact(len).zip(&chunk) {
                let mapped = FeatureMap::from_vectors(self.network.shape, values)?;
                let mapped = match &self.normalisation {
                    Some(normalisation) => normalisation.undo(&mapped)?,
                    None => mapped,
                };
                cosines.extend(cosine::median_cosine(&mapped, &pair.edited)?);
            }
        }
        let mean = cosines.iter().sum::<f64>() / cosines.len() as f64;
        let mean = (!cosines.is_empty()).then_some(mean);
        Ok((loss_sum / pairs.len() as f64, mean))
    }

    /// Pairs as the network sees them: (pair, position, channel).
    fn tensors(&self, pairs: &[&Pair]) -> Result<(Tensor<3>, Tensor<3>)> {
        let [channels, rows, columns] = self.network.shape;
        let shape = [pairs.len(), rows * columns, channels];
        let tensor = |maps: Vec<FeatureMap>| {
            let values = maps.iter().flat_map(FeatureMap::vectors).copied();
            let data = TensorData::new(values.collect::<Vec<f32>>(), shape);
            Tensor::<3>::from_data(data, self.at.options())
        };
        let prepared = |map: &FeatureMap| match &self.normalisation {
            Some(normalisation) => normalisation.apply(map),
            None => Ok(map.clone()),
        };
        let originals = pairs
            .iter()
            .map(|pair| prepared(&reorder::reordered(&pair.original, &self.reorder)?))
            .collect::<Result<Vec<_>>>()?;
        let edited = pairs
            .iter()
            .map(|pair| prepared(&pair.edited))
            .collect::<Result<Vec<_>>>()?;
        Ok((tensor(originals), tensor(edited)))
    }

    /// The map of the epoch with the least validation loss, or before the first of the present parameters.
    ///
    /// # Errors
    /// [`ErrorKind::Device`] where the parameters cannot be read.
    pub fn map(&self) -> Result<EditMap> {
        let parameters = self.best.as_ref().unwrap_or(&self.parameters);
        let record = TrainingRecord {
            network: self.network,
            config: self.config,
            history: self.progress.history.clone(),
            best_epoch: self.progress.best_epoch,
        };
        let map = TrainedMap::new(record, parameters.read()?)?;
        Ok(EditMap {
            kind: MapKind::Trained {
                network: self.network.kind,
                loss: self.config.loss,
            },
            reorder: self.reorder.clone(),
            normalisation: self.normalisation.clone(),
            fitted: Fitted::Trained(map),
        })
    }

    /// Restores the order of the pairs after the progress was replaced by that of a checkpoint.
    pub(super) fn resume_order(&mut self) {
        self.order = order(
            self.config.seed,
            self.progress.epochs,
            self.data.train.len(),
        );
    }

    /// The pairs.
    pub(super) fn data(&self) -> &TrainingData {
        &self.data
    }
}

/// A loss on the host.
fn number(loss: &Tensor<1>) -> Result<f64> {
    let value = read(loss.clone().reshape([1, 1, 1, 1]))?;
    match value.first() {
        Some(value) if value.is_finite() => Ok(*value),
        _ => Err(Error::new(
            ErrorKind::Numeric,
            "cannot train the map",
            "its loss is not a finite number",
            "Use a smaller learning rate, or normalise the features",
        )),
    }
}

pub(super) fn refused(why: String, remedy: &str) -> Error {
    Error::new(ErrorKind::Request, "cannot train a map", why, remedy)
}
