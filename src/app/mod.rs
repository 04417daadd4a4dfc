//! The window: an instrument over the worker.
//!
//! [`State`] is the model and pure data; the [`panels`] draw from it and ask through [`Intent`]s;
//! [`EtascopeApp`] alone changes anything. The worker and the desktop stand behind the traits
//! [`Link`] and [`Desktop`], so that tests play both. Nothing here computes, decodes or encodes.

pub mod axis;
pub mod explain;
pub mod format;
pub mod host;
pub mod intent;
pub mod panels;
pub mod plots;
pub mod settings;
pub mod state;
pub mod theme;
pub mod ui_command;
pub mod view;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use eframe::egui::{
    self, CentralPanel, ColorImage, Event as InputEvent, Frame as EguiFrame, Margin, Panel,
    ScreenshotCallback, Ui, ViewportBuilder, ViewportCommand,
};

pub use host::{Answer, Desktop, Link, SystemDesktop};
pub use intent::{Intent, Scene};
pub use settings::{AxisScale, Settings, ThemeChoice};
pub use state::State;
pub use ui_command::UiCommand;
pub use view::View;

use crate::device::DeviceChoice;
use crate::encoders::{EncoderSpec, registry};
use crate::images::{Background, bundled};
use crate::render::PreviewPipeline;
use crate::worker::{ImageSource, Worker};
use crate::{Error, ErrorKind, Result};
use panels::{
    cards, controls, eta, image as image_panel, menu, message, response, status, welcome,
};
use state::{Content, Place};
use theme::{CONTROLS_WIDTH, GAP, Palette};
use view::{Card, DialogState};

/// Size of the window at the first start, in points.
const FIRST_SIZE: [f32; 2] = [1280.0, 800.0];
/// Smallest size at which every control can be reached.
const LEAST_SIZE: [f32; 2] = [1024.0, 640.0];
/// Share of the window's width that the photograph takes at the first start.
const IMAGE_SHARE: f32 = 0.28;

/// How the window starts.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Photograph to open instead of the bundled one.
    pub image: Option<ImageSource>,
    /// Registry name of the encoder to choose.
    pub encoder: Option<String>,
    /// Compute device instead of the one in the settings.
    pub device: Option<DeviceChoice>,
    /// For pictures in documents and for tests: write the window to a PNG once all is computed, and
    /// leave. Settings are then neither read nor written.
    pub screenshot: Option<Screenshot>,
}

/// A picture of the window.
#[derive(Clone, Debug)]
pub struct Screenshot {
    /// The PNG file.
    pub path: PathBuf,
    /// Width and height of the window in points.
    pub size: [f32; 2],
    /// Light or dark.
    pub theme: ThemeChoice,
    /// Whether the twin is shown.
    pub twin: bool,
}

/// Opens the window and stays until it is closed.
///
/// # Errors
/// [`ErrorKind::Request`] where the window cannot be opened, for example without a display;
/// [`ErrorKind::Output`] where a screenshot was asked for and could not be written.
pub fn run(options: Options) -> Result<()> {
    let settings_path = if options.screenshot.is_some() {
        None
    } else {
        Settings::default_path()
    };
    let mut settings = settings_path
        .as_deref()
        .map(Settings::load)
        .unwrap_or_default();
    let mut size = FIRST_SIZE;
    if let Some(shot) = &options.screenshot {
        size = shot.size;
        settings.theme = shot.theme;
        settings.twin = shot.twin;
    }
    let viewport = ViewportBuilder::default()
        .with_title("Etascope")
        .with_app_id("etascope")
        .with_inner_size(size)
        .with_min_inner_size(LEAST_SIZE)
        .with_drag_and_drop(true);
    let native = eframe::NativeOptions {
        viewport,
        renderer: eframe::Renderer::Wgpu,
        persist_window: options.screenshot.is_none(),
        persistence_path: settings_path
            .as_deref()
            .map(|path| path.with_file_name("window.ron")),
        ..Default::default()
    };
    let outcome: Arc<std::sync::Mutex<Result<()>>> = Arc::new(std::sync::Mutex::new(Ok(())));
    let shared = Arc::clone(&outcome);
    let opened = eframe::run_native(
        "etascope",
        native,
        Box::new(move |context| {
            let app = create(context, options, settings, settings_path, shared)?;
            Ok(Box::new(app))
        }),
    );
    opened.map_err(|error| cannot_open(&error))?;
    outcome.lock().map_or(Ok(()), |outcome| outcome.clone())
}

