//! The token architectures compute what their originals compute, at two input sides each: stages, pooled feature, logits,
//! Jacobian products (tests/golden/gen_tokens.py).

mod tiny;

use burn::tensor::{Device, Tensor};
use etascope::ErrorKind;
use etascope::device::{self, DeviceChoice};
use etascope::encoders::architecture::Architecture;
use etascope::encoders::convnext::ConvNeXtConfig;
use etascope::encoders::layers::Placement;
use etascope::encoders::linear::Linearised;
use etascope::encoders::position_embedding::Resampling;
use etascope::encoders::swinv2::SwinV2Config;
use etascope::encoders::value::Value;
use etascope::encoders::vit::{Pooling, Position, QkvBias, VitConfig};
use etascope::encoders::weights::{Init, Weights};
use etascope::encoders::{Encoder, Readout};
use tiny::{Fixture, dot, norm, read_golden, relative, values};

/// f32 against values computed in f64: some fifty operations of rounding at 6e-8 each, which add up like a
/// random walk.
const F32_BOUND: f64 = 1e-5;

/// A derivative multiplies the rounding of its factors as well.
const F32_DERIVATIVE_BOUND: f64 = 1e-4;

/// f64 against f64 in another order of summation.
const F64_BOUND: f64 = 1e-12;

