//! The menu bar.

use eframe::egui::{Button, MenuBar, Ui};

use crate::app::intent::{Intent, Scene};
use crate::app::settings::{AxisScale, ThemeChoice, Workspace};
use crate::app::ui_command::UiCommand;
use crate::images::bundled;
use crate::worker::ImageSource;

/// The whole bar.
pub fn menu_ui(ui: &mut Ui, scene: &Scene<'_>, intents: &mut Vec<Intent>) {
    MenuBar::new().ui(ui, |ui| {
        ui.menu_button("File", |ui| file_ui(ui, scene, intents));
        ui.menu_button("View", |ui| view_ui(ui, scene, intents));
        ui.menu_button("Encoder", |ui| encoder_ui(ui, scene, intents));
        ui.menu_button("Help", |ui| help_ui(ui, intents));
        ui.separator();
        workspaces_ui(ui, scene, intents);
    });
}

/// The workspaces side by side, the one in front marked.
fn workspaces_ui(ui: &mut Ui, scene: &Scene<'_>, intents: &mut Vec<Intent>) {
    for (workspace, command) in [
        (Workspace::Response, UiCommand::ShowResponse),
        (Workspace::Spectrum, UiCommand::ShowSpectrum),
        (Workspace::Edit, UiCommand::ShowEdit),
    ] {
        let is_shown = scene.settings.workspace == workspace;
        let tooltip = format!("{} ({})", command.tooltip(), command.key_text(ui.ctx()));
        let tab = ui.selectable_label(is_shown, command.text());
        if tab.on_hover_text(tooltip).clicked() {
            intents.push(Intent::Do(command));
        }
    }
}

/// A menu entry with its key.
fn entry(ui: &mut Ui, command: UiCommand, enabled: bool, intents: &mut Vec<Intent>) {
    let button = Button::new(command.text()).right_text(command.key_text(ui.ctx()));
    let response = ui
        .add_enabled(enabled, button)
        .accessible_name(command.text());
    if response.on_hover_text(command.tooltip()).clicked() {
        intents.push(Intent::Do(command));
        ui.close();
    }
}

/// A menu entry with a tick.
fn ticked(ui: &mut Ui, on: bool, command: UiCommand, intents: &mut Vec<Intent>) {
    let mut shown = on;
    ui.horizontal(|ui| {
        let response = ui.checkbox(&mut shown, command.text());
        ui.weak(command.key_text(ui.ctx()));
        if response.on_hover_text(command.tooltip()).changed() {
            intents.push(Intent::Do(command));
        }
    });
}

fn file_ui(ui: &mut Ui, scene: &Scene<'_>, intents: &mut Vec<Intent>) {
    entry(ui, UiCommand::Open, true, intents);
    ui.add_enabled_ui(!scene.settings.recent.is_empty(), |ui| {
        ui.menu_button("Recent", |ui| {
            for path in &scene.settings.recent {
                let name = path.file_name().map_or_else(
                    || path.display().to_string(),
                    |n| n.to_string_lossy().into(),
                );
                if ui
                    .button(name)
                    .on_hover_text(path.display().to_string())
                    .clicked()
                {
                    intents.push(Intent::Open(ImageSource::Path(path.clone())));
                    ui.close();
                }
            }
        });
    });
    ui.menu_button("Bundled photographs", |ui| bundled_ui(ui, intents));
    entry(ui, UiCommand::Paste, true, intents);
    ui.separator();
    entry(
        ui,
        UiCommand::Export,
        scene.state.has_files_to_write(),
        intents,
    );
    entry(
        ui,
        UiCommand::CopyCommand,
        scene.state.source.is_some(),
        intents,
    );
    ui.separator();
    entry(ui, UiCommand::Quit, true, intents);
}

/// The program's own photographs.
pub fn bundled_ui(ui: &mut Ui, intents: &mut Vec<Intent>) {
    for photo in &bundled::PHOTOS {
        if ui.button(photo.title).on_hover_text(photo.credit).clicked() {
            intents.push(Intent::Open(ImageSource::Bundled(photo.name.to_owned())));
            ui.close();
        }
    }
}

fn view_ui(ui: &mut Ui, scene: &Scene<'_>, intents: &mut Vec<Intent>) {
    ui.label("Theme");
    for (choice, text) in [
        (ThemeChoice::System, "System"),
        (ThemeChoice::Light, "Light"),
        (ThemeChoice::Dark, "Dark"),
    ] {
        if ui.radio(scene.settings.theme == choice, text).clicked() {
            intents.push(Intent::Theme(choice));
        }
    }
    ui.separator();
    let [x_scale, y_scale] = scene.settings.scales_in_front();
    ticked(
        ui,
        x_scale == AxisScale::Log,
        UiCommand::ToggleXScale,
        intents,
    );
    ticked(
        ui,
        y_scale == AxisScale::Log,
        UiCommand::ToggleYScale,
        intents,
    );
    entry(ui, UiCommand::ResetPlots, true, intents);
    ui.separator();
    entry(ui, UiCommand::ZoomIn, true, intents);
    entry(ui, UiCommand::ZoomOut, true, intents);
    entry(ui, UiCommand::ZoomReset, true, intents);
}

fn encoder_ui(ui: &mut Ui, scene: &Scene<'_>, intents: &mut Vec<Intent>) {
    entry(ui, UiCommand::Encoders, true, intents);
    entry(ui, UiCommand::OpenWeights, true, intents);
    ui.separator();
    for spec in &scene.state.catalogue {
        if ui
            .radio(*spec.name == scene.state.recipe.encoder, &*spec.title)
            .clicked()
        {
            intents.push(Intent::Encoder(&spec.name));
            ui.close();
        }
    }
    ui.separator();
    ticked(ui, scene.state.twin_shown, UiCommand::ToggleTwin, intents);
    entry(ui, UiCommand::NewSeed, true, intents);
    ui.separator();
    entry(ui, UiCommand::PauseResume, true, intents);
    entry(ui, UiCommand::Cancel, true, intents);
}

fn help_ui(ui: &mut Ui, intents: &mut Vec<Intent>) {
    for command in [
        UiCommand::Keys,
        UiCommand::Welcome,
        UiCommand::Messages,
        UiCommand::About,
    ] {
        entry(ui, command, true, intents);
    }
}
