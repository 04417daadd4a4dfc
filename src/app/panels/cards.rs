//! Cards that float above the panels and block nothing: open, export, keys, messages, about.

use std::path::PathBuf;

use eframe::egui::{Align2, Button, Grid, Key, ScrollArea, TextEdit, Ui, Vec2, Window};

use super::heading;
use super::library;
use super::message::message_text;
use crate::app::intent::{Intent, Scene};
use crate::app::settings::Workspace;
use crate::app::state::source_name;
use crate::app::theme::{self, Palette};
use crate::app::ui_command::UiCommand;
use crate::app::view::{Card, DialogState, View};
use crate::encoders::registry;
use crate::images::bundled;
use crate::worker::{ExportFormat, ImageSource};

/// Width of the cards in points.
const WIDTH: f32 = 440.0;
/// Width of the list of keys, which has two columns, in points.
const KEYS_WIDTH: f32 = 600.0;

/// The open card, if any.
pub fn cards_ui(ui: &Ui, scene: &Scene<'_>, view: &mut View, intents: &mut Vec<Intent>) {
    let Some(card) = view.card else { return };
    let title = match card {
        Card::Open => "Open photograph",
        Card::Encoders => return library::library_ui(ui, scene, view, intents),
        Card::Export => "Export",
        Card::Keys => "Keys",
        Card::Messages => "Messages",
        Card::About => "About Etascope",
    };
    let palette = Palette::for_ui(ui);
    let mut is_closed = false;
    Window::new(title)
        .title_bar(false)
        .collapsible(false)
        .resizable(false)
        .anchor(Align2::CENTER_CENTER, Vec2::ZERO)
        .frame(theme::floating_card(ui, palette).inner_margin(16))
        .show(ui.ctx(), |ui| {
            ui.set_width(if card == Card::Keys {
                KEYS_WIDTH
            } else {
                WIDTH
            });
            heading(ui, title, |ui| {
                is_closed = ui.button("Close").on_hover_text("Esc").clicked();
            });
            ui.add_space(4.0);
            match card {
                Card::Open => open_ui(ui, scene, view, intents),
                // It has a window of its own.
                Card::Encoders => {}
                Card::Export => export_ui(ui, scene, view, intents),
                Card::Keys => keys_ui(ui),
                Card::Messages => messages_ui(ui, scene),
                Card::About => about_ui(ui, scene),
            }
        });
    view.card_is_new = false;
    if is_closed {
        view.card = None;
    }
}

fn open_ui(ui: &mut Ui, scene: &Scene<'_>, view: &mut View, intents: &mut Vec<Intent>) {
    dialog_ui(
        ui,
        view.dialog,
        "Type the path, drop the file on the window, or paste the image.",
    );
    let mut accepted = false;
    ui.horizontal(|ui| {
        let field = TextEdit::singleline(&mut view.path)
            .hint_text("Path of a photograph")
            .desired_width(270.0);
        let response = ui.add(field).accessible_name("Path of a photograph");
        if view.card_is_new {
            response.request_focus();
        }
        accepted = response.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
        accepted |= ui.button("Open").clicked();
        if ui
            .button("Browse…")
            .on_hover_text("The system’s file dialog")
            .clicked()
        {
            intents.push(Intent::BrowseFile);
        }
    });
    let path = view.path.trim();
    if accepted && !path.is_empty() {
        intents.push(Intent::Open(ImageSource::Path(expand_home(path))));
    }
    if !scene.settings.recent.is_empty() {
        ui.add_space(4.0);
        ui.label(theme::bold("Recent"));
        for path in &scene.settings.recent {
            let text = source_name(&ImageSource::Path(path.clone()));
            if ui
                .link(text)
                .on_hover_text(path.display().to_string())
                .clicked()
            {
                intents.push(Intent::Open(ImageSource::Path(path.clone())));
            }
        }
    }
    ui.add_space(4.0);
    ui.label(theme::bold("Bundled"));
    ui.horizontal_wrapped(|ui| {
        for photo in &bundled::PHOTOS {
            if ui.link(photo.title).on_hover_text(photo.credit).clicked() {
                intents.push(Intent::Open(ImageSource::Bundled(photo.name.to_owned())));
            }
        }
    });
    ui.add_space(4.0);
    ui.label(theme::note(
        "PNG, JPEG, WebP, TIFF, BMP, GIF (first frame). Or drop a file on the window, or paste an \
         image. Transparent pixels are laid on white.",
    ));
}

