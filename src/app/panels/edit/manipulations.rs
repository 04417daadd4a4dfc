//! The chain of edits: each with its strength, in an order that can be changed.

use eframe::egui::{Button, ComboBox, DragValue, Slider, Ui, Vec2};

use crate::app::panels::controls::row;
use crate::images::manipulations::Subsampling;
use crate::images::{Disc, GridSymmetry, Manipulation, Mask};

/// Most edits in a chain.
const CHAIN_MAX: usize = 6;

/// Every kind with what it starts with.
fn kinds() -> [(&'static str, Manipulation); 13] {
    [
        (
            "rotate or mirror",
            Manipulation::Reorient {
                symmetry: GridSymmetry::Rotate90,
            },
        ),
        ("hue", Manipulation::Hue { degrees: 60.0 }),
        ("grayscale", Manipulation::Grayscale),
        (
            "noise",
            Manipulation::Noise {
                std_levels: 40.0,
                seed: 0,
            },
        ),
        ("four squares", Manipulation::Squares),
        (
            "fill a disc",
            Manipulation::Fill {
                mask: Mask {
                    discs: vec![Disc {
                        x: 0.5,
                        y: 0.5,
                        radius: 0.2,
                    }],
                },
                colour: [255, 0, 0],
            },
        ),
        ("brightness", Manipulation::Brightness { factor: 1.5 }),
        ("contrast", Manipulation::Contrast { factor: 0.5 }),
        ("saturation", Manipulation::Saturation { factor: 2.0 }),
        ("blur", Manipulation::Blur { sigma_px: 2.0 }),
        (
            "JPEG",
            Manipulation::Jpeg {
                quality: 20,
                subsampling: Subsampling::Half,
            },
        ),
        ("zoom", Manipulation::zoom(1.5)),
        (
            "move",
            Manipulation::Translate {
                right: 0.1,
                down: 0.0,
                colour: [0, 0, 0],
            },
        ),
    ]
}

fn is_same_kind(a: &Manipulation, b: &Manipulation) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

fn kind_name(edit: &Manipulation) -> &'static str {
    let all = kinds();
    let found = all.iter().find(|(_, other)| is_same_kind(edit, other));
    found.map_or("edit", |(name, _)| name)
}

/// The whole chain.
pub(super) fn manipulations_ui(ui: &mut Ui, edits: &mut Vec<Manipulation>) {
    let count = edits.len();
    let mut swap = None;
    let mut remove = None;
    for (i, edit) in edits.iter_mut().enumerate() {
        let name = if count > 1 {
            format!("{}. edit", i + 1)
        } else {
            "Edit".to_owned()
        };
        row(ui, &name, None, |ui, width| {
            let buttons = if count > 1 { 60.0 } else { 0.0 };
            kind_ui(ui, i, edit, width - buttons);
            if count > 1 {
                let small =
                    |text: &str| Button::new(text.to_owned()).min_size(Vec2::new(24.0, 24.0));
                ui.spacing_mut().item_spacing.x = 4.0;
                let up = ui
                    .add_enabled(i > 0, small("↑"))
                    .accessible_name(format!("Edit {} earlier", i + 1));
                if up.on_hover_text("Do this edit earlier").clicked() {
                    swap = Some(i);
                }
                let gone = ui
                    .add(small("×"))
                    .accessible_name(format!("Remove edit {}", i + 1));
                if gone.on_hover_text("Remove this edit").clicked() {
                    remove = Some(i);
                }
            }
        });
        strength_ui(ui, edit);
    }
    if let Some(i) = swap {
        edits.swap(i - 1, i);
    }
    if let Some(i) = remove {
        edits.remove(i);
    }
    if count < CHAIN_MAX {
        row(ui, "", None, |ui, _| {
            let add = ui.button("Add an edit");
            if add.on_hover_text("Another edit after these").clicked() {
                let unused = kinds().into_iter().map(|(_, edit)| edit);
                let mut unused =
                    unused.filter(|edit| !edits.iter().any(|other| is_same_kind(edit, other)));
                edits.extend(unused.next());
            }
        });
    }
}

