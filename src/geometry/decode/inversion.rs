//! Inversion of features by gradient descent through the encoder (Mahendran and Vedaldi 2015), for any stage, pooled
//! feature or logits.
//!
//! Sought is a picture x with
//!
//! ```text
//! ‖Φ(x) − z‖² / ‖z‖² + λ · mean over positions of √(‖∇x‖² + ε²)
//! ```
//!
//! small, z the target and the second term the total variation of all three channels together.
//!
//! **What is descended on** are not the pixels but the levels of a pyramid: x = σ(Σ_l U_l q_l), where q_l is a picture of a
//! 2⁻ˡ-th of the side, U_l its bilinear enlargement and σ the logistic function, which keeps x in (0, 1) without a clip. Adam
//! gives every level steps of one size, so that a coarse level, which moves thousands of pixels at once, moves the
//! picture as fast as a fine one: low frequencies, of which photographs consist mostly, come first. A gradient step on pixels
//! would favour the high frequencies in which the derivative of a strided network is largest, and give the well-known
//! checkerboards. (A Fourier basis scaled by 1/f has the same effect; a pyramid is local, needs no transform that other
//! devices may lack, and lets levels be switched on one by one.) Levels join from coarse to fine during the first part of
//! the steps. Since the finest level has the size of the picture, any picture can be started from.
//!
//! The derivative through the encoder is the recorded one, [`crate::encoders::linear::Linearised::vjp`], at each iterate.

use std::f64::consts::PI;
use std::sync::Arc;

use burn::tensor::{Tensor, activation};
use serde::{Deserialize, Serialize};

use super::prior::{enlargement, pyramid, total_variation};
use crate::device::{ComputeDevice, read};
use crate::encoders::Readout;
use crate::encoders::layers::Placement;
use crate::encoders::linear::separable;
use crate::encoders::registry::LoadedEncoder;
use crate::encoders::value::Value;
use crate::features::FeatureMap;
use crate::geometry::field::require_finite;
use crate::geometry::learn::AdamW;
use crate::{Error, ErrorKind, Result};

/// Pixel values are kept this far from 0 and 1 where a picture is turned into levels.
const MARGIN: f64 = 1.0 / 512.0;

/// Learning rate at the last step, as a share of the first.
const LAST_RATE: f64 = 0.05;

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct InversionConfig {
    /// Steps from a grey picture; one costs about three forward passes.
    pub steps: usize,
    /// Steps after the target has changed.
    pub refining_steps: usize,
    /// Learning rate of Adam at the first step; it falls along half a cosine to a twentieth.
    pub rate: f64,
    /// Learning rate at the first step after the target has changed; it falls in the same way.
    pub refining_rate: f64,
    /// Weight λ of the total variation.
    pub total_variation: f64,
    /// Share of the steps in which the levels join one after another.
    pub coarse_share: f64,
}

impl Default for InversionConfig {
    /// Ours, by trials on the stages of EfficientNet-Lite0: with twice the rate or levels that join in half the time
    /// the fine ones fill with noise early, with half the rate 200 steps are too few, and λ from 0.3 to 1 trades
    /// texture for clean areas. Deep stages like it larger.
    fn default() -> Self {
        Self {
            steps: 200,
            refining_steps: 40,
            rate: 0.05,
            refining_rate: 0.005,
            total_variation: 0.5,
            coarse_share: 0.6,
        }
    }
}

/// Where the search stands after a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iterate {
    /// Steps since the start or the last change of the target.
    pub step: usize,
    /// Steps that are planned from there.
    pub of: usize,
    /// ‖Φ(x) − z‖ / ‖z‖ before the step.
    pub feature_error: f64,
    /// Total variation before the step, in pixel ranges a pixel.
    pub total_variation: f64,
    /// The whole loss before the step.
    pub loss: f64,
}

/// A differentiable map from a picture (1, 3, row, column) to features.
pub type Map = Box<dyn Fn(Value) -> Result<Value> + Send>;

