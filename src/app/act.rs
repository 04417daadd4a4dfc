//! What the reader does: drops, pastes, keys, and what panels ask for.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;

use eframe::egui::{Color32, ColorImage, Context, Event, Ui, ViewportCommand, gui_zoom};

use super::host::is_weights;
use super::intent::{Intent, Scene};
use super::panels::{cards, eta, response, spectrum};
use super::settings::{AxisScale, MEGABYTE, Workspace};
use super::state::{Content, Place, Selected};
use super::ui_command::UiCommand;
use super::view::{Card, DialogState, LibraryPage};
use super::{EtascopeApp, theme};
use crate::images::Background;
use crate::worker::ImageSource;

impl EtascopeApp {
    pub(super) fn take_input(&mut self, ui: &Ui) {
        let context = ui.ctx();
        self.view.is_held = ui.input(|input| input.pointer.any_down());
        let dropped = ui.input(|input| {
            input
                .raw
                .dropped_files
                .first()
                .map(|file| file.path().to_owned())
        });
        if let Some(path) = dropped {
            if is_weights(&path) {
                self.open_weights(path.to_string_lossy().into_owned());
            } else {
                self.open(ImageSource::Path(path));
            }
        }
        self.take_paste(context);
        for command in UiCommand::pressed(context) {
            self.perform(command, context);
        }
        let scene = Scene {
            state: &self.state,
            settings: &self.settings,
        };
        match self.settings.workspace {
            Workspace::Response => {
                if let Some(eta) = response::dragged_eta(ui, &scene, &self.view.plots) {
                    self.state.set_eta(eta);
                }
            }
            Workspace::Spectrum => {
                let place = self.view.spectrum_plot.as_ref();
                if let Some(index) = spectrum::dragged_index(ui, &scene, place) {
                    self.state.select(Selected::Index(index));
                }
            }
            Workspace::Edit => {}
        }
    }

