//! LPIPS as a whole against the package lpips, over an AlexNet whose weights are a formula (tests/golden/edits/gen_lpips.py), read from a
//! weight file as a user's is.

mod tiny;

use std::path::{Path, PathBuf};
use std::process::Command;

use etascope::ErrorKind;
use etascope::device::ComputeDevice;
use etascope::geometry::perceptual::Lpips;
use etascope::images::Picture;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

/// Output channels, input channels and kernel of AlexNet's convolutions, with their places in torchvision's `features`.
const CONVOLUTIONS: [(usize, [usize; 3]); 5] = [
    (0, [64, 3, 11]),
    (3, [192, 64, 5]),
    (6, [384, 192, 3]),
    (8, [256, 384, 3]),
    (10, [256, 256, 3]),
];

/// Numbers of a tensor as the script draws them.
fn drawn(len: usize, stream: u64, bound: f64) -> Vec<u8> {
    let values = (0..len as u64).flat_map(|place| {
        let mut x = place + stream * 1_000_003;
        for _ in 0..2 {
            x = (((x >> 16) ^ x) * 0x45d_9f3b) & 0xffff_ffff;
        }
        x = (x >> 16) ^ x;
        let value = (x as f64 / 2_f64.powi(31) - 1.0) * bound;
        (value as f32).to_le_bytes()
    });
    values.collect()
}

/// The weight file of such a network: its convolutions, under the names that `rename` gives them.
fn weight_file(folder: &tempfile::TempDir, rename: impl Fn(String) -> String) -> PathBuf {
    let mut tensors = Vec::new();
    for (i, (place, [outputs, inputs, kernel])) in (0..).zip(CONVOLUTIONS) {
        let fan_in = inputs * kernel * kernel;
        let weight = drawn(outputs * fan_in, 2 * i, (6.0 / fan_in as f64).sqrt());
        let shape = vec![outputs, inputs, kernel, kernel];
        tensors.push((rename(format!("features.{place}.weight")), shape, weight));
        let bias = drawn(outputs, 2 * i + 1, 0.1);
        tensors.push((
            rename(format!("features.{place}.bias")),
            vec![outputs],
            bias,
        ));
    }
    let views = tensors.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes).expect("a tensor");
        (name.as_str(), view)
    });
    let path = folder.path().join("alexnet.safetensors");
    let file = safetensors::serialize(views, None).expect("a file");
    std::fs::write(&path, file).expect("it can be written");
    path
}

fn picture(fixture: &SafeTensors<'_>, name: &str) -> Picture {
    let tensor = fixture.tensor(name).expect("a picture");
    let [rows, columns, _] = tensor.shape() else {
        panic!("{name} is no picture");
    };
    Picture::new(*columns, *rows, tensor.data().to_vec()).expect("a picture")
}

fn numbers(fixture: &SafeTensors<'_>, name: &str) -> Vec<f64> {
    let tensor = fixture.tensor(name).expect("numbers");
    let chunks = tensor.data().as_chunks().0.iter();
    chunks.map(|bytes| f64::from_le_bytes(*bytes)).collect()
}

#[test]
fn distances_are_those_of_the_package() {
    let file = std::fs::read(tiny::golden_path("edits/lpips.safetensors")).expect("a fixture");
    let fixture = SafeTensors::deserialize(&file).expect("a fixture");
    let folder = tempfile::tempdir().expect("a folder");
    let path = weight_file(&folder, |name| name);
    let metric = Lpips::open(&path, &ComputeDevice::cpu()).expect("the metric");
    for pair in 0..4 {
        let [a, b] = ["a", "b"].map(|side| picture(&fixture, &format!("{pair}.{side}")));
        let expected = numbers(&fixture, &format!("{pair}.distance"))[0];
        let distance = metric.distance(&a, &b).expect("a distance");
        // Features in f32 against f64 throughout: a few units of 1.2e-7 in sums of some thousand terms.
        assert!(
            (distance / expected - 1.0).abs() < 1e-5,
            "pair {pair}: {distance} and {expected}"
        );
        assert_eq!(metric.distance(&a, &a).expect("a distance"), 0.0);
        let back = metric.distance(&b, &a).expect("a distance");
        assert!((back / distance - 1.0).abs() < 1e-12);
    }
    let small = Picture::new(30, 40, vec![0; 3600]).expect("a picture");
    let error = metric.distance(&small, &small).expect_err("too small");
    assert_eq!(error.kind, ErrorKind::Request);
    let least = Picture::new(31, 31, vec![9; 31 * 31 * 3]).expect("a picture");
    assert_eq!(metric.distance(&least, &least).expect("a distance"), 0.0);
    let larger = Picture::new(31, 40, vec![9; 31 * 40 * 3]).expect("a picture");
    assert!(metric.distance(&least, &larger).is_err());
}

