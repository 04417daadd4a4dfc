//! The window as a reader uses it: by name and key, with the test in the worker's and the desktop's
//! place and no graphics device.
#![cfg(feature = "gui")]

#[path = "window/edit.rs"]
mod edit;
#[path = "window/library.rs"]
mod library;
#[path = "window/spectrum.rs"]
mod spectrum;
#[path = "window/stage.rs"]
mod stage;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use eframe::egui::{Key, Modifiers, OutputCommand, Pos2, accesskit::Role};
use egui_kittest::kittest::{By, Queryable};
use etascope::app::state::ValueAtEta;
use etascope::app::{Answer, AxisScale, Options, Settings, UiCommand};
use etascope::device::{DeviceChoice, SelfCheck};
use etascope::encoders::Readout;
use etascope::geometry::ScaleEstimate;
use etascope::geometry::directions::DirectionFamily;
use etascope::geometry::profile::Basis;
use etascope::recipe::{Preset, WeightsKind};
use etascope::report::ProfileRun;
use etascope::worker::{Command, Content, Event, ExportFormat, Generation, ImageSource, Lane};
use etascope::{Error, ErrorKind};
use stage::{Stage, bump, decay, encoder_ready, estimate, opened_path, photo, run};

const ETA: &str = "Magnitude η, L2";

fn pressed(key: Key) -> eframe::egui::Event {
    eframe::egui::Event::Key {
        key,
        physical_key: None,
        pressed: true,
        repeat: false,
        modifiers: Modifiers::NONE,
    }
}

fn weights(command: &Command) -> Vec<WeightsKind> {
    match command {
        Command::Profile(recipes) | Command::Measure { recipes, .. } => {
            recipes.iter().map(|recipe| recipe.weights).collect()
        }
        _ => Vec::new(),
    }
}

// ---- First start -----------------------------------------------------------------------------------

#[test]
fn a_first_start_opens_the_bundled_photograph_and_computes_unasked() {
    let mut stage = Stage::first_start();
    let [
        Command::OpenImage {
            source: ImageSource::Bundled(name),
            ..
        },
    ] = &stage.sent()[..]
    else {
        panic!("{:?}", stage.sent())
    };
    assert_eq!(name, "chelsea");
    stage.open_photo();
    let (_, profile) = stage.latest(Lane::Profile).expect("a profile");
    assert_eq!(weights(&profile), [WeightsKind::Trained]);
    // Measuring is more urgent than the curve and would only delay it.
    assert!(stage.latest(Lane::Measure).is_none());
    assert!(stage.shows("What you see"));
    assert!(stage.shows_part("451 × 300 px"));
}

#[test]
fn the_welcome_is_dismissed_for_good_by_one_key() {
    let mut stage = Stage::first_start();
    stage.open_photo();
    stage.press(Key::Escape);
    assert!(!stage.shows("What you see"));
    assert!(
        stage
            .desk
            .borrow()
            .saved
            .last()
            .is_some_and(|saved| saved.welcome_dismissed)
    );
    // The key closed the card; it did not stop the work.
    assert!(
        !stage
            .sent()
            .iter()
            .any(|command| matches!(command, Command::Cancel(_)))
    );
    stage.press(Key::Escape);
    assert!(
        stage
            .sent()
            .iter()
            .any(|c| matches!(c, Command::Cancel(Lane::Profile)))
    );
}

#[test]
fn the_options_choose_photograph_encoder_and_device() {
    let options = Options {
        image: Some(ImageSource::Path("a.png".into())),
        encoder: Some("squeezenet1_1".to_owned()),
        device: Some(DeviceChoice::Cpu),
        screenshot: None,
    };
    let stage = Stage::with(Settings::default(), options);
    assert_eq!(
        opened_path(&stage.sent()[0]).as_deref(),
        Some(Path::new("a.png"))
    );
    assert_eq!(stage.app().state.recipe.encoder, "squeezenet1_1");
    assert_eq!(stage.app().state.device_choice, DeviceChoice::Cpu);
}

// ---- Opening ---------------------------------------------------------------------------------------

#[test]
fn a_photograph_is_opened_by_its_path() {
    let mut stage = Stage::with_profile();
    stage.press(Key::O);
    assert_eq!(stage.desk.borrow().dialogs, 1);
    stage.type_text("/photos/cat.jpg");
    stage.press(Key::Enter);
    let (generation, command) = stage.latest(Lane::Image).expect("a request");
    assert_eq!(
        opened_path(&command).as_deref(),
        Some(Path::new("/photos/cat.jpg"))
    );
    assert!(!stage.shows("Path of a photograph"));
    // Until it has succeeded the old one stays.
    assert!(stage.shows("chelsea.png"));
    stage.say(Event::ImageOpened {
        generation,
        photo: Arc::new(photo("cat.jpg")),
    });
    assert!(stage.shows("cat.jpg") && !stage.shows("chelsea.png"));
    let recent = &stage.app().settings.recent;
    assert_eq!(recent, &[Path::new("/photos/cat.jpg")]);
}

