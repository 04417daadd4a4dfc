//! The photographs that a map is learnt from, split by photograph.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::geometry::maps::{Part, Shares, split_by_photograph};
use crate::images::{Background, Photo, bundled, file_sha256, pairs};
use crate::recipe::{EditRecipe, LearningSet};
use crate::{Error, ErrorKind, Result};

/// Share of the photographs that choose γ; the paper's.
const VALIDATION: f64 = 0.05;
/// Share of a folder's photographs that are held out besides the one on screen, as on the command line.
const HELD_OUT: f64 = 0.2;
/// Photographs of a folder from which on some are held out besides the one on screen.
const HELD_OUT_FROM: usize = 5;
/// Photographs of a folder that are used at most: the first by name.
const FOLDER_MAX: usize = 200;

/// A photograph of a set, still to be read.
#[derive(Clone, Debug)]
enum Source {
    Own(Arc<Photo>),
    Bundled(&'static str),
    File(PathBuf),
}

/// A photograph with its edit, where an outside editor has made it.
struct Known {
    source: Source,
    edited: Option<PathBuf>,
    name: String,
    /// SHA-256 of the photograph's file.
    hash: String,
}

/// A set split by photograph.
pub(super) struct Learning {
    sources: Vec<(Known, Part)>,
    /// The edit of the photograph on screen by an outside editor.
    own_edit: Option<PathBuf>,
    /// What was found of pairs, for people.
    report: Option<String>,
}

impl Learning {
    /// The set of a recipe, without the photograph on screen, by whatever name, unless it is that alone.
    pub(super) fn of(recipe: &EditRecipe, photo: &Arc<Photo>) -> Result<Self> {
        let mut report = None;
        let known: Vec<Known> = match &recipe.learnt_on {
            LearningSet::Own => {
                if recipe.crops < 2 {
                    return Err(refuse(
                        "one picture alone says too little",
                        "Use more crops, or other photographs",
                    ));
                }
                let own = Known {
                    source: Source::Own(Arc::clone(photo)),
                    edited: None,
                    name: photo.name.clone(),
                    hash: photo.sha256.clone(),
                };
                return Ok(Self {
                    sources: vec![(own, Part::Train)],
                    own_edit: None,
                    report,
                });
            }
            LearningSet::Bundled => (bundled::NAMES.into_iter())
                .map(|name| {
                    Ok(Known {
                        source: Source::Bundled(name),
                        edited: None,
                        name: name.to_owned(),
                        hash: bundled::file_sha256(name)?,
                    })
                })
                .collect::<Result<_>>()?,
            LearningSet::Folder(folder) => {
                let found = pairs::pictures(folder, &mut Vec::new())?;
                (found.into_iter().take(FOLDER_MAX))
                    .map(|path| file(path, None))
                    .collect::<Result<_>>()?
            }
            LearningSet::Pairs(folder) => {
                let found = pairs::find(folder, None)?;
                report = Some(found.summary());
                (found.pairs.into_iter().take(FOLDER_MAX))
                    .map(|pair| file(pair.original, Some(pair.edited)))
                    .collect::<Result<_>>()?
            }
        };
        let (own, others): (Vec<_>, Vec<_>) =
            (known.into_iter()).partition(|known| known.hash == photo.sha256);
        let own_edit = own.into_iter().find_map(|known| known.edited);
        if own_edit.is_none() && matches!(recipe.learnt_on, LearningSet::Pairs(_)) {
            return Err(refuse(
                "the photograph on screen has no edit in the folder",
                "Open one of the originals of the folder; its edit has the same name with “_edited”",
            ));
        }
        if others.len() < 2 {
            return Err(refuse(
                "the set has fewer than two other photographs: one to learn from and one to choose γ by",
                "Choose a folder with more photographs, or the photograph's own crops",
            ));
        }
        let keys: Vec<&str> = others.iter().map(|known| known.hash.as_str()).collect();
        let is_small = others.len() < HELD_OUT_FROM;
        let shares = Shares {
            validation: VALIDATION,
            held_out: if is_small { 0.0 } else { HELD_OUT },
        };
        let parts = split_by_photograph(&keys, shares, recipe.seed)?;
        Ok(Self {
            sources: others.into_iter().zip(parts).collect(),
            own_edit,
            report,
        })
    }

    /// What was found of pairs, for people.
    pub(super) fn report(&self) -> Option<&str> {
        self.report.as_deref()
    }

    /// The edit of the photograph on screen by an outside editor.
    pub(super) fn own_edit(&self, background: Background) -> Result<Option<Photo>> {
        let edit = self.own_edit.as_ref();
        edit.map(|path| crate::images::open(path, background))
            .transpose()
    }

    /// Number of photographs.
    pub(super) fn len(&self) -> usize {
        self.sources.len()
    }

    /// Name and part of a photograph.
    pub(super) fn member(&self, index: usize) -> (&str, Part) {
        let (known, part) = &self.sources[index];
        (&known.name, *part)
    }

    /// Reads a photograph, and its edit by an outside editor.
    pub(super) fn open(
        &self,
        index: usize,
        background: Background,
    ) -> Result<(Arc<Photo>, Option<Photo>)> {
        let (known, _) = &self.sources[index];
        let photo = match &known.source {
            Source::Own(photo) => Arc::clone(photo),
            Source::Bundled(name) => Arc::new(bundled::open(name)?),
            Source::File(path) => Arc::new(crate::images::open(path, background)?),
        };
        let edited = known.edited.as_ref();
        let edited = edited.map(|path| crate::images::open(path, background));
        Ok((photo, edited.transpose()?))
    }
}

fn file(path: PathBuf, edited: Option<PathBuf>) -> Result<Known> {
    Ok(Known {
        edited,
        name: name(&path),
        hash: file_sha256(&path)?,
        source: Source::File(path),
    })
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

fn refuse(why: &str, remedy: &str) -> Error {
    Error::new(ErrorKind::Request, "cannot learn the map", why, remedy)
}
