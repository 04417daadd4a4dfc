//! A user's whole journey without a window: open a photograph, see both curves grow, measure at one
//! η, take the files away. The real compute side, on the CPU.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use etascope::cli::spectrum_command_line;
use etascope::device::DeviceChoice;
use etascope::encoders::{EncoderSpec, Readout};
use etascope::geometry::profile::Basis;
use etascope::geometry::spectrum::SpectrumMethod;
use etascope::geometry::{DirectionFamily, ScaleEstimate};
use etascope::images::{Background, Disc, Manipulation, Mask, Prepared, bundled};
use etascope::recipe::{ProfileRecipe, SpectrumRecipe, WeightsKind};
use etascope::report::{ProfileRun, spectrum_csv};
use etascope::worker::{
    Command, Content, Event, Export, ExportFormat, Generation, ImageSource, SpectrumTask, Worker,
};
use etascope::{Error, ErrorKind};

/// Turns a deadlock into a failure.
const PATIENCE: Duration = Duration::from_secs(120);

fn recipe(weights: WeightsKind) -> ProfileRecipe {
    let mut recipe = ProfileRecipe::interactive("squeezenet1_1", weights, 227);
    recipe.etas_l2 = vec![0.01, 0.1, 1.0, 10.0, 100.0];
    recipe.pairs_max = 4;
    recipe
}

/// What is said of an encoder when it is ready.
struct Encoder {
    spec: Arc<EncoderSpec>,
    prepared: Arc<Prepared>,
    weights_id: String,
    top5: Vec<(String, f32)>,
}

