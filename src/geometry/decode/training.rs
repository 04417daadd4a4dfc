//! Training of a decoder on photographs of one's own, step by step: whoever stops calling has cancelled it, and the
//! decoder can be had at any time.
//!
//! A step cuts squares out of the photographs at random sizes and places, mirrors and tints them, encodes them and moves the
//! decoder's parameters against the L1 difference of the pixels and of both image gradients (AdamW, one cycle of the
//! learning rate). Some photographs are held out, whole, and scored as the encoder prepares them. The recipe is that of
//! scripts/train-decoder, but that crops are encoded as they come and not once for all.

use std::f64::consts::PI;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn::tensor::ops::ConvOptions;
use burn::tensor::{Tensor, TensorData, activation, module};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::crops::{random_crop, window_means};
use super::decoder::{Decoder, DecoderHeader, FORMAT, file_of};
use super::plan::DecoderPlan;
use crate::device::{ComputeDevice, read};
use crate::encoders::Readout;
use crate::encoders::layers::Placement;
use crate::encoders::linear::{pixel_shuffle, separable};
use crate::encoders::registry::LoadedEncoder;
use crate::encoders::value::Value;
use crate::features::FeatureMap;
use crate::files::write_whole;
use crate::geometry::learn::{AdamW, Live, Parameters};
use crate::geometry::maps::{Part, Shares, split_by_photograph};
use crate::images::{Photo, Picture, sha256_hex};
use crate::{Error, ErrorKind, Result};

/// Crops of which the standardisation is made.
const STANDARD_CROPS: usize = 64;

/// Share of the steps in which the learning rate rises.
const RISING: f64 = 0.15;

/// The first learning rate over the largest.
const FIRST_RATE: f64 = 1.0 / 25.0;

/// Largest noise on standardised features: what a map predicts is never exact.
const NOISE: f64 = 0.05;

/// How to train a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecoderTrainingConfig {
    /// Steps of the optimiser.
    pub steps: usize,
    /// Crops in a step.
    pub batch: usize,
    /// Largest learning rate.
    pub peak_rate: f64,
    /// Weight decay of AdamW.
    pub decay: f64,
    /// Share of the photographs that is held out.
    pub held_out: f64,
    /// Steps between two scores of the held-out photographs.
    pub score_every: usize,
    /// Seed of crops, split and first values.
    pub seed: u64,
}

impl Default for DecoderTrainingConfig {
    /// As the decoders that come with the program were trained (ours).
    fn default() -> Self {
        Self {
            steps: 4000,
            batch: 12,
            peak_rate: 3e-3,
            decay: 1e-4,
            held_out: 0.15,
            score_every: 100,
            seed: 0,
        }
    }
}

/// Scores of the held-out photographs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldOut {
    /// Mean PSNR in dB at the decoder's own side, of values clipped to [0, 1].
    pub psnr_db: f64,
    /// Mean of the perceptual distance, where one was given.
    pub perceptual: Option<f64>,
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecoderStep {
    /// Steps so far.
    pub step: usize,
    /// Steps in all.
    pub of: usize,
    /// Loss of its crops.
    pub loss: f64,
    /// Scores, where it was time for them.
    pub held_out: Option<HeldOut>,
}

/// A distance of a decoded picture and its original, both of one size, such as LPIPS.
pub type Perceptual = Box<dyn Fn(&Picture, &Picture) -> Result<f64> + Send>;

/// A training on its way.
pub struct DecoderTrainer {
    encoder: Arc<LoadedEncoder>,
    readout: Readout,
    plan: DecoderPlan,
    config: DecoderTrainingConfig,
    at: Placement,
    train: Vec<Photo>,
    /// Features and target of each held-out photograph.
    held_out: Vec<(FeatureMap, Vec<f32>)>,
    /// Matrix (decoder's side, encoder's side) of means over windows.
    reduction: Tensor<2>,
    parameters: Parameters,
    optimiser: AdamW,
    scale: Vec<f64>,
    step: usize,
    last_score: Option<HeldOut>,
    perceptual: Option<Perceptual>,
}

