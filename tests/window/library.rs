//! The card of the encoders, weight files, and encoders side by side.

use std::path::Path;
use std::sync::Arc;

use eframe::egui::{Key, Modifiers, accesskit::Role};
use egui_kittest::kittest::{By, NodeT, Queryable};
use etascope::app::state::SHOWN_MAX;
use etascope::app::{Answer, Options, Settings};
use etascope::device::DeviceChoice;
use etascope::encoders::weights::checkpoint::Checkpoint;
use etascope::encoders::weights::infer::Proposal;
use etascope::encoders::{Readout, registry};
use etascope::images::Background;
use etascope::recipe::WeightsKind;
use etascope::worker::library::{Holding, Inspection, LibraryAnswer, LibraryRequest, Offer};
use etascope::worker::{Command, Event, ImageSource, Lane, LoadedWeights, Memory};
use etascope::{Error, ErrorKind};

use crate::stage::{Stage, bump, decay};

const SQUEEZENET: &str = "squeezenet1_1";
const EFFICIENTNET: &str = "efficientnet_lite0";
/// Published, to be fetched, 224 px.
const RESNET: &str = "resnet50.tv2_in1k";
/// At 384 px.
const SWIN: &str = "swinv2_base_window12to24_192to384.ms_in22k_ft_in1k";
const GATED: &str = "dinov3_vitb16.lvd1689m";
const BY_HAND: &str = "resnet50.imagenet_sd";

/// All rows; of the named ones the weights are here, whatever this machine holds.
fn holdings(here: &[&str]) -> Vec<Holding> {
    let rows = registry::all_rows().into_iter();
    let holding = |row: &'static registry::Row| {
        let mut holding = Holding::of(row);
        let name: &str = &row.spec.name;
        holding.status.installed = here.contains(&name);
        holding.status.can_be_fetched = row.origin.is_fetched();
        holding.status.path = None;
        holding
    };
    rows.map(holding).collect()
}

fn only_bundled() -> Vec<Holding> {
    holdings(&[EFFICIENTNET, SQUEEZENET])
}

/// A window with a finished curve and the card of the encoders, listed.
fn with_card(holdings: Vec<Holding>) -> Stage {
    let mut stage = Stage::with_profile();
    stage.press(Key::B);
    assert_eq!(stage.asked(), Some(LibraryRequest::List));
    stage.answer(LibraryAnswer::Listed(holdings));
    stage
}

fn title(name: &str) -> &'static str {
    &registry::find(name).expect("a known encoder").title
}

/// Rows of the list that are on screen.
fn listed(stage: &Stage) -> Vec<String> {
    let rows = stage.harness.query_all_by_role(Role::ListBoxOption);
    rows.map(|row| row.accesskit_node().label().unwrap_or_default())
        .collect()
}

fn select(stage: &mut Stage, name: &str) {
    let view = &mut stage.harness.state_mut().view;
    view.library.select(name);
    stage.harness.run();
}

fn encoders(command: &Command) -> Vec<(String, WeightsKind)> {
    let Command::Profile(recipes) = command else {
        panic!("a profile")
    };
    let pair = |recipe: &etascope::recipe::ProfileRecipe| (recipe.encoder.clone(), recipe.weights);
    recipes.iter().map(pair).collect()
}

fn cancelled() -> Error {
    Error::cancelled("cannot fetch")
}

// ---- The list ----------------------------------------------------------------------------------

#[test]
fn the_encoder_control_opens_the_card_and_the_list_waits_for_the_library() {
    let mut stage = Stage::with_profile();
    stage
        .harness
        .get_by_role_and_label(Role::ComboBox, "Encoder")
        .click();
    stage.harness.run();
    stage.click("All encoders…");
    assert!(stage.shows_part("Looking at which weights"));
    stage.answer(LibraryAnswer::Listed(only_bundled()));
    assert!(!stage.shows_part("Looking at which weights"));
    // The leading encoder is selected: its paper and its stages are there to read.
    assert!(stage.shows_part("arXiv 1905.11946"));
    assert!(stage.shows_part("Stages: input 3 × 224 × 224, then"));
    let rows = listed(&stage);
    assert!(
        rows[0].starts_with("EfficientNet-Lite0, EfficientNet-Lite, 224 px, "),
        "{rows:?}"
    );
    assert!(rows[0].ends_with("licence Apache-2.0, in use"), "{rows:?}");
    stage.press(Key::Escape);
    assert!(!stage.shows_part("arXiv 1905.11946"));
}

