//! The convolutional encoders compute what torchvision, timm and pytorchcv compute
//! (tests/golden/gen_cnn.py): tiny networks stage by stage with their derivatives, and of the full ones
//! every tensor's name, shape and first values.

mod tiny;

use std::collections::BTreeMap;

use burn::tensor::Device;
use etascope::ErrorKind;
use etascope::device::{self, DeviceChoice};
use etascope::encoders::alexnet::AlexNetConfig;
use etascope::encoders::architecture::Architecture;
use etascope::encoders::efficientnet_lite::{Conventions, EfficientNetLiteConfig, StageConfig};
use etascope::encoders::layers::Placement;
use etascope::encoders::resnet::{Block, ResNetConfig, ResNetStage, Stem};
use etascope::encoders::squeezenet::{FireConfig, SqueezeNetConfig};
use etascope::encoders::value::Value;
use etascope::encoders::vgg::{VggConfig, VggHead};
use etascope::encoders::weights::{Init, Weights};
use etascope::encoders::wide_resnet::WideResNetConfig;
use etascope::encoders::{Encoder, Readout};
use etascope::images::sha256_hex;
use tiny::{Fixture, dot, norm, read_golden, relative, values};

/// f32 against values computed in f64: at most some twenty layers of rounding at 6e-8 each; measured 8e-7.
const F32_BOUND: f64 = 5e-6;

/// A derivative multiplies the rounding of its factors as well; measured 1e-6.
const F32_DERIVATIVE_BOUND: f64 = 1e-5;

/// f64 against f64 in another order of summation.
const F64_BOUND: f64 = 1e-12;

/// A tiny network with the fixture's weights.
struct Case {
    name: &'static str,
    architecture: Architecture,
}

fn resnet(stem: Stem, stem_channels: usize, block: Block, stages: [[usize; 2]; 4]) -> Architecture {
    Architecture::ResNet(ResNetConfig {
        stem,
        stem_channels,
        block,
        stages: stages
            .map(|[blocks, width]| ResNetStage { blocks, width })
            .to_vec(),
        classes: 10,
        zero_init_last: false,
    })
}

fn vgg(norm: bool, head: VggHead) -> Architecture {
    let groups: [&[usize]; 5] = [&[3, 2], &[3, 4], &[8, 8, 8], &[8, 12, 8], &[8, 8, 12]];
    Architecture::Vgg(VggConfig {
        groups: groups.map(<[usize]>::to_vec).to_vec(),
        norm,
        head,
        classes: 10,
    })
}

/// One of the published networks with an eighth of the channels.
fn squeezenet(full: SqueezeNetConfig) -> Architecture {
    let eighth = |fire: FireConfig| FireConfig {
        squeeze: fire.squeeze / 8,
        expand: fire.expand / 8,
    };
    Architecture::SqueezeNet(SqueezeNetConfig {
        stem: full.stem / 8,
        fires: full.fires.map(eighth),
        classes: 10,
        ..full
    })
}

fn lite(conventions: Conventions) -> Architecture {
    let stage = |blocks, kernel, stride, expansion, channels| StageConfig {
        blocks,
        kernel,
        stride,
        expansion,
        channels,
    };
    Architecture::EfficientNetLite(EfficientNetLiteConfig {
        stem: 4,
        stages: vec![
            stage(1, 3, 1, 1, 4),
            stage(2, 3, 2, 6, 4),
            stage(1, 5, 2, 6, 8),
            stage(2, 5, 1, 6, 8),
        ],
        head: 16,
        classes: 10,
        conventions,
    })
}

