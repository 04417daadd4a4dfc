//! The model of the window: what is wanted, what is known, what is under way. Pure data.
//!
//! Wishes come in through methods and leave as [`Command`]s through [`State::take_commands`]; what
//! the worker says comes in through [`State::apply`]. Nothing here draws, waits or touches a file.

mod apply;
mod curve;
mod effort;
mod message;
mod wanted;

use std::sync::Arc;

pub use curve::{Curve, Loaded, ValueAtEta};
pub use message::{Content, Message, Place};

use crate::device::{DeviceChoice, DeviceInfo, SelfCheck};
use crate::encoders::EncoderSpec;
use crate::images::Photo;
use crate::recipe::{Preset, ProfileRecipe, WeightsKind};
use crate::report::ProfileRun;
use crate::worker::{Command, Generation, ImageSource, Lane, Progress};
use effort::planned_forwards;

/// Seed of the dither where it is switched on.
const DITHER_SEED: u64 = 0;

/// One lane of the worker as the window sees it.
#[derive(Clone, Debug, Default)]
pub struct LaneState {
    /// The newest request.
    latest: Option<Generation>,
    /// What that request's recipes were for, by index.
    weights: Vec<WeightsKind>,
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
    /// What is wanted of the trained encoder; the twin's recipe differs in the weights only.
    pub recipe: ProfileRecipe,
    /// The preset that `recipe` was last set to.
    pub preset: Preset,
    /// Whether the random twin is shown.
    pub twin_shown: bool,
    /// The marked η, L2.
    pub eta_l2: f64,
    /// The trained encoder's curve.
    pub trained: Curve,
    /// The random twin's curve.
    pub twin: Curve,
    /// How the profile came to its present state.
    pub refinement: Refinement,
    /// Messages, oldest first.
    pub messages: Vec<Message>,
    lanes: [LaneState; 5],
    opening: Option<ImageSource>,
    seconds_per_forward: Option<f64>,
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
            .find(|spec| *spec.name == *encoder)
            .or(catalogue.first())?;
        let recipe = ProfileRecipe::interactive(&spec.name, WeightsKind::Trained, spec.side_px);
        let eta_l2 = default_eta(spec.side_px);
        let mut lanes: [LaneState; 5] = Default::default();
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
            trained: Curve::default(),
            twin: Curve::default(),
            refinement: Refinement::Idle,
            messages: Vec::new(),
            lanes,
            opening: None,
            seconds_per_forward: None,
            next_message: 0,
            commands: Vec::new(),
        })
    }

    // ---- What is known -------------------------------------------------------------------------

    /// The wanted encoder.
    pub fn spec(&self) -> &'static EncoderSpec {
        self.catalogue
            .iter()
            .copied()
            .find(|spec| *spec.name == self.recipe.encoder)
            .unwrap_or(self.catalogue[0])
    }

    /// Index of the wanted encoder in the catalogue: decides its hue.
    pub fn encoder_index(&self) -> usize {
        self.catalogue
            .iter()
            .position(|spec| *spec.name == self.recipe.encoder)
            .unwrap_or(0)
    }

    /// The curves on screen with their weights.
    pub fn curves(&self) -> impl Iterator<Item = (WeightsKind, &Curve)> {
        [
            (WeightsKind::Trained, &self.trained),
            (WeightsKind::Random, &self.twin),
        ]
        .into_iter()
        .filter(|(weights, _)| *weights == WeightsKind::Trained || self.twin_shown)
    }

    /// Least and largest η of the ladder.
    pub fn eta_range(&self) -> [f64; 2] {
        let etas = &self.recipe.etas_l2;
        match (etas.first(), etas.last()) {
            (Some(&first), Some(&last)) if first < last => [first, last],
            _ => [0.01, 100.0],
        }
    }

    /// η after a double click: 1 at 224 px, the same amplitude per pixel elsewhere.
    pub fn eta_default(&self) -> f64 {
        default_eta(self.spec().side_px)
    }

    /// Number of input values d_I of the wanted encoder.
    pub fn input_len(&self) -> usize {
        3 * self.spec().side_px * self.spec().side_px
    }

    /// One lane of the worker.
    pub fn lane(&self, lane: Lane) -> &LaneState {
        &self.lanes[index(lane)]
    }

    /// The work that the status bar tells of: the longest-running kind first.
    pub fn visible_work(&self) -> Option<(Lane, &LaneState)> {
        [Lane::Device, Lane::Image, Lane::Export, Lane::Profile]
            .into_iter()
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
        [&self.trained, &self.twin]
            .into_iter()
            .filter_map(|curve| curve.loaded.as_ref()?.self_check)
            .find(|check| !check.passed())
    }

    /// Largest relative standard error over the reliable scales of the shown profiles.
    pub fn relative_error(&self) -> Option<f64> {
        self.curves()
            .filter(|(_, curve)| !curve.stale)
            .filter_map(|(_, curve)| curve.profile())
            .flat_map(|profile| &profile.scales)
            .filter(|scale| scale.reliable && scale.r > 0.0 && scale.r_se.is_finite())
            .map(|scale| scale.r_se / scale.r)
            .reduce(f64::max)
    }

    /// Estimated seconds for `preset` at the speed seen so far; `None` until a profile of this
    /// encoder and device was seen.
    pub fn estimated_secs(&self, preset: Preset) -> Option<f64> {
        let mut recipe = self.recipe.clone();
        preset.apply(&mut recipe);
        let curves = if self.twin_shown { 2.0 } else { 1.0 };
        Some(self.seconds_per_forward? * curves * planned_forwards(&recipe, self.spec())?)
    }

    /// Profiles that can be written now.
    pub fn exportable(&self) -> Vec<Arc<ProfileRun>> {
        self.curves()
            .filter_map(|(_, curve)| curve.run.clone())
            .collect()
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

fn index(lane: Lane) -> usize {
    match lane {
        Lane::Device => 0,
        Lane::Image => 1,
        Lane::Measure => 2,
        Lane::Export => 3,
        Lane::Profile => 4,
    }
}
