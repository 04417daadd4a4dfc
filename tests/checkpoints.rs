//! Checkpoints in every form that researchers keep: read exactly, named by whatever library, proposed
//! with evidence; and whatever is damaged or hostile ends in a clear error.
//!
//! The files are PyTorch's own (tests/golden/checkpoints/gen_checkpoints.py).

mod tiny;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::{bf16, f16};
use etascope::encoders::architecture::Architecture;
use etascope::encoders::renaming::Renaming;
use etascope::encoders::squeezenet::{FireConfig, SqueezeNetConfig};
use etascope::encoders::vit::{QkvBias, VitConfig};
use etascope::encoders::weights::checkpoint::Checkpoint;
use etascope::encoders::weights::remap::Naming;
use etascope::encoders::weights::verify::{PassedOver, Report};
use etascope::encoders::weights::{Weights, infer, names, remap};
use etascope::encoders::{convnext, resnet, swinv2, vgg, vit};
use etascope::{Error, ErrorKind, Result};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors, serialize};

/// The network of the fixtures.
fn squeezenet() -> Architecture {
    let fire = FireConfig {
        squeeze: 1,
        expand: 2,
    };
    Architecture::SqueezeNet(SqueezeNetConfig {
        stem: 4,
        fires: [fire; 8],
        classes: 5,
        ..SqueezeNetConfig::v1_1()
    })
}

fn fixture(name: &str) -> PathBuf {
    tiny::golden_path("checkpoints").join(name)
}

type Tensors = BTreeMap<String, Vec<f64>>;

/// The fixture's tensors by declared name, as safetensors wrote them.
fn expected() -> Tensors {
    let bytes = fs::read(fixture("expected.safetensors")).expect("it is committed");
    let file = SafeTensors::deserialize(&bytes).expect("it is sound");
    let values = |view: TensorView<'_>| {
        let (quads, _) = view.data().as_chunks::<4>();
        quads
            .iter()
            .map(|b| f64::from(f32::from_le_bytes(*b)))
            .collect()
    };
    file.tensors()
        .into_iter()
        .map(|(name, view)| (name, values(view)))
        .collect()
}

/// All tensors of an architecture out of a file.
fn load(
    path: &Path,
    architecture: &Architecture,
    prefix: Option<&str>,
) -> Result<(Tensors, Report)> {
    let checkpoint = Checkpoint::open(path)?;
    let (architecture, fit) = infer::fit(&checkpoint, architecture, prefix)?;
    let parameters = architecture.parameters();
    let namings = names::of(&architecture);
    let mut weights = Weights::from_checkpoint(&checkpoint, &parameters, &namings, prefix)?;
    let tensors = parameters
        .iter()
        .map(|parameter| Ok((parameter.name.clone(), weights.take(&parameter.name)?)))
        .collect::<Result<_>>()?;
    Ok((tensors, fit.report))
}

fn refused(path: &Path) -> Error {
    let error = load(path, &squeezenet(), None).expect_err("the file is no good");
    assert_eq!(error.kind, ErrorKind::Weights, "{error}");
    assert!(!error.why.is_empty() && !error.remedy.is_empty(), "{error}");
    error
}

/// What reading these bytes as a file of this name ends in.
fn refused_bytes(name: &str, bytes: &[u8]) -> Error {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("it can be written");
    refused(&path)
}

// ---- What PyTorch writes ----------------------------------------------------------------------