#[test]
fn the_recent_photographs_are_in_the_menu_the_latest_first() {
    let mut stage = Stage::with_profile();
    for name in ["one.png", "two.png"] {
        let state = &mut stage.harness.state_mut().state;
        state.open(ImageSource::Path(Path::new("/photos").join(name)));
        stage.harness.run();
        let (generation, _) = stage.latest(Lane::Image).expect("a request");
        stage.say(Event::ImageOpened {
            generation,
            photo: Arc::new(photo(name)),
        });
    }
    stage.click("File");
    stage.harness.get_by_label_contains("Recent").click();
    stage.harness.run();
    let entry = |stage: &Stage, name: &str| {
        let entry = stage.harness.get_by_role_and_label(Role::Button, name);
        entry.rect()
    };
    assert!(entry(&stage, "two.png").bottom() <= entry(&stage, "one.png").top() + 1.0);
    let older = stage.harness.get_by_role_and_label(Role::Button, "one.png");
    older.click();
    stage.harness.run();
    let (_, command) = stage.latest(Lane::Image).expect("a request");
    assert_eq!(
        opened_path(&command).as_deref(),
        Some(Path::new("/photos/one.png"))
    );
}

#[test]
fn a_missing_dialog_is_explained_and_a_closed_one_is_not() {
    let mut stage = Stage::with_profile();
    stage.press(Key::O);
    stage
        .desk
        .borrow_mut()
        .answers
        .push_back(Answer::DialogMissing);
    stage.harness.run();
    assert!(stage.shows_part("no file dialog"));
    assert!(stage.shows("Path of a photograph"));
    stage
        .desk
        .borrow_mut()
        .answers
        .push_back(Answer::DialogClosed);
    stage.harness.run();
    assert!(!stage.shows("Path of a photograph"));
}

#[test]
fn the_dialogs_answer_is_opened() {
    let mut stage = Stage::with_profile();
    stage.press(Key::O);
    stage
        .desk
        .borrow_mut()
        .answers
        .push_back(Answer::File("/x/y.webp".into()));
    stage.harness.run();
    let (_, command) = stage.latest(Lane::Image).expect("a request");
    assert_eq!(
        opened_path(&command).as_deref(),
        Some(Path::new("/x/y.webp"))
    );
}

#[test]
fn pasted_pixels_and_pasted_paths_are_photographs() {
    let mut stage = Stage::with_profile();
    let image = eframe::egui::ColorImage::filled([3, 2], eframe::egui::Color32::RED);
    stage
        .harness
        .event(eframe::egui::Event::PasteImage(Arc::new(image)));
    stage.harness.run();
    let (_, command) = stage.latest(Lane::Image).expect("a request");
    let Command::OpenImage {
        source:
            ImageSource::Rgba {
                width,
                height,
                rgba,
            },
        ..
    } = command
    else {
        panic!("{command:?}")
    };
    assert_eq!((width, height), (3, 2));
    assert_eq!(rgba[..4], [255, 0, 0, 255]);

    stage.harness.event(eframe::egui::Event::Paste(
        "file:///photos/a%20b.png\n".to_owned(),
    ));
    stage.harness.run();
    let (_, command) = stage.latest(Lane::Image).expect("a request");
    assert_eq!(
        opened_path(&command).as_deref(),
        Some(Path::new("/photos/a b.png"))
    );
}

/// A file that was dropped on the window.
#[derive(Debug)]
struct Dropped(PathBuf);

impl eframe::egui::DroppedFile for Dropped {
    fn path(&self) -> &Path {
        &self.0
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        Err("the worker reads it, not the window".to_owned())
    }
}

#[test]
fn a_dropped_file_is_opened() {
    let mut stage = Stage::with_profile();
    let file = Arc::new(Dropped("/photos/dropped.png".into()));
    stage.harness.input_mut().dropped_files.push(file);
    stage.harness.run();
    let (_, command) = stage.latest(Lane::Image).expect("a request");
    assert_eq!(
        opened_path(&command).as_deref(),
        Some(Path::new("/photos/dropped.png"))
    );
}

// ---- η ---------------------------------------------------------------------------------------------

#[test]
fn dragging_the_slider_moves_marker_and_preview_in_the_same_frame_and_measures() {
    let mut stage = Stage::with_profile();
    let before = stage.forget_sent();
    let rect = stage.harness.get_by_label(ETA).rect();
    let at = |fraction: f32| Pos2::new(rect.left() + fraction * rect.width(), rect.top() + 15.0);
    stage.harness.hover_at(at(0.5));
    stage.harness.drag_at(at(0.5));
    stage.harness.run();
    let mut seen = Vec::new();
    for fraction in [0.6, 0.7, 0.8] {
        stage.harness.hover_at(at(fraction));
        // One frame and no more.
        stage.harness.step();
        let eta = stage.app().state.eta_l2;
        let entry = stage
            .harness
            .get_by_label("η, typed")
            .value()
            .expect("a number");
        assert_eq!(entry, etascope::app::format::significant(eta, 3));
        seen.push(eta);
    }
    stage.harness.drop_at(at(0.8));
    stage.harness.run();
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
    // 0.8 of four decades from 0.01, apart from the margin of the handle.
    assert!((seen[2].log10() - 1.2).abs() < 0.05, "{seen:?}");
    let measured: Vec<f64> = stage.sent()[before..]
        .iter()
        .filter_map(|command| match command {
            Command::Measure { eta_l2, .. } => Some(*eta_l2),
            _ => None,
        })
        .collect();
    assert!(
        seen.iter().all(|eta| measured.contains(eta)),
        "{seen:?} {measured:?}"
    );
}

