//! Singular spectra of Jacobians: in closed form, against NumPy, and of the tiny encoders against the full
//! Jacobians of PyTorch (tests/golden/edits/gen_maps.py).

mod fields;
mod tiny;

use std::sync::Arc;

use burn::tensor::Device;
use etascope::device::ComputeDevice;
use etascope::encoders::layers::Placement;
use etascope::encoders::registry::LoadedEncoder;
use etascope::encoders::{Readout, WeightsKind};
use etascope::geometry::encoder_field::EncoderField;
use etascope::geometry::spectrum::{
    BottomDirection, BottomSearch, Bounds, JacobianSpectrum, SpectrumEstimator, SpectrumMethod,
};
use etascope::geometry::{Cost, Field};
use etascope::images::Prepared;
use fields::{Linear, MapField, Planted};
use tiny::{BOTH, Fixture, Tiny, dot};

fn spectrum(field: &mut dyn Field, method: SpectrumMethod) -> (JacobianSpectrum, Cost) {
    let (d_z, d_i) = (field.output_len(), field.input_len());
    let mut estimator = SpectrumEstimator::new(method, 3, d_z, d_i).unwrap();
    let mut cost = Cost::default();
    assert!(estimator.spectrum().is_none());
    while !estimator.step(field, &mut cost).unwrap() {}
    (estimator.spectrum().unwrap().clone(), cost)
}

fn wide(vector: &[f32]) -> Vec<f64> {
    vector.iter().map(|&value| f64::from(value)).collect()
}

/// |cosine| of two vectors.
fn alignment(a: &[f32], b: &[f64]) -> f64 {
    let a = wide(a);
    (dot(&a, b) / (dot(&a, &a) * dot(b, b)).sqrt()).abs()
}

fn dense() -> (MapField<Linear>, Fixture) {
    let fixture = Fixture::read("edits/spectrum.safetensors");
    let shape = fixture.shape("dense").to_vec();
    let linear = Linear {
        rows: shape[0],
        matrix: fixture.get("dense").to_vec(),
    };
    (MapField::new(linear, vec![0.0; shape[1]]), fixture)
}

#[test]
fn the_exact_spectrum_is_numpys() {
    let (mut field, fixture) = dense();
    let (found, cost) = spectrum(&mut field, SpectrumMethod::Exact { vectors: 3 });
    let theirs = fixture.get("dense.values");
    assert_eq!(found.values.len(), theirs.len());
    assert_eq!(found.bounds, Bounds::Exact);
    // From 10 to 0.001: the squares keep 16 digits in f64, so that the least keeps 8.
    for (i, (ours, theirs)) in found.values.iter().zip(theirs).enumerate() {
        assert!(
            (ours / theirs - 1.0).abs() < 1e-7,
            "σ_{i}: {ours} against {theirs}"
        );
    }
    let right: Vec<&[f64]> = fixture.get("dense.right").chunks_exact(400).collect();
    assert_eq!((found.top.len(), found.bottom.len()), (3, 3));
    for i in 0..3 {
        assert!(alignment(&found.top[i], right[i]) > 1.0 - 1e-9, "top {i}");
        let least = right[right.len() - 1 - i];
        assert!(
            alignment(&found.bottom[i], least) > 1.0 - 1e-6,
            "bottom {i}"
        );
    }
    assert_eq!((cost.vjps, cost.jvps, cost.forwards), (24, 0, 0));
    let planned = SpectrumEstimator::planned_cost(SpectrumMethod::Exact { vectors: 3 }, 24);
    assert_eq!(planned, cost);
    let readout = found.readout().unwrap();
    assert!((readout.condition.unwrap() / 1e4 - 1.0).abs() < 1e-5);
}

#[test]
fn the_leading_part_is_within_its_bounds() {
    let (mut field, fixture) = dense();
    let method = SpectrumMethod::Leading { count: 6 };
    let (found, cost) = spectrum(&mut field, method);
    let theirs = fixture.get("dense.values");
    let Bounds::Within(errors) = &found.bounds else {
        panic!("{:?}", found.bounds);
    };
    assert_eq!(
        (found.values.len(), errors.len(), found.top.len()),
        (6, 6, 6)
    );
    for i in 0..6 {
        let off = (found.values[i] - theirs[i]).abs();
        // Vectors are rounded to f32.
        assert!(
            off <= errors[i] + 1e-6,
            "σ_{i} is off by {off:.1e}, bound {:.1e}",
            errors[i]
        );
        assert!(off < 1e-4 * theirs[i], "σ_{i} is off by {off:.1e}");
        assert!(
            errors[i] < 0.05 * theirs[i],
            "the bound {:.1e} says little",
            errors[i]
        );
    }
    assert_eq!(SpectrumEstimator::planned_cost(method, 24), cost);
    // A part is not read as if it were the whole.
    assert!(found.readout().is_none());
}

