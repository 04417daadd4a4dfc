//! The photograph as the encoder sees it, perturbed by ηu or distorted along a singular direction.

use std::sync::Arc;

use eframe::egui::{
    Align2, Color32, CursorIcon, EventFilter, FontId, Key, Pos2, Rect, Response, Role, Sense,
    Slider, Stroke, StrokeKind, Ui, Vec2, WidgetInfo,
};
use eframe::egui_wgpu;

use super::mask::{draw_mask, paint};
use super::{alternatives, heading, spectrum};
use crate::app::format;
use crate::app::intent::{Intent, Scene};
use crate::app::settings::Workspace;
use crate::app::state::Loaded;
use crate::app::theme::{self, BODY, Palette, SMALL};
use crate::app::ui_command::UiCommand;
use crate::app::view::View;
use crate::geometry::directions::DirectionFamily;
use crate::render::{Preview, PreviewView, ViewMode};

/// Strength of an image that answers an older question.
const STALE: f32 = 0.35;
/// Step of the seam by an arrow key.
const SEAM_STEP: f32 = 0.02;

/// What is added to the photograph, and what that is called.
pub(super) struct Added {
    /// Unit L2 norm; channel, row, column.
    pub(super) direction: Option<Arc<[f32]>>,
    /// L2 norm of what is added.
    pub(super) norm_l2: f64,
    /// `ηu`.
    pub(super) sign: String,
    /// `η = 1`.
    pub(super) size: String,
    /// Whether the direction answers an older question.
    pub(super) stale: bool,
}

impl Added {
    /// What the workspace in front adds.
    fn of(scene: &Scene<'_>) -> Self {
        if scene.settings.workspace == Workspace::Spectrum {
            return spectrum::distortion(scene);
        }
        let profile = scene.state.lead().trained.profile();
        Self {
            direction: profile.map(|profile| profile.shown_direction.clone()),
            norm_l2: scene.state.eta_l2,
            sign: "ηu".to_owned(),
            size: format!("η = {}", format::significant(scene.state.eta_l2, 3)),
            stale: false,
        }
    }
}

/// The whole panel.
pub fn image_ui(ui: &mut Ui, scene: &Scene<'_>, view: &mut View, intents: &mut Vec<Intent>) {
    heading(ui, "Image", |ui| {
        if ui
            .button("Open…")
            .on_hover_text("O, or drop a file on the window")
            .clicked()
        {
            intents.push(Intent::Do(UiCommand::Open));
        }
    });
    let is_spectrum = scene.settings.workspace == Workspace::Spectrum;
    // The classes below need about 240 points.
    let below = 240.0 + if is_spectrum { spectrum::HEIGHT } else { 0.0 };
    let side = ui
        .available_width()
        .min((ui.available_height() - below).max(160.0));
    let (rect, response) = ui
        .horizontal(|ui| {
            let spare = (ui.available_width() - side).max(0.0) / 2.0;
            ui.add_space(spare);
            ui.spacing_mut().item_spacing.x = 0.0;
            ui.allocate_exact_size(Vec2::splat(side), Sense::click_and_drag())
        })
        .inner;
    match &scene.state.lead().trained.loaded {
        Some(loaded) => preview_ui(ui, scene, view, loaded, rect, response, intents),
        None => empty_ui(ui, scene, rect),
    }
    controls_ui(ui, scene, intents);
    if is_spectrum {
        spectrum::direction_ui(ui, scene, intents);
    }
    description_ui(ui, scene);
    if let Some(loaded) = &scene.state.lead().trained.loaded {
        let hue = Palette::for_ui(ui).encoder(scene.state.lead().slot);
        classes_ui(ui, loaded, hue);
    }
}

