//! What is asked of spectra: encoder, readout, method, seed, device.

use std::time::Duration;

use eframe::egui::{ComboBox, DragValue, ScrollArea, Ui};

use crate::app::explain;
use crate::app::format;
use crate::app::intent::{Intent, Scene};
use crate::app::panels::controls::{
    device_ui, dither_ui, encoder_ui, readout_ui, row, section, seed_ui, twin_ui,
};
use crate::app::panels::message::warning;
use crate::app::state::{COUNT_RANGE, LEADING_COUNT};
use crate::app::theme;
use crate::app::view::View;
use crate::geometry::spectrum::SpectrumMethod;

/// All values; how many directions are kept is not the window's to say.
pub(super) const EXACT: SpectrumMethod = SpectrumMethod::Exact { vectors: 0 };

/// The whole panel.
pub fn controls_ui(ui: &mut Ui, scene: &Scene<'_>, view: &mut View, intents: &mut Vec<Intent>) {
    ScrollArea::vertical()
        .auto_shrink([false, false])
        .show(ui, |ui| {
            ui.label(theme::bold("Feature"));
            encoder_ui(ui, scene, intents);
            readout_ui(ui, scene, intents);
            twin_ui(ui, scene, intents);
            section(ui, "Spectrum");
            method_ui(ui, scene, intents);
            let is_leading = scene.state.spectrum.method != EXACT;
            if is_leading {
                count_ui(ui, scene, intents);
                seed_ui(ui, scene, view, intents);
            }
            dither_ui(ui, scene, intents);
            too_large_ui(ui, scene, intents);
            section(ui, "Computation");
            device_ui(ui, scene, intents);
        });
}

/// `about 40 s` for the spectra on screen by a method.
pub(super) fn time_text(scene: &Scene<'_>, method: SpectrumMethod) -> String {
    scene.state.spectrum_secs(method).map_or_else(
        || "time not known yet".to_owned(),
        |secs| format!("about {}", format::duration(Duration::from_secs_f64(secs))),
    )
}

fn method_ui(ui: &mut Ui, scene: &Scene<'_>, intents: &mut Vec<Intent>) {
    let chosen = scene.state.spectrum.method;
    let count = match chosen {
        SpectrumMethod::Leading { count } => count,
        SpectrumMethod::Exact { .. } => LEADING_COUNT,
    };
    let leading = SpectrumMethod::Leading { count };
    let word = |method: SpectrumMethod| match method {
        SpectrumMethod::Leading { .. } => "leading values",
        SpectrumMethod::Exact { .. } => "exact: all values",
    };
    row(
        ui,
        "Method",
        Some(&explain::SPECTRUM_METHOD),
        |ui, width| {
            let combo = ComboBox::from_id_salt("spectrum method")
                .width(width)
                .selected_text(word(chosen));
            let inner = combo.show_ui(ui, |ui| {
                for method in [leading, EXACT] {
                    let text = format!("{} · {}", word(method), time_text(scene, method));
                    if ui.selectable_label(method == chosen, text).clicked() && method != chosen {
                        intents.push(Intent::SpectrumMethod(method));
                    }
                }
            });
            inner.response.accessible_name("Method");
        },
    );
}

fn count_ui(ui: &mut Ui, scene: &Scene<'_>, intents: &mut Vec<Intent>) {
    let SpectrumMethod::Leading { count } = scene.state.spectrum.method else {
        return;
    };
    let mut number = count;
    row(ui, "How many", None, |ui, _| {
        let [least, most] = COUNT_RANGE;
        // An arrow key moves by the speed, and less than 1 would be rounded away.
        let field = DragValue::new(&mut number).range(least..=most).speed(1.0);
        ui.add(field)
            .accessible_name("Number of leading values")
            .on_hover_text("Singular values that are sought, the largest first");
        ui.label(theme::note(time_text(
            scene,
            SpectrumMethod::Leading { count },
        )));
    });
    if number != count {
        intents.push(Intent::SpectrumMethod(SpectrumMethod::Leading {
            count: number,
        }));
    }
}

fn too_large_ui(ui: &mut Ui, scene: &Scene<'_>, intents: &mut Vec<Intent>) {
    let mut shown = scene.state.shown.iter();
    let found = shown.find_map(|shown| Some((shown, scene.state.too_large(shown)?)));
    let Some((shown, [output_len, input_len])) = found else {
        return;
    };
    let text = format!(
        "{}: a Jacobian of {output_len} × {input_len} values is too large for its whole spectrum.",
        shown.spec.title
    );
    warning(ui, &text, |ui| {
        if ui.button("Leading values").clicked() {
            intents.push(Intent::SpectrumMethod(SpectrumMethod::Leading {
                count: LEADING_COUNT,
            }));
        }
    });
}
