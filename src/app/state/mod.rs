//! The model of the window: what is wanted, what is known, what is under way. Pure data.
//!
//! Wishes come in through methods and leave as [`Command`]s through [`State::take_commands`]; what
//! the worker says comes in through [`State::apply`]. Nothing here draws, waits or touches a file.

mod apply;
mod curve;
pub mod edit;
mod effort;
mod library;
mod message;
mod shown;
mod spectrum;
mod wanted;

use std::sync::Arc;

pub use curve::{Curve, Loaded, ValueAtEta};
pub use edit::{EditState, SeenBy};
pub use library::{Fetch, LibraryState, WeightFile};
pub use message::{Content, Message, Place};
pub use shown::{SHOWN_MAX, Seen, Shown};
pub use spectrum::{
    COUNT_RANGE, LEADING_COUNT, Selected, ShownDirection, SpectrumState, direction_at,
};

use super::settings::Workspace;
use crate::device::{DeviceChoice, DeviceInfo, SelfCheck};
use crate::encoders::EncoderSpec;
use crate::geometry::decode::Decoder;
use crate::images::Photo;
use crate::recipe::{Preset, ProfileRecipe, WeightsKind, paper_etas};
use crate::report::{GREY_TOLERANCE, ProfileRun};
use crate::worker::{Command, Generation, ImageSource, Lane, Memory, Progress};
use effort::planned_forwards;
use shown::readout_like;

/// Seed of the dither where it is switched on.
const DITHER_SEED: u64 = 0;

/// One lane of the worker as the window sees it.
#[derive(Clone, Debug, Default)]
pub struct LaneState {
    /// The newest request.
    latest: Option<Generation>,
    /// The curves that the request's recipes are for, by index: encoder and weights.
    curves: Vec<(String, WeightsKind)>,
    /// Whether it is still being worked on.
    pub busy: bool,
    /// How far it is.
    pub progress: Option<Progress>,
}

/// How the profile on screen came to its present state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refinement {
    /// Nothing asked yet, or all done.
    #[default]
    Idle,
    /// The preset is expensive: it starts on request.
    AwaitsStart,
    /// Being computed.
    Running,
    /// Held by the user; goes on where it stopped.
    Paused,
    /// Stopped by the user or a failure.
    Stopped,
}

/// The model of the window.
#[derive(Clone, Debug)]
pub struct State {
    /// Encoders that can be chosen.
    pub catalogue: Vec<&'static EncoderSpec>,
    /// Compute devices of this machine, once listed.
    pub devices: Vec<DeviceInfo>,
    /// The wanted device.
    pub device_choice: DeviceChoice,
    /// The device in use, once known.
    pub device: Option<DeviceInfo>,
    /// Where the current photograph came from.
    pub source: Option<ImageSource>,
    /// The current photograph.
    pub photo: Option<Arc<Photo>>,
    /// What is wanted of the first encoder on screen, trained. A twin's recipe differs in the weights,
    /// another encoder's in the scales that its input side asks for: see [`State::recipe_of`].
    pub recipe: ProfileRecipe,
    /// The preset that `recipe` was last set to.
    pub preset: Preset,
    /// Whether the random twins are shown.
    pub twin_shown: bool,
    /// The marked η, L2.
    pub eta_l2: f64,
    /// The encoders on screen, never none. The first leads: the photograph is shown as it sees it.
    pub shown: Vec<Shown>,
    /// The workspace in front: only for that is anything asked.
    pub in_front: Workspace,
    /// The edit.
    pub edit: EditState,
    /// The library of encoders.
    pub library: LibraryState,
    /// The weights in memory, and what they may take.
    pub memory: Memory,
    /// How the profile came to its present state.
    pub refinement: Refinement,
    /// The workspace of singular spectra.
    pub spectrum: SpectrumState,
    /// Messages, oldest first.
    pub messages: Vec<Message>,
    lanes: [LaneState; Lane::ALL.len()],
    opening: Option<ImageSource>,
    next_message: u64,
    commands: Vec<Command>,
}

impl State {
    /// A window that knows `catalogue`, wants `encoder` (the first of the catalogue if it is not in
    /// it) and has seen nothing yet. `None` for an empty catalogue.
    pub fn new(
        catalogue: Vec<&'static EncoderSpec>,
        encoder: &str,
        device_choice: DeviceChoice,
        twin_shown: bool,
    ) -> Option<Self> {
        let spec = catalogue
            .iter()
            .copied()
            .find(|spec| *spec.name == *encoder)
            .or(catalogue.first().copied())?;
        let recipe = ProfileRecipe::interactive(&spec.name, WeightsKind::Trained, spec.side_px);
        let eta_l2 = default_eta(spec.side_px);
        let mut lanes: [LaneState; Lane::ALL.len()] = Default::default();
        // The worker opens its first device unasked.
        lanes[index(Lane::Device)].busy = true;
        Some(Self {
            catalogue,
            devices: Vec::new(),
            device_choice,
            device: None,
            source: None,
            photo: None,
            recipe,
            preset: Preset::Interactive,
            twin_shown,
            eta_l2,
            shown: vec![Shown::new(spec, 0)],
            in_front: Workspace::default(),
            edit: EditState::new(spec),
            library: LibraryState::default(),
            memory: Memory::default(),
            refinement: Refinement::Idle,
            spectrum: SpectrumState::new(eta_l2),
            messages: Vec::new(),
            lanes,
            opening: None,
            next_message: 0,
            commands: Vec::new(),
        })
    }

