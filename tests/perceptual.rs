//! LPIPS as a whole against the package lpips, over an AlexNet whose weights are a formula (tests/golden/edits/gen_lpips.py), read from a
//! weight file as a user's is.

mod tiny;

use std::path::PathBuf;

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
