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

/// A set split by photograph.
pub(super) struct Learning {
    sources: Vec<(Source, String, Part)>,
}

impl Learning {
    /// The set of a recipe, without the photograph on screen, by whatever name, unless it is that alone.
    pub(super) fn of(recipe: &EditRecipe, photo: &Arc<Photo>) -> Result<Self> {
        let others: Vec<(Source, String, String)> = match &recipe.learnt_on {
            LearningSet::Own => {
                if recipe.crops < 2 {
                    return Err(refuse(
                        "one picture alone says too little",
                        "Use more crops, or other photographs",
                    ));
                }
                let source = Source::Own(Arc::clone(photo));
                return Ok(Self {
                    sources: vec![(source, photo.name.clone(), Part::Train)],
                });
            }
            LearningSet::Bundled => (bundled::NAMES.into_iter())
                .map(|name| {
                    let hash = bundled::file_sha256(name)?;
                    Ok((Source::Bundled(name), name.to_owned(), hash))
                })
                .collect::<Result<_>>()?,
            LearningSet::Folder(folder) => {
                let found = pairs::pictures(folder, &mut Vec::new())?;
                (found.into_iter().take(FOLDER_MAX))
                    .map(|path| Ok((Source::File(path.clone()), name(&path), file_sha256(&path)?)))
                    .collect::<Result<_>>()?
            }
        };
        let others: Vec<_> = (others.into_iter())
            .filter(|(.., hash)| *hash != photo.sha256)
            .collect();
        if others.len() < 2 {
            return Err(refuse(
                "the set has fewer than two other photographs: one to learn from and one to choose γ by",
                "Choose a folder with more photographs, or the photograph's own crops",
            ));
        }
        let keys: Vec<&str> = others.iter().map(|(.., hash)| hash.as_str()).collect();
        let is_small = others.len() < HELD_OUT_FROM;
        let shares = Shares {
            validation: VALIDATION,
            held_out: if is_small { 0.0 } else { HELD_OUT },
        };
        let parts = split_by_photograph(&keys, shares, recipe.seed)?;
        Ok(Self {
            sources: (others.into_iter().zip(parts))
                .map(|((source, name, _), part)| (source, name, part))
                .collect(),
        })
    }

    /// Number of photographs.
    pub(super) fn len(&self) -> usize {
        self.sources.len()
    }

    /// Name and part of a photograph.
    pub(super) fn member(&self, index: usize) -> (&str, Part) {
        let (_, name, part) = &self.sources[index];
        (name, *part)
    }

    /// Reads a photograph.
    pub(super) fn open(&self, index: usize, background: Background) -> Result<Arc<Photo>> {
        Ok(match &self.sources[index].0 {
            Source::Own(photo) => Arc::clone(photo),
            Source::Bundled(name) => Arc::new(bundled::open(name)?),
            Source::File(path) => Arc::new(crate::images::open(path, background)?),
        })
    }
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

fn refuse(why: &str, remedy: &str) -> Error {
    Error::new(ErrorKind::Request, "cannot learn the map", why, remedy)
}
