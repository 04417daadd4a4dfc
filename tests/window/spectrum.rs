//! The workspace of singular spectra as a reader uses it.

use std::sync::Arc;

use eframe::egui::{Key, Modifiers, OutputCommand};
use egui_kittest::kittest::{NodeT, Queryable};
use etascope::ErrorKind;
use etascope::app::settings::Workspace;
use etascope::app::state::Selected;
use etascope::app::{AxisScale, Options, Settings, UiCommand};
use etascope::encoders::{Readout, registry};
use etascope::geometry::Cost;
use etascope::geometry::spectrum::{BottomDirection, Bounds, JacobianSpectrum, SpectrumMethod};
use etascope::recipe::{SpectrumRecipe, WeightsKind};
use etascope::report::SpectrumRun;
use etascope::worker::{Command, Content, Event, Export, Generation, Lane, LeastRun, SpectrumTask};

use super::stage::{Stage, bump, photo};

const AMPLITUDE: &str = "Distortion a, L2";

/// A window with this workspace in front, a photograph, and finished profiles.
fn stage() -> Stage {
    stage_with(false)
}

fn stage_with(twin: bool) -> Stage {
    let settings = Settings {
        workspace: Workspace::Spectrum,
        welcome_dismissed: true,
        twin,
        ..Settings::default()
    };
    let mut stage = Stage::with(settings, Options::default());
    stage.open_photo();
    stage.finish_profile(bump);
    stage
}

/// The tasks of the newest request for spectra.
fn tasks(stage: &Stage) -> (Generation, Vec<SpectrumTask>) {
    match stage.latest(Lane::Spectrum) {
        Some((generation, Command::Spectrum(tasks))) => (generation, tasks),
        other => panic!("no spectra were asked for: {other:?}"),
    }
}

fn request_count(stage: &Stage) -> usize {
    let sent = stage.sent();
    let spectra = sent.iter().filter(|c| matches!(c, Command::Spectrum(_)));
    spectra.count()
}

/// σ_i = 2 · 0.8^(i−1), with a direction for each of the first.
fn run(recipe: &SpectrumRecipe, image: &str) -> SpectrumRun {
    let spec = registry::find(&recipe.encoder).expect("a known encoder");
    let (count, bounds) = match recipe.method {
        SpectrumMethod::Exact { .. } => (40, Bounds::Exact),
        SpectrumMethod::Leading { count } => (count, Bounds::Within(vec![0.02; count])),
    };
    let values: Vec<f64> = (0..count).map(|i| 2.0 * 0.8f64.powi(i as i32)).collect();
    let input_len = 3 * spec.side_px * spec.side_px;
    let vector: Arc<[f32]> = vec![1.0 / (input_len as f32).sqrt(); input_len].into();
    SpectrumRun {
        image: image.to_owned(),
        image_sha256: "0".repeat(64),
        image_steps: vec![],
        encoder_title: spec.title.to_string(),
        weights_id: "f".repeat(64),
        device: "cpu".to_owned(),
        recipe: recipe.clone(),
        readout: "pooled".to_owned(),
        feature_len: spec.pooled_len,
        input_len,
        spectrum: JacobianSpectrum {
            values,
            bounds,
            top: vec![vector; count.min(16)],
            bottom: vec![],
        },
        cost: Cost {
            vjps: 100,
            ..Cost::default()
        },
        elapsed_secs: 3.0,
    }
}

/// Answers the open request for spectra.
fn answer(stage: &mut Stage) {
    answer_at(stage, "chelsea.png");
}

fn answer_at(stage: &mut Stage, image: &str) {
    let (generation, tasks) = tasks(stage);
    for (index, task) in tasks.iter().enumerate() {
        match task {
            SpectrumTask::Values(recipe) => stage.say(Event::SpectrumFound {
                generation,
                index,
                run: Arc::new(run(recipe, image)),
            }),
            SpectrumTask::Least { recipe, .. } => say_least(stage, generation, index, recipe, 33),
        }
    }
    stage.say(Event::Finished {
        generation,
        lane: Lane::Spectrum,
    });
}

