//! What is asked: encoder, readout, directions, sampling, device.

use std::time::Duration;

use eframe::egui::{Align, ComboBox, Key, Layout, ScrollArea, TextEdit, Ui, Vec2};

use super::message::warning;
use super::{INFO_SIDE, directions, info, summary};
use crate::app::explain::{self, Explanation};
use crate::app::format;
use crate::app::intent::{Intent, Scene};
use crate::app::state::Refinement;
use crate::app::theme;
use crate::app::ui_command::UiCommand;
use crate::app::view::View;
use crate::device::{DeviceChoice, DeviceInfo};
use crate::encoders::{EncoderSpec, Readout};
use crate::recipe::Preset;

/// Width of the names left of the controls.
const NAME_WIDTH: f32 = 76.0;
/// Height of a row.
const ROW_HEIGHT: f32 = 26.0;
/// The whole panel.
pub fn controls_ui(ui: &mut Ui, scene: &Scene<'_>, view: &mut View, intents: &mut Vec<Intent>) {
    ScrollArea::vertical()
        .auto_shrink([false, false])
        .show(ui, |ui| {
            ui.label(theme::bold("Feature"));
            encoder_ui(ui, scene, intents);
            readout_ui(ui, scene, intents);
            twin_ui(ui, scene, intents);
            section(ui, "Perturbation");
            directions::directions_ui(ui, scene, view, intents);
            seed_ui(ui, scene, view, intents);
            dither_ui(ui, scene, intents);
            section(ui, "Computation");
            preset_ui(ui, scene, intents);
            device_ui(ui, scene, intents);
            section(ui, "Summary");
            if scene.state.is_comparing() {
                ui.label(theme::note("One row for each curve, below the plots."));
            } else {
                summary::summary_ui(ui, scene);
            }
        });
}

pub(super) fn section(ui: &mut Ui, name: &str) {
    ui.add_space(6.0);
    ui.separator();
    ui.label(theme::bold(name));
}

/// A name at the left, a control that fills the rest, and ⓘ at the right end.
pub(super) fn row(
    ui: &mut Ui,
    name: &str,
    about: Option<&Explanation>,
    control: impl FnOnce(&mut Ui, f32),
) {
    ui.horizontal(|ui| {
        ui.set_min_height(ROW_HEIGHT);
        let layout = Layout::left_to_right(Align::Center);
        ui.allocate_ui_with_layout(Vec2::new(NAME_WIDTH, ROW_HEIGHT), layout, |ui| {
            ui.set_min_size(Vec2::new(NAME_WIDTH, ROW_HEIGHT));
            ui.label(theme::note(name));
        });
        let spacing = ui.spacing().item_spacing.x;
        // The room for ⓘ is kept in every row, so that all controls end at the same place.
        let width = ui.available_width() - INFO_SIDE - spacing;
        ui.allocate_ui_with_layout(Vec2::new(width, ROW_HEIGHT), layout, |ui| {
            ui.set_min_size(Vec2::new(width, ROW_HEIGHT));
            control(ui, width);
        });
        if let Some(about) = about {
            info(ui, about);
        }
    });
}

pub(super) fn encoder_ui(ui: &mut Ui, scene: &Scene<'_>, intents: &mut Vec<Intent>) {
    let spec = scene.state.spec();
    row(ui, "Encoder", None, |ui, width| {
        let combo = ComboBox::from_id_salt("encoder")
            .width(width)
            .truncate()
            .selected_text(&*spec.title);
        let inner = combo.show_ui(ui, |ui| {
            for known in &scene.state.catalogue {
                let text = format!(
                    "{} · {} px · {:.1} M parameters",
                    known.title,
                    known.side_px,
                    known.parameters as f64 / 1e6
                );
                if ui.selectable_label(known.name == spec.name, text).clicked() {
                    intents.push(Intent::Encoder(&known.name));
                }
            }
            ui.separator();
            let key = UiCommand::Encoders.key_text(ui.ctx());
            let all = eframe::egui::Button::selectable(false, "All encoders…").right_text(key);
            if ui.add(all).accessible_name("All encoders…").clicked() {
                intents.push(Intent::Do(UiCommand::Encoders));
            }
        });
        inner.response.accessible_name("Encoder").on_hover_ui(|ui| {
            ui.label(&*spec.source);
            ui.label(theme::note(format!("weights: {}", spec.licence)));
        });
    });
}