    // ---- What is known -------------------------------------------------------------------------

    /// The encoder that leads.
    pub fn lead(&self) -> &Shown {
        &self.shown[0]
    }

    /// The encoder that leads.
    pub fn spec(&self) -> &'static EncoderSpec {
        self.lead().spec
    }

    /// Whether several encoders are on screen.
    pub fn is_comparing(&self) -> bool {
        self.shown.len() > 1
    }

    /// Whether an encoder is on screen.
    pub fn shows(&self, name: &str) -> bool {
        self.shown.iter().any(|shown| *shown.spec.name == *name)
    }

    /// The curves on screen, those of the leading encoder first, each followed by its twin's.
    pub fn curves(&self) -> impl Iterator<Item = Seen<'_>> {
        let kinds = if self.twin_shown {
            &[WeightsKind::Trained, WeightsKind::Random][..]
        } else {
            &[WeightsKind::Trained]
        };
        self.shown.iter().flat_map(move |shown| {
            kinds.iter().map(move |&weights| Seen {
                shown,
                weights,
                curve: shown.curve(weights),
            })
        })
    }

    /// What is wanted of an encoder on screen, trained: the same as of the leading one on its own
    /// scales. `None` where it has no such readout.
    pub fn recipe_of(&self, shown: &Shown) -> Option<ProfileRecipe> {
        if *shown.spec.name == self.recipe.encoder {
            return Some(self.recipe.clone());
        }
        Some(ProfileRecipe {
            encoder: shown.spec.name.to_string(),
            readout: readout_like(&self.recipe.readout, self.spec(), shown.spec)?,
            etas_l2: paper_etas(shown.spec.side_px),
            ..self.recipe.clone()
        })
    }

    /// What is wanted of all encoders on screen that have the readout, trained.
    pub fn recipes(&self) -> Vec<ProfileRecipe> {
        let recipes = self.shown.iter().filter_map(|shown| self.recipe_of(shown));
        recipes.collect()
    }

    /// Least and largest η of the ladders on screen.
    pub fn eta_range(&self) -> [f64; 2] {
        let others = (self.shown.iter().skip(1)).flat_map(|shown| paper_etas(shown.spec.side_px));
        let etas = self.recipe.etas_l2.iter().copied().chain(others);
        let [low, high] = etas.fold([f64::INFINITY, 0.0], |[low, high], eta| {
            [eta.min(low), eta.max(high)]
        });
        if low < high {
            [low, high]
        } else {
            [0.01, 100.0]
        }
    }

    /// η after a double click: 1 at 224 px, the same amplitude per pixel elsewhere.
    pub fn eta_default(&self) -> f64 {
        default_eta(self.spec().side_px)
    }

    /// Number of input values d_I of the leading encoder.
    pub fn input_len(&self) -> usize {
        self.lead().input_len()
    }

    /// Whether one η is the same number of grey levels for all encoders on screen, as far as a figure
    /// can tell.
    pub fn grey_levels_agree(&self) -> bool {
        let side = |shown: &Shown| shown.spec.side_px as f64;
        let lead = side(self.lead());
        (self.shown.iter()).all(|shown| (side(shown) / lead - 1.0).abs() <= GREY_TOLERANCE)
    }

    /// One lane of the worker.
    pub fn lane(&self, lane: Lane) -> &LaneState {
        &self.lanes[index(lane)]
    }

    /// The work that the status bar tells of: the longest-running kind first.
    pub fn visible_work(&self) -> Option<(Lane, &LaneState)> {
        // What answers a drag comes and goes too fast to be told of.
        let is_told = |lane: &Lane| !matches!(lane, Lane::Measure | Lane::Rank);
        (Lane::ALL.into_iter().filter(is_told))
            .map(|lane| (lane, self.lane(lane)))
            .find(|(_, state)| state.busy)
    }

    /// Name of the photograph that is being opened.
    pub fn opening_name(&self) -> Option<String> {
        self.opening
            .as_ref()
            .filter(|_| self.lane(Lane::Image).busy)
            .map(source_name)
    }

    /// Open messages of a place, newest first.
    pub fn messages_at(&self, place: Place) -> impl Iterator<Item = &Message> {
        self.messages
            .iter()
            .rev()
            .filter(move |m| m.place == place && !m.dismissed)
    }

    /// The self-check that failed, if one did on a device other than the CPU.
    pub fn failed_self_check(&self) -> Option<SelfCheck> {
        (self.shown.iter())
            .flat_map(|shown| [&shown.trained, &shown.twin])
            .filter_map(|curve| curve.loaded.as_ref()?.self_check)
            .find(|check| !check.passed())
    }

    /// Largest relative standard error over the reliable scales of the shown profiles.
    pub fn relative_error(&self) -> Option<f64> {
        self.curves()
            .filter(|seen| !seen.curve.stale)
            .filter_map(|seen| seen.curve.profile())
            .flat_map(|profile| &profile.scales)
            .filter(|scale| scale.reliable && scale.r > 0.0 && scale.r_se.is_finite())
            .map(|scale| scale.r_se / scale.r)
            .reduce(f64::max)
    }

    /// Estimated seconds for `preset` at the speed seen so far; `None` until a profile of each
    /// encoder on screen was seen on this device.
    pub fn estimated_secs(&self, preset: Preset) -> Option<f64> {
        let curves = if self.twin_shown { 2.0 } else { 1.0 };
        let secs = self.shown.iter().map(|shown| {
            let Some(mut recipe) = self.recipe_of(shown) else {
                return Some(0.0);
            };
            preset.apply(&mut recipe);
            let forwards = planned_forwards(&recipe, shown.spec)?;
            Some(shown.seconds_per_forward? * curves * forwards)
        });
        secs.sum()
    }

    /// Profiles that can be written now.
    pub fn exportable(&self) -> Vec<Arc<ProfileRun>> {
        self.curves()
            .filter_map(|seen| seen.curve.run.clone())
            .collect()
    }

    /// Whether the workspace in front has something to write.
    pub fn has_files_to_write(&self) -> bool {
        match self.in_front {
            Workspace::Response => !self.exportable().is_empty(),
            Workspace::Spectrum => !self.exportable_spectra().is_empty(),
            Workspace::Edit => self.edit.fitted.is_some(),
        }
    }

    /// Brings a workspace to the front, and asks for what it shows and was not asked for yet. `is_held` while a button of the
    /// pointer is down: what is expensive then waits.
    pub fn bring(&mut self, workspace: Workspace, is_held: bool) {
        if self.in_front == Workspace::Spectrum && workspace != Workspace::Spectrum {
            self.leave_spectra();
        }
        self.in_front = workspace;
        match workspace {
            Workspace::Response => {}
            Workspace::Spectrum => self.want_spectra(),
            Workspace::Edit => self.want_edit(is_held),
        }
    }

    /// Whether pausing and resuming is about spectra: in their workspace, unless only profiles are at work behind it.
    fn is_about_spectra(&self) -> bool {
        let is_idle = self.spectrum.refinement == Refinement::Idle;
        self.in_front == Workspace::Spectrum && !(is_idle && self.lane(Lane::Profile).busy)
    }

    /// Holds what the workspace in front works on, or lets it go on.
    pub fn toggle_pause_in_front(&mut self) {
        if self.is_about_spectra() {
            self.toggle_spectrum_pause();
        } else {
            self.toggle_pause();
        }
    }

    /// How what the workspace in front shows came to its present state.
    pub fn refinement_in_front(&self) -> Refinement {
        if self.is_about_spectra() {
            self.spectrum.refinement
        } else {
            self.refinement
        }
    }

    /// Whether the worker has anything left to do for this window.
    pub fn is_settled(&self) -> bool {
        self.photo.is_some() && self.commands.is_empty() && self.lanes.iter().all(|lane| !lane.busy)
    }
}

/// What a photograph is called.
pub fn source_name(source: &ImageSource) -> String {
    match source {
        ImageSource::Path(path) => path.file_name().map_or_else(
            || path.display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        ),
        ImageSource::Bundled(name) | ImageSource::Bytes { name, .. } => name.clone(),
        ImageSource::Rgba { .. } => "pasted image".to_owned(),
    }
}

fn default_eta(side_px: usize) -> f64 {
    side_px as f64 / 224.0
}

/// The stage that an edit is first seen at: the middle one of those with a decoder of the program's own, else of all. It shows the
/// edit, still holds the picture and has many channels to cut.
fn default_stage(spec: &EncoderSpec) -> usize {
    let decoded: Vec<usize> = Decoder::bundled_stages()
        .filter(|(encoder, _)| *encoder == &*spec.name)
        .filter_map(|(_, name)| spec.stages.iter().position(|stage| stage.name == name))
        .collect();
    let middle = spec.stages.len() / 2;
    decoded.get(decoded.len() / 2).copied().unwrap_or(middle)
}

fn index(lane: Lane) -> usize {
    // In the order of `Lane::ALL`, which is that of their declaration.
    lane as usize
}