fn say_least(
    stage: &mut Stage,
    generation: Generation,
    index: usize,
    recipe: &SpectrumRecipe,
    steps: usize,
) {
    let run = run(recipe, "chelsea.png");
    stage.say(Event::LeastUpdated {
        generation,
        index,
        run: Arc::new(LeastRun {
            image: run.image,
            image_sha256: run.image_sha256,
            device: run.device,
            recipe: recipe.clone(),
            found: BottomDirection {
                direction: run.spectrum.top[0].clone(),
                gain: 0.004,
                residual: 0.001,
            },
            steps,
            steps_max: 33,
        }),
    });
}

// ---- Asking ----------------------------------------------------------------------------------------

#[test]
fn nothing_is_asked_behind_another_workspace_and_once_in_front() {
    let mut stage = Stage::with_profile();
    assert!(stage.latest(Lane::Spectrum).is_none());
    stage.press(Key::Num2);
    let (_, first) = tasks(&stage);
    let [SpectrumTask::Values(recipe)] = &first[..] else {
        panic!("{first:?}")
    };
    assert_eq!(recipe.encoder, stage.app().state.recipe.encoder);
    assert_eq!(recipe.method, SpectrumMethod::Leading { count: 16 });
    stage.harness.run();
    assert_eq!(request_count(&stage), 1);
    answer(&mut stage);
    // There and back again: what is known is not asked for again.
    stage.press(Key::Num1);
    stage.press(Key::Num2);
    assert_eq!(request_count(&stage), 1);
}

#[test]
fn going_behind_another_workspace_stops_the_work_and_coming_back_asks_again() {
    let mut stage = stage();
    let (older, _) = tasks(&stage);
    stage.press(Key::Num1);
    let cancels = |command: &Command| matches!(command, Command::Cancel(Lane::Spectrum));
    assert!(stage.sent().iter().any(cancels));
    stage.fail(Lane::Spectrum, ErrorKind::Cancelled, "singular spectrum");
    assert_eq!(request_count(&stage), 1, "nothing is asked while hidden");
    stage.press(Key::Num2);
    assert!(tasks(&stage).0 > older);
}

#[test]
fn twin_readout_method_and_photograph_ask_anew_and_the_old_stays_stale() {
    let mut stage = stage();
    answer(&mut stage);
    let is_stale = |stage: &Stage| {
        let state = &stage.app().state;
        state.curves().any(|seen| state.is_spectrum_stale(&seen))
    };
    assert!(!is_stale(&stage));

    stage.press(Key::R);
    let (_, twin) = tasks(&stage);
    assert_eq!(twin.len(), 1, "the trained one is known: {twin:?}");
    assert_eq!(twin[0].recipe().weights, WeightsKind::Random);
    answer(&mut stage);

    let readout = Readout::Logits;
    stage
        .harness
        .state_mut()
        .state
        .choose_readout(readout.clone());
    stage.harness.run();
    let (_, both) = tasks(&stage);
    let weights: Vec<_> = both.iter().map(|task| task.recipe().weights).collect();
    assert_eq!(weights, [WeightsKind::Trained, WeightsKind::Random]);
    assert!(both.iter().all(|task| task.recipe().readout == readout));
    assert!(is_stale(&stage));
    let shown = stage.app().state.shown_direction();
    assert!(shown.is_some_and(|direction| direction.stale));
    answer(&mut stage);
    assert!(!is_stale(&stage));

    stage.press(Key::O);
    stage.type_text("/photos/cat.jpg");
    stage.press(Key::Enter);
    let (generation, _) = stage.latest(Lane::Image).expect("a request");
    let before = request_count(&stage);
    stage.say(Event::ImageOpened {
        generation,
        photo: Arc::new(photo("cat.jpg")),
    });
    assert!(is_stale(&stage));
    assert_eq!(request_count(&stage), before + 1);
    answer_at(&mut stage, "cat.jpg");
    assert!(!is_stale(&stage));
}

