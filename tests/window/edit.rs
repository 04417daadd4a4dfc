//! The workspace of edits: what it asks for, what a rank does, what is told when something fails.

use std::sync::Arc;

use eframe::egui::{Key, Modifiers, accesskit::Role};
use egui_kittest::kittest::Queryable;
use etascope::app::Workspace;
use etascope::geometry::maps::readout::DisplacementReadout;
use etascope::geometry::maps::{Cut, EditMap, Fitted, MapFile, MapKind, Part};
use etascope::images::{Manipulation, Picture};
use etascope::recipe::{EditRecipe, LearningSet, MapFamily};
use etascope::report::LpipsNote;
use etascope::worker::edit::{
    CutRun, EditRun, EncodedScores, FeatureScores, Member, PictureScores, Seen, SeenFeature, Sweep,
};
use etascope::worker::{Command, Event, Generation, Lane};
use etascope::{Error, ErrorKind};

use crate::stage::Stage;

/// Channels of the map that the test fits.
const CHANNELS: usize = 16;

fn scores(mdncs: f64) -> FeatureScores {
    FeatureScores {
        mdncs: Some(mdncs),
        mdncs_masked: Some(mdncs - 0.1),
        mse: 1.0 - mdncs,
    }
}

fn seen(psnr_db: f64) -> SeenFeature {
    SeenFeature {
        picture: Arc::new(Picture::new(8, 8, vec![90; 192]).expect("a picture")),
        scores: PictureScores {
            ssim_uniform: Some(0.5),
            ssim_gaussian: Some(0.4),
            psnr_db: Some(psnr_db),
            mse: 100.0,
            lpips: None,
        },
        encoded: EncodedScores {
            mdncs_images: Some(0.6),
            divergence_bits: None,
            top1_agrees: None,
        },
    }
}

const DISPLACEMENT: DisplacementReadout = DisplacementReadout {
    cosine: Some(0.8),
    endpoint_error: 1.0,
    regression: None,
};

fn sweep(cut: Cut) -> Sweep {
    let values: Vec<f64> = (0..CHANNELS).map(|i| 0.5_f64.powi(i as i32)).collect();
    Sweep {
        cut,
        readout: None,
        scores: (0..=CHANNELS)
            .map(|rank| (rank, scores(0.8 + 0.01 * rank as f64)))
            .collect(),
        values,
    }
}

/// The answer to a request for a map.
fn run(recipe: &EditRecipe) -> EditRun {
    let picture = Arc::new(Picture::new(8, 8, vec![128; 192]).expect("a picture"));
    let has_matrix = recipe.family.has_matrix();
    EditRun {
        recipe: recipe.clone(),
        image: "chelsea.png".to_owned(),
        image_sha256: crate::stage::photo("chelsea.png").sha256,
        image_steps: vec![],
        encoder_title: "EfficientNet-Lite0".to_owned(),
        weights_id: "0".to_owned(),
        device: "cpu".to_owned(),
        stage: "blocks.2".to_owned(),
        shape: [CHANNELS, 2, 2],
        original: Arc::clone(&picture),
        target: picture,
        mask: [true, false, false, false].into(),
        part: Part::HeldOut,
        members: vec![Member {
            name: "coffee".to_owned(),
            part: Part::Train,
        }],
        pairs: 18,
        vectors: 14_112,
        kind: match recipe.gamma {
            Some(gamma) => recipe.family.kind(gamma),
            None => recipe.family.kind(0.01),
        },
        choice: None,
        identity: scores(0.7),
        reorder: scores(0.7),
        full: scores(0.96),
        identity_cosines: [0.7; 4].into(),
        scale_low: 0.7,
        full_cosines: [0.96, 0.9, f32::NAN, 0.8].into(),
        bias: None,
        displacement: DISPLACEMENT,
        outside: None,
        sweeps: if has_matrix {
            vec![sweep(Cut::Edit), sweep(Cut::Map)]
        } else {
            vec![]
        },
        seen: Some(Seen {
            original: seen(18.0),
            target: seen(30.0),
            full: seen(26.0),
        }),
        table: vec![
            ("identity".to_owned(), scores(0.7)),
            ("linear".to_owned(), scores(0.9)),
            ("orthogonal Procrustes".to_owned(), scores(0.95)),
        ],
        table_photographs: 1,
        decoder: None,
        lpips: LpipsNote::Absent("Fetch AlexNet".to_owned()),
        passes: 38,
        recalled: 0,
        file: Arc::new(MapFile {
            encoder: recipe.encoder.clone(),
            weights_id: "0".to_owned(),
            stage: "blocks.2".to_owned(),
            manipulations: recipe.manipulations.clone(),
            data_sha256: String::new(),
            photographs: 2,
            vectors: 14_112,
            map: EditMap {
                kind: MapKind::Identity,
                reorder: vec![],
                normalisation: None,
                fitted: Fitted::Identity,
            },
        }),
    }
}