/// What became of the system's dialog, and what to do without it.
pub(super) fn dialog_ui(ui: &mut Ui, dialog: DialogState, instead: &str) {
    match dialog {
        DialogState::Asked => {
            ui.label(theme::note(
                "The system’s file dialog was asked for; it may be behind the window.",
            ));
        }
        DialogState::Missing => {
            let palette = Palette::for_ui(ui);
            let text =
                format!("The system showed no file dialog (no desktop portal answered). {instead}");
            ui.label(theme::note(text).color(palette.warning));
        }
        DialogState::Hidden => {}
    }
}

/// A typed path with `~` for the home folder, as shells have it, and without the `file://` that
/// file managers copy.
pub fn expand_home(path: &str) -> PathBuf {
    if let Some(encoded) = path.strip_prefix("file://") {
        return PathBuf::from(percent_decoded(encoded));
    }
    if let Some(rest) = path.strip_prefix("~/")
        && let Some(dirs) = directories::BaseDirs::new()
    {
        return dirs.home_dir().join(rest);
    }
    PathBuf::from(path)
}

/// A URI’s path with its `%20` and the like undone; broken escapes stay as they are.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = (*first == b'%')
            .then(|| {
                tail.get(..2)
                    .and_then(|digits| std::str::from_utf8(digits).ok())
            })
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn export_ui(ui: &mut Ui, scene: &Scene<'_>, view: &mut View, intents: &mut Vec<Intent>) {
    let mut stem = view
        .export
        .stem
        .clone()
        .unwrap_or_else(|| default_stem(scene));
    Grid::new("export")
        .num_columns(2)
        .spacing(Vec2::new(8.0, 6.0))
        .show(ui, |ui| {
            ui.label(theme::note("Folder"));
            ui.horizontal(|ui| {
                let field = TextEdit::singleline(&mut view.export.folder).desired_width(250.0);
                let response = ui.add(field).accessible_name("Folder");
                if view.card_is_new {
                    response.request_focus();
                }
                if ui
                    .button("Browse…")
                    .on_hover_text("The system’s folder dialog")
                    .clicked()
                {
                    intents.push(Intent::BrowseFolder);
                }
            });
            ui.end_row();
            ui.label(theme::note("File name"));
            let field = TextEdit::singleline(&mut stem).desired_width(250.0);
            if ui.add(field).accessible_name("File name").changed() {
                view.export.stem = Some(stem.clone());
            }
            ui.end_row();
            let mut name = "Formats";
            for (format, on) in &mut view.export.formats {
                ui.label(theme::note(std::mem::take(&mut name)));
                ui.checkbox(on, format_text(*format));
                ui.end_row();
            }
        });
    let formats: Vec<ExportFormat> = view
        .export
        .formats
        .iter()
        .filter(|(_, on)| *on)
        .map(|(format, _)| *format)
        .collect();
    let is_edit = scene.settings.workspace == Workspace::Edit;
    let reason = if !scene.state.has_files_to_write() {
        Some(if is_edit {
            "no map is fitted yet"
        } else {
            "there is no curve yet"
        })
    } else if formats.is_empty() {
        Some("no format is chosen")
    } else if view.export.folder.trim().is_empty() || stem.trim().is_empty() {
        Some("folder and file name are needed")
    } else {
        None
    };
    let note = reason.or_else(|| {
        if is_edit {
            return Some("the fitted map is written beside them, as safetensors");
        }
        let runs = scene.state.exportable();
        let is_growing = scene.state.in_front == Workspace::Response
            && runs.iter().any(|run| !run.profile.finished);
        is_growing.then_some("the curves still sharpen; what is shown is written")
    });
    ui.add_space(4.0);
    ui.horizontal(|ui| {
        if ui
            .add_enabled(reason.is_none(), Button::new("Write files"))
            .clicked()
        {
            let folder = expand_home(view.export.folder.trim());
            intents.push(Intent::Export {
                folder,
                stem: stem.trim().to_owned(),
                formats,
            });
        }
        if let Some(note) = note {
            ui.label(theme::note(note));
        }
    });
}

