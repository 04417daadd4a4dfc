//! The parts of the window, one file each. Every part draws from a [`Scene`](super::intent::Scene)
//! and asks through [`Intent`](super::intent::Intent)s.

pub mod cards;
pub mod controls;
pub mod eta;
pub mod image;
pub mod menu;
pub mod message;
pub mod response;
pub mod status;
pub mod summary;
pub mod welcome;

use eframe::egui::{Align, Button, Layout, Popup, PopupCloseBehavior, Response, RichText, Ui};

use super::explain::Explanation;
use super::theme;

/// A panel's heading with what belongs to it at its right end.
pub fn heading(ui: &mut Ui, markup: &str, right: impl FnOnce(&mut Ui)) {
    ui.horizontal(|ui| {
        ui.set_min_height(26.0);
        let colour = ui.visuals().text_color();
        ui.label(theme::scripted(markup, &theme::bold_font(theme::BODY), colour));
        ui.with_layout(Layout::right_to_left(Align::Center), right);
    });
}

/// The sign ⓘ, which opens formula, unit, source and one sentence.
pub fn info(ui: &mut Ui, about: &Explanation) -> Response {
    let button = Button::new(RichText::new("ⓘ").color(ui.visuals().weak_text_color())).frame(false);
    let response = ui.add(button).on_hover_text(format!("About: {}", about.title));
    let response = response.accessible_name(format!("About: {}", about.title));
    Popup::from_toggle_button_response(&response)
        .close_behavior(PopupCloseBehavior::CloseOnClickOutside)
        .show(|ui| {
            ui.set_max_width(320.0);
            ui.label(theme::bold(about.title));
            ui.label(about.sentence);
            for (name, text) in
                [("formula", about.formula), ("unit", about.unit), ("source", about.source)]
            {
                ui.label(theme::note(format!("{name}: {text}")));
            }
        });
    response
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
            let response = ui.selectable_label(*value == chosen, *text).on_hover_text(*tooltip);
            if response.clicked() && *value != chosen {
                answer = Some(*value);
            }
        }
    });
    answer
}
