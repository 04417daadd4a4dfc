//! What a response profile is made of, on the CPU device: loading, forward passes, products with the
//! Jacobian and its transpose, and the whole. Times of `forward`, `jvp` and `vjp` are for one batch.
//!
//! `cargo bench --profile release --bench profile`; benches/compare sets them beside PyTorch.

use std::sync::Arc;

use divan::{Bencher, black_box};
use etascope::device::ComputeDevice;
use etascope::encoders::{Readout, registry};
use etascope::geometry::directions::{DirectionFamily, sample};
use etascope::geometry::encoder_field::EncoderField;
use etascope::geometry::{Field, Perturbation, Profile, Profiler};
use etascope::images::Prepared;
use etascope::recipe::{ProfileRecipe, WeightsKind};

const ENCODERS: [&str; 2] = ["efficientnet_lite0", "squeezenet1_1"];
/// Within the ladder, far from rounding.
const ETA_L2: f64 = 1.0;

fn main() {
    println!("batch {}", field(ENCODERS[0]).batch());
    divan::main();
}

fn load(name: &str) -> registry::LoadedEncoder {
    registry::load(name, WeightsKind::Trained, 0, &ComputeDevice::cpu()).expect("bundled weights")
}

/// The pooled readout at an input of grey noise; the time does not depend on what is seen.
fn field(name: &str) -> EncoderField {
    let side_px = registry::find(name).expect("a bundled encoder").side_px;
    let noise = sample(&DirectionFamily::Isotropic, 0, 0, (3, side_px, side_px));
    let largest = 4.0 / (side_px as f32);
    let pixels: Arc<[f32]> = noise
        .expect("isotropic directions are drawn")
        .iter()
        .map(|value| (0.5 + value / largest).clamp(0.0, 1.0))
        .collect();
    let prepared = Prepared {
        side_px,
        pixels,
        steps: String::new(),
    };
    EncoderField::new(Arc::new(load(name)), Readout::Pooled, &prepared).expect("it fits")
}

fn directions(field: &EncoderField) -> Vec<Arc<[f32]>> {
    let len = field.input_len();
    (0..field.batch())
        .filter_map(|index| sample(&DirectionFamily::Isotropic, 0, index, (1, 1, len)))
        .collect()
}

#[divan::bench(args = ENCODERS)]
fn load_encoder(bencher: Bencher<'_, '_>, name: &str) {
    bencher.bench_local(|| black_box(load(name)).weights);
}

#[divan::bench(args = ENCODERS)]
fn forward(bencher: Bencher<'_, '_>, name: &str) {
    let mut field = field(name);
    let steps: Vec<Perturbation> = directions(&field)
        .into_iter()
        .map(|direction| Perturbation {
            direction,
            eta_l2: ETA_L2,
        })
        .collect();
    bencher.bench_local(|| field.features(&steps).expect("features"));
}

#[divan::bench(args = ENCODERS)]
fn jvp(bencher: Bencher<'_, '_>, name: &str) {
    let mut field = field(name);
    let tangents = directions(&field);
    bencher.bench_local(|| field.jvp(&tangents).expect("products"));
}

#[divan::bench(args = ENCODERS)]
fn vjp(bencher: Bencher<'_, '_>, name: &str) {
    let mut field = field(name);
    let cotangents = vec![1.0; field.batch() * field.output_len()];
    bencher.bench_local(|| field.vjp(&cotangents).expect("products"));
}

#[divan::bench(args = ENCODERS, sample_count = 3, sample_size = 1)]
fn interactive_profile(bencher: Bencher<'_, '_>, name: &str) {
    bencher.bench_local(|| whole_profile(name));
}

fn whole_profile(name: &str) -> Profile {
    let side_px = registry::find(name).expect("a bundled encoder").side_px;
    let recipe = ProfileRecipe::interactive(name, WeightsKind::Trained, side_px);
    let mut field = field(name);
    let mut profiler = Profiler::new(recipe, (3, side_px, side_px)).expect("a sound recipe");
    while !profiler.step(&mut field).expect("a step") {}
    profiler.snapshot()
}
