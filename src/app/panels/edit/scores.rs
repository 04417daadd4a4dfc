//! Scores in figures: at the rank on screen, and of every kind of map on held-out photographs.

use eframe::egui::{Align, Label, Layout, RichText, Sense, Ui, Vec2};

use super::info;
use crate::app::explain;
use crate::app::format;
use crate::app::intent::Scene;
use crate::app::theme::{self, Palette};
use crate::app::view::{TableOrder, View};
use crate::geometry::maps::readout::{BiasReadout, DisplacementReadout};
use crate::report::LpipsNote;
use crate::worker::edit::{EncodedScores, FeatureScores, PictureScores};

/// A score with its name for people and what it is.
type Row<'a> = (&'static str, &'a str, [Option<f64>; 3]);

/// Width of a column of figures in points.
const FIGURE_WIDTH: f32 = 52.0;
/// Height of a line in points.
const LINE_HEIGHT: f32 = 16.0;

/// Features without an edit, at the rank, and under the full map.
pub(super) fn scores_ui(ui: &mut Ui, scene: &Scene<'_>) {
    let edit = &scene.state.edit;
    let Some(run) = &edit.fitted else {
        return;
    };
    let shown = edit.shown.as_ref();
    let features = |value: fn(&FeatureScores) -> Option<f64>| {
        [
            value(&run.identity),
            shown.and_then(|shown| value(&shown.scores)),
            value(&run.full),
        ]
    };
    let pictures = |value: fn(&PictureScores) -> Option<f64>| {
        let seen = run.seen.as_ref();
        [
            seen.and_then(|seen| value(&seen.original.scores)),
            shown.and_then(|shown| value(&shown.seen.as_ref()?.scores)),
            seen.and_then(|seen| value(&seen.full.scores)),
        ]
    };
    let lpips = match &run.lpips {
        LpipsNote::Weights(_) => "LPIPS v0.1, AlexNet: decoded against edited picture",
        LpipsNote::Absent(why) => why,
    };
    let encoded = |value: fn(&EncodedScores) -> Option<f64>| {
        let seen = run.seen.as_ref();
        [
            seen.and_then(|seen| value(&seen.original.encoded)),
            shown.and_then(|shown| value(&shown.seen.as_ref()?.encoded)),
            seen.and_then(|seen| value(&seen.full.encoded)),
        ]
    };
    let moved = |value: fn(&DisplacementReadout) -> Option<f64>| {
        [
            None,
            shown.and_then(|shown| value(&shown.displacement)),
            value(&run.displacement),
        ]
    };
    let rows: [Row<'_>; 13] = [
        (
            "MdnCS",
            "MdnCS (features): median cosine over all positions",
            features(|s| s.mdncs),
        ),
        (
            "… touched",
            "The same over the positions that the edit touches",
            features(|s| s.mdncs_masked),
        ),
        (
            "MSE, feat.",
            "Mean squared difference of features, in their own units",
            features(|s| Some(s.mse)),
        ),
        (
            "cos Δ",
            "Displacement: mean cosine of ŷ − x with y − x",
            moved(|d| d.cosine),
        ),
        (
            "slope ‖Δ‖",
            "Displacement: slope of ‖ŷ − x‖ against ‖y − x‖ over positions",
            moved(|d| d.regression.map(|line| line.slope)),
        ),
        (
            "SSIM 7×7",
            "Decoded against edited picture, uniform windows",
            pictures(|s| s.ssim_uniform),
        ),
        (
            "SSIM Gauss",
            "Decoded against edited picture, Gaussian windows, σ 1.5 px",
            pictures(|s| s.ssim_gaussian),
        ),
        (
            "PSNR, dB",
            "Decoded against edited picture",
            pictures(|s| s.psnr_db),
        ),
        ("LPIPS", lpips, pictures(|s| s.lpips)),
        (
            "MSE, pict.",
            "Decoded against edited picture, grey levels squared",
            pictures(|s| Some(s.mse)),
        ),
        (
            "MdnCS img.",
            "MdnCS (images): decoded and edited picture encoded again, median cosine at the encoder's deepest stage",
            encoded(|s| s.mdncs_images),
        ),
        (
            "JSD, bits",
            "Jensen–Shannon divergence of the classes predicted for decoded and edited picture",
            encoded(|s| s.divergence_bits),
        ),
        (
            "same top-1",
            "1 where decoded and edited picture get the same likeliest class, else 0",
            encoded(|s| s.top1_agrees.map(|agrees| f64::from(u8::from(agrees)))),
        ),
    ];
    let rank = match shown {
        Some(shown) if !run.sweeps.is_empty() => format!("k = {}", shown.rank),
        _ => "map".to_owned(),
    };
    ui.label(theme::bold(format!(
        "This photograph: {}",
        edit.part_name()
    )));
    let headings = ["unedited", &rank, "full map"].map(theme::note);
    line(ui, theme::note(""), "", headings);
    for (name, what, values) in rows {
        let values = values.map(|value| RichText::new(number(value)).small());
        line(ui, theme::note(name), what, values);
    }
    if let Some(bias) = &run.bias {
        bias_ui(ui, bias);
    }
}