    /// Takes an image, or the path of one, from the clipboard, unless a text field wants it.
    fn take_paste(&mut self, context: &Context) {
        let is_typing = context.text_edit_focused();
        let pasted = context.input(|input| {
            input.events.iter().find_map(|event| match event {
                Event::PasteImage(image) => Some(pixels(image)),
                Event::Paste(text) if !is_typing => {
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
    pub fn perform(&mut self, command: UiCommand, context: &Context) {
        match command {
            UiCommand::Open => {
                self.view.open(Card::Open);
                self.browse();
            }
            UiCommand::Paste => context.send_viewport_cmd(ViewportCommand::RequestPaste),
            UiCommand::Export => self.view.open(Card::Export),
            UiCommand::CopyCommand => self.copy_command(context),
            UiCommand::Encoders => self.open_library(LibraryPage::Encoders),
            UiCommand::OpenWeights => {
                self.open_library(LibraryPage::File);
                self.browse_weights();
            }
            UiCommand::Quit => context.send_viewport_cmd(ViewportCommand::Close),
            UiCommand::ToggleTwin => self.state.show_twin(!self.state.twin_shown),
            UiCommand::NewSeed => self.state.set_seed(fresh_seed()),
            UiCommand::PauseResume => self.state.toggle_pause_in_front(),
            UiCommand::Cancel => self.close_or_cancel(),
            UiCommand::ShowResponse => self.show(Workspace::Response),
            UiCommand::ShowSpectrum => self.show(Workspace::Spectrum),
            UiCommand::ShowEdit => self.show(Workspace::Edit),
            UiCommand::MarkerLeft
            | UiCommand::MarkerRight
            | UiCommand::MarkerFarLeft
            | UiCommand::MarkerFarRight
            | UiCommand::MarkerReset => self.move_marker(command),
            UiCommand::PreviousDirection if self.shows_spectra() => self.state.step_index(-1),
            UiCommand::NextDirection if self.shows_spectra() => self.state.step_index(1),
            UiCommand::TopDirection if self.shows_spectra() => {
                self.state.select(Selected::Index(1));
            }
            UiCommand::LeastDirection if self.shows_spectra() => {
                self.state.select(Selected::Least);
            }
            UiCommand::PreviousDirection
            | UiCommand::NextDirection
            | UiCommand::TopDirection
            | UiCommand::LeastDirection => {}
            UiCommand::ToggleXScale if self.shows_spectra() => self.toggle_spectrum_scale(0),
            UiCommand::ToggleYScale if self.shows_spectra() => self.toggle_spectrum_scale(1),
            UiCommand::ToggleXScale => {
                self.settings.x_scale = toggled(self.settings.x_scale);
                self.view.reset_plots = true;
            }
            UiCommand::ToggleYScale => {
                self.settings.y_scale = toggled(self.settings.y_scale);
                self.view.reset_plots = true;
            }
            UiCommand::ResetPlots => self.view.reset_plots = true,
            UiCommand::ZoomIn => gui_zoom::zoom_in(context),
            UiCommand::ZoomOut => gui_zoom::zoom_out(context),
            UiCommand::ZoomReset => context.set_zoom_factor(1.0),
            UiCommand::Keys => self.view.open(Card::Keys),
            UiCommand::Welcome => self.settings.welcome_dismissed = false,
            UiCommand::Messages => self.view.open(Card::Messages),
            UiCommand::About => self.view.open(Card::About),
        }
    }

    /// Moves the marker of the workspace in front.
    fn move_marker(&mut self, command: UiCommand) {
        let moved = |value: f64, default: f64| match command {
            UiCommand::MarkerLeft => eta::stepped(value, -1.0),
            UiCommand::MarkerRight => eta::stepped(value, 1.0),
            UiCommand::MarkerFarLeft => value / 10.0,
            UiCommand::MarkerFarRight => value * 10.0,
            _ => default,
        };
        match self.settings.workspace {
            Workspace::Response => {
                let eta = moved(self.state.eta_l2, self.state.eta_default());
                self.state.set_eta(eta);
            }
            Workspace::Spectrum => {
                let now = self.state.spectrum.amplitude_l2;
                let amplitude = moved(now, self.state.amplitude_default());
                self.state.set_amplitude(amplitude);
            }
            Workspace::Edit => {
                let Some(rank) = self.state.edit.rank_within() else {
                    return;
                };
                self.state.set_rank(match command {
                    UiCommand::MarkerLeft => rank.saturating_sub(1),
                    UiCommand::MarkerRight => rank + 1,
                    UiCommand::MarkerFarLeft => rank / 2,
                    UiCommand::MarkerFarRight => (2 * rank).max(1),
                    _ => self.state.edit.rank_default().unwrap_or(rank),
                });
            }
        }
    }

    fn shows_spectra(&self) -> bool {
        self.settings.workspace == Workspace::Spectrum
    }

    fn toggle_spectrum_scale(&mut self, axis: usize) {
        if let Some(scale) = self.settings.spectrum_scales.get_mut(axis) {
            *scale = toggled(*scale);
        }
        self.view.reset_plots = true;
    }

    /// Brings a workspace to the front.
    fn show(&mut self, workspace: Workspace) {
        self.settings.workspace = workspace;
        self.view.reset_plots = true;
    }

    fn browse(&mut self) {
        self.view.dialog = DialogState::Asked;
        self.desktop.pick_file();
    }

    fn open_library(&mut self, page: LibraryPage) {
        self.view.open(Card::Encoders);
        self.view.library.page = page;
        self.view.library.search.clear();
        let lead = self.state.spec();
        self.view.library.select(&lead.name);
        // Files may have come or gone since the last time.
        self.state.library.list();
    }

    fn browse_weights(&mut self) {
        self.view.dialog = DialogState::Asked;
        self.desktop.pick_weights();
    }

    /// Looks into a weights file, and shows what it is before anything is used.
    pub(super) fn open_weights(&mut self, file: String) {
        self.open_library(LibraryPage::File);
        self.view.library.path.clone_from(&file);
        self.view.library.proposal = None;
        self.state.library.inspect(file, None);
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

    fn copy_command(&mut self, context: &Context) {
        let Some(source) = &self.state.source else {
            return;
        };
        let device = &self.state.device_choice;
        let line = match (self.settings.workspace, &self.state.edit.fitted) {
            (Workspace::Edit, None) => return,
            (Workspace::Edit, Some(run)) => {
                crate::cli::edit_line(source, run, device, Path::new("edit"))
            }
            (Workspace::Spectrum, _) => crate::cli::spectrum_command_line(
                source,
                &self.state.spectrum_recipes(),
                self.state.twin_shown,
                device,
                Background::default(),
                Path::new("spectra"),
            ),
            (Workspace::Response, _) => crate::cli::command_line(
                source,
                &self.state.recipes(),
                self.state.twin_shown,
                device,
                Background::default(),
                Path::new("profile"),
            ),
        };
        let content = match line {
            Ok(line) => {
                context.copy_text(line.clone());
                Content::Note(format!("Copied: {line}"))
            }
            Err(error) => Content::Failure(error),
        };
        self.state
            .tell(Place::Workspace, "copy as command", content);
    }

    pub(super) fn carry_out(&mut self, intents: Vec<Intent>, context: &Context) {
        for intent in intents {
            match intent {
                Intent::Do(command) => self.perform(command, context),
                Intent::Open(source) => self.open(source),
                Intent::BrowseFile => self.browse(),
                Intent::BrowseFolder => self.desktop.pick_folder(),
                Intent::SetEta(eta) => self.state.set_eta(eta),
                Intent::Encoder(name) => {
                    self.state.choose_encoder(name);
                    self.view.reset_plots = true;
                }
                Intent::AddEncoder(name) => {
                    self.state.add_encoder(name);
                    self.view.reset_plots = true;
                }
                Intent::RemoveEncoder(name) => {
                    self.state.remove_encoder(name);
                    self.view.reset_plots = true;
                }
                Intent::Look(name) => self.state.library.look(name),
                Intent::Fetch(name) => self.state.library.fetch(name),
                Intent::StopFetching(name) => self.state.library.stop_fetching(name),
                Intent::Inspect { file, encoder } => {
                    self.view.library.proposal = None;
                    let encoder = encoder.map(str::to_owned);
                    self.state.library.inspect(file, encoder);
                }
                Intent::Adopt(encoder) => self.state.library.adopt(&encoder),
                Intent::BrowseWeights => self.browse_weights(),
                Intent::Budget(megabytes) => {
                    self.settings.weights_budget_mb = megabytes;
                    self.state.set_budget(megabytes * MEGABYTE);
                }
                Intent::Readout(readout) => self.state.choose_readout(readout),
                Intent::Family(family) => self.state.choose_family(family),
                Intent::Seed(seed) => self.state.set_seed(seed),
                Intent::Rank(rank) => self.state.set_rank(rank),
                Intent::Cut(cut) => self.state.set_cut(cut),
                Intent::SeeBy(way) => self.state.see_by(way),
                Intent::ChangeEdit(wanted) => self.state.change_edit(|recipe| *recipe = *wanted),
                Intent::EditAgain => self.state.edit_again(),
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
                    match self.settings.workspace {
                        Workspace::Edit => self.state.export_edit(folder, stem, formats),
                        Workspace::Spectrum => self.state.export_spectra(folder, stem, formats),
                        Workspace::Response => self.state.export(folder, stem, formats),
                    }
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
                Intent::SpectrumMethod(method) => {
                    self.state.choose_spectrum_method(method);
                    self.view.reset_plots = true;
                }
                Intent::Select(selected) => self.state.select(selected),
                Intent::DirectionsOf(weights) => self.state.show_directions_of(weights),
                Intent::SetAmplitude(amplitude) => self.state.set_amplitude(amplitude),
            }
        }
    }
}

/// A seed that was not used before, short enough to be read and typed again.
fn fresh_seed() -> u64 {
    // The standard library keys its hash maps at random.
    RandomState::new().build_hasher().finish() % 1_000_000
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
        .flat_map(Color32::to_srgba_unmultiplied)
        .collect();
    ImageSource::Rgba {
        width,
        height,
        rgba: rgba.into(),
    }
}
