//! Along which directions the photograph is perturbed.

use eframe::egui::{ComboBox, DragValue, Key, TextEdit, Ui};

use super::cards::expand_home;
use super::controls::row;
use crate::app::explain;
use crate::app::intent::{Intent, Scene};
use crate::app::view::View;
use crate::geometry::directions::DirectionFamily;
use crate::images::{Disc, Manipulation, Mask, bundled};
use crate::worker::ImageSource;

/// Width that low-pass noise and blur start with, in pixels of the encoder's input.
const SIGMA_PX: f32 = 2.0;
/// Number of singular vectors that the family starts with.
const SINGULAR_COUNT: usize = 5;
/// What a mask starts with.
const FIRST_DISC: Disc = Disc {
    x: 0.5,
    y: 0.5,
    radius: 0.2,
};

/// The family and what it needs to be told.
pub fn directions_ui(ui: &mut Ui, scene: &Scene<'_>, view: &mut View, intents: &mut Vec<Intent>) {
    let chosen = &scene.state.recipe.family;
    family_ui(ui, scene, chosen, intents);
    let family = match chosen {
        DirectionFamily::LowPass { sigma_px } => {
            sigma_ui(ui, *sigma_px).map(|sigma_px| DirectionFamily::LowPass { sigma_px })
        }
        DirectionFamily::TopSingular { count } => {
            count_ui(ui, *count).map(|count| DirectionFamily::TopSingular { count })
        }
        DirectionFamily::Toward { image } => {
            image_ui(ui, scene, view, image).map(|image| DirectionFamily::Toward { image })
        }
        DirectionFamily::Along { manipulation } => manipulation_ui(ui, manipulation)
            .map(|manipulation| DirectionFamily::Along { manipulation }),
        DirectionFamily::Masked { mask } => {
            mask_ui(ui, view, mask).map(|mask| DirectionFamily::Masked { mask })
        }
        DirectionFamily::Isotropic
        | DirectionFamily::Rademacher
        | DirectionFamily::TopLogitGradient => None,
    };
    intents.extend(family.map(Intent::Family));
}

fn family_text(family: &DirectionFamily) -> &'static str {
    match family {
        DirectionFamily::Isotropic => "isotropic",
        DirectionFamily::Rademacher => "random signs",
        DirectionFamily::LowPass { .. } => "low-pass noise",
        DirectionFamily::TopLogitGradient => "gradient of the top logit",
        DirectionFamily::TopSingular { .. } => "top singular vectors",
        DirectionFamily::Toward { .. } => "toward another image",
        DirectionFamily::Along { .. } => "along a manipulation",
        DirectionFamily::Masked { .. } => "noise inside a mask",
    }
}

/// Every family with what it starts with.
fn families(scene: &Scene<'_>) -> [DirectionFamily; 8] {
    // Toward a photograph that is not the one on screen.
    let is_shown = |name: &str| matches!(&scene.state.source, Some(ImageSource::Bundled(shown)) if shown == name);
    let other = bundled::NAMES.into_iter().find(|name| !is_shown(name));
    let image = format!("{}{}", bundled::PREFIX, other.unwrap_or(bundled::NAMES[0]));
    [
        DirectionFamily::Isotropic,
        DirectionFamily::Rademacher,
        DirectionFamily::LowPass { sigma_px: SIGMA_PX },
        DirectionFamily::TopLogitGradient,
        DirectionFamily::TopSingular {
            count: SINGULAR_COUNT,
        },
        DirectionFamily::Toward { image },
        DirectionFamily::Along {
            manipulation: Manipulation::Blur { sigma_px: SIGMA_PX },
        },
        DirectionFamily::Masked {
            mask: Mask {
                discs: vec![FIRST_DISC],
            },
        },
    ]
}

fn family_ui(ui: &mut Ui, scene: &Scene<'_>, chosen: &DirectionFamily, intents: &mut Vec<Intent>) {
    row(ui, "Directions", Some(&explain::FAMILY), |ui, width| {
        let combo = ComboBox::from_id_salt("family")
            .width(width)
            .selected_text(family_text(chosen));
        let inner = combo.show_ui(ui, |ui| {
            for family in families(scene) {
                let is_chosen = std::mem::discriminant(&family) == std::mem::discriminant(chosen);
                let source = if family == DirectionFamily::Isotropic {
                    "the paper’s"
                } else {
                    "ours"
                };
                let text = format!("{} · {source}", family_text(&family));
                if ui.selectable_label(is_chosen, text).clicked() && !is_chosen {
                    intents.push(Intent::Family(family));
                }
            }
        });
        inner.response.accessible_name("Directions");
    });
}

fn sigma_ui(ui: &mut Ui, sigma_px: f32) -> Option<f32> {
    let mut sigma = sigma_px;
    row(ui, "Width σ", None, |ui, _| {
        let field = DragValue::new(&mut sigma)
            .range(0.3..=32.0)
            .speed(0.05)
            .suffix(" px");
        ui.add(field).accessible_name("Width σ in pixels");
    });
    (sigma != sigma_px).then_some(sigma)
}