#[test]
fn work_that_is_still_wanted_goes_on_and_the_rest_follows() {
    let mut stage = stage();
    // The twin is wanted while the trained spectrum is sought.
    stage.press(Key::R);
    assert_eq!(request_count(&stage), 1);
    answer(&mut stage);
    assert_eq!(request_count(&stage), 2);
    let (_, rest) = tasks(&stage);
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].recipe().weights, WeightsKind::Random);
    answer(&mut stage);
    assert_eq!(request_count(&stage), 2);
}

#[test]
fn a_photograph_that_is_opened_again_does_not_leave_the_question_unanswered() {
    let mut stage = stage();
    // The worker drops the work on the photograph as it opens it, and the question is the same.
    let (older, _) = tasks(&stage);
    stage.fail(Lane::Spectrum, ErrorKind::Cancelled, "singular spectrum");
    assert!(tasks(&stage).0 > older);
    assert!(!stage.shows_part("Singular spectrum."));
}

#[test]
fn the_exact_method_does_not_depend_on_the_seed_and_too_large_features_are_not_asked() {
    let mut stage = stage();
    answer(&mut stage);
    stage.harness.get_by_label_contains("Exact · about").click();
    stage.harness.run();
    let (_, exact) = tasks(&stage);
    let method = SpectrumMethod::Exact { vectors: 0 };
    assert_eq!(exact[0].recipe().method, method);
    // Until it is there the directions are what they were.
    let shown = stage.app().state.shown_direction();
    assert!(shown.is_some_and(|direction| !direction.stale));
    answer(&mut stage);
    let before = request_count(&stage);
    stage.press(Key::N);
    assert_eq!(request_count(&stage), before);

    // 112 × 112 positions.
    let stage_0 = Readout::Stage(0);
    stage.harness.state_mut().state.choose_readout(stage_0);
    stage.harness.run();
    assert_eq!(request_count(&stage), before);
    assert!(stage.shows_part("too large for its whole spectrum"));
    stage.click("Leading values");
    assert_eq!(request_count(&stage), before + 1);
}

// ---- Reading ---------------------------------------------------------------------------------------

#[test]
fn the_table_reads_a_whole_spectrum_and_says_why_a_part_has_none() {
    let mut stage = stage();
    answer(&mut stage);
    assert!(stage.shows_part("Singular values against their index; trained: 16 values"));
    assert!(stage.shows("16"));
    // The largest relative bound: 0.02 of 2 · 0.8^15.
    assert!(stage.shows("28 %"));
    assert!(stage.shows_part("gives entropy, ranks, energies and condition"));
    let exact = SpectrumMethod::Exact { vectors: 0 };
    stage
        .harness
        .state_mut()
        .state
        .choose_spectrum_method(exact);
    stage.harness.run();
    answer(&mut stage);
    // A geometric series: Σσ²/σ₁² = 1/(1 − 0.64), and the first takes 36 %.
    assert!(stage.shows("2.78") && stage.shows("36 %"));
    assert!(stage.shows("40"));
}

#[test]
fn a_failure_is_told_and_space_tries_again() {
    let mut stage = stage();
    stage.fail(
        Lane::Spectrum,
        ErrorKind::Weights,
        "cannot read the weights",
    );
    assert!(stage.shows_part("Cannot read the weights"));
    let before = request_count(&stage);
    stage.harness.run();
    assert_eq!(request_count(&stage), before, "not by itself");
    stage.press(Key::Space);
    assert_eq!(request_count(&stage), before + 1);
}

