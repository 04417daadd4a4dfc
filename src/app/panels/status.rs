//! The status bar: what is being worked on, how far it is, what it costs.

use eframe::egui::{Align, Button, Label, Layout, ProgressBar, Ui, Vec2};

use crate::app::format;
use crate::app::intent::{Intent, Scene};
use crate::app::settings::Workspace;
use crate::app::state::{Refinement, State};
use crate::app::theme;
use crate::app::ui_command::UiCommand;
use crate::worker::{Lane, Progress};

/// The whole bar.
pub fn status_ui(
    ui: &mut Ui,
    scene: &Scene<'_>,
    memory_bytes: Option<usize>,
    intents: &mut Vec<Intent>,
) {
    let state = scene.state;
    ui.horizontal(|ui| {
        ui.set_min_height(26.0);
        ui.label(theme::note(context_text(state)));
        ui.separator();
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let memory = memory_bytes.map(format::megabytes).unwrap_or_default();
            fixed(ui, 64.0, &memory).on_hover_text("Memory of the whole program");
            let weights = format::file_size(state.memory.used_bytes());
            fixed(ui, 104.0, &format!("weights {weights}")).on_hover_text(memory_text(state));
            fixed(ui, 84.0, &elapsed_text(state)).on_hover_text("Time spent on the curves");
            work_ui(ui, state, intents);
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                ui.add(Label::new(theme::note(stage_text(state))).truncate());
            });
        });
    });
}

/// A note in a field of fixed width, flush right.
fn fixed(ui: &mut Ui, width: f32, text: &str) -> eframe::egui::Response {
    ui.allocate_ui_with_layout(
        Vec2::new(width, 20.0),
        Layout::right_to_left(Align::Center),
        |ui| {
            ui.set_min_width(width);
            ui.label(theme::note(text))
        },
    )
    .inner
}

/// Progress and the buttons that act on it. The room is kept when there is nothing to do.
fn work_ui(ui: &mut Ui, state: &State, intents: &mut Vec<Intent>) {
    let work = state.visible_work();
    let is_busy = work.is_some();
    let refinement = state.refinement_in_front();
    let can_pause = matches!(refinement, Refinement::Running | Refinement::Paused);
    let size = Vec2::new(64.0, 24.0);
    let cancel = ui.add_enabled(is_busy, Button::new("Cancel").min_size(size));
    if cancel
        .on_hover_text("Stop the work; what is shown stays (Esc)")
        .clicked()
    {
        intents.push(Intent::Do(UiCommand::Cancel));
    }
    let (text, tooltip) = match refinement {
        Refinement::Paused => ("Resume", "Go on (space)"),
        Refinement::Stopped if state.in_front == Workspace::Spectrum => {
            ("Compute", "Begin again (space)")
        }
        Refinement::Stopped => ("Refine", "Go on where it stopped (space)"),
        _ => ("Pause", "Hold the work (space)"),
    };
    let is_possible = can_pause || refinement == Refinement::Stopped;
    let pause = ui.add_enabled(is_possible, Button::new(text).min_size(size));
    if pause.on_hover_text(tooltip).clicked() {
        intents.push(Intent::Do(UiCommand::PauseResume));
    }
    let fraction = work
        .and_then(|(_, lane)| lane.progress.as_ref())
        .map_or(if is_busy { 0.0 } else { 1.0 }, |progress| {
            progress.fraction
        });
    let bar = ProgressBar::new(fraction)
        .desired_width(140.0)
        .desired_height(8.0);
    ui.add_visible(is_busy, bar).accessible_name("Progress");
}

/// Photograph, encoder and device.
fn context_text(state: &State) -> String {
    let photo = state
        .photo
        .as_ref()
        .map_or("no photograph", |photo| photo.name.as_str());
    let device = state.device.as_ref().map_or_else(
        || "device starting".to_owned(),
        |device| {
            let software = if device.software { ", software" } else { "" };
            format!("{} ({}{software})", device.name, device.api)
        },
    );
    let others = match state.shown.len() - 1 {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let title = &state.spec().title;
    format!("{photo}  ·  {title}{others}  ·  {device}")
}

/// `96 of 128 directions · ± 3 % · 12 s left`, or what else there is to say.
fn stage_text(state: &State) -> String {
    if let Some((lane, work)) = state.visible_work() {
        let held = match lane {
            Lane::Profile => state.refinement,
            Lane::Spectrum => state.spectrum.refinement,
            _ => Refinement::Running,
        };
        if held == Refinement::Paused {
            return format!("paused · {}", describe(work.progress.as_ref(), "waiting"));
        }
        let idle = match lane {
            Lane::Image => "opening the photograph",
            Lane::Device => "starting the device",
            Lane::Export => "writing files",
            _ => "starting",
        };
        let told = describe(work.progress.as_ref(), idle);
        return if lane == Lane::Profile && state.in_front != Workspace::Response {
            format!("response profile, behind this: {told}")
        } else {
            told
        };
    }
    match state.refinement_in_front() {
        Refinement::AwaitsStart => "press Start to compute".to_owned(),
        Refinement::Stopped => "stopped".to_owned(),
        _ if state.in_front == Workspace::Spectrum && state.exportable_spectra().is_empty() => {
            String::new()
        }
        _ if state.in_front == Workspace::Spectrum => "done".to_owned(),
        _ => match state.relative_error() {
            Some(error) => {
                format!(
                    "done · ± {} % at most",
                    format::significant(100.0 * error, 2)
                )
            }
            None => String::new(),
        },
    }
}

fn describe(progress: Option<&Progress>, idle: &str) -> String {
    let Some(progress) = progress else {
        return idle.to_owned();
    };
    match progress.remaining {
        Some(time) => format!("{} · {} left", progress.stage, format::duration(time)),
        None => progress.stage.clone(),
    }
}

/// Time that went into the shown curves.
fn elapsed_text(state: &State) -> String {
    let secs: f64 = if state.in_front == Workspace::Spectrum {
        let runs = state.exportable_spectra();
        runs.iter().map(|run| run.elapsed_secs).sum()
    } else {
        let runs = state.curves().filter_map(|seen| seen.curve.run.as_ref());
        runs.map(|run| run.elapsed_secs).sum()
    };
    if secs > 0.0 {
        format::duration(std::time::Duration::from_secs_f64(secs))
    } else {
        String::new()
    }
}

/// What takes the memory, and what may.
pub fn memory_text(state: &State) -> String {
    let memory = &state.memory;
    let mut lines = vec![format!(
        "Weights in memory: {} of at most {}",
        format::file_size(memory.used_bytes()),
        format::file_size(memory.budget_bytes)
    )];
    // The latest first.
    for loaded in memory.loaded.iter().rev() {
        let known = (state.catalogue.iter()).find(|spec| *spec.name == loaded.encoder);
        let title = known.map_or(loaded.encoder.as_str(), |spec| &*spec.title);
        let (encoder, weights) = (&loaded.encoder, loaded.weights);
        let used = if memory.is_in_use(encoder, weights) {
            "in use"
        } else {
            "idle, gives way to others"
        };
        let size = format::file_size(loaded.bytes);
        lines.push(format!("{title}, {}: {size}, {used}", weights.name()));
    }
    lines.join("\n")
}
