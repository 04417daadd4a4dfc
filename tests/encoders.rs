//! The encoders compute what the originals compute: values, derivatives, classes.

mod tiny;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use burn::tensor::{Device, Tensor};
use etascope::ErrorKind;
use etascope::device::ComputeDevice;
use etascope::encoders::layers::Placement;
use etascope::encoders::registry::{self, LoadedEncoder};
use etascope::encoders::value::Value;
use etascope::encoders::{Encoder, Readout};
use etascope::geometry::encoder_field::EncoderField;
use etascope::geometry::{Basis, Field, Perturbation, Profile, Profiler};
use etascope::images::{Prepared, bundled};
use etascope::recipe::{DEFAULT_TRACE, Estimator, ProfileRecipe, TraceMethod, WeightsKind};
use tiny::{BOTH, Fixture, Tiny, dot, norm, relative, values};

/// f32 against values computed in f64: some fifty layers of rounding at 6e-8 each, which add up like a
/// random walk or at worst in proportion, stay below this.
const F32_BOUND: f64 = 2e-5;

/// A derivative multiplies the rounding of its factors as well.
const F32_DERIVATIVE_BOUND: f64 = 1e-4;

/// f64 against f64 in another order of summation.
const F64_BOUND: f64 = 1e-12;

fn cpu_f32() -> Placement {
    Placement::f32(&Device::flex())
}

fn cpu_f64() -> Placement {
    Placement::f64(&Device::flex())
}

fn run(encoder: &dyn Encoder, x: Tensor<4>, readout: &Readout) -> Vec<f64> {
    let value = encoder
        .forward_normalised(Value::plain(x), readout)
        .expect("the readout exists");
    values(value.into_primal())
}

fn readouts(fixture: &Fixture) -> Vec<(String, Readout)> {
    let stages = fixture.stages().into_iter().enumerate();
    let stages = stages.map(|(i, name)| (name.to_owned(), Readout::Stage(i)));
    stages
        .chain([
            ("pooled".to_owned(), Readout::Pooled),
            ("logits".to_owned(), Readout::Logits),
        ])
        .collect()
}

#[test]
fn every_stage_pooled_feature_and_logits_agree_with_the_original() {
    for tiny in BOTH {
        let (fixture, at) = (tiny.fixture(), cpu_f32());
        let encoder = tiny.load(&at);
        for (name, readout) in readouts(&fixture) {
            let found = run(encoder.as_ref(), fixture.tensor("input", &at), &readout);
            let error = relative(&found, fixture.get(&name));
            assert!(error <= F32_BOUND, "{tiny:?} {name}: {error:e}");
        }
    }
}

#[test]
fn stages_are_named_and_shaped_as_in_the_original() {
    for tiny in BOTH {
        let fixture = tiny.fixture();
        let encoder = tiny.load(&cpu_f32());
        let names = fixture.stages();
        assert_eq!(names.len(), encoder.spec().stages.len());
        for (i, (name, spec)) in names.iter().zip(&encoder.spec().stages).enumerate() {
            assert_eq!(*name, format!("stage.{i}.{}", spec.name));
            assert_eq!(fixture.shape(name)[1..], spec.shape);
        }
    }
}

#[test]
fn double_precision_agrees_with_the_original_to_the_last_digits() {
    for tiny in BOTH {
        let (fixture, at) = (tiny.fixture(), cpu_f64());
        let encoder = tiny.load(&at);
        for (name, readout) in [
            ("f64.pooled", Readout::Pooled),
            ("f64.logits", Readout::Logits),
        ] {
            let found = run(encoder.as_ref(), fixture.tensor("input", &at), &readout);
            let error = relative(&found, fixture.get(name));
            assert!(error <= F64_BOUND, "{tiny:?} {name}: {error:e}");
        }
    }
}