fn readout_text(spec: &EncoderSpec, readout: &Readout) -> String {
    match readout {
        Readout::Pooled => format!("pooled · {}", spec.pooled_len),
        Readout::Logits => format!("logits · {}", spec.logits_len),
        Readout::Stage(index) => spec.stages.get(*index).map_or_else(
            || format!("stage {index}"),
            |stage| {
                let [channels, height, width] = stage.shape;
                format!("{} · {channels} × {height} × {width}", stage.name)
            },
        ),
    }
}

pub(super) fn readout_ui(ui: &mut Ui, scene: &Scene<'_>, intents: &mut Vec<Intent>) {
    let spec = scene.state.spec();
    let chosen = &scene.state.recipe.readout;
    row(ui, "Readout", Some(&explain::READOUT), |ui, width| {
        let combo = ComboBox::from_id_salt("readout")
            .width(width)
            .selected_text(readout_text(spec, chosen));
        let inner = combo.show_ui(ui, |ui| {
            let stages = (0..spec.stages.len()).map(Readout::Stage);
            let vectors = [Readout::Pooled, Readout::Logits].into_iter();
            for readout in vectors.chain(stages) {
                if spec.readout_len(&readout).is_err() {
                    continue;
                }
                let text = readout_text(spec, &readout);
                if ui.selectable_label(readout == *chosen, text).clicked() {
                    intents.push(Intent::Readout(readout));
                }
            }
        });
        inner.response.accessible_name("Readout");
    });
}

pub(super) fn twin_ui(ui: &mut Ui, scene: &Scene<'_>, intents: &mut Vec<Intent>) {
    row(ui, "Compare", Some(&explain::TWIN), |ui, _| {
        let mut shown = scene.state.twin_shown;
        let tooltip = format!("{} (R)", UiCommand::ToggleTwin.tooltip());
        if ui
            .checkbox(&mut shown, "Random twin")
            .on_hover_text(tooltip)
            .changed()
        {
            intents.push(Intent::Do(UiCommand::ToggleTwin));
        }
        let add = ui
            .button("Add…")
            .accessible_name("Add an encoder to the comparison");
        if add
            .on_hover_text("Draw the curves of another encoder beside these (B)")
            .clicked()
        {
            intents.push(Intent::Do(UiCommand::Encoders));
        }
    });
}

pub(super) fn seed_ui(ui: &mut Ui, scene: &Scene<'_>, view: &mut View, intents: &mut Vec<Intent>) {
    row(ui, "Seed", None, |ui, width| {
        let seed = scene.state.recipe.seed;
        let mut text = view.seed_text.clone().unwrap_or_else(|| seed.to_string());
        let button_width = 52.0;
        let field = TextEdit::singleline(&mut text).desired_width(width - button_width - 16.0);
        let response = ui
            .add_sized(Vec2::new(width - button_width - 8.0, ROW_HEIGHT), field)
            .accessible_name("Seed")
            .on_hover_text("Seed of the one set of directions that all scales share, and of the search for leading singular values");
        if response.has_focus() {
            view.seed_text = Some(text);
        } else {
            let dropped = ui.input(|input| input.key_pressed(Key::Escape));
            if response.lost_focus()
                && !dropped
                && let Ok(typed) = text.trim().parse::<u64>()
                && typed != seed
            {
                intents.push(Intent::Seed(typed));
            }
            view.seed_text = None;
        }
        let button = eframe::egui::Button::new("New");
        let new = ui
            .add_sized(Vec2::new(button_width, ROW_HEIGHT), button)
            .accessible_name("New seed");
        if new
            .on_hover_text(format!("{} (N)", UiCommand::NewSeed.tooltip()))
            .clicked()
        {
            intents.push(Intent::Do(UiCommand::NewSeed));
        }
    });
}