#[test]
fn every_form_of_file_gives_the_same_tensors() {
    let expected = expected();
    let exact = |value: f64| value;
    let half = |value: f64| f16::from_f64(value).to_f64();
    // torch rounds an f32 to bf16, to nearest even, as `half` does.
    let brain = |value: f64| f64::from(bf16::from_f32(value as f32).to_f32());
    type Rounding = fn(f64) -> f64;
    let files: [(&str, &str, Rounding); 15] = [
        ("expected.safetensors", "", exact),
        ("plain.pth", "", exact),
        ("legacy.pth", "", exact),
        ("protocol4.pth", "", exact),
        ("half.pth", "", half),
        ("brain.pth", "", brain),
        ("double.pth", "", exact),
        ("strided.pth", "", exact),
        ("strided_legacy.pth", "", exact),
        ("parameters.pth", "", exact),
        ("compiled.pth", "model._orig_mod.", exact),
        ("lightning.ckpt", "state_dict.backbone.", exact),
        ("robustness.ckpt", "model.module.model.", exact),
        ("whole_model.pth", "", exact),
        ("counters.pth", "", exact),
    ];
    for (file, prefix, rounded) in files {
        let (tensors, report) =
            load(&fixture(file), &squeezenet(), None).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert_eq!(report.prefix, prefix, "{file}");
        for (name, values) in &expected {
            let values: Vec<f64> = values.iter().copied().map(rounded).collect();
            assert_eq!(tensors[name], values, "{file}: {name}");
        }
    }
}

#[test]
fn shards_are_read_through_their_index_or_their_folder() {
    for place in ["sharded", "sharded/model.safetensors.index.json"] {
        let (tensors, report) = load(&fixture(place), &squeezenet(), None).expect("it fits");
        assert_eq!(tensors, expected(), "{place}");
        assert!(report.format.contains("2 files"), "{}", report.format);
    }
    // One shard alone lacks the other's tensors.
    let error = refused(&fixture("sharded/model-00001-of-00002.safetensors"));
    assert!(error.why.contains("tensors missing"), "{error}");
}

#[test]
fn an_attacker_that_carries_the_same_network_is_passed_over_and_told() {
    let (_, report) = load(&fixture("robustness.ckpt"), &squeezenet(), None).expect("it fits");
    assert_eq!(report.copies, ["model.module.attacker.model."]);
    let outside = |prefix: &str| {
        let what = PassedOver::Outside(prefix.to_owned());
        report
            .passed_over
            .iter()
            .find(|(known, _)| *known == what)
            .map(|(_, count)| *count)
    };
    assert_eq!(outside("model.module.attacker."), Some(expected().len()));
    assert_eq!(outside("model.module.normalizer."), Some(2));
}

#[test]
fn two_copies_that_differ_are_never_chosen_between_silently() {
    let error = refused(&fixture("dino.pth"));
    for prefix in ["“teacher.backbone.”", "“student.module.backbone.”", "#"] {
        assert!(error.to_string().contains(prefix), "no {prefix} in {error}");
    }
    let expected = expected();
    for (prefix, shift) in [
        ("teacher.backbone.", 0.0),
        ("student.module.backbone.", 1.0),
    ] {
        let (tensors, report) =
            load(&fixture("dino.pth"), &squeezenet(), Some(prefix)).expect("it fits");
        assert_eq!(report.prefix, prefix);
        for (name, values) in &expected {
            let shifted = values.iter().map(|value| f64::from((value + shift) as f32));
            assert_eq!(tensors[name], shifted.collect::<Vec<_>>(), "{name}");
        }
    }
    let error = load(&fixture("dino.pth"), &squeezenet(), Some("nowhere.")).expect_err("not there");
    assert!(error.why.contains("tensors missing"), "{error}");
}

#[test]
fn counters_and_training_tokens_are_passed_over_and_other_tensors_are_not() {
    let (_, report) = load(&fixture("counters.pth"), &squeezenet(), None).expect("it fits");
    let of = |what: PassedOver| {
        report
            .passed_over
            .iter()
            .find(|(known, _)| *known == what)
            .map(|(_, count)| *count)
    };
    assert_eq!(
        (of(PassedOver::Integers), of(PassedOver::Unused)),
        (Some(1), Some(1))
    );
}

#[test]
fn a_program_of_torchscript_is_called_one() {
    let error = refused(&fixture("script.pt"));
    assert!(error.why.contains("TorchScript"), "{error}");
    assert!(error.remedy.contains("state_dict"), "{error}");
}

// ---- Names ------------------------------------------------------------------------------------

