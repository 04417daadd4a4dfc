//! The window on a stage: the test plays worker and desktop, and finds widgets as a reader of the
//! screen would, by role and name.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use eframe::egui::{self, ColorImage, Key, Modifiers, Vec2};
use egui_kittest::{Harness, HarnessBuilder, kittest::Queryable};
use etascope::app::{Answer, Desktop, EtascopeApp, Librarian, Link, Options, Settings};
use etascope::device::{DeviceInfo, SelfCheck};
use etascope::encoders::registry;
use etascope::geometry::profile::{Basis, Cost};
use etascope::geometry::{Profile, ScaleEstimate, Summary};
use etascope::images::{Photo, Prepared};
use etascope::recipe::{ProfileRecipe, WeightsKind, grey_rms};
use etascope::render::{HeatPipeline, PreviewPipeline};
use etascope::report::ProfileRun;
use etascope::worker::{
    Command, Event, Generation, ImageSource, Lane, LibraryAnswer, LibraryRequest, Progress,
};
use etascope::{Error, ErrorKind, Result};

/// What the window has asked of the worker, and what the worker is made to say.
#[derive(Default)]
pub struct Script {
    pub sent: Vec<(Generation, Command)>,
    pub events: VecDeque<Event>,
    /// The worker has ended: everything is refused.
    pub ended: bool,
}

#[derive(Clone, Default)]
struct ScriptedLink(Rc<RefCell<Script>>);

impl Link for ScriptedLink {
    fn send(&mut self, command: Command) -> Result<Generation> {
        let mut script = self.0.borrow_mut();
        if script.ended {
            return Err(Error::new(
                ErrorKind::Internal,
                "cannot ask",
                "the worker has ended",
                "Start again",
            ));
        }
        let generation = Generation(script.sent.len() as u64 + 1);
        script.sent.push((generation, command));
        Ok(generation)
    }

    fn poll(&mut self) -> Option<Event> {
        self.0.borrow_mut().events.pop_front()
    }
}

/// What the window has asked of the library of encoders, and what that is made to answer.
#[derive(Default)]
pub struct Shelf {
    pub asked: Vec<LibraryRequest>,
    pub answers: VecDeque<LibraryAnswer>,
}

#[derive(Clone, Default)]
struct ScriptedLibrary(Rc<RefCell<Shelf>>);

impl Librarian for ScriptedLibrary {
    fn ask(&mut self, request: LibraryRequest) {
        self.0.borrow_mut().asked.push(request);
    }

    fn poll(&mut self) -> Option<LibraryAnswer> {
        self.0.borrow_mut().answers.pop_front()
    }
}

/// What the window has asked of the desktop, and what that is made to answer.
#[derive(Default)]
pub struct Desk {
    pub dialogs: usize,
    pub saved: Vec<Settings>,
    pub answers: VecDeque<Answer>,
}

#[derive(Clone, Default)]
struct ScriptedDesktop(Rc<RefCell<Desk>>);

impl Desktop for ScriptedDesktop {
    fn pick_file(&mut self) {
        self.0.borrow_mut().dialogs += 1;
    }

    fn pick_weights(&mut self) {
        self.0.borrow_mut().dialogs += 1;
    }

    fn pick_folder(&mut self) {
        self.0.borrow_mut().dialogs += 1;
    }

    fn list_devices(&mut self) {
        let device = |name: &str, api: &str, software| DeviceInfo {
            name: name.to_owned(),
            api: api.to_owned(),
            software,
        };
        let all = vec![
            device("cpu", "flex", false),
            device("llvmpipe", "vulkan", true),
        ];
        self.0.borrow_mut().answers.push_back(Answer::Devices(all));
    }

    fn save_settings(&mut self, settings: &Settings) {
        self.0.borrow_mut().saved.push(settings.clone());
    }

    fn save_screenshot(&mut self, _image: Arc<ColorImage>, _path: &Path) {}

    fn poll(&mut self) -> Option<Answer> {
        self.0.borrow_mut().answers.pop_front()
    }
}

/// A window with the test on the other side of it.
pub struct Stage {
    pub harness: Harness<'static, EtascopeApp>,
    pub script: Rc<RefCell<Script>>,
    pub shelf: Rc<RefCell<Shelf>>,
    pub desk: Rc<RefCell<Desk>>,
}

impl Stage {
    /// A window at its very first start.
    pub fn first_start() -> Self {
        Self::with(Settings::default(), Options::default())
    }

    /// A window whose reader has dismissed the welcome.
    pub fn new() -> Self {
        let settings = Settings {
            welcome_dismissed: true,
            ..Settings::default()
        };
        Self::with(settings, Options::default())
    }

    pub fn with(settings: Settings, options: Options) -> Self {
        Self::built(Harness::builder(), settings, options)
    }

