//! What the reader wants: wishes change the model and leave as commands.

use std::path::PathBuf;

use super::message::{Content, Message, Place};
use super::shown::readout_like;
use super::{Curve, DITHER_SEED, Refinement, SHOWN_MAX, Seen, Shown, State};
use crate::app::settings::Workspace;
use crate::device::DeviceChoice;
use crate::encoders::Readout;
use crate::geometry::directions::DirectionFamily;
use crate::images::Background;
use crate::recipe::{Preset, ProfileRecipe, WeightsKind, paper_etas};
use crate::worker::{Command, Content as Written, Export, ExportFormat, ImageSource, Lane};

impl State {
    /// Opens a photograph; the current one stays until that has succeeded.
    pub fn open(&mut self, source: ImageSource) {
        self.opening = Some(source.clone());
        self.commands.push(Command::OpenImage {
            source,
            background: Background::default(),
        });
    }

    /// Chooses the encoder that leads, in place of the one that led; one that is on screen already
    /// goes first. The readout becomes the pooled feature, which every encoder has.
    pub fn choose_encoder(&mut self, name: &str) {
        if self.shows(name) {
            return self.lead_by(name);
        }
        let Some(spec) = self.known(name) else { return };
        let scale = spec.side_px as f64 / self.spec().side_px as f64;
        let slot = self.lead().slot;
        // What the old one showed stays, paler, until the new one is there.
        let old = std::mem::replace(&mut self.shown[0], Shown::new(spec, slot));
        self.shown[0].trained = old.trained;
        self.shown[0].twin = old.twin;
        self.recipe.encoder = spec.name.to_string();
        self.recipe.readout = Readout::Pooled;
        self.recipe.etas_l2 = paper_etas(spec.side_px);
        self.eta_l2 *= scale;
        self.spectrum.amplitude_l2 *= scale;
        self.outdate_loaded();
        self.ask();
    }

    /// Puts an encoder on screen beside the others; beyond [`SHOWN_MAX`] none is added.
    pub fn add_encoder(&mut self, name: &str) {
        let Some(spec) = self.known(name) else { return };
        if self.shows(name) || self.shown.len() >= SHOWN_MAX {
            return;
        }
        let is_free = |slot: &usize| self.shown.iter().all(|shown| shown.slot != *slot);
        let slot = (0..SHOWN_MAX).find(is_free).unwrap_or_default();
        self.shown.push(Shown::new(spec, slot));
        self.request_unless_awaited();
    }

    /// Takes an encoder off the screen, unless it is the last one.
    pub fn remove_encoder(&mut self, name: &str) {
        if !self.is_comparing() || !self.shows(name) {
            return;
        }
        if *self.spec().name == *name {
            let next = self.shown[1].spec.name.clone();
            self.lead_by(&next);
        }
        self.shown.retain(|shown| *shown.spec.name != *name);
        let [low, high] = self.eta_range();
        self.eta_l2 = self.eta_l2.clamp(low, high);
        self.set_amplitude(self.spectrum.amplitude_l2);
        self.request_unless_awaited();
    }

    /// Lets an encoder on screen lead. The question stays, unless it has no such readout.
    pub fn lead_by(&mut self, name: &str) {
        let Some(place) = (self.shown.iter()).position(|shown| *shown.spec.name == *name) else {
            return;
        };
        if place == 0 {
            return;
        }
        let readout = readout_like(&self.recipe.readout, self.spec(), self.shown[place].spec);
        let shown = self.shown.remove(place);
        self.recipe.encoder = shown.spec.name.to_string();
        self.recipe.etas_l2 = paper_etas(shown.spec.side_px);
        self.shown.insert(0, shown);
        match readout {
            Some(readout) => self.recipe.readout = readout,
            None => self.choose_readout(Readout::Pooled),
        }
    }