#[test]
fn the_keyboard_moves_eta_with_and_without_the_focus() {
    let mut stage = Stage::with_profile();
    let decade = |stage: &Stage, from: f64| (stage.app().state.eta_l2 / from).log10();
    let start = stage.app().state.eta_l2;
    stage.press(Key::ArrowRight);
    assert!((decade(&stage, start) - 0.02).abs() < 1e-9);
    stage.press(Key::PageDown);
    assert!((decade(&stage, start) + 0.98).abs() < 1e-9);
    stage.harness.get_by_label(ETA).focus();
    stage.harness.run();
    stage.press(Key::PageUp);
    stage.press(Key::ArrowLeft);
    assert!(decade(&stage, start).abs() < 1e-9);
    // A slow frame may bring several presses at once.
    for focused in [true, false] {
        if !focused {
            let context = stage.harness.ctx.clone();
            context.memory_mut(eframe::egui::Memory::stop_text_input);
            stage.harness.run();
        }
        for _ in 0..3 {
            stage
                .harness
                .input_mut()
                .events
                .push(pressed(Key::ArrowRight));
        }
        stage.harness.run();
    }
    assert!((decade(&stage, start) - 0.12).abs() < 1e-9);
    stage.harness.state_mut().state.set_eta(start);
    stage.press(Key::PageUp);
    stage.press(Key::PageUp);
    stage.press(Key::PageUp);
    // It ends where the ladder ends.
    assert!((stage.app().state.eta_l2 - 100.0).abs() < 1e-9);
    stage.press(Key::Home);
    assert!((stage.app().state.eta_l2 - start).abs() < 1e-12);
}

#[test]
fn a_typed_eta_is_taken_and_nonsense_is_not() {
    let mut stage = Stage::with_profile();
    let mut type_eta = |text: &str| {
        stage.harness.get_by_label("η, typed").focus();
        stage.harness.run();
        stage.press_with(Modifiers::COMMAND, Key::A);
        stage.type_text(text);
        stage.press(Key::Enter);
        stage.app().state.eta_l2
    };
    assert!((type_eta("2,51") - 2.51).abs() < 1e-12);
    assert!((type_eta("nonsense") - 2.51).abs() < 1e-12);
    assert!((type_eta("1e9") - 100.0).abs() < 1e-9);
}

#[test]
fn the_marker_is_dragged_in_the_plot() {
    let mut stage = Stage::with_profile();
    let plot = stage
        .harness
        .get(By::new().role(Role::Figure).label_contains("Response r"));
    let rect = plot.rect();
    let at = |fraction: f32| Pos2::new(rect.left() + fraction * rect.width(), rect.center().y);
    stage.harness.hover_at(at(0.5));
    stage.harness.run();
    stage.harness.drag_at(at(0.5));
    stage.harness.step();
    let middle = stage.app().state.eta_l2;
    stage.harness.hover_at(at(0.25));
    stage.harness.step();
    stage.harness.step();
    let left = stage.app().state.eta_l2;
    stage.harness.drop_at(at(0.25));
    stage.harness.run();
    // The frame is the ladder of four decades and a margin of 0.12 at each end.
    assert!(middle.log10().abs() < 0.05, "{middle}");
    assert!((left.log10() + 1.06).abs() < 0.05, "{left}");
}

#[test]
fn the_preview_is_drawn_perturbed_right_of_the_seam() {
    let mut stage = Stage::rendered();
    stage.open_photo();
    stage.finish_profile(bump);
    stage.press(Key::PageUp);
    stage.harness.remove_cursor();
    stage.harness.run();
    let seam = stage
        .harness
        .get(By::new().role(Role::Slider).label_contains("Seam"))
        .rect();
    let picture = stage.harness.render().expect("a picture");
    let grey = |fraction: f32| {
        let at = seam.min + fraction * seam.size();
        let pixel = picture.get_pixel(at.x as u32, at.y as u32).0;
        assert!(pixel[0] == pixel[1] && pixel[1] == pixel[2], "{pixel:?}");
        f32::from(pixel[0])
    };
    // The photograph is 0.5 everywhere, the direction the same in all 3 · 224² values, η is 10.
    let step = 10.0 / (3.0 * 224.0 * 224.0_f32).sqrt();
    // Half a level is the rounding to eight bits.
    assert!((grey(0.2) - 127.5).abs() <= 0.51, "{}", grey(0.2));
    assert!(
        (grey(0.8) - 255.0 * (0.5 + step)).abs() <= 0.51,
        "{}",
        grey(0.8)
    );
}

#[test]
fn the_measured_value_at_the_exact_eta_replaces_the_interpolated_one() {
    let mut stage = Stage::with_profile();
    stage.harness.state_mut().state.set_eta(2.5);
    stage.harness.run();
    let (generation, command) = stage.latest(Lane::Measure).expect("a measurement");
    assert!(matches!(command, Command::Measure { eta_l2, .. } if eta_l2 == 2.5));
    let value = |stage: &Stage| stage.app().state.lead().trained.value_at(2.5);
    assert!(matches!(value(&stage), ValueAtEta::Interpolated(_)));
    let answer = |generation| Event::Measured {
        generation,
        index: 0,
        estimate: estimate(2.5, 3.47, true),
    };
    // An answer to an older question changes nothing.
    stage.say(answer(Generation(generation.0 - 1)));
    assert!(matches!(value(&stage), ValueAtEta::Interpolated(_)));
    stage.say(answer(generation));
    assert!(matches!(value(&stage), ValueAtEta::Measured(e) if e.r == 3.47));
}