#[test]
fn jacobian_products_agree_with_the_originals_differentiation() {
    for tiny in BOTH {
        let fixture = tiny.fixture();
        for (at, bound) in [(cpu_f32(), F32_DERIVATIVE_BOUND), (cpu_f64(), F64_BOUND)] {
            let encoder = tiny.load(&at);
            let derivative = |readout: &Readout| {
                let x = Value::traced(fixture.tensor("input", &at));
                let y = encoder
                    .forward_normalised(x, readout)
                    .expect("the readout exists");
                y.linearised().expect("the value is traced")
            };
            let pooled = derivative(&Readout::Pooled);
            let forward = values(pooled.jvp(fixture.tensor("direction", &at)));
            let back = values(pooled.vjp(fixture.tensor("cotangent.pooled", &at)));
            let logits = values(derivative(&Readout::Logits).jvp(fixture.tensor("direction", &at)));
            let reference = if bound == F64_BOUND {
                "f64.jvp.pooled"
            } else {
                "jvp.pooled"
            };
            for (what, found, expected, bound) in [
                ("Ju", forward, reference, bound),
                ("Jᵀv", back, "f64.vjp.pooled", bound),
                // The fixture holds the logits' derivative in f32 only.
                ("Ju of the logits", logits, "jvp.logits", bound.max(1e-6)),
            ] {
                let error = relative(&found, fixture.get(expected));
                assert!(
                    error <= bound,
                    "{tiny:?} {what} at {:?}: {error:e}",
                    at.dtype
                );
            }
        }
    }
}

#[test]
fn forward_and_transposed_products_are_adjoint_at_every_stage() {
    for tiny in BOTH {
        let (fixture, at) = (tiny.fixture(), cpu_f64());
        let encoder = tiny.load(&at);
        for (name, readout) in readouts(&fixture) {
            let x = Value::traced(fixture.tensor("input", &at));
            let y = encoder
                .forward_normalised(x, &readout)
                .expect("the readout exists");
            let derivative = y.linearised().expect("the value is traced");
            // Three of each at once: products of a batch are those of its members.
            let u = spread(&fixture.tensor("direction", &at), 3);
            let v = spread(&y.into_primal(), 3);
            let (ju, jtv) = (derivative.jvp(u.clone()), derivative.vjp(v.clone()));
            for i in 0..3 {
                let at = |t: &Tensor<4>| values(t.clone().narrow(0, i, 1));
                let (a, b) = (dot(&at(&v), &at(&ju)), dot(&at(&jtv), &at(&u)));
                let scale = norm(&at(&v)) * norm(&at(&ju));
                assert!(
                    (a - b).abs() <= F64_BOUND * scale,
                    "{tiny:?} {name}: {a} and {b}"
                );
            }
        }
    }
}

/// A batch of different tensors made from one by shifting its last axes.
fn spread(tensor: &Tensor<4>, count: usize) -> Tensor<4> {
    let [_, channels, rows, cols] = tensor.dims();
    let len = channels * rows * cols;
    let flat = values(tensor.clone());
    let shifted: Vec<f64> = (0..count)
        .flat_map(|i| {
            let flat = &flat;
            (0..len).map(move |p| flat[(p + 7 * i) % len] * (1.0 + i as f64))
        })
        .collect();
    cpu_f64().tensor(shifted, [count, channels, rows, cols])
}

#[test]
fn transposed_products_agree_with_reverse_mode_differentiation() {
    for tiny in BOTH {
        let (fixture, at) = (tiny.fixture(), cpu_f64());
        let encoder = tiny.load(&at);
        let v = fixture.tensor("cotangent.pooled", &at);
        let x = fixture.tensor("input", &at).autodiff().require_grad();
        let y = encoder.forward_normalised(Value::plain(x.clone()), &Readout::Pooled);
        let loss = (y.expect("the readout exists").into_primal() * v.autodiff()).sum();
        let gradient = x.grad(&loss.backward()).expect("the input is tracked");
        let error = relative(&values(gradient), fixture.get("f64.vjp.pooled"));
        assert!(error <= F64_BOUND, "{tiny:?}: {error:e}");
    }
}

#[test]
fn displacement_over_prediction_agrees_with_the_original_along_a_direction() {
    for tiny in BOTH {
        let (fixture, at) = (tiny.fixture(), cpu_f32());
        let encoder = tiny.load(&at);
        let base = run(
            encoder.as_ref(),
            fixture.tensor("input", &at),
            &Readout::Pooled,
        );
        let jvp = norm(fixture.get("f64.jvp.pooled"));
        let mut compared = 0;
        for (i, &eta) in fixture.get("eta").iter().enumerate() {
            // Below this the difference of two f32 features is rounding.
            if fixture.get("disp.pooled")[i] < 1e-4 * norm(&base) {
                continue;
            }
            let x = fixture.tensor("input", &at) + fixture.tensor("direction", &at) * eta;
            let moved = run(encoder.as_ref(), x, &Readout::Pooled);
            let displacement: Vec<f64> = moved.iter().zip(&base).map(|(a, b)| a - b).collect();
            let r = norm(&displacement) / (eta * jvp);
            let expected = fixture.get("r.pooled")[i];
            assert!(
                (r / expected - 1.0).abs() <= 1e-3,
                "{tiny:?} η {eta}: {r} not {expected}"
            );
            compared += 1;
        }
        assert!(
            compared >= 15,
            "{tiny:?}: only {compared} scales were compared"
        );
    }
}

