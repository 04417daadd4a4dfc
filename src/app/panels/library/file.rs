//! A weights file of the reader's own: what it is of, with the evidence, before anything is used.

use eframe::egui::{Button, ComboBox, Grid, Key, Label, RichText, ScrollArea, TextEdit, Ui, Vec2};

use crate::app::format;
use crate::app::intent::{Intent, Scene};
use crate::app::panels::cards::{dialog_ui, expand_home};
use crate::app::panels::message::error_text;
use crate::app::state::WeightFile;
use crate::app::theme::{self, Palette};
use crate::app::view::View;
use crate::encoders::registry;
use crate::encoders::weights::infer::Proposal;
use crate::encoders::weights::verify::{Report, shape_text};
use crate::worker::library::Inspection;

/// Names that are listed of each kind of fault.
const NAMES_MAX: usize = 200;

/// The page.
pub(super) fn file_ui(ui: &mut Ui, scene: &Scene<'_>, view: &mut View, intents: &mut Vec<Intent>) {
    dialog_ui(
        ui,
        view.dialog,
        "Type the path, or drop the file on the window.",
    );
    path_ui(ui, scene, view, intents);
    ui.add_space(4.0);
    let Some(file) = &scene.state.library.file else {
        ui.label(theme::note(
            "safetensors, PyTorch (.pth, .pt, .bin, .ckpt), an index of shards, or a folder with one \
             of them; FILE#PREFIX names one of several copies of a network in it.",
        ));
        ui.label(theme::note(
            "Nothing in the file is executed, and nothing is used before you have seen what it fits.",
        ));
        return;
    };
    match &file.found {
        None => {
            ui.label(format!("Reading {}…", file.file));
        }
        Some(Err(error)) => {
            error_text(ui, error);
        }
        Some(Ok(found)) => found_ui(ui, scene, view, file, found, intents),
    }
}

fn path_ui(ui: &mut Ui, scene: &Scene<'_>, view: &mut View, intents: &mut Vec<Intent>) {
    let mut accepted = false;
    ui.horizontal(|ui| {
        let field = TextEdit::singleline(&mut view.library.path)
            .hint_text("Path of a weights file")
            .desired_width(ui.available_width() - 196.0);
        let response = ui.add(field).accessible_name("Path of a weights file");
        if view.card_is_new {
            response.request_focus();
        }
        accepted = response.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
        accepted |= ui
            .button("Look into it")
            .on_hover_text("Read the names and shapes in the file")
            .clicked();
        if ui
            .button("Browse…")
            .on_hover_text("The system’s file dialog")
            .clicked()
        {
            intents.push(Intent::BrowseWeights);
        }
    });
    let path = view.library.path.trim();
    let is_reading = (scene.state.library.file.as_ref()).is_some_and(|file| file.found.is_none());
    if accepted && !path.is_empty() && !is_reading {
        let file = expand_home(path).to_string_lossy().into_owned();
        intents.push(Intent::Inspect {
            file,
            encoder: None,
        });
    }
}

