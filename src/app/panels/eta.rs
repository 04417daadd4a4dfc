//! The hero control: a magnitude, η or that of a distortion, on a logarithmic slider over the whole width.

use eframe::egui::accesskit::Action;
use eframe::egui::{
    Align, Align2, CursorIcon, EventFilter, FontId, Key, Layout, Pos2, Rect, Sense, Stroke,
    TextEdit, Ui, Vec2, WidgetInfo,
};

use super::info;
use crate::app::explain::{self, Explanation};
use crate::app::format;
use crate::app::intent::{Intent, Scene};
use crate::app::theme::{self, LARGE, Palette, SMALL};
use crate::app::view::View;
use crate::figure::ticks::log_ticks;
use crate::recipe::grey_rms;

/// Width of the typed entry in points.
const ENTRY_WIDTH: f32 = 84.0;
/// Width of the magnitude in grey levels in points.
const GREY_WIDTH: f32 = 160.0;

/// Steps of an arrow key in a decade.
pub const FINE_STEPS: f64 = 50.0;

/// η moved by `steps` fine steps of a fiftieth of a decade.
pub fn stepped(eta_l2: f64, steps: f64) -> f64 {
    eta_l2 * 10f64.powf(steps / FINE_STEPS)
}

/// A magnitude with its name and what it may be.
struct Magnitude {
    sign: &'static str,
    about: &'static Explanation,
    /// For screen readers: of the slider, and of the field.
    names: [&'static str; 2],
    value: f64,
    default: f64,
    range: [f64; 2],
    set: fn(f64) -> Intent,
}

/// η.
pub fn eta_ui(ui: &mut Ui, scene: &Scene<'_>, view: &mut View, intents: &mut Vec<Intent>) {
    let eta = Magnitude {
        sign: "η",
        about: &explain::ETA,
        names: ["Magnitude η, L2", "η, typed"],
        value: scene.state.eta_l2,
        default: scene.state.eta_default(),
        range: scene.state.eta_range(),
        set: Intent::SetEta,
    };
    magnitude_ui(ui, scene, view, &eta, intents);
}

/// The norm of the distortion along a singular direction.
pub fn amplitude_ui(ui: &mut Ui, scene: &Scene<'_>, view: &mut View, intents: &mut Vec<Intent>) {
    let amplitude = Magnitude {
        sign: "a",
        about: &explain::AMPLITUDE,
        names: ["Distortion a, L2", "a, typed"],
        value: scene.state.spectrum.amplitude_l2,
        default: scene.state.amplitude_default(),
        range: scene.state.eta_range(),
        set: Intent::SetAmplitude,
    };
    magnitude_ui(ui, scene, view, &amplitude, intents);
}

/// Label, slider, typed entry and the same magnitude in grey levels.
fn magnitude_ui(
    ui: &mut Ui,
    scene: &Scene<'_>,
    view: &mut View,
    magnitude: &Magnitude,
    intents: &mut Vec<Intent>,
) {
    let palette = Palette::for_ui(ui);
    ui.horizontal(|ui| {
        ui.set_min_size(Vec2::new(ui.available_width(), 44.0));
        let font = theme::bold_font(LARGE);
        ui.label(theme::scripted(magnitude.sign, &font, palette.marker));
        info(ui, magnitude.about);
        let right = ENTRY_WIDTH + GREY_WIDTH + 2.0 * ui.spacing().item_spacing.x;
        let width = (ui.available_width() - right).max(120.0);
        let value = slider_ui(ui, magnitude, width, palette, intents);
        entry_ui(ui, magnitude, value, view, intents);
        let grey = grey_rms(value, scene.state.input_len());
        let grey = format::significant(grey, 3);
        let side = scene.state.spec().side_px;
        let text = if scene.state.grey_levels_agree() {
            format!("L2 = {grey} grey levels RMS")
        } else {
            format!("{grey} grey levels at {side} px")
        };
        let layout = Layout::left_to_right(Align::Center);
        let room = ui.allocate_ui_with_layout(Vec2::new(GREY_WIDTH, 26.0), layout, |ui| {
            ui.set_min_width(GREY_WIDTH);
            ui.label(theme::note(text))
        });
        let text = grey_text(scene, magnitude.sign, value);
        room.inner.on_hover_text(text);
    });
}

/// The magnitude in grey levels, for each encoder where they differ.
fn grey_text(scene: &Scene<'_>, sign: &str, value: f64) -> String {
    let mut text = format!("Pixel RMS in grey levels of 255: 255 {sign}/√(3HW)");
    if !scene.state.grey_levels_agree() {
        for shown in &scene.state.shown {
            let grey = format::significant(grey_rms(value, shown.input_len()), 3);
            let (title, side) = (&shown.spec.title, shown.spec.side_px);
            text += &format!("\n{title} at {side} px: {grey}");
        }
    }
    text
}

/// The slider; answers with the magnitude as it is from this frame on.
fn slider_ui(
    ui: &mut Ui,
    magnitude: &Magnitude,
    width: f32,
    palette: Palette,
    intents: &mut Vec<Intent>,
) -> f64 {
    let [low, high] = magnitude.range;
    let (rect, response) = ui.allocate_exact_size(Vec2::new(width, 44.0), Sense::click_and_drag());
    let track = Rect::from_x_y_ranges(
        rect.left() + 10.0..=rect.right() - 10.0,
        rect.top() + 12.0..=rect.top() + 18.0,
    );
    let x_of = |eta: f64| {
        let fraction = (eta / low).ln() / (high / low).ln();
        track.left() + fraction as f32 * track.width()
    };

    let mut eta = magnitude.value;
    if response.double_clicked() {
        eta = magnitude.default;
    } else if let Some(pointer) = response.interact_pointer_pos() {
        let fraction = f64::from((pointer.x - track.left()) / track.width()).clamp(0.0, 1.0);
        eta = low * (high / low).powf(fraction);
        response.request_focus();
    }
    if response.has_focus() {
        let filter = EventFilter {
            horizontal_arrows: true,
            vertical_arrows: true,
            ..EventFilter::default()
        };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
        eta = by_keys(ui, eta, magnitude.default, [low, high]);
    }
    let asked = ui.input(|input| {
        input.num_accesskit_action_requests(response.id, Action::Increment) as f64
            - input.num_accesskit_action_requests(response.id, Action::Decrement) as f64
    });
    if asked != 0.0 {
        eta = stepped(eta, asked);
    }
    if eta != magnitude.value {
        intents.push((magnitude.set)(eta));
    }
    let shown = eta.clamp(low, high);

    let painter = ui.painter();
    painter.rect_filled(track, 3.0, ui.visuals().widgets.inactive.bg_fill);
    let mut travelled = track;
    travelled.set_right(x_of(shown));
    painter.rect_filled(travelled, 3.0, palette.marker.gamma_multiply(0.55));
    for tick in log_ticks([low, high]) {
        let x = x_of(tick.value);
        let length = if tick.major { 5.0 } else { 3.0 };
        let top = track.bottom() + 3.0;
        painter.line_segment(
            [Pos2::new(x, top), Pos2::new(x, top + length)],
            Stroke::new(
                1.0,
                if tick.major {
                    palette.weak
                } else {
                    palette.edge
                },
            ),
        );
        if let Some(label) = tick.label {
            let font = FontId::proportional(SMALL);
            let at = Pos2::new(x, top + 5.0);
            painter.text(at, Align2::CENTER_TOP, label, font, palette.weak);
        }
    }
    let handle = Pos2::new(x_of(shown), track.center().y);
    let radius = if response.hovered() || response.dragged() {
        10.0
    } else {
        9.0
    };
    painter.circle(
        handle,
        radius,
        palette.marker,
        Stroke::new(2.0, palette.card),
    );
    if response.has_focus() {
        painter.circle_stroke(handle, radius + 3.0, Stroke::new(2.0, palette.encoder(0)));
    }
    if response.hovered() || response.dragged() {
        ui.ctx().set_cursor_icon(CursorIcon::ResizeHorizontal);
    }
    response.widget_info(|| WidgetInfo::slider(true, shown, magnitude.names[0]));
    if ui.ctx().has_accesskit_node(response.id) {
        ui.ctx().accesskit_node_builder(response.id, |node| {
            node.set_min_numeric_value(low);
            node.set_max_numeric_value(high);
            node.add_action(Action::Increment);
            node.add_action(Action::Decrement);
        });
    }
    shown
}

/// A magnitude after the keys of this frame.
fn by_keys(ui: &Ui, eta: f64, default: f64, [low, high]: [f64; 2]) -> f64 {
    ui.input(|input| {
        let pressed = |key| input.num_presses(key) as f64;
        let fine = pressed(Key::ArrowRight) + pressed(Key::ArrowUp)
            - pressed(Key::ArrowLeft)
            - pressed(Key::ArrowDown);
        let decades = pressed(Key::PageUp) - pressed(Key::PageDown);
        if input.key_pressed(Key::Home) {
            return default;
        }
        stepped(eta, fine + FINE_STEPS * decades).clamp(low, high)
    })
}

fn entry_ui(
    ui: &mut Ui,
    magnitude: &Magnitude,
    value: f64,
    view: &mut View,
    intents: &mut Vec<Intent>,
) {
    let mut text = view
        .eta_text
        .clone()
        .unwrap_or_else(|| format::significant(value, 3));
    let edit = TextEdit::singleline(&mut text)
        .desired_width(68.0)
        .align(eframe::egui::Align2::RIGHT_CENTER)
        .font(eframe::egui::TextStyle::Monospace);
    let response = ui
        .add_sized(Vec2::new(ENTRY_WIDTH, 28.0), edit)
        .accessible_name(magnitude.names[1])
        .on_hover_text("Type a magnitude and press Enter");
    if response.has_focus() {
        view.eta_text = Some(text);
    } else if response.lost_focus() {
        // Leaving the field takes its number, Escape drops it.
        let dropped = ui.input(|input| input.key_pressed(Key::Escape));
        if let Some(eta) = format::parse_positive(&text).filter(|_| !dropped) {
            let same = text == format::significant(value, 3);
            if !same {
                intents.push((magnitude.set)(eta));
            }
        }
        view.eta_text = None;
    } else {
        view.eta_text = None;
    }
}