#[test]
fn the_names_of_each_library_lead_to_the_tensors_that_give_the_same_features() {
    type Place = (String, Option<usize>, Option<usize>);
    let json = fs::read(fixture("names.json")).expect("it is committed");
    let tables: BTreeMap<String, BTreeMap<String, BTreeMap<String, Vec<Place>>>> =
        serde_json::from_slice(&json).expect("it is sound");
    type Renamer = fn(&str) -> Option<Renaming>;
    let keys: [(&str, &str, Renamer); 14] = [
        ("resnet", "transformers", resnet::keys::from_transformers),
        ("vgg", "timm", vgg::keys::from_timm),
        ("convnext", "torchvision", convnext::keys::from_torchvision),
        (
            "convnext",
            "transformers",
            convnext::keys::from_transformers,
        ),
        ("convnext", "authors", convnext::keys::from_original),
        ("vit", "torchvision", vit::keys::from_torchvision),
        ("vit", "transformers", vit::keys::from_transformers),
        ("vit", "transformers 5", vit::keys::from_transformers),
        ("dinov2", "transformers", vit::keys::from_transformers),
        ("dinov2", "transformers 5", vit::keys::from_transformers),
        (
            "dinov3",
            "transformers",
            vit::keys::from_transformers_dinov3,
        ),
        (
            "dinov3",
            "transformers 5",
            vit::keys::from_transformers_dinov3,
        ),
        ("swinv2", "torchvision", swinv2::keys::from_torchvision),
        ("swinv2", "transformers", swinv2::keys::from_transformers),
    ];
    assert_eq!(
        tables.values().map(BTreeMap::len).sum::<usize>(),
        keys.len()
    );
    for (family, library, renamed) in keys {
        for (name, places) in &tables[family][library] {
            let found: Vec<Place> = match renamed(name) {
                None => panic!("{library}, {family}: {name} is not known"),
                Some(Renaming::Whole(target)) => vec![(target, None, None)],
                Some(Renaming::Third(target, third)) => vec![(target, Some(third), None)],
                Some(Renaming::QueryAndValue(query, value)) => {
                    vec![(query, None, Some(0)), (value, None, Some(2))]
                }
                Some(Renaming::Unused) => vec![],
                Some(Renaming::ClassAndPatches(..)) => panic!("{name} needs an architecture"),
            };
            assert_eq!(found, *places, "{library}, {family}: {name}");
        }
    }
}

/// A safetensors file of these tensors in f32.
fn file_of(tensors: &BTreeMap<String, (Vec<usize>, Vec<f64>)>) -> Vec<u8> {
    let bytes: BTreeMap<&String, (&Vec<usize>, Vec<u8>)> = tensors
        .iter()
        .map(|(name, (shape, values))| {
            (
                name,
                (
                    shape,
                    values
                        .iter()
                        .flat_map(|v| (*v as f32).to_le_bytes())
                        .collect(),
                ),
            )
        })
        .collect();
    let views = bytes.iter().map(|(name, (shape, bytes))| {
        let view = TensorView::new(Dtype::F32, (*shape).clone(), bytes).expect("a tensor");
        (name.as_str(), view)
    });
    serialize(views, None).expect("it can be written")
}

fn small_dinov3(qkv_bias: QkvBias) -> Architecture {
    Architecture::Vit(VitConfig {
        dim: 8,
        depth: 2,
        heads: 2,
        qkv_bias,
        ..VitConfig::dinov3_base16()
    })
}

