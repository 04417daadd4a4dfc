//! Colours, type and space. Dark and light are both designed; one family in three sizes; distances
//! are multiples of four points, mostly eight.

use std::sync::Arc;

use eframe::egui::text::{LayoutJob, TextFormat};
use eframe::egui::{
    Align, Color32, Context, CornerRadius, FontData, FontDefinitions, FontFamily, FontId,
    FontTweak, Frame, Margin, RichText, Shadow, Stroke, Style, TextStyle, Theme, ThemePreference,
    Ui, Vec2, Visuals, style::HandleShape,
};

pub use super::palette::Palette;
use super::settings::ThemeChoice;
use crate::figure::fonts;
use crate::figure::label::{self, Script};

/// Size of notes and tick labels in points.
pub const SMALL: f32 = 12.0;
/// Size of text and controls in points.
pub const BODY: f32 = 14.0;
/// Size of the figures that are read from afar, in points.
pub const LARGE: f32 = 20.0;
/// The distance between things that belong together, in points.
pub const GAP: f32 = 8.0;
/// Width of the column of controls in points.
pub const CONTROLS_WIDTH: f32 = 296.0;

/// Drop of the type over its size that centres capitals and figures in buttons: the toolkit centres
/// the whole line, accents and all.
const Y_OFFSET: f32 = 0.14;

/// Name of the bold cut as a font family.
const BOLD: &str = "bold";

/// Installs fonts and both styles, and chooses the theme.
pub fn install(context: &Context, choice: ThemeChoice) {
    context.set_fonts(font_definitions());
    for theme in [Theme::Dark, Theme::Light] {
        let palette = Palette::of(theme == Theme::Dark);
        context.style_mut_of(theme, |style| set_style(style, palette));
    }
    choose(context, choice);
}

/// Chooses light, dark or the system's theme.
pub fn choose(context: &Context, choice: ThemeChoice) {
    context.set_theme(match choice {
        ThemeChoice::System => ThemePreference::System,
        ThemeChoice::Light => ThemePreference::Light,
        ThemeChoice::Dark => ThemePreference::Dark,
    });
}

fn font_definitions() -> FontDefinitions {
    let mut definitions = FontDefinitions::default();
    let families = [("regular", fonts::REGULAR), (BOLD, fonts::BOLD)];
    let tweak = FontTweak {
        y_offset_factor: Y_OFFSET,
        ..FontTweak::default()
    };
    for (name, bytes) in families {
        let data = FontData::from_static(bytes).tweak(tweak.clone());
        definitions
            .font_data
            .insert(name.to_owned(), Arc::new(data));
    }
    // The toolkit's own fonts stay behind ours for signs that ours lacks.
    let fallback = definitions
        .families
        .get(&FontFamily::Proportional)
        .cloned()
        .unwrap_or_default();
    let led_by = |first: &str| {
        let mut list = vec![first.to_owned()];
        list.extend(fallback.iter().cloned());
        list
    };
    definitions
        .families
        .insert(FontFamily::Proportional, led_by("regular"));
    // Its figures are all of one width, which is what monospace is used for here.
    definitions
        .families
        .insert(FontFamily::Monospace, led_by("regular"));
    definitions
        .families
        .insert(FontFamily::Name(BOLD.into()), led_by(BOLD));
    definitions
}

fn set_style(style: &mut Style, palette: Palette) {
    style.text_styles = [
        (TextStyle::Small, FontId::proportional(SMALL)),
        (TextStyle::Body, FontId::proportional(BODY)),
        (TextStyle::Button, FontId::proportional(BODY)),
        (TextStyle::Monospace, FontId::monospace(BODY)),
        (TextStyle::Heading, bold_font(LARGE)),
    ]
    .into();
    style.spacing.item_spacing = Vec2::new(GAP, 6.0);
    style.spacing.button_padding = Vec2::new(GAP, 4.0);
    style.spacing.interact_size = Vec2::new(32.0, 26.0);
    style.spacing.icon_width = 16.0;
    style.spacing.icon_width_inner = 9.0;
    style.spacing.icon_spacing = 6.0;
    style.spacing.menu_margin = Margin::same(6);
    style.spacing.window_margin = Margin::same(12);
    style.spacing.tooltip_width = 360.0;
    style.spacing.combo_height = 360.0;
    // Numbers and names can be selected where it helps; elsewhere a drag is not a selection.
    style.interaction.selectable_labels = false;
    style.visuals = visuals(palette);
}

