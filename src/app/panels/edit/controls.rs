//! What is edited and how its map is learnt, with the scores.

use eframe::egui::{ComboBox, DragValue, Key, ScrollArea, Slider, TextEdit, Ui};

use super::manipulations::manipulations_ui;
use super::scores::table_ui;
use crate::app::explain;
use crate::app::format;
use crate::app::intent::{Intent, Scene};
use crate::app::panels::cards::expand_home;
use crate::app::panels::controls::{device_ui, encoder_ui, row, section};
use crate::app::theme;
use crate::app::view::View;
use crate::encoders::EncoderSpec;
use crate::geometry::decode::Decoder;
use crate::geometry::maps::MapKind;
use crate::recipe::{EditRecipe, LearningSet, MapFamily};
use crate::worker::Lane;

/// The whole panel.
pub fn controls_ui(ui: &mut Ui, scene: &Scene<'_>, view: &mut View, intents: &mut Vec<Intent>) {
    ScrollArea::vertical()
        .auto_shrink([false, false])
        .show(ui, |ui| {
            let mut recipe = scene.state.edit.recipe.clone();
            ui.label(theme::bold("Feature"));
            encoder_ui(ui, scene, intents);
            stage_ui(ui, scene.state.spec(), &mut recipe);
            section(ui, "Edit");
            match &recipe.learnt_on {
                LearningSet::Pairs(_) => {
                    ui.label(theme::note(
                        "As an outside editor has made it: see “Learnt on”.",
                    ));
                }
                _ => manipulations_ui(ui, &mut recipe.manipulations),
            }
            section(ui, "Map");
            family_ui(ui, scene, &mut recipe);
            gamma_ui(ui, scene, &mut recipe);
            learnt_ui(ui, scene, view, &mut recipe);
            row(ui, "Vectors", Some(&explain::NORMALISED), |ui, _| {
                ui.checkbox(&mut recipe.normalised, "Normalise channels");
            });
            device_ui(ui, scene, intents);
            let is_idle = !scene.state.lane(Lane::Edit).busy && scene.state.photo.is_some();
            if is_idle && scene.state.is_edit_stale() {
                row(ui, "", None, |ui, _| {
                    let again = ui.button("Fit");
                    if again
                        .on_hover_text("Fit the map after a failure or a cancel")
                        .clicked()
                    {
                        intents.push(Intent::EditAgain);
                    }
                });
            }
            section(ui, "All maps");
            table_ui(ui, scene, view);
            if recipe != scene.state.edit.recipe {
                intents.push(Intent::ChangeEdit(Box::new(recipe)));
            }
        });
}

fn stage_text(spec: &EncoderSpec, index: usize) -> String {
    let Some(stage) = spec.stages.get(index) else {
        return "no stage".to_owned();
    };
    let [channels, rows, columns] = stage.shape;
    let has_decoder = Decoder::bundled_stages().any(|of| of == (&*spec.name, stage.name.as_str()));
    let decoder = if has_decoder { " · decoder" } else { "" };
    format!("{} · {channels} × {rows} × {columns}{decoder}", stage.name)
}

fn stage_ui(ui: &mut Ui, spec: &EncoderSpec, recipe: &mut EditRecipe) {
    row(ui, "Stage", Some(&explain::READOUT), |ui, width| {
        let combo = ComboBox::from_id_salt("stage")
            .width(width)
            .truncate()
            .selected_text(stage_text(spec, recipe.stage));
        let inner = combo.show_ui(ui, |ui| {
            for index in 0..spec.stages.len() {
                ui.selectable_value(&mut recipe.stage, index, stage_text(spec, index));
            }
        });
        inner.response.accessible_name("Stage");
    });
}

fn family_ui(ui: &mut Ui, scene: &Scene<'_>, recipe: &mut EditRecipe) {
    row(ui, "Kind", Some(&explain::MAP_KIND), |ui, width| {
        let combo = ComboBox::from_id_salt("map")
            .width(width)
            .truncate()
            .selected_text(recipe.family.title());
        let inner = combo.show_ui(ui, |ui| {
            for family in MapFamily::SHARED {
                let is_chosen = recipe.family == family;
                if ui.selectable_label(is_chosen, family.title()).clicked() && !is_chosen {
                    recipe.family = family;
                    recipe.gamma = None;
                }
            }
        });
        inner.response.accessible_name("Kind of map");
    });
    if let Some(run) = &scene.state.edit.fitted {
        let vectors = format::grouped(run.vectors);
        let text = format!("{} pairs of pictures, {vectors} of vectors", run.pairs);
        row(ui, "", None, |ui, _| {
            ui.label(theme::note(text));
        });
    }
}