/// A DINOv3 in the names of its authors, whose biases of queries and values are `bias`.
fn authors_dinov3(bias: f64) -> (Vec<u8>, Tensors) {
    let architecture = small_dinov3(QkvBias::QueryValue);
    let parameters = architecture.parameters();
    let mut drawn = Weights::random(&parameters, 1);
    let mut theirs = BTreeMap::new();
    let mut ours = Tensors::new();
    for parameter in &parameters {
        let mut values = drawn.take(&parameter.name).expect("drawn");
        let name = &parameter.name;
        if name.ends_with("q_bias") || name.ends_with("v_bias") {
            values.fill(bias);
            if name.ends_with("q_bias") {
                let joined = [vec![bias; 8], vec![0.7; 8], vec![bias; 8]].concat();
                theirs.insert(name.replace("q_bias", "qkv.bias"), (vec![24], joined));
            }
        } else {
            let theirs_name = name
                .replace("reg_token", "storage_tokens")
                .replace("gamma_1", "ls1.gamma")
                .replace("gamma_2", "ls2.gamma");
            theirs.insert(theirs_name, (parameter.shape.clone(), values.clone()));
        }
        ours.insert(name.clone(), values);
    }
    theirs.insert("mask_token".to_owned(), (vec![1, 8], vec![0.5; 8]));
    theirs.insert("rope_embed.periods".to_owned(), (vec![2], vec![1.0; 2]));
    (file_of(&theirs), ours)
}

#[test]
fn thirds_of_a_tensor_are_taken_apart_and_put_together() {
    let (file, ours) = authors_dinov3(0.25);
    let checkpoint = Checkpoint::from_safetensors("dinov3", &file).expect("it is sound");
    let architecture = small_dinov3(QkvBias::QueryValue);
    let parameters = architecture.parameters();
    let mut weights =
        Weights::from_checkpoint(&checkpoint, &parameters, &names::of(&architecture), None)
            .expect("it fits");
    for (name, values) in &ours {
        assert_eq!(weights.take(name).expect("it is there"), *values, "{name}");
    }

    // Queries, keys and values apart, as transformers keeps them.
    let mut apart = BTreeMap::new();
    for parameter in &parameters {
        let (name, values) = (&parameter.name, &ours[&parameter.name]);
        let block = name
            .strip_prefix("blocks.")
            .map(|rest| format!("layer.{rest}"));
        let shape = parameter.shape.clone();
        if name.ends_with("attn.qkv.weight") {
            for (i, part) in ["q_proj", "k_proj", "v_proj"].iter().enumerate() {
                let name = block
                    .as_ref()
                    .expect("in a block")
                    .replace("attn.qkv", &format!("attention.{part}"));
                apart.insert(name, (vec![8, 8], values[64 * i..64 * (i + 1)].to_vec()));
            }
            continue;
        }
        let renamed = match (name.as_str(), block) {
            ("cls_token" | "reg_token", _) => {
                format!(
                    "embeddings.{}",
                    name.replace("reg_token", "register_tokens")
                )
            }
            (_, Some(block)) => [
                ("attn.q_bias", "attention.q_proj.bias"),
                ("attn.v_bias", "attention.v_proj.bias"),
                ("attn.proj", "attention.o_proj"),
                ("gamma_1", "layer_scale1.lambda1"),
                ("gamma_2", "layer_scale2.lambda1"),
                ("mlp.fc1", "mlp.up_proj"),
                ("mlp.fc2", "mlp.down_proj"),
            ]
            .iter()
            .fold(block, |name, (ours, theirs)| name.replace(ours, theirs)),
            (_, None) => name.replace("patch_embed.proj", "embeddings.patch_embeddings"),
        };
        apart.insert(renamed, (shape, values.clone()));
    }
    let file = file_of(&apart);
    let checkpoint = Checkpoint::from_safetensors("hf", &file).expect("it is sound");
    let mut weights =
        Weights::from_checkpoint(&checkpoint, &parameters, &names::of(&architecture), None)
            .expect("it fits");
    for (name, values) in &ours {
        assert_eq!(weights.take(name).expect("it is there"), *values, "{name}");
    }
}

#[test]
fn biases_of_zeros_are_passed_over_where_the_network_has_none_and_others_are_not() {
    let architecture = small_dinov3(QkvBias::None);
    let report = |bias: f64| {
        let (file, _) = authors_dinov3(bias);
        let checkpoint = Checkpoint::from_safetensors("dinov3", &file).expect("it is sound");
        infer::fit(&checkpoint, &architecture, None)
            .expect("one copy")
            .1
            .report
    };
    let zeros = report(0.0);
    assert!(zeros.is_complete(), "{}", zeros.faults());
    assert!(
        zeros.passed_over.contains(&(PassedOver::ZeroBias, 2)),
        "{:?}",
        zeros.passed_over
    );
    let others = report(0.25);
    assert_eq!(
        others.unexpected,
        ["blocks.0.attn.qkv.bias", "blocks.1.attn.qkv.bias"]
    );
}