/// A profile with each scale's denominator from the same directions, as it is before the trace.
fn without_trace(run: &ProfileRun) -> ProfileRun {
    let mut run = run.clone();
    let profile = Arc::make_mut(&mut run.profile);
    profile.finished = false;
    for scale in &mut profile.scales {
        scale.basis = Basis::SameDirections;
        scale.directions = 4;
    }
    run
}

#[test]
fn the_value_at_the_marker_is_measured_again_when_the_profile_knows_more() {
    let mut stage = Stage::new();
    stage.open_photo();
    stage.harness.state_mut().state.set_eta(2.0);
    stage.harness.run();
    let (profile, command) = stage.latest(Lane::Profile).expect("a profile");
    let Command::Profile(recipes) = command else {
        panic!("a profile")
    };
    let update = |stage: &mut Stage, run: &ProfileRun| {
        stage.say(Event::ProfileUpdated {
            generation: profile,
            index: 0,
            run: Arc::new(run.clone()),
        });
    };
    let measure = |stage: &Stage| {
        stage
            .latest(Lane::Measure)
            .map(|(generation, _)| generation)
    };
    let answer = |stage: &mut Stage, r, basis, directions| {
        let generation = measure(stage).expect("a measurement");
        let estimate = ScaleEstimate {
            directions,
            basis,
            ..estimate(2.0, r, true)
        };
        stage.say(Event::Measured {
            generation,
            index: 0,
            estimate,
        });
    };
    let shown = |stage: &Stage| match stage.app().state.lead().trained.value_at(2.0) {
        ValueAtEta::Measured(estimate) => Some(estimate.r),
        _ => None,
    };

    let finished = run(&recipes[0], bump);
    let early = without_trace(&finished);
    update(&mut stage, &early);
    let first = measure(&stage).expect("a measurement with the first profile");
    answer(&mut stage, 1.16, Basis::SameDirections, 16);
    assert_eq!(shown(&stage), Some(1.16));
    // More of the same asks for nothing new.
    update(&mut stage, &early);
    assert_eq!(measure(&stage), Some(first));

    // With the trace the early value gives way to the curve until it is measured by the trace too.
    let mut traced = finished.clone();
    Arc::make_mut(&mut traced.profile).finished = false;
    update(&mut stage, &traced);
    let second = measure(&stage).expect("a measurement");
    assert!(second > first);
    assert_eq!(shown(&stage), None);
    answer(&mut stage, 1.02, Basis::Trace, 4);
    assert_eq!(shown(&stage), Some(1.02));
    answer(&mut stage, 1.01, Basis::Trace, 16);
    assert_eq!(shown(&stage), Some(1.01));

    update(&mut stage, &finished);
    assert_eq!(measure(&stage), Some(second));
    stage.say(Event::Finished {
        generation: profile,
        lane: Lane::Profile,
    });
    let third = measure(&stage).expect("a measurement");
    assert!(third > second);
    // Its first answer, of few directions, does not replace the better one.
    answer(&mut stage, 1.05, Basis::Trace, 4);
    assert_eq!(shown(&stage), Some(1.01));
    answer(&mut stage, 1.0, Basis::Trace, 16);
    assert_eq!(shown(&stage), Some(1.0));
}

#[test]
fn a_finished_curve_has_the_last_word_on_its_own_scales() {
    let mut stage = Stage::new();
    stage.open_photo();
    // The marker starts at 1, which is on the ladder.
    let (profile, command) = stage.latest(Lane::Profile).expect("a profile");
    let Command::Profile(recipes) = command else {
        panic!("a profile")
    };
    let finished = run(&recipes[0], bump);
    stage.say(Event::ProfileUpdated {
        generation: profile,
        index: 0,
        run: Arc::new(without_trace(&finished)),
    });
    let (generation, _) = stage.latest(Lane::Measure).expect("a measurement");
    let early = ScaleEstimate {
        basis: Basis::SameDirections,
        directions: 16,
        ..estimate(1.0, 1.16, true)
    };
    stage.say(Event::Measured {
        generation,
        index: 0,
        estimate: early,
    });
    let value = |stage: &Stage| stage.app().state.lead().trained.value_at(1.0);
    assert!(matches!(value(&stage), ValueAtEta::Measured(e) if e.r == 1.16));
    stage.finish_profile(bump);
    assert!(matches!(value(&stage), ValueAtEta::Measured(e) if e.r == bump(1.0)));
    let (latest, _) = stage.latest(Lane::Measure).expect("a measurement");
    assert_eq!(latest, generation, "nothing is left to measure");
}

// ---- Twin, recipe, presets -------------------------------------------------------------------------