    fn built(builder: HarnessBuilder<EtascopeApp>, settings: Settings, options: Options) -> Self {
        let link = ScriptedLink::default();
        let library = ScriptedLibrary::default();
        let shelf = Rc::clone(&library.0);
        let desktop = ScriptedDesktop::default();
        let (script, desk) = (Rc::clone(&link.0), Rc::clone(&desktop.0));
        let harness = builder
            .with_size(Vec2::new(1280.0, 800.0))
            .with_max_steps(8)
            .build_eframe(move |context| {
                if let Some(render) = &context.wgpu_render_state {
                    let pipeline = PreviewPipeline::new(&render.device, render.target_format);
                    let mut renderer = render.renderer.write();
                    renderer.callback_resources.insert(pipeline);
                    let heat = HeatPipeline::new(&render.device, render.target_format);
                    renderer.callback_resources.insert(heat);
                }
                EtascopeApp::new(
                    &context.egui_ctx,
                    registry::bundled().collect(),
                    Box::new(link),
                    Box::new(library),
                    Box::new(desktop),
                    settings,
                    options,
                )
                .expect("a window")
            });
        Self {
            harness,
            script,
            shelf,
            desk,
        }
    }

    /// A window that the graphics device can draw, by Mesa's software where there is no other.
    pub fn rendered() -> Self {
        let settings = Settings {
            welcome_dismissed: true,
            ..Settings::default()
        };
        let builder = Harness::builder().wgpu();
        Self::built(builder, settings, Options::default())
    }

    /// A window with a finished profile of the trained encoder.
    pub fn with_profile() -> Self {
        let mut stage = Self::new();
        stage.open_photo();
        stage.finish_profile(bump);
        stage
    }

    // ---- The worker's part ---------------------------------------------------------------------

    pub fn say(&mut self, event: Event) {
        self.script.borrow_mut().events.push_back(event);
        self.harness.run();
    }

    /// Lets the library answer.
    pub fn answer(&mut self, answer: LibraryAnswer) {
        self.shelf.borrow_mut().answers.push_back(answer);
        self.harness.run();
    }

    /// What the library was asked last.
    pub fn asked(&self) -> Option<LibraryRequest> {
        self.shelf.borrow().asked.last().cloned()
    }

    /// The newest request of a lane.
    pub fn latest(&self, lane: Lane) -> Option<(Generation, Command)> {
        let script = self.script.borrow();
        script
            .sent
            .iter()
            .rev()
            .find(|(_, command)| command.lane() == Some(lane))
            .cloned()
    }

    /// All commands, in words.
    pub fn sent(&self) -> Vec<Command> {
        self.script
            .borrow()
            .sent
            .iter()
            .map(|(_, command)| command.clone())
            .collect()
    }

    pub fn forget_sent(&mut self) -> usize {
        self.script.borrow().sent.len()
    }

    /// Answers the open request for a photograph, and the device that comes before it.
    pub fn open_photo(&mut self) {
        self.say(Event::DeviceReady {
            generation: Generation(0),
            device: cpu(),
        });
        let (generation, _) = self
            .latest(Lane::Image)
            .expect("a photograph was asked for");
        self.say(Event::ImageOpened {
            generation,
            photo: Arc::new(photo("chelsea.png")),
        });
        self.say(Event::Finished {
            generation,
            lane: Lane::Image,
        });
    }

    /// Answers the open request for profiles with curves that `r` describes, whole and finished.
    pub fn finish_profile(&mut self, r: fn(f64) -> f64) {
        let (generation, command) = self.latest(Lane::Profile).expect("profiles were asked for");
        let Command::Profile(recipes) = command else {
            unreachable!("the lane of profiles")
        };
        for (index, recipe) in recipes.iter().enumerate() {
            self.say(encoder_ready(generation, index, recipe, None));
            let run = Arc::new(run(recipe, r));
            self.say(Event::ProfileUpdated {
                generation,
                index,
                run,
            });
        }
        self.say(Event::Finished {
            generation,
            lane: Lane::Profile,
        });
    }

    pub fn progress(&mut self, lane: Lane, stage: &str, fraction: f32) {
        let (generation, _) = self.latest(lane).expect("a request");
        let progress = Progress {
            stage: stage.to_owned(),
            fraction,
            elapsed: Duration::from_secs(2),
            remaining: Some(Duration::from_secs(12)),
        };
        self.say(Event::Progress {
            generation,
            lane,
            progress,
        });
    }

    pub fn fail(&mut self, lane: Lane, kind: ErrorKind, what: &str) {
        let generation = self
            .latest(lane)
            .map_or(Generation(0), |(generation, _)| generation);
        let error = Error::new(kind, what, "the reason it gave", "Do this instead");
        self.say(Event::Failed {
            generation,
            lane,
            asked: "what was asked".to_owned(),
            error,
        });
    }

    // ---- The reader's part ---------------------------------------------------------------------

    pub fn press(&mut self, key: Key) {
        self.harness.key_press(key);
        self.harness.run();
    }

    pub fn press_with(&mut self, modifiers: Modifiers, key: Key) {
        self.harness.key_press_modifiers(modifiers, key);
        self.harness.run();
    }