#[test]
fn an_encoder_stops_at_the_readout() {
    for tiny in BOTH {
        let at = cpu_f32();
        let encoder = tiny.load(&at);
        let mut seen = 0;
        let flow = encoder.visit(
            Value::plain(tiny.fixture().tensor("input", &at)),
            &mut |_, _| {
                seen += 1;
                if seen == 3 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            },
        );
        assert_eq!((flow, seen), (ControlFlow::Break(()), 3));
        let beyond = Readout::Stage(encoder.spec().stages.len());
        let x = Value::plain(tiny.fixture().tensor("input", &at));
        let error = encoder
            .forward(x, &beyond)
            .expect_err("there is no such stage");
        assert_eq!(error.kind, ErrorKind::Request);
    }
}

#[test]
fn pixels_are_normalised_in_the_networks_channel_order() {
    for tiny in BOTH {
        let at = cpu_f64();
        let encoder = tiny.load(&at);
        let recipe = &encoder.spec().preprocessing;
        let [mean, std] = [recipe.mean, recipe.std].map(|values| values.map(f64::from));
        let bgr = matches!(tiny, Tiny::SqueezeNet);
        let pixels = at.tensor(vec![0.1, 0.2, 0.3], [1, 3, 1, 1]);
        let found = values(encoder.normalised(Value::plain(pixels)).into_primal());
        let ordered = if bgr {
            [0.3, 0.2, 0.1]
        } else {
            [0.1, 0.2, 0.3]
        };
        for channel in 0..3 {
            let expected = (ordered[channel] - mean[channel]) / std[channel];
            assert!((found[channel] - expected).abs() < 1e-14);
        }
    }
}

/// A tiny network as the registry would hand it out.
fn loaded(tiny: Tiny, placement: Placement) -> Arc<LoadedEncoder> {
    Arc::new(LoadedEncoder {
        encoder: tiny.load(&placement),
        weights: WeightsKind::Trained,
        weights_id: "fixture".into(),
        seed: 0,
        device: ComputeDevice::cpu(),
        placement,
    })
}

/// A smooth picture with a little texture, in [0, 1].
fn picture(side_px: usize) -> Prepared {
    let pixels = (0..3 * side_px * side_px).map(|p| {
        let (c, y, x) = (p / (side_px * side_px), p / side_px % side_px, p % side_px);
        let wave = (0.11 * x as f32 + 0.07 * (c as f32 + 1.0) * y as f32).sin();
        0.5 + 0.35 * wave + 0.05 * ((x * 37 + y * 91 + c * 53) % 17) as f32 / 17.0
    });
    Prepared {
        side_px,
        pixels: pixels.collect(),
        steps: String::new(),
    }
}

/// Different unit directions.
fn directions(len: usize, count: usize) -> Vec<Arc<[f32]>> {
    (0..count)
        .map(|i| {
            let raw: Vec<f64> = (0..len)
                .map(|p| ((p * (i + 3)) as f64 * 0.618).sin() - 0.2)
                .collect();
            let norm = norm(&raw);
            raw.iter().map(|v| (v / norm) as f32).collect()
        })
        .collect()
}

#[test]
fn a_field_forms_its_steps_in_raw_pixels_and_splits_large_calls() {
    let encoder = loaded(Tiny::SqueezeNet, cpu_f64());
    let photo = picture(67);
    let mut field = EncoderField::new(encoder.clone(), Readout::Pooled, &photo).expect("it fits");
    let us = directions(field.input_len(), field.batch() + 3);
    let steps: Vec<Perturbation> = us
        .iter()
        .zip(1..)
        .map(|(u, i)| Perturbation {
            direction: u.clone(),
            eta_l2: 0.3 * f64::from(i),
        })
        .collect();
    let rows = field.features(&steps).expect("finite");
    assert_eq!(rows.len(), steps.len() * field.output_len());
    for (step, row) in steps.iter().zip(rows.chunks_exact(field.output_len())) {
        let moved = photo.pixels.iter().zip(step.direction.iter());
        let moved = moved
            .map(|(&x, &u)| f64::from(x) + step.eta_l2 * f64::from(u))
            .collect();
        let x = cpu_f64().tensor(moved, [1, 3, 67, 67]);
        let alone = encoder
            .encoder
            .forward(Value::plain(x), &Readout::Pooled)
            .expect("pooled");
        assert!(relative(row, &values(alone.into_primal())) <= F64_BOUND);
    }
}