#[test]
fn search_family_and_order_narrow_and_sort_the_list() {
    let mut stage = with_card(only_bundled());
    // The search box has the focus.
    stage.type_text("dinov3 gated");
    let rows = listed(&stage);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert!(rows[0].ends_with(", gated"), "{rows:?}");
    stage.press_with(Modifiers::COMMAND, Key::A);
    stage.type_text("no such encoder anywhere");
    assert!(listed(&stage).is_empty() && stage.shows("No encoder matches."));
    stage.click("Clear search and filters");
    assert!(!listed(&stage).is_empty());

    stage
        .harness
        .get_by_role_and_label(Role::ComboBox, "Family")
        .click();
    stage.harness.run();
    stage.click("ConvNeXt");
    let rows = listed(&stage);
    assert!(!rows.is_empty() && rows.iter().all(|row| row.contains(", ConvNeXt, ")));
    let side = |row: &String| -> f64 {
        let at = row.find(" M parameters").expect("parameters");
        let word = row[..at].rsplit(' ').next().expect("a number");
        word.parse().expect("a number")
    };
    stage.click("Sort by Params, not sorted");
    let rising: Vec<f64> = listed(&stage).iter().map(side).collect();
    assert!(
        rising.is_sorted() && rising.first() < rising.last(),
        "{rising:?}"
    );
    stage.click("Sort by Params, ascending");
    let falling: Vec<f64> = listed(&stage).iter().map(side).collect();
    assert!(falling.iter().rev().is_sorted(), "{falling:?}");
    stage.click("Sort by Params, descending");
    assert!(stage.shows("Sort by Params, not sorted"));
    stage.click("Ready to use");
    assert!(listed(&stage).is_empty());
}

#[test]
fn an_encoder_is_found_and_used_by_the_keyboard_alone() {
    let mut stage = with_card(only_bundled());
    stage.type_text("arXiv");
    stage.press(Key::ArrowDown);
    assert_eq!(stage.app().view.library.selected, SQUEEZENET);
    stage.press(Key::ArrowUp);
    assert_eq!(stage.app().view.library.selected, EFFICIENTNET);
    stage.press(Key::ArrowDown);
    stage.press(Key::Enter);
    assert_eq!(stage.app().state.recipe.encoder, SQUEEZENET);
    assert!(!stage.shows("Search encoders"), "the card has closed");
    let (_, command) = stage.latest(Lane::Profile).expect("a profile");
    assert_eq!(
        encoders(&command),
        [(SQUEEZENET.to_owned(), WeightsKind::Trained)]
    );
}

// ---- Fetching ----------------------------------------------------------------------------------

fn offer() -> Offer {
    Offer {
        url: "https://example.org/resnet50.pth".to_owned(),
        size_bytes: Some(102_500_000),
        path: "/cache/resnet50.pth".into(),
    }
}

fn looked(offer: Result<Offer, Error>) -> LibraryAnswer {
    LibraryAnswer::Looked {
        encoder: RESNET.to_owned(),
        offer,
    }
}

fn fetching(done_bytes: u64) -> LibraryAnswer {
    LibraryAnswer::Fetching {
        encoder: RESNET.to_owned(),
        done_bytes,
        total_bytes: Some(102_500_000),
    }
}

fn fetched(outcome: Result<Holding, Error>) -> LibraryAnswer {
    LibraryAnswer::Fetched {
        encoder: RESNET.to_owned(),
        outcome,
    }
}

