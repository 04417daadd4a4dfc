//! The singular direction along which the photograph is distorted: which one, and what it does.

use eframe::egui::{Align, Button, DragValue, Label, Layout, Ui, Vec2};

use crate::app::explain;
use crate::app::format;
use crate::app::intent::{Intent, Scene};
use crate::app::panels::image::Added;
use crate::app::panels::{INFO_SIDE, alternatives, info};
use crate::app::state::{Refinement, Selected};
use crate::app::theme;
use crate::app::ui_command::UiCommand;
use crate::recipe::WeightsKind;
use crate::worker::DIRECTIONS_KEPT;

/// Height that [`direction_ui`] takes, in points.
pub(in crate::app::panels) const HEIGHT: f32 = 60.0;

/// What is added to the photograph in this workspace.
pub(in crate::app::panels) fn distortion(scene: &Scene<'_>) -> Added {
    let spectrum = &scene.state.spectrum;
    let direction = scene.state.shown_direction();
    let sign = match spectrum.selected {
        Selected::Index(index) => format!("a·v{}", subscript(index)),
        Selected::Least => "a·v, least".to_owned(),
    };
    let amplitude = format::significant(spectrum.amplitude_l2, 3);
    Added {
        stale: direction.as_ref().is_some_and(|known| known.stale),
        direction: direction.map(|known| known.vector),
        norm_l2: spectrum.amplitude_l2,
        sign,
        size: format!("a = {amplitude}"),
    }
}

/// A number in small digits below the line.
fn subscript(number: usize) -> String {
    let small = |digit: char| match digit.to_digit(10).and_then(|d| char::from_u32(0x2080 + d)) {
        Some(small) => small,
        None => digit,
    };
    number.to_string().chars().map(small).collect()
}

/// Top, least, and one direction after the other; below them what the direction does to the feature.
pub(in crate::app::panels) fn direction_ui(
    ui: &mut Ui,
    scene: &Scene<'_>,
    intents: &mut Vec<Intent>,
) {
    let state = scene.state;
    let selected = state.spectrum.selected;
    ui.horizontal(|ui| {
        ui.set_min_height(26.0);
        ui.spacing_mut().item_spacing.x = 4.0;
        let ends = [
            (Selected::Index(1), "Top", UiCommand::TopDirection),
            (Selected::Least, "Least", UiCommand::LeastDirection),
        ];
        for (end, text, command) in ends {
            let key = command.key_text(ui.ctx());
            let button = ui
                .selectable_label(selected == end, text)
                .on_hover_text(format!("{} ({key})", command.tooltip()));
            if button.clicked() {
                intents.push(Intent::Do(command));
            }
        }
        ui.add_space(4.0);
        let steps = [
            ("‹", UiCommand::PreviousDirection),
            ("›", UiCommand::NextDirection),
        ];
        let [back, on] = steps.map(|(text, command)| (text, command, Vec2::new(24.0, 24.0)));
        step_ui(ui, back, intents);
        let mut index = match selected {
            Selected::Index(index) => index,
            Selected::Least => state.index_max(),
        };
        let before = index;
        let field = DragValue::new(&mut index)
            .range(1..=state.index_max())
            .speed(0.2)
            .prefix("v ")
            .custom_formatter(|number, _| match selected {
                Selected::Index(_) => format!("{number:.0}"),
                Selected::Least => "–".to_owned(),
            });
        ui.add_enabled(state.index_max() > 1, field)
            .accessible_name("Index of the singular direction")
            .on_hover_text("Which singular direction; drag, or click to type");
        if index != before {
            intents.push(Intent::Select(Selected::Index(index)));
        }
        step_ui(ui, on, intents);
        if state.twin_shown {
            ui.add_space(4.0);
            let seen = state.direction_curve();
            let all = [
                (
                    WeightsKind::Trained,
                    "trained",
                    "Directions of the trained encoder",
                ),
                (WeightsKind::Random, "twin", "Directions of its random twin"),
            ];
            if let Some(weights) = alternatives(ui, seen.weights, &all) {
                intents.push(Intent::DirectionsOf(weights));
            }
        }
    });
    ui.horizontal(|ui| {
        ui.set_min_height(22.0);
        let width = ui.available_width() - INFO_SIDE - ui.spacing().item_spacing.x;
        let layout = Layout::left_to_right(Align::Center);
        ui.allocate_ui_with_layout(Vec2::new(width, 22.0), layout, |ui| {
            ui.set_min_width(width);
            ui.add(Label::new(theme::note(told(scene))).truncate());
        });
        info(ui, &explain::SINGULAR_DIRECTION);
    });
}

fn step_ui(ui: &mut Ui, (text, command, size): (&str, UiCommand, Vec2), intents: &mut Vec<Intent>) {
    let button = ui
        .add(Button::new(text).min_size(size))
        .accessible_name(command.text());
    let tooltip = format!("{} ({})", command.tooltip(), command.key_text(ui.ctx()));
    if button.on_hover_text(tooltip).clicked() {
        intents.push(Intent::Do(command));
    }
}

/// What the direction does to the feature, or why there is none.
fn told(scene: &Scene<'_>) -> String {
    let state = scene.state;
    let seen = state.direction_curve();
    let Some(run) = &seen.curve.spectrum else {
        return "no direction yet".to_owned();
    };
    if run.spectrum.rank() == 0 {
        return "every singular value is zero".to_owned();
    }
    let first = run.spectrum.values.first().copied().unwrap_or_default();
    let share = |gain: f64| format::significant(100.0 * gain / first, 2);
    match (state.spectrum.selected, state.shown_direction()) {
        (Selected::Index(index), Some(shown)) => {
            let sigma = format::significant(shown.gain, 3);
            let feature = format::significant(state.spectrum.amplitude_l2 * shown.gain, 3);
            let part = if index == 1 {
                String::new()
            } else {
                format!(", {} % of σ₁", share(shown.gain))
            };
            format!(
                "σ{} = {sigma}{part} · moves Φ by about a·σ = {feature}",
                subscript(index)
            )
        }
        (Selected::Index(index), None) if index > run.spectrum.rank() => {
            format!("this spectrum has {} values", run.spectrum.rank())
        }
        (Selected::Index(_), None) => match run.spectrum.bottom.len() {
            0 => {
                format!("of this value no direction is kept, of the first {DIRECTIONS_KEPT} it is")
            }
            _ => format!("directions are kept of the first and the last {DIRECTIONS_KEPT} values"),
        },
        (Selected::Least, shown) => {
            let Some((least, shown)) = seen.curve.least.as_ref().zip(shown) else {
                return match state.spectrum.refinement {
                    Refinement::Stopped => "stopped; press space to search".to_owned(),
                    _ => "the search begins once the spectrum is there".to_owned(),
                };
            };
            let gain = format::significant(shown.gain, 2);
            let found = format!("‖Jv‖ = {gain}, {} % of σ₁", share(shown.gain));
            if least.steps < least.steps_max {
                format!("{found} · step {} of {}", least.steps, least.steps_max)
            } else {
                format!("{found} · depends on the seed")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_digits_stand_for_their_number() {
        assert_eq!(subscript(1), "₁");
        assert_eq!(subscript(290), "₂₉₀");
    }
}
