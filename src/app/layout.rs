//! Where the parts of the window stand.

use eframe::egui::{
    Align2, CentralPanel, Frame, Id, LayerId, Margin, Order, Panel, Rect, Stroke, StrokeKind, Ui,
};

use super::EtascopeApp;
use super::intent::{Intent, Scene};
use super::panels::{
    cards, controls, edit, eta, image as image_panel, menu, message, response, spectrum, status,
    welcome,
};
use super::settings::Workspace;
use super::state::Place;
use super::theme::{self, CONTROLS_WIDTH, GAP, Palette};
use super::view::View;

/// Margin at the window's edges in points.
const SIDE: i8 = GAP as i8;

/// Share of the window's width that the photograph takes until its edge is dragged.
const IMAGE_SHARE: f32 = 0.28;

impl EtascopeApp {
    /// Draws one part and carries out what it asked for, so that the parts drawn after it already
    /// show the effect.
    fn part(
        &mut self,
        ui: &mut Ui,
        draw: impl FnOnce(&mut Ui, &Scene<'_>, &mut View, &mut Vec<Intent>),
    ) {
        let mut intents = Vec::new();
        let scene = Scene {
            state: &self.state,
            settings: &self.settings,
        };
        draw(ui, &scene, &mut self.view, &mut intents);
        let context = ui.ctx().clone();
        self.carry_out(intents, &context);
    }

    pub(super) fn draw(&mut self, ui: &mut Ui) {
        let palette = Palette::for_ui(ui);
        Panel::top("menu")
            .frame(bare(palette, [SIDE, SIDE, 4, 4]))
            .show_separator_line(false)
            .show(ui, |ui| {
                self.part(ui, |ui, scene, _, asked| menu::menu_ui(ui, scene, asked));
            });
        Panel::bottom("status")
            .frame(bare(palette, [SIDE + 4, SIDE + 4, 2, 4]))
            .show_separator_line(false)
            .show(ui, |ui| {
                let memory = memory_stats::memory_stats().map(|stats| stats.physical_mem);
                self.part(ui, |ui, scene, _, asked| {
                    status::status_ui(ui, scene, memory, asked);
                });
            });
        let mut places = Vec::new();
        match self.settings.workspace {
            Workspace::Response => {
                self.marker_bar(ui, palette, eta::eta_ui);
                places.push((Place::Image, self.photograph(ui, palette)));
                let controls = self.controls(ui, palette, controls::controls_ui);
                places.push((Place::Controls, controls));
                let centre = self.centre(ui, palette, response::response_ui);
                places.push((Place::Workspace, centre));
            }
            Workspace::Spectrum => {
                self.marker_bar(ui, palette, eta::amplitude_ui);
                places.push((Place::Image, self.photograph(ui, palette)));
                let controls = self.controls(ui, palette, spectrum::controls_ui);
                places.push((Place::Controls, controls));
                let centre = self.centre(ui, palette, spectrum::spectrum_ui);
                places.push((Place::Workspace, centre));
            }
            Workspace::Edit => {
                self.marker_bar(ui, palette, edit::rank_ui);
                let controls = self.controls(ui, palette, edit::controls_ui);
                places.push((Place::Controls, controls));
                let centre = self.centre(ui, palette, edit::edit_ui);
                places.push((Place::Workspace, centre));
            }
        }

        self.part(ui, |ui, scene, view, asked| {
            for (place, rect) in places {
                message::messages_ui(ui, scene, place, rect, asked);
            }
            if let Some(rect) = view.response_rect
                && !scene.settings.welcome_dismissed
            {
                welcome::welcome_ui(ui, scene, rect, asked);
            }
            cards::cards_ui(ui, scene, view, asked);
            if ui.input(|input| !input.raw.hovered_files.is_empty()) {
                drop_hint(ui, palette);
            }
        });
    }
}

/// A part of the window: draws from the scene and the view, and asks.
type Part = fn(&mut Ui, &Scene<'_>, &mut View, &mut Vec<Intent>);

/// The parts of which workspaces are made; each answers with its place.
impl EtascopeApp {
    /// The bar over the whole width with the workspace's slider.
    fn marker_bar(&mut self, ui: &mut Ui, palette: Palette, draw: Part) {
        Panel::bottom("marker")
            .frame(bare(palette, [SIDE, SIDE, 0, 4]))
            .show_separator_line(false)
            .show(ui, |ui| {
                theme::card(palette)
                    .inner_margin(Margin::symmetric(12, 6))
                    .show(ui, |ui| self.part(ui, draw));
            });
    }

    /// The photograph at the left.
    fn photograph(&mut self, ui: &mut Ui, palette: Palette) -> Rect {
        let width = ui.available_width();
        // Each size of window has a width of its own, so that the photograph grows with the window
        // and a width that was dragged stays.
        let size_class = (width / 160.0).round() as i32;
        let left = Panel::left(Id::unique(("image", size_class)))
            .frame(bare(palette, [SIDE, 0, 0, SIDE]))
            .show_separator_line(false)
            .resizable(true)
            .default_size((width * IMAGE_SHARE).clamp(280.0, 560.0))
            .size_range(280.0..=720.0)
            .show(ui, |ui| {
                in_card(ui, palette, |ui| self.part(ui, image_panel::image_ui));
            });
        left.response.rect
    }

    /// The column of controls at the right.
    fn controls(&mut self, ui: &mut Ui, palette: Palette, draw: Part) -> Rect {
        let right = Panel::right("controls")
            .frame(bare(palette, [0, SIDE, 0, SIDE]))
            .show_separator_line(false)
            .resizable(false)
            .exact_size(CONTROLS_WIDTH + 2.0 * 12.0 + GAP)
            .show(ui, |ui| in_card(ui, palette, |ui| self.part(ui, draw)));
        right.response.rect
    }

    /// What is left in the middle.
    fn centre(&mut self, ui: &mut Ui, palette: Palette, draw: Part) -> Rect {
        let centre = CentralPanel::no_frame()
            .frame(bare(palette, [SIDE, SIDE, 0, SIDE]))
            .show(ui, |ui| in_card(ui, palette, |ui| self.part(ui, draw)));
        centre.response.rect
    }
}

/// A frame without a card: left, right, top and bottom margin.
fn bare(palette: Palette, [left, right, top, bottom]: [i8; 4]) -> Frame {
    let margin = Margin {
        left,
        right,
        top,
        bottom,
    };
    Frame::new().fill(palette.ground).inner_margin(margin)
}

/// A card that fills what is left.
fn in_card(ui: &mut Ui, palette: Palette, contents: impl FnOnce(&mut Ui)) {
    theme::card(palette).show(ui, |ui| {
        ui.set_min_size(ui.available_size());
        contents(ui);
    });
}

/// Over the window while a file hovers above it.
fn drop_hint(ui: &Ui, palette: Palette) {
    let layer = LayerId::new(Order::Foreground, Id::unique("drop hint"));
    let painter = ui.ctx().layer_painter(layer);
    let rect = ui.ctx().content_rect();
    painter.rect_filled(rect, 0.0, palette.ground.gamma_multiply(0.8));
    let font = theme::bold_font(theme::LARGE);
    let text = "Drop to open this photograph";
    painter.text(
        rect.center(),
        Align2::CENTER_CENTER,
        text,
        font,
        palette.text,
    );
    painter.rect_stroke(
        rect.shrink(16.0),
        8.0,
        Stroke::new(2.0, palette.marker),
        StrokeKind::Inside,
    );
}