fn cannot_open(why: &dyn std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::Request,
        "cannot open the window",
        why,
        "Without a display use “etascope profile”, see “etascope profile --help”",
    )
}

fn create(
    context: &eframe::CreationContext<'_>,
    options: Options,
    settings: Settings,
    settings_path: Option<PathBuf>,
    outcome: Arc<std::sync::Mutex<Result<()>>>,
) -> Result<EtascopeApp> {
    if let Some(render) = &context.wgpu_render_state {
        let pipeline = PreviewPipeline::new(&render.device, render.target_format);
        render.renderer.write().callback_resources.insert(pipeline);
    }
    let egui_context = context.egui_ctx.clone();
    let choice = options
        .device
        .clone()
        .unwrap_or_else(|| settings.device.clone());
    let waker = egui_context.clone();
    let worker = Worker::spawn(choice, move || waker.request_repaint())?;
    let desktop = SystemDesktop::new(egui_context.clone(), settings_path);
    let mut app = EtascopeApp::new(
        &egui_context,
        registry::specs(),
        Box::new(worker),
        Box::new(desktop),
        settings,
        options,
    )?;
    app.outcome = Some(outcome);
    Ok(app)
}

/// The window.
pub struct EtascopeApp {
    /// The model.
    pub state: State,
    /// What is remembered between starts.
    pub settings: Settings,
    /// State of the interface alone.
    pub view: View,
    saved: Settings,
    link: Box<dyn Link>,
    desktop: Box<dyn Desktop>,
    screenshot: Option<Shooting>,
    outcome: Option<Arc<std::sync::Mutex<Result<()>>>>,
}

/// A picture of the window on its way.
struct Shooting {
    path: PathBuf,
    phase: ShootingPhase,
    taken: Arc<std::sync::Mutex<Option<Arc<ColorImage>>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ShootingPhase {
    /// The curves are still being computed.
    Computing,
    /// The toolkit was asked for the picture.
    Asked,
    /// The picture is being written.
    Writing,
}

impl EtascopeApp {
    /// The window over a worker and a desktop. It opens the photograph of `options`, or a bundled
    /// one, at once.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] for an empty `catalogue`.
    pub fn new(
        context: &egui::Context,
        catalogue: Vec<&'static EncoderSpec>,
        link: Box<dyn Link>,
        desktop: Box<dyn Desktop>,
        settings: Settings,
        options: Options,
    ) -> Result<Self> {
        theme::install(context, settings.theme);
        context.set_zoom_factor(settings.zoom);
        let encoder = options.encoder.as_deref().unwrap_or_default();
        let device = options.device.unwrap_or_else(|| settings.device.clone());
        let state = State::new(catalogue, encoder, device, settings.twin).ok_or_else(|| {
            Error::new(
                ErrorKind::Internal,
                "cannot open the window",
                "no encoder is known",
                "",
            )
        })?;
        let mut app = Self {
            state,
            view: View::new(settings.export_folder.clone()),
            saved: settings.clone(),
            settings,
            link,
            desktop,
            screenshot: options.screenshot.map(|shot| Shooting {
                path: shot.path,
                phase: ShootingPhase::Computing,
                taken: Arc::default(),
            }),
            outcome: None,
        };
        app.desktop.list_devices();
        let first = options
            .image
            .unwrap_or_else(|| ImageSource::Bundled(bundled::NAMES[0].to_owned()));
        app.open(first);
        app.send();
        Ok(app)
    }

    // ---- In and out ----------------------------------------------------------------------------

    /// Takes in what worker and desktop have said, and sends what follows from it.
    fn drain(&mut self, context: &egui::Context) {
        while let Some(event) = self.link.poll() {
            let opened = matches!(event, crate::worker::Event::ImageOpened { .. });
            self.state.apply(event);
            if opened && let Some(ImageSource::Path(path)) = &self.state.source {
                self.settings.remember(path);
            }
        }
        while let Some(answer) = self.desktop.poll() {
            self.take(answer, context);
        }
        self.send();
    }

