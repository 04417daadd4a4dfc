//! One encoder with weights from a file, on the CPU device: loading, forward passes at growing batches, and products
//! with the Jacobian and its transpose. Prints one JSON object a line, as benches/peer.py does for PyTorch;
//! `benches/compare --encoders large` sets the two beside each other.
//!
//! `cargo bench --profile release --bench passes -- NAME FILE [RUNS]`. Of every time the least of some runs is printed:
//! whatever else the machine does can only add to it.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use etascope::device::ComputeDevice;
use etascope::encoders::{Readout, registry};
use etascope::geometry::directions::{DirectionFamily, sample};
use etascope::geometry::encoder_field::EncoderField;
use etascope::geometry::{Field, Perturbation};
use etascope::images::Prepared;
use etascope::recipe::WeightsKind;
use serde_json::{Value, json};

/// Inputs in one forward pass, tried in this order until a larger batch is slower for each image.
const BATCHES: [usize; 5] = [1, 2, 4, 8, 16];
/// Within the ladder, far from rounding.
const ETA_L2: f64 = 1.0;
/// Values of the feature that are printed, to be held against those of PyTorch.
const SHOWN: usize = 64;

fn main() {
    let arguments = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'));
    let arguments: Vec<String> = arguments.collect();
    let [name, file, runs @ ..] = arguments.as_slice() else {
        println!("usage: cargo bench --profile release --bench passes -- NAME FILE [RUNS]");
        return;
    };
    let runs = runs
        .first()
        .map_or(3, |runs| runs.parse().expect("a number of runs"));
    let name = registry::local_name(name, file);

    let encoder = Arc::new(load(&name, file, runs));
    let photo = photo(encoder.spec().side_px);
    let field =
        || EncoderField::new(Arc::clone(&encoder), Readout::Pooled, &photo).expect("it fits");
    forward(field, runs);
    products(field, runs);
}

fn print(line: &Value) {
    println!("{line}");
}

/// Seconds of the fastest of `runs` calls.
fn least(runs: usize, mut work: impl FnMut()) -> f64 {
    (0..runs)
        .map(|_| seconds(&mut work))
        .fold(f64::INFINITY, f64::min)
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// Loads again and again from a file that the system has in memory by then. The peak is that of the first time.
fn load(name: &str, file: &str, runs: usize) -> registry::LoadedEncoder {
    let device = ComputeDevice::cpu();
    let load = || {
        registry::load(name, WeightsKind::Trained, 0, &device)
            .unwrap_or_else(|error| panic!("{error}"))
    };
    let before = memory::forget_peak();
    let mut encoder = Some(load());
    let grown = memory::peak_mib()
        .zip(before)
        .map(|(peak, before)| peak - before);
    let seconds = least(runs, || {
        encoder = None;
        encoder = Some(black_box(load()));
    });
    let bytes = std::fs::metadata(file).expect("it was read just now").len();
    print(&json!({"what": "load", "seconds": seconds, "bytes": bytes, "peak_mib": grown}));
    encoder.expect("it was loaded at least once")
}

/// Pixels without a seed, so that PyTorch can be shown the same: value p is (37·p mod 256) / 255.
fn photo(side_px: usize) -> Prepared {
    let pixels = (0..3 * side_px * side_px).map(|p| (37 * p % 256) as f32 / 255.0);
    Prepared {
        side_px,
        pixels: pixels.collect(),
        steps: String::new(),
    }
}

fn directions(field: &EncoderField) -> Vec<Arc<[f32]>> {
    let len = field.input_len();
    (0..field.batch())
        .filter_map(|index| sample(&DirectionFamily::Isotropic, 0, index, (1, 1, len)))
        .collect()
}

fn forward(field: impl Fn() -> EncoderField, runs: usize) {
    let feature = field().feature_map().expect("a feature");
    let values = feature.planes();
    print(&json!({"what": "feature", "values": &values[..SHOWN.min(values.len())]}));
    let mut best = f64::INFINITY;
    for batch in BATCHES {
        let mut field = field().with_batch(batch);
        let steps: Vec<Perturbation> = directions(&field)
            .into_iter()
            .map(|direction| Perturbation {
                direction,
                eta_l2: ETA_L2,
            })
            .collect();
        let mut work = || {
            black_box(field.features(&steps).expect("features"));
        };
        work();
        let each = least(runs, work) / batch as f64;
        print(&json!({"what": "forward", "batch": batch, "seconds": each}));
        if each > best {
            break;
        }
        best = each;
    }
}

/// Products in the batches of the program. Beyond its own product the first one records the derivative, and the first
/// transposed one puts the kernels in order for that direction.
fn products(field: impl Fn() -> EncoderField, runs: usize) {
    let mut field = field();
    let batch = field.batch();
    let tangents = directions(&field);
    let cotangents = vec![1.0; batch * field.output_len()];
    let mut report = |what: &str, first_what: &str, work: &mut dyn FnMut(&mut EncoderField)| {
        let first = seconds(|| work(&mut field));
        let later = least(runs, || work(&mut field));
        print(&json!({"what": what, "batch": batch, "seconds": later / batch as f64}));
        print(&json!({"what": first_what, "seconds": (first - later).max(0.0)}));
    };
    report("jvp", "record", &mut |field| {
        black_box(field.jvp(&tangents).expect("products"));
    });
    report("vjp", "order", &mut |field| {
        black_box(field.vjp(&cotangents).expect("products"));
    });
}

/// Memory of this process, as Linux tells it; nothing elsewhere.
mod memory {
    /// Lets the peak begin anew, and gives what is in use, in MiB.
    pub fn forget_peak() -> Option<f64> {
        std::fs::write("/proc/self/clear_refs", "5").ok()?;
        of("VmRSS:")
    }

    /// The most that was in use since, in MiB.
    pub fn peak_mib() -> Option<f64> {
        of("VmHWM:")
    }

    fn of(key: &str) -> Option<f64> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kib / 1024.0)
    }
}
