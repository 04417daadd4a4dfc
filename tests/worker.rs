//! The worker under a compute side whose every call waits for the test: what supersedes what, what
//! is urgent, and what survives. No clock decides anything here; `PATIENCE` only turns a deadlock
//! into a failure.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use etascope::device::{DeviceChoice, DeviceInfo, SelfCheck};
use etascope::encoders::EncoderSpec;
use etascope::encoders::Readout;
use etascope::geometry::spectrum::{Bounds, SpectrumMethod};
use etascope::geometry::{Cost, Field, Perturbation, Profile, Summary};
use etascope::images::{Background, ChannelOrder, Photo, Prepared, Preprocessing, ResizeFilter};
use etascope::recipe::{ProfileRecipe, SpectrumRecipe, WeightsKind};
use etascope::report::{ProfileRun, SpectrumRun};
use etascope::worker::{
    Command, Content, Engine, Event, Export, ExportFormat, Generation, ImageSource, Lane, LeastRun,
    SpectrumTask, StageView, Subject, Worker,
};
use etascope::{Error, ErrorKind, Result};

const PATIENCE: Duration = Duration::from_secs(60);
/// Side of the fake encoder's input.
const SIDE: usize = 4;
const INPUT_LEN: usize = 3 * SIDE * SIDE;
const OUTPUT_LEN: usize = 5;
/// What every fake encoder takes in memory.
const WEIGHTS_BYTES: u64 = 100;

/// How a call of the fake compute side goes on.
enum Permit {
    Go,
    Panic(&'static str),
    Fail(Error),
}

/// The worker's end of the turnstile that every call passes.
#[derive(Clone)]
struct Turnstile {
    calls: Sender<String>,
    permits: Receiver<Permit>,
}

impl Turnstile {
    fn pass(&self, call: impl Into<String>) -> Result<()> {
        let _ = self.calls.send(call.into());
        match self.permits.recv() {
            Ok(Permit::Panic(message)) => panic!("{message}"),
            Ok(Permit::Fail(error)) => Err(error),
            // Once the test has let go of its end, everything passes.
            Ok(Permit::Go) | Err(_) => Ok(()),
        }
    }
}

/// The test's end.
struct Control {
    calls: Receiver<String>,
    permits: Option<Sender<Permit>>,
}

impl Control {
    /// Waits until the worker stands at the turnstile and says with which call.
    fn arrived(&self) -> String {
        self.calls
            .recv_timeout(PATIENCE)
            .expect("the worker calls the compute side")
    }

    fn let_in(&self, permit: Permit) {
        self.permits
            .as_ref()
            .expect("not open yet")
            .send(permit)
            .expect("the worker listens");
    }

    /// Lets calls pass until one starts with `prefix`; that one is left waiting.
    fn until(&self, prefix: &str) -> String {
        loop {
            let call = self.arrived();
            if call.starts_with(prefix) {
                return call;
            }
            self.let_in(Permit::Go);
        }
    }

    /// Lets everything pass from now on.
    fn open(&mut self) {
        self.permits = None;
    }
}

/// Φ(x) = J x with J of ones, shifted so that every coordinate differs.
struct LinearField {
    name: &'static str,
    turnstile: Turnstile,
}

fn row(input: impl Iterator<Item = f64>) -> [f64; OUTPUT_LEN] {
    let mut output = [0.0; OUTPUT_LEN];
    for (i, value) in input.enumerate() {
        output[i % OUTPUT_LEN] += value;
    }
    output
}

impl Field for LinearField {
    fn input_len(&self) -> usize {
        INPUT_LEN
    }

    fn output_len(&self) -> usize {
        OUTPUT_LEN
    }

    fn batch(&self) -> usize {
        4
    }

    fn features(&mut self, steps: &[Perturbation]) -> Result<Vec<f64>> {
        self.turnstile.pass(format!("features {}", self.name))?;
        let feature = |step: &Perturbation| {
            row(step
                .direction
                .iter()
                .map(|u| 0.5 + step.eta_l2 * f64::from(*u)))
        };
        Ok(steps.iter().flat_map(feature).collect())
    }

    fn rounding_probe(&mut self, seed: u64) -> Result<Vec<f64>> {
        let jitter = 1e-9 * (seed % 7) as f64;
        Ok(row((0..INPUT_LEN).map(|_| 0.5 + jitter)).to_vec())
    }

    fn jvp(&mut self, tangents: &[Arc<[f32]>]) -> Result<Vec<f64>> {
        self.turnstile.pass(format!("jvp {}", self.name))?;
        Ok(tangents
            .iter()
            .flat_map(|t| row(t.iter().map(|u| f64::from(*u))))
            .collect())
    }

    fn vjp(&mut self, cotangents: &[f64]) -> Result<Vec<f64>> {
        self.turnstile.pass(format!("vjp {}", self.name))?;
        let rows = cotangents.chunks_exact(OUTPUT_LEN);
        Ok(rows
            .flat_map(|v| (0..INPUT_LEN).map(|i| v[i % OUTPUT_LEN]))
            .collect())
    }
}

/// A compute side without tensors.
struct FakeEngine {
    turnstile: Turnstile,
    loaded: Vec<(String, WeightsKind)>,
}

impl Engine for FakeEngine {
    fn weights_bytes(&self, _: &str) -> Result<u64> {
        Ok(WEIGHTS_BYTES)
    }