fn cases() -> Vec<Case> {
    let bottleneck = |widening| Block::Bottleneck { widening };
    let hidden = |grid| VggHead::Hidden { grid, width: 16 };
    let case = |name, architecture| Case { name, architecture };
    vec![
        case(
            "basic",
            resnet(
                Stem::ImageNet,
                6,
                Block::Basic,
                [[2, 6], [1, 8], [1, 12], [1, 16]],
            ),
        ),
        case(
            "bottleneck",
            resnet(
                Stem::ImageNet,
                6,
                bottleneck(1),
                [[2, 3], [1, 4], [1, 5], [1, 6]],
            ),
        ),
        case(
            "wide_bottleneck",
            resnet(
                Stem::Cifar,
                4,
                bottleneck(2),
                [[1, 2], [1, 2], [1, 3], [2, 4]],
            ),
        ),
        case(
            "timm_resnet",
            resnet(
                Stem::ImageNet,
                64,
                bottleneck(1),
                [[1, 4], [1, 4], [1, 6], [1, 8]],
            ),
        ),
        case("vgg", vgg(false, hidden(3))),
        case("vgg_bn", vgg(true, hidden(2))),
        case("vgg_cifar", vgg(true, VggHead::Mean)),
        case(
            "wide_resnet",
            Architecture::WideResNet(WideResNetConfig {
                stem: 4,
                widths: vec![4, 8, 12],
                blocks: 2,
                classes: 10,
            }),
        ),
        case(
            "alexnet",
            Architecture::AlexNet(AlexNetConfig {
                channels: [8, 12, 12, 8, 8],
                grid: 2,
                hidden: 16,
                classes: 10,
            }),
        ),
        case("squeezenet1_0", squeezenet(SqueezeNetConfig::v1_0())),
        case("squeezenet1_1", squeezenet(SqueezeNetConfig::v1_1())),
        case("lite_same", lite(Conventions::TensorFlow)),
        case("lite_symmetric", lite(Conventions::PyTorch)),
    ]
}

impl Case {
    fn fixture(&self) -> Fixture {
        Fixture::read(&format!("cnn/{}.fixture.safetensors", self.name))
    }

    fn load(&self, at: &Placement) -> Box<dyn Encoder> {
        let file = read_golden(&format!("cnn/{}.weights.safetensors", self.name));
        let parameters = self.architecture.parameters();
        let weights = Weights::from_safetensors(self.name, &file, &parameters);
        let mut weights = weights.expect("the fixture's weights fit");
        let side_px = self.fixture().shape("input")[2];
        self.architecture
            .load(
                tiny::spec(self.name, &self.architecture, side_px),
                &mut weights,
                at,
            )
            .expect("it loads")
    }
}

fn in_f32() -> Placement {
    Placement::f32(&Device::flex())
}

fn in_f64() -> Placement {
    Placement::f64(&Device::flex())
}

#[test]
fn every_stage_pooled_feature_and_logits_agree_with_the_original() {
    for case in cases() {
        let fixture = case.fixture();
        for (at, bound) in [(in_f32(), F32_BOUND), (in_f64(), F64_BOUND)] {
            let encoder = case.load(&at);
            let specs = &encoder.spec().stages;
            let names = fixture.stages();
            assert_eq!(names.len(), specs.len(), "{}", case.name);
            // The fixture holds stages in f32.
            let stage_bound = bound.max(1e-7);
            let stages = names.iter().zip(specs).enumerate();
            let stages = stages.map(|(i, (name, spec))| {
                assert_eq!(*name, format!("stage.{i}.{}", spec.name));
                assert_eq!(fixture.shape(name)[1..], spec.shape, "{} {name}", case.name);
                (*name, Readout::Stage(i), stage_bound)
            });
            let vectors = [
                ("f64.pooled", Readout::Pooled, bound),
                ("f64.logits", Readout::Logits, bound),
            ];
            for (name, readout, bound) in stages.chain(vectors) {
                let x = Value::plain(fixture.tensor("input", &at));
                let y = encoder.forward_normalised(x, &readout).expect("it exists");
                let y = y.into_primal();
                let expected = encoder.spec().readout_shape(&readout).expect("it exists");
                assert_eq!(y.dims()[1..], expected, "{} {name}", case.name);
                let error = relative(&values(y), fixture.get(name));
                println!("{} {name} {:?}: {error:.1e}", case.name, at.dtype);
                assert!(error <= bound, "{} {name}: {error:e}", case.name);
            }
        }
    }
}