fn found_ui(
    ui: &mut Ui,
    scene: &Scene<'_>,
    view: &mut View,
    file: &WeightFile,
    found: &Inspection,
    intents: &mut Vec<Intent>,
) {
    ui.label(theme::note(format!(
        "{} · {} · {} tensors",
        found.format,
        format::file_size(found.size_bytes),
        found.tensors
    )));
    let complete: Vec<&Proposal> = (found.proposals.iter())
        .filter(|proposal| proposal.is_complete())
        .collect();
    let encoders: Vec<(&str, &Proposal)> = if complete.is_empty() {
        named(found.proposals.iter())
    } else {
        named(complete.iter().copied())
    };
    // One that fits is proposed; of several the reader chooses.
    if let [(only, _)] = encoders[..] {
        view.library.proposal = Some(only.to_owned());
    }
    verdict_ui(ui, file, found, !complete.is_empty(), encoders.len());
    let chosen = view.library.proposal.clone();
    let chosen = encoders
        .iter()
        .find(|(name, _)| Some(*name) == chosen.as_deref());
    let height = (ui.available_height() - 44.0).max(80.0);
    ScrollArea::vertical()
        .id_salt("proposals")
        .max_height(height)
        .auto_shrink([false, false])
        .show(ui, |ui| {
            for (name, proposal) in &encoders {
                proposal_ui(ui, view, name, proposal);
            }
            if let Some((_, proposal)) = chosen {
                ui.add_space(8.0);
                report_ui(ui, &proposal.report);
            }
        });
    ui.horizontal(|ui| {
        let fits = chosen.is_some_and(|(_, proposal)| proposal.is_complete());
        let text = match &file.adopting {
            Some(_) => "Loading…",
            None => "Use with these weights",
        };
        let is_ready = fits && file.adopting.is_none();
        let button = ui.add_enabled(is_ready, Button::new(text).min_size(Vec2::new(0.0, 28.0)));
        let why = if chosen.is_none() && !encoders.is_empty() {
            "Choose the encoder first"
        } else {
            "The file does not hold the whole network"
        };
        if button.on_disabled_hover_text(why).clicked()
            && let Some((name, _)) = chosen
        {
            intents.push(Intent::Adopt((*name).to_owned()));
        }
        against_ui(ui, scene, file, intents);
        if let Some(error) = &file.failure {
            let palette = Palette::for_ui(ui);
            let text = format!("{}: {}", error.what, error.why);
            ui.add(Label::new(RichText::new(text).small().color(palette.error)).truncate());
        }
    });
}

/// Encoders with the proposals that name them.
fn named<'a>(proposals: impl Iterator<Item = &'a Proposal>) -> Vec<(&'a str, &'a Proposal)> {
    let pairs = proposals.flat_map(|proposal| {
        let names = proposal.encoders.iter();
        names.map(move |name| (name.as_str(), proposal))
    });
    pairs.collect()
}

/// What was found, in a sentence or two.
fn verdict_ui(ui: &mut Ui, file: &WeightFile, found: &Inspection, fits: bool, count: usize) {
    let palette = Palette::for_ui(ui);
    let good = |text: &str| theme::bold(text).color(palette.good);
    let bad = |text: &str| theme::bold(text).color(palette.error);
    match (fits, count, &file.encoder) {
        (true, 1, Some(_)) => {
            ui.label(good("The file fits this encoder."));
        }
        (true, 1, None) => {
            ui.label(good("The file fits one known encoder."));
        }
        (true, ..) => {
            ui.label(good("The file fits the network of several encoders."));
            ui.label(theme::note(
                "They differ in how photographs are prepared, which the file does not tell: choose \
                 the one that the weights were trained for.",
            ));
        }
        (false, 0, _) => {
            ui.label(bad("The file fits no known network."));
            ui.add(Label::new(theme::note(format!("It holds {}.", found.contents))).wrap());
            ui.label(theme::note(
                "Hold it against an encoder to see all that differs.",
            ));
        }
        (false, _, Some(_)) => {
            ui.label(bad("The file does not fit this encoder."));
        }
        (false, ..) => {
            ui.label(bad("The file fits no known network; these come nearest."));
        }
    }
}

/// An encoder that can be chosen, with the evidence and its preparation of photographs.
fn proposal_ui(ui: &mut Ui, view: &mut View, name: &str, proposal: &Proposal) {
    let Ok(row) = registry::row(name) else { return };
    let is_chosen = view.library.proposal.as_deref() == Some(name);
    if ui
        .radio(is_chosen, &*row.spec.title)
        .on_hover_text(name)
        .clicked()
    {
        view.library.proposal = Some(name.to_owned());
    }
    ui.indent(name, |ui| {
        let text = format!(
            "{}\n{}",
            proposal.report.evidence(),
            row.spec.preprocessing.describe()
        );
        ui.add(Label::new(theme::note(text)).wrap());
    });
}

