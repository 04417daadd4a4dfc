//! Pairs of an original and its edit by an outside editor, matched by file name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::preprocess::{ResizeFilter, resize};
use super::{Photo, sha256_hex};
use crate::{Error, ErrorKind, Result};

/// Extensions of the files that are taken for pictures, in lower case. The content decides how a file is
/// read; the extension only tells pictures from whatever else lies in a folder.
const EXTENSIONS: [&str; 9] = [
    "png", "jpg", "jpeg", "webp", "tif", "tiff", "bmp", "gif", "jfif",
];

/// Endings by which a file of a common folder is known as an edit, after `_`, `-`, `.` or a space.
const EDIT_MARKS: [&str; 5] = ["edited", "edit", "after", "target", "output"];

/// Endings by which it is known as an original; no ending at all means the same.
const ORIGINAL_MARKS: [&str; 5] = ["original", "orig", "before", "source", "input"];

/// Largest difference of the ratio width : height between two sides of a pair. Editors round sides to
/// multiples of 8 to 64 px, which stays below this at 1,024 px; a cut changes the ratio by more.
pub const ASPECT_TOLERANCE: f64 = 0.03;

/// An original and its edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImagePair {
    /// Common part of the file names.
    pub name: String,
    /// File of the original.
    pub original: PathBuf,
    /// File of the edit.
    pub edited: PathBuf,
}

/// What was found in one or two folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairReport {
    /// Pairs in the order of their names.
    pub pairs: Vec<ImagePair>,
    /// Originals without an edit.
    pub originals_alone: Vec<PathBuf>,
    /// Edits without an original.
    pub edits_alone: Vec<PathBuf>,
    /// Names that several originals or several edits share, with those files; they form no pair.
    pub ambiguous: Vec<(String, Vec<PathBuf>)>,
    /// Files that are not taken for pictures.
    pub ignored: Vec<PathBuf>,
}