/// The newest request for a map.
fn wanted(stage: &Stage) -> (Generation, EditRecipe) {
    match stage.latest(Lane::Edit) {
        Some((generation, Command::Edit(recipe))) => (generation, recipe),
        other => panic!("a request for a map, not {other:?}"),
    }
}

/// The newest request for a rank.
fn rank(stage: &Stage) -> (Cut, usize) {
    match stage.latest(Lane::Rank) {
        Some((_, Command::Rank { cut, rank, .. })) => (cut, rank),
        other => panic!("a request for a rank, not {other:?}"),
    }
}

fn count(stage: &Stage, lane: Lane) -> usize {
    let sent = stage.sent();
    sent.iter()
        .filter(|command| command.lane() == Some(lane))
        .count()
}

/// Answers the open request for a map, and the rank that follows.
fn fit(stage: &mut Stage) {
    let (generation, recipe) = wanted(stage);
    let fitted = Arc::new(run(&recipe));
    stage.say(Event::EditFitted {
        generation,
        run: fitted,
    });
    stage.say(Event::Finished {
        generation,
        lane: Lane::Edit,
    });
    answer_rank(stage);
}

fn answer_rank(stage: &mut Stage) {
    let Some((generation, Command::Rank { recipe, cut, rank })) = stage.latest(Lane::Rank) else {
        panic!("a request for a rank")
    };
    let answer = CutRun {
        recipe,
        cut,
        rank,
        scores: scores(0.8 + 0.01 * rank as f64),
        cosines: [0.9; 4].into(),
        displacement: DISPLACEMENT,
        seen: Some(seen(20.0 + rank as f64)),
    };
    stage.say(Event::EditCut {
        generation,
        run: Arc::new(answer),
    });
    stage.say(Event::Finished {
        generation,
        lane: Lane::Rank,
    });
}

/// The workspace with a fitted map.
fn fitted() -> Stage {
    let mut stage = Stage::new();
    stage.open_photo();
    stage.press(Key::Num3);
    fit(&mut stage);
    stage
}

#[test]
fn nothing_is_asked_before_the_workspace_is_in_front() {
    let mut stage = Stage::new();
    stage.open_photo();
    assert_eq!(count(&stage, Lane::Edit), 0);
    stage.click("Edit");
    assert_eq!(stage.app().settings.workspace, Workspace::Edit);
    let (_, recipe) = wanted(&stage);
    assert_eq!(recipe.manipulations, [Manipulation::Hue { degrees: 60.0 }]);
    assert_eq!(recipe.learnt_on, LearningSet::Bundled);
    assert_eq!(recipe.family, MapFamily::RidgeToIdentity);
    // A rank is asked for once there is a map, and each thing once.
    assert_eq!(count(&stage, Lane::Rank), 0);
    fit(&mut stage);
    assert_eq!(count(&stage, Lane::Rank), 1);
    stage.press(Key::Num1);
    stage.press(Key::Num3);
    assert_eq!(count(&stage, Lane::Edit), 1);
    assert_eq!(count(&stage, Lane::Rank), 1);
}

#[test]
fn what_is_measured_and_what_is_only_decoded_stand_side_by_side() {
    let stage = fitted();
    for name in [
        "Original. 8 × 8 px",
        "Edited: the target. hue +60°",
        "Unedited, decoded. SSIM 0.50 · 18.0 dB",
        "Target, decoded. SSIM 0.50 · 30.0 dB",
        "Rank 4, decoded. SSIM 0.50 · 24.0 dB",
        "Full map, decoded. SSIM 0.50 · 26.0 dB",
        "Cosine, rank 4. MdnCS 0.840",
        "This photograph: held out",
        "Mean over 1 held-out photograph",
    ] {
        assert!(stage.shows(name), "{name}");
    }
}

#[test]
fn the_rank_is_moved_by_keys_by_typing_and_in_the_other_cut() {
    let mut stage = fitted();
    assert_eq!(rank(&stage), (Cut::Edit, 4), "the root of sixteen");
    stage.press(Key::ArrowRight);
    assert_eq!(rank(&stage), (Cut::Edit, 5));
    stage.press(Key::PageUp);
    assert_eq!(rank(&stage), (Cut::Edit, 10));
    stage.press(Key::PageUp);
    assert_eq!(
        rank(&stage),
        (Cut::Edit, CHANNELS),
        "no further than there is"
    );
    stage.press(Key::Home);
    assert_eq!(rank(&stage), (Cut::Edit, 4));
    let entry = stage
        .harness
        .get_by_role_and_label(Role::TextInput, "Rank k, typed");
    entry.click();
    stage.harness.run();
    stage.press_with(Modifiers::COMMAND, Key::A);
    stage.type_text("7");
    stage.press(Key::Enter);
    assert_eq!(rank(&stage), (Cut::Edit, 7));
    stage.click("W");
    assert_eq!(rank(&stage), (Cut::Map, 7));
    // Moving the rank fits nothing again.
    assert_eq!(count(&stage, Lane::Edit), 1);
    // In another workspace the keys are η's.
    stage.press(Key::Num1);
    stage.press(Key::ArrowRight);
    assert_eq!(rank(&stage), (Cut::Map, 7));
}