#[test]
fn r_shows_the_twin_and_hides_it_again() {
    let mut stage = Stage::with_profile();
    stage.press(Key::R);
    let (_, command) = stage.latest(Lane::Profile).expect("a profile");
    assert_eq!(
        weights(&command),
        [WeightsKind::Trained, WeightsKind::Random]
    );
    stage.finish_profile(decay);
    assert!(stage.app().state.lead().twin.run.is_some());
    assert!(stage.shows("twin"));
    assert_eq!(stage.app().state.exportable().len(), 2);
    stage.press(Key::R);
    assert!(!stage.shows("twin"));
    assert_eq!(stage.app().state.exportable().len(), 1);
}

#[test]
fn a_changed_question_makes_the_curve_stale_until_its_answer_comes() {
    let mut stage = Stage::with_profile();
    let old = stage.latest(Lane::Profile).expect("a profile").0;
    stage
        .harness
        .get_by_role_and_label(Role::TextInput, "Seed")
        .focus();
    stage.harness.run();
    stage.press_with(Modifiers::COMMAND, Key::A);
    stage.type_text("17");
    stage.press(Key::Enter);
    let (new, command) = stage.latest(Lane::Profile).expect("a profile");
    let Command::Profile(recipes) = command else {
        panic!("a profile")
    };
    assert_eq!(recipes[0].seed, 17);
    assert!(
        stage.app().state.lead().trained.stale && stage.app().state.lead().trained.run.is_some()
    );
    // The superseded request still speaks.
    let late = Arc::new(run(&recipes[0], decay));
    stage.say(Event::ProfileUpdated {
        generation: old,
        index: 0,
        run: late,
    });
    assert!(stage.app().state.lead().trained.stale);
    let fresh = Arc::new(run(&recipes[0], bump));
    stage.say(Event::ProfileUpdated {
        generation: new,
        index: 0,
        run: fresh,
    });
    assert!(!stage.app().state.lead().trained.stale);
}

#[test]
fn the_controls_choose_encoder_and_readout() {
    let mut stage = Stage::with_profile();
    stage
        .harness
        .get_by_role_and_label(Role::ComboBox, "Readout")
        .click();
    stage.harness.run();
    let stage_3 = &stage.app().state.spec().stages[3];
    let [c, h, w] = stage_3.shape;
    let name = format!("{} · {c} × {h} × {w}", stage_3.name);
    stage.click(&name);
    assert_eq!(stage.app().state.recipe.readout, Readout::Stage(3));
    stage
        .harness
        .get_by_role_and_label(Role::ComboBox, "Encoder")
        .click();
    stage.harness.run();
    let node = stage
        .harness
        .get(By::new().role(Role::Button).label_contains("SqueezeNet"));
    node.click();
    stage.harness.run();
    let recipe = &stage.app().state.recipe;
    assert_eq!(
        (recipe.encoder.as_str(), &recipe.readout),
        ("squeezenet1_1", &Readout::Pooled)
    );
}

fn choose_family(stage: &mut Stage, name: &str) -> DirectionFamily {
    stage
        .harness
        .get_by_role_and_label(Role::ComboBox, "Directions")
        .click();
    stage.harness.run();
    stage.click(name);
    let (_, command) = stage.latest(Lane::Profile).expect("a profile");
    let Command::Profile(recipes) = command else {
        panic!("a profile")
    };
    recipes[0].family.clone()
}

#[test]
fn every_direction_family_can_be_chosen_and_is_labelled_as_the_papers_or_ours() {
    let names = [
        "random signs · ours",
        "low-pass noise · ours",
        "gradient of the top logit · ours",
        "top singular vectors · ours",
        "toward another image · ours",
        "along a manipulation · ours",
        "noise inside a mask · ours",
        "isotropic · the paper’s",
    ];
    let mut stage = Stage::with_profile();
    let families: Vec<_> = names
        .iter()
        .map(|name| choose_family(&mut stage, name))
        .collect();
    for (i, family) in families.iter().enumerate() {
        assert!(
            families[..i].iter().all(|other| other != family),
            "{family:?}"
        );
    }
    assert_eq!(families[7], DirectionFamily::Isotropic);
    // Toward a photograph that is not the one on screen would be no direction.
    let DirectionFamily::Toward { image } = &families[4] else {
        panic!("{:?}", families[4])
    };
    assert_ne!(image, "bundled:chelsea");
}

#[test]
fn directions_lead_toward_any_photograph_by_its_path() {
    let mut stage = Stage::with_profile();
    choose_family(&mut stage, "toward another image · ours");
    stage
        .harness
        .get_by_role_and_label(Role::TextInput, "Path of another photograph")
        .focus();
    stage.harness.run();
    stage.type_text(" /photos/my dog.jpg");
    stage.press(Key::Enter);
    let (_, command) = stage.latest(Lane::Profile).expect("a profile");
    let Command::Profile(recipes) = command else {
        panic!("a profile")
    };
    let image = "/photos/my dog.jpg".to_owned();
    assert_eq!(recipes[0].family, DirectionFamily::Toward { image });
    // It is named in the menu, without its folder, and the field is free for the next.
    let menu = stage
        .harness
        .get_by_role_and_label(Role::ComboBox, "Toward");
    assert_eq!(menu.value().as_deref(), Some("my dog.jpg"));
    assert_eq!(stage.app().view.toward_text, "");
}