#[test]
fn a_fields_derivative_is_the_limit_of_its_differences() {
    for tiny in BOTH {
        for readout in [Readout::Stage(3), Readout::Pooled, Readout::Logits] {
            let encoder = loaded(tiny, cpu_f64());
            let photo = picture(tiny.side_px());
            let mut field = EncoderField::new(encoder, readout, &photo).expect("it fits");
            let u = directions(field.input_len(), 1);
            let step = |eta_l2| Perturbation {
                direction: u[0].clone(),
                eta_l2,
            };
            // Small enough that no kink of a ReLU lies between: then the difference is exact but for
            // rounding at 1e-16 / 1e-7.
            let h = 1e-7;
            let ends = field.features(&[step(h), step(-h)]).expect("finite");
            let (ahead, behind) = ends.split_at(field.output_len());
            let quotient: Vec<f64> = ahead
                .iter()
                .zip(behind)
                .map(|(a, b)| (a - b) / (2.0 * h))
                .collect();
            let exact = field.jvp(&u).expect("finite");
            let error = relative(&quotient, &exact);
            assert!(error <= 1e-6, "{tiny:?}: {error:e}");
        }
    }
}

#[test]
fn a_fields_products_are_adjoint_over_several_batches() {
    for tiny in BOTH {
        let photo = picture(tiny.side_px());
        let encoder = loaded(tiny, cpu_f32());
        let mut field = EncoderField::new(encoder, Readout::Pooled, &photo).expect("it fits");
        let count = field.batch() + 2;
        let us = directions(field.input_len(), count);
        let (input, output) = (field.input_len(), field.output_len());
        let vs: Vec<f64> = (0..count * output)
            .map(|i| (i as f64 * 1.7).cos())
            .collect();
        let ju = field.jvp(&us).expect("finite");
        let jtv = field.vjp(&vs).expect("finite");
        for i in 0..count {
            let u: Vec<f64> = us[i].iter().map(|&u| f64::from(u)).collect();
            let (v, ju) = (&vs[i * output..][..output], &ju[i * output..][..output]);
            let difference = dot(v, ju) - dot(&jtv[i * input..][..input], &u);
            assert!(difference.abs() <= F32_DERIVATIVE_BOUND * norm(v) * norm(ju));
        }
    }
}

#[test]
fn rounding_alone_moves_the_feature_a_little_but_does_move_it() {
    for tiny in BOTH {
        let photo = picture(tiny.side_px());
        let encoder = loaded(tiny, cpu_f32());
        let mut field = EncoderField::new(encoder, Readout::Pooled, &photo).expect("it fits");
        let u = directions(field.input_len(), 1);
        let here = Perturbation {
            direction: u[0].clone(),
            eta_l2: 0.0,
        };
        let base = field.features(&[here]).expect("finite");
        let probe = field.rounding_probe(1).expect("finite");
        let moved = relative(&probe, &base);
        assert!(moved > 1e-9 && moved < 1e-5, "{tiny:?}: {moved:e}");
        assert_eq!(
            probe,
            field.rounding_probe(1).expect("finite"),
            "a seed is a probe"
        );
        assert_ne!(probe, field.rounding_probe(2).expect("finite"));
    }
}

/// The profile of a tiny network along given directions, by the ratio of means.
fn ratio_of_means(mut field: EncoderField, etas_l2: &[f64], us: &[Arc<[f32]>]) -> Profile {
    let side = field.encoder().spec().side_px;
    let recipe = ProfileRecipe {
        etas_l2: etas_l2.to_vec(),
        estimator: Estimator::Paper,
        pairs_max: us.len(),
        jvps: us.len(),
        target_error: 0.0,
        ..ProfileRecipe::interactive("tiny", WeightsKind::Trained, side)
    };
    let profiler = Profiler::new(recipe, (3, side, side)).expect("it can be met");
    let mut profiler = profiler
        .with_directions(us.to_vec())
        .expect("unit vectors of the input's length");
    while !profiler.step(&mut field).expect("finite") {}
    profiler.snapshot()
}

