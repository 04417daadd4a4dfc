//! The workspace of singular spectra: what is wanted of them, and what is asked for.
//!
//! Whether a spectrum that is known answers the question is not marked but seen from what it was made
//! from: photograph, device and recipe. What is asked for is therefore a function of the model, found anew
//! before commands leave; see [`State::ask_spectra`].

mod ask;

use std::sync::Arc;

use super::effort::forward_equivalents;
use super::{Refinement, Seen, Shown, State};
use crate::geometry::spectrum::{SpectrumEstimator, SpectrumMethod};
use crate::recipe::{SpectrumRecipe, WeightsKind};
use crate::report::SpectrumRun;
use crate::worker::{Command, DIRECTIONS_KEPT, Lane, SpectrumTask};
use ask::{Conditions, Question, answers};

/// Leading values at the start: as many as directions are kept, found in seconds (ours).
pub const LEADING_COUNT: usize = DIRECTIONS_KEPT;

/// Leading values that can be asked for.
pub const COUNT_RANGE: [usize; 2] = [1, 256];

/// Norm of the distortion at the start, as a multiple of the η that profiles start with: at 224 px an L2 norm
/// of 10, some 7 grey levels RMS, at which the leading directions are seen on any photograph (ours).
const AMPLITUDE_FACTOR: f64 = 10.0;

/// A direction in which the photograph is distorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selected {
    /// The right-singular vector of the singular value with this number, counted from 1.
    Index(usize),
    /// The direction that was found to move the feature least.
    Least,
}

/// What is wanted of spectra, and how they came to their present state.
#[derive(Clone, Debug)]
pub struct SpectrumState {
    /// All values or the leading ones.
    pub method: SpectrumMethod,
    /// The singular value that is marked, with its direction.
    pub selected: Selected,
    /// Whether the directions are those of the leading encoder or of its twin.
    pub weights: WeightsKind,
    /// L2 norm of the distortion.
    pub amplitude_l2: f64,
    /// How the spectra came to their present state; never [`Refinement::AwaitsStart`].
    pub refinement: Refinement,
    /// The question that was looked at last.
    asked: Option<Question>,
    /// What the newest request was for.
    requested: Option<(Conditions, Vec<SpectrumTask>)>,
}

/// A direction as it is shown.
#[derive(Clone, Debug)]
pub struct ShownDirection {
    /// Unit L2 norm; channel, row, column.
    pub vector: Arc<[f32]>,
    /// ‖Jv‖.
    pub gain: f64,
    /// Whether it answers an older question.
    pub stale: bool,
}

impl SpectrumState {
    pub(super) fn new(eta_default: f64) -> Self {
        Self {
            method: SpectrumMethod::Leading {
                count: LEADING_COUNT,
            },
            selected: Selected::Index(1),
            weights: WeightsKind::Trained,
            amplitude_l2: AMPLITUDE_FACTOR * eta_default,
            refinement: Refinement::Idle,
            asked: None,
            requested: None,
        }
    }
}

/// The direction of value `index`, counted from 1, if it was kept.
pub fn direction_at(run: &SpectrumRun, index: usize) -> Option<&Arc<[f32]>> {
    let spectrum = &run.spectrum;
    let place = index.checked_sub(1)?;
    let from_below = || {
        let place = spectrum.rank().checked_sub(index)?;
        spectrum.bottom.get(place)
    };
    spectrum.top.get(place).or_else(from_below)
}

impl State {
    // ---- What is known -------------------------------------------------------------------------

    /// What is wanted of an encoder on screen; `None` where it has no such readout.
    pub fn spectrum_recipe_of(
        &self,
        shown: &Shown,
        weights: WeightsKind,
    ) -> Option<SpectrumRecipe> {
        let profile = self.recipe_of(shown)?;
        Some(SpectrumRecipe {
            encoder: profile.encoder,
            weights,
            readout: profile.readout,
            method: self.spectrum.method,
            seed: profile.seed,
            dither_seed: profile.dither_seed,
        })
    }

    /// What is wanted of all encoders on screen that have the readout, trained.
    pub fn spectrum_recipes(&self) -> Vec<SpectrumRecipe> {
        let shown = self.shown.iter();
        shown
            .filter_map(|shown| self.spectrum_recipe_of(shown, WeightsKind::Trained))
            .collect()
    }

    /// Why the wanted spectrum of an encoder cannot be had, if it cannot; two numbers: values of the feature and
    /// of the input.
    pub fn too_large(&self, shown: &Shown) -> Option<[usize; 2]> {
        let is_exact = matches!(self.spectrum.method, SpectrumMethod::Exact { .. });
        self.too_large_for_all(shown).filter(|_| is_exact)
    }

    /// Whether the whole spectrum of an encoder on screen cannot be had.
    pub fn is_exact_refused(&self) -> bool {
        (self.shown.iter()).any(|shown| self.too_large_for_all(shown).is_some())
    }

    fn too_large_for_all(&self, shown: &Shown) -> Option<[usize; 2]> {
        let recipe = self.recipe_of(shown)?;
        let output_len = shown.spec.readout_len(&recipe.readout).ok()?;
        let fits = SpectrumMethod::is_exact_affordable(output_len, shown.input_len());
        (!fits).then_some([output_len, shown.input_len()])
    }

