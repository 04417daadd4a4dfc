//! Messages where they belong: what happened, why, what to do.

use eframe::egui::{
    Align, Area, Frame, Id, Layout, Margin, Order, Pos2, Rect, RichText, Stroke, Ui,
};

use crate::Error;
use crate::app::intent::{Intent, Scene};
use crate::app::state::{Content, Message, Place};
use crate::app::theme::{self, Palette};

/// Shows the newest open messages of a place over the top of its panel: nothing below them moves,
/// and what was on screen stays there.
pub fn messages_ui(
    ui: &Ui,
    scene: &Scene<'_>,
    place: Place,
    rect: Rect,
    intents: &mut Vec<Intent>,
) {
    // Below the panel's heading, whose buttons may be what is needed now.
    let mut top = rect.top() + 48.0;
    for message in scene.state.messages_at(place).take(2) {
        // What is left of the panel without its edges and the card's own.
        let width = (rect.width() - 64.0).min(480.0);
        let response = Area::new(Id::unique(("message", message.id)))
            .order(Order::Middle)
            .fixed_pos(Pos2::new(rect.left() + 20.0, top))
            .constrain_to(rect)
            .accessible_name("Message")
            .show(ui.ctx(), |ui| {
                ui.set_max_width(width);
                message_card(ui, message, intents);
            });
        top = response.response.rect.bottom() + 8.0;
    }
}

/// One message as a card.
fn message_card(ui: &mut Ui, message: &Message, intents: &mut Vec<Intent>) {
    let palette = Palette::for_ui(ui);
    let colour = match message.content {
        Content::Failure(_) => palette.error,
        Content::Written(_) => palette.good,
        Content::Note(_) => palette.weak,
    };
    theme::floating_card(ui, palette)
        .stroke(Stroke::new(1.5, colour))
        .show(ui, |ui| {
            ui.set_width(ui.available_width());
            message_text(ui, message);
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                if ui.button("Dismiss").clicked() {
                    intents.push(Intent::Dismiss(message.id));
                }
            });
        });
}

/// The text of a message.
pub fn message_text(ui: &mut Ui, message: &Message) {
    let palette = Palette::for_ui(ui);
    match &message.content {
        Content::Failure(error) => error_text(ui, error),
        Content::Written(files) => {
            let count = files.len();
            let noun = if count == 1 { "file" } else { "files" };
            ui.label(theme::bold(format!("{count} {noun} written")).color(palette.good));
            for file in files {
                ui.label(theme::note(file.display().to_string()));
            }
        }
        Content::Note(text) => {
            ui.label(text);
        }
    }
}

/// What failed, why, and what to do.
pub fn error_text(ui: &mut Ui, error: &Error) {
    let palette = Palette::for_ui(ui);
    ui.label(theme::bold(sentence(&error.what)).color(palette.error));
    ui.label(sentence(&error.why));
    if !error.remedy.is_empty() {
        ui.label(RichText::new(sentence(&error.remedy)).color(palette.weak));
    }
}

/// A fragment as a sentence: with a capital and a final stop.
fn sentence(fragment: &str) -> String {
    let mut characters = fragment.chars();
    let mut text: String = characters
        .next()
        .map(|first| first.to_uppercase().to_string())
        .unwrap_or_default();
    text.extend(characters);
    if !text.ends_with(['.', '!', '?']) {
        text.push('.');
    }
    text
}

/// A warning inside a panel, with room for buttons.
pub fn warning(ui: &mut Ui, text: &str, buttons: impl FnOnce(&mut Ui)) {
    let palette = Palette::for_ui(ui);
    Frame::new()
        .stroke(Stroke::new(1.0, palette.warning))
        .corner_radius(6)
        .inner_margin(Margin::same(8))
        .show(ui, |ui| {
            ui.set_width(ui.available_width());
            ui.label(RichText::new(text).color(palette.warning));
            buttons(ui);
        });
}