    fn send(&mut self) {
        for command in self.state.take_commands() {
            match self.link.send(command.clone()) {
                Ok(generation) => self.state.sent(&command, generation),
                Err(error) => self.state.refused(&command, error),
            }
        }
    }

    fn take(&mut self, answer: Answer, context: &egui::Context) {
        match answer {
            Answer::File(path) => self.open(ImageSource::Path(path)),
            Answer::Folder(path) => self.view.export.folder = path.display().to_string(),
            Answer::DialogClosed => {
                self.view.dialog = DialogState::Hidden;
                if self.view.card == Some(Card::Open) {
                    self.view.card = None;
                }
            }
            Answer::DialogMissing => self.view.dialog = DialogState::Missing,
            Answer::Devices(devices) => self.state.devices = devices,
            Answer::SettingsLost(error) => {
                log::warn!("{error}");
                // Once is enough: the reason will not go away by itself.
                let is_known = self
                    .state
                    .messages
                    .iter()
                    .any(|message| message.content == Content::Failure(error.clone()));
                if !is_known {
                    self.state
                        .tell(Place::Controls, "save settings", Content::Failure(error));
                }
            }
            Answer::Screenshot(result) => {
                if let Some(outcome) = &self.outcome
                    && let Ok(mut outcome) = outcome.lock()
                {
                    *outcome = result.map(|_| ());
                }
                context.send_viewport_cmd(ViewportCommand::Close);
            }
        }
    }

    fn open(&mut self, source: ImageSource) {
        if self.view.card == Some(Card::Open) {
            self.view.card = None;
        }
        self.view.dialog = DialogState::Hidden;
        self.state.open(source);
    }

    fn save_settings(&mut self, context: &egui::Context) {
        self.settings.zoom = context.zoom_factor();
        self.settings.twin = self.state.twin_shown;
        self.settings.device = self.state.device_choice.clone();
        // Not in the middle of a drag.
        if self.settings != self.saved && !context.egui_is_using_pointer() {
            self.saved = self.settings.clone();
            self.desktop.save_settings(&self.settings);
        }
    }

    // ---- What the reader does ------------------------------------------------------------------

    fn take_input(&mut self, ui: &Ui) {
        let context = ui.ctx();
        let dropped = ui.input(|input| {
            input
                .raw
                .dropped_files
                .first()
                .map(|file| file.path().to_owned())
        });
        if let Some(path) = dropped {
            self.open(ImageSource::Path(path));
        }
        self.take_paste(context);
        for command in UiCommand::pressed(context) {
            self.perform(command, context);
        }
        let scene = Scene {
            state: &self.state,
            settings: &self.settings,
        };
        if let Some(eta) = response::dragged_eta(ui, &scene, &self.view.plots) {
            self.state.set_eta(eta);
        }
    }

    /// Takes an image, or the path of one, from the clipboard, unless a text field wants it.
    fn take_paste(&mut self, context: &egui::Context) {
        let is_typing = context.text_edit_focused();
        let pasted = context.input(|input| {
            input.events.iter().find_map(|event| match event {
                InputEvent::PasteImage(image) => Some(pixels(image)),
                InputEvent::Paste(text) if !is_typing => {
                    let path = cards::expand_home(text.trim().lines().next()?);
                    path.is_absolute().then_some(ImageSource::Path(path))
                }
                _ => None,
            })
        });
        if let Some(source) = pasted {
            self.open(source);
        }
    }

