//! The pictures that a map is learnt from: photographs of a set as the encoder sees them, and random squares of them.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::encoders::EncoderSpec;
use crate::geometry::maps::{Part, Shares, split_by_photograph};
use crate::images::manipulations::edit_in_order;
use crate::images::{Background, GridSymmetry, Manipulation, Photo, Picture, bundled, crop, pairs};
use crate::recipe::{EditRecipe, LearningSet};
use crate::{Error, ErrorKind, Result};

/// Shares of a set with so many photographs or more: the same for validation and held out.
const SHARE: f64 = 0.2;
/// Photographs from which on some are held out besides the one on screen.
const HELD_OUT_FROM: usize = 5;
/// Photographs of a folder that are used at most: the first by name.
const FOLDER_MAX: usize = 200;

/// A photograph of a set, still to be read.
#[derive(Clone, Debug)]
enum Source {
    Own(Arc<Photo>),
    Bundled(&'static str),
    File(std::path::PathBuf),
}

/// A set split by photograph.
pub(super) struct Learning {
    sources: Vec<(Source, String, Part)>,
}

impl Learning {
    /// The set of a recipe, without the photograph on screen unless it is that alone.
    pub(super) fn of(recipe: &EditRecipe, photo: &Arc<Photo>) -> Result<Self> {
        let others: Vec<(Source, String)> = match &recipe.learnt_on {
            LearningSet::Own => {
                if recipe.squares < 2 {
                    return Err(refuse(
                        "one picture alone says too little",
                        "Use more squares, or other photographs",
                    ));
                }
                let name = photo.name.clone();
                return Ok(Self {
                    sources: vec![(Source::Own(Arc::clone(photo)), name, Part::Train)],
                });
            }
            LearningSet::Bundled => (bundled::NAMES.iter())
                .filter(|name| **name != photo.name)
                .map(|name| (Source::Bundled(name), (*name).to_owned()))
                .collect(),
            LearningSet::Folder(folder) => {
                let found = pairs::pictures(folder, &mut Vec::new())?;
                let name = |path: &std::path::Path| {
                    let name = path.file_name().unwrap_or(path.as_os_str());
                    name.to_string_lossy().into_owned()
                };
                (found.into_iter().take(FOLDER_MAX))
                    .map(|path| (Source::File(path.clone()), name(&path)))
                    .filter(|(_, name)| *name != photo.name)
                    .collect()
            }
        };
        if others.len() < 2 {
            return Err(refuse(
                "the set has fewer than two other photographs: one to learn from and one to choose γ by",
                "Choose a folder with more photographs, or the photograph's own squares",
            ));
        }
        let keys: Vec<&str> = others.iter().map(|(_, name)| name.as_str()).collect();
        let held_out = if others.len() < HELD_OUT_FROM {
            0.0
        } else {
            SHARE
        };
        let shares = Shares {
            validation: SHARE,
            held_out,
        };
        let parts = split_by_photograph(&keys, shares, recipe.seed)?;
        let sources = others.into_iter().zip(parts);
        Ok(Self {
            sources: sources
                .map(|((source, name), part)| (source, name, part))
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

    /// Reads a photograph; its pictures at the encoder's side: as the encoder sees it, then its random squares. Those
    /// that are for scores alone have no squares.
    pub(super) fn pictures(
        &self,
        index: usize,
        recipe: &EditRecipe,
        spec: &EncoderSpec,
        background: Background,
    ) -> Result<(String, Vec<Picture>)> {
        let (source, _, part) = &self.sources[index];
        let photo = match source {
            Source::Own(photo) => Arc::clone(photo),
            Source::Bundled(name) => Arc::new(bundled::open(name)?),
            Source::File(path) => Arc::new(crate::images::open(path, background)?),
        };
        let mut pictures = vec![Picture::from(&spec.preprocessing.apply(&photo)?)];
        if *part != Part::HeldOut {
            let mut rng = ChaCha8Rng::seed_from_u64(recipe.seed ^ stream(&photo.sha256));
            for _ in 0..recipe.squares {
                pictures.push(random_square(&photo, spec.side_px, &mut rng)?);
            }
        }
        Ok((photo.sha256.clone(), pictures))
    }
}

/// A square of a photograph at `side` pixels, half of them mirrored; its side in the photograph is between half and all of the
/// shorter one.
fn random_square(photo: &Photo, side: usize, rng: &mut ChaCha8Rng) -> Result<Picture> {
    let (width, height) = (photo.width as usize, photo.height as usize);
    let short = width.min(height);
    let cut = rng.random_range(short.div_ceil(2)..=short);
    let place = [width, height].map(|len| rng.random_range(0..=len - cut));
    let square = crop::square(photo, place, cut, side)?;
    if rng.random::<bool>() {
        let mirror = Manipulation::Reorient {
            symmetry: GridSymmetry::MirrorHorizontal,
        };
        return mirror.edit(&square, 0);
    }
    Ok(square)
}

/// A picture after the edits of a recipe; noise is drawn for this picture of this photograph.
pub(super) fn edited(
    recipe: &EditRecipe,
    picture: &Picture,
    sha256: &str,
    index: usize,
) -> Result<Picture> {
    edit_in_order(
        &recipe.manipulations,
        picture,
        stream(sha256).wrapping_add(index as u64),
    )
}

/// The number of a photograph, from which its noise is drawn: of its own file, so that an edit of it is the same in
/// every set.
fn stream(sha256: &str) -> u64 {
    sha256
        .get(..16)
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .unwrap_or_default()
}

fn refuse(why: &str, remedy: &str) -> Error {
    Error::new(ErrorKind::Request, "cannot learn the map", why, remedy)
}