#[test]
fn escape_stops_the_search_and_space_holds_it() {
    let mut stage = stage();
    stage.press(Key::Space);
    let last = stage.sent().pop();
    assert!(matches!(last, Some(Command::Pause(Lane::Spectrum))));
    stage.press(Key::Space);
    let last = stage.sent().pop();
    assert!(matches!(last, Some(Command::Resume(Lane::Spectrum))));
    stage.press(Key::Escape);
    let cancels = |command: &Command| matches!(command, Command::Cancel(Lane::Spectrum));
    assert!(stage.sent().iter().any(cancels));
    stage.fail(Lane::Spectrum, ErrorKind::Cancelled, "singular spectrum");
    assert_eq!(request_count(&stage), 1);
    stage.press(Key::Space);
    assert_eq!(request_count(&stage), 2);
}

// ---- Directions ------------------------------------------------------------------------------------

#[test]
fn directions_are_stepped_through_and_told() {
    let mut stage = stage();
    answer(&mut stage);
    assert!(stage.shows_part("σ₁ = 2.00"));
    stage.press(Key::ArrowDown);
    assert!(stage.shows_part("σ₂ = 1.60, 80 % of σ₁"));
    stage.press(Key::ArrowUp);
    stage.press(Key::ArrowUp);
    let selected = |stage: &Stage| stage.app().state.spectrum.selected;
    assert_eq!(selected(&stage), Selected::Index(1));
    for _ in 0..40 {
        stage.press(Key::ArrowDown);
    }
    assert_eq!(selected(&stage), Selected::Index(16), "the last of them");
    stage.press(Key::T);
    assert_eq!(selected(&stage), Selected::Index(1));
    assert_eq!(request_count(&stage), 1, "no direction is computed anew");
}

#[test]
fn a_click_in_the_plot_marks_the_nearest_index() {
    let mut stage = stage();
    answer(&mut stage);
    let plot = stage
        .harness
        .get_by_label_contains("Singular values against their index");
    let rect = plot.rect();
    let place = stage.app().view.spectrum_plot.expect("a plot");
    // The places of a logarithmic axis are logarithms.
    let x = place.transform.position_from_point_x(5.2f64.log10());
    let at = eframe::egui::pos2(x, rect.center().y);
    stage.harness.hover_at(at);
    stage.harness.drag_at(at);
    stage.harness.run();
    stage.harness.drop_at(at);
    stage.harness.run();
    assert_eq!(stage.app().state.spectrum.selected, Selected::Index(5));
}

#[test]
fn the_least_direction_is_sought_on_request_with_progress_and_once() {
    let mut stage = stage();
    answer(&mut stage);
    stage.press(Key::L);
    let (generation, least) = tasks(&stage);
    let [SpectrumTask::Least { recipe, largest }] = &least[..] else {
        panic!("{least:?}")
    };
    // With its bound: a smaller one would keep the search from converging.
    assert_eq!(*largest, 2.02);
    say_least(&mut stage, generation, 0, recipe, 7);
    assert!(stage.shows_part("step 7 of 33"));
    assert!(stage.app().state.shown_direction().is_some());
    answer(&mut stage);
    assert!(stage.shows_part("0.20 % of σ₁"));
    let before = request_count(&stage);
    stage.press(Key::T);
    stage.press(Key::L);
    assert_eq!(request_count(&stage), before, "it is known");
}

#[test]
fn the_least_direction_of_another_question_waits_for_its_spectrum() {
    let mut stage = stage();
    stage.press(Key::L);
    assert_eq!(request_count(&stage), 1, "σ₁ is needed first");
    answer(&mut stage);
    let (_, next) = tasks(&stage);
    assert!(matches!(next[..], [SpectrumTask::Least { .. }]), "{next:?}");
}