#[test]
fn another_edit_or_photograph_asks_anew_and_shows_the_old_as_stale() {
    let mut stage = fitted();
    assert!(!stage.app().state.is_edit_stale());
    let kind = "Kind of edit 1";
    stage
        .harness
        .get_by_role_and_label(Role::ComboBox, kind)
        .click();
    stage.harness.run();
    stage.click("grayscale");
    let (_, recipe) = wanted(&stage);
    assert_eq!(recipe.manipulations, [Manipulation::Grayscale]);
    assert!(stage.app().state.is_edit_stale());
    let before = count(&stage, Lane::Rank);
    stage.press(Key::ArrowRight);
    assert_eq!(
        count(&stage, Lane::Rank),
        before,
        "the new map is not there yet"
    );
    fit(&mut stage);
    assert!(!stage.app().state.is_edit_stale());
    assert_eq!(count(&stage, Lane::Rank), before + 1);
    stage.click("Add an edit");
    assert_eq!(wanted(&stage).1.manipulations.len(), 2);
}

#[test]
fn a_failure_is_told_and_can_be_tried_again() {
    let mut stage = Stage::new();
    stage.open_photo();
    stage.press(Key::Num3);
    let (generation, _) = wanted(&stage);
    stage.say(Event::Failed {
        generation,
        lane: Lane::Edit,
        asked: "fit".to_owned(),
        error: Error::new(
            ErrorKind::Image,
            "cannot open “x.png”",
            "it is damaged",
            "Choose another",
        ),
    });
    assert!(stage.shows("Cannot open “x.png”."));
    assert_eq!(
        count(&stage, Lane::Edit),
        1,
        "it is not tried again unasked"
    );
    stage.click("Fit");
    assert_eq!(count(&stage, Lane::Edit), 2);
}

#[test]
fn a_map_without_a_matrix_says_so_and_has_no_rank_to_move() {
    let mut stage = fitted();
    let combo = stage
        .harness
        .get_by_role_and_label(Role::ComboBox, "Kind of map");
    combo.click();
    stage.harness.run();
    stage.click("additive");
    assert_eq!(wanted(&stage).1.family, MapFamily::Additive);
    fit(&mut stage);
    assert_eq!(
        stage.app().state.edit.fitted.as_ref().map(|run| run.kind),
        Some(MapKind::Additive)
    );
    assert!(stage.shows_part("has no matrix"));
}

#[test]
fn inversion_is_sought_on_request_alone_and_given_up_with_it() {
    let mut stage = fitted();
    assert_eq!(count(&stage, Lane::Invert), 0);
    stage.click("Inversion");
    let Some((_, Command::Invert { rank, .. })) = stage.latest(Lane::Invert) else {
        panic!("a search")
    };
    assert_eq!(rank, 4);
    stage.press(Key::ArrowRight);
    assert_eq!(
        count(&stage, Lane::Invert),
        2,
        "the search follows the rank"
    );
    stage.click("Decoder");
    assert!(
        stage
            .sent()
            .iter()
            .any(|command| matches!(command, Command::Cancel(Lane::Invert)))
    );
}

#[test]
fn the_table_of_maps_is_sorted_by_a_click() {
    let mut stage = fitted();
    let order = |stage: &Stage| {
        let mut rows: Vec<(f32, String)> = ["identity", "linear", "Procrustes"]
            .iter()
            .map(|name| {
                // The legend of the plot below names the identity, too.
                let nodes = stage.harness.query_all_by_label(name);
                let top = nodes.map(|node| node.rect().top()).fold(f32::MAX, f32::min);
                (top, (*name).to_owned())
            })
            .collect();
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        rows.into_iter().map(|(_, name)| name).collect::<Vec<_>>()
    };
    assert_eq!(order(&stage), ["identity", "linear", "Procrustes"]);
    let headings = stage.harness.query_all_by_label("MSE");
    // The heading stands in the column at the right; the other is the button of the plot.
    let heading = headings.max_by(|a, b| a.rect().left().total_cmp(&b.rect().left()));
    heading.expect("a heading").click();
    stage.harness.run();
    assert_eq!(order(&stage), ["Procrustes", "linear", "identity"]);
}

#[test]
fn the_edit_is_exported_and_copied_as_commands() {
    let mut stage = fitted();
    stage.press(Key::E);
    assert!(stage.shows("the fitted map is written beside them, as safetensors"));
    stage.click("Write files");
    let Some((_, Command::Export(export))) = stage.latest(Lane::Export) else {
        panic!("an export")
    };
    assert_eq!(export.stem, "chelsea-efficientnet_lite0-hue");
    let keys = Modifiers::COMMAND.plus(Modifiers::SHIFT);
    stage.press_with(keys, Key::C);
    assert!(stage.shows_part("etascope fit bundled:coffee --hold-out bundled:chelsea"));
    assert!(stage.shows_part("&& etascope edit bundled:chelsea --map"));
}