#[test]
fn size_and_licence_are_shown_before_anything_is_fetched_and_then_it_can_be_used() {
    let mut stage = with_card(only_bundled());
    select(&mut stage, RESNET);
    stage.click("Fetch…");
    assert_eq!(stage.asked(), Some(LibraryRequest::Look(RESNET.to_owned())));
    stage.answer(looked(Ok(offer())));
    assert!(
        stage.shows("102 MB, licence BSD-3-Clause") || stage.shows("103 MB, licence BSD-3-Clause")
    );
    assert!(stage.shows_part("example.org") && stage.shows_part("/cache/resnet50.pth"));
    assert_eq!(stage.asked(), Some(LibraryRequest::Look(RESNET.to_owned())));
    stage.click("Fetch now");
    assert_eq!(
        stage.asked(),
        Some(LibraryRequest::Fetch(RESNET.to_owned()))
    );
    stage.answer(fetching(51_250_000));
    assert!(stage.shows_part("51.2 MB of"));
    assert!(listed(&stage).iter().any(|row| row.ends_with(", 50 %")));
    // Nothing waits for it: the marker moves and the curve is measured.
    stage.harness.state_mut().state.set_eta(2.0);
    stage.harness.run();
    assert!(matches!(
        stage.latest(Lane::Measure),
        Some((_, Command::Measure { eta_l2: 2.0, .. }))
    ));

    let mut holding = Holding::of(registry::row(RESNET).expect("a row"));
    holding.status.installed = true;
    stage.answer(fetched(Ok(holding)));
    stage.click("Use");
    assert_eq!(stage.app().state.recipe.encoder, RESNET);
    let (_, command) = stage.latest(Lane::Profile).expect("a profile");
    assert_eq!(
        encoders(&command),
        [(RESNET.to_owned(), WeightsKind::Trained)]
    );
}

#[test]
fn a_transfer_is_cancelled_and_leaves_no_complaint() {
    let mut stage = with_card(only_bundled());
    select(&mut stage, RESNET);
    stage.click("Fetch…");
    stage.answer(looked(Ok(offer())));
    stage.click("Fetch now");
    stage.answer(fetching(1_000_000));
    let cancel = stage.harness.query_all_by_label("Cancel").last();
    cancel.expect("a button").click();
    stage.harness.run();
    let stop = LibraryRequest::StopFetching(RESNET.to_owned());
    assert_eq!(stage.asked(), Some(stop));
    assert!(stage.shows_part("what arrived is kept"));
    stage.answer(fetched(Err(cancelled())));
    assert!(stage.shows("Fetch…") && !stage.app().state.library.fetches.contains_key(RESNET));
}

#[test]
fn failures_of_fetching_say_what_why_and_what_to_do() {
    let mut stage = with_card(only_bundled());
    select(&mut stage, RESNET);
    stage.click("Fetch…");
    let offline = Error::new(
        ErrorKind::Weights,
        "cannot fetch “https://example.org/resnet50.pth”",
        "the server cannot be reached",
        "Connect to the network and try again",
    );
    stage.answer(looked(Err(offline)));
    assert!(stage.shows_part("The server cannot be reached.") && stage.shows_part("Connect to"));
    stage.click("Try again");
    assert_eq!(stage.asked(), Some(LibraryRequest::Look(RESNET.to_owned())));
    // An answer to a question that was taken back changes nothing.
    stage
        .harness
        .state_mut()
        .state
        .library
        .stop_fetching(RESNET);
    stage.answer(looked(Ok(offer())));
    assert!(!stage.shows("Fetch now"));

    select(&mut stage, GATED);
    assert!(stage.shows_part("accept their licence"));
    assert!(stage.shows_part("to be accepted before"));
    select(&mut stage, BY_HAND);
    assert!(stage.shows_part("on a page, not as a file") && !stage.shows("Fetch…"));
}

// ---- Weight files ------------------------------------------------------------------------------

fn inspected(file: &str, encoder: Option<&str>) -> LibraryAnswer {
    let path = Path::new(file);
    let checkpoint = Checkpoint::open(path).expect("a weights file");
    let proposals = match encoder {
        None => registry::propose(&checkpoint, None).expect("proposals"),
        Some(name) => {
            let row = registry::row(name).expect("a row");
            vec![Proposal {
                encoders: vec![name.to_owned()],
                architecture: row.architecture.clone(),
                report: row.report_of(&checkpoint).expect("a report"),
            }]
        }
    };
    LibraryAnswer::Inspected {
        file: file.to_owned(),
        encoder: encoder.map(str::to_owned),
        found: Ok(Arc::new(Inspection {
            format: checkpoint.format().to_owned(),
            size_bytes: 1,
            tensors: checkpoint.tensors().len(),
            contents: String::new(),
            proposals,
        })),
    }
}

const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/assets/encoders/squeezenet1_1.safetensors"
);