fn empty_ui(ui: &Ui, scene: &Scene<'_>, rect: Rect) {
    let palette = Palette::for_ui(ui);
    ui.painter().rect(
        rect,
        4.0,
        palette.well,
        Stroke::new(1.0, palette.edge),
        StrokeKind::Inside,
    );
    let text = if let Some(name) = scene.state.opening_name() {
        format!("opening {name}")
    } else if scene.state.photo.is_some() {
        let work = scene.state.visible_work();
        let progress = work.and_then(|(_, lane)| lane.progress.as_ref());
        progress.map_or_else(
            || "preparing the photograph".to_owned(),
            |progress| progress.stage.clone(),
        )
    } else {
        "Drop a photograph here,\nor press O".to_owned()
    };
    let font = FontId::proportional(BODY);
    ui.painter().text(
        rect.center(),
        Align2::CENTER_CENTER,
        text,
        font,
        palette.weak,
    );
}

fn preview_ui(
    ui: &Ui,
    scene: &Scene<'_>,
    view: &mut View,
    loaded: &Loaded,
    rect: Rect,
    response: Response,
    intents: &mut Vec<Intent>,
) {
    let palette = Palette::for_ui(ui);
    let mode = scene.settings.view;
    let is_spectrum = scene.settings.workspace == Workspace::Spectrum;
    let mask = match &scene.state.recipe.family {
        DirectionFamily::Masked { mask } if !is_spectrum => Some(mask),
        _ => None,
    };
    let painted = mask.filter(|_| view.is_painting);
    if let Some(mask) = painted {
        intents.extend(paint(ui, view, mask, &response, rect));
    } else if mode == ViewMode::Split {
        move_seam(ui, view, &response, rect);
    }
    let added = Added::of(scene);
    let direction =
        (added.direction).filter(|direction| direction.len() == loaded.prepared.pixels.len());
    let is_stale = loaded.stale || added.stale || scene.state.opening_name().is_some();
    let has_direction = direction.is_some();
    let preview = Preview {
        side_px: loaded.prepared.side_px,
        pixels: loaded.prepared.pixels.clone(),
        direction: direction.clone(),
        view: PreviewView {
            mode,
            interpolate: scene.settings.interpolate,
            eta_l2: added.norm_l2 as f32,
            gain: scene.settings.gain,
            seam: view.seam,
            strength: if is_stale { STALE } else { 1.0 },
            background: Palette::channels(palette.card),
            below: Palette::channels(palette.below),
            above: Palette::channels(palette.above),
        },
    };
    let clipped = (mode == ViewMode::Clipped)
        .then(|| {
            preview
                .direction
                .as_ref()
                .map(|u| clipped_fraction(&preview, u))
        })
        .flatten();
    ui.painter()
        .add(egui_wgpu::Callback::new_paint_callback(rect, preview));

    let (sign, size) = (&added.sign, &added.size);
    let said = match mode {
        ViewMode::Split => {
            let seam = rect.left() + view.seam * rect.width();
            draw_seam(ui, rect, seam, &response, palette);
            caption(
                ui,
                rect,
                Pos2::new(seam - 8.0, rect.bottom() - 8.0),
                Align2::RIGHT_BOTTOM,
                "original",
            );
            let right = if has_direction {
                format!("+ {sign}, {size}")
            } else {
                "no direction".to_owned()
            };
            caption(
                ui,
                rect,
                Pos2::new(seam + 8.0, rect.bottom() - 8.0),
                Align2::LEFT_BOTTOM,
                &right,
            );
            None
        }
        ViewMode::Noise => {
            let gain = format::significant(f64::from(scene.settings.gain), 2);
            Some(format!("{sign} × {gain} about mid-grey"))
        }
        ViewMode::Clipped => Some(clipped.map_or_else(
            || "no direction yet".to_owned(),
            |fraction| {
                let percent = format::significant(100.0 * fraction, 2);
                format!("{percent} % of the pixels cannot be shown")
            },
        )),
    };
    if let Some(text) = &said {
        let at = rect.left_bottom() + Vec2::new(8.0, -8.0);
        caption(ui, rect, at, Align2::LEFT_BOTTOM, text);
    }
    if let Some(mask) = mask {
        draw_mask(ui, rect, mask.discs.iter().chain(&view.painted), palette);
    }
    if mode == ViewMode::Clipped {
        clip_legend(ui, rect, palette);
    }
    ui.painter().rect_stroke(
        rect,
        0.0,
        Stroke::new(1.0, palette.edge),
        StrokeKind::Outside,
    );
    response.widget_info(|| match mode {
        ViewMode::Split => WidgetInfo::slider(
            true,
            f64::from(view.seam) * 100.0,
            format!("Seam between original and perturbed image, per cent; {size}"),
        ),
        ViewMode::Noise => {
            WidgetInfo::labeled(Role::Image, true, format!("Perturbation alone, {size}"))
        }
        ViewMode::Clipped => {
            WidgetInfo::labeled(Role::Image, true, format!("Clipped pixels, {size}"))
        }
    });
}

