//! Compute devices: what is listed, what is opened, and that they agree.

mod tiny;

use std::process::Command;

use burn::tensor::Device;
use cubecl_environment::config::RuntimeConfig;
use cubecl_runtime::config::CubeClRuntimeConfig;
use etascope::device::{self, ComputeDevice, DeviceChoice, SELF_CHECK_BOUND};
use etascope::encoders::layers::Placement;
use etascope::encoders::registry;
use etascope::encoders::value::Value;
use etascope::encoders::{Encoder, Readout};
use etascope::features::FeatureMap;
use etascope::geometry::decode::{Decoder, Inversion, InversionConfig};
use etascope::geometry::maps::trained::{
    EpochReport, NetworkKind, Pair, Step, Trainer, TrainingConfig, TrainingData,
};
use etascope::recipe::WeightsKind;
use etascope::{Error, ErrorKind};
use tiny::{BOTH, Fixture, read_golden, relative, values};

/// The software adapter that stands for a graphics adapter in tests (Debian's mesa-vulkan-drivers).
fn software_adapter() -> ComputeDevice {
    let adapters = device::list();
    let adapter = adapters
        .iter()
        .find(|adapter| adapter.software)
        .unwrap_or_else(|| {
            panic!("no software adapter among {adapters:?}: install mesa-vulkan-drivers")
        });
    device::open(&DeviceChoice::Adapter(adapter.name.clone())).expect("the adapter opens")
}

#[test]
fn the_cpu_is_listed_last_and_software_adapters_are_marked() {
    let devices = device::list();
    let last = devices.last().expect("the CPU is always there");
    assert_eq!(
        (last.name.as_str(), last.api.as_str(), last.software),
        ("cpu", "flex", false)
    );
    let mut names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(
        names.len(),
        devices.len(),
        "each device has a name of its own"
    );
    for device in &devices {
        let name = device.name.to_lowercase();
        let rasteriser = ["llvmpipe", "lavapipe", "swiftshader", "basic render"];
        if rasteriser.iter().any(|software| name.contains(software)) {
            assert!(device.software, "{device:?}");
        }
    }
}

#[test]
fn auto_never_takes_a_software_adapter() {
    let chosen = device::open(&DeviceChoice::Auto).expect("the CPU at least opens");
    assert!(!chosen.info.software);
    let hardware = device::list().into_iter().find(|device| !device.software);
    assert_eq!(
        Some(chosen.info),
        hardware,
        "the first that is not software: the CPU is the last"
    );
}

#[test]
fn an_adapter_is_opened_by_its_name_and_only_once() {
    let first = software_adapter();
    assert!(first.info.software && !first.is_cpu());
    assert_eq!(first.device, software_adapter().device);
    assert_ne!(first.device, Device::flex());
}

#[test]
fn an_unknown_adapter_is_refused_with_the_known_ones() {
    let choice = DeviceChoice::Adapter("Voodoo 2".into());
    let error = device::open(&choice).expect_err("there is none");
    assert_eq!(error.kind, ErrorKind::Device);
    assert!(
        error.what.contains("“Voodoo 2”") && error.remedy.contains("cpu"),
        "{error}"
    );
    let cpu = device::open(&DeviceChoice::Adapter("cpu".into())).expect("the CPU has a name too");
    assert!(cpu.is_cpu());
}