    fn unload(&mut self, encoder: &str, weights: WeightsKind) {
        let _ = (self.turnstile.calls).send(format!("unload {encoder} {}", weights.name()));
        self.loaded
            .retain(|known| *known != (encoder.to_owned(), weights));
    }

    fn use_device(&mut self, choice: &DeviceChoice) -> Result<DeviceInfo> {
        self.turnstile.pass("use_device")?;
        self.loaded.clear();
        let name = match choice {
            DeviceChoice::Auto => "Fake GPU",
            DeviceChoice::Cpu => "cpu",
            DeviceChoice::Adapter(name) => name,
        };
        Ok(DeviceInfo {
            name: name.to_owned(),
            api: "fake".to_owned(),
            software: false,
        })
    }

    fn load(&mut self, encoder: &str, weights: WeightsKind) -> Result<()> {
        let key = (encoder.to_owned(), weights);
        if !self.loaded.contains(&key) {
            self.turnstile.pass(match encoder {
                "linear" => format!("load {}", weights.name()),
                other => format!("load {other} {}", weights.name()),
            })?;
            self.loaded.push(key);
        }
        Ok(())
    }

    fn self_check(&mut self, _: &str, _: WeightsKind) -> Result<Option<SelfCheck>> {
        Ok(None)
    }

    fn prepare(&mut self, photo: &Photo, recipe: &ProfileRecipe) -> Result<Subject> {
        self.turnstile
            .pass(format!("prepare {}", recipe.weights.name()))?;
        let key = (recipe.encoder.clone(), recipe.weights);
        assert!(self.loaded.contains(&key), "prepared before it was loaded");
        Ok(Subject {
            spec: Arc::new(spec()),
            weights_id: "fake".to_owned(),
            prepared: Arc::new(Prepared {
                side_px: SIDE,
                pixels: vec![0.5; INPUT_LEN].into(),
                steps: photo.name.clone(),
            }),
            top5: vec![],
            self_check: None,
            field: Box::new(LinearField {
                name: recipe.weights.name(),
                turnstile: self.turnstile.clone(),
            }),
        })
    }

    fn stage(&mut self, encoder: &str, stage: usize) -> Result<Box<dyn StageView>> {
        let what = format!("cannot show stage {stage} of {encoder}");
        Err(Error::new(ErrorKind::Request, what, "it has none", ""))
    }

