//! Edits as the window asks for them: a map is fitted, answers any rank, and is solved again without encoding. The real
//! compute side, on the CPU, with the encoder, the decoders and the photographs that come with the program.

use std::sync::Arc;
use std::time::Duration;

use etascope::ErrorKind;
use etascope::cli::edit_line;
use etascope::device::DeviceChoice;
use etascope::encoders::registry;
use etascope::geometry::maps::{Cut, MapKind, Part};
use etascope::images::{Background, GridSymmetry, Manipulation, Picture, bundled};
use etascope::recipe::{EditRecipe, LearningSet, MapFamily};
use etascope::worker::edit::{CutRun, EditRun, FeatureScores, InvertedRun};
use etascope::worker::{Command, Content, Event, Export, ExportFormat, ImageSource, Lane, Worker};

/// Turns a deadlock into a failure.
const PATIENCE: Duration = Duration::from_secs(120);
const ENCODER: &str = "efficientnet_lite0";

fn recipe(stage: &str, edit: Manipulation) -> EditRecipe {
    let spec = registry::find(ENCODER).expect("the bundled encoder");
    let stage = (spec.stages.iter()).position(|known| known.name == stage);
    EditRecipe {
        encoder: ENCODER.to_owned(),
        stage: stage.expect("a stage"),
        manipulations: vec![edit],
        learnt_on: LearningSet::Bundled,
        crops: 2,
        seed: 0,
        family: MapFamily::RidgeToIdentity,
        gamma: None,
        normalised: true,
    }
}

fn hue() -> EditRecipe {
    recipe("blocks.2", Manipulation::Hue { degrees: 60.0 })
}

fn ready() -> Worker {
    let worker = Worker::spawn(DeviceChoice::Cpu, || ()).expect("a worker");
    let source = ImageSource::Bundled(bundled::NAMES[0].to_owned());
    let background = Background::default();
    ask(&worker, Command::OpenImage { source, background }).expect("a photograph");
    worker
}

/// Everything that a request answers; its failure if it has one.
fn ask(worker: &Worker, command: Command) -> Result<Vec<Event>, etascope::Error> {
    let request = worker.send(command).expect("the worker listens");
    let mut events = Vec::new();
    loop {
        let event = worker
            .events()
            .recv_timeout(PATIENCE)
            .expect("the worker answers");
        match event {
            Event::Finished { generation, .. } if generation == request => return Ok(events),
            Event::Failed {
                generation, error, ..
            } if generation == request => return Err(error),
            event => events.push(event),
        }
    }
}

fn fitted(worker: &Worker, recipe: &EditRecipe) -> (Arc<EditRun>, Vec<Event>) {
    let events = ask(worker, Command::Edit(recipe.clone())).expect("a map");
    let run = events.iter().find_map(|event| match event {
        Event::EditFitted { run, .. } => Some(Arc::clone(run)),
        _ => None,
    });
    (run.expect("the map is told of"), events)
}

fn cut(worker: &Worker, recipe: &EditRecipe, cut: Cut, rank: usize) -> Arc<CutRun> {
    let recipe = recipe.clone();
    let events = ask(worker, Command::Rank { recipe, cut, rank }).expect("a rank");
    let run = events.into_iter().find_map(|event| match event {
        Event::EditCut { run, .. } => Some(run),
        _ => None,
    });
    run.expect("the rank is told of")
}

fn mdncs(scores: &FeatureScores) -> f64 {
    scores.mdncs.expect("a defined cosine")
}

#[test]
fn ranks_run_from_the_mean_displacement_to_the_whole_map() {
    let worker = ready();
    let recipe = hue();
    let (run, _) = fitted(&worker, &recipe);
    let channels = run.shape[0];
    let first = cut(&worker, &recipe, Cut::Edit, 0);
    // Without a direction of the edit operator every vector moves by the mean displacement, which is the additive map; features
    // are kept in f32, and both go through their own order of sums.
    let additive = run
        .table
        .iter()
        .find(|(name, _)| name == "additive")
        .expect("a row");
    assert_eq!(
        run.table_photographs, 1,
        "only the photograph on screen is held out"
    );
    assert!((mdncs(&first.scores) - mdncs(&additive.1)).abs() < 1e-6);
    for kind in [Cut::Edit, Cut::Map] {
        let last = cut(&worker, &recipe, kind, channels);
        assert!((mdncs(&last.scores) - mdncs(&run.full)).abs() < 1e-6);
        let seen = last.seen.as_ref().expect("a decoder");
        let full = &run.seen.as_ref().expect("a decoder").full;
        // One grey level of rounding here and there.
        assert!((seen.scores.mse - full.scores.mse).abs() < 0.5);
        let sweep = run.sweep(kind).expect("a sweep");
        assert_eq!(sweep.scores.len(), channels + 1);
        assert_eq!(sweep.scores[channels].0, channels);
        assert!((mdncs(&sweep.scores[channels].1) - mdncs(&run.full)).abs() < 1e-6);
    }
    // W near the identity: without its bias alone nothing of the photograph is left.
    let bias = cut(&worker, &recipe, Cut::Map, 0);
    assert!(mdncs(&bias.scores) < mdncs(&first.scores));
    // The map does what it is for.
    assert!(mdncs(&run.full) > mdncs(&run.identity) + 0.02);
}