#[test]
fn a_mask_is_painted_on_the_photograph() {
    let mut stage = Stage::with_profile();
    let seam = stage
        .harness
        .get(By::new().role(Role::Slider).label_contains("Seam"))
        .rect();
    let before = choose_family(&mut stage, "noise inside a mask · ours");
    stage.click("Paint");
    let at = |x: f32, y: f32| seam.min + eframe::egui::Vec2::new(x, y) * seam.size();
    stage.harness.hover_at(at(0.2, 0.2));
    stage.harness.run();
    stage.harness.drag_at(at(0.2, 0.2));
    stage.harness.run();
    stage.harness.hover_at(at(0.8, 0.2));
    stage.harness.run();
    // Nothing is computed before the brush is lifted, and the seam has not moved.
    assert_eq!(stage.app().state.recipe.family, before);
    stage.harness.drop_at(at(0.8, 0.2));
    stage.harness.run();
    assert!((stage.app().view.seam - 0.5).abs() < 1e-6);
    let DirectionFamily::Masked { mask } = &stage.app().state.recipe.family else {
        panic!("{:?}", stage.app().state.recipe.family)
    };
    assert_eq!(mask.discs.len(), 3);
    for (disc, x) in mask.discs[1..].iter().zip([0.2, 0.8]) {
        assert!(
            (disc.x - x).abs() < 0.01 && (disc.y - 0.2).abs() < 0.01,
            "{disc:?}"
        );
    }
}

#[test]
fn a_mask_is_made_without_the_mouse() {
    let mut stage = Stage::with_profile();
    choose_family(&mut stage, "noise inside a mask · ours");
    let discs = |stage: &Stage| match &stage.app().state.recipe.family {
        DirectionFamily::Masked { mask } => mask.discs.clone(),
        other => panic!("{other:?}"),
    };
    let first = discs(&stage)[0];
    stage.harness.get_by_label("Add disc").focus();
    stage.harness.run();
    stage.press(Key::Enter);
    // The new disc lies on the last one until its figures are changed.
    assert_eq!(discs(&stage), [first, first]);
    assert!(stage.shows("Disc 2 of 2"));
    // All of it has room in the column of controls.
    let right = stage.harness.get_by_label("Clear").rect().right();
    assert!(right < 1240.0, "{right}");
    let name = "Centre of the last disc, from left, per cent";
    stage.harness.get_by_label(name).focus();
    stage.harness.run();
    stage.press(Key::ArrowUp);
    let discs = discs(&stage);
    assert_eq!(discs[0], first);
    assert!(discs[1].x > first.x && discs[1].y == first.y, "{discs:?}");
}

#[test]
fn the_papers_preset_tells_its_time_and_waits_for_the_start() {
    let mut stage = Stage::with_profile();
    let before = stage.forget_sent();
    stage.harness.state_mut().state.choose_preset(Preset::Paper);
    stage.harness.run();
    assert!(
        !stage.sent()[before..]
            .iter()
            .any(|c| matches!(c, Command::Profile(_)))
    );
    // 20 s for 2,176 forwards, 64 JVPs at 1.6 and 32 VJPs at 2.8 forwards, so 2,368 forwards in all.
    let secs = |stage: &Stage, preset| {
        let secs = stage.app().state.estimated_secs(preset);
        secs.expect("a time") * 2368.0 / 20.0
    };
    // The paper has 17 scales with 2,048 directions and 256 JVPs; Φ(x) and the rounding take 9 more.
    let paper = secs(&stage, Preset::Paper);
    assert!(
        (paper - (9.0 + 34_816.0 + 256.0 * 1.6)).abs() < 1e-6,
        "{paper}"
    );
    // Of 64 pairs at most, with their JVPs; Hutch++ multiplies 32 times by JJᵀ, then 64 times by Jᵀ.
    let interactive = secs(&stage, Preset::Interactive);
    let expected = 9.0 + 2176.0 + (64.0 + 32.0) * 1.6 + 96.0 * 2.8;
    assert!((interactive - expected).abs() < 1e-6, "{interactive}");
    assert!(stage.shows("about 4 min 57 s"));
    stage.click("Start");
    let (_, command) = stage.latest(Lane::Profile).expect("a profile");
    let Command::Profile(recipes) = command else {
        panic!("a profile")
    };
    assert_eq!((recipes[0].pairs_max, recipes[0].jvps), (1024, 256));
    // Toward another image there is one direction and its antipode, and one JVP.
    let image = "bundled:coffee".to_owned();
    let state = &mut stage.harness.state_mut().state;
    state.choose_family(DirectionFamily::Toward { image });
    let single = secs(&stage, Preset::Paper);
    assert!((single - (9.0 + 34.0 + 1.6)).abs() < 1e-6, "{single}");
}

// ---- Work under way --------------------------------------------------------------------------------

#[test]
fn progress_is_told_in_words_and_cancel_keeps_what_is_shown() {
    let mut stage = Stage::with_profile();
    stage.press(Key::N);
    stage.progress(Lane::Profile, "96 of 128 directions · ± 3 %", 0.7);
    assert!(stage.shows("96 of 128 directions · ± 3 % · 12 s left"));
    stage.click("Cancel");
    assert!(matches!(
        stage.sent().last(),
        Some(Command::Cancel(Lane::Profile))
    ));
    stage.fail(Lane::Profile, ErrorKind::Cancelled, "profile");
    // Stopped on request: no error, the curve stays.
    assert!(stage.app().state.messages.is_empty());
    assert!(stage.app().state.lead().trained.run.is_some());
    stage.press(Key::Space);
    assert!(matches!(stage.sent().last(), Some(Command::Profile(_))));
}

