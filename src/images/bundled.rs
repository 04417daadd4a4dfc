//! Photographs that come with the program, so that a first start needs no file and no network.
//! Sources and licences are in NOTICES.md; the files are unchanged.

use std::path::Path;

use super::{Background, Photo, decode, sha256_hex};
use crate::{Error, ErrorKind, Result};

/// A photograph that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundledPhoto {
    /// Name by which [`open`] finds it.
    pub name: &'static str,
    /// What it shows, for people.
    pub title: &'static str,
    /// Photographer and licence, for people.
    pub credit: &'static str,
    /// The image file.
    bytes: &'static [u8],
}

/// All bundled photographs. The first is the one of the first start: none of its pixel values is at 255
/// and 0.01 % are at 0, where the other three have up to 0.3 % at 255 and, `astronaut`, 11 % at 0.
/// Saturated areas tie max-pooling and ReLU, and would pull the plateau of a profile off 1.
pub const PHOTOS: [BundledPhoto; 4] = [
    BundledPhoto {
        name: "chelsea",
        title: "Chelsea the cat",
        credit: "Stefan van der Walt, CC0",
        bytes: include_bytes!("../../assets/photos/chelsea.png"),
    },
    BundledPhoto {
        name: "coffee",
        title: "Cup of coffee",
        credit: "Rachel Michetti, CC0",
        bytes: include_bytes!("../../assets/photos/coffee.png"),
    },
    BundledPhoto {
        name: "astronaut",
        title: "Astronaut Eileen Collins",
        credit: "NASA, public domain",
        bytes: include_bytes!("../../assets/photos/astronaut.png"),
    },
    BundledPhoto {
        name: "rocket",
        title: "Launch of a Falcon 9",
        credit: "SpaceX, public domain",
        bytes: include_bytes!("../../assets/photos/rocket.jpg"),
    },
];

/// Names of [`PHOTOS`], in the same order.
pub const NAMES: [&str; PHOTOS.len()] = [
    PHOTOS[0].name,
    PHOTOS[1].name,
    PHOTOS[2].name,
    PHOTOS[3].name,
];

/// What stands before the name of a bundled photograph where a file could be named as well.
pub const PREFIX: &str = "bundled:";

/// The name of a bundled photograph in a text that names it or a file.
pub fn name_in(text: &str) -> Option<&str> {
    text.strip_prefix(PREFIX)
}

/// The photograph in a text that names it or a file, for people: without folders and prefix.
pub fn short_name(text: &str) -> String {
    if let Some(name) = name_in(text) {
        return name.to_owned();
    }
    let name = Path::new(text).file_name();
    name.map_or_else(
        || text.to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// Decodes a bundled photograph; the photo's name is `name`.
///
/// # Errors
/// [`ErrorKind::Request`] where there is none of that name.
pub fn open(name: &str) -> Result<Photo> {
    decode(find(name)?.bytes, name, Background::default())
}

/// SHA-256 of the file of a bundled photograph, by which it is known.
///
/// # Errors
/// As [`open`].
pub fn file_sha256(name: &str) -> Result<String> {
    Ok(sha256_hex(find(name)?.bytes))
}

fn find(name: &str) -> Result<&'static BundledPhoto> {
    PHOTOS
        .iter()
        .find(|photo| photo.name == name)
        .ok_or_else(|| {
            Error::new(
                ErrorKind::Request,
                format!("cannot open “{name}”"),
                "no bundled photograph has this name",
                format!("Choose one of {}", NAMES.join(", ")),
            )
        })
}