/// What a request answered, up to its end.
#[derive(Default)]
struct Answers {
    /// Kinds of events with the index of their recipe, repetitions left out.
    order: Vec<(&'static str, usize)>,
    encoders: BTreeMap<usize, Encoder>,
    runs: BTreeMap<usize, Arc<ProfileRun>>,
    measured: BTreeMap<usize, ScaleEstimate>,
    files: Vec<PathBuf>,
}

fn ask(worker: &Worker, command: Command) -> Answers {
    try_to(worker, command).unwrap_or_else(|error| panic!("{error}"))
}

fn try_to(worker: &Worker, command: Command) -> Result<Answers, Error> {
    let request: Generation = worker.send(command).unwrap();
    let mut answers = Answers::default();
    let mut note = |kind, index| {
        if answers.order.last() != Some(&(kind, index)) {
            answers.order.push((kind, index));
        }
    };
    loop {
        match worker
            .events()
            .recv_timeout(PATIENCE)
            .expect("the worker answers")
        {
            Event::EncoderReady {
                index,
                spec,
                prepared,
                weights_id,
                top5,
                self_check,
                ..
            } => {
                assert_eq!(self_check, None, "the CPU is the reference");
                note("encoder", index);
                let encoder = Encoder {
                    spec,
                    prepared,
                    weights_id,
                    top5,
                };
                answers.encoders.insert(index, encoder);
            }
            Event::ProfileUpdated { index, run, .. } => {
                note("profile", index);
                answers.runs.insert(index, run);
            }
            Event::Measured {
                index, estimate, ..
            } => {
                answers.measured.insert(index, estimate);
            }
            Event::Exported { files, .. } => answers.files = files,
            Event::Failed { error, .. } => return Err(error),
            Event::Finished { generation, .. } if generation == request => return Ok(answers),
            _ => {}
        }
    }
}

fn open(worker: &Worker, name: &str) {
    let source = ImageSource::Bundled(name.to_owned());
    ask(
        worker,
        Command::OpenImage {
            source,
            background: Background::default(),
        },
    );
}

#[test]
fn a_photograph_becomes_two_curves_and_four_files() {
    let worker = Worker::spawn(DeviceChoice::Cpu, || ()).unwrap();
    open(&worker, "chelsea");

    let recipes = vec![recipe(WeightsKind::Trained), recipe(WeightsKind::Random)];
    let answers = ask(&worker, Command::Profile(recipes.clone()));
    let first = [
        ("encoder", 0),
        ("profile", 0),
        ("encoder", 1),
        ("profile", 1),
    ];
    assert_eq!(
        answers.order[..4],
        first,
        "the trained curve is seen before the twin is loaded"
    );

    let Encoder {
        spec,
        weights_id: hash,
        top5,
        ..
    } = &answers.encoders[&0];
    assert_eq!(&*spec.name, "squeezenet1_1");
    assert!(
        hash.len() == 64 && hash.chars().all(|c| c.is_ascii_hexdigit()),
        "{hash}"
    );
    assert!(
        top5.iter().any(|(class, _)| class.contains("cat")),
        "chelsea is a cat: {top5:?}"
    );
    assert!(
        answers.encoders[&1].top5.is_empty(),
        "a random classifier names nothing"
    );

    for (recipe, run) in recipes.iter().zip(answers.runs.values()) {
        assert_eq!((&run.recipe, run.device.as_str()), (recipe, "cpu"));
        assert_eq!(run.image, "chelsea");
        assert!(run.profile.finished);
        assert_eq!(run.profile.scales.len(), 5);
        // All directions were measured at every scale that is not below the floor.
        for scale in run.profile.scales.iter().filter(|scale| scale.reliable) {
            assert_eq!(scale.directions, 8);
        }
    }
    let [trained, twin] = [0, 1].map(|i| &answers.runs[&i].profile.scales);
    // Far out the trained network saturates and the random one, which is homogeneous, rises.
    assert!(trained[4].r < trained[3].r && twin[4].r > 10.0 * twin[2].r);

    // The measured value lies on the curve: with as many pairs as the profile has it is the same
    // estimate from the same directions. Only the place in the batch differs, so f32 rounding.
    let command = Command::Measure {
        recipes: recipes.clone(),
        eta_l2: 1.0,
    };
    let measured = ask(&worker, command).measured;
    for (measured, curve) in [(&measured[&0], trained), (&measured[&1], twin)] {
        assert_eq!(measured.eta_l2, 1.0);
        assert!(
            (measured.r / curve[2].r - 1.0).abs() < 1e-3,
            "{} {}",
            measured.r,
            curve[2].r
        );
    }

    let folder = tempfile::tempdir().unwrap();
    let runs: Vec<_> = answers.runs.values().cloned().collect();
    export_and_check(&worker, folder.path().join("new folder"), &runs);
}

fn export_and_check(worker: &Worker, folder: PathBuf, runs: &[Arc<ProfileRun>]) {
    let formats = vec![
        ExportFormat::Csv,
        ExportFormat::Json,
        ExportFormat::Svg,
        ExportFormat::Png,
    ];
    let export = Export {
        folder: folder.clone(),
        stem: "cat".into(),
        formats,
        content: Content::Profiles(runs.to_vec()),
    };
    let files = ask(worker, Command::Export(export)).files;
    let expected =
        ["csv", "json", "svg", "png"].map(|extension| folder.join("cat").with_extension(extension));
    assert_eq!(files, expected);

    let mut table = csv::Reader::from_path(&files[0]).unwrap();
    let columns = "image,encoder,weights,eta_l2,eta_grey_rms,r,r_se,displacement_sq,prediction_sq,\
                   directions,reliable";
    assert_eq!(
        table.headers().unwrap(),
        columns.split(',').collect::<Vec<_>>()
    );
    let rows: Vec<_> = table.records().map(Result::unwrap).collect();
    let scales: Vec<_> = runs.iter().flat_map(|run| &run.profile.scales).collect();
    assert_eq!(rows.len(), scales.len());
    for (row, scale) in rows.iter().zip(scales) {
        // Exactly the plotted numbers.
        assert_eq!(row[3].parse::<f64>().unwrap(), scale.eta_l2);
        assert_eq!(row[5].parse::<f64>().unwrap(), scale.r);
        assert_eq!(row[7].parse::<f64>().unwrap(), scale.displacement_sq);
    }
    let weights: Vec<_> = rows.iter().map(|row| row[2].to_owned()).collect();
    assert_eq!(weights, [["trained"; 5], ["random"; 5]].concat());

    let sidecar: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&files[1]).unwrap()).unwrap();
    let sidecar = sidecar.to_string();
    for run in runs {
        assert!(sidecar.contains(&run.image_sha256) && sidecar.contains(&run.weights_id));
    }
    let svg = std::fs::read_to_string(&files[2]).unwrap();
    resvg::usvg::Tree::from_str(&svg, &resvg::usvg::Options::default()).unwrap();
    let figure = image::open(&files[3]).unwrap().to_rgb8();
    let first = figure.get_pixel(0, 0);
    assert!(
        figure.pixels().any(|pixel| pixel != first),
        "the figure is empty"
    );
}