#[test]
fn jacobian_products_agree_with_the_originals_differentiation() {
    for case in cases() {
        let fixture = case.fixture();
        for (at, bound) in [(in_f32(), F32_DERIVATIVE_BOUND), (in_f64(), F64_BOUND)] {
            let encoder = case.load(&at);
            let derivative = |readout: &Readout| {
                let x = Value::traced(fixture.tensor("input", &at));
                let y = encoder.forward_normalised(x, readout).expect("it exists");
                y.linearised().expect("the value is traced")
            };
            let (pooled, logits) = (derivative(&Readout::Pooled), derivative(&Readout::Logits));
            let u = fixture.tensor("direction", &at);
            for (name, found) in [
                ("f64.jvp.pooled", pooled.jvp(u.clone())),
                ("f64.jvp.logits", logits.jvp(u)),
                (
                    "f64.vjp.pooled",
                    pooled.vjp(fixture.tensor("cotangent.pooled", &at)),
                ),
            ] {
                let error = relative(&values(found), fixture.get(name));
                println!("{} {name} {:?}: {error:.1e}", case.name, at.dtype);
                assert!(error <= bound, "{} {name}: {error:e}", case.name);
            }
        }
    }
}

#[test]
fn products_of_a_batch_are_adjoint_at_every_stage() {
    for case in cases() {
        let (fixture, at) = (case.fixture(), in_f64());
        let encoder = case.load(&at);
        let stages = (0..encoder.spec().stages.len()).map(Readout::Stage);
        for readout in stages.chain([Readout::Pooled, Readout::Logits]) {
            let x = Value::traced(fixture.tensor("input", &at));
            let y = encoder.forward_normalised(x, &readout).expect("it exists");
            let derivative = y.linearised().expect("the value is traced");
            let y = y.into_primal();
            let u = fixture.tensor("direction", &at);
            // Two of each, neither a multiple of the other.
            let u = [u.clone(), u.flip([3])];
            let v = [y.clone() + 1.0, y * 2.0];
            let ju = derivative.jvp(burn::tensor::Tensor::cat(u.to_vec(), 0));
            let jtv = derivative.vjp(burn::tensor::Tensor::cat(v.to_vec(), 0));
            for i in 0..2 {
                let [u, v] = [&u[i], &v[i]].map(|t| values(t.clone()));
                let [ju, jtv] = [&ju, &jtv].map(|t| values(t.clone().narrow(0, i, 1)));
                let (a, b) = (dot(&v, &ju), dot(&jtv, &u));
                let scale = norm(&v) * norm(&ju);
                assert!(
                    (a - b).abs() <= F64_BOUND * scale,
                    "{} {readout:?}: {a} and {b}",
                    case.name
                );
            }
        }
    }
}

/// On the software adapter that stands for a graphics adapter, whose order of summation is another.
#[test]
fn an_adapter_computes_the_originals_features_and_products() {
    let adapters = device::list();
    let adapter = adapters.iter().find(|adapter| adapter.software);
    let adapter = adapter.expect("a software adapter: install mesa-vulkan-drivers");
    let choice = DeviceChoice::Adapter(adapter.name.clone());
    let at = Placement::f32(&device::open(&choice).expect("it opens").device);
    for case in cases() {
        let fixture = case.fixture();
        let x = Value::traced(fixture.tensor("input", &at));
        let y = case.load(&at).forward_normalised(x, &Readout::Pooled);
        let y = y.expect("it exists");
        let derivative = y.linearised().expect("the value is traced");
        let [u, v] = ["direction", "cotangent.pooled"].map(|name| fixture.tensor(name, &at));
        for (name, found) in [
            ("f64.pooled", y.into_primal()),
            ("f64.jvp.pooled", derivative.jvp(u)),
            ("f64.vjp.pooled", derivative.vjp(v)),
        ] {
            let error = relative(&values(found), fixture.get(name));
            println!("{} {name} on the adapter: {error:.1e}", case.name);
            assert!(
                error <= F32_DERIVATIVE_BOUND,
                "{} {name}: {error:e}",
                case.name
            );
        }
    }
}

