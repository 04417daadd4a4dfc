//! Response profiles of the current photograph: one curve for each recipe, all growing together.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::bench::Bench;
use super::command::{Generation, Lane};
use super::engine::no_device;
use super::event::Event;
use super::jobs::{Job, Step, Teller};
use super::outbox::Outbox;
use super::study::{Approach, Study};
use crate::geometry::Profile;
use crate::recipe::{ProfileRecipe, WeightsKind};
use crate::{Error, ErrorKind, Result};

/// Shortest time between two updates of a curve: ten a second look continuous and leave the window
/// time to draw.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// Grows the curves of one request.
pub(super) struct ProfileJob {
    generation: Generation,
    recipes: Vec<ProfileRecipe>,
    /// Trained ones first; empty before the first step.
    curves: Vec<Curve>,
    /// Place in `curves` of the one that grew last.
    last: usize,
    teller: Teller,
}

/// One curve.
struct Curve {
    /// Place of its recipe in the request.
    index: usize,
    state: State,
    /// When it was sent last; `None` before it had a value at every scale.
    shown: Option<Instant>,
    fraction: f64,
    remaining: Option<Duration>,
}

enum State {
    Approaching(Approach),
    Growing(Rc<RefCell<Study>>),
    Complete,
}

/// The photograph and the device that work on a profile needs.
///
/// # Errors
/// Where there is none.
pub(super) fn photo_and_device(
    bench: &Bench,
    asked: &str,
) -> Result<(Arc<crate::images::Photo>, String)> {
    let Some(device) = &bench.device else {
        return Err(no_device(asked));
    };
    let Some(photo) = &bench.photo else {
        return Err(Error::new(
            ErrorKind::Request,
            asked,
            "no photograph is open",
            "Open a photograph first",
        ));
    };
    Ok((Arc::clone(photo), device.name.clone()))
}

/// `encoder (trained), encoder (random)`, for people.
pub(super) fn list(recipes: &[ProfileRecipe]) -> String {
    let names: Vec<_> = recipes
        .iter()
        .map(|r| format!("{} ({})", r.encoder, r.weights.name()))
        .collect();
    names.join(", ")
}

impl ProfileJob {
    pub(super) fn new(generation: Generation, recipes: Vec<ProfileRecipe>) -> Self {
        let teller = Teller::new(generation, Lane::Profile);
        Self {
            generation,
            recipes,
            curves: Vec::new(),
            last: 0,
            teller,
        }
    }

    /// Which curve takes the next step: each in order up to its first drawing, then all in turn.
    fn next_curve(&self) -> Option<usize> {
        let waiting = |place: &usize| !matches!(self.curves[*place].state, State::Complete);
        let count = self.curves.len();
        let unseen = (0..count)
            .filter(waiting)
            .find(|place| self.curves[*place].shown.is_none());
        unseen.or_else(|| (1..=count).map(|i| (self.last + i) % count).find(waiting))
    }

    fn step_curve(
        &mut self,
        place: usize,
        device: &str,
        bench: &mut Bench,
        outbox: &mut Outbox,
    ) -> Result<()> {
        let Self {
            generation,
            recipes,
            curves,
            teller,
            ..
        } = self;
        let overall = curves.iter().map(|c| c.fraction).sum::<f64>() / curves.len() as f64;
        let curve = &mut curves[place];
        match &mut curve.state {
            State::Approaching(approach) => {
                teller.announce(outbox, approach.stage(), overall);
                if let Some(study) = approach.step(bench)? {
                    study.borrow_mut().use_scales_of(&recipes[curve.index])?;
                    let request = (*generation, Lane::Profile);
                    outbox.send(encoder_ready(request, curve.index, &study.borrow()));
                    curve.state = State::Growing(study);
                }
            }
            State::Growing(study) => {
                let study = Rc::clone(study);
                let mut study = study.borrow_mut();
                let complete = study.grow()?;
                if complete {
                    curve.state = State::Complete;
                }
                if complete || curve.shown.is_none_or(|at| at.elapsed() >= UPDATE_INTERVAL) {
                    let profile = study.profile();
                    curve.fraction = profile.fraction;
                    curve.remaining = study.remaining(&profile);
                    let stage = describe(&profile, study.directions_max());
                    if complete || profile.scales.iter().all(|scale| scale.directions > 0) {
                        curve.shown = Some(Instant::now());
                        let run = Arc::new(study.run(profile, device));
                        let (generation, index) = (*generation, curve.index);
                        outbox.send(Event::ProfileUpdated {
                            generation,
                            index,
                            run,
                        });
                    }
                    self.tell_growth(stage, outbox);
                }
            }
            State::Complete => {}
        }
        Ok(())
    }

    fn tell_growth(&mut self, stage: String, outbox: &mut Outbox) {
        let curves = &self.curves;
        let overall = curves.iter().map(|c| c.fraction).sum::<f64>() / curves.len() as f64;
        // A curve without its own estimate is taken to cost what the first one does.
        let first = curves.iter().find_map(|c| c.remaining);
        let remaining =
            first.map(|first| curves.iter().map(|c| c.remaining.unwrap_or(first)).sum());
        self.teller.tell(outbox, stage, overall, remaining);
    }
}

impl Job for ProfileJob {
    fn asked(&self) -> String {
        format!("response profile of {}", list(&self.recipes))
    }

    fn step(&mut self, bench: &mut Bench, outbox: &mut Outbox) -> Result<Step> {
        let (photo, device) = photo_and_device(bench, &self.asked())?;
        if self.curves.is_empty() {
            bench.use_for(&self.recipes);
            self.curves = (self.recipes.iter().enumerate())
                .map(|(index, recipe)| Curve {
                    index,
                    state: State::Approaching(Approach::new(Arc::clone(&photo), recipe.clone())),
                    shown: None,
                    fraction: 0.0,
                    remaining: None,
                })
                .collect();
            let is_twin = |curve: &Curve| self.recipes[curve.index].weights == WeightsKind::Random;
            self.curves.sort_by_key(is_twin);
        }
        let Some(place) = self.next_curve() else {
            return Ok(Step::Done);
        };
        self.step_curve(place, &device, bench, outbox)?;
        self.last = place;
        Ok(Step::More)
    }
}

/// What is said of a request, by number and lane, once the encoder of its recipe `index` is there.
pub(super) fn encoder_ready(
    (generation, lane): (Generation, Lane),
    index: usize,
    study: &Study,
) -> Event {
    let subject = &study.subject;
    Event::EncoderReady {
        generation,
        lane,
        index,
        spec: Arc::clone(&subject.spec),
        weights: study.recipe().weights,
        weights_id: subject.weights_id.clone(),
        prepared: Arc::clone(&subject.prepared),
        top5: subject.top5.clone(),
        self_check: subject.self_check,
    }
}

/// `96 of 128 directions · ± 3 %`; the error is the largest of the reliable scales.
fn describe(profile: &Profile, directions_max: usize) -> String {
    let measured = 2 * profile.pairs;
    if measured == 0 {
        return "finding the first directions".to_owned();
    }
    let directions = format!("{measured} of {directions_max} directions");
    let errors = profile
        .scales
        .iter()
        .filter(|s| s.reliable)
        .map(|s| 100.0 * s.r_se / s.r);
    match errors.filter(|e| e.is_finite()).reduce(f64::max) {
        Some(percent) if percent < 1.0 => format!("{directions} · ± {percent:.1} %"),
        Some(percent) => format!("{directions} · ± {percent:.0} %"),
        None => directions,
    }
}