#[test]
fn a_scale_of_another_form_fits_and_a_transposed_matrix_does_not() {
    let parameters = squeezenet().parameters();
    let mut tensors: BTreeMap<String, (Vec<usize>, Vec<f64>)> = parameters
        .iter()
        .map(|p| (p.name.clone(), (p.shape.clone(), vec![0.5; p.len()])))
        .collect();
    // 4 biases as 4×1×1 are the same values; 4×3×3×3 as 3×4×3×3 are not.
    tensors.get_mut("features.0.bias").expect("it is there").0 = vec![4, 1, 1];
    let fit = |tensors: &BTreeMap<_, _>| {
        let file = file_of(tensors);
        let checkpoint = Checkpoint::from_safetensors("f", &file).expect("it is sound");
        remap::fit(&checkpoint, &parameters, &[Naming::declared()], None)
            .expect("one copy")
            .report
    };
    assert!(fit(&tensors).is_complete());
    tensors.get_mut("features.0.weight").expect("it is there").0 = vec![3, 4, 3, 3];
    let report = fit(&tensors);
    assert_eq!(report.reshaped.len(), 1);
    assert_eq!(
        report.faults(),
        "1 tensor of another shape: features.0.weight is 3×4×3×3, not 4×3×3×3"
    );
}

// ---- Proposals --------------------------------------------------------------------------------

#[test]
fn an_architecture_is_proposed_with_its_evidence_and_several_are_listed() {
    let (wide, other) = (
        squeezenet(),
        Architecture::SqueezeNet(SqueezeNetConfig::v1_1()),
    );
    let checkpoint = Checkpoint::open(&fixture("lightning.ckpt")).expect("it opens");
    let known = [("wide", &wide), ("v1_1", &other), ("again", &wide)];
    let proposals = infer::propose(&checkpoint, known, None).expect("one copy");
    assert_eq!(proposals.len(), 1);
    assert_eq!(proposals[0].encoders, ["wide", "again"]);
    assert!(proposals[0].is_complete());
    let evidence = proposals[0].report.evidence();
    let tensors = expected().len();
    assert!(
        evidence.contains(&format!("all {tensors} tensors")),
        "{evidence}"
    );
    assert!(evidence.contains("“state_dict.backbone.”"), "{evidence}");
}

#[test]
fn a_file_with_another_number_of_classes_is_of_the_same_network() {
    for classes in [1, 7, 1000] {
        let other = infer::with_classes(&squeezenet(), classes).expect("it can");
        let checkpoint = Checkpoint::open(&fixture("plain.pth")).expect("it opens");
        let (adapted, fit) = infer::fit(&checkpoint, &other, None).expect("one copy");
        assert!(fit.report.is_complete(), "{}", fit.report.faults());
        assert_eq!(adapted, squeezenet());
    }
}

#[test]
fn a_backbone_without_its_classifier_is_of_a_network_without_classes() {
    let headless = infer::with_classes(&Architecture::published("resnet18").expect("known"), 0);
    let headless = headless.expect("it can");
    let tensors = headless.parameters().into_iter().map(|p| {
        (
            format!("module.encoder_q.{}", p.name),
            (p.shape.clone(), vec![0.5; p.len()]),
        )
    });
    // With a projection head, as in contrastive learning.
    let head = (
        "module.encoder_q.fc.0.weight".to_owned(),
        (vec![2, 512], vec![0.5; 1024]),
    );
    let file = file_of(&tensors.chain([head]).collect());
    let checkpoint = Checkpoint::from_safetensors("moco", &file).expect("it is sound");
    let published = Architecture::published("resnet18").expect("known");
    let (adapted, fit) = infer::fit(&checkpoint, &published, None).expect("one copy");
    assert!(fit.report.is_complete(), "{}", fit.report.faults());
    assert_eq!((adapted.logits_len(), adapted == headless), (0, true));
    assert!(fit.report.passed_over.contains(&(PassedOver::Unused, 1)));
}

