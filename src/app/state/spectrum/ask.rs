//! What is asked for: a function of what is wanted and what is known.

use super::super::{Curve, Refinement, Seen, State};
use super::Selected;
use crate::geometry::spectrum::{Bounds, SpectrumMethod};
use crate::recipe::{SpectrumRecipe, WeightsKind};
use crate::report::SpectrumRun;
use crate::worker::{Command, Lane, LeastRun, SpectrumTask};
use crate::{Error, ErrorKind};

/// Everything beside the recipe on which an answer depends.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Conditions {
    image: String,
    image_sha256: String,
    device: String,
}

/// What is to be known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Question {
    conditions: Conditions,
    recipes: Vec<SpectrumRecipe>,
    /// Of whose Jacobian the least direction is wanted.
    least: Option<SpectrumRecipe>,
}

impl State {
    /// With the workspace in front: asks for what is wanted, on screen and not known, whenever the question has changed. Work that is still wanted is not asked for again but goes on, and the rest follows it.
    pub(in crate::app::state) fn want_spectra(&mut self) {
        let Some(question) = self.question() else {
            return;
        };
        if self.spectrum.asked.as_ref() == Some(&question) {
            return;
        }
        let pending = self.pending(&question);
        let running = self.running(&question.conditions);
        self.spectrum.asked = Some(question.clone());
        if !running.is_empty() && running.iter().all(|task| pending.contains(task)) {
            return;
        }
        if pending.is_empty() {
            self.stop_spectra(Refinement::Idle);
            return;
        }
        if self.spectrum.refinement == Refinement::Paused {
            self.commands.push(Command::Resume(Lane::Spectrum));
        }
        self.commands
            .retain(|command| !matches!(command, Command::Spectrum(_)));
        self.spectrum.requested = Some((question.conditions, pending.clone()));
        self.spectrum.refinement = Refinement::Running;
        self.commands.push(Command::Spectrum(pending));
    }

    /// The user has stopped all work.
    pub(in crate::app::state) fn spectra_were_stopped(&mut self) {
        let refinement = &mut self.spectrum.refinement;
        if matches!(refinement, Refinement::Running | Refinement::Paused) {
            *refinement = Refinement::Stopped;
        }
    }

    /// The request was refused by the worker.
    pub(in crate::app::state) fn spectra_were_refused(&mut self) {
        self.spectrum.refinement = Refinement::Stopped;
    }

    /// The newest request is answered. What it was not asked for, because something it found was needed first,
    /// is asked for now.
    pub(in crate::app::state) fn spectra_are_finished(&mut self) {
        self.spectrum.refinement = Refinement::Idle;
        let requested = self.spectrum.requested.take();
        let Some(question) = &self.spectrum.asked else {
            return;
        };
        let pending = self.pending(question);
        let was_asked = |task: &SpectrumTask| {
            (requested.iter()).any(|(conditions, tasks)| {
                *conditions == question.conditions && tasks.contains(task)
            })
        };
        if !pending.iter().all(was_asked) {
            self.spectrum.asked = None;
        }
    }

    /// The newest request has failed, or was cancelled: by the reader, or because the photograph was opened
    /// again, after which the same question is asked anew.
    pub(in crate::app::state) fn spectra_have_failed(&mut self, error: &Error) {
        self.spectrum.requested = None;
        if error.kind != ErrorKind::Cancelled {
            self.spectrum.refinement = Refinement::Stopped;
        } else if self.spectrum.refinement != Refinement::Stopped {
            self.spectrum.refinement = Refinement::Idle;
            self.spectrum.asked = None;
        }
    }

    pub(super) fn stop_spectra(&mut self, refinement: Refinement) {
        self.commands
            .retain(|command| !matches!(command, Command::Spectrum(_)));
        if self.lane(Lane::Spectrum).busy {
            self.commands.push(Command::Cancel(Lane::Spectrum));
        }
        self.spectrum.requested = None;
        self.spectrum.refinement = refinement;
    }

    pub(super) fn conditions(&self) -> Option<Conditions> {
        let photo = self.photo.as_ref()?;
        Some(Conditions {
            image: photo.name.clone(),
            image_sha256: photo.sha256.clone(),
            device: self.device.as_ref()?.name.clone(),
        })
    }

    fn question(&self) -> Option<Question> {
        let conditions = self.conditions()?;
        // Trained ones first, as curves of profiles come.
        let mut recipes: Vec<SpectrumRecipe> = self
            .curves()
            .filter(|seen| self.too_large(seen.shown).is_none())
            .filter_map(|seen| self.spectrum_recipe_of(seen.shown, seen.weights))
            .collect();
        recipes.sort_by_key(|recipe| recipe.weights == WeightsKind::Random);
        let seen = self.direction_curve();
        let least = (self.spectrum.selected == Selected::Least)
            .then(|| self.spectrum_recipe_of(seen.shown, seen.weights))
            .flatten();
        Some(Question {
            conditions,
            recipes,
            least,
        })
    }

