//! What a reader waits for in the workspace of edits: from the request to the worker's answer, on the CPU device, bundled encoder and
//! photographs.
//!
//! `cargo bench --profile release --bench edit`

use std::sync::Arc;

use divan::Bencher;
use etascope::device::DeviceChoice;
use etascope::encoders::registry;
use etascope::geometry::maps::Cut;
use etascope::images::{Background, Manipulation, bundled};
use etascope::recipe::{EditRecipe, LearningSet, MapFamily};
use etascope::worker::edit::EditRun;
use etascope::worker::{Command, Event, ImageSource, Worker};

const ENCODER: &str = "efficientnet_lite0";
const STAGES: [&str; 3] = ["blocks.1", "blocks.2", "blocks.4"];

fn main() {
    divan::main();
}

fn recipe(stage: &str) -> EditRecipe {
    let spec = registry::find(ENCODER).expect("the bundled encoder");
    let stage = (spec.stages.iter()).position(|known| known.name == stage);
    EditRecipe {
        encoder: ENCODER.to_owned(),
        stage: stage.expect("a stage"),
        manipulations: vec![Manipulation::Hue { degrees: 60.0 }],
        learnt_on: LearningSet::Bundled,
        crops: 8,
        seed: 0,
        family: MapFamily::RidgeToIdentity,
        gamma: None,
        normalised: true,
    }
}

/// Waits for the first answer that `wanted` takes something from, and then for the end.
fn ask<T>(worker: &Worker, command: Command, wanted: impl Fn(&Event) -> Option<T>) -> T {
    let request = worker.send(command).expect("the worker listens");
    let mut answer = None;
    loop {
        let event = worker.events().recv().expect("the worker answers");
        if answer.is_none() {
            answer = wanted(&event);
        }
        match event {
            Event::Finished { generation, .. } if generation == request => {
                return answer.expect("an answer");
            }
            Event::Failed {
                generation, error, ..
            } if generation == request => panic!("{error}"),
            _ => {}
        }
    }
}

fn ready() -> Worker {
    let worker = Worker::spawn(DeviceChoice::Cpu, || ()).expect("a worker");
    let source = ImageSource::Bundled(bundled::NAMES[0].to_owned());
    let background = Background::default();
    ask(&worker, Command::OpenImage { source, background }, |_| {
        Some(())
    });
    worker
}

fn fit(worker: &Worker, recipe: EditRecipe) -> Arc<EditRun> {
    ask(worker, Command::Edit(recipe), |event| match event {
        Event::EditFitted { run, .. } => Some(Arc::clone(run)),
        _ => None,
    })
}

/// A moved rank: features, every score, and the decoded picture, which the encoder sees again.
#[divan::bench(args = STAGES)]
fn move_rank(bencher: Bencher<'_, '_>, stage: &str) {
    let worker = ready();
    let full = fit(&worker, recipe(stage)).shape[0];
    let mut rank = 0;
    bencher.bench_local(|| {
        rank = (rank + 7) % (full + 1);
        let (recipe, cut) = (recipe(stage), Cut::Edit);
        ask(
            &worker,
            Command::Rank { recipe, cut, rank },
            |event| match event {
                Event::EditCut { run, .. } => Some(Arc::clone(run)),
                _ => None,
            },
        )
    });
}

/// From an open photograph to the fitted map with the pictures of all ranks that are drawn: weights, eighteen pairs of training and one of
/// validation encoded, the table of all kinds solved.
#[divan::bench(args = STAGES, sample_count = 5, sample_size = 1)]
fn fit_first(bencher: Bencher<'_, '_>, stage: &str) {
    let fresh = || ready();
    bencher
        .with_inputs(fresh)
        .bench_local_values(|worker| fit(&worker, recipe(stage)));
}