// ---- Files of another kind --------------------------------------------------------------------

#[test]
fn files_of_another_kind_are_called_by_their_names() {
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n";
    for (name, bytes, word) in [
        ("model.safetensors", &pointer[..], "Git LFS pointer"),
        ("model.pth", &pointer[..], "Git LFS pointer"),
        (
            "model.pth",
            b"<!DOCTYPE html><html>Sign in</html>",
            "web page",
        ),
        ("model.pth", b"\n<html><body>403</body></html>", "web page"),
        ("model.pth", b"", "empty"),
        ("model.h5", b"\x89HDF\r\n\x1a\n and more", "HDF5"),
        ("model.pth.gz", b"\x1f\x8b\x08\x00 and more", "gzip"),
        ("model.gguf", b"GGUF\x03\x00\x00\x00 and more", "GGUF"),
        ("config.txt", b"{\"architectures\": [\"ResNet\"]}", "JSON"),
        ("model.onnx", b"\x08\x07\x12\x07pytorch and more", "ONNX"),
        (
            "weights.npz",
            b"PK\x03\x04 is a zip archive and then nothing",
            "zip archive",
        ),
    ] {
        let error = refused_bytes(name, bytes);
        assert!(error.why.contains(word), "{name}: {error}");
    }
    let error = refused(Path::new("/nowhere/model.pth"));
    assert!(error.why.contains("no such file"), "{error}");
    let folder = tempfile::tempdir().expect("a folder");
    let error = refused(folder.path());
    assert!(error.why.contains("model.safetensors"), "{error}");
}

#[test]
fn a_pickle_without_tensors_says_so() {
    // {'a': 1} in protocol 2.
    let error = refused_bytes("model.pkl", b"\x80\x02}q\x00X\x01\x00\x00\x00aK\x01s.");
    assert!(error.why.contains("no tensor"), "{error}");
}

// ---- Hostile safetensors ----------------------------------------------------------------------