#[test]
fn the_distortion_moves_by_keys_slider_and_entry() {
    let mut stage = stage();
    answer(&mut stage);
    let amplitude = |stage: &Stage| stage.app().state.spectrum.amplitude_l2;
    let start = amplitude(&stage);
    stage.press(Key::ArrowRight);
    assert!((amplitude(&stage) / start - 10f64.powf(0.02)).abs() < 1e-9);
    stage.press(Key::PageUp);
    stage.press(Key::PageUp);
    let [_, high] = stage.app().state.eta_range();
    assert_eq!(amplitude(&stage), high);
    stage.press(Key::Home);
    assert_eq!(amplitude(&stage), start);
    stage.harness.get_by_label("a, typed").focus();
    stage.harness.run();
    stage.press_with(Modifiers::COMMAND, Key::A);
    stage.type_text("2,5");
    stage.press(Key::Enter);
    assert_eq!(amplitude(&stage), 2.5);
    let slider = stage.harness.get_by_label(AMPLITUDE);
    assert_eq!(slider.accesskit_node().numeric_value(), Some(2.5));
    // η is another magnitude.
    let state = &stage.app().state;
    assert_eq!(state.eta_l2, state.eta_default());
    assert_eq!(request_count(&stage), 1);
}

#[test]
fn the_axes_have_scales_of_their_own() {
    let mut stage = stage();
    answer(&mut stage);
    let response = [stage.app().settings.x_scale, stage.app().settings.y_scale];
    stage.press(Key::Y);
    stage.press(Key::X);
    let settings = &stage.app().settings;
    assert_eq!(settings.spectrum_scales, [AxisScale::Linear; 2]);
    assert_eq!([settings.x_scale, settings.y_scale], response);
}

// ---- Taking away -----------------------------------------------------------------------------------

#[test]
fn the_spectra_on_screen_are_written_and_copied_as_a_command() {
    let mut stage = stage_with(true);
    answer(&mut stage);
    stage.press(Key::E);
    stage.click("Write files");
    let (_, export) = stage.latest(Lane::Export).expect("an export");
    let Command::Export(Export { stem, content, .. }) = export else {
        panic!("{export:?}")
    };
    let Content::Spectra(runs) = content else {
        panic!("spectra")
    };
    assert!(stem.ends_with("-spectrum"), "{stem}");
    let weights: Vec<_> = runs.iter().map(|run| run.recipe.weights).collect();
    assert_eq!(weights, [WeightsKind::Trained, WeightsKind::Random]);

    let context = stage.harness.ctx.clone();
    let app = stage.harness.state_mut();
    app.perform(UiCommand::CopyCommand, &context);
    stage.harness.step();
    let commands = &stage.harness.output().platform_output.commands;
    let line = commands.iter().find_map(|command| match command {
        OutputCommand::CopyText(text) => Some(text.clone()),
        _ => None,
    });
    let encoder = &stage.app().state.recipe.encoder;
    let expected = format!(
        "etascope spectrum --encoder {encoder} --leading 16 --out spectra -- bundled:chelsea"
    );
    assert_eq!(line, Some(expected));
}

// ---- Room ------------------------------------------------------------------------------------------

#[test]
fn the_narrowest_window_still_shows_every_control() {
    let mut stage = stage_with(true);
    answer(&mut stage);
    stage
        .harness
        .set_size(eframe::egui::Vec2::new(1024.0, 640.0));
    stage.harness.run();
    let rect = |name: &str| stage.harness.get_by_label(name).rect();
    for name in [
        AMPLITUDE,
        "a, typed",
        "Top",
        "Least",
        "Index of the singular direction",
        "log σ",
        "Random twin",
        "Number of leading values",
        "New seed",
    ] {
        let rect = rect(name);
        assert!(
            rect.right() <= 1024.0 && rect.bottom() <= 640.0,
            "{name}: {rect:?}"
        );
    }
    // The middle does not reach under the controls.
    let exact = stage.harness.get_by_label_contains("Exact · about").rect();
    let controls = rect("Number of leading values").left();
    assert!(exact.right() < controls && rect("log σ").right() < controls);
}