#[test]
fn a_profile_is_the_same_whenever_it_is_computed() {
    let profile = || {
        let worker = Worker::spawn(DeviceChoice::Cpu, || ()).unwrap();
        open(&worker, "coffee");
        let mut recipe = recipe(WeightsKind::Trained);
        recipe.etas_l2 = vec![0.1, 10.0];
        recipe.pairs_max = 2;
        let answers = ask(&worker, Command::Profile(vec![recipe]));
        answers.runs[&0].profile.scales.clone()
    };
    assert_eq!(profile(), profile());
}

fn along(family: DirectionFamily) -> ProfileRecipe {
    ProfileRecipe {
        family,
        etas_l2: vec![0.03, 10.0],
        pairs_max: 3,
        ..recipe(WeightsKind::Trained)
    }
}

fn toward(image: &str) -> DirectionFamily {
    let image = image.to_owned();
    DirectionFamily::Toward { image }
}

#[test]
fn directions_are_made_from_pictures_as_the_encoder_sees_them() {
    let worker = Worker::spawn(DeviceChoice::Cpu, || ()).unwrap();
    open(&worker, "chelsea");
    let blur = Manipulation::Blur { sigma_px: 2.0 };
    let mask = Mask {
        discs: vec![Disc {
            x: 0.4,
            y: 0.6,
            radius: 0.2,
        }],
    };
    let families = [
        toward("bundled:coffee"),
        DirectionFamily::Along {
            manipulation: blur.clone(),
        },
        DirectionFamily::Along {
            manipulation: Manipulation::Grayscale,
        },
        DirectionFamily::Masked { mask: mask.clone() },
    ];
    let answers = ask(&worker, Command::Profile(families.map(along).to_vec()));
    let Encoder { spec, prepared, .. } = &answers.encoders[&0];
    let side = prepared.side_px;
    let coffee = bundled::open("coffee").unwrap();
    let other = spec.preprocessing.apply(&coffee).unwrap();
    let ends = [
        other.pixels.iter().map(|&v| f64::from(v)).collect(),
        blur.apply(&prepared.pixels, side, side),
        Manipulation::Grayscale.apply(&prepared.pixels, side, side),
    ];
    for (end, run) in ends.iter().zip(answers.runs.values()) {
        let profile = &run.profile;
        let difference = |i: usize| end[i] - f64::from(prepared.pixels[i]);
        let distance = (0..end.len())
            .map(|i| difference(i).powi(2))
            .sum::<f64>()
            .sqrt();
        for (i, u) in profile.shown_direction.iter().enumerate() {
            // The direction is rounded to f32, its values are below 1.
            assert!((f64::from(*u) - difference(i) / distance).abs() < 6e-8);
        }
        let steps = &run.direction_steps;
        assert_eq!(steps.last(), Some(&format!("reached at η = {distance:.4}")));
        for scale in &profile.scales {
            assert_eq!((scale.directions, scale.basis), (2, Basis::SameDirections));
            assert!(scale.r.is_finite() && scale.r_se.is_nan());
        }
    }
    let steps = answers.runs[&0].direction_steps.join("\n");
    assert!(steps.contains(&coffee.sha256), "{steps}");
    assert!(answers.runs[&3].direction_steps.is_empty());

    let covered = mask.covered(side, side);
    let masked = &answers.runs[&3].profile;
    assert_eq!(masked.pairs, 3);
    for (i, u) in masked.shown_direction.iter().enumerate() {
        assert!(covered[i % (side * side)] || *u == 0.0, "{i}: {u}");
    }

    for run in answers.runs.values() {
        // The linear prediction holds near the photograph; 0.03 is a fiftieth of a grey level.
        let (near, family) = (&run.profile.scales[0], run.recipe.family.title());
        assert!(near.reliable, "{family}");
        assert!((near.r - 1.0).abs() < 0.05, "{family}: {}", near.r);
    }
}