/// Name of the fixture, architecture, input side of the weights and another one.
type Case = (&'static str, Architecture, [usize; 2]);

fn cases() -> Vec<Case> {
    let convnext = ConvNeXtConfig {
        depths: [1, 1, 2, 1],
        dims: [8, 16, 24, 32],
        classes: 10,
    };
    let vit = VitConfig {
        native_px: 32,
        patch: 8,
        dim: 32,
        depth: 3,
        heads: 4,
        classes: 10,
        exposed: vec![1, 2],
        ..VitConfig::small16()
    };
    let learned = |for_prefix, resampling| Position::Learned {
        for_prefix,
        resampling,
    };
    let average = VitConfig {
        native_px: 48,
        pooling: Pooling::AverageThenNorm,
        registers: 2,
        layer_scale: Some(1e-5),
        ..vit.clone()
    };
    let dinov2 = VitConfig {
        native_px: 56,
        classes: 0,
        position: learned(true, Resampling::Enlarged(0.1)),
        layer_scale: Some(1e-5),
        ..vit.clone()
    };
    let registers = VitConfig {
        native_px: 40,
        registers: 4,
        position: learned(false, Resampling::Antialiased),
        ..dinov2.clone()
    };
    let dinov3 = VitConfig {
        native_px: 48,
        patch: 8,
        dim: 32,
        depth: 3,
        heads: 2,
        exposed: vec![1, 2],
        ..VitConfig::dinov3_base16()
    };
    let biases = VitConfig {
        qkv_bias: QkvBias::QueryValue,
        pooling: Pooling::Average,
        ..dinov3.clone()
    };
    let swinv2 = SwinV2Config {
        dim: 8,
        depths: [2, 2, 1, 1],
        heads: [1, 2, 2, 4],
        window: 4,
        pretrained_windows: [0; 4],
        classes: 10,
    };
    let finetuned = SwinV2Config {
        window: 6,
        pretrained_windows: [3, 3, 3, 2],
        ..swinv2.clone()
    };
    vec![
        ("convnext", Architecture::ConvNeXt(convnext), [64, 72]),
        ("vit", Architecture::Vit(vit), [32, 48]),
        ("vit_average", Architecture::Vit(average), [48, 32]),
        ("dinov2", Architecture::Vit(dinov2), [56, 40]),
        ("dinov2_registers", Architecture::Vit(registers), [40, 56]),
        ("dinov3", Architecture::Vit(dinov3), [48, 64]),
        ("dinov3_biases", Architecture::Vit(biases), [48, 64]),
        ("swinv2", Architecture::SwinV2(swinv2), [64, 72]),
        (
            "swinv2_finetuned",
            Architecture::SwinV2(finetuned),
            [64, 96],
        ),
    ]
}

fn load(
    name: &str,
    architecture: &Architecture,
    side_px: usize,
    at: &Placement,
) -> Box<dyn Encoder> {
    let file = read_golden(&format!("tokens/{name}.weights.safetensors"));
    let weights = Weights::from_safetensors(name, &file, &architecture.parameters());
    let mut weights = weights.expect("the fixture holds the declared tensors and no others");
    let encoder = architecture.load(tiny::spec("tiny", architecture, side_px), &mut weights, at);
    encoder.expect("it loads")
}

fn fixture(name: &str) -> Fixture {
    Fixture::read(&format!("tokens/{name}.fixture.safetensors"))
}

fn cpu_f32() -> Placement {
    Placement::f32(&Device::flex())
}

fn cpu_f64() -> Placement {
    Placement::f64(&Device::flex())
}

/// The readouts of an encoder with their names in the fixture.
fn readouts(encoder: &dyn Encoder) -> Vec<(String, Readout)> {
    let spec = encoder.spec();
    let stages = spec.stages.iter().enumerate();
    let mut readouts: Vec<_> = stages
        .map(|(i, stage)| (format!("stage.{i}.{}", stage.name), Readout::Stage(i)))
        .collect();
    readouts.push(("pooled".to_owned(), Readout::Pooled));
    if spec.logits_len > 0 {
        readouts.push(("logits".to_owned(), Readout::Logits));
    }
    readouts
}

fn run(encoder: &dyn Encoder, x: Tensor<4>, readout: &Readout) -> Tensor<4> {
    let value = encoder.forward_normalised(Value::plain(x), readout);
    value.expect("the readout exists").into_primal()
}

fn derivative(encoder: &dyn Encoder, x: Tensor<4>, readout: &Readout) -> Linearised {
    let value = encoder.forward_normalised(Value::traced(x), readout);
    let value = value.expect("the readout exists");
    value.linearised().expect("the value is traced")
}

#[test]
fn stages_pooled_feature_and_logits_agree_with_the_original() {
    for (name, architecture, [side, _]) in cases() {
        let fixture = fixture(name);
        for (at, bound) in [(cpu_f32(), F32_BOUND), (cpu_f64(), F64_BOUND)] {
            let encoder = load(name, &architecture, side, &at);
            for (key, readout) in readouts(encoder.as_ref()) {
                let found = run(encoder.as_ref(), fixture.tensor("input", &at), &readout);
                let shape = encoder.spec().readout_shape(&readout).expect("it exists");
                assert_eq!(found.dims()[1..], shape, "{name} {key}");
                let error = relative(&values(found), fixture.get(&key));
                assert!(error <= bound, "{name} {key} at {:?}: {error:e}", at.dtype);
            }
        }
    }
}

#[test]
fn another_input_side_is_taken_as_by_the_original() {
    for (name, architecture, [_, side]) in cases() {
        let fixture = fixture(name);
        for (at, bound, derivative_bound) in [
            (cpu_f32(), F32_BOUND, F32_DERIVATIVE_BOUND),
            (cpu_f64(), F64_BOUND, F64_BOUND),
        ] {
            let encoder = load(name, &architecture, side, &at);
            let input = fixture.tensor("other.input", &at);
            for (key, readout) in readouts(encoder.as_ref()) {
                if readout == Readout::Logits {
                    continue;
                }
                let found = run(encoder.as_ref(), input.clone(), &readout);
                let shape = encoder.spec().readout_shape(&readout).expect("it exists");
                assert_eq!(found.dims()[1..], shape, "{name} {key}");
                let error = relative(&values(found), fixture.get(&format!("other.{key}")));
                assert!(error <= bound, "{name} {key} at {:?}: {error:e}", at.dtype);
            }
            let direction = fixture.tensor("other.direction", &at);
            let pooled = derivative(encoder.as_ref(), input, &Readout::Pooled);
            let found = values(pooled.jvp(direction));
            let error = relative(&found, fixture.get("other.jvp.pooled"));
            assert!(
                error <= derivative_bound,
                "{name} at {:?}: {error:e}",
                at.dtype
            );
        }
    }
}

#[test]
fn jacobian_products_agree_with_the_originals_differentiation() {
    for (name, architecture, [side, _]) in cases() {
        let fixture = fixture(name);
        for (at, bound) in [(cpu_f32(), F32_DERIVATIVE_BOUND), (cpu_f64(), F64_BOUND)] {
            let encoder = load(name, &architecture, side, &at);
            let of = |readout| derivative(encoder.as_ref(), fixture.tensor("input", &at), readout);
            let direction = fixture.tensor("direction", &at);
            let cotangent = fixture.tensor("cotangent.pooled", &at);
            let stage = format!("jvp.stage.1.{}", encoder.spec().stages[1].name);
            let pooled = of(&Readout::Pooled);
            for (key, found) in [
                (
                    stage.as_str(),
                    of(&Readout::Stage(1)).jvp(direction.clone()),
                ),
                ("jvp.pooled", pooled.jvp(direction)),
                ("vjp.pooled", pooled.vjp(cotangent)),
            ] {
                let error = relative(&values(found), fixture.get(key));
                assert!(error <= bound, "{name} {key} at {:?}: {error:e}", at.dtype);
            }
        }
    }
}

#[test]
fn forward_and_transposed_products_are_adjoint_at_every_stage() {
    for (name, architecture, [side, _]) in cases() {
        let fixture = fixture(name);
        for (at, bound) in [(cpu_f32(), F32_DERIVATIVE_BOUND), (cpu_f64(), F64_BOUND)] {
            let encoder = load(name, &architecture, side, &at);
            for (key, readout) in readouts(encoder.as_ref()) {
                let input = fixture.tensor("input", &at);
                let y = run(encoder.as_ref(), input.clone(), &readout);
                let derivative = derivative(encoder.as_ref(), input, &readout);
                // Three of each at once: products of a batch are those of its members.
                let u = spread(&fixture.tensor("direction", &at), &at);
                let v = spread(&y, &at);
                let (ju, jtv) = (derivative.jvp(u.clone()), derivative.vjp(v.clone()));
                for i in 0..3 {
                    let item = |t: &Tensor<4>| values(t.clone().narrow(0, i, 1));
                    let (a, b) = (dot(&item(&v), &item(&ju)), dot(&item(&jtv), &item(&u)));
                    let scale = norm(&item(&v)) * norm(&item(&ju));
                    let error = (a - b).abs() / scale;
                    assert!(error <= bound, "{name} {key} at {:?}: {error:e}", at.dtype);
                }
            }
        }
    }
}

/// Three different tensors made from one by shifting its last axes.
fn spread(tensor: &Tensor<4>, at: &Placement) -> Tensor<4> {
    let [_, channels, rows, cols] = tensor.dims();
    let flat = values(tensor.clone());
    let shifted = (0..3).flat_map(|i| {
        let flat = &flat;
        (0..flat.len()).map(move |p| flat[(p + 7 * i) % flat.len()] * (1.0 + i as f64))
    });
    at.tensor(shifted.collect(), [3, channels, rows, cols])
}

#[test]
fn a_batch_is_computed_item_by_item() {
    let at = cpu_f32();
    for (name, architecture, [side, _]) in cases() {
        let encoder = load(name, &architecture, side, &at);
        let batch = spread(&fixture(name).tensor("input", &at), &at);
        let together = values(run(encoder.as_ref(), batch.clone(), &Readout::Pooled));
        let alone: Vec<f64> = (0..3)
            .flat_map(|i| {
                let item = batch.clone().narrow(0, i, 1);
                values(run(encoder.as_ref(), item, &Readout::Pooled))
            })
            .collect();
        let error = relative(&together, &alone);
        assert!(error <= F32_BOUND, "{name}: {error:e}");
    }
}

/// On the software adapter that stands for a graphics adapter, whose order of summation is another. Its error
/// function is an approximation to 1.5e-7.
#[test]
fn an_adapter_computes_the_originals_features_and_products() {
    let adapters = device::list();
    let adapter = adapters.iter().find(|adapter| adapter.software);
    let adapter = adapter.expect("a software adapter: install mesa-vulkan-drivers");
    let choice = DeviceChoice::Adapter(adapter.name.clone());
    let at = Placement::f32(&device::open(&choice).expect("it opens").device);
    for (name, architecture, [side, _]) in cases() {
        let fixture = fixture(name);
        let encoder = load(name, &architecture, side, &at);
        let x = Value::traced(fixture.tensor("input", &at));
        let y = encoder.forward_normalised(x, &Readout::Pooled);
        let y = y.expect("it exists");
        let derivative = y.linearised().expect("the value is traced");
        let [u, v] = ["direction", "cotangent.pooled"].map(|name| fixture.tensor(name, &at));
        for (key, found) in [
            ("pooled", y.into_primal()),
            ("jvp.pooled", derivative.jvp(u)),
            ("vjp.pooled", derivative.vjp(v)),
        ] {
            let error = relative(&values(found), fixture.get(key));
            assert!(error <= F32_DERIVATIVE_BOUND, "{name} {key}: {error:e}");
        }
    }
}

#[test]
fn sizes_that_make_no_network_are_refused() {
    let vit = VitConfig::small16();
    let rotary = VitConfig {
        heads: 64,
        ..VitConfig::dinov3_base16()
    };
    let rotary = VitConfig { dim: 384, ..rotary };
    for (architecture, side) in [
        (
            Architecture::Vit(VitConfig {
                patch: 0,
                ..vit.clone()
            }),
            224,
        ),
        (
            Architecture::Vit(VitConfig {
                patch: 15,
                ..vit.clone()
            }),
            225,
        ),
        (
            Architecture::Vit(VitConfig {
                heads: 5,
                ..vit.clone()
            }),
            224,
        ),
        (
            Architecture::Vit(VitConfig {
                exposed: vec![12],
                ..vit.clone()
            }),
            224,
        ),
        (
            Architecture::Vit(VitConfig {
                exposed: vec![6, 3],
                ..vit.clone()
            }),
            224,
        ),
        (Architecture::Vit(rotary), 256),
        (Architecture::Vit(vit.clone()), 225),
        (
            Architecture::SwinV2(SwinV2Config {
                window: 0,
                ..SwinV2Config::tiny(8)
            }),
            256,
        ),
        (
            Architecture::SwinV2(SwinV2Config {
                heads: [3, 6, 12, 25],
                ..SwinV2Config::tiny(8)
            }),
            256,
        ),
        (Architecture::SwinV2(SwinV2Config::tiny(8)), 254),
    ] {
        let error = architecture
            .check(side)
            .expect_err("these sizes make no network");
        assert_eq!(error.kind, ErrorKind::Request);
    }
    for (_, architecture, sides) in cases() {
        for side in sides {
            architecture.check(side).expect("these make one");
        }
    }
}

#[test]
fn published_sizes_have_as_many_parameters_as_in_timm() {
    let convnext = Architecture::ConvNeXt;
    let vit = Architecture::Vit;
    let swinv2 = Architecture::SwinV2;
    // sum(p.numel() for p in timm.create_model(name).parameters())
    for (name, architecture, count) in [
        (
            "convnext_tiny",
            convnext(ConvNeXtConfig::tiny()),
            28_589_128,
        ),
        (
            "convnext_small",
            convnext(ConvNeXtConfig::small()),
            50_223_688,
        ),
        (
            "convnext_base",
            convnext(ConvNeXtConfig::base()),
            88_591_464,
        ),
        (
            "convnext_large",
            convnext(ConvNeXtConfig::large()),
            197_767_336,
        ),
        (
            "vit_small_patch16_224",
            vit(VitConfig::small16()),
            22_050_664,
        ),
        ("vit_base_patch16_224", vit(VitConfig::base16()), 86_567_656),
        (
            "vit_large_patch16_224",
            vit(VitConfig::large16()),
            304_326_632,
        ),
        (
            "vit_small_patch14_dinov2",
            vit(VitConfig::dinov2_small14(false)),
            22_056_192,
        ),
        (
            "vit_base_patch14_dinov2",
            vit(VitConfig::dinov2_base14(false)),
            86_579_712,
        ),
        (
            "vit_large_patch14_dinov2",
            vit(VitConfig::dinov2_large14(false)),
            304_367_616,
        ),
        (
            "vit_small_patch14_reg4_dinov2",
            vit(VitConfig::dinov2_small14(true)),
            22_057_344,
        ),
        (
            "vit_base_patch14_reg4_dinov2",
            vit(VitConfig::dinov2_base14(true)),
            86_582_016,
        ),
        (
            "vit_large_patch14_reg4_dinov2",
            vit(VitConfig::dinov2_large14(true)),
            304_370_688,
        ),
        (
            "vit_base_patch16_dinov3",
            vit(VitConfig::dinov3_base16()),
            85_641_216,
        ),
        (
            "swinv2_tiny_window8_256",
            swinv2(SwinV2Config::tiny(8)),
            28_347_154,
        ),
        (
            "swinv2_small_window16_256",
            swinv2(SwinV2Config::small(16)),
            49_728_418,
        ),
        (
            "swinv2_base_window12to24_192to384",
            swinv2(SwinV2Config::base_from_192(24)),
            87_918_816,
        ),
    ] {
        assert_eq!(architecture.parameter_count(), count, "{name}");
    }
}

#[test]
fn untrained_weights_follow_the_originals_distribution() {
    let architecture = Architecture::Vit(VitConfig::synclr_base16());
    let parameters: Vec<_> = architecture
        .parameters()
        .into_iter()
        .filter(|parameter| parameter.name == "blocks.0.mlp.fc1.weight")
        .collect();
    let mut weights = Weights::random(&parameters, 1);
    let drawn = weights
        .take("blocks.0.mlp.fc1.weight")
        .expect("it is declared");
    let std = norm(&drawn) / (drawn.len() as f64).sqrt();
    // Over 2.4 million values the standard deviation errs by 0.05 %.
    assert!((std / 0.02 - 1.0).abs() < 3e-3, "{std}");
    let mut cut = parameters[0].clone();
    cut.init = Init::TruncatedNormal {
        std: 1.0,
        bound: 1.0,
    };
    let drawn = Weights::random(&[cut], 1).take("blocks.0.mlp.fc1.weight");
    let drawn = drawn.expect("it is declared");
    assert!(drawn.iter().all(|value| value.abs() <= 1.0));
    // The variance of a standard normal cut off at ±1 is 1 − 2φ(1)/(2Φ(1) − 1).
    let variance = dot(&drawn, &drawn) / drawn.len() as f64;
    assert!((variance - 0.291_125).abs() < 1e-3, "{variance}");
}

#[test]
fn an_encoder_without_classes_says_so() {
    let (name, architecture, [side, _]) = cases().swap_remove(3);
    let at = cpu_f32();
    let encoder = load(name, &architecture, side, &at);
    let input = fixture(name).tensor("input", &at);
    let error = encoder.forward_normalised(Value::plain(input), &Readout::Logits);
    let error = error.expect_err("there are no logits");
    assert_eq!(error.kind, ErrorKind::Request);
    assert!(error.to_string().contains("no classifier"), "{error}");
}