impl DecoderTrainer {
    /// A training for stage `stage` of an encoder on photographs; `plan` is [`DecoderPlan::suited_to`] the stage where
    /// `None`.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where the encoder has no such stage, there are too few photographs, one is too small or a number
    /// makes no sense; [`ErrorKind::Device`] where the device fails.
    pub fn new(
        encoder: Arc<LoadedEncoder>,
        stage: usize,
        plan: Option<DecoderPlan>,
        photos: Vec<Photo>,
        config: DecoderTrainingConfig,
    ) -> Result<Self> {
        let readout = Readout::Stage(stage);
        let spec = encoder.spec();
        let shape = spec.readout_shape(&readout)?;
        let plan = plan.unwrap_or_else(|| DecoderPlan::suited_to(shape, spec.side_px));
        let is_sound = config.steps > 0
            && config.batch > 0
            && config.score_every > 0
            && config.peak_rate > 0.0
            && config.peak_rate.is_finite()
            && config.decay >= 0.0
            && config.decay.is_finite();
        if !is_sound {
            return Err(refused(
                format!("{config:?} makes no sense"),
                "Use positive numbers",
            ));
        }
        if plan.channels != shape[0] || shape[1] != shape[2] {
            return Err(refused(
                format!("the stage has the shape {shape:?}, the plan {plan:?}"),
                "Use a plan with the channels of the stage",
            ));
        }
        if let Some(photo) = photos
            .iter()
            .find(|photo| photo.width.min(photo.height) < 8)
        {
            return Err(refused(
                format!("“{}” is smaller than 8 pixels", photo.name),
                "Leave it out",
            ));
        }
        let hashes: Vec<&str> = photos.iter().map(|photo| photo.sha256.as_str()).collect();
        let shares = Shares {
            validation: 0.0,
            held_out: config.held_out,
        };
        let parts = split_by_photograph(&hashes, shares, config.seed)?;
        let (train, held_out): (Vec<_>, Vec<_>) = photos
            .into_iter()
            .zip(parts)
            .partition(|(_, part)| *part == Part::Train);
        let at = Placement::f32(&encoder.device.device);
        let side = shape[1] * plan.enlargement();
        let mut trainer = Self {
            readout,
            reduction: at.tensor(window_means(spec.side_px, side), [side, spec.side_px]),
            parameters: Parameters::random(plan.parameters(), config.seed, &at)?,
            optimiser: AdamW::new(config.decay),
            train: train.into_iter().map(|(photo, _)| photo).collect(),
            held_out: Vec::new(),
            scale: Vec::new(),
            step: 0,
            last_score: None,
            perceptual: None,
            encoder,
            plan,
            config,
            at,
        };
        let device = trainer.device();
        device.guard("cannot train a decoder", || {
            trainer.standardise()?;
            trainer.prepare_held_out(held_out.iter().map(|(photo, _)| photo))
        })?;
        Ok(trainer)
    }

    /// Scores held-out photographs by a perceptual distance as well.
    #[must_use]
    pub fn with_perceptual(mut self, distance: Perceptual) -> Self {
        self.perceptual = Some(distance);
        self
    }

    fn device(&self) -> ComputeDevice {
        self.encoder.device.clone()
    }

    /// Whether all steps are made.
    pub fn is_finished(&self) -> bool {
        self.step >= self.config.steps
    }

    /// One step; the last and every [`DecoderTrainingConfig::score_every`]th score the held-out photographs.
    ///
    /// # Errors
    /// [`ErrorKind::Numeric`] where the loss is not finite; [`ErrorKind::Device`] where the device fails.
    pub fn step(&mut self) -> Result<DecoderStep> {
        let device = self.device();
        device.guard("cannot train a decoder", || self.step_on_device())
    }

