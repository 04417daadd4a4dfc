//! Colours by what they mean, for dark and for light ground.

use eframe::egui::{Color32, Ui};

use super::state::SHOWN_MAX;
use crate::figure::palette::OKABE_ITO;

/// Index in [`OKABE_ITO`].
const BLUE: usize = 0;
const VERMILION: usize = 1;
const GREEN: usize = 2;
const PURPLE: usize = 3;
const ORANGE: usize = 4;
const SKY: usize = 5;
const BLACK: usize = 6;
const YELLOW: usize = 7;

/// Colours by what they mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette {
    /// Dark or light.
    pub dark: bool,
    /// Behind the cards.
    pub ground: Color32,
    /// Cards.
    pub card: Color32,
    /// Plots and fields.
    pub well: Color32,
    /// Edges of cards.
    pub edge: Color32,
    /// Edges of controls.
    pub rim: Color32,
    /// Controls at rest.
    pub control: Color32,
    /// Text.
    pub text: Color32,
    /// Notes.
    pub weak: Color32,
    /// Grid lines of plots.
    pub grid: Color32,
    /// The line r = 1.
    pub reference: Color32,
    /// The η marker, everywhere.
    pub marker: Color32,
    /// The linear prediction.
    pub prediction: Color32,
    /// Something to be seen to.
    pub warning: Color32,
    /// Failures.
    pub error: Color32,
    /// Success.
    pub good: Color32,
    /// Values below 0.
    pub below: Color32,
    /// Values above 1.
    pub above: Color32,
}

impl Palette {
    /// The colours of a theme.
    pub fn of(dark: bool) -> Self {
        if dark {
            Self {
                dark,
                ground: Color32::from_rgb(0x12, 0x15, 0x18),
                card: Color32::from_rgb(0x1b, 0x1f, 0x23),
                well: Color32::from_rgb(0x13, 0x16, 0x19),
                edge: Color32::from_rgb(0x2d, 0x33, 0x39),
                rim: Color32::from_rgb(0x4a, 0x53, 0x5c),
                control: Color32::from_rgb(0x24, 0x29, 0x2e),
                text: Color32::from_rgb(0xe4, 0xe7, 0xea),
                weak: Color32::from_rgb(0x9c, 0xa6, 0xaf),
                grid: Color32::from_rgb(0x2b, 0x31, 0x37),
                reference: Color32::from_rgb(0x8a, 0x94, 0x9d),
                marker: hue(PURPLE),
                prediction: Color32::from_rgb(0x2f, 0xb5, 0x8e),
                warning: hue(ORANGE),
                error: Color32::from_rgb(0xff, 0x8a, 0x65),
                good: Color32::from_rgb(0x2f, 0xb5, 0x8e),
                below: hue(SKY),
                above: hue(ORANGE),
            }
        } else {
            Self {
                dark,
                ground: Color32::from_rgb(0xe9, 0xec, 0xef),
                card: Color32::from_rgb(0xfb, 0xfc, 0xfd),
                well: Color32::WHITE,
                edge: Color32::from_rgb(0xd0, 0xd6, 0xdb),
                rim: Color32::from_rgb(0xa9, 0xb3, 0xbb),
                control: Color32::from_rgb(0xf1, 0xf3, 0xf5),
                text: Color32::from_rgb(0x1a, 0x1f, 0x24),
                weak: Color32::from_rgb(0x57, 0x62, 0x6c),
                grid: Color32::from_rgb(0xe4, 0xe8, 0xeb),
                reference: Color32::from_rgb(0x6c, 0x77, 0x80),
                marker: Color32::from_rgb(0xa8, 0x43, 0x7b),
                prediction: Color32::from_rgb(0x00, 0x85, 0x61),
                warning: Color32::from_rgb(0x9a, 0x5b, 0x00),
                error: Color32::from_rgb(0xb3, 0x3a, 0x0c),
                good: Color32::from_rgb(0x00, 0x79, 0x59),
                below: hue(BLUE),
                above: hue(VERMILION),
            }
        }
    }

    /// The colours of the theme that `ui` is drawn in.
    pub fn for_ui(ui: &Ui) -> Self {
        Self::of(ui.visuals().dark_mode)
    }

    /// Hue of the encoder with this place among those that are compared: Okabe–Ito, the lighter of
    /// each pair on dark ground.
    pub fn encoder(&self, index: usize) -> Color32 {
        const ON_LIGHT: [usize; SHOWN_MAX] = [BLUE, VERMILION, GREEN, BLACK];
        const ON_DARK: [usize; SHOWN_MAX] = [SKY, ORANGE, GREEN, YELLOW];
        let order = if self.dark { ON_DARK } else { ON_LIGHT };
        hue(order[index % order.len()])
    }

    /// A colour as the shader takes it.
    pub fn channels(colour: Color32) -> [f32; 3] {
        [colour.r(), colour.g(), colour.b()].map(|value| f32::from(value) / 255.0)
    }
}

fn hue(index: usize) -> Color32 {
    let [r, g, b] = OKABE_ITO[index];
    Color32::from_rgb(r, g, b)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WCAG 2.2 relative luminance.
    fn luminance(colour: Color32) -> f64 {
        let linear = |value: u8| {
            let v = f64::from(value) / 255.0;
            if v <= 0.04045 {
                v / 12.92
            } else {
                ((v + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * linear(colour.r()) + 0.7152 * linear(colour.g()) + 0.0722 * linear(colour.b())
    }

    fn contrast(a: Color32, b: Color32) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// WCAG 2.2: 4.5 for text, 3 for graphics that carry meaning.
    #[test]
    fn both_themes_have_the_contrast_that_wcag_asks_for() {
        for dark in [true, false] {
            let p = Palette::of(dark);
            for ground in [p.card, p.ground] {
                for text in [p.text, p.weak, p.warning, p.error, p.good] {
                    assert!(contrast(text, ground) >= 4.5, "{text:?} on {ground:?}");
                }
            }
            let encoders = (0..SHOWN_MAX).map(|slot| p.encoder(slot));
            for line in encoders.chain([p.marker, p.prediction, p.reference]) {
                assert!(contrast(line, p.well) >= 3.0, "{line:?} on {:?}", p.well);
            }
        }
    }
}
