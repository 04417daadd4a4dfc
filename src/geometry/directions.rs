//! Direction families: distributions of the unit vectors u along which Φ is perturbed.
//!
//! Direction `i` of a random family is drawn from its own stream of the generator, so that it
//! depends on the seed and on `i` alone: a longer set begins with the shorter one, and a set need not
//! be stored.
//!
//! The directions toward another image and along a manipulation are made from pixels, of which
//! geometry knows nothing: the vector ([`difference`]) is handed over with
//! [`super::Profiler::with_directions`].

use std::collections::VecDeque;
use std::sync::Arc;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use serde::{Deserialize, Serialize};

use super::field::{Field, require_finite};
use super::profile::Cost;
use super::spectrum::{LeadingSearch, OVERSAMPLING};
use super::trace::require_room;
use crate::images::gaussian::{Border, smooth};
use crate::images::{Disc, Manipulation, Mask, bundled};
use crate::{Error, ErrorKind, Result};

/// Distribution of the directions u. Only [`DirectionFamily::Isotropic`] is that of Szymkowiak,
/// Pałubicki and Adamczewski (2026, arXiv 2609.39115);
/// the others are ours, always labelled, never mixed into the default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DirectionFamily {
    /// Uniform on the unit sphere of R^{d_I}: normalised Gaussians.
    #[default]
    Isotropic,
    /// Random signs: every pixel value moves by the same amount.
    Rademacher,
    /// Gaussian noise smoothed by a Gaussian of `sigma_px` pixels, then normalised.
    LowPass {
        /// Standard deviation of the smoothing kernel in pixels of the encoder's input.
        sigma_px: f32,
    },
    /// The gradient of the encoder's largest logit at the photograph: one direction and its antipode.
    TopLogitGradient,
    /// Leading right-singular vectors of the Jacobian of the readout, the first `count` of them.
    TopSingular {
        /// How many.
        count: usize,
    },
    /// From the photograph x toward another image t, (t − x)/‖t − x‖, both prepared for the encoder:
    /// one direction and its antipode. At η = ‖t − x‖ the perturbed photograph is the other image.
    Toward {
        /// A file, or `bundled:NAME` for one of the program's own.
        image: String,
    },
    /// Along a manipulation m of the photograph as the encoder sees it, (m(x) − x)/‖m(x) − x‖: one
    /// direction and its antipode.
    Along {
        /// The manipulation.
        manipulation: Manipulation,
    },
    /// Gaussian noise inside a mask and zero outside, normalised.
    Masked {
        /// Where there is noise, on the photograph as the encoder sees it.
        mask: Mask,
    },
}

/// Most right-singular vectors that can be asked for. All are kept, as long as the input each, and
/// combined in one step that cannot be cancelled and takes time with the square of their number: some
/// seconds at 224 px for these.
pub const SINGULAR_MAX: usize = 256;

impl DirectionFamily {
    /// Name for people.
    pub fn title(&self) -> String {
        match self {
            Self::Isotropic => "isotropic Gaussian".to_owned(),
            Self::Rademacher => "random signs".to_owned(),
            Self::LowPass { sigma_px } => format!("low-pass Gaussian, σ {sigma_px} px"),
            Self::TopLogitGradient => "gradient of the top logit".to_owned(),
            Self::TopSingular { count: 1 } => "top right-singular vector".to_owned(),
            Self::TopSingular { count } => format!("top {count} right-singular vectors"),
            Self::Toward { image } => format!("toward “{}”", bundled::short_name(image)),
            Self::Along { manipulation } => format!("along {}", manipulation.title()),
            Self::Masked { .. } => "Gaussian inside a mask".to_owned(),
        }
    }

    /// Whether E uuᵀ = I/d_I, so that E‖Ju‖² = tr(JᵀJ)/d_I.
    pub fn has_identity_covariance(&self) -> bool {
        matches!(self, Self::Isotropic | Self::Rademacher)
    }

    /// Whether directions are drawn at random; the others are a fixed, finite set, found from the
    /// encoder or made from pictures, and an average over them has no sampling error.
    pub fn is_random(&self) -> bool {
        match self {
            Self::Isotropic | Self::Rademacher | Self::LowPass { .. } | Self::Masked { .. } => true,
            Self::TopLogitGradient
            | Self::TopSingular { .. }
            | Self::Toward { .. }
            | Self::Along { .. } => false,
        }
    }