#[test]
fn a_leading_part_that_is_nearly_all_is_exact() {
    let (mut field, _) = dense();
    let (found, cost) = spectrum(&mut field, SpectrumMethod::Leading { count: 20 });
    assert_eq!(found.bounds, Bounds::Exact);
    let sizes = (found.values.len(), found.top.len(), found.bottom.len());
    assert_eq!(sizes, (24, 20, 0));
    let method = SpectrumMethod::Leading { count: 20 };
    assert_eq!(SpectrumEstimator::planned_cost(method, 24), cost);
}

#[test]
fn a_spectrum_known_in_closed_form() {
    // Square, of length 64, with σ_i = 2^(−i/8).
    let sigma: Vec<f64> = (0..64)
        .map(|i| f64::powf(2.0, -f64::from(i) / 8.0))
        .collect();
    let planted = Planted::new(9, sigma.clone());
    let right: Vec<Vec<f64>> = (0..64).map(|i| planted.right_vector(i)).collect();
    let mut field = MapField::new(planted, vec![0.0; 64]);
    let (found, _) = spectrum(&mut field, SpectrumMethod::Exact { vectors: 64 });
    for i in 0..64 {
        // Rows are kept in f32.
        assert!((found.values[i] - sigma[i]).abs() < 1e-6);
        assert!(alignment(&found.top[i], &right[i]) > 1.0 - 1e-6, "{i}");
    }
    let readout = found.readout().unwrap();
    // Σσ² of a geometric series of ratio 2^(−1/4).
    let ratio = f64::powf(2.0, -0.25);
    let stable = (1.0 - ratio.powi(64)) / (1.0 - ratio);
    assert!((readout.stable_rank / stable - 1.0).abs() < 1e-6);
    let top5 = (1.0 - ratio.powi(5)) / (1.0 - ratio.powi(64));
    assert!((readout.energy_top[1] - top5).abs() < 1e-6);
}

#[test]
fn right_vectors_are_orthonormal_and_carried_to_orthogonal_images_of_length_sigma() {
    let (mut field, _) = dense();
    for method in [
        SpectrumMethod::Exact { vectors: 8 },
        SpectrumMethod::Leading { count: 8 },
    ] {
        let (found, _) = spectrum(&mut field, method);
        let vectors: Vec<_> = found.top.iter().map(|vector| wide(vector)).collect();
        let images = field.jvp(&found.top).unwrap();
        let images: Vec<&[f64]> = images.chunks_exact(24).collect();
        // Of f32 entries; a leading part is as good as its bounds.
        let off = match &found.bounds {
            Bounds::Exact => 1e-6,
            Bounds::Within(errors) => 1e-6 + 2.0 * errors.iter().copied().fold(0.0, f64::max),
        };
        for i in 0..8 {
            for j in 0..8 {
                let (unit, square) = if i == j {
                    (1.0, found.values[i].powi(2))
                } else {
                    (0.0, 0.0)
                };
                assert!((dot(&vectors[i], &vectors[j]) - unit).abs() < 1e-6);
                let product = dot(images[i], images[j]);
                let bound = off * (found.values[i] + found.values[j]) + off * off;
                assert!(
                    (product - square).abs() < bound,
                    "{method:?} {i} {j}: {product}"
                );
            }
            // Of v and −v the one whose largest entry is positive.
            let largest = (vectors[i].iter()).max_by(|a, b| a.abs().total_cmp(&b.abs()));
            assert!(largest.is_some_and(|&value| value > 0.0), "{method:?} {i}");
        }
    }
}

fn bottom(field: &mut dyn Field, largest: f64, steps: usize) -> (BottomDirection, Cost) {
    let mut search = BottomSearch::new(largest, steps, 1, field.input_len());
    let mut cost = Cost::default();
    assert!(search.found().is_none());
    while !search.step(field, &mut cost).unwrap() {}
    (search.found().unwrap().clone(), cost)
}

#[test]
fn shifting_finds_the_direction_that_moves_least() {
    // Two small values and six large ones: the smaller of the two has to win.
    let sigma = vec![4.0, 3.8, 3.5, 3.0, 2.5, 2.0, 1.0, 0.1];
    let planted = Planted::new(2, sigma);
    let least = planted.right_vector(7);
    let mut field = MapField::new(planted, vec![0.0; 8]);
    let (found, cost) = bottom(&mut field, 4.0, 300);
    // (1 − 1/16)^300 = 4e-9 of the second least is left; vectors are f32.
    let off = 1.0 - alignment(&found.direction, &least);
    assert!(off < 1e-9, "off by {off:.1e}");
    assert!((found.gain - 0.1).abs() < 1e-5, "gain {}", found.gain);
    assert!(found.residual < 1e-6, "residual {}", found.residual);
    assert_eq!((cost.jvps, cost.vjps), (301, 301));
    // Few steps leave a gain that says so.
    let (early, _) = bottom(&mut field, 4.0, 2);
    assert!(early.gain > 2.0 * found.gain && early.residual > 1e-3);
}