#[test]
fn a_profile_in_raw_pixels_agrees_with_the_originals() {
    for tiny in BOTH {
        let fixture = tiny.profile_fixture();
        let side_px = tiny.side_px();
        let pixels = fixture.get("photo").iter().map(|&k| k as f32 / 255.0);
        let photo = Prepared {
            side_px,
            pixels: pixels.collect(),
            steps: String::new(),
        };
        let us: Vec<Arc<[f32]>> = fixture
            .get("directions")
            .chunks_exact(3 * side_px * side_px)
            .map(|row| (row, norm(row)))
            .map(|(row, norm)| row.iter().map(|k| (k / norm) as f32).collect())
            .collect();
        let etas = fixture.get("eta");
        for (at, bound) in [(cpu_f32(), 1e-3), (cpu_f64(), 1e-9)] {
            let field = EncoderField::new(loaded(tiny, at.clone()), Readout::Pooled, &photo);
            let profile = ratio_of_means(field.expect("it fits"), etas, &us);
            let jvp_sq = fixture.get("jvp_sq.pooled");
            let expected = jvp_sq.iter().sum::<f64>() / jvp_sq.len() as f64;
            let error = (profile.mean_jvp_sq / expected - 1.0).abs();
            assert!(error <= bound, "{tiny:?} {:?}: ‖Ju‖² {error:e}", at.dtype);
            for (i, scale) in profile.scales.iter().enumerate() {
                assert_eq!(scale.directions, 2 * us.len());
                let expected = fixture.get("r.pooled")[i];
                let error = (scale.r / expected - 1.0).abs();
                let eta = scale.eta_l2;
                assert!(
                    error <= bound,
                    "{tiny:?} {:?} η {eta}: r {} not {expected}",
                    at.dtype,
                    scale.r
                );
            }
        }
    }
}

#[test]
fn the_default_estimator_agrees_with_the_exact_trace() {
    // A pooled feature of 64 values, of which the default sketch spans half.
    let tiny = Tiny::EfficientNetLite;
    let encoder = loaded(tiny, cpu_f32());
    let photo = picture(tiny.side_px());
    let profile = |trace| {
        let recipe = ProfileRecipe {
            etas_l2: vec![0.1, 1.0, 10.0],
            pairs_max: 16,
            target_error: 0.0,
            trace,
            ..ProfileRecipe::interactive("tiny", WeightsKind::Trained, tiny.side_px())
        };
        let field = EncoderField::new(encoder.clone(), Readout::Pooled, &photo);
        let mut field = field.expect("it fits");
        let shape = (3, tiny.side_px(), tiny.side_px());
        let mut profiler = Profiler::new(recipe, shape).expect("it can be met");
        while !profiler.step(&mut field).expect("finite") {}
        profiler.snapshot()
    };
    let (sampled, exact) = (profile(DEFAULT_TRACE), profile(TraceMethod::Exact));
    assert_eq!(exact.mean_jvp_sq_se, 0.0);
    assert!(sampled.mean_jvp_sq_se > 0.0);
    let error = (sampled.mean_jvp_sq - exact.mean_jvp_sq) / sampled.mean_jvp_sq_se;
    assert!(error.abs() < 4.0, "{error} standard errors");
    for (a, b) in sampled.scales.iter().zip(&exact.scales) {
        assert_eq!((a.basis, b.basis), (Basis::Trace, Basis::Trace));
        // The same directions: only the trace differs, whose error `a` states.
        assert!((a.r - b.r).abs() < 4.0 * a.r_se, "{a:?} {b:?}");
    }
}