    /// Refuses parameters that give no directions for inputs of `rows · columns` pixels.
    fn check(&self, rows: usize, columns: usize) -> Result<()> {
        let (why, remedy) = match self {
            // Beyond this the kernel is wider than any input side.
            Self::LowPass { sigma_px } if !(*sigma_px > 0.0 && *sigma_px <= 1000.0) => (
                format!("the smoothing width is {sigma_px} px"),
                "Give a width above 0 and up to 1000 px",
            ),
            Self::TopSingular { count: 0 } => (
                "no singular vector is asked for".to_owned(),
                "Ask for at least one",
            ),
            Self::TopSingular { count } if *count > SINGULAR_MAX => (
                format!(
                    "{count} singular vectors are asked for; more than {SINGULAR_MAX} take too much \
                     memory and time"
                ),
                "Ask for fewer: the leading ones are those that matter most",
            ),
            Self::Along { manipulation } => return manipulation.check(),
            Self::Masked { mask } if !mask.discs.iter().all(Disc::is_valid) => (
                "a disc of the mask has a number that is not finite, or no radius".to_owned(),
                "Give each disc as x, y and a radius above 0, in fractions of the side",
            ),
            Self::Masked { mask } if !mask.covered(rows, columns).contains(&true) => (
                "the mask is empty: no pixel lies in it".to_owned(),
                "Paint a part of the photograph",
            ),
            _ => return Ok(()),
        };
        Err(Error::new(
            ErrorKind::Request,
            "cannot make the directions",
            why,
            remedy,
        ))
    }
}

/// A change of pixel values below this root mean square is none: a hundredth of what the rounding of
/// an 8-bit file does, and ten times what f32 does to values in [0, 1].
const DIFFERENCE_RMS_MIN: f64 = 1e-6;

/// The direction from one picture to another, of unit L2 norm, and the distance between them;
/// `None` where they are the same up to the rounding of f32. Both in the order (channel, row, column).
pub fn difference(to: &[f64], from: &[f32]) -> Option<(Arc<[f32]>, f64)> {
    let difference: Vec<f64> = to
        .iter()
        .zip(from)
        .map(|(to, from)| to - f64::from(*from))
        .collect();
    let norm = difference.iter().map(|v| v * v).sum::<f64>().sqrt();
    let least = DIFFERENCE_RMS_MIN * (difference.len() as f64).sqrt();
    (norm > least).then(|| (unit(&difference), norm))
}

/// Direction `index` of a random family: `channels · rows · columns` values of unit L2 norm in the
/// order (channel, row, column). `None` for the families that are found from an encoder or made from
/// pictures.
pub fn sample(
    family: &DirectionFamily,
    seed: u64,
    index: usize,
    shape: (usize, usize, usize),
) -> Option<Arc<[f32]>> {
    let (channels, rows, columns) = shape;
    let len = channels * rows * columns;
    let mut rng = stream(seed, FIRST_STREAM + index as u64);
    match family {
        DirectionFamily::Isotropic => Some(unit(&gaussian(&mut rng, len))),
        DirectionFamily::Rademacher => Some(unit(&signs(&mut rng, len))),
        DirectionFamily::LowPass { sigma_px } => {
            let mut noise = gaussian(&mut rng, len);
            let sigma_px = f64::from(*sigma_px);
            smooth(&mut noise, rows, columns, sigma_px, Border::Wrapped);
            Some(unit(&noise))
        }
        DirectionFamily::Masked { mask } => {
            let mut noise = gaussian(&mut rng, len);
            let covered = mask.covered(rows, columns);
            for (value, is_covered) in noise.iter_mut().zip(covered.iter().cycle()) {
                *value *= f64::from(u8::from(*is_covered));
            }
            Some(unit(&noise))
        }
        DirectionFamily::TopLogitGradient
        | DirectionFamily::TopSingular { .. }
        | DirectionFamily::Toward { .. }
        | DirectionFamily::Along { .. } => None,
    }
}

/// Stream of direction 0. Stream 0 is left alone, because it is what a generator begins with: other
/// numbers of the same seed, such as random weights, must not correlate with a direction.
const FIRST_STREAM: u64 = 1;

/// The generator of one stream of a seed.
pub(super) fn stream(seed: u64, number: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(number);
    rng
}

pub(super) fn gaussian(rng: &mut ChaCha8Rng, len: usize) -> Vec<f64> {
    rng.sample_iter(StandardNormal).take(len).collect()
}

/// `len` independent values ±1.
pub(super) fn signs(rng: &mut ChaCha8Rng, len: usize) -> Vec<f64> {
    let mut values = Vec::with_capacity(len);
    while values.len() < len {
        let mut word = rng.next_u64();
        for _ in 0..(len - values.len()).min(64) {
            values.push(if word & 1 == 1 { 1.0 } else { -1.0 });
            word >>= 1;
        }
    }
    values
}

/// Scales to unit L2 norm, in f64, and rounds to f32.
pub(super) fn unit(values: &[f64]) -> Arc<[f32]> {
    let norm = values.iter().map(|v| v * v).sum::<f64>().sqrt();
    values.iter().map(|v| (v / norm) as f32).collect()
}

/// Directions that are kept for their next use: those that one batch of JVPs looks ahead.
pub(super) const RECENT_MAX: usize = 32;

/// The directions of one profile, in order.
pub(super) struct DirectionSet {
    family: DirectionFamily,
    seed: u64,
    shape: (usize, usize, usize),
    source: Source,
    /// Direction 0, once it was used.
    first: Option<Arc<[f32]>>,
    recent: VecDeque<(usize, Arc<[f32]>)>,
}