#[test]
fn space_pauses_and_resumes() {
    let mut stage = Stage::new();
    stage.open_photo();
    stage.press(Key::Space);
    assert!(matches!(
        stage.sent().last(),
        Some(Command::Pause(Lane::Profile))
    ));
    assert!(stage.shows_part("paused"));
    stage.click("Resume");
    assert!(matches!(
        stage.sent().last(),
        Some(Command::Resume(Lane::Profile))
    ));
}

#[test]
fn an_idle_window_does_not_repaint() {
    let mut stage = Stage::with_profile();
    stage.harness.run();
    let viewport = &stage.harness.output().viewport_output[&eframe::egui::ViewportId::ROOT];
    // The cursor of a text field blinks; here none has the focus.
    assert_eq!(viewport.repaint_delay, std::time::Duration::MAX);
}

// ---- Export and copy -------------------------------------------------------------------------------

#[test]
fn the_curves_on_screen_are_exported() {
    let mut stage = Stage::with_profile();
    stage.press(Key::E);
    stage
        .harness
        .get_by_role_and_label(Role::TextInput, "Folder")
        .focus();
    stage.harness.run();
    stage.press_with(Modifiers::COMMAND, Key::A);
    stage.type_text("/results");
    stage.click("PNG: the figure at 300 dpi");
    stage.click("Write files");
    let (generation, command) = stage.latest(Lane::Export).expect("an export");
    let Command::Export(export) = command else {
        panic!("an export")
    };
    assert_eq!(export.folder, Path::new("/results"));
    assert_eq!(export.stem, "chelsea-efficientnet_lite0");
    assert_eq!(
        export.formats,
        [ExportFormat::Csv, ExportFormat::Json, ExportFormat::Svg]
    );
    let Content::Profiles(runs) = &export.content else {
        panic!("profiles")
    };
    assert_eq!(runs.len(), 1);
    let files = vec!["/results/a.csv".into(), "/results/a.json".into()];
    stage.say(Event::Exported { generation, files });
    stage.say(Event::Finished {
        generation,
        lane: Lane::Export,
    });
    assert!(stage.shows("2 files written") && stage.shows("/results/a.csv"));
}

#[test]
fn the_copied_command_is_the_recipe() {
    let mut stage = Stage::with_profile();
    stage.harness.state_mut().state.set_seed(5);
    let context = stage.harness.ctx.clone();
    stage
        .harness
        .state_mut()
        .perform(UiCommand::CopyCommand, &context);
    stage.harness.step();
    let commands = &stage.harness.output().platform_output.commands;
    let line = commands.iter().find_map(|command| match command {
        OutputCommand::CopyText(text) => Some(text.clone()),
        _ => None,
    });
    let line = line.expect("a copied line");
    let expected = etascope::cli::command_line(
        stage.app().state.source.as_ref().expect("a photograph"),
        std::slice::from_ref(&stage.app().state.recipe),
        false,
        &DeviceChoice::Auto,
        etascope::images::Background::default(),
        Path::new("profile"),
    );
    assert_eq!(line, expected.expect("a command"));
    assert!(line.contains("--seed 5"), "{line}");
}

// ---- Failures --------------------------------------------------------------------------------------

#[test]
fn every_failure_says_what_why_and_what_to_do_and_changes_nothing() {
    let lanes = [
        (Lane::Image, ErrorKind::Image, "cannot open “cat.png”"),
        (Lane::Profile, ErrorKind::Weights, "cannot load the weights"),
        (Lane::Measure, ErrorKind::Numeric, "cannot measure r"),
        (Lane::Export, ErrorKind::Output, "cannot write “a.csv”"),
        (Lane::Device, ErrorKind::Device, "cannot use “llvmpipe”"),
        (
            Lane::Profile,
            ErrorKind::Internal,
            "the job ended by a panic",
        ),
    ];
    for (lane, kind, what) in lanes {
        let mut stage = Stage::with_profile();
        match lane {
            Lane::Image => stage
                .harness
                .state_mut()
                .state
                .open(ImageSource::Path("cat.png".into())),
            Lane::Profile => stage.harness.state_mut().state.set_seed(9),
            Lane::Measure => stage.harness.state_mut().state.set_eta(7.0),
            Lane::Export => {
                let formats = vec![ExportFormat::Csv];
                stage
                    .harness
                    .state_mut()
                    .state
                    .export("/x".into(), "a".to_owned(), formats);
            }
            Lane::Device => {
                let choice = DeviceChoice::Adapter("llvmpipe".to_owned());
                stage.harness.state_mut().state.choose_device(choice);
            }
            other => unreachable!("{other:?} has tests of its own"),
        }
        stage.harness.run();
        stage.fail(lane, kind, what);
        let mut capital = what.to_owned();
        capital.replace_range(..1, &what[..1].to_uppercase());
        assert!(stage.shows(&format!("{capital}.")), "{lane:?} {kind:?}");
        assert!(stage.shows("The reason it gave.") && stage.shows("Do this instead."));
        let state = &stage.app().state;
        assert!(
            state
                .photo
                .as_ref()
                .is_some_and(|photo| photo.name == "chelsea.png")
        );
        assert!(state.lead().trained.run.is_some());
        if lane == Lane::Device {
            assert_eq!(
                state.device_choice,
                DeviceChoice::Cpu,
                "the device that still works"
            );
        }
        stage.click("Dismiss");
        assert!(!stage.shows("The reason it gave."));
        // It stays in the list.
        stage.click("Help");
        stage.click("Messages");
        assert!(stage.shows("The reason it gave."));
    }
}

