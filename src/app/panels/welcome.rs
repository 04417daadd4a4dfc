//! The welcome: what is seen, and what to try. One key dismisses it for good.

use eframe::egui::{Align, Align2, Area, Id, Layout, Order, Rect, Ui, Vec2};

use crate::app::intent::{Intent, Scene};
use crate::app::theme::{self, Palette};
use crate::app::ui_command::UiCommand;

/// Width of the card in points.
const WIDTH: f32 = 360.0;

/// The card, in the lower right corner of the curves, where they leave room.
pub fn welcome_ui(ui: &Ui, scene: &Scene<'_>, curves: Rect, intents: &mut Vec<Intent>) {
    let palette = Palette::for_ui(ui);
    Area::new(Id::unique("welcome"))
        .order(Order::Middle)
        .pivot(Align2::RIGHT_BOTTOM)
        .fixed_pos(curves.right_bottom() - Vec2::splat(8.0))
        .accessible_name("Welcome")
        .show(ui.ctx(), |ui| {
            let stroke = eframe::egui::Stroke::new(1.5, palette.marker);
            theme::floating_card(ui, palette)
                .stroke(stroke)
                .show(ui, |ui| {
                    ui.set_width(WIDTH);
                    ui.label(theme::bold("What you see"));
                    ui.label(
                    "When noise of norm η is added to this photograph, the encoder’s feature moves \
                     r times as far, squared, as its derivative predicts: r = 1 is linear. \
                     A trained encoder responds most strongly to noise that you barely see. \
                     The band is the standard error and shrinks as directions are added.",
                );
                    ui.label(theme::bold(
                        "Drag η, then press R to see the untrained twin.",
                    ));
                    ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                        if ui.button("Got it (Esc)").clicked() {
                            intents.push(Intent::DismissWelcome);
                        }
                        let text = if scene.state.twin_shown {
                            "Hide the twin (R)"
                        } else {
                            "Show the twin (R)"
                        };
                        if ui.button(text).clicked() {
                            intents.push(Intent::Do(UiCommand::ToggleTwin));
                        }
                    });
                });
        });
}