/// Values, J·t and Jᵀ·v on an adapter against the CPU. Both compute in f32, in another order of
/// summation: the bound is the one held against PyTorch's f64 values.
#[test]
fn an_adapter_agrees_with_the_cpu_in_values_and_derivatives() {
    let adapter = software_adapter();
    for tiny in BOTH {
        let all = |at: &Placement| -> Vec<(String, Vec<f64>)> {
            let (encoder, fixture) = (tiny.load(at), tiny.fixture());
            let traced = |readout: &Readout| {
                let x = Value::traced(fixture.tensor("input", at));
                encoder
                    .forward_normalised(x, readout)
                    .expect("the readout exists")
            };
            let mut found = Vec::new();
            for i in 0..encoder.spec().stages.len() {
                let stage = traced(&Readout::Stage(i)).into_primal();
                found.push((format!("stage {i}"), values(stage)));
            }
            let pooled = traced(&Readout::Pooled);
            let derivative = pooled.linearised().expect("traced");
            // Five tangents and five cotangents at once, so that the shared factors are broadcast.
            let t = fixture.tensor("direction", at).repeat_dim(0, 5);
            let v = fixture.tensor("cotangent.pooled", at).repeat_dim(0, 5);
            found.push(("Jt".into(), values(derivative.jvp(t))));
            found.push(("Jᵀv".into(), values(derivative.vjp(v))));
            found.push(("pooled".into(), values(pooled.into_primal())));
            found.push((
                "logits".into(),
                values(traced(&Readout::Logits).into_primal()),
            ));
            found
        };
        let on_adapter = all(&Placement::f32(&adapter.device));
        let on_cpu = all(&Placement::f32(&Device::flex()));
        for ((what, found), (_, expected)) in on_adapter.iter().zip(&on_cpu) {
            let error = relative(found, expected);
            assert!(error <= 2e-5, "{tiny:?} {what}: {error:e}");
        }
    }
}

#[test]
fn the_self_check_passes_equal_networks_and_fails_different_ones() {
    let (cpu, adapter) = (ComputeDevice::cpu(), software_adapter());
    let [on_cpu, on_adapter] = [&cpu, &adapter].map(|device| Placement::f32(&device.device));
    for tiny in BOTH {
        let reference = tiny.load(&on_cpu);
        let reference = (reference.as_ref(), &cpu, &on_cpu);
        let same = tiny.load(&on_adapter);
        let same: &dyn Encoder = same.as_ref();
        let check = device::compare((same, &adapter, &on_adapter), reference).expect("it runs");
        assert!(check.passed() && check.largest_relative_difference < SELF_CHECK_BOUND / 10.0);
        assert!(
            check.largest_relative_difference > 0.0,
            "another device rounds otherwise"
        );
        let other = tiny.random(1, &on_adapter);
        let check = device::compare((other.as_ref(), &adapter, &on_adapter), reference);
        assert!(!check.expect("it runs").passed());
    }
}

/// Some fifty layers at full size, with trained weights. Measured 3.3e-6 and 1.4e-6 on lavapipe.
#[test]
fn the_bundled_networks_agree_on_an_adapter_and_the_cpu() {
    let adapter = software_adapter();
    for spec in registry::bundled() {
        let loaded = registry::load(&spec.name, WeightsKind::Trained, 0, &adapter);
        let check = device::self_check(&loaded.expect("it loads")).expect("it runs");
        let difference = check.expect("not the CPU").largest_relative_difference;
        assert!(difference <= 2e-5, "{}: {difference:e}", spec.name);
    }
}

#[test]
fn the_cpu_is_not_checked_against_itself() {
    let cpu = ComputeDevice::cpu();
    let loaded = registry::load("squeezenet1_1", WeightsKind::Random, 3, &cpu).expect("it loads");
    assert_eq!(device::self_check(&loaded).expect("nothing to do"), None);
}

#[test]
fn a_lost_device_becomes_an_error_that_names_it() {
    let lost = |device: &ComputeDevice| -> Error {
        let work = || -> etascope::Result<()> { panic!("Device lost: out of memory") };
        device
            .guard("cannot compute the logits", work)
            .expect_err("it panicked")
    };
    let adapter = software_adapter();
    let error = lost(&adapter);
    assert_eq!(
        (error.kind, error.what.as_str()),
        (ErrorKind::Device, "cannot compute the logits")
    );
    assert!(
        error.why.contains(&adapter.info.name) && error.why.contains("Device lost"),
        "{error}"
    );
    assert!(error.remedy.contains("cpu"), "{error}");
    assert_eq!(lost(&ComputeDevice::cpu()).kind, ErrorKind::Internal);
    let refused = adapter.guard("anything", || -> etascope::Result<()> {
        Err(Error::cancelled("a profile"))
    });
    assert_eq!(refused.expect_err("as given").kind, ErrorKind::Cancelled);
}

