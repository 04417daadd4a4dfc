//! Singular spectra of the current photograph's Jacobians, and the directions that move a feature least.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::bench::Bench;
use super::command::{DIRECTIONS_KEPT, Generation, Lane, SpectrumTask};
use super::event::{Event, LeastRun};
use super::jobs::{Job, Step, Teller};
use super::outbox::Outbox;
use super::profile_job::{encoder_ready, photo_and_device};
use super::study::{Approach, Study};
use crate::Result;
use crate::geometry::Cost;
use crate::geometry::spectrum::bottom::STEPS;
use crate::geometry::spectrum::{
    BottomSearch, JacobianSpectrum, SpectrumEstimator, SpectrumMethod,
};
use crate::images::Photo;
use crate::recipe::{ProfileRecipe, SpectrumRecipe};
use crate::report::SpectrumRun;

/// Does the tasks of one request one after the other.
pub(super) struct SpectrumJob {
    generation: Generation,
    tasks: Vec<SpectrumTask>,
    /// Place of the task at hand.
    index: usize,
    state: State,
    teller: Teller,
}

enum State {
    /// On the way to the field.
    Approaching(Option<Approach>),
    Working(Work),
}

/// A task in progress.
struct Work {
    study: Rc<RefCell<Study>>,
    search: Search,
    cost: Cost,
    spent: Duration,
}

enum Search {
    Values(SpectrumEstimator),
    Least(BottomSearch),
}

/// How a spectrum is found with directions beside it. What is asked for does not name them: they do not change
/// a value.
fn with_directions(method: SpectrumMethod) -> SpectrumMethod {
    match method {
        SpectrumMethod::Exact { .. } => SpectrumMethod::Exact {
            vectors: DIRECTIONS_KEPT,
        },
        leading @ SpectrumMethod::Leading { .. } => leading,
    }
}

/// The profile whose study has the field of a spectrum.
fn profile_of(recipe: &SpectrumRecipe) -> ProfileRecipe {
    // Its scales are never measured.
    let side_px = 224;
    ProfileRecipe {
        readout: recipe.readout.clone(),
        dither_seed: recipe.dither_seed,
        ..ProfileRecipe::interactive(&recipe.encoder, recipe.weights, side_px)
    }
}

/// Share of a request of `count` tasks that is done, with `share` of the one at `index`.
fn overall(index: usize, count: usize, share: f64) -> f64 {
    (index as f64 + share) / count.max(1) as f64
}

fn products(cost: Cost) -> usize {
    cost.forwards + cost.jvps + cost.vjps
}

impl Work {
    fn new(task: &SpectrumTask, study: Rc<RefCell<Study>>) -> Result<Self> {
        let search = {
            let field = &study.borrow().subject.field;
            let (output_len, input_len) = (field.output_len(), field.input_len());
            match task {
                SpectrumTask::Values(recipe) => {
                    let method = with_directions(recipe.method);
                    let seed = recipe.seed;
                    Search::Values(SpectrumEstimator::new(method, seed, output_len, input_len)?)
                }
                SpectrumTask::Least { recipe, largest } => {
                    Search::Least(BottomSearch::new(*largest, STEPS, recipe.seed, input_len))
                }
            }
        };
        Ok(Self {
            study,
            search,
            cost: Cost::default(),
            spent: Duration::ZERO,
        })
    }

    /// One batch of products; true at the end.
    fn step(&mut self) -> Result<bool> {
        let started = Instant::now();
        let mut study = self.study.borrow_mut();
        let field = study.subject.field.as_mut();
        let is_done = match &mut self.search {
            Search::Values(estimator) => estimator.step(field, &mut self.cost),
            Search::Least(search) => search.step(field, &mut self.cost),
        };
        self.spent += started.elapsed();
        is_done
    }

    /// How far it is: in words, the share that is done, and the time to the end at the pace so far.
    fn progress(&self, recipe: &SpectrumRecipe) -> (String, f64, Option<Duration>) {
        let output_len = self.study.borrow().subject.field.output_len();
        let done = products(self.cost);
        let (stage, planned) = match &self.search {
            Search::Values(_) => {
                let planned = SpectrumEstimator::planned_cost(recipe.method, output_len);
                let is_rows = planned.jvps == 0;
                let planned = products(planned).max(1);
                let unit = if is_rows {
                    "rows of J"
                } else {
                    "products with J"
                };
                (format!("{done} of {planned} {unit}"), planned)
            }
            Search::Least(_) => {
                let step = done / 2;
                let stage = format!("step {step} of {} toward the least direction", STEPS + 1);
                (stage, 2 * (STEPS + 1))
            }
        };
        let share = (done as f64 / planned as f64).min(1.0);
        let left = planned.saturating_sub(done) as f64;
        let remaining = (done > 0).then(|| self.spent.mul_f64(left / done as f64));
        (stage, share, remaining)
    }