    fn recover(&mut self) -> Result<()> {
        self.turnstile.pass("recover")?;
        self.loaded.clear();
        Ok(())
    }
}

fn spec() -> EncoderSpec {
    EncoderSpec {
        name: "linear".into(),
        title: "Linear".into(),
        source: "".into(),
        licence: "".into(),
        side_px: SIDE,
        pooled_len: OUTPUT_LEN,
        logits_len: OUTPUT_LEN,
        parameters: 0,
        stages: vec![],
        preprocessing: Preprocessing {
            resize_px: SIDE,
            squash: false,
            filter: ResizeFilter::Bilinear,
            fractional: false,
            crop_px: SIDE,
            mean: [0.0; 3],
            std: [1.0; 3],
            channels: ChannelOrder::Rgb,
        },
    }
}

fn recipe(weights: WeightsKind) -> ProfileRecipe {
    let mut recipe = ProfileRecipe::interactive("linear", weights, SIDE);
    recipe.pairs_max = 32;
    recipe.jvps = 32;
    recipe.target_error = 0.0;
    recipe
}

fn profile() -> Command {
    Command::Profile(vec![recipe(WeightsKind::Trained)])
}

fn measure(eta_l2: f64) -> Command {
    Command::Measure {
        recipes: vec![recipe(WeightsKind::Trained)],
        eta_l2,
    }
}

fn photo(shade: u8) -> Command {
    let rgba = vec![shade; 4 * 64].into();
    let source = ImageSource::Rgba {
        width: 8,
        height: 8,
        rgba,
    };
    Command::OpenImage {
        source,
        background: Background::default(),
    }
}

fn export(folder: &std::path::Path, stem: &str, formats: Vec<ExportFormat>) -> Command {
    let (folder, stem) = (folder.to_owned(), stem.to_owned());
    Command::Export(Export {
        folder,
        stem,
        formats,
        content: Content::Profiles(vec![Arc::new(run_to_export())]),
    })
}

/// A profile of no scale, enough for a table of no row.
fn run_to_export() -> ProfileRun {
    let profile = Profile {
        scales: vec![],
        singles: vec![],
        mean_jvp_sq: 1.0,
        mean_jvp_sq_se: 0.0,
        rounding_sq: 0.0,
        feature_norm: 1.0,
        pairs: 0,
        cost: Cost::default(),
        fraction: 1.0,
        finished: true,
        summary: Summary::empty("nothing was measured"),
        undefined: None,
        shown_direction: Arc::default(),
    };
    ProfileRun {
        image: "photograph".to_owned(),
        image_sha256: String::new(),
        image_steps: vec![],
        encoder_title: "Linear".to_owned(),
        weights_id: "fake".to_owned(),
        device: "Fake GPU".to_owned(),
        recipe: recipe(WeightsKind::Trained),
        direction_steps: vec![],
        profile: Arc::new(profile),
        elapsed_secs: 0.0,
    }
}

/// A worker whose device waits at the turnstile.
fn start() -> (Worker, Control) {
    let ((calls, seen), (permits, passes)) = (unbounded(), unbounded());
    let turnstile = Turnstile {
        calls,
        permits: passes,
    };
    let engine = || FakeEngine {
        turnstile,
        loaded: vec![],
    };
    let worker = Worker::spawn_with(engine, DeviceChoice::Auto, || ()).unwrap();
    (
        worker,
        Control {
            calls: seen,
            permits: Some(permits),
        },
    )
}

/// A worker with a device and a photograph.
fn ready() -> (Worker, Control) {
    let (worker, control) = start();
    control.until("use_device");
    control.let_in(Permit::Go);
    let opened = worker.send(photo(100)).unwrap();
    until_end(&worker, opened);
    (worker, control)
}

fn next(worker: &Worker) -> Event {
    worker
        .events()
        .recv_timeout(PATIENCE)
        .expect("the worker answers")
}

fn generation(event: &Event) -> Generation {
    match event {
        Event::DeviceReady { generation, .. }
        | Event::ImageOpened { generation, .. }
        | Event::EncoderReady { generation, .. }
        | Event::ProfileUpdated { generation, .. }
        | Event::SpectrumFound { generation, .. }
        | Event::LeastUpdated { generation, .. }
        | Event::Measured { generation, .. }
        | Event::Progress { generation, .. }
        | Event::EditFitted { generation, .. }
        | Event::EditSeen { generation, .. }
        | Event::EditCut { generation, .. }
        | Event::Inverted { generation, .. }
        | Event::Exported { generation, .. }
        | Event::Finished { generation, .. }
        | Event::Failed { generation, .. } => *generation,
        Event::Memory(_) => Generation::default(),
    }
}

/// Everything up to and with the answer that ends the request.
fn until_end(worker: &Worker, request: Generation) -> Vec<Event> {
    let mut seen = Vec::new();
    loop {
        let event = next(worker);
        let is_end = matches!(event, Event::Finished { .. } | Event::Failed { .. })
            && generation(&event) == request;
        seen.push(event);
        if is_end {
            return seen;
        }
    }
}

fn failure(events: &[Event], request: Generation) -> Option<&Error> {
    events.iter().find_map(|event| match event {
        Event::Failed {
            generation, error, ..
        } if *generation == request => Some(error),
        _ => None,
    })
}

fn updates(events: &[Event], request: Generation) -> Vec<usize> {
    let index = |event: &Event| match event {
        Event::ProfileUpdated {
            generation, index, ..
        } if *generation == request => Some(*index),
        _ => None,
    };
    events.iter().filter_map(index).collect()
}

fn measured(events: &[Event]) -> Vec<(Generation, f64)> {
    let estimate = |event: &Event| match event {
        Event::Measured {
            generation,
            estimate,
            ..
        } => Some((*generation, estimate.eta_l2)),
        _ => None,
    };
    // Each is measured twice, quickly and well.
    let mut measured: Vec<_> = events.iter().filter_map(estimate).collect();
    measured.dedup();
    measured
}

fn ends(events: &[Event]) -> Vec<Lane> {
    let lane = |event: &Event| match event {
        Event::Finished { lane, .. } => Some(*lane),
        _ => None,
    };
    events.iter().filter_map(lane).collect()
}

#[test]
fn a_profile_grows_and_its_last_update_is_complete() {
    let (worker, mut control) = ready();
    control.open();
    let request = worker.send(profile()).unwrap();
    let events = until_end(&worker, request);
    assert_eq!(failure(&events, request), None);
    let last = events.iter().rev().find_map(|event| match event {
        Event::ProfileUpdated { run, .. } => Some(run),
        _ => None,
    });
    let run = last.expect("an update");
    assert!(run.profile.finished && run.profile.pairs == 32);
    assert_eq!(run.device, "Fake GPU");
    // The field is linear: r is 1 at every scale up to the sums' rounding.
    let largest = run
        .profile
        .scales
        .iter()
        .map(|s| (s.r - 1.0).abs())
        .fold(0.0, f64::max);
    assert!(largest < 1e-6, "r is off 1 by {largest}");
}

#[test]
fn a_newer_profile_supersedes_the_older_and_no_stale_result_follows() {
    let (worker, mut control) = ready();
    let older = worker.send(profile()).unwrap();
    control.until("features");
    let newer = worker
        .send(Command::Profile(vec![recipe(WeightsKind::Random)]))
        .unwrap();
    while worker.events().try_recv().is_ok() {}
    control.open();
    let events = until_end(&worker, newer);
    // What is in memory answers no request.
    let is_answer = |event: &&Event| !matches!(event, Event::Memory(_));
    let mut answers = events.iter().filter(is_answer);
    assert!(
        answers.all(|event| generation(event) == newer),
        "{events:?}"
    );
    assert!(older < newer && !updates(&events, newer).is_empty());
}

#[test]
fn only_the_newest_measurement_is_made() {
    let (worker, mut control) = ready();
    let first = worker.send(measure(0.5)).unwrap();
    control.until("features");
    for i in 1..50 {
        worker.send(measure(f64::from(i))).unwrap();
    }
    let newest = worker.send(measure(50.0)).unwrap();
    control.open();
    let events = until_end(&worker, newest);
    assert_eq!(
        measured(&events),
        [(newest, 50.0)],
        "the one asked for at {first:?} is stale"
    );
}

#[test]
fn a_measurement_answers_quickly_and_then_better() {
    let (worker, mut control) = ready();
    control.open();
    let request = worker.send(measure(2.0)).unwrap();
    let directions = |event: &Event| match event {
        Event::Measured { estimate, .. } => Some(estimate.directions),
        _ => None,
    };
    let events = until_end(&worker, request);
    let measured: Vec<_> = events.iter().filter_map(directions).collect();
    assert!(
        matches!(measured[..], [quick, better] if 0 < quick && quick < better),
        "{measured:?}"
    );
}

#[test]
fn cancel_takes_effect_at_the_next_step() {
    let (worker, mut control) = ready();
    let request = worker.send(profile()).unwrap();
    control.until("features");
    worker.send(Command::Cancel(Lane::Profile)).unwrap();
    control.open();
    let events = until_end(&worker, request);
    assert_eq!(
        failure(&events, request).map(|e| e.kind),
        Some(ErrorKind::Cancelled)
    );
    // A step of a profile is one call.
    assert_eq!(
        control.calls.try_iter().count(),
        0,
        "the profile went on after the cancel"
    );
    let again = worker.send(profile()).unwrap();
    assert_eq!(failure(&until_end(&worker, again), again), None);
}

#[test]
fn a_step_of_loading_can_be_cancelled_too() {
    let (worker, control) = ready();
    let request = worker.send(profile()).unwrap();
    control.until("load");
    worker.send(Command::Cancel(Lane::Profile)).unwrap();
    control.let_in(Permit::Go);
    let events = until_end(&worker, request);
    assert_eq!(
        failure(&events, request).map(|e| e.kind),
        Some(ErrorKind::Cancelled)
    );
    assert!(
        control.calls.try_recv().is_err(),
        "the photograph was prepared all the same"
    );
}

#[test]
fn a_paused_profile_rests_until_it_is_resumed() {
    let (worker, mut control) = ready();
    let request = worker.send(profile()).unwrap();
    control.until("features");
    worker.send(Command::Pause(Lane::Profile)).unwrap();
    control.let_in(Permit::Go);
    // Each answer proves that the thread went once more through its loop. Only before the first may
    // the step that was running make its last calls.
    let folder = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let nothing = worker
            .send(export(folder.path(), "nothing", vec![]))
            .unwrap();
        loop {
            crossbeam_channel::select! {
                recv(control.calls) -> call => {
                    assert_eq!(round, 0, "the paused profile went on: {call:?}");
                    control.let_in(Permit::Go);
                }
                recv(worker.events()) -> event => {
                    let event = event.unwrap();
                    if matches!(event, Event::Finished { .. }) && generation(&event) == nothing {
                        break;
                    }
                }
                default(PATIENCE) => panic!("the worker neither works nor answers"),
            }
        }
    }
    worker.send(Command::Resume(Lane::Profile)).unwrap();
    control.arrived();
    control.let_in(Permit::Go);
    control.open();
    assert_eq!(failure(&until_end(&worker, request), request), None);
}