/// How much of a map's answer its bias is.
fn bias_ui(ui: &mut Ui, bias: &BiasReadout) {
    let text = format!(
        "‖Wx‖ share {} · cos(Wx, Wx + b) {} · ‖b‖ {}",
        number(bias.linear_share),
        number(bias.cosine),
        number(Some(bias.bias_norm))
    );
    ui.label(theme::note(text)).on_hover_text(
        "Full map: mean of ‖Wx‖/(‖Wx‖ + ‖b‖), mean cosine of Wx with Wx + b, and the norm of the bias (Krey, Neukirch, Strodthoff 2026)",
    );
}

/// Every kind of map on held-out photographs, to be sorted by a column.
pub(super) fn table_ui(ui: &mut Ui, scene: &Scene<'_>, view: &mut View) {
    let Some(run) = &scene.state.edit.fitted else {
        return;
    };
    let count = run.table_photographs;
    let plural = if count == 1 {
        "photograph"
    } else {
        "photographs"
    };
    ui.horizontal(|ui| {
        let text = format!("Mean over {count} held-out {plural}");
        ui.label(theme::note(text));
        info(ui, &explain::EDIT_TABLE);
    });
    if run.table.is_empty() {
        let text = "The map is learnt from the photograph on screen alone.";
        ui.label(theme::note(text));
        return;
    }
    let mut rows: Vec<_> = run.table.iter().collect();
    match view.table_order {
        TableOrder::Kind => {}
        TableOrder::Mdncs => rows.sort_by(|a, b| {
            let value = |scores: &FeatureScores| scores.mdncs.unwrap_or(-1.0);
            value(&b.1).total_cmp(&value(&a.1))
        }),
        TableOrder::Mse => rows.sort_by(|a, b| a.1.mse.total_cmp(&b.1.mse)),
    }
    let palette = Palette::for_ui(ui);
    let own = run.kind.title();
    ui.horizontal(|ui| {
        let room = ui.available_width() - 2.0 * (FIGURE_WIDTH + ui.spacing().item_spacing.x);
        for (order, text, what, width) in [
            (
                TableOrder::Kind,
                "kind",
                "Sort by kind, the simplest first",
                room,
            ),
            (
                TableOrder::Mdncs,
                "MdnCS",
                "Sort by MdnCS (features), the best first",
                FIGURE_WIDTH,
            ),
            (
                TableOrder::Mse,
                "MSE",
                "Sort by the mean squared error of features, the best first",
                FIGURE_WIDTH,
            ),
        ] {
            let text = theme::note(text);
            let text = if order == view.table_order {
                text.strong().underline()
            } else {
                text.underline()
            };
            cell(ui, width, order != TableOrder::Kind, |ui| {
                let heading = ui.add(Label::new(text).sense(Sense::click()));
                if heading.on_hover_text(what).clicked() {
                    view.table_order = order;
                }
            });
        }
    });
    for (name, scores) in rows {
        let text = RichText::new(short(name)).small();
        let text = if *name == own {
            text.color(palette.encoder(0))
        } else {
            text.weak()
        };
        let values = [scores.mdncs, Some(scores.mse)];
        let values = values.map(|value| RichText::new(number(value)).small());
        line(ui, text, name, values);
    }
}

/// A name with figures flush right.
fn line<const N: usize>(ui: &mut Ui, name: RichText, what: &str, figures: [RichText; N]) {
    ui.spacing_mut().item_spacing.y = 2.0;
    ui.spacing_mut().interact_size.y = LINE_HEIGHT;
    ui.horizontal(|ui| {
        let gap = ui.spacing().item_spacing.x;
        let room = ui.available_width() - N as f32 * (FIGURE_WIDTH + gap);
        cell(ui, room, false, |ui| {
            let label = ui.add(Label::new(name).truncate());
            if !what.is_empty() {
                label.on_hover_text(what);
            }
        });
        for figure in figures {
            cell(ui, FIGURE_WIDTH, true, |ui| {
                ui.label(figure);
            });
        }
    });
}

fn cell(ui: &mut Ui, width: f32, is_right: bool, add: impl FnOnce(&mut Ui)) {
    let layout = if is_right {
        Layout::right_to_left(Align::Center)
    } else {
        Layout::left_to_right(Align::Center)
    };
    ui.allocate_ui_with_layout(Vec2::new(width, LINE_HEIGHT), layout, |ui| {
        ui.set_min_size(Vec2::new(width, LINE_HEIGHT));
        add(ui);
    });
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(
        || format::UNDEFINED.to_owned(),
        |value| format::significant(value, 3),
    )
}

/// A kind of map in a narrow column.
fn short(name: &str) -> String {
    name.replace("ridge toward the identity", "ridge → I")
        .replace("orthogonal ", "")
}