#[test]
fn a_weights_file_is_proposed_with_its_evidence_and_used_only_when_told() {
    let mut stage = Stage::with_profile();
    stage.press(Key::W);
    assert_eq!(stage.desk.borrow().dialogs, 1);
    stage.answer(LibraryAnswer::Listed(only_bundled()));
    assert!(stage.shows_part("Nothing in the file is executed"));
    let chosen = Answer::Weights(FILE.into());
    stage.desk.borrow_mut().answers.push_back(chosen);
    stage.harness.run();
    let request = LibraryRequest::Inspect {
        file: FILE.to_owned(),
        encoder: None,
    };
    assert_eq!(stage.asked(), Some(request));
    assert!(stage.shows_part("Reading "));
    stage.answer(inspected(FILE, None));
    // Evidence, and nothing happened by itself.
    assert!(stage.shows_part("all 52 tensors are there in their shapes"));
    assert_eq!(stage.app().state.recipe.encoder, EFFICIENTNET);

    let complete = registry::propose(&Checkpoint::open(Path::new(FILE)).expect("a file"), None);
    let complete = complete.expect("proposals");
    if complete.iter().map(|one| one.encoders.len()).sum::<usize>() > 1 {
        assert!(stage.shows_part("the network of several encoders"));
        let fits = stage.harness.get_by_label("Use with these weights");
        assert!(fits.accesskit_node().is_disabled(), "the reader chooses");
        stage.click(title(SQUEEZENET));
    }
    stage.click("Use with these weights");
    let name = registry::local_name(SQUEEZENET, FILE);
    assert_eq!(stage.asked(), Some(LibraryRequest::Adopt(name.clone())));
    let outcome = registry::find(&name);
    stage.answer(LibraryAnswer::Adopted {
        name: name.clone(),
        outcome,
    });
    assert_eq!(stage.app().state.recipe.encoder, name);
    assert!(!stage.shows("Weights file"), "the card has closed");
}

#[test]
fn a_file_that_does_not_fit_tells_all_that_differs_and_cannot_be_used() {
    let mut stage = Stage::with_profile();
    stage.harness.state_mut().state.library.list();
    stage.press(Key::W);
    stage.answer(LibraryAnswer::Listed(only_bundled()));
    stage.harness.get_by_label("Path of a weights file").focus();
    stage.harness.run();
    stage.type_text(FILE);
    stage.press(Key::Enter);
    stage.answer(inspected(FILE, None));
    stage
        .harness
        .get_by_role_and_label(Role::ComboBox, "Encoder that the file is held against")
        .click();
    stage.harness.run();
    stage
        .harness
        .get(By::new().role(Role::Button).label("EfficientNet-Lite0"))
        .click();
    stage.harness.run();
    let request = LibraryRequest::Inspect {
        file: FILE.to_owned(),
        encoder: Some(EFFICIENTNET.to_owned()),
    };
    assert_eq!(stage.asked(), Some(request));
    stage.answer(inspected(FILE, Some(EFFICIENTNET)));
    assert!(stage.shows("The file does not fit this encoder."));
    assert!(stage.shows_part("Missing: ") && stage.shows_part("Unknown: "));
    let button = stage.harness.get_by_label("Use with these weights");
    assert!(button.accesskit_node().is_disabled());

    let unreadable = Error::new(
        ErrorKind::Weights,
        "cannot read",
        "it is cut short",
        "Copy it anew",
    );
    stage
        .harness
        .state_mut()
        .state
        .library
        .inspect("x".to_owned(), None);
    stage.answer(LibraryAnswer::Inspected {
        file: "x".to_owned(),
        encoder: None,
        found: Err(unreadable),
    });
    assert!(stage.shows("It is cut short.") && stage.shows("Copy it anew."));
}

// ---- Side by side ------------------------------------------------------------------------------

/// A window with the curves of both bundled encoders and their twins.
fn comparing() -> Stage {
    let mut stage = with_card(only_bundled());
    select(&mut stage, SQUEEZENET);
    stage.click("Add to comparison");
    stage.press(Key::Escape);
    stage.press(Key::R);
    stage.finish_profile(bump);
    stage
}