#[test]
fn a_panic_ends_its_request_only() {
    let (worker, mut control) = ready();
    let request = worker.send(profile()).unwrap();
    control.until("features");
    control.let_in(Permit::Panic("a shape does not fit"));
    control.until("recover");
    control.let_in(Permit::Go);
    let events = until_end(&worker, request);
    let error = failure(&events, request).expect("a failure");
    assert_eq!(error.kind, ErrorKind::Internal);
    assert!(error.why.contains("a shape does not fit"), "{error}");
    assert!(
        error.what.contains("linear (trained)"),
        "it says what was asked: {error}"
    );

    let again = worker.send(profile()).unwrap();
    assert_eq!(
        control.arrived(),
        "load trained",
        "the encoder's state is built anew"
    );
    control.let_in(Permit::Go);
    control.open();
    assert_eq!(failure(&until_end(&worker, again), again), None);
}

#[test]
fn a_lost_device_offers_the_cpu_and_the_cpu_works() {
    let (worker, mut control) = ready();
    let request = worker.send(profile()).unwrap();
    control.until("features");
    control.let_in(Permit::Panic("device lost"));
    control.until("recover");
    let dead = Error::new(ErrorKind::Device, "cannot add two numbers", "no answer", "");
    control.let_in(Permit::Fail(dead));
    let events = until_end(&worker, request);
    let error = failure(&events, request).expect("a failure");
    assert_eq!(error.kind, ErrorKind::Device);
    assert!(
        error.why.contains("Fake GPU") && error.remedy.contains("cpu"),
        "{error}"
    );

    control.open();
    let refused = worker.send(profile()).unwrap();
    let events = until_end(&worker, refused);
    let error = failure(&events, refused).expect("there is no device");
    assert!(
        error.kind == ErrorKind::Device && error.remedy.contains("cpu"),
        "{error}"
    );

    let moved = worker.send(Command::UseDevice(DeviceChoice::Cpu)).unwrap();
    assert_eq!(failure(&until_end(&worker, moved), moved), None);
    let again = worker.send(profile()).unwrap();
    assert_eq!(
        failure(&until_end(&worker, again), again),
        None,
        "the photograph is still open"
    );
}