    /// What is not known of a question and can be asked for now.
    fn pending(&self, question: &Question) -> Vec<SpectrumTask> {
        let curve = |recipe: &SpectrumRecipe| {
            let mut all = self.shown.iter();
            let shown = all.find(|shown| *shown.spec.name == *recipe.encoder)?;
            Some(shown.curve(recipe.weights))
        };
        let is_known = |recipe: &SpectrumRecipe| {
            curve(recipe).is_some_and(|curve| answers(curve, recipe, &question.conditions))
        };
        let least = question.least.as_ref().and_then(|recipe| {
            let curve = curve(recipe)?;
            let run = curve.spectrum.as_ref()?;
            let largest = largest(run)?;
            let is_found = (curve.least.as_ref()).is_some_and(|least| {
                least.steps >= least.steps_max
                    && is_of(least, recipe)
                    && question.conditions.are_those_of_least(least)
            });
            (is_known(recipe) && !is_found).then(|| SpectrumTask::Least {
                recipe: recipe.clone(),
                largest,
            })
        });
        let values = (question.recipes.iter())
            .filter(|recipe| !is_known(recipe))
            .map(|recipe| SpectrumTask::Values(recipe.clone()));
        least.into_iter().chain(values).collect()
    }

    /// What the newest request still works on, if it is about the same photograph on the same device.
    fn running(&self, conditions: &Conditions) -> Vec<SpectrumTask> {
        let is_under_way = matches!(
            self.spectrum.refinement,
            Refinement::Running | Refinement::Paused
        );
        let Some((known, tasks)) = self.spectrum.requested.as_ref().filter(|_| is_under_way) else {
            return Vec::new();
        };
        if known != conditions {
            return Vec::new();
        }
        let is_open = |task: &&SpectrumTask| match task {
            SpectrumTask::Least { .. } => true,
            SpectrumTask::Values(recipe) => {
                let mut all = self.shown.iter();
                let shown = all.find(|shown| *shown.spec.name == *recipe.encoder);
                !shown.is_some_and(|shown| answers(shown.curve(recipe.weights), recipe, conditions))
            }
        };
        tasks.iter().filter(is_open).cloned().collect()
    }

    /// Whether a spectrum is that of the wanted feature, photograph and device, by whatever method: then its
    /// directions are what is wanted.
    pub(super) fn is_of_feature(&self, run: &SpectrumRun, seen: &Seen<'_>) -> bool {
        let wanted = self.spectrum_recipe_of(seen.shown, seen.weights);
        (wanted.zip(self.conditions())).is_some_and(|(wanted, conditions)| {
            let wanted = SpectrumRecipe {
                method: run.recipe.method,
                seed: run.recipe.seed,
                ..wanted
            };
            run.recipe == wanted && conditions.are_those_of(run)
        })
    }

    pub(super) fn is_least_of(&self, least: &LeastRun, seen: &Seen<'_>) -> bool {
        let wanted = self.spectrum_recipe_of(seen.shown, seen.weights);
        (wanted.zip(self.conditions())).is_some_and(|(wanted, conditions)| {
            is_of(least, &wanted) && conditions.are_those_of_least(least)
        })
    }
}

impl Conditions {
    fn are_those_of(&self, run: &SpectrumRun) -> bool {
        (&self.image, &self.image_sha256, &self.device)
            == (&run.image, &run.image_sha256, &run.device)
    }

    fn are_those_of_least(&self, least: &LeastRun) -> bool {
        (&self.image, &self.image_sha256, &self.device)
            == (&least.image, &least.image_sha256, &least.device)
    }
}

/// The largest singular value, or a little above: a smaller one would keep the search from converging.
fn largest(run: &SpectrumRun) -> Option<f64> {
    let bound = match &run.spectrum.bounds {
        Bounds::Exact => 0.0,
        Bounds::Within(errors) => errors.first().copied().unwrap_or_default(),
    };
    let largest = run.spectrum.values.first()? + bound;
    // A Jacobian that is zero has no direction that is less than others.
    (largest > 0.0).then_some(largest)
}

/// Whether a curve's spectrum is what is wanted. An exact one does not depend on the seed.
pub(super) fn answers(curve: &Curve, wanted: &SpectrumRecipe, conditions: &Conditions) -> bool {
    let Some(run) = &curve.spectrum else {
        return false;
    };
    let seed = match wanted.method {
        SpectrumMethod::Exact { .. } => run.recipe.seed,
        SpectrumMethod::Leading { .. } => wanted.seed,
    };
    let wanted = SpectrumRecipe {
        seed,
        ..wanted.clone()
    };
    run.recipe == wanted && conditions.are_those_of(run)
}

/// Whether a least direction is that of a recipe, whatever its method.
fn is_of(least: &LeastRun, wanted: &SpectrumRecipe) -> bool {
    let method = wanted.method;
    SpectrumRecipe {
        method,
        ..least.recipe.clone()
    } == *wanted
}
