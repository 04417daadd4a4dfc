//! To and from the worker: commands that were sent, events that are taken in.

use std::sync::Arc;

use super::effort::forward_equivalents;
use super::message::{Content, Place};
use super::{Curve, Loaded, Refinement, Shown, State, index};
use crate::device::{DeviceChoice, DeviceInfo};
use crate::images::Photo;
use crate::recipe::WeightsKind;
use crate::report::ProfileRun;
use crate::worker::{Command, Event, Generation, Lane, SpectrumTask};
use crate::{Error, ErrorKind};

impl State {
    /// Commands to be sent, in this order; the answer of each goes to [`State::sent`] or
    /// [`State::refused`].
    pub fn take_commands(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.commands)
    }

    /// A command was sent under this number.
    pub fn sent(&mut self, command: &Command, generation: Generation) {
        let Some(lane) = command.lane() else { return };
        let state = &mut self.lanes[index(lane)];
        state.latest = Some(generation);
        state.busy = true;
        state.progress = None;
        if lane == Lane::Profile {
            self.refinement = Refinement::Running;
        }
        state.curves = match command {
            Command::Profile(recipes) | Command::Measure { recipes, .. } => (recipes.iter())
                .map(|recipe| (recipe.encoder.clone(), recipe.weights))
                .collect(),
            Command::Spectrum(tasks) => (tasks.iter())
                .map(SpectrumTask::recipe)
                .map(|recipe| (recipe.encoder.clone(), recipe.weights))
                .collect(),
            _ => Vec::new(),
        };
    }

    /// A command could not be sent.
    pub fn refused(&mut self, command: &Command, error: Error) {
        let place = command.lane().map_or(Place::Workspace, Place::from);
        self.tell(place, "", Content::Failure(error));
        if matches!(command, Command::Profile(_)) {
            self.refinement = Refinement::Stopped;
        }
        if matches!(command, Command::Spectrum(_)) {
            self.spectra_were_refused();
        }
    }

    /// Takes in what the worker says. Answers to superseded requests are dropped.
    pub fn apply(&mut self, event: Event) {
        match event {
            Event::DeviceReady { generation, device } => {
                if self.is_latest(Lane::Device, generation) {
                    self.device_ready(device);
                }
            }
            Event::ImageOpened { generation, photo } => {
                if self.is_latest(Lane::Image, generation) {
                    self.image_opened(photo);
                }
            }
            Event::EncoderReady {
                generation,
                lane,
                spec,
                weights,
                weights_id,
                prepared,
                top5,
                self_check,
                ..
            } => {
                if self.is_latest(lane, generation)
                    && let Some(curve) = curve_mut(&mut self.shown, &spec.name, weights)
                {
                    curve.loaded = Some(Loaded {
                        spec,
                        weights_id,
                        prepared,
                        top5,
                        self_check,
                        stale: false,
                    });
                }
            }
            Event::ProfileUpdated {
                generation,
                index,
                run,
            } => {
                if self.is_latest(Lane::Profile, generation) {
                    self.profile_updated(index, run);
                }
            }
            Event::Measured {
                generation,
                index: i,
                estimate,
            } => {
                let lane = &self.lanes[index(Lane::Measure)];
                if lane.latest == Some(generation)
                    && let Some((encoder, weights)) = lane.curves.get(i)
                    && let Some(curve) = curve_mut(&mut self.shown, encoder, *weights)
                {
                    curve.take_measured(estimate);
                }
            }
            Event::SpectrumFound {
                generation,
                index,
                run,
            } => {
                if let Some(shown) = self.asked_of(Lane::Spectrum, generation, index) {
                    let work = forward_equivalents(run.cost);
                    if work > 0.0 && run.elapsed_secs > 0.0 {
                        let pace = &mut shown.seconds_per_forward;
                        pace.get_or_insert(run.elapsed_secs / work);
                    }
                    let weights = run.recipe.weights;
                    shown.curve_mut(weights).spectrum = Some(run);
                }
            }
            Event::LeastUpdated {
                generation,
                index,
                run,
            } => {
                if let Some(shown) = self.asked_of(Lane::Spectrum, generation, index) {
                    let weights = run.recipe.weights;
                    shown.curve_mut(weights).least = Some(run);
                }
            }
            Event::Progress {
                generation,
                lane,
                progress,
            } => {
                if self.is_latest(lane, generation) {
                    self.lanes[index(lane)].progress = Some(progress);
                }
            }
            Event::EditFitted { generation, run } => {
                if self.is_latest(Lane::Edit, generation) {
                    self.edit_fitted(run);
                }
            }
            Event::EditSeen {
                generation,
                cut,
                rank,
                scores,
            } => {
                if self.is_latest(Lane::Edit, generation) {
                    self.edit.take_seen(cut, rank, scores);
                }
            }
            Event::EditCut { generation, run } => {
                if self.is_latest(Lane::Rank, generation) {
                    self.edit.shown = Some(run);
                }
            }
            Event::Inverted { generation, run } => {
                if self.is_latest(Lane::Invert, generation) {
                    self.edit.inverted = Some(run);
                }
            }
            Event::Memory(memory) => self.memory = memory,
            Event::Exported { files, .. } => {
                self.tell(Place::Workspace, "export", Content::Written(files));
            }
            Event::Finished { generation, lane } => {
                if self.is_latest(lane, generation) {
                    self.lanes[index(lane)].busy = false;
                    if lane == Lane::Spectrum {
                        self.spectra_are_finished();
                    }
                    if lane == Lane::Profile {
                        self.refinement = Refinement::Idle;
                        // The finished profiles know more than those that were measured by.
                        self.measure_again();
                    }
                }
            }
            Event::Failed {
                generation,
                lane,
                asked,
                error,
            } => {
                self.failed(generation, lane, asked, error);
            }
        }
    }

    fn device_ready(&mut self, device: DeviceInfo) {
        self.lanes[index(Lane::Device)].busy = false;
        let changed = self.device.as_ref().is_some_and(|known| *known != device);
        self.device = Some(device);
        if changed {
            // What the old device was found to be says nothing of the new one.
            for loaded in loaded_mut(&mut self.shown) {
                loaded.self_check = None;
            }
            self.outdate_edit();
            self.ask();
        }
    }

    fn image_opened(&mut self, photo: Arc<Photo>) {
        self.photo = Some(photo);
        self.source = self.opening.take();
        self.lanes[index(Lane::Image)].busy = false;
        self.outdate_loaded();
        self.ask();
    }

    fn profile_updated(&mut self, index_in_request: usize, run: Arc<ProfileRun>) {
        let lane = &self.lanes[index(Lane::Profile)];
        let Some((encoder, weights)) = lane.curves.get(index_in_request) else {
            return;
        };
        let mut shown = self.shown.iter_mut();
        let Some(shown) = shown.find(|shown| *shown.spec.name == **encoder) else {
            return;
        };
        let work = forward_equivalents(run.profile.cost);
        if work > 0.0 && run.elapsed_secs > 0.0 && *weights == WeightsKind::Trained {
            shown.seconds_per_forward = Some(run.elapsed_secs / work);
        }
        shown.curve_mut(*weights).take_run(run);
        self.measure_if_possible();
    }

    fn failed(&mut self, generation: Generation, lane: Lane, asked: String, error: Error) {
        let latest = self.is_latest(lane, generation);
        if latest {
            self.lanes[index(lane)].busy = false;
            if lane == Lane::Profile {
                self.refinement = Refinement::Stopped;
            }
            if lane == Lane::Spectrum {
                self.spectra_have_failed(&error);
            }
            if lane == Lane::Image {
                self.opening = None;
            }
            if lane == Lane::Device
                && let Some(device) = &self.device
            {
                // The session goes on with the device that still works.
                self.device_choice = if device.api == "flex" {
                    DeviceChoice::Cpu
                } else {
                    DeviceChoice::Adapter(device.name.clone())
                };
            }
        }
        if error.kind != ErrorKind::Cancelled && (latest || lane == Lane::Export) {
            self.tell(lane.into(), asked, Content::Failure(error));
        }
    }

    /// The encoder on screen that a part of the newest request of a lane is about.
    fn asked_of(&mut self, lane: Lane, generation: Generation, part: usize) -> Option<&mut Shown> {
        let lane = &self.lanes[index(lane)];
        let (encoder, _) = (lane.curves.get(part)).filter(|_| lane.latest == Some(generation))?;
        let mut shown = self.shown.iter_mut();
        shown.find(|shown| *shown.spec.name == **encoder)
    }

    /// What was loaded belongs to another photograph or encoder; it is shown, paler, until the new
    /// one is there.
    pub(super) fn outdate_loaded(&mut self) {
        for loaded in loaded_mut(&mut self.shown) {
            loaded.stale = true;
        }
    }

    /// Whether an event answers the newest request of its lane. The worker's first device was not
    /// asked for by number.
    fn is_latest(&self, lane: Lane, generation: Generation) -> bool {
        let latest = self.lane(lane).latest;
        latest == Some(generation) || (lane == Lane::Device && latest.is_none())
    }
}

/// The curve of an encoder on screen.
fn curve_mut<'a>(
    shown: &'a mut [Shown],
    encoder: &str,
    weights: WeightsKind,
) -> Option<&'a mut Curve> {
    let mut all = shown.iter_mut();
    let shown = all.find(|shown| *shown.spec.name == *encoder)?;
    Some(shown.curve_mut(weights))
}

/// Everything that was loaded for the encoders on screen.
fn loaded_mut(shown: &mut [Shown]) -> impl Iterator<Item = &mut Loaded> {
    let curves = shown.iter_mut().flat_map(Shown::curves_mut);
    curves.filter_map(|curve| curve.loaded.as_mut())
}