#[test]
fn the_photograph_on_screen_is_never_learnt_from_unless_that_is_asked_for() {
    let worker = ready();
    let (run, _) = fitted(&worker, &hue());
    assert_eq!(run.part, Part::HeldOut);
    assert_eq!(run.members.len(), bundled::NAMES.len() - 1);
    assert!(run.members.iter().all(|member| member.name != run.image));
    let parts = |part| {
        run.members
            .iter()
            .filter(|member| member.part == part)
            .count()
    };
    assert_eq!(parts(Part::Validation), 1);
    // Each photograph of the training part and its two crops, 28 × 28 positions each.
    assert_eq!(run.pairs, 3 * parts(Part::Train));
    assert_eq!(run.vectors, run.pairs * 28 * 28);

    let own = EditRecipe {
        learnt_on: LearningSet::Own,
        ..hue()
    };
    let (run, _) = fitted(&worker, &own);
    assert_eq!(run.part, Part::Train);
    assert!(run.table.is_empty(), "nothing is held out");
    assert!(run.choice.is_none(), "nothing validates");

    // A copy of the photograph under another name is found out by its hash; two others are left.
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["chelsea.png", "coffee.png", "astronaut.png"] {
        let from = format!("{}/assets/photos/{name}", env!("CARGO_MANIFEST_DIR"));
        let to = if name == "chelsea.png" {
            "renamed.png"
        } else {
            name
        };
        std::fs::copy(from, folder.path().join(to)).expect("a copy");
    }
    let copied = EditRecipe {
        learnt_on: LearningSet::Folder(folder.path().to_owned()),
        ..hue()
    };
    let (run, _) = fitted(&worker, &copied);
    assert!(
        run.members
            .iter()
            .all(|member| member.name != "renamed.png")
    );
}

#[test]
fn another_penalty_is_solved_from_the_sums_alone() {
    let worker = ready();
    let (first, _) = fitted(&worker, &hue());
    let moved = EditRecipe {
        gamma: Some(1.0),
        ..hue()
    };
    let (second, events) = fitted(&worker, &moved);
    let encodes = |event: &Event| matches!(event, Event::Progress { progress, .. } if progress.stage.starts_with("encoding"));
    assert!(!events.iter().any(encodes));
    assert_eq!(second.kind, MapKind::RidgeToIdentity { gamma: 1.0 });
    assert_ne!(first.full, second.full);
    // Back again gives the same numbers.
    let (third, _) = fitted(&worker, &hue());
    assert_eq!(first.full, third.full);
    // A rank of a map that is no longer the fitted one has no answer.
    let error = ask(
        &worker,
        Command::Rank {
            recipe: moved,
            cut: Cut::Edit,
            rank: 1,
        },
    )
    .expect_err("another map is fitted");
    assert_eq!(error.kind, ErrorKind::Cancelled);
}

#[test]
fn a_mirrored_picture_is_mostly_a_mirrored_grid() {
    let worker = ready();
    let symmetry = GridSymmetry::MirrorHorizontal;
    let (run, _) = fitted(
        &worker,
        &recipe("blocks.2", Manipulation::Reorient { symmetry }),
    );
    // The mirrored grid agrees far better than the grid as it is; the map then exchanges the channels that tell left from
    // right.
    let [identity, reorder, full] =
        [run.identity, run.reorder, run.full].map(|scores| mdncs(&scores));
    assert!(reorder > identity + 0.1, "{identity} {reorder} {full}");
    assert!(full >= reorder, "{identity} {reorder} {full}");
    // A mirror touches no position besides.
    assert!(run.mask.iter().all(|&is_touched| !is_touched));
    assert_eq!(run.full.mdncs_masked, None);
}

#[test]
fn pictures_are_sought_by_gradient_where_no_decoder_is() {
    let worker = ready();
    let grey = recipe("blocks.0", Manipulation::Grayscale);
    let (run, _) = fitted(&worker, &grey);
    assert!(run.seen.is_none());
    let request = Command::Invert {
        recipe: grey,
        cut: Cut::Edit,
        rank: 4,
    };
    let sought = worker.send(request).expect("the worker listens");
    let mut pictures: Vec<Arc<InvertedRun>> = Vec::new();
    while pictures.len() < 4 {
        match worker
            .events()
            .recv_timeout(PATIENCE)
            .expect("the worker answers")
        {
            Event::Inverted { generation, run } if generation == sought => pictures.push(run),
            Event::Failed { error, .. } => panic!("{error}"),
            _ => {}
        }
    }
    worker
        .send(Command::Cancel(Lane::Invert))
        .expect("the worker listens");
    let error = |run: &InvertedRun| run.iterates[0].expect("a step").feature_error;
    assert!(
        error(&pictures[3]) < error(&pictures[0]),
        "the features come nearer"
    );
    assert!(
        pictures[0].mapped.is_none(),
        "the unedited features come first"
    );
}