    /// Does what menu, key or button ask for.
    pub fn perform(&mut self, command: UiCommand, context: &egui::Context) {
        let fine = |eta: f64, steps: f64| eta::stepped(eta, steps);
        match command {
            UiCommand::Open => {
                self.view.open(Card::Open);
                self.browse();
            }
            UiCommand::Paste => context.send_viewport_cmd(ViewportCommand::RequestPaste),
            UiCommand::Export => self.view.open(Card::Export),
            UiCommand::CopyCommand => self.copy_command(context),
            UiCommand::Quit => context.send_viewport_cmd(ViewportCommand::Close),
            UiCommand::ToggleTwin => self.state.show_twin(!self.state.twin_shown),
            UiCommand::NewSeed => self.state.set_seed(fresh_seed()),
            UiCommand::PauseResume => self.state.toggle_pause(),
            UiCommand::Cancel => self.close_or_cancel(),
            UiCommand::EtaDown => self.state.set_eta(fine(self.state.eta_l2, -1.0)),
            UiCommand::EtaUp => self.state.set_eta(fine(self.state.eta_l2, 1.0)),
            UiCommand::EtaDecadeDown => self.state.set_eta(self.state.eta_l2 / 10.0),
            UiCommand::EtaDecadeUp => self.state.set_eta(self.state.eta_l2 * 10.0),
            UiCommand::EtaReset => self.state.set_eta(self.state.eta_default()),
            UiCommand::ToggleXScale => {
                self.settings.x_scale = toggled(self.settings.x_scale);
                self.view.reset_plots = true;
            }
            UiCommand::ToggleYScale => {
                self.settings.y_scale = toggled(self.settings.y_scale);
                self.view.reset_plots = true;
            }
            UiCommand::ResetPlots => self.view.reset_plots = true,
            UiCommand::ZoomIn => egui::gui_zoom::zoom_in(context),
            UiCommand::ZoomOut => egui::gui_zoom::zoom_out(context),
            UiCommand::ZoomReset => context.set_zoom_factor(1.0),
            UiCommand::Keys => self.view.open(Card::Keys),
            UiCommand::Welcome => self.settings.welcome_dismissed = false,
            UiCommand::Messages => self.view.open(Card::Messages),
            UiCommand::About => self.view.open(Card::About),
        }
    }

    fn browse(&mut self) {
        self.view.dialog = DialogState::Asked;
        self.desktop.pick_file();
    }

    /// Escape: the topmost thing first.
    fn close_or_cancel(&mut self) {
        let newest = self
            .state
            .messages
            .iter()
            .rev()
            .find(|message| !message.dismissed);
        if self.view.card.take().is_some() {
            self.view.dialog = DialogState::Hidden;
        } else if let Some(id) = newest.map(|message| message.id) {
            self.state.dismiss(id);
        } else if !self.settings.welcome_dismissed {
            self.settings.welcome_dismissed = true;
        } else {
            self.state.cancel();
        }
    }

    fn copy_command(&mut self, context: &egui::Context) {
        let Some(source) = &self.state.source else {
            return;
        };
        let line = crate::cli::command_line(
            source,
            &self.state.recipe,
            self.state.twin_shown,
            &self.state.device_choice,
            Background::default(),
            Path::new("profile"),
        );
        let content = match line {
            Ok(line) => {
                context.copy_text(line.clone());
                Content::Note(format!("Copied: {line}"))
            }
            Err(error) => Content::Failure(error),
        };
        self.state.tell(Place::Response, "copy as command", content);
    }

    fn carry_out(&mut self, intents: Vec<Intent>, context: &egui::Context) {
        for intent in intents {
            match intent {
                Intent::Do(command) => self.perform(command, context),
                Intent::Open(source) => self.open(source),
                Intent::BrowseFile => self.browse(),
                Intent::BrowseFolder => self.desktop.pick_folder(),
                Intent::SetEta(eta) => self.state.set_eta(eta),
                Intent::Encoder(name) => self.state.choose_encoder(name),
                Intent::Readout(readout) => self.state.choose_readout(readout),
                Intent::Family(family) => self.state.choose_family(family),
                Intent::Seed(seed) => self.state.set_seed(seed),
                Intent::Preset(preset) => self.state.choose_preset(preset),
                Intent::Start => self.state.start(),
                Intent::Dither(on) => self.state.set_dither(on),
                Intent::Device(choice) => self.state.choose_device(choice),
                Intent::Export {
                    folder,
                    stem,
                    formats,
                } => {
                    self.settings.export_folder = Some(folder.clone());
                    self.view.card = None;
                    self.state.export(folder, stem, formats);
                }
                Intent::Dismiss(id) => self.state.dismiss(id),
                Intent::DismissWelcome => self.settings.welcome_dismissed = true,
                Intent::Theme(choice) => {
                    self.settings.theme = choice;
                    theme::choose(context, choice);
                }
                Intent::View(mode) => self.settings.view = mode,
                Intent::Gain(gain) => self.settings.gain = gain,
                Intent::Interpolate(on) => self.settings.interpolate = on,
                Intent::XScale(scale) => {
                    self.settings.x_scale = scale;
                    self.view.reset_plots = true;
                }
                Intent::YScale(scale) => {
                    self.settings.y_scale = scale;
                    self.view.reset_plots = true;
                }
            }
        }
    }

