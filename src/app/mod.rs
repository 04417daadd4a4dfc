//! The window: an instrument over the worker.
//!
//! [`State`] is the model and pure data; the [`panels`] draw from it and ask through [`Intent`]s;
//! [`EtascopeApp`] alone changes anything. The worker and the desktop stand behind the traits
//! [`Link`] and [`Desktop`], so that tests play both. Nothing here computes, decodes or encodes.

mod act;
pub mod axis;
pub mod explain;
pub mod format;
pub mod host;
pub mod intent;
mod layout;
mod palette;
pub mod panels;
pub mod plots;
pub mod settings;
mod shooting;
mod start;
pub mod state;
pub mod theme;
pub mod ui_command;
pub mod view;

use std::sync::{Arc, Mutex};

use eframe::egui::{self, Ui, ViewportCommand};

pub use host::{Answer, Desktop, Librarian, Link, SystemDesktop};
pub use intent::{Intent, Scene};
pub use settings::{AxisScale, Settings, ThemeChoice, Workspace};
pub use start::{Options, Screenshot, run};
pub use state::State;
pub use ui_command::UiCommand;
pub use view::View;

use crate::encoders::EncoderSpec;
use crate::images::bundled;
use crate::worker::{Event, ImageSource, LibraryAnswer};
use crate::{Error, ErrorKind, Result};
use settings::MEGABYTE;
use shooting::Shooting;
use state::{Content, Place};
use view::{Card, DialogState};

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
    library: Box<dyn Librarian>,
    desktop: Box<dyn Desktop>,
    screenshot: Option<Shooting>,
    outcome: Option<Arc<Mutex<Result<()>>>>,
}

impl EtascopeApp {
    /// The window over a worker, a library of encoders and a desktop. It opens the photograph of `options`, or a bundled
    /// one, at once.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] for an empty `catalogue`.
    pub fn new(
        context: &egui::Context,
        catalogue: Vec<&'static EncoderSpec>,
        link: Box<dyn Link>,
        library: Box<dyn Librarian>,
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
            library,
            desktop,
            screenshot: options.screenshot.map(|shot| Shooting::new(shot.path)),
            outcome: None,
        };
        app.desktop.list_devices();
        let budget_bytes = app.settings.weights_budget_mb * MEGABYTE;
        if budget_bytes != app.state.memory.budget_bytes {
            app.state.set_budget(budget_bytes);
        }
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
            let opened = matches!(event, Event::ImageOpened { .. });
            self.state.apply(event);
            if opened && let Some(ImageSource::Path(path)) = &self.state.source {
                self.settings.remember(path);
            }
        }
        while let Some(answer) = self.library.poll() {
            self.take_from_library(answer);
        }
        while let Some(answer) = self.desktop.poll() {
            self.take(answer, context);
        }
        self.send();
    }

    /// A file that was opened as weights is on screen as soon as it is known: its card then closes.
    fn take_from_library(&mut self, answer: LibraryAnswer) {
        let before = self.state.spec();
        self.state.apply_library(answer);
        if !std::ptr::eq(before, self.state.spec()) {
            self.view.reset_plots = true;
            if self.view.card == Some(Card::Encoders) {
                self.view.card = None;
            }
        }
    }

    fn send(&mut self) {
        self.state.bring(self.settings.workspace, self.view.is_held);
        for request in self.state.library.take_requests() {
            self.library.ask(request);
        }
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
            Answer::Weights(path) => {
                self.open_weights(path.to_string_lossy().into_owned());
            }
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
