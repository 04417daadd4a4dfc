//! A user's whole journey without a window: open a photograph, see both curves grow, measure at one
//! η, take the files away. The real compute side, on the CPU.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use etascope::device::DeviceChoice;
use etascope::encoders::EncoderSpec;
use etascope::geometry::ScaleEstimate;
use etascope::images::Background;
use etascope::recipe::{ProfileRecipe, WeightsKind};
use etascope::report::ProfileRun;
use etascope::worker::{Command, Event, Export, ExportFormat, Generation, ImageSource, Worker};

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
                weights_id,
                top5,
                self_check,
                ..
            } => {
                assert_eq!(self_check, None, "the CPU is the reference");
                note("encoder", index);
                let encoder = Encoder {
                    spec,
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
            Event::Failed { error, .. } => panic!("{error}"),
            Event::Finished { generation, .. } if generation == request => return answers,
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
    } = &answers.encoders[&0];
    assert_eq!(spec.name, "squeezenet1_1");
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
        runs: runs.to_vec(),
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
