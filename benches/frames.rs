//! The window's own work in a frame while η is dragged: input, model, layout and tessellation, without
//! the graphics device and with the encoder's work elsewhere. Goal: at most 8 ms in 95 of 100 frames.
//!
//! `cargo bench --profile release --bench frames`

#[path = "../tests/window/stage.rs"]
#[expect(dead_code, reason = "the tests use all of it")]
mod stage;

use std::time::{Duration, Instant};

use eframe::egui::Pos2;
use egui_kittest::kittest::Queryable;
use stage::Stage;

const FRAMES: usize = 550;

fn main() {
    // `cargo test --all-targets` runs benchmarks without this flag, to see that they work.
    let measured = std::env::args().any(|argument| argument == "--bench");
    let frames = if measured { FRAMES } else { 2 };
    let mut stage = Stage::with_profile();
    let rect = stage.harness.get_by_label("Magnitude η, L2").rect();
    let at = |index: usize| {
        // To and fro over the slider; the last frame is not where the first was.
        let phase = (index % 200) as f32 / 100.0;
        let fraction = 0.1 + 0.8 * (1.0 - phase).abs();
        Pos2::new(rect.left() + fraction * rect.width(), rect.top() + 15.0)
    };
    stage.harness.hover_at(at(0));
    stage.harness.drag_at(at(0));
    stage.harness.run();
    let before = stage.app().state.eta_l2;
    let mut times: Vec<Duration> = (1..=frames)
        .map(|index| {
            stage.harness.hover_at(at(index));
            let start = Instant::now();
            stage.harness.step();
            let output = stage.harness.output();
            let shapes = output.shapes.clone();
            let meshes = stage
                .harness
                .ctx
                .tessellate(shapes, output.pixels_per_point);
            assert!(!meshes.is_empty(), "a frame draws something");
            start.elapsed()
        })
        .collect();
    assert_ne!(before, stage.app().state.eta_l2, "dragging moves η");
    times.sort();
    let quantile = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    println!(
        "a frame while dragging, {frames} frames: median {:.2?}, 95 % within {:.2?}, longest {:.2?}",
        quantile(0.5),
        quantile(0.95),
        quantile(1.0)
    );
}