    fn known(&self, name: &str) -> Option<&'static crate::encoders::EncoderSpec> {
        let mut known = self.catalogue.iter().copied();
        known.find(|spec| *spec.name == *name)
    }

    /// Lets the weights in memory take so many bytes.
    pub fn set_budget(&mut self, bytes: u64) {
        self.memory.budget_bytes = bytes;
        self.commands.push(Command::SetBudget(bytes));
    }

    /// Chooses the feature Φ.
    pub fn choose_readout(&mut self, readout: Readout) {
        self.change(|recipe| recipe.readout = readout);
    }

    /// Chooses the distribution of the directions.
    pub fn choose_family(&mut self, family: DirectionFamily) {
        self.change(|recipe| recipe.family = family);
    }

    /// Sets the seed of the directions.
    pub fn set_seed(&mut self, seed: u64) {
        self.change(|recipe| recipe.seed = seed);
    }

    /// Switches the dither of saturated pixels on or off.
    pub fn set_dither(&mut self, on: bool) {
        self.change(|recipe| recipe.dither_seed = on.then_some(DITHER_SEED));
    }

    /// Chooses the sampling. The interactive preset starts at once; the paper's waits for
    /// [`State::start`].
    pub fn choose_preset(&mut self, preset: Preset) {
        if preset == self.preset {
            return;
        }
        self.preset = preset;
        preset.apply(&mut self.recipe);
        self.cancel();
        match preset {
            Preset::Interactive => self.ask(),
            // What is shown still answers the same question, only less exactly.
            Preset::Paper => self.refinement = Refinement::AwaitsStart,
        }
    }

    /// Starts what waits for it, or lets what was stopped go on: the worker remembers how far it was.
    pub fn start(&mut self) {
        if self.refinement == Refinement::AwaitsStart {
            self.make_stale();
        }
        self.request();
    }

    /// Shows or hides the random twin.
    pub fn show_twin(&mut self, shown: bool) {
        if shown == self.twin_shown {
            return;
        }
        self.twin_shown = shown;
        self.request_unless_awaited();
    }

    /// Asks for the curves that are now on screen. The worker goes on with those that stay where they
    /// were, and has not forgotten those that come back.
    fn request_unless_awaited(&mut self) {
        if self.refinement != Refinement::AwaitsStart {
            self.request();
        }
    }

    /// Chooses the compute device; results are computed anew on it.
    pub fn choose_device(&mut self, choice: DeviceChoice) {
        if choice == self.device_choice {
            return;
        }
        self.device_choice = choice.clone();
        for shown in &mut self.shown {
            shown.seconds_per_forward = None;
        }
        self.commands.push(Command::UseDevice(choice));
    }

    /// Moves the η marker, within the ladder, and has r measured there.
    pub fn set_eta(&mut self, eta_l2: f64) {
        let [low, high] = self.eta_range();
        if !eta_l2.is_finite() || eta_l2 <= 0.0 {
            return;
        }
        let eta_l2 = eta_l2.clamp(low, high);
        if eta_l2 != self.eta_l2 {
            self.eta_l2 = eta_l2;
            self.measure_again();
        }
    }

    /// Holds the refinement, or lets it go on.
    pub fn toggle_pause(&mut self) {
        match self.refinement {
            Refinement::Running => {
                self.refinement = Refinement::Paused;
                self.commands.push(Command::Pause(Lane::Profile));
            }
            Refinement::Paused => {
                self.refinement = Refinement::Running;
                self.commands.push(Command::Resume(Lane::Profile));
            }
            Refinement::Stopped | Refinement::AwaitsStart => self.start(),
            Refinement::Idle => {}
        }
    }

    /// Stops what is under way; what is shown stays.
    pub fn cancel(&mut self) {
        for lane in Lane::ALL {
            if lane != Lane::Device && self.lane(lane).busy {
                self.commands.push(Command::Cancel(lane));
            }
        }
        if matches!(self.refinement, Refinement::Running | Refinement::Paused) {
            self.refinement = Refinement::Stopped;
        }
        self.spectra_were_stopped();
    }

    /// Writes what the workspace in front shows.
    pub fn export(&mut self, folder: PathBuf, stem: String, formats: Vec<ExportFormat>) {
        let content = match (self.in_front, &self.edit.fitted) {
            (Workspace::Response, _) => Written::Profiles(self.exportable()),
            (Workspace::Spectrum, _) => Written::Spectra(self.exportable_spectra()),
            (Workspace::Edit, Some(run)) => {
                Written::Edit(Box::new(run.to_write(&self.edit.seen_scores)))
            }
            (Workspace::Edit, None) => return,
        };
        self.commands.push(Command::Export(Export {
            folder,
            stem,
            formats,
            content,
        }));
    }

    /// Closes a message; it stays in the list.
    pub fn dismiss(&mut self, id: u64) {
        for message in self.messages.iter_mut().filter(|message| message.id == id) {
            message.dismissed = true;
        }
    }

    /// Tells the reader something.
    pub fn tell(&mut self, place: Place, asked: impl Into<String>, content: Content) {
        let asked = asked.into();
        // The outcome of a newer request takes the place of an older failure; a note does not.
        if !matches!(content, Content::Note(_)) {
            for message in &mut self.messages {
                if message.place == place && matches!(message.content, Content::Failure(_)) {
                    message.dismissed = true;
                }
            }
        }
        self.messages.push(Message {
            id: self.next_message,
            place,
            asked,
            content,
            dismissed: false,
        });
        self.next_message += 1;
    }

    /// Changes the recipe and asks anew if that made a difference.
    fn change(&mut self, change: impl FnOnce(&mut ProfileRecipe)) {
        let before = self.recipe.clone();
        change(&mut self.recipe);
        if self.recipe != before {
            self.ask();
        }
    }

    /// The question has changed: asks it, or waits for the start where that is expensive.
    pub(super) fn ask(&mut self) {
        self.make_stale();
        match self.preset {
            Preset::Interactive => self.request(),
            Preset::Paper => self.refinement = Refinement::AwaitsStart,
        }
    }

    pub(super) fn make_stale(&mut self) {
        for curve in self.shown.iter_mut().flat_map(Shown::curves_mut) {
            curve.stale = true;
            curve.measured = None;
        }
    }

    /// Asks for the profiles of all curves on screen.
    fn request(&mut self) {
        if self.photo.is_none() {
            return;
        }
        if self.refinement == Refinement::Paused {
            self.commands.push(Command::Resume(Lane::Profile));
        }
        // Older profile requests that were not sent yet are superseded here and now.
        self.commands
            .retain(|command| !matches!(command, Command::Profile(_)));
        let kinds = if self.twin_shown {
            &[WeightsKind::Trained, WeightsKind::Random][..]
        } else {
            &[WeightsKind::Trained]
        };
        let recipes = (self.recipes().iter())
            .flat_map(|recipe| kinds.iter().map(|&weights| recipe.with_weights(weights)))
            .collect();
        self.commands.push(Command::Profile(recipes));
        self.refinement = Refinement::Running;
        self.forget_unasked();
        self.make_measure_due();
    }

    /// Curves of encoders without the readout that is asked for answer no question.
    fn forget_unasked(&mut self) {
        let asked: Vec<bool> = (self.shown.iter())
            .map(|shown| self.recipe_of(shown).is_some())
            .collect();
        for (shown, asked) in self.shown.iter_mut().zip(asked) {
            if !asked {
                for curve in shown.curves_mut() {
                    *curve = Curve::default();
                }
            }
        }
    }

    fn make_measure_due(&mut self) {
        for curve in self.shown.iter_mut().flat_map(Shown::curves_mut) {
            curve.measure_due = true;
        }
    }

    /// Has r measured at the marked η by all curves, now or as soon as they have a first profile.
    pub(super) fn measure_again(&mut self) {
        self.make_measure_due();
        self.measure_if_possible();
    }

    /// Has r measured at the marked η where that is due and a first profile is there: measuring is
    /// the more urgent lane, and before that it would only delay the first curve. A finished curve
    /// with that very scale needs no measurement.
    pub(super) fn measure_if_possible(&mut self) {
        let is_due = |curve: &Curve| curve.measure_due && curve.is_current();
        if !self.curves().any(|seen| is_due(seen.curve)) {
            return;
        }
        // A request takes the place of the one before, so it asks for all curves in sight; and it
        // asks by their own recipes, which a chosen preset that waits for its start leaves alone.
        let recipes: Vec<_> = self
            .curves()
            .filter(|Seen { curve, .. }| curve.is_current() && !curve.is_final_at(self.eta_l2))
            .filter_map(|seen| Some(seen.curve.run.as_ref()?.recipe.clone()))
            .collect();
        for curve in self.shown.iter_mut().flat_map(Shown::curves_mut) {
            curve.measure_due &= !curve.is_current();
        }
        self.commands
            .retain(|command| !matches!(command, Command::Measure { .. }));
        if !recipes.is_empty() {
            self.commands.push(Command::Measure {
                recipes,
                eta_l2: self.eta_l2,
            });
        }
    }
}
