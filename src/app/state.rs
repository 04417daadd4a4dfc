//! The model of the window: what is wanted, what is known, what is under way. Pure data.
//!
//! Wishes come in through methods and leave as [`Command`]s through [`State::take_commands`]; what
//! the worker says comes in through [`State::apply`]. Nothing here draws, waits or touches a file.

use std::path::PathBuf;
use std::sync::Arc;

use crate::device::{DeviceChoice, DeviceInfo, SelfCheck};
use crate::encoders::{EncoderSpec, Readout};
use crate::geometry::directions::DirectionFamily;
use crate::geometry::profile::Cost;
use crate::geometry::{Profile, ScaleEstimate};
use crate::images::{Background, Photo, Prepared};
use crate::recipe::{Preset, ProfileRecipe, WeightsKind};
use crate::report::ProfileRun;
use crate::worker::{
    Command, Event, Export, ExportFormat, Generation, ImageSource, Lane, Progress,
};
use crate::{Error, ErrorKind};

/// Work of a Jacobian–vector product in forward passes (measured 2.03–2.20 for ConvNeXt-T).
const JVP_FORWARDS: f64 = 2.1;
/// Work of a vector–Jacobian product in forward passes (measured 2.7–3.1).
const VJP_FORWARDS: f64 = 2.9;
/// Seed of the dither where it is switched on.
const DITHER_SEED: u64 = 0;

/// What is known of one curve: the trained encoder's or its twin's.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// The encoder as it was loaded.
    pub loaded: Option<Loaded>,
    /// The latest profile.
    pub run: Option<Arc<ProfileRun>>,
    /// Whether `run` answers an older question than the one now asked.
    pub stale: bool,
    /// r at one exact η.
    pub measured: Option<ScaleEstimate>,
}

/// An encoder that the worker has loaded, with the photograph as it sees it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The encoder.
    pub spec: Arc<EncoderSpec>,
    /// SHA-256 of the weights file, or the seed of the random ones.
    pub weights_id: String,
    /// The photograph as the encoder sees it.
    pub prepared: Arc<Prepared>,
    /// Five classes of largest probability; empty for random weights.
    pub top5: Vec<(String, f32)>,
    /// Comparison of the device with the CPU.
    pub self_check: Option<SelfCheck>,
}

impl Curve {
    /// The latest profile.
    pub fn profile(&self) -> Option<&Profile> {
        self.run.as_ref().map(|run| &*run.profile)
    }

    /// What is known of r at `eta_l2`.
    pub fn value_at(&self, eta_l2: f64) -> ValueAtEta {
        let on_ladder = self
            .profile()
            .into_iter()
            .flat_map(|profile| &profile.scales);
        let exact = on_ladder
            .chain(&self.measured)
            .filter(|estimate| estimate.eta_l2 == eta_l2 && estimate.r.is_finite() && !self.stale)
            .max_by_key(|estimate| estimate.directions);
        if let Some(estimate) = exact {
            return ValueAtEta::Measured(estimate.clone());
        }
        self.profile()
            .and_then(|profile| interpolate(profile, eta_l2))
            .map_or(ValueAtEta::Unknown, ValueAtEta::Interpolated)
    }
}

/// What is known of r at the marked η.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueAtEta {
    /// Measured at exactly this η.
    Measured(ScaleEstimate),
    /// Read off the curve between two scales, until the measurement arrives.
    Interpolated(f64),
    /// Neither.
    Unknown,
}

/// r between two scales of a profile, linear in log η.
fn interpolate(profile: &Profile, eta_l2: f64) -> Option<f64> {
    profile.scales.windows(2).find_map(|pair| {
        let [low, high] = pair else { return None };
        let within = (low.eta_l2..=high.eta_l2).contains(&eta_l2);
        let weight = (eta_l2 / low.eta_l2).ln() / (high.eta_l2 / low.eta_l2).ln();
        let r = low.r + weight * (high.r - low.r);
        (within && r.is_finite()).then_some(r)
    })
}

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

/// Something the reader has to know, kept until dismissed and then in the list.
#[derive(Clone, Debug)]
pub struct Message {
    /// Number within the window's life.
    pub id: u64,
    /// What it is about: decides where it stands.
    pub place: Place,
    /// What was asked.
    pub asked: String,
    /// What happened.
    pub content: Content,
    /// Whether it was closed by the reader.
    pub dismissed: bool,
}

/// Content of a [`Message`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A failure.
    Failure(Error),
    /// Files that were written.
    Written(Vec<PathBuf>),
    /// Text for the reader.
    Note(String),
}

/// The panel in which a [`Message`] is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// With the photograph.
    Image,
    /// With the curves.
    Response,
    /// With the controls.
    Controls,
}