    /// Whether the spectrum of a curve answers another question than the one now asked.
    pub fn is_spectrum_stale(&self, seen: &Seen<'_>) -> bool {
        let wanted = self.spectrum_recipe_of(seen.shown, seen.weights);
        let conditions = self.conditions();
        seen.curve.spectrum.is_some()
            && !(wanted.zip(conditions))
                .is_some_and(|(wanted, conditions)| answers(seen.curve, &wanted, &conditions))
    }

    /// The curve whose directions are shown.
    pub fn direction_curve(&self) -> Seen<'_> {
        let weights = if self.twin_shown {
            self.spectrum.weights
        } else {
            WeightsKind::Trained
        };
        let shown = self.lead();
        Seen {
            shown,
            weights,
            curve: shown.curve(weights),
        }
    }

    /// The selected direction, once it is known.
    pub fn shown_direction(&self) -> Option<ShownDirection> {
        let seen = self.direction_curve();
        match self.spectrum.selected {
            Selected::Index(index) => {
                let run = seen.curve.spectrum.as_ref()?;
                Some(ShownDirection {
                    vector: Arc::clone(direction_at(run, index)?),
                    gain: *run.spectrum.values.get(index - 1)?,
                    stale: !self.is_of_feature(run, &seen),
                })
            }
            Selected::Least => {
                let least = seen.curve.least.as_ref()?;
                Some(ShownDirection {
                    vector: Arc::clone(&least.found.direction),
                    gain: least.found.gain,
                    stale: !self.is_least_of(least, &seen),
                })
            }
        }
    }

    /// Largest number of a singular value on screen; 1 before there is any.
    pub fn index_max(&self) -> usize {
        let runs = self.curves().filter_map(|seen| seen.curve.spectrum.clone());
        runs.map(|run| run.spectrum.rank()).fold(1, usize::max)
    }

    /// Estimated seconds for the spectra on screen by a method; `None` until an encoder's speed was seen on this
    /// device.
    pub fn spectrum_secs(&self, method: SpectrumMethod) -> Option<f64> {
        let curves = if self.twin_shown { 2.0 } else { 1.0 };
        let secs = self.shown.iter().map(|shown| {
            let recipe = self.recipe_of(shown)?;
            let output_len = shown.spec.readout_len(&recipe.readout).ok()?;
            let cost = SpectrumEstimator::planned_cost(method, output_len);
            Some(shown.seconds_per_forward? * curves * forward_equivalents(cost))
        });
        secs.sum()
    }

    /// Spectra that can be written now.
    pub fn exportable_spectra(&self) -> Vec<Arc<SpectrumRun>> {
        let curves = self.curves();
        curves
            .filter_map(|seen| seen.curve.spectrum.clone())
            .collect()
    }

    // ---- What is wanted ------------------------------------------------------------------------

    /// The workspace goes behind another: what is under way stops.
    pub(super) fn leave_spectra(&mut self) {
        self.stop_spectra(Refinement::Idle);
        self.spectrum.asked = None;
    }

    /// Chooses all values or the leading ones.
    pub fn choose_spectrum_method(&mut self, method: SpectrumMethod) {
        let [least, most] = COUNT_RANGE;
        self.spectrum.method = match method {
            SpectrumMethod::Leading { count } => SpectrumMethod::Leading {
                count: count.clamp(least, most),
            },
            // How many directions are kept is the worker's to say.
            SpectrumMethod::Exact { .. } => SpectrumMethod::Exact { vectors: 0 },
        };
    }

    /// Marks a singular value, or the least direction, which is then sought.
    pub fn select(&mut self, selected: Selected) {
        self.spectrum.selected = match selected {
            Selected::Index(index) => Selected::Index(index.clamp(1, self.index_max())),
            Selected::Least => Selected::Least,
        };
    }

    /// Marks the singular value `steps` further down the spectrum; from the least direction the way back leads to
    /// the last value.
    pub fn step_index(&mut self, steps: isize) {
        let index = match self.spectrum.selected {
            Selected::Index(index) => index.saturating_add_signed(steps),
            Selected::Least if steps < 0 => self.index_max(),
            Selected::Least => return,
        };
        self.select(Selected::Index(index));
    }

    /// Shows the directions of the leading encoder or of its twin.
    pub fn show_directions_of(&mut self, weights: WeightsKind) {
        self.spectrum.weights = weights;
    }

    /// Norm of the distortion after a double click.
    pub fn amplitude_default(&self) -> f64 {
        AMPLITUDE_FACTOR * self.eta_default()
    }

    /// Changes the norm of the distortion, within the range of η.
    pub fn set_amplitude(&mut self, amplitude_l2: f64) {
        let [low, high] = self.eta_range();
        if amplitude_l2.is_finite() && amplitude_l2 > 0.0 {
            self.spectrum.amplitude_l2 = amplitude_l2.clamp(low, high);
        }
    }

    /// Holds the search, lets it go on, or starts anew what was stopped.
    pub fn toggle_spectrum_pause(&mut self) {
        match self.spectrum.refinement {
            Refinement::Running => {
                self.spectrum.refinement = Refinement::Paused;
                self.commands.push(Command::Pause(Lane::Spectrum));
            }
            Refinement::Paused => {
                self.spectrum.refinement = Refinement::Running;
                self.commands.push(Command::Resume(Lane::Spectrum));
            }
            Refinement::Stopped => {
                self.spectrum.refinement = Refinement::Idle;
                self.spectrum.asked = None;
            }
            Refinement::Idle | Refinement::AwaitsStart => {}
        }
    }
}