#[test]
fn directions_that_do_not_exist_are_refused_with_their_reason() {
    let worker = Worker::spawn(DeviceChoice::Cpu, || ()).unwrap();
    open(&worker, "chelsea");
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("no photo.txt");
    std::fs::write(&text, "no pixels").unwrap();
    let text = text.to_str().unwrap();
    for (family, kind, said) in [
        (
            toward("bundled:chelsea"),
            ErrorKind::Request,
            "the photograph itself",
        ),
        (toward("bundled:nobody"), ErrorKind::Request, "“nobody”"),
        (
            toward("no such folder/photo.png"),
            ErrorKind::Image,
            "photo.png",
        ),
        (toward(text), ErrorKind::Image, "no photo.txt"),
        (
            DirectionFamily::Along {
                manipulation: Manipulation::Blur { sigma_px: 1e-3 },
            },
            ErrorKind::Request,
            "does not change",
        ),
        (
            DirectionFamily::Masked {
                mask: Mask::default(),
            },
            ErrorKind::Request,
            "empty",
        ),
    ] {
        let error = try_to(&worker, Command::Profile(vec![along(family.clone())]))
            .err()
            .unwrap_or_else(|| panic!("{family:?} was taken"));
        assert_eq!(error.kind, kind, "{error}");
        let text = format!("{} {}", error.what, error.why);
        assert!(text.contains(said), "{text}");
        assert!(!error.remedy.is_empty(), "{text}");
    }
    // The worker goes on.
    ask(
        &worker,
        Command::Profile(vec![along(toward("bundled:rocket"))]),
    );
}

/// The same question to the window's worker and to the command line.
#[test]
fn a_spectrum_is_that_of_the_command_line() {
    let worker = Worker::spawn(DeviceChoice::Cpu, || ()).unwrap();
    open(&worker, "chelsea");
    let recipe = SpectrumRecipe {
        encoder: "squeezenet1_1".to_owned(),
        weights: WeightsKind::Trained,
        readout: Readout::Stage(0),
        method: SpectrumMethod::Leading { count: 3 },
        seed: 5,
        dither_seed: Some(2),
    };
    let tasks = vec![SpectrumTask::Values(recipe.clone())];
    let request = worker.send(Command::Spectrum(tasks)).unwrap();
    let mut found = None;
    loop {
        let event = worker.events().recv_timeout(PATIENCE);
        match event.expect("the worker answers") {
            Event::SpectrumFound { run, .. } => found = Some(run),
            Event::Finished { generation, .. } if generation == request => break,
            Event::Failed { error, .. } => panic!("{error}"),
            _ => {}
        }
    }
    let run = found.expect("a spectrum");
    assert_eq!(run.recipe, recipe);

    let folder = tempfile::tempdir().unwrap();
    let line = spectrum_command_line(
        &ImageSource::Bundled("chelsea".to_owned()),
        &[recipe],
        false,
        &DeviceChoice::Cpu,
        Background::default(),
        folder.path(),
    );
    let words = shlex::split(&line.unwrap()).unwrap();
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_etascope"))
        .args(&words[1..])
        .status();
    assert!(status.unwrap().success());
    let theirs = std::fs::read_to_string(folder.path().join("spectrum.csv")).unwrap();
    // To the last bit: the same products in the same batches.
    assert_eq!(spectrum_csv(&[(*run).clone()]).unwrap(), theirs);
}