#[test]
fn the_batch_size_moves_a_profile_by_no_more_than_rounding() {
    let cpu = ComputeDevice::cpu();
    let full = registry::load("squeezenet1_1", WeightsKind::Trained, 0, &cpu).expect("it loads");
    for (encoder, pairs) in [
        (loaded(Tiny::EfficientNetLite, cpu_f32()), 8),
        (loaded(Tiny::SqueezeNet, cpu_f32()), 8),
        (Arc::new(full), 2),
    ] {
        let spec = encoder.encoder.spec();
        let (name, side) = (&spec.name, spec.side_px);
        let photo = picture(side);
        let field = |batch| {
            EncoderField::new(encoder.clone(), Readout::Pooled, &photo)
                .expect("it fits")
                .with_batch(batch)
        };
        let us = directions(3 * side * side, pairs);
        let profile = |batch| ratio_of_means(field(batch), &[0.1, 1.0, 10.0], &us);
        // Eight of one direction, so that a batch of 8 is full.
        let steps: Vec<Perturbation> = (1..=8)
            .map(|i| Perturbation {
                direction: us[0].clone(),
                eta_l2: f64::from(i),
            })
            .collect();
        let features = |batch| field(batch).features(&steps).expect("finite");
        let (reference, at_one) = (profile(1), features(1));
        for batch in [1, 3, 8] {
            assert_eq!(field(batch).batch(), batch);
            let (other, moved) = (profile(batch), features(batch));
            let energy = moved.iter().zip(&at_one).map(|(a, b)| (a - b).powi(2));
            let energy = energy.sum::<f64>() / steps.len() as f64;
            let floor = reference.rounding_sq;
            println!("{name} batch {batch}: |ΔΦ|² {energy:.1e}, ν² {floor:.1e}");
            assert!(energy <= floor, "{name} {batch}: {energy:e} over {floor:e}");
            for (a, b) in other.scales.iter().zip(&reference.scales) {
                // (√D ± ν)²/D − 1, and what rounding does to ‖Ju‖².
                let bound = 2.0 * (floor / b.displacement_sq).sqrt() + F32_DERIVATIVE_BOUND;
                assert!(
                    (a.r / b.r - 1.0).abs() <= bound,
                    "{name} {batch}: {a:?} {b:?}"
                );
                assert!(b.reliable && a.directions == b.directions);
            }
            assert_eq!(profile(batch), other, "one batch size, one profile");
            assert!(batch != 1 || other == reference);
        }
    }
}

#[test]
fn the_top_logits_gradient_points_uphill() {
    for tiny in BOTH {
        let photo = picture(tiny.side_px());
        let encoder = loaded(tiny, cpu_f64());
        let mut field = EncoderField::new(encoder, Readout::Logits, &photo).expect("it fits");
        let gradient = field.top_logit_gradient().expect("finite");
        let u: Arc<[f32]> = gradient
            .iter()
            .map(|g| (g / norm(&gradient)) as f32)
            .collect();
        let h = 1e-7;
        let mut top = |eta_l2| {
            let step = Perturbation {
                direction: u.clone(),
                eta_l2,
            };
            field
                .features(&[step])
                .expect("finite")
                .into_iter()
                .fold(f64::MIN, f64::max)
        };
        let slope = (top(h) - top(-h)) / (2.0 * h);
        assert!((slope / norm(&gradient) - 1.0).abs() < 1e-5, "{tiny:?}");
    }
}

#[test]
fn a_field_refuses_what_it_cannot_use() {
    let encoder = || loaded(Tiny::SqueezeNet, cpu_f32());
    let refused = |readout, photo: &Prepared| {
        EncoderField::new(encoder(), readout, photo)
            .err()
            .map(|error| error.kind)
    };
    assert_eq!(
        refused(Readout::Pooled, &picture(66)),
        Some(ErrorKind::Request)
    );
    assert_eq!(
        refused(Readout::Stage(99), &picture(67)),
        Some(ErrorKind::Request)
    );
    let mut pixels = picture(67).pixels.to_vec();
    pixels[5] = f32::NAN;
    let broken = Prepared {
        pixels: pixels.into(),
        ..picture(67)
    };
    assert_eq!(refused(Readout::Pooled, &broken), Some(ErrorKind::Numeric));
    // A step so large that f32 overflows inside the network.
    let mut field = EncoderField::new(encoder(), Readout::Pooled, &picture(67)).expect("it fits");
    let direction = directions(field.input_len(), 1).remove(0);
    let error = field
        .features(&[Perturbation {
            direction,
            eta_l2: 1e40,
        }])
        .expect_err("overflow");
    assert_eq!(error.kind, ErrorKind::Numeric);
    assert!(error.what.contains("pooled"), "{error}");
}

/// What torch found with the original f32 weights on one photograph.
#[derive(serde::Deserialize)]
struct Original {
    top5: Vec<usize>,
    logits: Vec<f64>,
    f16_logits: f64,
}