enum Source {
    /// Drawn one by one.
    Random,
    /// A list.
    Listed(Vec<Arc<[f32]>>),
    /// A list that is still to be handed over.
    Pictures,
    /// To be found from the field.
    Gradient,
    /// So many to be found from the field; the search starts when the feature's length is known.
    Singular {
        count: usize,
        search: Option<LeadingSearch>,
    },
}

impl DirectionSet {
    pub fn new(family: DirectionFamily, seed: u64, shape: (usize, usize, usize)) -> Result<Self> {
        family.check(shape.1, shape.2)?;
        let source = match family {
            DirectionFamily::Toward { .. } | DirectionFamily::Along { .. } => Source::Pictures,
            DirectionFamily::TopLogitGradient => Source::Gradient,
            DirectionFamily::TopSingular { count } => Source::Singular {
                count,
                search: None,
            },
            _ => Source::Random,
        };
        Ok(Self {
            family,
            seed,
            shape,
            source,
            first: None,
            recent: VecDeque::new(),
        })
    }

    /// Uses these instead, in this order.
    pub fn set_list(&mut self, list: Vec<Arc<[f32]>>) -> Result<()> {
        let fault = |why: String| {
            let remedy = "Hand over unit vectors as long as the encoder's input";
            Err(Error::new(
                ErrorKind::Request,
                "cannot use the given directions",
                why,
                remedy,
            ))
        };
        if list.is_empty() {
            return fault("there are none".to_owned());
        }
        for (i, direction) in list.iter().enumerate() {
            if direction.len() != self.input_len() {
                let (n, wanted) = (direction.len(), self.input_len());
                return fault(format!("number {i} has {n} values, the input has {wanted}"));
            }
            let norm = direction
                .iter()
                .map(|&v| f64::from(v).powi(2))
                .sum::<f64>()
                .sqrt();
            // A vector that was scaled in f32 is a unit vector to about 1e-6.
            if norm.is_nan() || (norm - 1.0).abs() > 1e-3 {
                return fault(format!("number {i} has the norm {norm}"));
            }
        }
        self.source = Source::Listed(list);
        self.first = None;
        Ok(())
    }

    pub fn input_len(&self) -> usize {
        self.shape.0 * self.shape.1 * self.shape.2
    }

    pub fn is_ready(&self) -> bool {
        matches!(self.source, Source::Random | Source::Listed(_))
    }

    /// How many there are; `None` while unknown or without end.
    pub fn len(&self) -> Option<usize> {
        match &self.source {
            Source::Listed(list) => Some(list.len()),
            _ => None,
        }
    }

    /// Does at most one batch of the work that finds the directions; true once they are known.
    /// A list that comes out empty means that the Jacobian is zero.
    pub fn step(&mut self, field: &mut dyn Field, cost: &mut Cost) -> Result<bool> {
        match &mut self.source {
            Source::Random | Source::Listed(_) => {}
            Source::Pictures => {
                return Err(Error::new(
                    ErrorKind::Internal,
                    "cannot make the directions",
                    "the pictures that they are made from were not handed over",
                    "",
                ));
            }
            Source::Gradient => {
                let gradient = field.top_logit_gradient()?;
                cost.vjps += 1;
                require_finite(&gradient, "the gradient of the largest logit")?;
                let list = if gradient.iter().any(|&v| v != 0.0) {
                    vec![unit(&gradient)]
                } else {
                    Vec::new()
                };
                self.source = Source::Listed(list);
            }
            Source::Singular { count, search } => {
                require_room(count.saturating_add(OVERSAMPLING), field.output_len())?;
                let search = search.get_or_insert_with(|| {
                    LeadingSearch::new(*count, self.seed, field.output_len())
                });
                if let Some(leading) = search.step(field, cost)? {
                    self.source = Source::Listed(leading.right);
                }
            }
        }
        Ok(self.is_ready())
    }

    /// Direction 0; empty before it was used.
    pub fn first(&self) -> Arc<[f32]> {
        self.first.clone().unwrap_or_default()
    }

    /// Direction `index`; of a set that is ready and longer than `index`.
    pub fn get(&mut self, index: usize) -> Arc<[f32]> {
        let direction = self.find_or_make(index);
        if index == 0 {
            self.first = Some(Arc::clone(&direction));
        }
        direction
    }

    fn find_or_make(&mut self, index: usize) -> Arc<[f32]> {
        if let Source::Listed(list) = &self.source {
            return Arc::clone(&list[index]);
        }
        if let Some((_, direction)) = self.recent.iter().find(|(recent, _)| *recent == index) {
            return Arc::clone(direction);
        }
        let direction = sample(&self.family, self.seed, index, self.shape).unwrap_or_default();
        self.recent.truncate(RECENT_MAX - 1);
        self.recent.push_front((index, Arc::clone(&direction)));
        direction
    }

    /// Work that finds the directions, for a feature of `output_len` values.
    pub fn planned_cost(family: &DirectionFamily, output_len: usize) -> Cost {
        match family {
            DirectionFamily::TopLogitGradient => Cost {
                vjps: 1,
                ..Cost::default()
            },
            DirectionFamily::TopSingular { count } => {
                LeadingSearch::planned_cost(*count, output_len)
            }
            _ => Cost::default(),
        }
    }
}