/// γ by hand or by validation; a moved γ needs no encoding.
fn gamma_ui(ui: &mut Ui, scene: &Scene<'_>, recipe: &mut EditRecipe) {
    let gammas = recipe.family.gammas();
    let (Some(&least), Some(&most)) = (gammas.first(), gammas.last()) else {
        return;
    };
    let fitted = scene
        .state
        .edit
        .fitted
        .as_ref()
        .and_then(|run| match run.kind {
            MapKind::Ridge { gamma } | MapKind::RidgeToIdentity { gamma } => Some(gamma),
            _ => None,
        });
    row(ui, "Penalty γ", Some(&explain::GAMMA), |ui, width| {
        let mut is_chosen = recipe.gamma.is_none();
        let mut gamma = recipe.gamma.or(fitted).unwrap_or(1.0);
        let before = gamma;
        ui.spacing_mut().slider_width = width - 142.0;
        let slider = Slider::new(&mut gamma, least..=most)
            .logarithmic(true)
            .custom_formatter(|value, _| format::significant(value, 2));
        ui.add(slider).accessible_name("Penalty γ");
        if gamma != before {
            recipe.gamma = Some(gamma);
        }
        let auto = ui.checkbox(&mut is_chosen, "auto");
        if auto
            .on_hover_text("The γ with the least error on validation photographs")
            .changed()
        {
            recipe.gamma = if is_chosen { None } else { Some(gamma) };
        }
    });
}

fn learnt_name(set: &LearningSet) -> String {
    match set {
        LearningSet::Bundled => "bundled photographs".to_owned(),
        LearningSet::Folder(folder) => {
            let name = folder.file_name().unwrap_or(folder.as_os_str());
            format!("folder {}", name.to_string_lossy())
        }
        LearningSet::Pairs(folder) => {
            let name = folder.file_name().unwrap_or(folder.as_os_str());
            format!("pairs in {}", name.to_string_lossy())
        }
        LearningSet::Own => "this photograph’s crops".to_owned(),
    }
}

fn learnt_ui(ui: &mut Ui, scene: &Scene<'_>, view: &mut View, recipe: &mut EditRecipe) {
    row(ui, "Learnt on", Some(&explain::LEARNT_ON), |ui, width| {
        let combo = ComboBox::from_id_salt("learnt on")
            .width(width)
            .truncate()
            .selected_text(learnt_name(&recipe.learnt_on));
        let inner = combo.show_ui(ui, |ui| {
            for set in [LearningSet::Bundled, LearningSet::Own] {
                let text = learnt_name(&set);
                ui.selectable_value(&mut recipe.learnt_on, set, text);
            }
            if let LearningSet::Folder(_) | LearningSet::Pairs(_) = &recipe.learnt_on {
                let _ = ui.selectable_label(true, learnt_name(&recipe.learnt_on));
            }
        });
        let response = inner.response.accessible_name("Learnt on");
        if let Some(run) = &scene.state.edit.fitted {
            let parts = run.members.iter().map(|member| {
                format!("{}: {}", member.name, crate::report::part_name(member.part))
            });
            let parts: Vec<String> = parts.take(24).collect();
            response.on_hover_text(parts.join("\n"));
        }
    });
    row(ui, "", None, |ui, width| {
        let name = "Path of a folder of photographs";
        let field = TextEdit::singleline(&mut view.edit_folder)
            .hint_text(name)
            .desired_width(width);
        let response = ui.add(field).accessible_name(name);
        let is_entered = response.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
        let path = view.edit_folder.trim();
        if is_entered && !path.is_empty() {
            recipe.learnt_on = LearningSet::Folder(expand_home(path));
            view.edit_folder.clear();
        }
    });
    if let LearningSet::Folder(folder) | LearningSet::Pairs(folder) = &recipe.learnt_on {
        let folder = folder.clone();
        let before = matches!(recipe.learnt_on, LearningSet::Pairs(_));
        let mut is_pairs = before;
        row(ui, "", None, |ui, _| {
            ui.checkbox(&mut is_pairs, "Originals with edits")
                .on_hover_text(
                    "NAME and NAME_edited beside it, made by an outside editor; open one of the originals to see its edit",
                );
        });
        if is_pairs != before {
            recipe.learnt_on = if is_pairs {
                LearningSet::Pairs(folder)
            } else {
                LearningSet::Folder(folder)
            };
        }
        if let Some(report) =
            (scene.state.edit.fitted.as_ref()).and_then(|run| run.outside.as_ref())
        {
            row(ui, "", None, |ui, _| {
                ui.label(theme::note(report));
            });
        }
    }
    row(ui, "Crops", Some(&explain::CROPS), |ui, _| {
        let field = DragValue::new(&mut recipe.crops)
            .range(0..=64)
            .speed(1.0)
            .suffix(" a photo");
        ui.add(field)
            .accessible_name("Random crops of each photograph");
        ui.label(theme::note("seed"));
        let field = DragValue::new(&mut recipe.seed).speed(1.0);
        ui.add(field).accessible_name("Seed of crops and split");
    });
}