/// Runs in a process of its own, in a folder with settings that must not be obeyed.
#[test]
fn stray_settings_of_the_compute_library_are_not_obeyed() {
    const CHILD: &str = "ETASCOPE_TEST_STRAY_SETTINGS";
    if std::env::var_os(CHILD).is_some() {
        device::isolate_environment();
        assert_eq!(CubeClRuntimeConfig::get().environment.name, "default");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let settings = "[environment]\nname = \"stray\"\n";
    std::fs::write(folder.path().join("cubecl.toml"), settings).expect("it can be written");
    let output = Command::new(std::env::current_exe().expect("this test"))
        .args([
            "--exact",
            "stray_settings_of_the_compute_library_are_not_obeyed",
        ])
        .env(CHILD, "1")
        .current_dir(folder.path())
        .output()
        .expect("it runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .expect("it is there")
        .collect();
    assert_eq!(left.len(), 1, "nothing is written beside the settings");
}

#[test]
fn a_decoder_and_an_inversion_on_an_adapter_agree_with_the_cpu() {
    let adapter = software_adapter();
    let fixture = Fixture::read("decoder/tiny.fixture.safetensors");
    let file = read_golden("decoder/tiny.safetensors");
    let decoder = Decoder::read("tiny", &file, &adapter).expect("the fixture is sound");
    let features = fixture.tensor("features", &Placement::f32(&adapter.device));
    let picture = values(decoder.forward(Value::plain(features)).into_primal());
    let error = relative(&picture, fixture.get("picture"));
    assert!(error <= 1e-5, "decoder: {error:e}");

    let target: Vec<f64> = (0..192).map(|i| 0.3 + 0.002 * f64::from(i)).collect();
    let found = [adapter, ComputeDevice::cpu()].map(|device| {
        let config = InversionConfig {
            steps: 12,
            ..InversionConfig::default()
        };
        let at = Placement::f32(&device.device);
        let map = Box::new(|pixels: Value| Ok(pixels.grid_mean(8)));
        let search = Inversion::of_map(
            map,
            "means over a grid".into(),
            device,
            at,
            [32, 32],
            [3, 8, 8],
            &target,
            config,
        );
        let mut search = search.expect("a sound search");
        while !search.is_finished() {
            search.step().expect("a step");
        }
        let pixels = search.pixels().expect("a picture");
        pixels.into_iter().map(f64::from).collect::<Vec<f64>>()
    });
    // Adam divides by the gradient's own size, so that rounding counts for more than in a sum.
    let error = relative(&found[0], &found[1]);
    assert!(error <= 1e-3, "inversion: {error:e}");
}

#[test]
fn a_map_trained_on_an_adapter_is_the_one_trained_on_the_cpu() {
    let map = |seed: usize| {
        let values = (0..36).map(|i| ((7 * i + 13 * seed) % 17) as f32 / 8.0 - 1.0);
        let values: Vec<f32> = values.collect();
        FeatureMap::from_vectors([4, 3, 3], values).expect("a map")
    };
    let pair = |seed: usize| Pair {
        original: map(seed),
        edited: map(seed + 5),
    };
    let config = TrainingConfig {
        batch: 3,
        epochs: 2,
        rate: 1e-3,
        ..TrainingConfig::default()
    };
    let histories = [software_adapter(), ComputeDevice::cpu()].map(|device| {
        let data = TrainingData {
            train: (0..6).map(pair).collect(),
            validation: (7..9).map(pair).collect(),
            held_out: Vec::new(),
        };
        let kind = NetworkKind::Mlp;
        let trainer = Trainer::new(kind, 16, config, Vec::new(), true, data, &device);
        let mut trainer = trainer.expect("a sound training");
        while trainer.step().expect("a step") != Step::Finished {}
        trainer.history().to_vec()
    });
    let losses = histories.map(|history| {
        let losses = |report: &EpochReport| [report.train_loss, report.validation_loss];
        history.iter().flat_map(losses).collect::<Vec<f64>>()
    });
    let error = relative(&losses[0], &losses[1]);
    assert!(error <= 1e-5, "{error:e}");
}
