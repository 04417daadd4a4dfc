//! A fitted edit as the commands that fit the same map and cut it to every rank.

use std::path::Path;

use super::map_kind::{MAPS, MapWord};
use super::values::{write_device, write_image, write_word};
use crate::device::DeviceChoice;
use crate::encoders::registry;
use crate::geometry::maps::MapKind;
use crate::images::bundled;
use crate::recipe::{LearningSet, MapFamily};
use crate::worker::ImageSource;
use crate::worker::edit::EditRun;
use crate::{Error, ErrorKind, Result};

/// `etascope fit … && etascope edit …` for a fitted map at a photograph, with files in `folder`: quoted for a POSIX shell. The
/// map is the same; of a folder's photographs the command scores those that the window scores, too.
///
/// # Errors
/// [`ErrorKind::Request`] where no command can name the photograph (it was pasted or dropped as bytes).
pub fn edit_line(
    image: &ImageSource,
    run: &EditRun,
    device: &DeviceChoice,
    folder: &Path,
) -> Result<String> {
    let cannot = |why: &str, remedy: &str| {
        Error::new(
            ErrorKind::Request,
            "cannot write this as a command",
            why,
            remedy,
        )
    };
    let image = write_image(image)
        .ok_or_else(|| cannot("the photograph is not a file", "Save it and open the file"))?;
    let recipe = &run.recipe;
    let mut words: Vec<String> = vec!["etascope".into(), "fit".into()];
    let mut blind = false;
    match &recipe.learnt_on {
        LearningSet::Own => {
            words.push(image.clone());
            // There is nothing to choose γ by.
            blind = true;
        }
        LearningSet::Bundled => {
            let name = |member: &crate::worker::edit::Member| {
                format!("{}{}", bundled::PREFIX, member.name)
            };
            words.extend(run.members.iter().map(name));
            words.extend(["--hold-out".to_owned(), image.clone()]);
        }
        LearningSet::Pairs(_) => {
            return Err(cannot(
                "no command holds the photograph on screen out of pairs",
                "Use etascope fit --pairs, which fits to all of them",
            ));
        }
        LearningSet::Folder(path) => {
            let names = run.members.iter().map(|member| path.join(&member.name));
            words.extend(names.map(|path| path.display().to_string()));
        }
    }
    let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    for edit in &recipe.manipulations {
        option("manipulation", edit.to_string());
    }
    let (encoder, weights) = registry::split_local(&recipe.encoder);
    option("encoder", encoder.to_owned());
    if let Some(file) = weights {
        option("weights", file.to_owned());
    }
    option("stage", run.stage.clone());
    let word = write_word(&MAPS, &MapWord::Closed(recipe.family));
    option("map", word.to_owned());
    let fitted = match run.kind {
        MapKind::Ridge { gamma } | MapKind::RidgeToIdentity { gamma } => Some(gamma),
        _ => None,
    };
    if let Some(gamma) = recipe.gamma.or(fitted.filter(|_| blind)) {
        option("gamma", gamma.to_string());
    }
    option("crops", recipe.crops.to_string());
    option("seed", recipe.seed.to_string());
    if blind {
        option("validation", "0".to_owned());
    }
    if blind || matches!(recipe.learnt_on, LearningSet::Folder(_)) && run.is_all_learnt() {
        option("held-out", "0".to_owned());
    }
    option("device", write_device(device).to_owned());
    option("out", folder.display().to_string());
    if !recipe.normalised {
        words.push("--raw".to_owned());
    }
    let map = folder.join("map.safetensors").display().to_string();
    let out = folder.display().to_string();
    let edit = ["etascope", "edit", &image, "--map", &map, "--out", &out];
    let join = |words: Vec<&str>| {
        shlex::try_join(words).map_err(|_| {
            cannot(
                "a name holds a character that no shell can take",
                "Rename the file",
            )
        })
    };
    let fit = join(words.iter().map(String::as_str).collect())?;
    if recipe.family == MapFamily::Identity {
        return Ok(fit);
    }
    Ok(format!("{fit} && {}", join(edit.to_vec())?))
}