fn safetensors_of(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

#[test]
fn faults_of_a_safetensors_header_are_named() {
    let entry = |name: &str, from: u64, to: u64| {
        format!(r#""{name}":{{"dtype":"F32","shape":[1],"data_offsets":[{from},{to}]}}"#)
    };
    for (entries, data, word) in [
        (
            vec![entry("a", 0, 4), entry("a", 4, 8)],
            8,
            "“a” occurs twice",
        ),
        (vec![entry("a", 0, 4), entry("b", 2, 6)], 6, "b overlaps"),
        (
            vec![entry("a", 0, 4), entry("b", 8, 12)],
            12,
            "b leaves a gap",
        ),
        (vec![entry("a", 4, 0)], 4, "a ends before it begins"),
        (vec![entry("a", 0, 4)], 5, "1 bytes follow"),
        (vec![entry("a", 0, 4)], 3, "cut short"),
        (
            vec![entry("a", 0, 8)],
            8,
            "a has 8 bytes, which is not 1 in F32",
        ),
        (
            vec![r#""a":{"dtype":"F128","shape":[1],"data_offsets":[0,16]}"#.to_owned()],
            16,
            "unknown type “F128”",
        ),
        (
            vec![r#""a":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}"#.to_owned()],
            4,
            "duplicate field",
        ),
    ] {
        let header = format!("{{{}}}", entries.join(","));
        let error = refused_bytes("m.safetensors", &safetensors_of(&header, &vec![0; data]));
        assert!(error.why.contains(word), "no “{word}” in: {error}");
    }
    // Depth is no fault of its own where the format admits anything, and no danger.
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    for header in [
        format!("{{\"__metadata__\":{deep}}}"),
        format!("{{\"a\":{deep}}}"),
        deep,
    ] {
        refused_bytes("m.safetensors", &safetensors_of(&header, &[]));
    }
}

#[test]
fn an_index_cannot_lead_out_of_its_folder() {
    for shard in [
        "../secret.safetensors",
        "/etc/passwd",
        "a/../../b",
        "..",
        "C:\\x",
        "",
    ] {
        let index = serde_json::json!({"weight_map": {"a": shard}}).to_string();
        let error = refused_bytes("model.safetensors.index.json", index.as_bytes());
        assert!(
            error.why.contains("leads out of its folder"),
            "{shard}: {error}"
        );
    }
    let error = refused_bytes("m.index.json", b"{\"weight_map\": {}}");
    assert!(error.why.contains("names no tensor"), "{error}");
    let error = refused_bytes(
        "m.index.json",
        b"{\"weight_map\": {\"a\": \"x.safetensors\"}}",
    );
    assert!(
        error
            .why
            .contains("1 file missing beside it: x.safetensors"),
        "{error}"
    );
}

// ---- Hostile pickles --------------------------------------------------------------------------

/// A protocol-2 pickle that calls `module.name` with one string.
fn calling(module: &str, name: &str, argument: &str) -> Vec<u8> {
    let mut pickle = b"\x80\x02c".to_vec();
    pickle.extend(format!("{module}\n{name}\n").as_bytes());
    pickle.push(b'X');
    pickle.extend((argument.len() as u32).to_le_bytes());
    pickle.extend(argument.as_bytes());
    pickle.extend(b"\x85R.");
    pickle
}

#[test]
fn nothing_that_a_pickle_names_is_called() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let command = format!("touch {}", trace.display());
    for (module, name) in [
        ("os", "system"),
        ("posix", "system"),
        ("builtins", "eval"),
        ("__builtin__", "exec"),
        ("subprocess", "check_output"),
        ("torch.hub", "load"),
    ] {
        let path = folder.path().join("evil.pth");
        fs::write(&path, calling(module, name, &command)).expect("it can be written");
        refused(&path);
        assert!(!trace.exists(), "{module}.{name} was called");
    }
}

#[test]
fn nesting_and_doubling_in_a_pickle_end_in_an_error_and_take_little_memory() {
    let deep = [
        b"\x80\x02".to_vec(),
        vec![b'('; 1 << 20],
        vec![b't'; 1 << 20],
        b".".to_vec(),
    ]
    .concat();
    refused_bytes("deep.pth", &deep);
    let lists = [
        b"\x80\x02".to_vec(),
        vec![b']'; 1 << 18],
        vec![b'a'; 1 << 18],
        b".".to_vec(),
    ]
    .concat();
    refused_bytes("lists.pth", &lists);
    // A list that holds itself twice, forty times over: 2^40 entries if it were written out.
    let mut bomb = b"\x80\x02]q\x00".to_vec();
    for i in 0..40u8 {
        bomb.extend([b']', b'q', i + 1, b'(', b'h', i, b'h', i, b'e']);
    }
    bomb.push(b'.');
    refused_bytes("bomb.pth", &bomb);
    // A string that claims four gigabytes.
    refused_bytes("long.pth", b"\x80\x02X\xff\xff\xff\xffabc");
}

/// A zip archive of one deflated entry `archive/data.pkl` whose 20 bytes claim `claimed` bytes.
fn zip_bomb(claimed: u32) -> Vec<u8> {
    let (name, data) = (b"archive/data.pkl", [0u8; 20]);
    let fields = |signature: [u8; 4], extra: &[u8]| {
        let mut bytes = signature.to_vec();
        bytes.extend(extra);
        bytes.extend([20, 0, 0, 0, 8, 0, 0, 0, 0, 0]);
        bytes.extend([0; 4]);
        bytes.extend((data.len() as u32).to_le_bytes());
        bytes.extend(claimed.to_le_bytes());
        bytes.extend((name.len() as u16).to_le_bytes());
        bytes.extend([0, 0]);
        bytes
    };
    let mut zip = fields(*b"PK\x03\x04", &[]);
    zip.extend(name);
    zip.extend(data);
    let directory = zip.len() as u32;
    zip.extend(fields(*b"PK\x01\x02", &[20, 0]));
    zip.extend([0; 14]);
    zip.extend(name);
    let len = zip.len() as u32 - directory;
    zip.extend(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    zip.extend(len.to_le_bytes());
    zip.extend(directory.to_le_bytes());
    zip.extend([0, 0]);
    zip
}

#[test]
fn a_zip_that_claims_gigabytes_is_refused_before_memory_is_set_aside() {
    let before = memory_stats::memory_stats().map_or(0, |stats| stats.virtual_mem);
    let error = refused_bytes("bomb.pth", &zip_bomb(u32::MAX - 1));
    let after = memory_stats::memory_stats().map_or(0, |stats| stats.virtual_mem);
    assert!(after.saturating_sub(before) < 1 << 30, "{error}");
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    for name in [
        "plain.pth",
        "legacy.pth",
        "strided_legacy.pth",
        "robustness.ckpt",
        "whole_model.pth",
    ] {
        let whole = fs::read(fixture(name)).expect("it is committed");
        for cut in (0..whole.len()).step_by(whole.len() / 97) {
            refused_bytes(name, &whole[..cut]);
        }
        refused_bytes(name, &whole[..whole.len() - 1]);
    }
}

/// Thousands of damaged files: bytes flipped, runs overwritten, pieces cut out. A file may still be read
/// (a changed value looks like another value), but never with another number of values, and never
/// with a crash.
#[test]
fn damaged_files_are_read_or_refused_and_never_crash() {
    const CASES: usize = 400;
    let names = [
        "expected.safetensors",
        "plain.pth",
        "legacy.pth",
        "protocol4.pth",
        "strided.pth",
        "strided_legacy.pth",
        "robustness.ckpt",
        "whole_model.pth",
        "script.pt",
        "sharded/model.safetensors.index.json",
    ];
    let folder = tempfile::tempdir().expect("a folder");
    for part in fs::read_dir(fixture("sharded"))
        .expect("a folder")
        .flatten()
    {
        fs::copy(part.path(), folder.path().join(part.file_name())).expect("it can be copied");
    }
    let (architecture, lens) = (squeezenet(), expected());
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut outcomes = [0; 2];
    for name in names {
        let whole = fs::read(fixture(name)).expect("it is committed");
        let end = Path::new(name)
            .extension()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        for case in 0..CASES {
            // Files of their own: overwriting one makes some file systems wait for the disk.
            let path = folder.path().join(format!("damaged{case}.{end}"));
            let mut bytes = whole.clone();
            for _ in 0..rng.random_range(1..=3) {
                let at = rng.random_range(0..bytes.len());
                let len = rng.random_range(1..=8).min(bytes.len() - at);
                match rng.random_range(0..5) {
                    0 => bytes[at] ^= 1 << rng.random_range(0..8),
                    1 => bytes[at..at + len].fill(0xff),
                    2 => bytes[at..at + len].fill(0),
                    3 => drop(bytes.drain(at..at + len)),
                    _ => {
                        let from = rng.random_range(0..bytes.len() - len);
                        bytes.copy_within(from..from + len, at);
                    }
                }
            }
            fs::write(&path, &bytes).expect("it can be written");
            let outcome = load(&path, &architecture, None);
            fs::remove_file(&path).expect("it is there");
            match outcome {
                Ok((tensors, _)) => {
                    outcomes[0] += 1;
                    let same =
                        |(name, values): (&String, &Vec<f64>)| values.len() == lens[name].len();
                    assert!(tensors.iter().all(same), "{name}");
                }
                Err(error) => {
                    outcomes[1] += 1;
                    assert_eq!(error.kind, ErrorKind::Weights, "{error}");
                }
            }
        }
    }
    // Both happen, or the test tests nothing.
    assert!(
        outcomes.iter().all(|count| *count > CASES / 2),
        "{outcomes:?}"
    );
}
