//! The token architectures read weights under the names of other libraries, and mean the same by them
//! (tests/golden/gen_token_names.py).

mod tiny;

use std::collections::BTreeMap;

use burn::tensor::Device;
use etascope::encoders::Readout;
use etascope::encoders::architecture::Architecture;
use etascope::encoders::convnext::{self, ConvNeXtConfig};
use etascope::encoders::layers::Placement;
use etascope::encoders::renaming::Renaming;
use etascope::encoders::swinv2::{self, SwinV2Config};
use etascope::encoders::value::Value;
use etascope::encoders::vit::{self, QkvBias, VitConfig};
use etascope::encoders::weights::checkpoint::Checkpoint;
use etascope::encoders::weights::{Weights, names};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use tiny::{golden_path, read_golden, relative, values};

/// f64 arithmetic of the f32 weights on both sides; transformers computes the angles of DINOv3's rotary
/// positions, torchvision the coordinates of SwinV2's position bias in single precision.
const BOUND: f64 = 1e-6;

type Reader = fn(&str) -> Option<Renaming>;

fn cases() -> Vec<(&'static str, Architecture, usize, Reader)> {
    let convnext = |classes| {
        Architecture::ConvNeXt(ConvNeXtConfig {
            depths: [1, 2, 1, 1],
            dims: [4, 8, 12, 16],
            classes,
        })
    };
    let vit = VitConfig {
        native_px: 24,
        patch: 8,
        dim: 8,
        depth: 2,
        heads: 2,
        classes: 5,
        exposed: vec![1],
        ..VitConfig::small16()
    };
    let dinov2 = VitConfig {
        classes: 0,
        layer_scale: Some(1.0),
        ..vit.clone()
    };
    let dinov3 = VitConfig {
        native_px: 24,
        patch: 8,
        dim: 8,
        depth: 2,
        heads: 2,
        exposed: vec![1],
        qkv_bias: QkvBias::QueryValue,
        ..VitConfig::dinov3_base16()
    };
    // torchvision pads a stage smaller than the window up to it, the original narrows the window.
    let swinv2 = SwinV2Config {
        dim: 4,
        depths: [1, 2, 1, 1],
        heads: [1, 2, 2, 4],
        window: 2,
        pretrained_windows: [0; 4],
        classes: 5,
    };
    vec![
        (
            "torchvision_convnext",
            convnext(5),
            64,
            convnext::keys::from_torchvision,
        ),
        (
            "torchvision_vit",
            Architecture::Vit(vit.clone()),
            24,
            vit::keys::from_torchvision,
        ),
        (
            "torchvision_swinv2",
            Architecture::SwinV2(swinv2),
            64,
            swinv2::keys::from_torchvision,
        ),
        (
            "transformers_convnext",
            convnext(5),
            64,
            convnext::keys::from_transformers,
        ),
        (
            "transformers_vit",
            Architecture::Vit(vit),
            24,
            vit::keys::from_transformers,
        ),
        (
            "transformers_dinov2",
            Architecture::Vit(dinov2),
            24,
            vit::keys::from_transformers,
        ),
        (
            "transformers_dinov3",
            Architecture::Vit(dinov3),
            24,
            vit::keys::from_transformers_dinov3,
        ),
    ]
}

/// The tensors of a file under timm's names, as bytes of f32.
fn renamed(file: &SafeTensors<'_>, reader: Reader) -> BTreeMap<String, Vec<u8>> {
    let mut thirds: BTreeMap<String, [Vec<u8>; 3]> = BTreeMap::new();
    let mut tensors = BTreeMap::new();
    for (name, view) in file.tensors() {
        if name.starts_with("fixture.") {
            continue;
        }
        let bytes = view.data().to_vec();
        match reader(&name).unwrap_or_else(|| panic!("{name} is known")) {
            Renaming::Whole(name) => {
                assert!(tensors.insert(name, bytes).is_none(), "used once");
            }
            Renaming::Third(name, part) => thirds.entry(name).or_default()[part] = bytes,
            Renaming::QueryAndValue(query, value) => {
                let third = bytes.len() / 3;
                tensors.insert(query, bytes[..third].to_vec());
                tensors.insert(value, bytes[2 * third..].to_vec());
            }
            Renaming::ClassAndPatches(..) | Renaming::Unused => {}
        }
    }
    tensors.extend(
        thirds
            .into_iter()
            .map(|(name, parts)| (name, parts.concat())),
    );
    tensors
}

#[test]
fn networks_of_other_libraries_give_their_own_features() {
    let at = Placement::f64(&Device::flex());
    for (name, architecture, side, reader) in cases() {
        let bytes = read_golden(&format!("tokens/elsewhere/{name}.safetensors"));
        let file = SafeTensors::deserialize(&bytes).expect("the fixture is sound");
        let tensors = renamed(&file, reader);
        let parameters = architecture.parameters();
        let views = tensors.iter().map(|(name, bytes)| {
            let parameter = parameters.iter().find(|parameter| parameter.name == *name);
            let shape =
                parameter.map_or(vec![bytes.len() / 4], |parameter| parameter.shape.clone());
            (
                name,
                TensorView::new(Dtype::F32, shape, bytes).expect("as many values as declared"),
            )
        });
        let timms = safetensors::serialize(views, None).expect("it can be written");
        let weights = Weights::from_safetensors(name, &timms, &parameters);
        let mut weights = weights.unwrap_or_else(|error| panic!("{name}: {error}"));
        let encoder = architecture.load(tiny::spec("tiny", &architecture, side), &mut weights, &at);
        let fixture = tiny::Fixture::read(&format!("tokens/elsewhere/{name}.safetensors"));
        let input = Value::plain(fixture.tensor("fixture.input", &at));
        let pooled = encoder
            .expect("it loads")
            .forward_normalised(input, &Readout::Pooled);
        let pooled = values(pooled.expect("it exists").into_primal());
        let error = relative(&pooled, fixture.get("fixture.pooled"));
        assert!(error <= BOUND, "{name}: {error:e}");
    }
}

