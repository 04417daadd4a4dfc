//! The photographs of a fit: files, folders, the program's own, and pairs from an outside editor.

use std::path::{Path, PathBuf};

use clap::Args;

use super::values::parse_image;
use crate::images::pairs::{self, PairReport};
use crate::images::{Background, Photo, bundled, file_sha256};
use crate::worker::ImageSource;
use crate::{Error, ErrorKind, Result};

/// Which photographs are used.
#[derive(Debug, Args)]
pub struct PhotoArgs {
    /// Photographs: files, folders of files, or `bundled:NAME`; without any the program's own
    #[arg(value_name = "PHOTO", value_parser = parse_image)]
    pub photos: Vec<ImageSource>,
    /// Photographs that are held out for scores, instead of some drawn from the others; files, folders or `bundled:NAME`
    #[arg(long, value_name = "PHOTO", value_parser = parse_image, conflicts_with_all = ["pairs", "held_out"])]
    pub hold_out: Vec<ImageSource>,
    /// Folder of originals whose edits an outside editor has made: NAME_edited beside NAME, or see --edits
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["photos", "manipulation"])]
    pub pairs: Option<PathBuf>,
    /// Folder of the edits, each of the name of its original, instead of edits beside the originals
    #[arg(long, value_name = "FOLDER", requires = "pairs")]
    pub edits: Option<PathBuf>,
}

/// A photograph, and its edit where an outside editor has made it.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) image: ImageSource,
    pub(super) edited: Option<ImageSource>,
}

impl Source {
    /// SHA-256 of the photograph's file, by which it is told from others.
    pub(super) fn sha256(&self) -> Result<String> {
        match &self.image {
            ImageSource::Path(path) => file_sha256(path),
            ImageSource::Bundled(name) => bundled::file_sha256(name),
            // What no command line can name.
            other => Ok(other.open(Background::default())?.sha256),
        }
    }

    /// The photograph and its edit, decoded.
    pub(super) fn open(&self, background: Background) -> Result<(Photo, Option<Photo>)> {
        let edited = self.edited.as_ref().map(|edited| edited.open(background));
        Ok((self.image.open(background)?, edited.transpose()?))
    }
}

impl PhotoArgs {
    /// The photographs: those given, folders replaced by the pictures in them; the bundled ones where none is; or the pairs, with
    /// the report of what did not match.
    ///
    /// # Errors
    /// [`ErrorKind::Image`] for a folder that cannot be read or has no pictures or pairs.
    pub(super) fn sources(&self) -> Result<(Vec<Source>, Option<PairReport>)> {
        if let Some(originals) = &self.pairs {
            let report = pairs::find(originals, self.edits.as_deref())?;
            let sources = report.pairs.iter().map(|pair| Source {
                image: ImageSource::Path(pair.original.clone()),
                edited: Some(ImageSource::Path(pair.edited.clone())),
            });
            return Ok((sources.collect(), Some(report)));
        }
        if self.photos.is_empty() {
            let own = bundled::NAMES.map(|name| alone(ImageSource::Bundled(name.to_owned())));
            return Ok((own.to_vec(), None));
        }
        Ok((expanded(&self.photos)?, None))
    }

    /// The photographs to hold out that were named.
    ///
    /// # Errors
    /// As [`PhotoArgs::sources`].
    pub(super) fn held_out(&self) -> Result<Vec<Source>> {
        expanded(&self.hold_out)
    }
}

/// Photographs with folders replaced by the pictures in them.
fn expanded(photos: &[ImageSource]) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for photo in photos {
        match photo {
            ImageSource::Path(path) if path.is_dir() => {
                let found = pairs::pictures(path, &mut Vec::new())?;
                if found.is_empty() {
                    return Err(no_pictures(path));
                }
                sources.extend(found.into_iter().map(|path| alone(ImageSource::Path(path))));
            }
            photo => sources.push(alone(photo.clone())),
        }
    }
    Ok(sources)
}

fn alone(image: ImageSource) -> Source {
    Source {
        image,
        edited: None,
    }
}

fn no_pictures(folder: &Path) -> Error {
    Error::new(
        ErrorKind::Image,
        format!("cannot use the folder “{}”", folder.display()),
        "no picture lies in it",
        "Choose a folder with photographs; folders inside are not searched",
    )
}