#[test]
fn two_encoders_with_their_twins_are_overlaid_listed_and_removed() {
    let mut stage = comparing();
    let (_, command) = stage.latest(Lane::Profile).expect("a profile");
    let all = [EFFICIENTNET, SQUEEZENET].map(|name| {
        [WeightsKind::Trained, WeightsKind::Random].map(|weights| (name.to_owned(), weights))
    });
    assert_eq!(encoders(&command), all.concat());
    let names = [
        "EfficientNet-Lite0, trained",
        "EfficientNet-Lite0, twin",
        "SqueezeNet 1.1, trained",
        "SqueezeNet 1.1, twin",
    ];
    // One row each, and each is told of the plot.
    let plot = stage
        .harness
        .get(By::new().role(Role::Figure).label_contains("Response r"));
    let said = plot.accesskit_node().label().unwrap_or_default();
    for name in names {
        assert!(stage.shows(name), "{name}");
        assert!(said.contains(name), "{said}");
    }
    assert_eq!(stage.harness.query_all_by_label("bump").count(), 4);
    assert_eq!(stage.app().state.exportable().len(), 4);
    // Each has its own scales: the same amplitude per pixel.
    let last = |index: usize| {
        let run = stage.app().state.shown[index].trained.run.clone();
        *run.expect("a curve").recipe.etas_l2.last().expect("scales")
    };
    assert!((last(1) / last(0) - 227.0 / 224.0).abs() < 1e-12);
    assert!((stage.app().state.eta_range()[1] - last(1)).abs() < 1e-12);

    // The twins leave all at once, an encoder with its twin.
    stage.press(Key::R);
    assert!(!stage.shows("SqueezeNet 1.1, twin"));
    stage.click("Remove EfficientNet-Lite0 from the comparison");
    assert_eq!(stage.app().state.recipe.encoder, SQUEEZENET);
    assert!(!stage.app().state.is_comparing());
    assert!(
        stage.app().state.lead().trained.run.is_some(),
        "its curve stays"
    );
    let (_, command) = stage.latest(Lane::Profile).expect("a profile");
    assert_eq!(
        encoders(&command),
        [(SQUEEZENET.to_owned(), WeightsKind::Trained)]
    );
}

#[test]
fn answers_go_to_the_curve_that_they_are_for() {
    let mut stage = comparing();
    stage.harness.state_mut().state.set_eta(2.0);
    stage.harness.run();
    let (generation, command) = stage.latest(Lane::Measure).expect("a measurement");
    let Command::Measure { recipes, .. } = &command else {
        panic!("a measurement")
    };
    assert_eq!(recipes.len(), 4);
    assert_eq!(recipes[3].encoder, SQUEEZENET);
    assert_eq!(recipes[3].weights, WeightsKind::Random);
    stage.say(Event::Measured {
        generation,
        index: 3,
        estimate: crate::stage::estimate(2.0, 7.25, true),
    });
    let shown = &stage.app().state.shown;
    let measured = |index: usize| shown[index].twin.measured.as_ref().map(|one| one.r);
    assert_eq!((measured(0), measured(1)), (None, Some(7.25)));
}

#[test]
fn the_colour_of_an_encoder_stays_while_others_come_and_go_and_the_legend_lets_another_lead() {
    let mut stage = comparing();
    let slot = |stage: &Stage, name: &str| {
        let mut shown = stage.app().state.shown.iter();
        shown
            .find(|one| *one.spec.name == *name)
            .map(|one| one.slot)
    };
    assert_eq!(
        (slot(&stage, EFFICIENTNET), slot(&stage, SQUEEZENET)),
        (Some(0), Some(1))
    );
    let before = stage.forget_sent();
    stage.click("Show the image as SqueezeNet 1.1 sees it");
    assert_eq!(stage.app().state.recipe.encoder, SQUEEZENET);
    assert!(stage.shows_part("as SqueezeNet 1.1 sees it:"));
    // The question is the same, so nothing is computed again.
    let new = &stage.sent()[before..];
    assert!(
        !new.iter()
            .any(|command| matches!(command, Command::Profile(_))),
        "{new:?}"
    );
    stage.click("Remove EfficientNet-Lite0 from the comparison");
    assert_eq!(slot(&stage, SQUEEZENET), Some(1));
    stage.harness.state_mut().state.add_encoder(EFFICIENTNET);
    stage.harness.run();
    assert_eq!(slot(&stage, EFFICIENTNET), Some(0));
}