/// A search for a picture with given features, to be driven step by step: whoever stops calling has cancelled it,
/// and [`Inversion::pixels`] shows the picture at any time.
///
/// Nothing is random: the same calls give the same picture on the CPU device.
pub struct Inversion {
    map: Map,
    name: String,
    device: ComputeDevice,
    at: Placement,
    config: InversionConfig,
    /// The target z with its shape, and ‖z‖².
    target: Tensor<4>,
    target_sq: f64,
    /// Levels from fine to coarse, flat, (1, 3, side, side) each.
    levels: Vec<Tensor<1>>,
    /// Rows and columns of each level.
    sides: Vec<[usize; 2]>,
    /// The matrices that enlarge each level, (picture, level); none for the finest.
    enlargements: Vec<Option<[Tensor<2>; 2]>>,
    adam: AdamW,
    step: usize,
    of: usize,
    /// Whether all levels take part from the first step.
    is_refining: bool,
}

impl Inversion {
    /// A search from a grey picture for one whose readout is `target`, given in the order of encoders: channel, row, column.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where the encoder has no such stage, the target has another length or the configuration
    /// makes no sense; [`ErrorKind::Numeric`] where the target is zero or not finite.
    pub fn new(
        encoder: Arc<LoadedEncoder>,
        readout: Readout,
        target: &[f64],
        config: InversionConfig,
    ) -> Result<Self> {
        let spec = encoder.spec();
        let shape = spec.readout_shape(&readout)?;
        let side = spec.side_px;
        let name = spec.title.to_string();
        let (device, at) = (encoder.device.clone(), encoder.placement.clone());
        let map: Map = Box::new(move |pixels| encoder.encoder.forward(pixels, &readout));
        Self::of_map(map, name, device, at, [side; 2], shape, target, config)
    }