/// What the original library says of a network at full size.
#[derive(serde::Deserialize)]
struct Original {
    tensors: String,
    parameters: usize,
    smallest_side: usize,
    stages: BTreeMap<usize, Vec<(String, usize, usize, usize)>>,
    /// Root mean square and largest absolute value of each tensor after initialisation.
    #[serde(default)]
    initial: BTreeMap<String, [f64; 2]>,
}

fn originals() -> BTreeMap<String, Original> {
    serde_json::from_slice(&read_golden("cnn/architectures.json")).expect("it is sound")
}

fn published(name: &str) -> Architecture {
    Architecture::published(name).unwrap_or_else(|| panic!("{name} is known"))
}

#[test]
fn published_networks_have_the_originals_tensors_and_stages() {
    let originals = originals();
    assert_eq!(originals.len(), 25);
    for (name, original) in originals {
        let architecture = published(&name);
        let mut lines: Vec<String> = architecture
            .parameters()
            .iter()
            .map(|parameter| {
                let shape: Vec<String> = parameter.shape.iter().map(usize::to_string).collect();
                format!("{} {}\n", parameter.name, shape.join("×"))
            })
            .collect();
        lines.sort_unstable();
        let lines = lines.concat();
        assert_eq!(
            sha256_hex(lines.as_bytes()),
            original.tensors,
            "{name}\n{lines}"
        );
        assert_eq!(
            architecture.parameter_count(),
            original.parameters,
            "{name}"
        );
        assert_eq!(
            architecture.smallest_side(),
            original.smallest_side,
            "{name}"
        );
        for (side_px, stages) in original.stages {
            let found: Vec<(String, usize, usize, usize)> = architecture
                .stage_specs(side_px)
                .into_iter()
                .map(|stage| {
                    let [channels, rows, cols] = stage.shape;
                    (stage.name, channels, rows, cols)
                })
                .collect();
            assert_eq!(found, stages, "{name} at {side_px}");
        }
    }
    assert_eq!(Architecture::published("resnet19"), None);
    assert_eq!(Architecture::published("efficientnet_lite5"), None);
}

#[test]
fn untrained_networks_begin_as_the_originals_do() {
    let mut compared = 0;
    for (name, original) in originals() {
        if original.initial.is_empty() {
            continue;
        }
        for parameter in published(&name).parameters() {
            let [rms, largest] = original.initial[&parameter.name];
            // The root mean square of n normal draws has relative standard deviation 1/√(2n), of uniform
            // ones less; five of them, and the fixture's four digits.
            let slack = 5.0 / (2.0 * parameter.len() as f64).sqrt() + 1e-3;
            let what = format!("{name} {}: {rms} {largest}", parameter.name);
            match parameter.init {
                Init::Constant(value) => assert_eq!([rms, largest], [value; 2], "{what}"),
                Init::Normal { std } => {
                    assert!((rms / std - 1.0).abs() < slack, "{what}");
                    // A uniform distribution ends at 1.73 standard deviations.
                    assert!(largest > 2.0 * std, "{what}");
                }
                Init::TruncatedNormal { .. } => panic!("{what}: none of these begins so"),
                Init::Uniform { bound } => {
                    assert!((3f64.sqrt() * rms / bound - 1.0).abs() < slack, "{what}");
                    assert!(largest <= 1.001 * bound, "{what}");
                }
            }
            compared += 1;
        }
    }
    assert!(compared > 400, "{compared}");
}

#[test]
fn a_block_of_timms_begins_as_the_identity() {
    let timm = ResNetConfig {
        zero_init_last: true,
        ..ResNetConfig::resnet50()
    };
    let zero: Vec<String> = timm
        .parameters()
        .into_iter()
        .filter(|parameter| {
            parameter.name.ends_with("weight") && parameter.init == Init::Constant(0.0)
        })
        .map(|parameter| parameter.name)
        .collect();
    assert_eq!(zero.len(), 3 + 4 + 6 + 3);
    assert!(zero.iter().all(|name| name.ends_with(".bn3.weight")));
}