    pub fn click(&mut self, name: &str) {
        self.harness.get_by_label(name).click();
        self.harness.run();
    }

    /// Whether a widget or text with this name is on screen.
    pub fn shows(&self, name: &str) -> bool {
        self.harness.query_all_by_label(name).next().is_some()
    }

    /// Whether some text on screen contains this.
    pub fn shows_part(&self, part: &str) -> bool {
        self.harness
            .query_all_by_label_contains(part)
            .next()
            .is_some()
    }

    pub fn type_text(&mut self, text: &str) {
        self.harness.event(egui::Event::Text(text.to_owned()));
        self.harness.run();
    }

    pub fn app(&self) -> &EtascopeApp {
        self.harness.state()
    }
}

pub fn cpu() -> DeviceInfo {
    DeviceInfo {
        name: "cpu".to_owned(),
        api: "flex".to_owned(),
        software: false,
    }
}

pub fn photo(name: &str) -> Photo {
    Photo {
        name: name.to_owned(),
        path: None,
        width: 451,
        height: 300,
        rgb: vec![128; 451 * 300 * 3].into(),
        sha256: "0".repeat(64),
        treatment: vec!["rotated 90° by EXIF".to_owned()],
    }
}

pub fn encoder_ready(
    generation: Generation,
    index: usize,
    recipe: &ProfileRecipe,
    self_check: Option<SelfCheck>,
) -> Event {
    let spec = registry::find(&recipe.encoder).expect("a known encoder");
    let top5 = match recipe.weights {
        WeightsKind::Trained => vec![("tabby".to_owned(), 0.61), ("Egyptian cat".to_owned(), 0.2)],
        WeightsKind::Random => Vec::new(),
    };
    Event::EncoderReady {
        generation,
        lane: Lane::Profile,
        index,
        spec: Arc::new(spec.clone()),
        weights: recipe.weights,
        weights_id: "f".repeat(64),
        prepared: Arc::new(Prepared {
            side_px: spec.side_px,
            pixels: vec![0.5; 3 * spec.side_px * spec.side_px].into(),
            steps: "451 × 300 → 385 × 256 bicubic → centre 224 × 224".to_owned(),
        }),
        top5,
        self_check,
    }
}

/// A curve that rises to 3.5 at η = 2.5 and falls to 0.1.
pub fn bump(eta: f64) -> f64 {
    let distance = (eta / 2.5).log10();
    let base = if eta > 2.5 {
        0.1 + 0.9 * (-2.0 * distance * distance).exp()
    } else {
        1.0
    };
    base + 2.5 * (-6.0 * distance * distance).exp()
}

/// A curve that never leaves 1 upward.
pub fn decay(eta: f64) -> f64 {
    1.0 / (1.0 + (eta / 30.0).powi(2))
}

pub fn estimate(eta_l2: f64, r: f64, reliable: bool) -> ScaleEstimate {
    ScaleEstimate {
        eta_l2,
        eta_grey_rms: grey_rms(eta_l2, 3 * 224 * 224),
        r,
        r_se: 0.02 * r,
        displacement_sq: 0.81 * r * eta_l2 * eta_l2,
        prediction_sq: 0.81 * eta_l2 * eta_l2,
        directions: 128,
        reliable,
        basis: Basis::Trace,
    }
}

pub fn run(recipe: &ProfileRecipe, r: fn(f64) -> f64) -> ProfileRun {
    let scales: Vec<_> = recipe
        .etas_l2
        .iter()
        .enumerate()
        .map(|(i, &eta)| estimate(eta, r(eta), i > 0))
        .collect();
    let singles = (0..4)
        .map(|k| {
            scales
                .iter()
                .map(|s| s.r * (0.8 + 0.1 * f64::from(k)))
                .collect()
        })
        .collect();
    let len = 3 * 224 * 224;
    ProfileRun {
        image: "chelsea.png".to_owned(),
        image_sha256: "0".repeat(64),
        image_steps: vec!["rotated 90° by EXIF".to_owned()],
        encoder_title: "an encoder".to_owned(),
        weights_id: "f".repeat(64),
        device: "cpu".to_owned(),
        recipe: recipe.clone(),
        direction_steps: vec![],
        profile: Arc::new(Profile {
            summary: Summary::of(&scales),
            scales,
            singles,
            mean_jvp_sq: 0.81,
            mean_jvp_sq_se: 0.01,
            rounding_sq: 1e-12,
            feature_norm: 20.0,
            pairs: 64,
            cost: Cost {
                forwards: 2176,
                jvps: 64,
                vjps: 32,
            },
            fraction: 1.0,
            finished: true,
            undefined: None,
            shown_direction: vec![1.0 / (len as f32).sqrt(); len].into(),
        }),
        elapsed_secs: 20.0,
    }
}

/// The path of an image request.
pub fn opened_path(command: &Command) -> Option<PathBuf> {
    match command {
        Command::OpenImage {
            source: ImageSource::Path(path),
            ..
        } => Some(path.clone()),
        _ => None,
    }
}