    /// The same for any map from pictures of these rows and columns to features of this shape; `name` is for messages.
    ///
    /// # Errors
    /// As [`Inversion::new`].
    #[expect(
        clippy::too_many_arguments,
        reason = "a map, its two shapes and where it lives"
    )]
    pub fn of_map(
        map: Map,
        name: String,
        device: ComputeDevice,
        at: Placement,
        side: [usize; 2],
        shape: [usize; 3],
        target: &[f64],
        config: InversionConfig,
    ) -> Result<Self> {
        let is_rate = |rate: f64| rate > 0.0 && rate.is_finite();
        let is_sound = is_rate(config.rate)
            && is_rate(config.refining_rate)
            && config.total_variation >= 0.0
            && config.total_variation.is_finite()
            && (0.0..=1.0).contains(&config.coarse_share)
            && config.steps > 0
            && side.iter().all(|&side| side > 1);
        if !is_sound {
            return Err(Error::new(
                ErrorKind::Request,
                format!("cannot invert features of {name}"),
                format!("{config:?} makes no sense for {} × {} px", side[1], side[0]),
                "Use a positive rate and number of steps, a weight from 0 and a share from 0 to 1",
            ));
        }
        let sides = pyramid(side);
        let enlargements = sides.iter().map(|&level| {
            (level != side).then(|| [0, 1].map(|axis| enlargement(side[axis], level[axis], &at)))
        });
        let zeros = |[rows, columns]: &[usize; 2]| {
            let len = 3 * rows * columns;
            at.tensor(vec![0.0; len], [len])
        };
        let [channels, rows, columns] = shape;
        let mut inversion = Self {
            map,
            name,
            device,
            target: at.tensor(
                vec![0.0; shape.iter().product()],
                [1, channels, rows, columns],
            ),
            target_sq: 0.0,
            levels: sides.iter().map(zeros).collect(),
            enlargements: enlargements.collect(),
            sides,
            adam: AdamW::new(0.0),
            step: 0,
            of: config.steps,
            is_refining: false,
            at,
            config,
        };
        inversion.set_target(target)?;
        Ok(inversion)
    }

    /// Changes the target, such as when a map or its rank has changed: the picture stays and is refined.
    ///
    /// # Errors
    /// As for the target of [`Inversion::new`]; the search then goes on as before.
    pub fn aim(&mut self, target: &[f64]) -> Result<()> {
        self.set_target(target)?;
        self.refine();
        Ok(())
    }

    /// Starts from a picture, such as a decoder's, instead of grey, and refines it. Values in [0, 1]: channel, row, column.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] for another number of values; [`ErrorKind::Numeric`] where one is not finite.
    pub fn start_from(&mut self, pixels: &[f32]) -> Result<()> {
        let [rows, columns] = self.sides[0];
        if pixels.len() != 3 * rows * columns {
            return Err(Error::new(
                ErrorKind::Request,
                format!("cannot invert features of {}", self.name),
                format!(
                    "{} values are not a picture of {columns} × {rows} px",
                    pixels.len()
                ),
                "Start from a picture of the encoder's input side",
            ));
        }
        let pixels: Vec<f64> = pixels.iter().map(|&value| f64::from(value)).collect();
        require_finite(&pixels, "the picture to start from")?;
        let logits = pixels.iter().map(|value| {
            let value = value.clamp(MARGIN, 1.0 - MARGIN);
            (value / (1.0 - value)).ln()
        });
        let finest = self.at.tensor(logits.collect(), [pixels.len()]);
        for level in &mut self.levels {
            *level = level.zeros_like();
        }
        self.levels[0] = finest;
        self.refine();
        Ok(())
    }

    fn refine(&mut self) {
        // Moments of another target would carry the picture on in a direction that no longer counts.
        self.adam = AdamW::new(0.0);
        self.step = 0;
        self.of = self.config.refining_steps.max(1);
        self.is_refining = true;
    }

    fn set_target(&mut self, target: &[f64]) -> Result<()> {
        let dims = self.target.dims();
        if target.len() != dims.iter().product::<usize>() {
            return Err(Error::new(
                ErrorKind::Request,
                format!("cannot invert features of {}", self.name),
                format!("{} values are given where {dims:?} are read", target.len()),
                "Use features of the encoder and stage that are inverted",
            ));
        }
        require_finite(target, "the features to invert")?;
        let target_sq: f64 = target.iter().map(|value| value * value).sum();
        if target_sq == 0.0 {
            return Err(Error::new(
                ErrorKind::Numeric,
                format!("cannot invert features of {}", self.name),
                "all of them are zero, so that no error can be related to them",
                "Use another stage or another map",
            ));
        }
        self.target = self.at.tensor(target.to_vec(), dims);
        self.target_sq = target_sq;
        Ok(())
    }

    /// Whether all planned steps are made. More may follow; they are made at the last learning rate.
    pub fn is_finished(&self) -> bool {
        self.step >= self.of
    }

    /// One step.
    ///
    /// # Errors
    /// [`ErrorKind::Numeric`] where the loss is not finite, and then the picture is that before the step;
    /// [`ErrorKind::Device`] where the device fails.
    pub fn step(&mut self) -> Result<Iterate> {
        let device = self.device.clone();
        let asked = format!("cannot invert features of {}", self.name);
        device.guard(&asked, || self.step_on_device())
    }

    fn step_on_device(&mut self) -> Result<Iterate> {
        let active = self.active_levels();
        let (loss, gradients) = self.loss_and_gradients(active)?;
        let rate = self.rate();
        for (level, gradient) in gradients {
            let value = self.levels[level].clone();
            self.levels[level] = self.adam.step(level, value, gradient, rate);
        }
        self.step += 1;
        Ok(Iterate {
            step: self.step,
            ..loss
        })
    }

    /// Half a cosine from the first to the last rate.
    fn rate(&self) -> f64 {
        let done = (self.step as f64 / self.of as f64).min(1.0);
        let share = LAST_RATE + (1.0 - LAST_RATE) * 0.5 * (1.0 + (PI * done).cos());
        let first = if self.is_refining {
            self.config.refining_rate
        } else {
            self.config.rate
        };
        first * share
    }

    /// The first of the levels, counted from fine to coarse, that takes part.
    fn active_levels(&self) -> usize {
        if self.is_refining {
            return 0;
        }
        let joining = self.config.coarse_share * self.of as f64;
        let last = self.levels.len() - 1;
        // The coarsest two begin together: one alone has little to say.
        let steps = last.saturating_sub(1);
        if joining <= 0.0 || steps == 0 {
            return 0;
        }
        let joined = (self.step as f64 / joining * (steps + 1) as f64) as usize;
        steps.saturating_sub(joined)
    }

    /// The picture (1, 3, row, column) of these levels.
    fn picture(&self, levels: &[Tensor<1>], is_tracked: bool) -> Tensor<4> {
        let enlarged = levels.iter().enumerate().map(|(i, level)| {
            let [rows, columns] = self.sides[i];
            let level = level.clone().reshape([1, 3, rows, columns]);
            match &self.enlargements[i] {
                None => level,
                Some(matrices) if is_tracked => {
                    separable(level, matrices.clone().map(Tensor::autodiff))
                }
                Some(matrices) => separable(level, matrices.clone()),
            }
        });
        let sum = enlarged
            .reduce(|sum, level| sum + level)
            .expect("a pyramid has at least its finest level");
        activation::sigmoid(sum)
    }

    /// The whole loss at the present picture, and its gradient with respect to the levels from `first` on.
    fn loss_and_gradients(&self, first: usize) -> Result<(Iterate, Vec<(usize, Tensor<1>)>)> {
        let leaves: Vec<Tensor<1>> = self
            .levels
            .iter()
            .enumerate()
            .map(|(i, level)| {
                let level = level.clone().autodiff();
                if i >= first {
                    level.require_grad()
                } else {
                    level
                }
            })
            .collect();
        let picture = self.picture(&leaves, true);

        let features = (self.map)(Value::traced(picture.clone().inner()))?;
        let derivative = features.linearised().ok_or_else(|| {
            Error::new(
                ErrorKind::Internal,
                format!("cannot invert features of {}", self.name),
                "it lost the record of its derivative",
                "This is a fault of the program; please report it",
            )
        })?;
        let difference = features.into_primal() - self.target.clone();
        let error_sq = sum_of_squares(&difference)? / self.target_sq;
        let pulled_back = derivative.vjp(difference * (2.0 / self.target_sq));

        let variation = total_variation(&picture);
        let variation_value = number(variation.clone().inner())?;
        let loss = error_sq + self.config.total_variation * variation_value;
        require_finite(&[loss], "the picture under search")?;
        // Its gradient with respect to the picture is that of the features' error.
        let linear = (picture * pulled_back.autodiff()).sum();
        let whole = linear + variation * self.config.total_variation;
        let mut gradients = whole.backward();
        let found = leaves.iter().enumerate().skip(first);
        let found = found.filter_map(|(i, leaf)| Some((i, leaf.grad_remove(&mut gradients)?)));
        let iterate = Iterate {
            step: self.step,
            of: self.of,
            feature_error: error_sq.sqrt(),
            total_variation: variation_value,
            loss,
        };
        Ok((iterate, found.collect()))
    }

    /// The picture as it stands: values in (0, 1), channel, row, column.
    ///
    /// # Errors
    /// [`ErrorKind::Device`] where the device cannot give it.
    pub fn pixels(&self) -> Result<Vec<f32>> {
        let device = self.device.clone();
        device.guard("cannot read the picture under search", || {
            let values = read(self.picture(&self.levels, false))?;
            Ok(values.into_iter().map(|value| value as f32).collect())
        })
    }

    /// The loss at the present picture and its gradient with respect to every level, the finest first, each (channel,
    /// row, column). What [`Inversion::step`] descends on, for those who want to check it.
    ///
    /// # Errors
    /// As [`Inversion::step`].
    pub fn gradient(&self) -> Result<(Iterate, Vec<Vec<f64>>)> {
        let (iterate, gradients) = self.loss_and_gradients(0)?;
        let values = gradients.into_iter().map(|(_, gradient)| {
            let len = gradient.dims()[0];
            read(gradient.reshape([1, 1, 1, len]))
        });
        Ok((iterate, values.collect::<Result<_>>()?))
    }

    /// Adds `change`, (channel, row, column), to the level `level`, counted from the finest, before the logistic function.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where there is no such level or it has another size.
    pub fn nudge(&mut self, level: usize, change: Vec<f64>) -> Result<()> {
        match self.levels.get_mut(level) {
            Some(value) if value.dims()[0] == change.len() => {
                let len = change.len();
                *value = value.clone() + self.at.tensor(change, [len]);
                Ok(())
            }
            _ => Err(Error::new(
                ErrorKind::Request,
                "cannot change the picture under search",
                format!(
                    "it has {} levels, and level {level} has not {} values",
                    self.sides.len(),
                    change.len()
                ),
                "Change one of its levels",
            )),
        }
    }
}

/// The features of a map in the order in which a search takes them.
pub fn target_of(map: &FeatureMap) -> Vec<f64> {
    map.planes().into_iter().map(f64::from).collect()
}

/// Sum of squares, formed in f64.
fn sum_of_squares(x: &Tensor<4>) -> Result<f64> {
    let values = read(x.clone())?;
    Ok(values.iter().map(|value| value * value).sum())
}

/// A tensor of one value.
fn number(x: Tensor<1>) -> Result<f64> {
    let values = read(x.reshape([1, 1, 1, 1]))?;
    Ok(values.first().copied().unwrap_or(f64::NAN))
}