    // ---- Drawing -------------------------------------------------------------------------------

    /// Draws one part and carries out what it asked for, so that the parts drawn after it already
    /// show the effect.
    fn part(
        &mut self,
        ui: &mut Ui,
        draw: impl FnOnce(&mut Ui, &Scene<'_>, &mut View, &mut Vec<Intent>),
    ) {
        let mut intents = Vec::new();
        let scene = Scene {
            state: &self.state,
            settings: &self.settings,
        };
        draw(ui, &scene, &mut self.view, &mut intents);
        let context = ui.ctx().clone();
        self.carry_out(intents, &context);
    }

    fn draw(&mut self, ui: &mut Ui) {
        let palette = Palette::for_ui(ui);
        let width = ui.available_width();
        let bare = |margin: Margin| EguiFrame::new().fill(palette.ground).inner_margin(margin);
        let side = GAP as i8;

        Panel::top("menu")
            .frame(bare(Margin {
                left: side,
                right: side,
                top: 4,
                bottom: 4,
            }))
            .show_separator_line(false)
            .show(ui, |ui| {
                self.part(ui, |ui, scene, _, asked| menu::menu_ui(ui, scene, asked))
            });
        Panel::bottom("status")
            .frame(bare(Margin {
                left: side + 4,
                right: side + 4,
                top: 2,
                bottom: 4,
            }))
            .show_separator_line(false)
            .show(ui, |ui| {
                let memory = memory_stats::memory_stats().map(|stats| stats.physical_mem);
                self.part(ui, |ui, scene, _, asked| {
                    status::status_ui(ui, scene, memory, asked)
                });
            });
        Panel::bottom("eta")
            .frame(bare(Margin {
                left: side,
                right: side,
                top: 0,
                bottom: 4,
            }))
            .show_separator_line(false)
            .show(ui, |ui| {
                theme::card(palette)
                    .inner_margin(Margin::symmetric(12, 6))
                    .show(ui, |ui| {
                        self.part(ui, eta::eta_ui);
                    });
            });
        let mut places = Vec::new();
        let left = Panel::left("image")
            .frame(bare(Margin {
                left: side,
                right: 0,
                top: 0,
                bottom: side,
            }))
            .show_separator_line(false)
            .resizable(true)
            .default_size((width * IMAGE_SHARE).clamp(280.0, 560.0))
            .size_range(280.0..=720.0)
            .show(ui, |ui| {
                in_card(ui, palette, |ui| self.part(ui, image_panel::image_ui));
            });
        places.push((Place::Image, left.response.rect));
        let right = Panel::right("controls")
            .frame(bare(Margin {
                left: 0,
                right: side,
                top: 0,
                bottom: side,
            }))
            .show_separator_line(false)
            .resizable(false)
            .exact_size(CONTROLS_WIDTH + 2.0 * 12.0 + GAP)
            .show(ui, |ui| {
                in_card(ui, palette, |ui| self.part(ui, controls::controls_ui));
            });
        places.push((Place::Controls, right.response.rect));
        let centre = CentralPanel::no_frame()
            .frame(bare(Margin {
                left: side,
                right: side,
                top: 0,
                bottom: side,
            }))
            .show(ui, |ui| {
                in_card(ui, palette, |ui| self.part(ui, response::response_ui));
            });
        places.push((Place::Response, centre.response.rect));

        self.part(ui, |ui, scene, view, asked| {
            for (place, rect) in places {
                message::messages_ui(ui, scene, place, rect, asked);
            }
            if let Some(rect) = view.response_rect
                && !scene.settings.welcome_dismissed
            {
                welcome::welcome_ui(ui, scene, rect, asked);
            }
            cards::cards_ui(ui, scene, view, asked);
            if ui.input(|input| !input.raw.hovered_files.is_empty()) {
                drop_hint(ui, palette);
            }
        });
    }

    // ---- Pictures ------------------------------------------------------------------------------

    /// Takes the picture once all is computed, has it written, and leaves.
    fn shoot(&mut self, context: &egui::Context) {
        let Some(shooting) = &mut self.screenshot else {
            return;
        };
        let failed = self
            .state
            .messages
            .iter()
            .any(|m| matches!(m.content, Content::Failure(_)));
        match shooting.phase {
            ShootingPhase::Computing if self.state.is_settled() || failed => {
                shooting.phase = ShootingPhase::Asked;
                let (taken, waker) = (Arc::clone(&shooting.taken), context.clone());
                let callback = ScreenshotCallback::new(move |image| {
                    if let Ok(mut taken) = taken.lock() {
                        *taken = Some(image);
                    }
                    waker.request_repaint();
                });
                context.send_viewport_cmd(ViewportCommand::Screenshot(callback));
                context.request_repaint();
            }
            ShootingPhase::Asked => {
                let image = shooting
                    .taken
                    .lock()
                    .ok()
                    .and_then(|mut taken| taken.take());
                if let Some(image) = image {
                    shooting.phase = ShootingPhase::Writing;
                    self.desktop.save_screenshot(image, &shooting.path);
                }
            }
            ShootingPhase::Computing | ShootingPhase::Writing => {}
        }
    }
}

impl eframe::App for EtascopeApp {
    fn logic(&mut self, context: &egui::Context, _frame: &mut eframe::Frame) {
        self.drain(context);
    }