#[test]
fn a_device_error_with_a_sound_device_keeps_it() {
    let (worker, mut control) = ready();
    let request = worker.send(profile()).unwrap();
    control.until("features");
    let memory = Error::new(ErrorKind::Device, "cannot evaluate", "out of memory", "");
    control.let_in(Permit::Fail(memory.clone()));
    control.until("recover");
    control.let_in(Permit::Go);
    assert_eq!(
        failure(&until_end(&worker, request), request),
        Some(&memory)
    );
    let again = worker.send(profile()).unwrap();
    control.open();
    assert_eq!(failure(&until_end(&worker, again), again), None);
}

#[test]
fn a_device_that_does_not_start_leaves_the_old_one_in_use() {
    let (worker, mut control) = ready();
    let request = worker.send(profile()).unwrap();
    control.until("features");
    let moved = worker
        .send(Command::UseDevice(DeviceChoice::Adapter("Ghost".into())))
        .unwrap();
    control.let_in(Permit::Go);
    control.until("use_device");
    control.let_in(Permit::Panic("no such adapter"));
    control.open();
    let events = until_end(&worker, request);
    let error = failure(&events, moved).expect("the device does not start");
    assert!(
        error.kind == ErrorKind::Device && error.why.contains("no such adapter"),
        "{error}"
    );
    assert_eq!(failure(&events, request), None, "the profile goes on");
}

#[test]
fn another_device_ends_the_work_that_was_asked_for_before_it() {
    let (worker, mut control) = ready();
    let older = worker.send(profile()).unwrap();
    control.until("features");
    let moved = worker.send(Command::UseDevice(DeviceChoice::Cpu)).unwrap();
    let newer = worker.send(measure(1.0)).unwrap();
    control.open();
    let events = until_end(&worker, newer);
    assert_eq!(
        failure(&events, older).map(|e| e.kind),
        Some(ErrorKind::Cancelled)
    );
    assert_eq!(failure(&events, moved), None);
    assert_eq!(measured(&events), [(newer, 1.0)]);
}

#[test]
fn urgent_lanes_are_served_first() {
    let (worker, mut control) = ready();
    let folder = tempfile::tempdir().unwrap();
    let older = worker.send(profile()).unwrap();
    control.until("features");
    worker
        .send(export(folder.path(), "nothing", vec![]))
        .unwrap();
    worker.send(photo(200)).unwrap();
    let last = worker.send(profile()).unwrap();
    worker.send(measure(1.0)).unwrap();
    control.open();
    let events = until_end(&worker, last);
    let order = [Lane::Image, Lane::Measure, Lane::Export, Lane::Profile];
    assert_eq!(ends(&events)[ends(&events).len() - 4..], order);
    assert!(updates(&events, older).is_empty());
}

#[test]
fn a_measurement_interrupts_a_profile() {
    let (worker, mut control) = ready();
    let request = worker.send(profile()).unwrap();
    control.until("features");
    let urgent = worker.send(measure(1.0)).unwrap();
    control.open();
    let events = until_end(&worker, request);
    let place = |wanted: Generation| {
        let is_end = |e: &Event| matches!(e, Event::Finished { .. }) && generation(e) == wanted;
        events.iter().position(is_end).expect("it ends")
    };
    assert!(place(urgent) < place(request));
}

#[test]
fn exports_survive_everything_that_is_asked_later_and_the_end() {
    let (worker, mut control) = ready();
    let folder = tempfile::tempdir().unwrap();
    let nested = folder.path().join("made").join("for it");
    worker.send(profile()).unwrap();
    control.until("features");
    let exports: Vec<_> = (0..5)
        .map(|i| {
            worker.send(measure(f64::from(i))).unwrap();
            worker.send(profile()).unwrap();
            worker
                .send(export(
                    &nested,
                    &format!("table {i}"),
                    vec![ExportFormat::Csv],
                ))
                .unwrap()
        })
        .collect();
    control.open();
    let events = until_end(&worker, exports[4]);
    for export in &exports {
        assert_eq!(failure(&events, *export), None);
    }
    worker
        .send(export(&nested, "last", vec![ExportFormat::Csv]))
        .unwrap();
    drop(worker);
    let written = std::fs::read_dir(&nested).unwrap().count();
    assert_eq!(written, 6);
}

#[test]
fn an_export_that_cannot_be_written_says_so() {
    let (worker, _control) = ready();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let request = worker
        .send(export(&file, "table", vec![ExportFormat::Csv]))
        .unwrap();
    let events = until_end(&worker, request);
    let error = failure(&events, request).expect("a file is no folder");
    assert_eq!(error.kind, ErrorKind::Output);
    assert!(!error.remedy.is_empty(), "{error}");
}

