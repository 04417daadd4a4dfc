//! The parts of the window, one file each. Every part draws from a [`Scene`](super::intent::Scene)
//! and asks through [`Intent`](super::intent::Intent)s.

pub mod cards;
mod comparison;
pub mod controls;
pub mod directions;
pub mod edit;
pub mod eta;
pub mod image;
pub mod library;
mod mask;
pub mod menu;
pub mod message;
pub mod response;
pub mod spectrum;
pub mod status;
pub mod summary;
pub mod welcome;

use eframe::egui::{
    Align, Align2, Layout, Popup, PopupCloseBehavior, Response, Role, Sense, Stroke, Ui, Vec2,
    WidgetInfo,
};

use super::explain::Explanation;
use super::theme::{self, Palette};

/// A panel's heading with what belongs to it at its right end.
pub fn heading(ui: &mut Ui, markup: &str, right: impl FnOnce(&mut Ui)) {
    ui.horizontal(|ui| {
        ui.set_min_height(26.0);
        let colour = ui.visuals().text_color();
        ui.label(theme::scripted(
            markup,
            &theme::bold_font(theme::BODY),
            colour,
        ));
        ui.with_layout(Layout::right_to_left(Align::Center), right);
    });
}

/// Side of the sign ⓘ in points.
pub const INFO_SIDE: f32 = 16.0;

/// The sign ⓘ, which opens formula, unit, source and one sentence.
pub fn info(ui: &mut Ui, about: &Explanation) -> Response {
    let (rect, response) = ui.allocate_exact_size(Vec2::splat(INFO_SIDE), Sense::click());
    let is_lit = response.hovered() || response.has_focus();
    let palette = Palette::for_ui(ui);
    let colour = if is_lit { palette.text } else { palette.weak };
    let width = if response.has_focus() { 2.0 } else { 1.0 };
    ui.painter()
        .circle_stroke(rect.center(), 6.5, Stroke::new(width, colour));
    let font = theme::bold_font(10.0);
    ui.painter()
        .text(rect.center(), Align2::CENTER_CENTER, "i", font, colour);
    explain_by(&response, about);
    response
}

/// Lets a button open formula, unit, source and one sentence, and names it so.
pub fn explain_by(response: &Response, about: &Explanation) {
    let name = format!("About: {}", about.title);
    response.widget_info(|| WidgetInfo::labeled(Role::Button, true, &name));
    Popup::from_toggle_button_response(response)
        .close_behavior(PopupCloseBehavior::CloseOnClickOutside)
        .show(|ui| {
            ui.set_max_width(320.0);
            ui.label(theme::bold(about.title));
            ui.label(about.sentence);
            for (name, text) in [
                ("formula", about.formula),
                ("unit", about.unit),
                ("source", about.source),
            ] {
                ui.label(theme::note(format!("{name}: {text}")));
            }
        });
}

/// One of several alternatives, shown as a row of joined buttons; answers with a new choice.
pub fn alternatives<T: Copy + PartialEq>(
    ui: &mut Ui,
    chosen: T,
    all: &[(T, &str, &str)],
) -> Option<T> {
    let mut answer = None;
    ui.scope(|ui| {
        ui.spacing_mut().item_spacing.x = 2.0;
        for (value, text, tooltip) in all {
            let response = ui
                .selectable_label(*value == chosen, *text)
                .on_hover_text(*tooltip);
            if response.clicked() && *value != chosen {
                answer = Some(*value);
            }
        }
    });
    answer
}