#[test]
fn with_more_inputs_than_features_the_least_direction_moves_nothing() {
    let (mut field, fixture) = dense();
    let (found, _) = bottom(&mut field, 10.0, 64);
    // Values up to 10 remain in the feature; the random start has 24 of 400 parts of its square in the row
    // space of J.
    assert!(found.gain < 0.3, "gain {}", found.gain);
    let norm: f64 = wide(&found.direction).iter().map(|v| v * v).sum();
    assert!((norm - 1.0).abs() < 1e-5);
    let right: Vec<&[f64]> = fixture.get("dense.right").chunks_exact(400).collect();
    for (i, vector) in right[..4].iter().enumerate() {
        assert!(alignment(&found.direction, vector) < 1e-2, "{i}");
    }
}

#[test]
fn a_zero_jacobian_has_a_spectrum_of_zeros() {
    let zero = Linear {
        rows: 8,
        matrix: vec![0.0; 8 * 20],
    };
    let mut field = MapField::new(zero, vec![0.0; 20]);
    let (found, _) = spectrum(&mut field, SpectrumMethod::Exact { vectors: 2 });
    assert_eq!(found.values, [0.0; 8]);
    assert!(found.top.is_empty() && found.bottom.is_empty() && found.readout().is_none());
    let (found, _) = spectrum(&mut field, SpectrumMethod::Leading { count: 2 });
    assert!(found.values.is_empty() && found.top.is_empty());
    let (found, _) = bottom(&mut field, 0.0, 5);
    assert_eq!((found.gain, found.residual), (0.0, 0.0));
}

#[test]
fn what_does_not_fit_in_memory_is_refused() {
    let (d_z, d_i) = (62_720, 150_528);
    assert!(!SpectrumMethod::is_exact_affordable(d_z, d_i));
    assert!(SpectrumMethod::is_exact_affordable(1280, d_i));
    // Few inputs do not make a long feature short.
    assert!(!SpectrumMethod::is_exact_affordable(d_z, 12));
    for method in [
        SpectrumMethod::Exact { vectors: 1 },
        SpectrumMethod::Leading { count: 0 },
        SpectrumMethod::Leading { count: 100_000 },
    ] {
        let error = SpectrumEstimator::new(method, 0, d_z, d_i).err();
        assert!(
            error.is_some_and(|error| error.kind == etascope::ErrorKind::Request),
            "{method:?}"
        );
    }
    assert!(SpectrumEstimator::new(SpectrumMethod::Leading { count: 16 }, 0, d_z, d_i).is_ok());
}

/// A tiny encoder in f64 at the photograph of its fixture.
fn encoder_field(tiny: Tiny) -> EncoderField {
    let placement = Placement::f64(&Device::flex());
    let encoder = Arc::new(LoadedEncoder {
        encoder: tiny.load(&placement),
        weights: WeightsKind::Trained,
        weights_id: "fixture".into(),
        seed: 0,
        device: ComputeDevice::cpu(),
        placement,
    });
    let photo = tiny.profile_fixture();
    let pixels = photo.get("photo").iter().map(|&level| level as f32 / 255.0);
    let photo = Prepared {
        side_px: tiny.side_px(),
        pixels: pixels.collect(),
        steps: String::new(),
    };
    EncoderField::new(encoder, Readout::Pooled, &photo).unwrap()
}

#[test]
fn spectra_of_encoders_are_those_of_their_full_jacobians() {
    let fixture = Fixture::read("edits/spectrum.safetensors");
    for tiny in BOTH {
        let mut field = encoder_field(tiny);
        let name = tiny.name();
        let theirs = fixture.get(&format!("{name}.values"));
        let right: Vec<&[f64]> = fixture
            .get(&format!("{name}.right"))
            .chunks_exact(field.input_len())
            .collect();
        let (exact, _) = spectrum(&mut field, SpectrumMethod::Exact { vectors: 3 });
        assert_eq!(exact.values.len(), theirs.len());
        for (i, (ours, theirs_i)) in exact.values.iter().zip(theirs).enumerate() {
            // Rows are kept in f32.
            let off = (ours - theirs_i).abs();
            assert!(off < 1e-6 * theirs[0], "{name}: σ_{i} is off by {off:.1e}");
        }
        // Dead channels leave singular values that are rounding, of which no condition number is made.
        let is_singular = theirs[theirs.len() - 1] < 1e-9 * theirs[0];
        let readout = exact.readout().unwrap();
        assert_eq!(readout.condition.is_none(), is_singular, "{name}");
        for (i, vector) in right.iter().enumerate() {
            assert!(
                alignment(&exact.top[i], vector) > 1.0 - 1e-6,
                "{name}: vector {i}"
            );
        }
        let (leading, _) = spectrum(&mut field, SpectrumMethod::Leading { count: 4 });
        let Bounds::Within(errors) = &leading.bounds else {
            panic!("{:?}", leading.bounds);
        };
        for i in 0..4 {
            let off = (leading.values[i] - theirs[i]).abs();
            assert!(
                off <= errors[i] + 1e-6 * theirs[0],
                "{name}: σ_{i} is off by {off:.1e}"
            );
            assert!(off < 0.01 * theirs[i], "{name}: σ_{i} is off by {off:.1e}");
        }
    }
}