#[test]
fn every_input_from_the_smallest_on_gives_features_of_one_length() {
    for case in cases() {
        let (at, smallest) = (in_f32(), case.architecture.smallest_side());
        let encoder = case.load(&at);
        for side in [smallest, smallest + 1, smallest + 6] {
            let len = 3 * side * side;
            let pixels = (0..len).map(|p| (p as f64 * 0.7).sin()).collect();
            let x = Value::traced(at.tensor(pixels, [1, 3, side, side]));
            for (i, stage) in case.architecture.stage_specs(side).iter().enumerate() {
                let y = encoder.forward_normalised(x.clone(), &Readout::Stage(i));
                let dims = y.expect("it exists").primal().dims();
                assert_eq!(
                    dims[1..],
                    stage.shape,
                    "{} {side}: {}",
                    case.name,
                    stage.name
                );
            }
            let y = encoder.forward_normalised(x, &Readout::Pooled);
            let dims = y.expect("it exists").primal().dims();
            assert_eq!(dims, [1, case.architecture.pooled_len(), 1, 1]);
        }
    }
}

#[test]
fn an_architecture_is_plain_data() {
    for name in originals().keys() {
        let architecture = published(name);
        let json = serde_json::to_string(&architecture).expect("it can be written");
        let read: Architecture = serde_json::from_str(&json).expect("it can be read");
        assert_eq!(read, architecture, "{json}");
        let text = toml::to_string(&architecture).expect("it can be written");
        let read: Architecture = toml::from_str(&text).expect("it can be read");
        assert_eq!(read, architecture, "{text}");
    }
}

#[test]
fn sizes_that_make_no_network_are_refused() {
    let refused = |architecture: &Architecture, side| {
        let Err(error) = architecture.check(side) else {
            panic!("{side} pixels: {architecture:?}");
        };
        assert_eq!(error.kind, ErrorKind::Request);
        error.to_string()
    };
    for (name, original) in originals() {
        let architecture = published(&name);
        architecture.check(original.smallest_side).expect("it fits");
        let message = refused(&architecture, original.smallest_side - 1);
        assert!(
            message.contains(&original.smallest_side.to_string()),
            "{message}"
        );
    }
    let without = |change: &dyn Fn(&mut ResNetConfig)| {
        let mut config = ResNetConfig::resnet18();
        change(&mut config);
        refused(&Architecture::ResNet(config), 224)
    };
    assert!(without(&|config| config.stem_channels = 0).contains("conv1.weight"));
    assert!(without(&|config| config.stages[2].width = 0).contains("layer3.0.conv1.weight"));
    for (stride, kernel) in [(0, 3), (1, 4)] {
        let mut config = EfficientNetLiteConfig::lite0();
        (config.stages[3].stride, config.stages[3].kernel) = (stride, kernel);
        assert!(refused(&Architecture::EfficientNetLite(config), 224).contains("stride"));
    }
}

#[test]
fn a_wide_residual_network_has_a_depth_of_the_papers() {
    let wrn = |depth, factor| WideResNetConfig::wrn(depth, factor, 10);
    assert_eq!(
        wrn(28, 10).expect("it exists"),
        WideResNetConfig::wrn28_10()
    );
    // The paper's table 4, in millions.
    for (depth, factor, millions) in [(40, 4, 8.9), (16, 8, 11.0), (22, 8, 17.2), (28, 10, 36.5)] {
        let network = Architecture::WideResNet(wrn(depth, factor).expect("it exists"));
        let found = network.parameter_count() as f64 / 1e6;
        assert!(
            (found - millions).abs() < 0.06,
            "WRN-{depth}-{factor}: {found}"
        );
    }
    for (depth, factor) in [(27, 10), (4, 1), (28, 0)] {
        let error = wrn(depth, factor).expect_err("there is none");
        assert_eq!(error.kind, ErrorKind::Request);
    }
}