    fn spectrum_run(
        &self,
        recipe: &SpectrumRecipe,
        mut spectrum: JacobianSpectrum,
        photo: &Photo,
        device: &str,
    ) -> SpectrumRun {
        spectrum.top.truncate(DIRECTIONS_KEPT);
        let study = self.study.borrow();
        let subject = &study.subject;
        let mut image_steps = photo.treatment.clone();
        image_steps.push(subject.prepared.steps.clone());
        SpectrumRun {
            image: photo.name.clone(),
            image_sha256: photo.sha256.clone(),
            image_steps,
            encoder_title: subject.spec.title.to_string(),
            weights_id: subject.weights_id.clone(),
            device: device.to_owned(),
            recipe: recipe.clone(),
            readout: subject
                .spec
                .readout_name(&recipe.readout)
                .unwrap_or_default(),
            feature_len: subject.field.output_len(),
            input_len: subject.field.input_len(),
            spectrum,
            cost: self.cost,
            elapsed_secs: self.spent.as_secs_f64(),
        }
    }
}

impl SpectrumJob {
    pub(super) fn new(generation: Generation, tasks: Vec<SpectrumTask>) -> Self {
        Self {
            generation,
            tasks,
            index: 0,
            state: State::Approaching(None),
            teller: Teller::new(generation, Lane::Spectrum),
        }
    }

    /// Takes a step toward the field of a task; the work on it once the field is there.
    fn approach(
        &mut self,
        task: &SpectrumTask,
        photo: &Arc<Photo>,
        bench: &mut Bench,
        outbox: &mut Outbox,
    ) -> Result<Option<Work>> {
        let profile = profile_of(task.recipe());
        let known = bench.study_of_feature(photo, &profile);
        let study = match known {
            Some(study) => Some(study),
            None => {
                let overall = overall(self.index, self.tasks.len(), 0.0);
                let State::Approaching(approach) = &mut self.state else {
                    return Ok(None);
                };
                let approach = approach
                    .get_or_insert_with(|| Approach::new(Arc::clone(photo), profile.clone()));
                self.teller.announce(outbox, approach.stage(), overall);
                approach.step(bench)?
            }
        };
        let Some(study) = study else { return Ok(None) };
        let request = (self.generation, Lane::Spectrum);
        outbox.send(encoder_ready(request, self.index, &study.borrow()));
        Work::new(task, study).map(Some)
    }
}

impl Job for SpectrumJob {
    fn asked(&self) -> String {
        let names: Vec<_> = (self.tasks.iter())
            .map(SpectrumTask::recipe)
            .map(|recipe| format!("{} ({})", recipe.encoder, recipe.weights.name()))
            .collect();
        format!("singular spectrum of {}", names.join(", "))
    }

    fn step(&mut self, bench: &mut Bench, outbox: &mut Outbox) -> Result<Step> {
        let (photo, device) = photo_and_device(bench, &self.asked())?;
        let Some(task) = self.tasks.get(self.index).cloned() else {
            return Ok(Step::Done);
        };
        let recipe = task.recipe();
        let State::Working(work) = &mut self.state else {
            if let Some(work) = self.approach(&task, &photo, bench, outbox)? {
                self.state = State::Working(work);
            }
            return Ok(Step::More);
        };
        let is_done = work.step()?;
        let (generation, index) = (self.generation, self.index);
        match &work.search {
            Search::Values(estimator) => {
                if let Some(spectrum) = estimator.spectrum() {
                    let run = work.spectrum_run(recipe, spectrum.clone(), &photo, &device);
                    outbox.send(Event::SpectrumFound {
                        generation,
                        index,
                        run: Arc::new(run),
                    });
                }
            }
            Search::Least(search) => {
                if let Some(found) = search.found() {
                    let run = LeastRun {
                        image: photo.name.clone(),
                        image_sha256: photo.sha256.clone(),
                        device,
                        recipe: recipe.clone(),
                        found: found.clone(),
                        steps: work.cost.jvps,
                        steps_max: STEPS + 1,
                    };
                    outbox.send(Event::LeastUpdated {
                        generation,
                        index,
                        run: Arc::new(run),
                    });
                }
            }
        }
        let (stage, share, remaining) = work.progress(recipe);
        let overall = overall(index, self.tasks.len(), share);
        // The other tasks are taken to cost what this one does.
        let others = self.tasks.len() - self.index - 1;
        let spent = work.spent;
        let remaining = remaining.map(|time| time + (spent + time) * others as u32);
        self.teller.tell(outbox, stage, overall, remaining);
        if is_done {
            self.index += 1;
            self.state = State::Approaching(None);
        }
        Ok(Step::More)
    }
}