    fn ui(&mut self, ui: &mut Ui, _frame: &mut eframe::Frame) {
        self.take_input(ui);
        self.draw(ui);
        self.send();
        let context = ui.ctx().clone();
        self.save_settings(&context);
        self.shoot(&context);
    }

    fn clear_color(&self, visuals: &egui::Visuals) -> [f32; 4] {
        visuals.panel_fill.to_normalized_gamma_f32()
    }

    fn persist_egui_memory(&self) -> bool {
        false
    }
}

/// A card that fills what is left.
fn in_card(ui: &mut Ui, palette: Palette, contents: impl FnOnce(&mut Ui)) {
    theme::card(palette).show(ui, |ui| {
        ui.set_min_size(ui.available_size());
        contents(ui);
    });
}

/// A seed that was not used before, short enough to be read and typed again.
fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // The standard library keys its hash maps at random.
    std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish()
        % 1_000_000
}

fn toggled(scale: AxisScale) -> AxisScale {
    match scale {
        AxisScale::Log => AxisScale::Linear,
        AxisScale::Linear => AxisScale::Log,
    }
}

/// Pasted pixels as a photograph.
fn pixels(image: &ColorImage) -> ImageSource {
    let [width, height] = image.size;
    let rgba: Vec<u8> = image
        .pixels
        .iter()
        .flat_map(egui::Color32::to_srgba_unmultiplied)
        .collect();
    ImageSource::Rgba {
        width,
        height,
        rgba: rgba.into(),
    }
}

/// Over the window while a file hovers above it.
fn drop_hint(ui: &Ui, palette: Palette) {
    let layer = egui::LayerId::new(egui::Order::Foreground, egui::Id::unique("drop hint"));
    let painter = ui.ctx().layer_painter(layer);
    let rect = ui.ctx().content_rect();
    painter.rect_filled(rect, 0.0, palette.ground.gamma_multiply(0.8));
    let font = theme::bold_font(theme::LARGE);
    let text = "Drop to open this photograph";
    painter.text(
        rect.center(),
        egui::Align2::CENTER_CENTER,
        text,
        font,
        palette.text,
    );
    painter.rect_stroke(
        rect.shrink(16.0),
        8.0,
        egui::Stroke::new(2.0, palette.marker),
        egui::StrokeKind::Inside,
    );
}