    fn step_on_device(&mut self) -> Result<DecoderStep> {
        let mut rng = self.rng(self.step as u64 + 1);
        let pictures = self.crops(self.config.batch, &mut rng)?;
        let features = self.encode(&pictures)?;
        let noise = self.noise(features.dims(), &mut rng);
        let wanted = separable(pictures, [self.reduction.clone(), self.reduction.clone()]);
        let live = self.parameters.tracked();
        let decoded = forward(&self.plan, &live, (features + noise).autodiff());
        let loss = loss_of(&decoded, &wanted.autodiff());
        let value = read(loss.clone().inner().reshape([1, 1, 1, 1]))?;
        let value = value.first().copied().unwrap_or(f64::NAN);
        if !value.is_finite() {
            return Err(Error::new(
                ErrorKind::Numeric,
                "cannot train a decoder",
                "its loss is not a finite number",
                "Use a smaller learning rate",
            ));
        }
        let mut gradients = loss.backward();
        let live = live.into_values();
        let rate = self.rate();
        self.parameters
            .descend(&live, &mut gradients, &mut self.optimiser, rate);
        self.step += 1;
        let is_time = self.step.is_multiple_of(self.config.score_every) || self.is_finished();
        let held_out = if is_time && !self.held_out.is_empty() {
            self.last_score = Some(self.score()?);
            self.last_score
        } else {
            None
        };
        Ok(DecoderStep {
            step: self.step,
            of: self.config.steps,
            loss: value,
            held_out,
        })
    }

    /// One cycle: half a cosine up, half a cosine down to nothing.
    fn rate(&self) -> f64 {
        let done = self.step as f64 / self.config.steps as f64;
        let wave = |part: f64| 0.5 * (1.0 - (PI * part).cos());
        let share = if done < RISING {
            FIRST_RATE + (1.0 - FIRST_RATE) * wave(done / RISING)
        } else {
            wave((1.0 - done) / (1.0 - RISING))
        };
        self.config.peak_rate * share
    }