/// Tensors by name: shape and bytes of f32.
type Tensors = BTreeMap<String, (Vec<usize>, Vec<u8>)>;

/// The feature of a network whose weights are found in a file of these tensors.
fn pooled_of(
    tensors: &Tensors,
    architecture: &Architecture,
    fixture: &tiny::Fixture,
) -> etascope::Result<Vec<f64>> {
    let at = Placement::f64(&Device::flex());
    let views = tensors.iter().map(|(name, (shape, bytes))| {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
        (name, view.expect("a tensor"))
    });
    let file = safetensors::serialize(views, None).expect("it can be written");
    let checkpoint = Checkpoint::from_safetensors("file", &file)?;
    let parameters = architecture.parameters();
    let namings = names::of(architecture);
    let mut weights = Weights::from_checkpoint(&checkpoint, &parameters, &namings, None)?;
    let encoder = architecture.load(tiny::spec("tiny", architecture, 24), &mut weights, &at)?;
    let input = Value::plain(fixture.tensor("fixture.input", &at));
    let pooled = encoder.forward_normalised(input, &Readout::Pooled)?;
    Ok(values(pooled.into_primal()))
}

#[test]
fn the_class_token_of_dinov2_with_registers_takes_its_position_along() {
    let architecture = Architecture::Vit(VitConfig {
        native_px: 24,
        dim: 8,
        depth: 2,
        heads: 2,
        exposed: vec![1],
        patch: 8,
        ..VitConfig::dinov2_small14(true)
    });
    let name = "tokens/elsewhere/transformers_dinov2_registers.safetensors";
    let (bytes, fixture) = (read_golden(name), tiny::Fixture::read(name));
    let file = SafeTensors::deserialize(&bytes).expect("the fixture is sound");
    let theirs: Tensors = file
        .tensors()
        .into_iter()
        .filter(|(name, _)| !name.starts_with("fixture."))
        .map(|(name, view)| (name, (view.shape().to_vec(), view.data().to_vec())))
        .collect();
    // The authors' own names: timm's, but for the registers, with the position of the class token.
    let parameters = architecture.parameters();
    let authors: Tensors = renamed(&file, vit::keys::from_transformers)
        .into_iter()
        .map(|(name, bytes)| {
            let declared = parameters.iter().find(|parameter| parameter.name == name);
            let mut shape = declared.expect("timm's name").shape.clone();
            if name == "pos_embed" {
                shape[1] += 1;
            }
            (name.replace("reg_token", "register_tokens"), (shape, bytes))
        })
        .collect();
    for (library, tensors) in [("transformers", &theirs), ("the authors", &authors)] {
        let pooled = pooled_of(tensors, &architecture, &fixture);
        let pooled = pooled.unwrap_or_else(|error| panic!("{library}: {error}"));
        let error = relative(&pooled, fixture.get("fixture.pooled"));
        assert!(error <= BOUND, "{library}: {error:e}");
    }

    // One position too few, and no class token: both are named, and nothing is loaded in part.
    let mut short = authors.clone();
    let (shape, bytes) = short.get_mut("pos_embed").expect("it is there");
    shape[1] -= 1;
    bytes.truncate(4 * shape.iter().product::<usize>());
    let error = pooled_of(&short, &architecture, &fixture).expect_err("it does not fit");
    assert!(error.to_string().contains("pos_embed"), "{error}");
    let mut headless = authors;
    headless.remove("cls_token");
    let error = pooled_of(&headless, &architecture, &fixture).expect_err("it does not fit");
    assert!(error.to_string().contains("cls_token"), "{error}");
}

#[test]
fn names_of_the_original_codes_are_turned_into_timms_as_by_timm() {
    let text = std::fs::read_to_string(golden_path("tokens/elsewhere/original.json"));
    let text = text.expect("the fixture is committed");
    let pairs: BTreeMap<String, BTreeMap<String, Vec<String>>> =
        serde_json::from_str(&text).expect("the fixture is sound");
    for (architecture, pairs) in pairs {
        let reader: Reader = match architecture.as_str() {
            "convnext" => convnext::keys::from_original,
            "swinv2" => swinv2::keys::from_original,
            "dinov2" => vit::keys::from_dinov2,
            "dinov3" => vit::keys::from_dinov3,
            other => panic!("{other} is not known"),
        };
        for (name, expected) in pairs {
            let found = match reader(&name) {
                Some(Renaming::Whole(timms)) => vec![timms],
                Some(Renaming::QueryAndValue(query, value)) => vec![query, value],
                Some(Renaming::Unused) => vec![],
                other => panic!("{architecture} {name}: {other:?}"),
            };
            assert_eq!(found, expected, "{architecture} {name}");
        }
    }
}

#[test]
fn a_name_from_elsewhere_is_not_taken_for_another() {
    for reader in [
        convnext::keys::from_original,
        convnext::keys::from_torchvision,
        convnext::keys::from_transformers,
        vit::keys::from_dinov2,
        vit::keys::from_dinov3,
        vit::keys::from_torchvision,
        vit::keys::from_transformers,
        vit::keys::from_transformers_dinov3,
        swinv2::keys::from_original,
        swinv2::keys::from_torchvision,
    ] {
        for name in [
            "",
            "weight",
            "layer1.0.conv1.weight",
            "stages.x.0.gamma",
            "blocks.0.foo.weight",
        ] {
            assert_eq!(reader(name), None, "{name}");
        }
    }
}