#[test]
fn the_bundled_weights_see_the_demo_photographs_as_the_originals_do() {
    let json = std::fs::read(tiny::golden_path("photos.json")).expect("it is committed");
    let originals: BTreeMap<String, BTreeMap<String, Original>> =
        serde_json::from_slice(&json).expect("it is sound");
    let cpu = ComputeDevice::cpu();
    for spec in registry::bundled() {
        let loaded = registry::load(&spec.name, WeightsKind::Trained, 0, &cpu).expect("it loads");
        let loaded = Arc::new(loaded);
        for (file, original) in &originals[&*spec.name] {
            let name = file.split('.').next().expect("a stem");
            let photo = bundled::open(name).expect("it is bundled");
            let prepared = spec
                .preprocessing
                .apply(&photo)
                .expect("it can be prepared");
            let field = EncoderField::new(loaded.clone(), Readout::Logits, &prepared);
            let mut field = field.expect("it fits");
            let direction = vec![0.0; field.input_len()].into();
            let logits = field.features(&[Perturbation {
                direction,
                eta_l2: 0.0,
            }]);
            let logits = logits.expect("finite");

            // Of the same weights in f16 torch's logits move by `f16_logits`, and f32 arithmetic adds
            // 1e-5. Another JPEG decoder and another colour engine round to other grey levels: half a
            // level RMS is η = 0.8, where this photograph's logits have moved by some per cent.
            let error = relative(&logits, &original.logits);
            let jpeg = if file.ends_with("jpg") { 0.05 } else { 0.0 };
            let bound = 1.05 * original.f16_logits + 2e-5 + jpeg;
            assert!(
                error <= bound,
                "{} {file}: {error:e} over {bound:e}",
                spec.name
            );

            let difference = logits
                .iter()
                .zip(&original.logits)
                .map(|(a, b)| (a - b).abs());
            let slack = 2.0 * difference.fold(0.0, f64::max);
            let ours = registry::top5(&logits);
            for ((name, _), &index) in ours.iter().zip(&original.top5) {
                // The same order, but for classes that torch itself sees as ties at this precision.
                let place = (0..1000)
                    .find(|&i| registry::class_name(i) == *name)
                    .expect("a class");
                let gap = (original.logits[index] - original.logits[place]).abs();
                assert!(gap <= slack, "{} {file}: {ours:?}", spec.name);
            }
            assert_eq!(
                ours[0].0,
                registry::class_name(original.top5[0]),
                "{} {file}",
                spec.name
            );
        }
    }
}

#[test]
fn probabilities_are_those_of_softmax() {
    let mut logits = vec![0.0; 1000];
    (logits[281], logits[282]) = (3.0, 2.0);
    let top = registry::top5(&logits);
    let total = 3f64.exp() + 2f64.exp() + 998.0;
    assert_eq!(top.len(), 5);
    assert_eq!(
        (top[0].0.as_str(), top[1].0.as_str()),
        ("tabby", "tiger cat")
    );
    assert!((f64::from(top[0].1) - 3f64.exp() / total).abs() < 1e-7);
}

#[test]
fn a_twin_is_the_same_network_for_the_same_seed() {
    let cpu = ComputeDevice::cpu();
    let load = |seed| registry::load("squeezenet1_1", WeightsKind::Random, seed, &cpu);
    let logits = |seed: u64| {
        let loaded = load(seed).expect("it loads");
        assert_eq!(loaded.weights_id, format!("seed {seed}"));
        let x = loaded
            .placement
            .tensor(vec![0.3; 3 * 63 * 63], [1, 3, 63, 63]);
        let value = loaded
            .encoder
            .forward(Value::plain(x), &Readout::Logits)
            .expect("logits");
        values(value.into_primal())
    };
    assert_eq!(logits(1), logits(1));
    assert_ne!(logits(1), logits(2));
}

#[test]
fn an_unknown_encoder_is_refused_with_the_nearest_name() {
    let error = registry::find("squeezenet_1.1").expect_err("there is none");
    assert_eq!(error.kind, ErrorKind::Request);
    assert!(
        error.why.contains("efficientnet_lite0, squeezenet1_1"),
        "{error}"
    );
    assert!(error.remedy.contains("“squeezenet1_1”"), "{error}");
    let error = registry::find("xyz").expect_err("there is none");
    assert!(!error.remedy.contains('“'), "nothing is near: {error}");
}