/// The report of one proposal: what is missing, unknown, of another shape or type, and passed over.
fn report_ui(ui: &mut Ui, report: &Report) {
    let (matched, declared) = (report.matched(), report.declared);
    ui.label(theme::bold(format!(
        "{matched} of {declared} tensors are there"
    )));
    for copy in &report.copies {
        ui.label(theme::note(format!("the same values again after “{copy}”")));
    }
    for (what, count) in &report.passed_over {
        ui.label(theme::note(format!("passed over: {count} {what}")));
    }
    let missing = report.missing.iter().map(|missing| {
        let candidate = missing.candidate.as_ref();
        let nearest = candidate.map_or_else(String::new, |name| format!("nearest: {name}"));
        (missing.name.clone(), nearest)
    });
    faults_ui(ui, "Missing", missing);
    let unexpected = report.unexpected.iter();
    faults_ui(
        ui,
        "Unknown",
        unexpected.map(|name| (name.clone(), String::new())),
    );
    let reshaped = report.reshaped.iter().map(|tensor| {
        let [found, expected] = [&tensor.found, &tensor.expected].map(|shape| shape_text(shape));
        (tensor.name.clone(), format!("{found}, not {expected}"))
    });
    faults_ui(ui, "Of another shape", reshaped);
    let retyped = report.retyped.iter();
    let retyped = retyped.map(|(name, of)| (name.clone(), of.to_string()));
    faults_ui(ui, "Of a type that is not read", retyped);
}

/// One kind of fault with its names.
fn faults_ui(ui: &mut Ui, title: &str, names: impl ExactSizeIterator<Item = (String, String)>) {
    let count = names.len();
    if count == 0 {
        return;
    }
    ui.add_space(4.0);
    ui.label(theme::bold(format!("{title}: {count}")));
    Grid::new(title)
        .num_columns(2)
        .spacing(Vec2::new(24.0, 2.0))
        .min_row_height(16.0)
        .show(ui, |ui| {
            ui.spacing_mut().interact_size.y = 0.0;
            for (name, remark) in names.take(NAMES_MAX) {
                ui.add(Label::new(RichText::new(name).small()).selectable(true));
                ui.add(Label::new(theme::note(remark)).selectable(true));
                ui.end_row();
            }
        });
    if count > NAMES_MAX {
        ui.label(theme::note(format!("and {} more", count - NAMES_MAX)));
    }
}

/// The choice of an encoder that the file is held against.
fn against_ui(ui: &mut Ui, scene: &Scene<'_>, file: &WeightFile, intents: &mut Vec<Intent>) {
    let title = |name: &str| {
        let holding = scene.state.library.holding(name);
        holding.map_or_else(|| name.to_owned(), |one| one.row.spec.title.to_string())
    };
    let chosen = (file.encoder.as_deref()).map_or_else(|| "the best that fit".to_owned(), title);
    ui.label(theme::note("Held against"));
    let combo = ComboBox::from_id_salt("held against")
        .width(230.0)
        .truncate()
        .selected_text(chosen);
    let inner = combo.show_ui(ui, |ui| {
        let inspect = |encoder| Intent::Inspect {
            file: file.file.clone(),
            encoder,
        };
        if ui
            .selectable_label(file.encoder.is_none(), "the best that fit")
            .clicked()
        {
            intents.push(inspect(None));
        }
        for holding in &scene.state.library.holdings {
            let name: &'static str = &holding.row.spec.name;
            let is_chosen = file.encoder.as_deref() == Some(name);
            if ui
                .selectable_label(is_chosen, &*holding.row.spec.title)
                .clicked()
            {
                intents.push(inspect(Some(name)));
            }
        }
    });
    inner
        .response
        .accessible_name("Encoder that the file is held against");
}