#[test]
fn weights_of_another_network_are_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = weight_file(&folder, |name| name.replace("features.10", "features.11"));
    let error = Lpips::open(&path, &ComputeDevice::cpu())
        .err()
        .expect("an error");
    assert_eq!(error.kind, ErrorKind::Weights);
    assert!(error.why.contains("features.1"), "{}", error.why);
    // A file with a part of the fully connected layers is no whole one.
    let path = weight_file(&folder, |name| name.replace("features.10", "classifier.6"));
    assert!(Lpips::open(&path, &ComputeDevice::cpu()).is_err());
}

/// Runs the program; a cache has no place here.
fn run(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_etascope"))
        .args(args)
        .args(["--device", "cpu", "--no-cache"])
        .env("XDG_CONFIG_HOME", "/nowhere")
        .env("TORCH_HOME", "/nowhere")
        .env_remove("RUST_LOG")
        .output()
        .expect("the binary starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*errors), (Some(0), ""));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Columns of the row of a table whose second and third cells are these.
fn row(path: &Path, cut: &str, rank: &str) -> Vec<String> {
    let mut reader = csv::Reader::from_path(path).expect("a table");
    let mut rows = reader.records().map(|row| row.expect("a row"));
    let found = rows.find(|row| &row[1] == cut && &row[2] == rank);
    let found = found.expect("such a row");
    found.iter().map(str::to_owned).collect()
}

#[test]
fn a_sweep_shows_what_is_decoded_at_each_rank_and_scores_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let out = at("out");
    let fit = [
        "fit",
        "--encoder",
        "efficientnet_lite0",
        "--stage",
        "blocks.4",
        "--manipulation",
        "grayscale",
        "--gamma",
        "0.01",
        "--out",
        &out,
    ];
    run(&fit);
    let (map, grid) = (at("out/map.safetensors"), at("grid.png"));
    let edit = |stem: &str, more: &[&str]| {
        let args = [
            "edit",
            "bundled:coffee",
            "--map",
            &map,
            "--ranks",
            "0,4,112",
            "--cut",
            "edit,w",
            "--out",
            &out,
            "--stem",
            stem,
        ];
        run(&[&args[..], more].concat())
    };
    // Without AlexNet's weights the numbers are blank, and it is said why and what to do.
    let told = edit("without", &["--grid", &grid]);
    for word in [
        "AlexNet",
        "not on this machine",
        "encoders fetch",
        "--lpips",
    ] {
        assert!(told.contains(word), "no “{word}” in:\n{told}");
    }
    let table = PathBuf::from(at("out/without.csv"));
    let identity = row(&table, "identity", "");
    assert_eq!(identity[9], "");
    // The decoder draws the edited photograph's own features better than the unedited ones, and the full map's too.
    let ssim = |row: &[String]| -> f64 { row[8].parse().expect("a number") };
    let target = row(&table, "target", "");
    assert!(ssim(&target) > ssim(&identity), "{target:?} {identity:?}");
    let full = row(&table, "map", "");
    for cut in ["edit", "w"] {
        let whole = row(&table, cut, "112");
        assert!((ssim(&whole) - ssim(&full)).abs() < 1e-3, "{cut}");
    }
    // W without its ranks is no picture at all, the edit without its ranks is nearly the photograph.
    assert!(ssim(&row(&table, "edit", "0")) > ssim(&row(&table, "w", "0")) + 0.1);
    // Five pictures of 112 px in the first row, three in each of the others.
    let sheet = etascope::images::open(Path::new(&grid), Default::default()).expect("a picture");
    assert!(sheet.width > 5 * 112 && sheet.width < 5 * 112 + 100);
    assert!(sheet.height > 3 * 112 && sheet.height < 3 * 112 + 300);

    // With weights, here those of the formula, every row has its number.
    let weights = weight_file(&folder, |name| name);
    let weights = weights.to_string_lossy();
    let told = edit("with", &["--lpips", &weights]);
    assert!(!told.contains("not on this machine"), "{told}");
    let table = PathBuf::from(at("out/with.csv"));
    let lpips =
        |cut: &str, rank: &str| -> f64 { row(&table, cut, rank)[9].parse().expect("LPIPS") };
    assert!(lpips("target", "") < lpips("identity", ""));
    assert!(lpips("edit", "0") < lpips("w", "0"));
    assert!((lpips("w", "112") - lpips("map", "")).abs() < 1e-3);
}