#[test]
fn a_photograph_that_cannot_be_opened_leaves_the_current_one() {
    let (worker, mut control) = ready();
    control.open();
    let background = Background::default();
    let source = ImageSource::Path("no such folder/no such file.png".into());
    let request = worker
        .send(Command::OpenImage { source, background })
        .unwrap();
    let events = until_end(&worker, request);
    let error = failure(&events, request).expect("the file does not exist");
    assert_eq!(error.kind, ErrorKind::Image);
    assert!(error.what.contains("no such file.png"), "{error}");
    let request = worker.send(profile()).unwrap();
    assert_eq!(failure(&until_end(&worker, request), request), None);
}

#[test]
fn without_a_photograph_a_profile_says_what_is_missing() {
    let (worker, mut control) = start();
    control.open();
    let request = worker.send(profile()).unwrap();
    let events = until_end(&worker, request);
    let error = failure(&events, request).expect("no photograph is open");
    assert_eq!(error.kind, ErrorKind::Request);
}

#[test]
fn the_trained_curve_comes_first_and_then_both_grow() {
    let (worker, mut control) = ready();
    let recipes = vec![recipe(WeightsKind::Random), recipe(WeightsKind::Trained)];
    let request = worker.send(Command::Profile(recipes)).unwrap();
    assert_eq!(control.arrived(), "load trained");
    control.let_in(Permit::Go);
    control.until("load random");
    let mut before = Vec::new();
    while let Ok(event) = worker.events().try_recv() {
        before.push(event);
    }
    assert_eq!(
        updates(&before, request),
        [1],
        "the trained curve is seen before the twin loads"
    );
    control.let_in(Permit::Go);
    control.open();
    let events = until_end(&worker, request);
    assert_eq!(failure(&events, request), None);
    // Both curves are still growing when the twin is first seen.
    let calls: Vec<_> = control.calls.try_iter().collect();
    let first = |name: &str| calls.iter().position(|call| call == name);
    let last = |name: &str| calls.iter().rposition(|call| call == name);
    assert!(first("features trained") < last("features random"));
    assert!(first("features random") < last("features trained"));
}

#[test]
fn what_is_known_is_not_measured_again() {
    let (worker, mut control) = ready();
    control.open();
    let request = worker.send(profile()).unwrap();
    until_end(&worker, request);
    let calls = control.calls.try_iter().count();
    assert!(calls > 0);
    let again = worker.send(profile()).unwrap();
    let events = until_end(&worker, again);
    assert_eq!(updates(&events, again), [0]);
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::EncoderReady { .. }))
    );
    assert_eq!(
        control.calls.try_iter().count(),
        0,
        "the complete profile was measured again"
    );
}

#[test]
fn nobody_reading_neither_blocks_the_worker_nor_loses_an_answer() {
    let (worker, mut control) = ready();
    control.open();
    let folder = tempfile::tempdir().unwrap();
    let exports: Vec<_> = (0..400)
        .map(|_| {
            worker
                .send(export(folder.path(), "nothing", vec![]))
                .unwrap()
        })
        .collect();
    let request = worker.send(profile()).unwrap();
    // The worker reaches the profile although twice four hundred answers do not fit the channel.
    while !control.arrived().starts_with("vjp") {}
    let events = until_end(&worker, request);
    let done = |request: &Generation| {
        let of = |event: &&Event| generation(event) == *request;
        events
            .iter()
            .filter(of)
            .filter(|e| !matches!(e, Event::Progress { .. }))
            .count()
            == 2
    };
    assert!(
        exports.iter().all(done),
        "each export answers with its files and its end"
    );
    assert_eq!(failure(&events, request), None);
    assert!(events.iter().rev().any(|event| match event {
        Event::ProfileUpdated { run, .. } => run.profile.finished,
        _ => false,
    }));
}

#[test]
fn dropping_the_worker_ends_the_thread_after_the_running_step() {
    let (worker, control) = ready();
    worker.send(profile()).unwrap();
    control.until("features");
    let ending = std::thread::spawn(move || drop(worker));
    // The step is running, so the thread cannot have ended: the shutdown waits for this permit.
    control.let_in(Permit::Go);
    // The loop ends when the worker's end of the turnstile is gone, and with it the thread.
    while control.calls.recv_timeout(PATIENCE).is_ok() {
        control.let_in(Permit::Go);
    }
    ending.join().unwrap();
}

#[test]
fn every_event_wakes_the_window_once() {
    let ((calls, _seen), (permits, passes)) = (unbounded(), unbounded::<Permit>());
    drop(permits);
    let turnstile = Turnstile {
        calls,
        permits: passes,
    };
    let (wakes, woken) = unbounded();
    let engine = || FakeEngine {
        turnstile,
        loaded: vec![],
    };
    let worker =
        Worker::spawn_with(engine, DeviceChoice::Auto, move || wakes.send(()).unwrap()).unwrap();
    let opened = worker.send(photo(100)).unwrap();
    let mut events = until_end(&worker, opened).len();
    let events_of_the_rest = worker.events().clone();
    drop(worker);
    events += events_of_the_rest.try_iter().count();
    assert_eq!(woken.try_iter().count(), events);
}

// ---- Weights in memory -----------------------------------------------------------------------------

/// A recipe for another encoder of the fake compute side.
fn recipe_of(encoder: &str, weights: WeightsKind) -> ProfileRecipe {
    ProfileRecipe {
        encoder: encoder.to_owned(),
        ..recipe(weights)
    }
}