impl From<Lane> for Place {
    fn from(lane: Lane) -> Self {
        match lane {
            Lane::Image => Self::Image,
            Lane::Device => Self::Controls,
            Lane::Measure | Lane::Profile | Lane::Export => Self::Response,
        }
    }
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
    measure_due: bool,
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
            .find(|spec| spec.name == encoder)
            .or(catalogue.first())?;
        let recipe = ProfileRecipe::interactive(spec.name, WeightsKind::Trained, spec.side_px);
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
            measure_due: false,
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
            .find(|spec| spec.name == self.recipe.encoder)
            .unwrap_or(self.catalogue[0])
    }

    /// Index of the wanted encoder in the catalogue: decides its hue.
    pub fn encoder_index(&self) -> usize {
        self.catalogue
            .iter()
            .position(|spec| spec.name == self.recipe.encoder)
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
        let forwards = (2 * recipe.pairs_max * recipe.etas_l2.len()) as f64;
        let products = match recipe.estimator {
            crate::recipe::Estimator::Paper => recipe.jvps as f64 * JVP_FORWARDS,
            crate::recipe::Estimator::ControlVariate => {
                let trace = match recipe.trace {
                    crate::recipe::TraceMethod::HutchPlusPlus { sketch, probes } => {
                        (2 * sketch + probes) as f64 * (JVP_FORWARDS + VJP_FORWARDS)
                    }
                    crate::recipe::TraceMethod::Exact => {
                        self.spec().pooled_len as f64 * VJP_FORWARDS
                    }
                };
                recipe.pairs_max as f64 * JVP_FORWARDS + trace
            }
        };
        let curves = if self.twin_shown { 2.0 } else { 1.0 };
        self.seconds_per_forward
            .map(|secs| secs * curves * (forwards + products))
    }

    /// Profiles that can be written now.
    pub fn exportable(&self) -> Vec<Arc<ProfileRun>> {
        self.curves()
            .filter_map(|(_, curve)| curve.run.clone())
            .collect()
    }

    /// Whether the worker has anything left to do for this window.
    pub fn is_settled(&self) -> bool {
        self.photo.is_some()
            && self.commands.is_empty()
            && !self.measure_due
            && self.lanes.iter().all(|lane| !lane.busy)
    }

    // ---- What is wanted ------------------------------------------------------------------------

    /// Opens a photograph; the current one stays until that has succeeded.
    pub fn open(&mut self, source: ImageSource) {
        self.opening = Some(source.clone());
        self.commands.push(Command::OpenImage {
            source,
            background: Background::default(),
        });
    }

    /// Chooses the encoder; the readout becomes the pooled feature, which every encoder has.
    pub fn choose_encoder(&mut self, name: &str) {
        let Some(spec) = self
            .catalogue
            .iter()
            .copied()
            .find(|spec| spec.name == name)
        else {
            return;
        };
        if spec.name == self.recipe.encoder {
            return;
        }
        let scale = spec.side_px as f64 / self.spec().side_px as f64;
        self.recipe.encoder = spec.name.to_owned();
        self.recipe.readout = Readout::Pooled;
        self.recipe.etas_l2 = crate::recipe::paper_etas(spec.side_px);
        self.eta_l2 *= scale;
        self.seconds_per_forward = None;
        self.ask();
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
        // The worker goes on with the trained curve where it was, and has not forgotten the twin's.
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
        self.seconds_per_forward = None;
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
            self.measure_due = self.photo.is_some();
            self.measure_if_possible();
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
        for lane in [Lane::Image, Lane::Measure, Lane::Export, Lane::Profile] {
            if self.lane(lane).busy {
                self.commands.push(Command::Cancel(lane));
            }
        }
        if matches!(self.refinement, Refinement::Running | Refinement::Paused) {
            self.refinement = Refinement::Stopped;
        }
    }

    /// Writes the shown profiles.
    pub fn export(&mut self, folder: PathBuf, stem: String, formats: Vec<ExportFormat>) {
        let runs = self.exportable();
        self.commands.push(Command::Export(Export {
            folder,
            stem,
            formats,
            runs,
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
        // A newer failure of the same kind of request takes the place of the older one.
        let asked = asked.into();
        for message in &mut self.messages {
            if message.place == place && matches!(message.content, Content::Failure(_)) {
                message.dismissed = true;
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

    // ---- To and from the worker ----------------------------------------------------------------

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
        state.weights = match command {
            Command::Profile(recipes) | Command::Measure { recipes, .. } => {
                recipes.iter().map(|recipe| recipe.weights).collect()
            }
            _ => Vec::new(),
        };
    }

    /// A command could not be sent.
    pub fn refused(&mut self, command: &Command, error: Error) {
        let place = command.lane().map_or(Place::Response, Place::from);
        self.tell(place, "", Content::Failure(error));
        if matches!(command, Command::Profile(_)) {
            self.refinement = Refinement::Stopped;
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
                spec,
                weights,
                weights_id,
                prepared,
                top5,
                self_check,
                ..
            } => {
                if (self.is_latest(Lane::Profile, generation)
                    || self.is_latest(Lane::Measure, generation))
                    && spec.name == self.recipe.encoder
                {
                    let loaded = Loaded {
                        spec,
                        weights_id,
                        prepared,
                        top5,
                        self_check,
                    };
                    self.curve_mut(weights).loaded = Some(loaded);
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
                    && let Some(&weights) = lane.weights.get(i)
                {
                    self.curve_mut(weights).measured = Some(estimate);
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
            Event::Exported { files, .. } => {
                self.tell(Place::Response, "export", Content::Written(files));
            }
            Event::Finished { generation, lane } => {
                if self.is_latest(lane, generation) {
                    self.lanes[index(lane)].busy = false;
                    if lane == Lane::Profile {
                        self.refinement = Refinement::Idle;
                        self.measure_if_possible();
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
            self.trained
                .loaded
                .iter_mut()
                .chain(&mut self.twin.loaded)
                .for_each(|loaded| {
                    loaded.self_check = None;
                });
            self.ask();
        }
    }

    fn image_opened(&mut self, photo: Arc<Photo>) {
        self.photo = Some(photo);
        self.source = self.opening.take();
        self.lanes[index(Lane::Image)].busy = false;
        self.ask();
    }

    fn profile_updated(&mut self, index_in_request: usize, run: Arc<ProfileRun>) {
        let lane = &self.lanes[index(Lane::Profile)];
        let Some(&weights) = lane.weights.get(index_in_request) else {
            return;
        };
        let work = forward_equivalents(run.profile.cost);
        if work > 0.0 && run.elapsed_secs > 0.0 && weights == WeightsKind::Trained {
            self.seconds_per_forward = Some(run.elapsed_secs / work);
        }
        let curve = self.curve_mut(weights);
        curve.run = Some(run);
        curve.stale = false;
        self.measure_if_possible();
    }

    fn failed(&mut self, generation: Generation, lane: Lane, asked: String, error: Error) {
        let latest = self.is_latest(lane, generation);
        if latest {
            self.lanes[index(lane)].busy = false;
            if lane == Lane::Profile {
                self.refinement = Refinement::Stopped;
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

    // ---- Within --------------------------------------------------------------------------------

    fn curve_mut(&mut self, weights: WeightsKind) -> &mut Curve {
        match weights {
            WeightsKind::Trained => &mut self.trained,
            WeightsKind::Random => &mut self.twin,
        }
    }

    /// Whether an event answers the newest request of its lane. The worker's first device was not
    /// asked for by number.
    fn is_latest(&self, lane: Lane, generation: Generation) -> bool {
        let latest = self.lane(lane).latest;
        latest == Some(generation) || (lane == Lane::Device && latest.is_none())
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
    fn ask(&mut self) {
        self.make_stale();
        match self.preset {
            Preset::Interactive => self.request(),
            Preset::Paper => self.refinement = Refinement::AwaitsStart,
        }
    }

    fn make_stale(&mut self) {
        for curve in [&mut self.trained, &mut self.twin] {
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
        let recipes = self
            .curves()
            .map(|(weights, _)| self.recipe.with_weights(weights))
            .collect();
        self.commands.push(Command::Profile(recipes));
        self.refinement = Refinement::Running;
        self.measure_due = true;
    }

    /// Has r measured at the marked η once every curve in sight has a first profile: measuring is
    /// the more urgent lane, and before that it would only delay the first curve.
    fn measure_if_possible(&mut self) {
        let ready: Vec<WeightsKind> = self
            .curves()
            .filter(|(_, curve)| curve.run.is_some() && !curve.stale)
            .map(|(weights, _)| weights)
            .collect();
        let wanted = self.curves().count();
        if !self.measure_due || ready.is_empty() {
            return;
        }
        self.measure_due = ready.len() < wanted && self.refinement == Refinement::Running;
        let recipes = ready
            .into_iter()
            .map(|kind| self.recipe.with_weights(kind))
            .collect();
        self.commands
            .retain(|command| !matches!(command, Command::Measure { .. }));
        self.commands.push(Command::Measure {
            recipes,
            eta_l2: self.eta_l2,
        });
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

fn forward_equivalents(cost: Cost) -> f64 {
    cost.forwards as f64 + JVP_FORWARDS * cost.jvps as f64 + VJP_FORWARDS * cost.vjps as f64
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