fn count_ui(ui: &mut Ui, count: usize) -> Option<usize> {
    let mut number = count;
    row(ui, "How many", None, |ui, _| {
        // An arrow key moves by the speed, and less than 1 would be rounded away.
        let field = DragValue::new(&mut number).range(1..=32).speed(1.0);
        ui.add(field).accessible_name("Number of singular vectors");
    });
    (number != count).then_some(number)
}

/// A bundled photograph, one that was opened lately, or any by its path.
fn image_ui(ui: &mut Ui, scene: &Scene<'_>, view: &mut View, chosen: &str) -> Option<String> {
    let mut answer = None;
    row(ui, "Toward", None, |ui, width| {
        let combo = ComboBox::from_id_salt("toward")
            .width(width)
            .truncate()
            .selected_text(bundled::short_name(chosen));
        let inner = combo.show_ui(ui, |ui| {
            let own = bundled::NAMES
                .into_iter()
                .map(|name| format!("{}{name}", bundled::PREFIX));
            let recent = scene
                .settings
                .recent
                .iter()
                .map(|path| path.display().to_string());
            for image in own.chain(recent) {
                let text = bundled::short_name(&image);
                if ui
                    .selectable_label(image == chosen, text)
                    .on_hover_text(&image)
                    .clicked()
                {
                    answer = Some(image);
                }
            }
        });
        inner.response.accessible_name("Toward");
    });
    row(ui, "", None, |ui, width| {
        let name = "Path of another photograph";
        let field = TextEdit::singleline(&mut view.toward_text)
            .hint_text(name)
            .desired_width(width);
        let response = ui.add(field).accessible_name(name);
        let is_entered = response.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
        let path = view.toward_text.trim();
        if is_entered && !path.is_empty() {
            answer = Some(expand_home(path).to_string_lossy().into_owned());
            view.toward_text.clear();
        }
    });
    answer.filter(|image| image != chosen)
}

fn manipulation_ui(ui: &mut Ui, chosen: &Manipulation) -> Option<Manipulation> {
    let text = Manipulation::word;
    let mut answer = None;
    row(ui, "Along", None, |ui, width| {
        let combo = ComboBox::from_id_salt("along")
            .width(width)
            .selected_text(text(chosen));
        let inner = combo.show_ui(ui, |ui| {
            for other in [
                Manipulation::Blur { sigma_px: SIGMA_PX },
                Manipulation::Grayscale,
            ] {
                let is_chosen = text(&other) == text(chosen);
                if ui.selectable_label(is_chosen, text(&other)).clicked() && !is_chosen {
                    answer = Some(other);
                }
            }
        });
        inner.response.accessible_name("Along");
    });
    if let Manipulation::Blur { sigma_px } = chosen {
        answer = sigma_ui(ui, *sigma_px)
            .map(|sigma_px| Manipulation::Blur { sigma_px })
            .or(answer);
    }
    answer
}

/// The brush. Discs can also be added by a button and moved by figures, for the keyboard.
fn mask_ui(ui: &mut Ui, view: &mut View, mask: &Mask) -> Option<Mask> {
    let last = mask.discs.last().copied().unwrap_or(FIRST_DISC);
    let mut disc = last;
    let mut is_cleared = false;
    let mut is_added = false;
    row(ui, "Mask", None, |ui, _| {
        let tooltip = "Drag on the photograph to add to the mask";
        ui.toggle_value(&mut view.is_painting, "Paint")
            .on_hover_text(tooltip);
        let tooltip = "Another disc on the last one, to be moved by its figures";
        is_added = ui.button("Add disc").on_hover_text(tooltip).clicked();
        if ui
            .button("Clear")
            .on_hover_text("Back to one disc")
            .clicked()
        {
            is_cleared = true;
        }
    });
    let count = mask.discs.len();
    row(ui, &format!("Disc {count} of {count}"), None, |ui, _| {
        ui.spacing_mut().item_spacing.x = 4.0;
        let fields = [
            (
                &mut disc.x,
                "x ",
                "Centre of the last disc, from left, per cent",
                0.0,
            ),
            (
                &mut disc.y,
                "y ",
                "Centre of the last disc, from top, per cent",
                0.0,
            ),
            (
                &mut disc.radius,
                "r ",
                "Radius of the brush and the last disc, per cent",
                0.01,
            ),
        ];
        for (value, prefix, name, least) in fields {
            let mut percent = *value * 100.0;
            let field = DragValue::new(&mut percent)
                .range(least * 100.0..=100.0)
                .max_decimals(0)
                // An arrow key moves by as much, and less would be rounded away.
                .speed(1.0)
                .prefix(prefix);
            if ui
                .add(field)
                .accessible_name(name)
                .on_hover_text(name)
                .changed()
            {
                *value = percent / 100.0;
            }
        }
    });
    if is_cleared {
        return Some(Mask {
            discs: vec![FIRST_DISC],
        });
    }
    (disc != last || is_added).then(|| {
        let mut discs = mask.discs.clone();
        discs.pop();
        discs.push(disc);
        if is_added {
            discs.push(disc);
        }
        Mask { discs }
    })
}