    /// What is random at a step depends on nothing but the seed and the step's number; 0 is before the first.
    fn rng(&self, step: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.config.seed);
        // The streams below belong to the first values of the parameters.
        rng.set_stream((1 << 32) + step);
        rng
    }

    /// Crops as the encoder reads them, (crop, 3, row, column) in [0, 1].
    fn crops(&self, count: usize, rng: &mut ChaCha8Rng) -> Result<Tensor<4>> {
        let side = self.encoder.spec().side_px;
        let mut values = Vec::with_capacity(count * 3 * side * side);
        for _ in 0..count {
            let photo = &self.train[rng.random_range(0..self.train.len())];
            values.extend(random_crop(photo, side, rng)?);
        }
        let data = TensorData::new(values, [count, 3, side, side]);
        Ok(Tensor::from_data(data, self.at.options()))
    }

    /// Features of pictures in [0, 1], (picture, channel, row, column).
    fn encode(&self, pictures: &Tensor<4>) -> Result<Tensor<4>> {
        let value = Value::plain(pictures.clone());
        let features = self.encoder.encoder.forward(value, &self.readout)?;
        Ok(features.into_primal())
    }

    /// Normal noise of up to [`NOISE`] standard deviations of each channel, of another size for each crop.
    fn noise(&self, dims: [usize; 4], rng: &mut ChaCha8Rng) -> Tensor<4> {
        let [count, _, rows, columns] = dims;
        let mut values = Vec::with_capacity(dims.iter().product());
        for _ in 0..count {
            let size = NOISE * rng.random::<f64>();
            for scale in &self.scale {
                for _ in 0..rows * columns {
                    let normal: f64 = StandardNormal.sample(rng);
                    values.push((size * scale * normal) as f32);
                }
            }
        }
        Tensor::from_data(TensorData::new(values, dims), self.at.options())
    }

    /// Sets mean and standard deviation of each channel over some crops.
    fn standardise(&mut self) -> Result<()> {
        let mut rng = self.rng(0);
        let channels = self.plan.channels;
        let (mut sums, mut squares, mut count) = (vec![0.0; channels], vec![0.0; channels], 0.0);
        for _ in 0..STANDARD_CROPS.div_ceil(self.config.batch) {
            let features = self.encode(&self.crops(self.config.batch, &mut rng)?)?;
            let [pictures, _, rows, columns] = features.dims();
            let values = read(features)?;
            for (plane, values) in values.chunks_exact(rows * columns).enumerate() {
                let channel = plane % channels;
                sums[channel] += values.iter().sum::<f64>();
                squares[channel] += values.iter().map(|value| value * value).sum::<f64>();
            }
            count += (pictures * rows * columns) as f64;
        }
        let mean: Vec<f64> = sums.iter().map(|sum| sum / count).collect();
        let variance = squares.iter().zip(&mean);
        let variance = variance.map(|(sum, mean)| (sum / count - mean * mean).max(0.0));
        // A channel that is always the same is left as it is, in place of a division by next to nothing.
        let scale = variance.map(|variance| {
            let std = variance.sqrt();
            if std > 1e-6 { std } else { 1.0 }
        });
        self.scale = scale.collect();
        self.parameters
            .replace("mean", self.at.tensor(mean, [channels]));
        self.parameters
            .replace("scale", self.at.tensor(self.scale.clone(), [channels]));
        Ok(())
    }

    fn prepare_held_out<'a>(&mut self, photos: impl Iterator<Item = &'a Photo>) -> Result<()> {
        let spec = self.encoder.spec().clone();
        let side = spec.side_px;
        for photo in photos {
            let prepared = spec.preprocessing.apply(photo)?;
            let data = TensorData::new(prepared.pixels.to_vec(), [1, 3, side, side]);
            let pixels = Tensor::from_data(data, self.at.options());
            let features = to_host(read(self.encode(&pixels)?)?);
            let shape = spec.readout_shape(&self.readout)?;
            let wanted = separable(pixels, [self.reduction.clone(), self.reduction.clone()]);
            let wanted = to_host(read(wanted)?);
            self.held_out
                .push((FeatureMap::from_planes(shape, &features)?, wanted));
        }
        Ok(())
    }

    fn score(&self) -> Result<HeldOut> {
        let decoder = self.decoder()?;
        let (mut psnr, mut distances) = (0.0, Vec::new());
        for (features, wanted) in &self.held_out {
            let decoded = decoder.decode(features)?;
            psnr += psnr_db(&decoded.pixels, wanted);
            if let Some(distance) = &self.perceptual {
                let picture =
                    |pixels: &[f32]| Picture::from_planes(pixels, decoded.rows, decoded.columns);
                distances.push(distance(&picture(&decoded.pixels), &picture(wanted))?);
            }
        }
        let mean = distances.iter().sum::<f64>() / distances.len() as f64;
        Ok(HeldOut {
            psnr_db: psnr / self.held_out.len() as f64,
            perceptual: (!distances.is_empty()).then_some(mean),
        })
    }

    /// What the decoder is and where it comes from, with the last scores.
    pub fn header(&self) -> DecoderHeader {
        let spec = self.encoder.spec();
        let hashes: String = self.train.iter().map(|p| p.sha256.as_str()).collect();
        let stage = match self.readout {
            Readout::Stage(index) => spec.stages.get(index).map(|stage| stage.name.clone()),
            Readout::Pooled | Readout::Logits => None,
        };
        DecoderHeader {
            format: FORMAT,
            encoder: spec.name.to_string(),
            weights_id: self.encoder.weights_id.clone(),
            stage: stage.unwrap_or_default(),
            plan: self.plan.clone(),
            data_sha256: sha256_hex(hashes.as_bytes()),
            photographs: self.train.len(),
            steps: self.step,
            batch: self.config.batch,
            seed: self.config.seed,
            held_out_photographs: self.held_out.len(),
            held_out_psnr_db: self.last_score.map(|score| score.psnr_db),
            held_out_lpips: self.last_score.and_then(|score| score.perceptual),
            made_by: concat!("etascope ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }

    /// The decoder as it stands, rounded as in its file.
    ///
    /// # Errors
    /// [`ErrorKind::Numeric`] where a value leaves the range of f16; [`ErrorKind::Device`] where the device fails.
    pub fn decoder(&self) -> Result<Decoder> {
        let file = file_of(&self.header(), &self.parameters.read()?)?;
        Decoder::read("the decoder in training", &file, &self.device())
    }

    /// Writes the decoder as it stands, whole or not at all.
    ///
    /// # Errors
    /// [`ErrorKind::Output`] where the file cannot be written, and those of [`DecoderTrainer::decoder`].
    pub fn save(&self, path: &Path) -> Result<()> {
        let file = file_of(&self.header(), &self.parameters.read()?)?;
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        write_whole(folder, &[(PathBuf::from(path), file)])
    }

    /// The picture of feature maps (batch, channel, row, column) by the parameters as they are, not rounded and not
    /// clipped.
    pub fn forward(&self, features: Tensor<4>) -> Tensor<4> {
        forward(&self.plan, &self.parameters.live(), features)
    }
}

/// The pass of [`Decoder::forward`] over parameters whose derivatives may be wanted.
fn forward(plan: &DecoderPlan, live: &Live<'_>, features: Tensor<4>) -> Tensor<4> {
    let conv = |x: Tensor<4>, key: &str| {
        let weight: Tensor<4> = live.get(&format!("{key}.weight"));
        let padding = weight.dims()[2] / 2;
        let options = ConvOptions::new([1, 1], [padding; 2], [1, 1], 1);
        module::conv2d(x, weight, Some(live.get(&format!("{key}.bias"))), options)
    };
    let block = |x: Tensor<4>, key: &str| {
        let hidden = activation::relu(conv(x.clone(), &format!("{key}.first")));
        x + conv(hidden, &format!("{key}.second"))
    };
    let of_channel = |name: &str| -> Tensor<4> {
        let values: Tensor<1> = live.get(name);
        values.reshape([1, plan.channels, 1, 1])
    };
    let mut x = (features - of_channel("mean")) / of_channel("scale");
    x = conv(x, "input");
    for i in 0..plan.blocks {
        x = block(x, &format!("trunk.{i}"));
    }
    for i in 0..plan.doublings.len() {
        x = pixel_shuffle(conv(x, &format!("expand.{i}")), 2);
        x = block(x, &format!("refine.{i}"));
    }
    pixel_shuffle(conv(x, "output"), 2)
}

/// L1 of the pixels and of both image gradients.
fn loss_of(decoded: &Tensor<4>, wanted: &Tensor<4>) -> Tensor<1> {
    let difference = decoded.clone() - wanted.clone();
    let [_, _, rows, columns] = difference.dims();
    let step = |axis: usize, len: usize| {
        let after = difference.clone().narrow(axis, 1, len - 1);
        (after - difference.clone().narrow(axis, 0, len - 1))
            .abs()
            .mean()
    };
    difference.clone().abs().mean() + step(2, rows) + step(3, columns)
}

/// PSNR in dB of values in [0, 1]; 120 at most, which is beyond what f32 tells apart.
fn psnr_db(decoded: &[f32], wanted: &[f32]) -> f64 {
    let pairs = decoded.iter().zip(wanted);
    let sum: f64 = pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum();
    -10.0 * (sum / wanted.len() as f64).max(1e-12).log10()
}

fn to_host(values: Vec<f64>) -> Vec<f32> {
    values.into_iter().map(|value| value as f32).collect()
}

fn refused(why: String, remedy: &str) -> Error {
    Error::new(ErrorKind::Request, "cannot train a decoder", why, remedy)
}