/// Profiles that run to their end, and what the compute side was asked to load and unload for them.
fn loads_of(worker: &Worker, control: &Control, recipes: Vec<ProfileRecipe>) -> Vec<String> {
    let request = worker.send(Command::Profile(recipes)).unwrap();
    let events = until_end(worker, request);
    assert!(failure(&events, request).is_none());
    let calls = control.calls.try_iter();
    calls.filter(|call| call.contains("load ")).collect()
}

/// What the worker says of its memory next: names and kinds, least recently used first.
fn memory_with(worker: &Worker, expected: &[(&str, WeightsKind)]) -> etascope::worker::Memory {
    loop {
        if let Event::Memory(memory) = next(worker) {
            let names = memory
                .loaded
                .iter()
                .map(|l| (l.encoder.as_str(), l.weights));
            if names.eq(expected.iter().copied()) {
                return memory;
            }
        }
    }
}

#[test]
fn weights_that_are_not_in_use_give_way_under_the_budget_the_longest_unused_first() {
    use WeightsKind::Trained;
    let (worker, mut control) = ready();
    control.open();
    worker
        .send(Command::SetBudget(2 * WEIGHTS_BYTES + 50))
        .unwrap();
    let one = |name: &str| loads_of(&worker, &control, vec![recipe_of(name, Trained)]);
    assert_eq!(one("a"), ["load a trained"]);
    assert_eq!(one("b"), ["load b trained"]);
    // Used again, so that b is now the longest unused; what is known needs no loading.
    assert_eq!(one("a"), [""; 0]);
    // It goes before the new one comes: the budget holds at every moment.
    assert_eq!(one("c"), ["unload b trained", "load c trained"]);
    assert_eq!(one("a"), [""; 0]);
    assert_eq!(one("b"), ["unload c trained", "load b trained"]);
}

#[test]
fn encoders_in_use_stay_even_beyond_the_budget_and_go_when_they_are_not() {
    use WeightsKind::{Random, Trained};
    let (worker, mut control) = ready();
    control.open();
    worker.send(Command::SetBudget(WEIGHTS_BYTES + 50)).unwrap();
    let both = vec![recipe_of("a", Trained), recipe_of("b", Trained)];
    let together = loads_of(&worker, &control, both);
    assert_eq!(together, ["load a trained", "load b trained"]);
    // Only the twin of b is needed now: the others go before it comes.
    let request = worker
        .send(Command::Profile(vec![recipe_of("b", Random)]))
        .unwrap();
    let memory = memory_with(&worker, &[("b", Random)]);
    assert_eq!(memory.used_bytes(), WEIGHTS_BYTES);
    assert!(memory.is_in_use("b", Random) && !memory.is_in_use("a", Trained));
    until_end(&worker, request);
    let calls: Vec<String> = control.calls.try_iter().collect();
    let order = |call: &str| calls.iter().position(|known| known == call).unwrap();
    assert!(order("unload a trained") < order("load b random"));
}

#[test]
fn a_smaller_budget_takes_effect_at_once_and_another_device_starts_empty() {
    use WeightsKind::{Random, Trained};
    let (worker, mut control) = ready();
    control.open();
    let both = vec![recipe_of("a", Trained), recipe_of("a", Random)];
    loads_of(&worker, &control, both);
    loads_of(&worker, &control, vec![recipe_of("a", Trained)]);
    worker.send(Command::SetBudget(0)).unwrap();
    let memory = memory_with(&worker, &[("a", Trained)]);
    assert_eq!(memory.budget_bytes, 0);
    assert_eq!(
        control.calls.try_iter().collect::<Vec<_>>(),
        ["unload a random"]
    );
    worker.send(Command::UseDevice(DeviceChoice::Cpu)).unwrap();
    memory_with(&worker, &[]);
}

// ---- Singular spectra ------------------------------------------------------------------------------

fn spectrum_recipe(weights: WeightsKind, method: SpectrumMethod) -> SpectrumRecipe {
    SpectrumRecipe {
        encoder: "linear".to_owned(),
        weights,
        readout: Readout::Pooled,
        method,
        seed: 0,
        dither_seed: None,
    }
}

const EXACT: SpectrumMethod = SpectrumMethod::Exact { vectors: 0 };

fn spectra(weights: &[WeightsKind], method: SpectrumMethod) -> Command {
    let recipes = weights.iter().map(|&kind| spectrum_recipe(kind, method));
    Command::Spectrum(recipes.map(SpectrumTask::Values).collect())
}

fn found(events: &[Event], request: Generation) -> Vec<(usize, Arc<SpectrumRun>)> {
    let run = |event: &Event| match event {
        Event::SpectrumFound {
            generation,
            index,
            run,
        } if *generation == request => Some((*index, Arc::clone(run))),
        _ => None,
    };
    events.iter().filter_map(run).collect()
}

fn least(events: &[Event]) -> Vec<Arc<LeastRun>> {
    let run = |event: &Event| match event {
        Event::LeastUpdated { run, .. } => Some(Arc::clone(run)),
        _ => None,
    };
    events.iter().filter_map(run).collect()
}