#[test]
fn a_worker_that_has_ended_is_told() {
    let mut stage = Stage::with_profile();
    stage.script.borrow_mut().ended = true;
    stage.press(Key::N);
    assert!(stage.shows("The worker has ended."));
}

#[test]
fn settings_that_cannot_be_saved_are_told_once() {
    let mut stage = Stage::with_profile();
    for _ in 0..2 {
        let error = Error::new(
            ErrorKind::Output,
            "cannot save the settings",
            "read-only",
            "Go on",
        );
        stage
            .desk
            .borrow_mut()
            .answers
            .push_back(Answer::SettingsLost(error));
        stage.harness.run();
    }
    assert_eq!(stage.app().state.messages.len(), 1);
    assert!(stage.shows("Cannot save the settings."));
}

#[test]
fn a_device_that_disagrees_with_the_cpu_is_warned_of_and_can_be_left() {
    let mut stage = Stage::new();
    stage.open_photo();
    let (generation, command) = stage.latest(Lane::Profile).expect("a profile");
    let Command::Profile(recipes) = command else {
        panic!("a profile")
    };
    let check = |difference| {
        Some(SelfCheck {
            largest_relative_difference: difference,
            bound: 1e-3,
        })
    };
    stage.say(encoder_ready(generation, 0, &recipes[0], check(2e-5)));
    assert!(!stage.shows_part("not to be trusted"));
    stage.say(encoder_ready(generation, 0, &recipes[0], check(0.2)));
    assert!(stage.shows_part("not to be trusted"));
    stage.click("Use cpu");
    assert!(matches!(
        stage.sent().last(),
        Some(Command::UseDevice(DeviceChoice::Cpu))
    ));
}

#[test]
fn software_adapters_are_named_as_such() {
    let mut stage = Stage::with_profile();
    stage
        .harness
        .get_by_role_and_label(Role::ComboBox, "Device")
        .click();
    stage.harness.run();
    stage.click("llvmpipe · vulkan, software");
    let choice = DeviceChoice::Adapter("llvmpipe".to_owned());
    assert!(matches!(stage.sent().last(), Some(Command::UseDevice(c)) if *c == choice));
}

// ---- What is read ----------------------------------------------------------------------------------

#[test]
fn undefined_figures_are_dashes_and_never_zero() {
    let mut stage = Stage::new();
    stage.open_photo();
    stage.finish_profile(decay);
    // A decaying curve has no onset, peak, width or crossing.
    let dashes = stage.harness.query_all_by_label("—").count();
    assert_eq!(dashes, 5);
    assert!(stage.shows("decay"));
    assert!(!stage.shows("0") && !stage.shows("NaN"));
}

#[test]
fn the_axes_switch_between_log_and_linear() {
    let mut stage = Stage::with_profile();
    stage.click("log r");
    assert_eq!(stage.app().settings.y_scale, AxisScale::Log);
    stage.press(Key::X);
    assert_eq!(stage.app().settings.x_scale, AxisScale::Linear);
    // The marker is where the reader left it.
    assert!((stage.app().state.eta_l2 - 1.0).abs() < 1e-12);
}

#[test]
fn the_list_of_keys_opens_with_a_question_mark_and_closes_with_escape() {
    let mut stage = Stage::with_profile();
    stage.press_with(Modifiers::SHIFT, Key::Questionmark);
    assert!(stage.shows("η or rank much larger"));
    stage.press(Key::Escape);
    assert!(!stage.shows("η or rank much larger"));
}

#[test]
fn letters_typed_into_a_field_are_no_commands() {
    let mut stage = Stage::with_profile();
    stage.press(Key::O);
    let before = stage.forget_sent();
    stage.press(Key::R);
    stage.press(Key::N);
    assert_eq!(stage.forget_sent(), before);
    assert!(!stage.app().state.twin_shown);
}

#[test]
fn every_explanation_can_be_opened() {
    let mut stage = Stage::with_profile();
    stage.click("About: Response r");
    assert!(stage.shows_part("formula: mean ‖Φ(x+ηu) − Φ(x)‖²"));
    stage.press(Key::Escape);
}

#[test]
fn the_narrowest_window_still_shows_every_control() {
    let mut stage = Stage::with_profile();
    stage
        .harness
        .set_size(eframe::egui::Vec2::new(1024.0, 640.0));
    stage.harness.run();
    for name in [ETA, "η, typed", "Cancel", "Split", "log η"] {
        let rect = stage.harness.get_by_label(name).rect();
        assert!(
            rect.right() <= 1024.0 && rect.bottom() <= 640.0,
            "{name}: {rect:?}"
        );
    }
}