impl PairReport {
    /// One line for people: `12 pairs; 1 original without an edit; …`.
    pub fn summary(&self) -> String {
        let mut parts = vec![count(self.pairs.len(), "pair", "pairs")];
        let mut add = |number: usize, one: &str, many: &str| {
            if number > 0 {
                parts.push(count(number, one, many));
            }
        };
        add(
            self.originals_alone.len(),
            "original without an edit",
            "originals without an edit",
        );
        add(
            self.edits_alone.len(),
            "edit without an original",
            "edits without an original",
        );
        add(
            self.ambiguous.len(),
            "name with several files",
            "names with several files",
        );
        add(self.ignored.len(), "other file", "other files");
        parts.join("; ")
    }
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Files of one name.
#[derive(Default)]
struct Candidates {
    originals: Vec<PathBuf>,
    edits: Vec<PathBuf>,
}

/// Finds pairs. With two folders a pair has the same name, whatever the extensions; with one, `NAME` or
/// `NAME_original` goes with `NAME_edited`; the marks are those of either side, separated by `_`, `-`, `.` or
/// a space, in any case. Folders inside are not searched; hidden files are passed over.
///
/// # Errors
/// [`ErrorKind::Image`] where a folder cannot be read or there is no pair at all.
pub fn find(originals: &Path, edits: Option<&Path>) -> Result<PairReport> {
    let mut report = PairReport::default();
    let mut found: BTreeMap<String, Candidates> = BTreeMap::new();
    for path in pictures(originals, &mut report.ignored)? {
        let stem = stem(&path);
        if edits.is_some() {
            found.entry(stem).or_default().originals.push(path);
        } else if let Some(name) = without_mark(&stem, &EDIT_MARKS) {
            found.entry(name).or_default().edits.push(path);
        } else {
            let name = without_mark(&stem, &ORIGINAL_MARKS).unwrap_or(stem);
            found.entry(name).or_default().originals.push(path);
        }
    }
    if let Some(edits) = edits {
        for path in pictures(edits, &mut report.ignored)? {
            found.entry(stem(&path)).or_default().edits.push(path);
        }
    }
    for (name, mut files) in found {
        match (files.originals.len(), files.edits.len()) {
            (1, 1) => {
                let files = files.originals.pop().zip(files.edits.pop());
                let pair = files.map(|(original, edited)| ImagePair {
                    name,
                    original,
                    edited,
                });
                report.pairs.extend(pair);
            }
            (1, 0) => report.originals_alone.append(&mut files.originals),
            (0, 1) => report.edits_alone.append(&mut files.edits),
            _ => {
                files.originals.append(&mut files.edits);
                report.ambiguous.push((name, files.originals));
            }
        }
    }
    if report.pairs.is_empty() {
        let remedy = if edits.is_some() {
            "Give each edit the file name of its original"
        } else {
            "Name the edit of photo.png photo_edited.png, or keep edits in a folder of their own"
        };
        return Err(Error::new(
            ErrorKind::Image,
            format!("cannot find pairs in “{}”", originals.display()),
            report.summary(),
            remedy,
        ));
    }
    Ok(report)
}

/// Picture files of a folder, sorted; other files go to `ignored`, hidden ones nowhere. Folders inside are not searched.
///
/// # Errors
/// [`ErrorKind::Image`] where the folder cannot be read.
pub fn pictures(folder: &Path, ignored: &mut Vec<PathBuf>) -> Result<Vec<PathBuf>> {
    let unreadable = |error: std::io::Error| {
        Error::new(
            ErrorKind::Image,
            format!("cannot read the folder “{}”", folder.display()),
            error,
            "Choose another folder",
        )
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_file() && !is_hidden {
            files.push(path);
        }
    }
    files.sort();
    let (pictures, mut others) = files.into_iter().partition(|path| {
        path.extension().is_some_and(|extension| {
            EXTENSIONS.contains(&extension.to_string_lossy().to_lowercase().as_str())
        })
    });
    ignored.append(&mut others);
    Ok(pictures)
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

/// The name before a mark and its separator, if the stem ends so.
fn without_mark(stem: &str, marks: &[&str]) -> Option<String> {
    let (name, mark) = stem.rsplit_once(['_', '-', '.', ' '])?;
    (!name.is_empty() && marks.contains(&mark.to_lowercase().as_str())).then(|| name.to_owned())
}

/// Both sides of a pair in one size: the smaller width and the smaller height of the two. Whichever has
/// another size is resized to it by Pillow's bicubic filter, so that neither side is enlarged, and what
/// was done is added to its treatment.
///
/// # Errors
/// [`ErrorKind::Image`] where the two differ in shape by more than [`ASPECT_TOLERANCE`]: an edit that was
/// cut is not the same scene, position by position.
pub fn reconcile(original: &Photo, edited: &Photo) -> Result<(Photo, Photo)> {
    let aspect = |photo: &Photo| f64::from(photo.width) / f64::from(photo.height);
    let ratio = aspect(original) / aspect(edited);
    // Not a number where a side is 0, and then in no range.
    if !(1.0 - ASPECT_TOLERANCE..=1.0 + ASPECT_TOLERANCE).contains(&ratio) {
        return Err(Error::new(
            ErrorKind::Image,
            format!("cannot pair “{}” with “{}”", original.name, edited.name),
            format!(
                "they have {} × {} and {} × {} pixels, which are different shapes",
                original.width, original.height, edited.width, edited.height
            ),
            "Let the editor keep the picture's shape, or cut both alike",
        ));
    }
    let width = original.width.min(edited.width);
    let height = original.height.min(edited.height);
    Ok((
        in_size(original, width, height),
        in_size(edited, width, height),
    ))
}

fn in_size(photo: &Photo, width: u32, height: u32) -> Photo {
    if (photo.width, photo.height) == (width, height) {
        return photo.clone();
    }
    let rgb: Arc<[u8]> = resize(
        &photo.rgb,
        (photo.width as usize, photo.height as usize),
        (width as usize, height as usize),
        ResizeFilter::Bicubic,
    )
    .into();
    let mut treatment = photo.treatment.clone();
    treatment.push(format!(
        "to the {width} × {height} pixels of its pair, bicubic"
    ));
    Photo {
        name: photo.name.clone(),
        path: photo.path.clone(),
        width,
        height,
        // Still the file's, by which it is known, where there is one.
        sha256: match photo.path {
            Some(_) => photo.sha256.clone(),
            None => sha256_hex(&rgb),
        },
        rgb,
        treatment,
    }
}