fn move_seam(ui: &Ui, view: &mut View, response: &Response, rect: Rect) {
    if let Some(pointer) = response.interact_pointer_pos() {
        view.seam = ((pointer.x - rect.left()) / rect.width()).clamp(0.0, 1.0);
    }
    if response.clicked() {
        response.request_focus();
    }
    if response.has_focus() {
        let arrows = EventFilter {
            horizontal_arrows: true,
            ..EventFilter::default()
        };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, arrows));
        let steps = ui.input(|input| {
            input.num_presses(Key::ArrowRight) as f32 - input.num_presses(Key::ArrowLeft) as f32
        });
        view.seam = (view.seam + steps * SEAM_STEP).clamp(0.0, 1.0);
    }
    if response.hovered() || response.dragged() {
        ui.ctx().set_cursor_icon(CursorIcon::ResizeHorizontal);
    }
}

fn draw_seam(ui: &Ui, rect: Rect, x: f32, response: &Response, palette: Palette) {
    let painter = ui.painter().with_clip_rect(rect);
    let ends = [Pos2::new(x, rect.top()), Pos2::new(x, rect.bottom())];
    painter.line_segment(ends, Stroke::new(3.0, palette.card));
    let width = if response.has_focus() { 2.5 } else { 1.5 };
    painter.line_segment(ends, Stroke::new(width, palette.marker));
    let handle = Pos2::new(x, rect.center().y);
    painter.circle(
        handle,
        7.0,
        palette.card,
        Stroke::new(width, palette.marker),
    );
}

/// Text on the image, on a plate so that it reads on any photograph.
fn caption(ui: &Ui, clip: Rect, at: Pos2, anchor: Align2, text: &str) {
    let palette = Palette::for_ui(ui);
    let painter = ui.painter().with_clip_rect(clip);
    let galley = painter.layout_no_wrap(text.to_owned(), FontId::proportional(SMALL), palette.text);
    let rect = anchor.anchor_size(at, galley.size());
    painter.rect_filled(
        rect.expand2(Vec2::new(5.0, 2.0)),
        3.0,
        palette.card.gamma_multiply(0.85),
    );
    painter.galley(rect.min, galley, palette.text);
}

fn clip_legend(ui: &Ui, rect: Rect, palette: Palette) {
    let mut at = rect.left_top() + Vec2::new(8.0, 8.0);
    for (colour, text) in [(palette.above, "above 1"), (palette.below, "below 0")] {
        let swatch = Rect::from_min_size(at, Vec2::splat(12.0));
        caption(ui, rect, at + Vec2::new(20.0, -1.0), Align2::LEFT_TOP, text);
        ui.painter().rect(
            swatch,
            2.0,
            colour,
            Stroke::new(1.0, palette.card),
            StrokeKind::Outside,
        );
        at.y += 22.0;
    }
}

/// Fraction of the pixels with a value outside [0, 1].
fn clipped_fraction(preview: &Preview, direction: &[f32]) -> f64 {
    let plane = preview.side_px * preview.side_px;
    let eta = preview.view.eta_l2;
    let is_outside = |i: usize| {
        let value = preview.pixels[i] + eta * direction[i];
        !(0.0..=1.0).contains(&value)
    };
    let count = (0..plane)
        .filter(|&p| (0..3).any(|c| is_outside(c * plane + p)))
        .count();
    count as f64 / plane as f64
}