fn visuals(palette: Palette) -> Visuals {
    let mut visuals = if palette.dark {
        Visuals::dark()
    } else {
        Visuals::light()
    };
    let radius = CornerRadius::same(4);
    visuals.panel_fill = palette.ground;
    visuals.window_fill = palette.card;
    visuals.window_stroke = Stroke::new(1.0, palette.edge);
    visuals.window_corner_radius = CornerRadius::same(8);
    visuals.menu_corner_radius = CornerRadius::same(6);
    visuals.extreme_bg_color = palette.well;
    visuals.faint_bg_color = palette.control;
    visuals.weak_text_color = Some(palette.weak);
    visuals.hyperlink_color = palette.encoder(0);
    visuals.warn_fg_color = palette.warning;
    visuals.error_fg_color = palette.error;
    visuals.window_shadow = Shadow {
        offset: [0, 4],
        blur: 16,
        spread: 0,
        color: Color32::from_black_alpha(if palette.dark { 110 } else { 40 }),
    };
    visuals.popup_shadow = visuals.window_shadow;
    visuals.slider_trailing_fill = true;
    visuals.handle_shape = HandleShape::Circle;
    visuals.selection.bg_fill = if palette.dark {
        Color32::from_rgb(0x24, 0x52, 0x6e)
    } else {
        Color32::from_rgb(0xcb, 0xe2, 0xf1)
    };
    visuals.selection.stroke = Stroke::new(1.5, palette.encoder(0));

    let widgets = &mut visuals.widgets;
    widgets.noninteractive.bg_fill = palette.card;
    widgets.noninteractive.weak_bg_fill = palette.card;
    widgets.noninteractive.bg_stroke = Stroke::new(1.0, palette.edge);
    widgets.noninteractive.fg_stroke = Stroke::new(1.0, palette.text);
    let states = [
        (
            &mut widgets.inactive,
            palette.control,
            Stroke::new(1.0, palette.rim),
        ),
        (
            &mut widgets.hovered,
            palette.edge,
            Stroke::new(1.0, palette.weak),
        ),
        // Pressed, and focused by the keyboard: the frame must be seen from across the desk.
        (
            &mut widgets.active,
            palette.edge,
            Stroke::new(2.0, palette.encoder(0)),
        ),
        (
            &mut widgets.open,
            palette.edge,
            Stroke::new(1.0, palette.weak),
        ),
    ];
    for (state, fill, stroke) in states {
        state.bg_fill = fill;
        state.weak_bg_fill = fill;
        state.bg_stroke = stroke;
        state.fg_stroke = Stroke::new(1.5, palette.text);
        state.expansion = 0.0;
        state.corner_radius = radius;
    }
    widgets.noninteractive.corner_radius = radius;
    visuals
}

/// The bold cut in a size.
pub fn bold_font(size: f32) -> FontId {
    FontId::new(size, FontFamily::Name(BOLD.into()))
}

/// Bold text in body size.
pub fn bold(text: impl Into<String>) -> RichText {
    RichText::new(text).font(bold_font(BODY))
}

/// A note: small and weak.
pub fn note(text: impl Into<String>) -> RichText {
    RichText::new(text).small().weak()
}

/// A label with sub- and superscripts as [`crate::figure::label`] writes them.
pub fn scripted(markup: &str, font: &FontId, colour: Color32) -> LayoutJob {
    let mut job = LayoutJob::default();
    for span in label::spans(markup) {
        let (size, valign) = match span.script {
            Script::Base => (1.0, Align::Center),
            Script::Sub => (label::SCRIPT_SIZE as f32, Align::BOTTOM),
            Script::Super => (label::SCRIPT_SIZE as f32, Align::TOP),
        };
        let font_id = FontId::new(font.size * size, font.family.clone());
        job.append(
            &span.text,
            0.0,
            TextFormat {
                font_id,
                color: colour,
                valign,
                ..Default::default()
            },
        );
    }
    job
}

/// The frame of a card.
pub fn card(palette: Palette) -> Frame {
    Frame::new()
        .fill(palette.card)
        .stroke(Stroke::new(1.0, palette.edge))
        .corner_radius(CornerRadius::same(8))
        .inner_margin(Margin::same(12))
}

/// The frame of a card that floats above others.
pub fn floating_card(ui: &Ui, palette: Palette) -> Frame {
    card(palette).shadow(ui.visuals().window_shadow)
}