pub(super) fn dither_ui(ui: &mut Ui, scene: &Scene<'_>, intents: &mut Vec<Intent>) {
    row(ui, "Saturation", Some(&explain::DITHER), |ui, _| {
        let mut on = scene.state.recipe.dither_seed.is_some();
        if ui.checkbox(&mut on, "Dither ±½ grey level").changed() {
            intents.push(Intent::Dither(on));
        }
    });
}

fn preset_text(preset: Preset) -> &'static str {
    match preset {
        Preset::Interactive => "interactive",
        Preset::Paper => "paper",
    }
}

fn preset_ui(ui: &mut Ui, scene: &Scene<'_>, intents: &mut Vec<Intent>) {
    let state = scene.state;
    let time = |preset| {
        state.estimated_secs(preset).map_or_else(
            || "time not known yet".to_owned(),
            |secs| format!("about {}", format::duration(Duration::from_secs_f64(secs))),
        )
    };
    row(ui, "Sampling", Some(&explain::PRESET), |ui, width| {
        let combo = ComboBox::from_id_salt("preset")
            .width(width)
            .selected_text(preset_text(state.preset));
        let inner = combo.show_ui(ui, |ui| {
            for (preset, what) in [
                (Preset::Interactive, "128 directions, stops at ± 1 %"),
                (Preset::Paper, "2,048 directions, 256 JVPs"),
            ] {
                let text = format!("{} · {what} · {}", preset_text(preset), time(preset));
                if ui.selectable_label(preset == state.preset, text).clicked() {
                    intents.push(Intent::Preset(preset));
                }
            }
        });
        inner.response.accessible_name("Sampling");
    });
    if state.refinement == Refinement::AwaitsStart {
        row(ui, "", None, |ui, _| {
            if ui.button("Start").clicked() {
                intents.push(Intent::Start);
            }
            ui.label(theme::note(time(state.preset)));
        });
    }
}

/// A device in a list: software adapters are named as such.
fn device_text(device: &DeviceInfo) -> String {
    if device.software {
        format!("{} · {}, software", device.name, device.api)
    } else {
        format!("{} · {}", device.name, device.api)
    }
}

pub(super) fn device_ui(ui: &mut Ui, scene: &Scene<'_>, intents: &mut Vec<Intent>) {
    let state = scene.state;
    let in_use = state
        .device
        .as_ref()
        .map_or_else(|| "starting".to_owned(), device_text);
    let selected = match &state.device_choice {
        DeviceChoice::Auto => format!("auto: {in_use}"),
        _ => in_use,
    };
    row(ui, "Device", None, |ui, width| {
        let combo = ComboBox::from_id_salt("device")
            .width(width)
            .truncate()
            .selected_text(selected);
        let inner = combo.show_ui(ui, |ui| {
            let choose = |ui: &mut Ui, choice: DeviceChoice, text: &str, intents: &mut Vec<_>| {
                if ui
                    .selectable_label(choice == state.device_choice, text)
                    .clicked()
                {
                    intents.push(Intent::Device(choice));
                }
            };
            choose(
                ui,
                DeviceChoice::Auto,
                "auto: the best hardware, else cpu",
                intents,
            );
            choose(ui, DeviceChoice::Cpu, "cpu · flex", intents);
            for device in state.devices.iter().filter(|device| device.api != "flex") {
                let choice = DeviceChoice::Adapter(device.name.clone());
                choose(ui, choice, &device_text(device), intents);
            }
        });
        let response = inner.response.accessible_name("Device");
        response.on_hover_text("Where the encoder runs; the window draws on its own device");
    });
    if let Some(check) = state.failed_self_check() {
        let text = format!(
            "This device differs from cpu by {} (bound {}): its results are not to be trusted.",
            format::significant(check.largest_relative_difference, 2),
            format::significant(check.bound, 1)
        );
        warning(ui, &text, |ui| {
            if ui.button("Use cpu").clicked() {
                intents.push(Intent::Device(DeviceChoice::Cpu));
            }
        });
    }
}