fn controls_ui(ui: &mut Ui, scene: &Scene<'_>, intents: &mut Vec<Intent>) {
    ui.horizontal(|ui| {
        ui.set_min_height(26.0);
        let modes = [
            (
                ViewMode::Split,
                "Split",
                "Original and perturbed image with a seam to drag",
            ),
            (
                ViewMode::Noise,
                "Noise ×",
                "The perturbation alone, amplified about mid-grey",
            ),
            (
                ViewMode::Clipped,
                "Clipped",
                "Pixels that the encoder sees and no screen can show",
            ),
        ];
        if let Some(mode) = alternatives(ui, scene.settings.view, &modes) {
            intents.push(Intent::View(mode));
        }
        if scene.settings.view == ViewMode::Noise {
            let mut gain = scene.settings.gain;
            ui.spacing_mut().slider_width = (ui.available_width() - 8.0).clamp(40.0, 140.0);
            let slider = Slider::new(&mut gain, 1.0..=1000.0)
                .logarithmic(true)
                .show_value(false);
            let response = ui.add(slider).accessible_name("Amplification of the noise");
            if response
                .on_hover_text("Amplification of the noise")
                .changed()
            {
                intents.push(Intent::Gain(gain));
            }
        } else {
            let mut smooth = scene.settings.interpolate;
            let response = ui
                .checkbox(&mut smooth, "Smooth")
                .on_hover_text("Interpolate between pixels instead of showing them as squares");
            if response.changed() {
                intents.push(Intent::Interpolate(smooth));
            }
        }
    });
}

/// Name, size, what was done to the file, and the encoder's own preprocessing.
fn description_ui(ui: &mut Ui, scene: &Scene<'_>) {
    let Some(photo) = &scene.state.photo else {
        return;
    };
    let mut parts = vec![format!("{} × {} px", photo.width, photo.height)];
    parts.extend(photo.treatment.iter().cloned());
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing.x = 4.0;
        ui.label(theme::bold(&photo.name));
        ui.label(theme::note(format!("· {}", parts.join(" · "))));
    });
    if let Some(loaded) = &scene.state.lead().trained.loaded {
        if scene.state.is_comparing() {
            let text = format!("as {} sees it:", loaded.spec.title);
            ui.label(theme::note(text)).on_hover_text(
                "Each encoder has its own input side and preprocessing; \
                 choose another in the legend of the curves",
            );
        }
        ui.label(theme::note(&loaded.prepared.steps))
            .on_hover_text("Preprocessing: the checkpoint’s own recipe, before normalisation");
    }
}

/// The five classes that the trained encoder gives the largest probability.
fn classes_ui(ui: &mut Ui, loaded: &Loaded, hue: Color32) {
    if loaded.top5.is_empty() {
        return;
    }
    let palette = Palette::for_ui(ui);
    ui.add_space(4.0);
    ui.label(theme::note("Largest class probabilities, unperturbed"));
    ui.spacing_mut().item_spacing.y = 3.0;
    for (name, probability) in &loaded.top5 {
        let (rect, response) =
            ui.allocate_exact_size(Vec2::new(ui.available_width(), 18.0), Sense::hover());
        let percent = format!("{:.1} %", 100.0 * probability);
        ui.painter()
            .rect_filled(rect, 3.0, ui.visuals().faint_bg_color);
        let mut bar = rect;
        bar.set_width(rect.width() * probability.clamp(0.0, 1.0));
        ui.painter().rect_filled(bar, 3.0, hue.gamma_multiply(0.3));
        let font = FontId::proportional(SMALL);
        let number = ui.painter().text(
            rect.right_center() - Vec2::new(6.0, 0.0),
            Align2::RIGHT_CENTER,
            &percent,
            font.clone(),
            palette.text,
        );
        let room = Rect::from_min_max(rect.min, Pos2::new(number.left() - 8.0, rect.bottom()));
        ui.painter().with_clip_rect(room).text(
            rect.left_center() + Vec2::new(6.0, 0.0),
            Align2::LEFT_CENTER,
            name,
            font,
            palette.text,
        );
        let text = format!("{name}: {percent}");
        response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &text));
        response.on_hover_text(text);
    }
}