#[test]
fn the_command_line_of_a_comparison_names_all_its_encoders() {
    let mut stage = comparing();
    stage.harness.state_mut().state.set_seed(11);
    stage.harness.run();
    let state = &stage.app().state;
    let line = etascope::cli::command_line(
        &ImageSource::Bundled("chelsea".to_owned()),
        &state.recipes(),
        true,
        &DeviceChoice::Auto,
        Background::default(),
        Path::new("out"),
    );
    let line = line.expect("a command");
    assert!(
        line.contains("--encoder 'efficientnet_lite0,squeezenet1_1' --seed 11"),
        "{line}"
    );
}

#[test]
fn an_encoder_without_the_readout_says_so_and_is_not_asked() {
    let mut stage = comparing();
    stage
        .harness
        .state_mut()
        .state
        .choose_readout(Readout::Stage(2));
    stage.harness.run();
    let (_, command) = stage.latest(Lane::Profile).expect("a profile");
    assert!(
        encoders(&command)
            .iter()
            .all(|(name, _)| name == EFFICIENTNET)
    );
    assert!(stage.shows_part("has no such readout"));
    stage
        .harness
        .state_mut()
        .state
        .choose_readout(Readout::Pooled);
    stage.harness.run();
    let (_, command) = stage.latest(Lane::Profile).expect("a profile");
    assert_eq!(encoders(&command).len(), 4);
}

#[test]
fn grey_levels_are_those_of_every_encoder_or_of_none() {
    let mut stage = with_card(holdings(&[EFFICIENTNET, SQUEEZENET, SWIN]));
    stage.press(Key::Escape);
    let state = &mut stage.harness.state_mut().state;
    // 224 and 227 px differ by 1.3 %, less than the width of a line.
    state.add_encoder(SQUEEZENET);
    assert!(state.grey_levels_agree());
    state.add_encoder(SWIN);
    assert!(!state.grey_levels_agree());
    assert!((state.eta_range()[1] - 100.0 * 384.0 / 224.0).abs() < 1e-9);
    stage.harness.run();
    stage.finish_profile(decay);
    assert!(stage.shows_part("at 224 px"));
}

#[test]
fn no_more_encoders_than_hues_are_compared() {
    let names: Vec<&str> = (registry::all().take(SHOWN_MAX + 1))
        .map(|spec| &*spec.name)
        .collect();
    let mut stage = with_card(holdings(&names));
    for name in &names {
        stage.harness.state_mut().state.add_encoder(name);
    }
    stage.harness.run();
    assert_eq!(stage.app().state.shown.len(), SHOWN_MAX);
    let slots: Vec<usize> = stage.app().state.shown.iter().map(|one| one.slot).collect();
    assert_eq!(slots, (0..SHOWN_MAX).collect::<Vec<_>>());
    select(&mut stage, names[SHOWN_MAX]);
    let button = stage.harness.get_by_label("Add to comparison");
    assert!(button.accesskit_node().is_disabled());
}

// ---- Memory ------------------------------------------------------------------------------------

#[test]
fn what_the_weights_take_is_told_and_their_budget_is_set_and_remembered() {
    let settings = Settings {
        welcome_dismissed: true,
        weights_budget_mb: 500,
        ..Settings::default()
    };
    let mut stage = Stage::with(settings, Options::default());
    assert!((stage.sent().iter()).any(|c| matches!(c, Command::SetBudget(500_000_000))));
    stage.open_photo();
    stage.say(Event::Memory(Memory {
        budget_bytes: 500_000_000,
        loaded: vec![LoadedWeights {
            encoder: SQUEEZENET.to_owned(),
            weights: WeightsKind::Trained,
            bytes: 4_940_000,
        }],
        ..Memory::default()
    }));
    assert!(stage.shows("weights 4.94 MB"));
    stage.press(Key::B);
    assert!(stage.shows_part("4.94 MB of 1 network"));
    stage
        .harness
        .get_by_label("Budget of the weights in megabytes")
        .focus();
    stage.harness.run();
    stage.press(Key::ArrowUp);
    let budget = stage.app().settings.weights_budget_mb;
    assert!(budget > 500, "{budget}");
    let sent = stage.sent();
    let last = sent.iter().rev().find_map(|command| match command {
        Command::SetBudget(bytes) => Some(*bytes),
        _ => None,
    });
    assert_eq!(last, Some(budget * 1_000_000));
    assert_eq!(
        stage
            .desk
            .borrow()
            .saved
            .last()
            .map(|s| s.weights_budget_mb),
        Some(budget)
    );
}