/// Name of the files: the photograph's without extension, and the encoder's.
fn default_stem(scene: &Scene<'_>) -> String {
    let photo = scene
        .state
        .photo
        .as_ref()
        .map_or("profile", |photo| photo.name.as_str());
    let stem = std::path::Path::new(photo).file_stem().map_or_else(
        || photo.to_owned(),
        |stem| stem.to_string_lossy().into_owned(),
    );
    let mut name = stem.replace(' ', "-");
    if let (Workspace::Edit, Some(run)) = (scene.settings.workspace, &scene.state.edit.fitted) {
        name += "-";
        name += &file_word(&run.recipe.encoder);
        for edit in &run.recipe.manipulations {
            name += "-";
            name += edit.word();
        }
        return name;
    }
    for shown in &scene.state.shown {
        name += "-";
        name += &file_word(&shown.spec.name);
    }
    if scene.state.in_front == Workspace::Spectrum {
        name += "-spectrum";
    }
    name
}

/// An encoder's name as part of a file name: of weights from a file, the file's own without folders.
fn file_word(encoder: &str) -> String {
    let (encoder, file) = registry::split_local(encoder);
    let Some(file) = file else {
        return encoder.to_owned();
    };
    let stem = std::path::Path::new(file).file_stem();
    let stem = stem.map(|stem| stem.to_string_lossy().into_owned());
    let plain = |c: char| {
        if c.is_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '-'
        }
    };
    let word: String = stem.unwrap_or_default().chars().map(plain).collect();
    format!("{encoder}-{word}")
}

fn format_text(format: ExportFormat) -> &'static str {
    match format {
        ExportFormat::Csv => "CSV: exactly the plotted numbers",
        ExportFormat::Json => "JSON: versions, hashes, seeds, device, recipe",
        ExportFormat::Svg => "SVG: the figure as vectors",
        ExportFormat::Png => "PNG: the figure at 300 dpi",
    }
}

fn keys_ui(ui: &mut Ui) {
    let keys: Vec<(String, UiCommand)> = UiCommand::ALL
        .into_iter()
        .map(|command| (command.key_text(ui.ctx()), command))
        .filter(|(key, _)| !key.is_empty())
        .collect();
    let rows = keys.len().div_ceil(2);
    ui.horizontal_top(|ui| {
        for (column, part) in keys.chunks(rows).enumerate() {
            let spacing = Vec2::new(16.0, 4.0);
            let grid = Grid::new(("keys", column)).num_columns(2).spacing(spacing);
            grid.min_row_height(22.0).show(ui, |ui| {
                for (key, command) in part {
                    ui.label(theme::bold(key));
                    ui.label(command.text()).on_hover_text(command.tooltip());
                    ui.end_row();
                }
            });
            ui.add_space(32.0);
        }
    });
    ui.add_space(4.0);
    ui.label(theme::note(
        "In a plot: drag to move the marker, drag with the right button to pan, Ctrl and wheel to zoom. \
         On the photograph: drag the seam. On the slider: double click to reset.",
    ));
}

fn messages_ui(ui: &mut Ui, scene: &Scene<'_>) {
    if scene.state.messages.is_empty() {
        ui.label(theme::note("Nothing has happened that you need to know."));
        return;
    }
    ScrollArea::vertical().max_height(420.0).show(ui, |ui| {
        for message in scene.state.messages.iter().rev() {
            message_text(ui, message);
            if !message.asked.is_empty() {
                ui.label(theme::note(format!("asked: {}", message.asked)));
            }
            ui.separator();
        }
    });
}

fn about_ui(ui: &mut Ui, scene: &Scene<'_>) {
    ui.label(theme::bold(concat!("Etascope ", env!("CARGO_PKG_VERSION"))));
    ui.label(env!("CARGO_PKG_DESCRIPTION"));
    ui.label(theme::note(
        "Response profiles after Szymkowiak, Pałubicki and Adamczewski (2026), arXiv 2609.39115.",
    ));
    ui.add_space(4.0);
    ui.label(theme::bold("Encoders"));
    for spec in &scene.state.catalogue {
        ui.label(theme::note(format!(
            "{}: {}; weights {}",
            spec.title, spec.source, spec.licence
        )));
    }
    ui.add_space(4.0);
    ui.label(theme::bold("Photographs"));
    for photo in &bundled::PHOTOS {
        ui.label(theme::note(format!("{}: {}", photo.title, photo.credit)));
    }
    ui.add_space(4.0);
    ui.label(theme::note(
        "Program: MIT licence. Font: Lato, SIL Open Font License 1.1.",
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_paths_may_come_from_a_shell_or_a_file_manager() {
        assert_eq!(expand_home("/a/b.png"), PathBuf::from("/a/b.png"));
        let from_manager = expand_home("file:///a%20b/%CE%B7%zz.png");
        assert_eq!(from_manager, PathBuf::from("/a b/η%zz.png"));
        assert!(!expand_home("~/b.png").starts_with("~"));
    }
}