fn kind_ui(ui: &mut Ui, index: usize, edit: &mut Manipulation, width: f32) {
    let combo = ComboBox::from_id_salt(("edit", index))
        .height(460.0)
        .width(width)
        .selected_text(kind_name(edit));
    let inner = combo.show_ui(ui, |ui| {
        for (name, other) in kinds() {
            let is_chosen = is_same_kind(edit, &other);
            if ui.selectable_label(is_chosen, name).clicked() && !is_chosen {
                *edit = other;
            }
        }
    });
    inner
        .response
        .accessible_name(format!("Kind of edit {}", index + 1));
}

/// The strength of an edit, where it has one.
fn strength_ui(ui: &mut Ui, edit: &mut Manipulation) {
    match edit {
        Manipulation::Reorient { symmetry } => row(ui, "", None, |ui, width| {
            let combo = ComboBox::from_id_salt("symmetry")
                .width(width)
                .selected_text(symmetry.title());
            let inner = combo.show_ui(ui, |ui| {
                for other in GridSymmetry::ALL {
                    ui.selectable_value(symmetry, other, other.title());
                }
            });
            inner.response.accessible_name("Turn or mirror");
        }),
        Manipulation::Grayscale | Manipulation::Squares => {}
        Manipulation::Noise { std_levels, .. } => {
            slide(ui, "σ", std_levels, [0.0, 100.0], " levels");
        }
        Manipulation::Hue { degrees } => {
            slide(ui, "Angle", degrees, [-180.0, 180.0], "°");
        }
        Manipulation::Brightness { factor }
        | Manipulation::Contrast { factor }
        | Manipulation::Saturation { factor } => {
            slide(ui, "Factor", factor, [0.0, 3.0], "×");
        }
        Manipulation::Blur { sigma_px } => {
            slide(ui, "σ", sigma_px, [0.3, 16.0], " px");
        }
        Manipulation::Jpeg { quality, .. } => {
            let mut value = f32::from(*quality);
            slide(ui, "Quality", &mut value, [1.0, 100.0], "");
            *quality = value.round().clamp(1.0, 100.0) as u8;
        }
        Manipulation::Crop { width, .. } => {
            let before = 1.0 / *width;
            let mut factor = before;
            slide(ui, "Factor", &mut factor, [1.0, 4.0], "×");
            if factor != before {
                *edit = Manipulation::zoom(factor);
            }
        }
        Manipulation::Translate { right, down, .. } => {
            for (name, share) in [("Right", right), ("Down", down)] {
                let before = 100.0 * *share;
                let mut percent = before;
                slide(ui, name, &mut percent, [-50.0, 50.0], " %");
                if percent != before {
                    *share = percent / 100.0;
                }
            }
        }
        Manipulation::Fill { mask, colour } => {
            row(ui, "Disc", None, |ui, _| {
                ui.spacing_mut().item_spacing.x = 4.0;
                for disc in mask.discs.iter_mut().take(1) {
                    for (value, prefix, least) in [
                        (&mut disc.x, "x ", 0.0),
                        (&mut disc.y, "y ", 0.0),
                        (&mut disc.radius, "r ", 1.0),
                    ] {
                        let before = *value * 100.0;
                        let mut percent = before;
                        let field = DragValue::new(&mut percent)
                            .range(least..=100.0)
                            .max_decimals(0)
                            .speed(1.0)
                            .prefix(prefix)
                            .suffix(" %");
                        ui.add(field)
                            .accessible_name(format!("Disc, {prefix}in per cent"));
                        if percent != before {
                            *value = percent / 100.0;
                        }
                    }
                }
            });
            row(ui, "Colour", None, |ui, _| {
                ui.color_edit_button_srgb(colour);
            });
        }
    }
}

fn slide(ui: &mut Ui, name: &str, value: &mut f32, [least, most]: [f32; 2], suffix: &str) {
    row(ui, name, None, |ui, width| {
        ui.spacing_mut().slider_width = width - 76.0;
        let slider = Slider::new(value, least..=most)
            .suffix(suffix)
            .max_decimals(2);
        ui.add(slider).accessible_name(name.to_owned());
    });
}