/// Of the 48 inputs 10, 10, 10, 9 and 9 are added up: the singular values are the roots.
const SIGMA_SQ: [f64; OUTPUT_LEN] = [10.0, 10.0, 10.0, 9.0, 9.0];

#[test]
fn spectra_come_one_after_the_other_with_their_directions() {
    let (worker, mut control) = ready();
    control.open();
    let both = [WeightsKind::Trained, WeightsKind::Random];
    let request = worker.send(spectra(&both, EXACT)).unwrap();
    let events = until_end(&worker, request);
    assert_eq!(failure(&events, request), None);
    let runs = found(&events, request);
    assert_eq!(runs.iter().map(|(i, _)| *i).collect::<Vec<_>>(), [0, 1]);
    for ((_, run), weights) in runs.iter().zip(both) {
        assert_eq!(run.recipe, spectrum_recipe(weights, EXACT));
        assert_eq!((run.feature_len, run.input_len), (OUTPUT_LEN, INPUT_LEN));
        assert_eq!(
            (run.device.as_str(), run.readout.as_str()),
            ("Fake GPU", "pooled")
        );
        for (value, square) in run.spectrum.values.iter().zip(SIGMA_SQ) {
            assert!((value * value - square).abs() < 1e-9, "{value}");
        }
        assert_eq!(run.spectrum.top.len(), OUTPUT_LEN);
    }
    // The encoder is told of under the number of the spectra.
    assert!(events.iter().any(|event| matches!(event,
        Event::EncoderReady { generation, lane: Lane::Spectrum, index: 1, .. }
            if *generation == request)));
}

#[test]
fn leading_values_have_bounds_and_the_least_direction_nears_the_null_space() {
    let (worker, mut control) = ready();
    control.open();
    // Four and the extra dimensions of the search nearly span the feature space, so that all rows are cheaper.
    let method = SpectrumMethod::Leading { count: 4 };
    let request = worker
        .send(spectra(&[WeightsKind::Trained], method))
        .unwrap();
    let runs = found(&until_end(&worker, request), request);
    assert_eq!(runs[0].1.spectrum.bounds, Bounds::Exact);

    let recipe = spectrum_recipe(WeightsKind::Trained, method);
    let largest = runs[0].1.spectrum.values[0];
    let task = SpectrumTask::Least { recipe, largest };
    let request = worker.send(Command::Spectrum(vec![task])).unwrap();
    let steps = least(&until_end(&worker, request));
    let last = steps.last().expect("a direction");
    assert_eq!(last.steps, last.steps_max);
    // Every singular value is above 0.94 σ₁ and dies out in a few steps; f32 is left.
    assert!(last.found.gain < 1e-6, "‖Jv‖ = {}", last.found.gain);
    assert!(steps[0].found.gain > 0.1);
}

#[test]
fn a_spectrum_uses_the_field_of_a_profile_of_the_same_feature() {
    let (worker, mut control) = ready();
    let request = worker.send(profile()).unwrap();
    control.until("prepare");
    control.open();
    until_end(&worker, request);
    while control.calls.try_recv().is_ok() {}
    let request = worker
        .send(spectra(&[WeightsKind::Trained], EXACT))
        .unwrap();
    let events = until_end(&worker, request);
    assert_eq!(found(&events, request).len(), 1);
    let calls: Vec<String> = control.calls.try_iter().collect();
    assert!(
        calls.iter().all(|call| call.starts_with("vjp")),
        "{calls:?}"
    );
}

#[test]
fn newer_spectra_supersede_the_older_and_another_photograph_ends_them() {
    let (worker, mut control) = ready();
    let older = worker
        .send(spectra(&[WeightsKind::Trained], EXACT))
        .unwrap();
    control.until("vjp");
    let newer = worker.send(spectra(&[WeightsKind::Random], EXACT)).unwrap();
    control.let_in(Permit::Go);
    control.until("vjp random");
    let opened = worker.send(photo(7)).unwrap();
    control.open();
    let events = until_end(&worker, newer);
    assert!(found(&events, older).is_empty() && failure(&events, older).is_none());
    assert!(found(&events, newer).is_empty());
    assert_eq!(
        failure(&events, newer).map(|e| e.kind),
        Some(ErrorKind::Cancelled)
    );
    assert!(older < newer && newer < opened);
}

#[test]
fn a_spectrum_comes_before_the_profiles_and_a_wrong_one_says_why() {
    let (worker, mut control) = ready();
    let curve = worker.send(profile()).unwrap();
    control.until("features");
    let method = SpectrumMethod::Leading { count: 0 };
    let wrong = worker
        .send(spectra(&[WeightsKind::Trained], method))
        .unwrap();
    let right = worker
        .send(spectra(&[WeightsKind::Trained], EXACT))
        .unwrap();
    control.open();
    let events = until_end(&worker, curve);
    let ends = ends(&events);
    assert_eq!(ends, [Lane::Spectrum, Lane::Profile]);
    assert_eq!(found(&events, right).len(), 1);
    assert!(wrong < right);
    let wrong = worker
        .send(spectra(&[WeightsKind::Trained], method))
        .unwrap();
    let events = until_end(&worker, wrong);
    assert_eq!(
        failure(&events, wrong).map(|e| e.kind),
        Some(ErrorKind::Request)
    );
}
