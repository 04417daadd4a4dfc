//! An encoder at a photograph together with what was measured there.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::bench::Bench;
use super::engine::Subject;
use super::pictured::Pictured;
use crate::Result;
use crate::device::CPU;
use crate::geometry::profile::Cost;
use crate::geometry::{Profile, Profiler, ScaleEstimate};
use crate::images::{Background, Photo};
use crate::recipe::ProfileRecipe;
use crate::report::ProfileRun;

/// An encoder at a photograph, with the profile measured so far.
pub(super) struct Study {
    photo: Arc<Photo>,
    pub(super) subject: Subject,
    /// Direction made from pictures, for the families that need one.
    pictured: Option<Pictured>,
    profiler: Profiler,
    /// Whether a pair is known to have been measured.
    is_begun: bool,
    /// Time that went into the profile.
    spent: Duration,
}

impl Study {
    fn new(
        photo: Arc<Photo>,
        background: Background,
        recipe: &ProfileRecipe,
        subject: Subject,
    ) -> Result<Self> {
        let pictured = Pictured::of(recipe, &subject, background)?;
        let profiler = profiler(recipe, &subject, pictured.as_ref())?;
        Ok(Self {
            photo,
            subject,
            pictured,
            profiler,
            is_begun: false,
            spent: Duration::ZERO,
        })
    }

    /// Begins anew where the recipe has other scales than those measured so far.
    pub(super) fn use_scales_of(&mut self, recipe: &ProfileRecipe) -> Result<()> {
        if self.recipe().etas_l2 != recipe.etas_l2 {
            self.profiler = profiler(recipe, &self.subject, self.pictured.as_ref())?;
            self.is_begun = false;
            self.spent = Duration::ZERO;
        }
        Ok(())
    }

    /// What is computed.
    pub(super) fn recipe(&self) -> &ProfileRecipe {
        self.profiler.recipe()
    }

    /// Whether this is the study of a photograph and a recipe, scales apart.
    pub(super) fn fits(&self, photo: &Arc<Photo>, recipe: &ProfileRecipe) -> bool {
        let etas_l2 = self.recipe().etas_l2.clone();
        self.shows(photo)
            && *self.recipe()
                == ProfileRecipe {
                    etas_l2,
                    ..recipe.clone()
                }
    }

    /// Whether this study looks at the same feature of the photograph as a recipe does, whatever its directions.
    pub(super) fn has_feature_of(&self, photo: &Arc<Photo>, recipe: &ProfileRecipe) -> bool {
        let own = self.recipe();
        self.shows(photo)
            && (&own.encoder, own.weights) == (&recipe.encoder, recipe.weights)
            && (&own.readout, own.dither_seed) == (&recipe.readout, recipe.dither_seed)
    }

    /// Whether this is a study of a photograph.
    pub(super) fn shows(&self, photo: &Arc<Photo>) -> bool {
        Arc::ptr_eq(&self.photo, photo) || self.photo == *photo
    }

    /// Most directions at a scale, antipodes counted.
    pub(super) fn directions_max(&self) -> usize {
        2 * self.profiler.pairs_max()
    }

    /// Does one step of the profile; true once it is complete.
    pub(super) fn grow(&mut self) -> Result<bool> {
        let started = Instant::now();
        let complete = self.profiler.step(self.subject.field.as_mut());
        self.spent += started.elapsed();
        complete
    }

    /// r at one magnitude, from the first pairs of the same directions. Cheap once the profile has
    /// its first pair.
    pub(super) fn measure(&mut self, eta_l2: f64, pairs: usize) -> Result<ScaleEstimate> {
        self.profiler
            .measure(self.subject.field.as_mut(), eta_l2, pairs)
    }

    /// The profile of now.
    pub(super) fn profile(&self) -> Profile {
        self.profiler.snapshot()
    }

