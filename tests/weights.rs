//! Weight files: what fits is read exactly, what does not is refused whole and by name.

mod tiny;

use std::borrow::Cow;
use std::collections::HashMap;

use burn::tensor::{bf16, f16};
use etascope::encoders::registry;
use etascope::encoders::weights::{Init, Parameter, Weights};
use etascope::{Error, ErrorKind};
use safetensors::{Dtype, SafeTensors, View, serialize};
use tiny::{BOTH, Tiny};

/// A tensor to be written.
#[derive(Clone)]
struct Stored {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl View for Stored {
    fn dtype(&self) -> Dtype {
        self.dtype
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        self.bytes.as_slice().into()
    }
    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

/// The tiny EfficientNet's tensors, to be damaged.
fn tensors() -> HashMap<String, Stored> {
    let file = Tiny::EfficientNetLite.weights_file();
    let stored = SafeTensors::deserialize(&file).expect("the fixture is sound");
    let own = |(name, view): (String, safetensors::tensor::TensorView<'_>)| {
        let (dtype, shape) = (view.dtype(), view.shape().to_vec());
        (
            name,
            Stored {
                dtype,
                shape,
                bytes: view.data().to_vec(),
            },
        )
    };
    stored.tensors().into_iter().map(own).collect()
}

fn file(tensors: HashMap<String, Stored>) -> Vec<u8> {
    serialize(tensors, None).expect("it can be written")
}

/// What reading a file of the tiny EfficientNet and taking every tensor ends in.
fn refused(file: &[u8]) -> Error {
    let parameters = Tiny::EfficientNetLite.parameters();
    let taken = Weights::from_safetensors("broken.safetensors", file, &parameters).and_then(
        |mut weights| {
            parameters
                .iter()
                .try_for_each(|p| weights.take(&p.name).map(|_| ()))
        },
    );
    let error = taken.expect_err("the file is broken");
    assert_eq!(error.kind, ErrorKind::Weights, "{error}");
    assert!(error.what.contains("“broken.safetensors”"), "{error}");
    assert!(!error.remedy.is_empty());
    error
}

#[test]
fn a_truncated_file_is_called_cut_short() {
    let whole = file(tensors());
    for length in [0, 4, 7, 8, 100, whole.len() / 2, whole.len() - 1] {
        let error = refused(&whole[..length]);
        assert!(error.why.contains("cut short"), "{length} bytes: {error}");
    }
}

#[test]
fn a_file_of_another_kind_is_refused() {
    for bytes in [
        &b"PK\x03\x04 this is a zip archive, as PyTorch writes"[..],
        &[0xff; 4096],
    ] {
        refused(bytes);
    }
}

#[test]
fn hostile_headers_end_in_an_error_and_take_no_memory() {
    let header = |json: &str| {
        let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
        bytes.extend(json.as_bytes());
        bytes
    };
    // A length of 2^60, a shape that overflows, offsets beyond the file, overlapping, and backwards.
    let mut endless = (1u64 << 60).to_le_bytes().to_vec();
    endless.extend([b'{'; 64]);
    refused(&endless);
    let of = |shape: &str, offsets: &str| {
        format!(r#"{{"a":{{"dtype":"F32","shape":{shape},"data_offsets":{offsets}}}}}"#)
    };
    refused(&header(&of("[4294967296,4294967296,4294967296]", "[0,4]")));
    refused(&header(&of("[1]", "[0,4]")));
    refused(&header(&of(
        "[1]",
        "[18446744073709551612,18446744073709551615]",
    )));
    refused(&header(&of("[1]", "[4,0]")));
    refused(&header(&of("[-1]", "[0,4]")));
    refused(&header(&format!(
        "{}1{}",
        "[".repeat(4096),
        "]".repeat(4096)
    )));
}

#[test]
fn a_renamed_tensor_is_missing_with_its_nearest_candidate() {
    let mut renamed = tensors();
    let tensor = renamed
        .remove("blocks.1.0.conv_dw.weight")
        .expect("it is there");
    renamed.insert("blocks.1.0.conv_dv.weight".into(), tensor);
    let why = refused(&file(renamed)).why;
    let missing = "1 tensor missing: blocks.1.0.conv_dw.weight \
                   (the file has blocks.1.0.conv_dv.weight)";
    assert!(why.contains(missing), "{why}");
    assert!(
        why.contains("1 tensor unknown: blocks.1.0.conv_dv.weight"),
        "{why}"
    );
}

#[test]
fn all_faults_are_told_at_once_and_long_lists_are_cut() {
    let mut broken: HashMap<String, Stored> = tensors()
        .into_iter()
        .map(|(name, tensor)| (format!("{name}_ema"), tensor))
        .collect();
    let count = broken.len();
    let kept = broken.remove("classifier.bias_ema").expect("it is there");
    broken.insert(
        "classifier.bias".into(),
        Stored {
            shape: vec![2, 5],
            ..kept
        },
    );
    let why = refused(&file(broken)).why;
    let rest = count - 1;
    assert!(why.contains(&format!("{rest} tensors missing:")), "{why}");
    assert!(why.contains(&format!("{rest} tensors unknown:")), "{why}");
    assert!(why.contains(&format!("and {} more", rest - 4)), "{why}");
    assert!(why.contains("classifier.bias is 2×5, not 10"), "{why}");
}

#[test]
fn a_wrong_shape_is_told_with_both_shapes() {
    let mut reshaped = tensors();
    let tensor = reshaped.get_mut("classifier.weight").expect("it is there");
    tensor.shape = vec![64, 10];
    let why = refused(&file(reshaped)).why;
    assert!(
        why.contains("classifier.weight is 64×10, not 10×64"),
        "{why}"
    );
}

#[test]
fn a_wrong_type_is_told() {
    let mut retyped = tensors();
    let tensor = retyped.get_mut("classifier.bias").expect("it is there");
    *tensor = Stored {
        dtype: Dtype::I32,
        ..tensor.clone()
    };
    let why = refused(&file(retyped)).why;
    assert!(why.contains("classifier.bias is I32"), "{why}");
}

#[test]
fn a_value_that_is_not_finite_is_told_with_its_place() {
    for (value, word) in [
        (f32::NAN, "NaN"),
        (f32::INFINITY, "inf"),
        (f32::NEG_INFINITY, "-inf"),
    ] {
        let mut poisoned = tensors();
        let tensor = poisoned
            .get_mut("blocks.2.0.bn1.running_var")
            .expect("it is there");
        tensor.bytes[8..12].copy_from_slice(&value.to_le_bytes());
        let why = refused(&file(poisoned)).why;
        let expected = format!("value 2 of the tensor blocks.2.0.bn1.running_var is {word}");
        assert!(why.contains(&expected), "{why}");
    }
}

#[test]
fn half_precision_is_read_exactly_and_batch_counters_are_passed_over() {
    let numbers = [0.0, -1.5, 6.1e-5, 5.96e-8, 65504.0];
    let of = |dtype, bytes: Vec<u8>| Stored {
        dtype,
        shape: vec![numbers.len()],
        bytes,
    };
    let halves = numbers.map(f16::from_f64);
    let brains = numbers.map(bf16::from_f64);
    let counter = Stored {
        dtype: Dtype::I64,
        shape: vec![],
        bytes: vec![0; 8],
    };
    let tensors = HashMap::from([
        (
            "half".to_owned(),
            of(
                Dtype::F16,
                halves.iter().flat_map(|x| x.to_le_bytes()).collect(),
            ),
        ),
        (
            "brain".to_owned(),
            of(
                Dtype::BF16,
                brains.iter().flat_map(|x| x.to_le_bytes()).collect(),
            ),
        ),
        ("bn1.num_batches_tracked".to_owned(), counter),
    ]);
    let parameters = ["half", "brain"].map(|name| Parameter {
        name: name.into(),
        shape: vec![numbers.len()],
        init: Init::Constant(0.0),
        trained: true,
    });
    let file = file(tensors);
    let mut weights = Weights::from_safetensors("f", &file, &parameters).expect("it fits");
    assert_eq!(
        weights.take("half").expect("finite"),
        halves.map(f16::to_f64)
    );
    assert_eq!(
        weights.take("brain").expect("finite"),
        brains.map(bf16::to_f64)
    );
}

#[test]
fn a_file_is_known_by_its_sha256() {
    // SHA-256 of the fixture by coreutils' sha256sum.
    let parameters = Tiny::SqueezeNet.parameters();
    let file = Tiny::SqueezeNet.weights_file();
    let weights = Weights::from_safetensors("f", &file, &parameters).expect("it fits");
    assert_eq!(weights.id(), SQUEEZENET_FIXTURE_SHA256);
}

const SQUEEZENET_FIXTURE_SHA256: &str =
    "9f2184eae62f3d7534ea2e3d807daf9b4e8fb2e0b8acb72acb345b551887006c";

#[test]
fn random_values_have_the_published_distribution_and_depend_on_the_seed_alone() {
    for tiny in BOTH {
        let parameters = tiny.parameters();
        let draw = |seed: u64, parameters: &[Parameter]| -> Vec<Vec<f64>> {
            let mut weights = Weights::random(parameters, seed);
            parameters
                .iter()
                .map(|p| weights.take(&p.name).expect("drawn"))
                .collect()
        };
        let (first, again, other) = (
            draw(5, &parameters),
            draw(5, &parameters),
            draw(6, &parameters),
        );
        assert_eq!(first, again);
        for ((parameter, values), other) in parameters.iter().zip(&first).zip(&other) {
            assert_eq!(values.len(), parameter.len());
            let n = values.len() as f64;
            let second = values.iter().map(|v| v * v).sum::<f64>() / n;
            // The mean square of n draws has relative standard deviation √(2/n), less for uniform
            // ones; five of them leave one failure in two million.
            let slack = 5.0 * (2.0 / n).sqrt();
            match parameter.init {
                Init::Constant(value) => assert!(values.iter().all(|v| *v == value)),
                Init::Normal { std } => {
                    assert!(
                        (second / (std * std) - 1.0).abs() < slack,
                        "{}",
                        parameter.name
                    );
                    assert_ne!(values, other);
                }
                Init::TruncatedNormal { .. } => panic!("no bundled encoder begins so"),
                Init::Uniform { bound } => {
                    assert!(values.iter().all(|v| v.abs() <= bound * (1.0 + 1e-7)));
                    assert!((3.0 * second / (bound * bound) - 1.0).abs() < slack);
                    assert_ne!(values, other);
                }
            }
        }
    }
}

#[test]
fn parameters_are_counted_as_in_the_papers_tables() {
    // Lite0: 4.7 M (TensorFlow's table); SqueezeNet 1.1: 1,235,496 (torchvision's documentation).
    let count = |name| registry::find(name).expect("it is known").parameters;
    assert_eq!(count("efficientnet_lite0"), 4_652_008);
    assert_eq!(count("squeezenet1_1"), 1_235_496);
}