#[test]
fn the_commands_of_an_edit_fit_the_very_same_map() {
    let worker = ready();
    let chain = EditRecipe {
        manipulations: vec![
            Manipulation::Reorient {
                symmetry: GridSymmetry::MirrorHorizontal,
            },
            Manipulation::Contrast { factor: 0.5 },
        ],
        ..recipe("blocks.4", Manipulation::Grayscale)
    };
    for recipe in [
        chain.clone(),
        EditRecipe {
            learnt_on: LearningSet::Own,
            normalised: false,
            gamma: Some(0.1),
            ..chain
        },
    ] {
        let (run, events) = fitted(&worker, &recipe);
        let seen = events.iter().filter_map(|event| match event {
            Event::EditSeen {
                cut, rank, scores, ..
            } => Some((*cut, *rank, *scores)),
            _ => None,
        });
        let folder = tempfile::tempdir().expect("a folder");
        let export = Export {
            folder: folder.path().join("window"),
            stem: "map".to_owned(),
            formats: vec![ExportFormat::Csv, ExportFormat::Json],
            content: Content::Edit(Box::new(run.to_write(&seen.collect::<Vec<_>>()))),
        };
        ask(&worker, Command::Export(export)).expect("files");
        let source = ImageSource::Bundled(run.image.clone());
        let out = folder.path().join("command");
        let line = edit_line(&source, &run, &DeviceChoice::Cpu, &out).expect("commands");
        let program = env!("CARGO_BIN_EXE_etascope");
        let done = std::process::Command::new("sh")
            .args(["-c", &line.replace("etascope ", &format!("'{program}' "))])
            .env("HOME", folder.path())
            .env("XDG_CACHE_HOME", folder.path())
            .output()
            .expect("a shell");
        assert!(
            done.status.success(),
            "{line}\n{}",
            String::from_utf8_lossy(&done.stderr)
        );
        let read = |from: &str, name: &str| {
            std::fs::read(folder.path().join(from).join(name)).expect("a file")
        };
        assert_eq!(
            read("window", "map.safetensors"),
            read("command", "map.safetensors")
        );
        // The tables of ranks, row by row; the window decodes only some of them.
        let table = |folder: &str, name: &str| {
            let text = String::from_utf8(read(folder, name)).expect("text");
            text.lines()
                .map(|line| line.split(',').take(5).collect::<Vec<_>>().join(","))
                .collect::<Vec<_>>()
        };
        let (own, other) = (table("window", "map.csv"), table("command", "edit.csv"));
        let edit_cut = |rows: &[String]| -> Vec<String> {
            rows.iter()
                .filter(|row| row.contains(",edit,"))
                .cloned()
                .collect()
        };
        assert!(!edit_cut(&own).is_empty());
        assert_eq!(edit_cut(&own), edit_cut(&other));
        // The other kinds of maps, where photographs were held out.
        let maps = folder.path().join("window/map.maps.csv");
        assert_eq!(maps.exists(), !run.table.is_empty());
        if maps.exists() {
            assert_eq!(table("window", "map.maps.csv").len(), run.table.len() + 1);
        }
    }
}

#[test]
fn pairs_from_an_outside_editor_leave_the_photograph_on_screen_out() {
    let worker = ready();
    let folder = tempfile::tempdir().expect("a folder");
    for name in bundled::NAMES {
        // The editor is ours here, so that what it did is known.
        let photo = bundled::open(name).expect("a photograph");
        let original = Picture::from(&photo);
        let edit = Manipulation::Hue { degrees: 60.0 };
        let edited = edit.edit(&original, 0).expect("an edit");
        for (picture, name) in [
            (&original, name.to_owned()),
            (&edited, format!("{name}_edited")),
        ] {
            let (width, height) = (picture.width() as u32, picture.height() as u32);
            let path = folder.path().join(format!("{name}.png"));
            image::save_buffer(path, picture.rgb(), width, height, image::ColorType::Rgb8)
                .expect("a file");
        }
    }
    let pairs = EditRecipe {
        learnt_on: LearningSet::Pairs(folder.path().to_owned()),
        ..hue()
    };
    // The photograph on screen is not one of the files.
    let error = ask(&worker, Command::Edit(pairs.clone())).expect_err("no edit of it");
    assert!(error.why.contains("no edit in the folder"), "{error}");
    let source = ImageSource::Path(folder.path().join("chelsea.png"));
    let background = Background::default();
    ask(&worker, Command::OpenImage { source, background }).expect("a photograph");
    let (run, _) = fitted(&worker, &pairs);
    assert_eq!(run.outside.as_deref(), Some("4 pairs"));
    assert_eq!(run.members.len(), 3);
    assert!(
        run.file.manipulations.is_empty(),
        "what was done is not ours to say"
    );
    // The edit of the whole photograph is not exactly that of the prepared one, but nearly.
    let (own, _) = fitted(&worker, &hue());
    assert!((mdncs(&run.identity) - mdncs(&own.identity)).abs() < 0.01);
    assert!(mdncs(&run.full) > mdncs(&run.identity) + 0.02);
}