    /// Whether a pair of directions was measured.
    pub(super) fn has_first_pair(&mut self) -> bool {
        self.is_begun = self.is_begun || self.profiler.snapshot().pairs > 0;
        self.is_begun
    }

    /// Time to the end of `profile`, the one of now, at its pace so far; an upper bound where a stop
    /// rule may end it earlier. `None` before there was any work.
    pub(super) fn remaining(&self, profile: &Profile) -> Option<Duration> {
        let passes = |cost: Cost| cost.forwards + cost.jvps + cost.vjps;
        let (left, done) = (passes(self.profiler.remaining()?), passes(profile.cost));
        (done > 0).then(|| self.spent.mul_f64(left as f64 / done as f64))
    }

    /// The profile with what it was made from.
    pub(super) fn run(&self, profile: Profile, device: &str) -> ProfileRun {
        let mut image_steps = self.photo.treatment.clone();
        image_steps.push(self.subject.prepared.steps.clone());
        ProfileRun {
            image: self.photo.name.clone(),
            image_sha256: self.photo.sha256.clone(),
            image_steps,
            encoder_title: self.subject.spec.title.to_string(),
            weights_id: self.subject.weights_id.clone(),
            device: device.to_owned(),
            recipe: self.recipe().clone(),
            direction_steps: (self.pictured.as_ref())
                .map(|pictured| pictured.steps.clone())
                .unwrap_or_default(),
            profile: Arc::new(profile),
            elapsed_secs: self.spent.as_secs_f64(),
        }
    }
}

/// A profile that is not begun, of images as the encoder sees them.
fn profiler(
    recipe: &ProfileRecipe,
    subject: &Subject,
    pictured: Option<&Pictured>,
) -> Result<Profiler> {
    let side = subject.prepared.side_px;
    let profiler = Profiler::new(recipe.clone(), (3, side, side))?;
    match pictured {
        Some(pictured) => profiler.with_directions(vec![Arc::clone(&pictured.direction)]),
        None => Ok(profiler),
    }
}

/// The way to a study: load the encoder, check it, prepare the photograph. One step each.
pub(super) struct Approach {
    photo: Arc<Photo>,
    recipe: ProfileRecipe,
    next: Stage,
}

#[derive(Clone, Copy)]
enum Stage {
    Load,
    Check,
    Prepare,
}

impl Approach {
    pub(super) fn new(photo: Arc<Photo>, recipe: ProfileRecipe) -> Self {
        Self {
            photo,
            recipe,
            next: Stage::Load,
        }
    }

    /// What the next step does, for people.
    pub(super) fn stage(&self) -> &'static str {
        match self.next {
            Stage::Load => "reading weights",
            Stage::Check => "checking the device against the CPU",
            Stage::Prepare => "preparing the photograph",
        }
    }

    /// Takes one step; the study once it is there.
    pub(super) fn step(&mut self, bench: &mut Bench) -> Result<Option<Rc<RefCell<Study>>>> {
        if let Some(study) = bench.known_study(&self.photo, &self.recipe) {
            return Ok(Some(study));
        }
        let ProfileRecipe {
            encoder, weights, ..
        } = &self.recipe;
        match self.next {
            Stage::Load => {
                bench.load(encoder, *weights)?;
                let is_cpu = bench
                    .device
                    .as_ref()
                    .is_some_and(|device| device.name == CPU);
                self.next = if is_cpu { Stage::Prepare } else { Stage::Check };
                Ok(None)
            }
            Stage::Check => {
                bench.engine.self_check(encoder, *weights)?;
                self.next = Stage::Prepare;
                Ok(None)
            }
            Stage::Prepare => {
                let subject = bench.engine.prepare(&self.photo, &self.recipe)?;
                let study = Study::new(
                    Arc::clone(&self.photo),
                    bench.background,
                    &self.recipe,
                    subject,
                )?;
                Ok(Some(bench.keep_study(study)))
            }
        }
    }
}
