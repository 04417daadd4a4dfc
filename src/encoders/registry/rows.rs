//! Rows of the registry as they are written: TOML, the same for the program's own encoders and for
//! those that a user adds.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use super::Row;
use crate::encoders::EncoderSpec;
use crate::encoders::architecture::Architecture;
use crate::encoders::weights::find::{Origin, file_name, is_plain};
use crate::encoders::weights::infer::with_classes;
use crate::encoders::weights::verify::nearest;
use crate::images::{ChannelOrder, Preprocessing, ResizeFilter};
use crate::{Error, ErrorKind, Result};

/// Fewest digits of a SHA-256 that tell a damaged file: those that torchvision puts in file names.
const SHA256_DIGITS_MIN: usize = 8;

/// Largest input side in pixels: beyond it a single activation takes gigabytes.
const SIDE_MAX: usize = 4096;

/// Most classes that a row may claim.
const CLASSES_MAX: usize = 1_000_000;

/// A file of rows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rows {
    #[serde(default)]
    encoder: Vec<Spanned<Written>>,
}

/// A row as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// Registry name.
    name: String,
    /// Name for people; the registry name where absent.
    title: Option<String>,
    /// Name of a published architecture, as `resnet50`.
    architecture: String,
    /// Number of classes where it is not the published one.
    classes: Option<usize>,
    /// The paper.
    citation: Option<String>,
    /// Who published the weights, and as what.
    source: Option<String>,
    /// Licence of the weights.
    licence: Option<String>,
    /// The input recipe: its own, or the name of one.
    input: Input,
    /// Name of a bundled file; only in the program's own rows.
    bundled: Option<String>,
    /// A file on this machine; relative to the file of rows.
    file: Option<PathBuf>,
    /// A repository on the Hugging Face hub.
    hub: Option<String>,
    /// Path of the file in it.
    hub_file: Option<String>,
    /// Branch, tag or commit of it.
    revision: Option<String>,
    /// A plain address.
    url: Option<String>,
    /// A page from which people fetch the file.
    page: Option<String>,
    /// SHA-256 of the file, or at least its first eight digits.
    sha256: Option<String>,
    /// Size of the file in MiB, for people.
    size_mib: Option<f64>,
    /// Whether a licence must be accepted before the file can be fetched.
    #[serde(default)]
    gated: bool,
    /// What else a reader should know.
    note: Option<String>,
    /// What every name in the file begins with, where it holds several copies of the network.
    prefix: Option<String>,
}

/// An input recipe.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Name of a recipe that stands in the source, with its sources.
    recipe: Option<String>,
    /// Length of the shorter side after the resize.
    resize: Option<usize>,
    /// Side of the centre crop.
    crop: Option<usize>,
    /// Whether both sides become `resize`.
    #[serde(default)]
    squash: bool,
    filter: Option<ResizeFilter>,
    /// Whether the resize keeps fractions of grey levels.
    #[serde(default)]
    fractional: bool,
    mean: Option<[f32; 3]>,
    std: Option<[f32; 3]>,
    channels: Option<ChannelOrder>,
}

/// Reads a text of rows. `folder` is where relative files are; `bundled` gives the bytes of the
/// program's own files; names in `taken` are refused.
///
/// # Errors
///
/// [`ErrorKind::Request`] with the line where something is unknown, missing or wrong.
pub(super) fn read(
    source: &str,
    text: &str,
    folder: &Path,
    bundled: &[(&'static str, &'static [u8])],
    taken: &BTreeSet<String>,
) -> Result<Vec<Row>> {
    let rows: Rows = toml::from_str(text).map_err(|error| {
        let line = error
            .span()
            .map(|span| format!("line {}: ", line_of(text, &span)));
        refuse(
            source,
            &format!("{}{}", line.unwrap_or_default(), error.message()),
            "Correct the line, or remove it",
        )
    })?;
    let mut taken = taken.clone();
    let mut read = Vec::new();
    for row in rows.encoder {
        let line = line_of(text, &row.span());
        let written = row.into_inner();
        let name = written.name.clone();
        let row = written
            .row(folder, bundled, &taken)
            .map_err(|(why, remedy)| {
                refuse(
                    source,
                    &format!("the encoder “{name}” (line {line}): {why}"),
                    remedy,
                )
            })?;
        taken.insert(name);
        read.push(row);
    }
    Ok(read)
}

fn line_of(text: &str, span: &Range<usize>) -> usize {
    let before = text.get(..span.start).unwrap_or(text);
    before.matches('\n').count() + 1
}

fn refuse(source: &str, why: &str, remedy: &str) -> Error {
    let what = format!("cannot use the encoders in “{source}”");
    Error::new(ErrorKind::Request, what, why, remedy)
}

/// Why a row is refused, and what to do.
type Refusal = (String, &'static str);

impl Written {
    fn row(
        self,
        folder: &Path,
        bundled: &[(&'static str, &'static [u8])],
        taken: &BTreeSet<String>,
    ) -> std::result::Result<Row, Refusal> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if self.name.is_empty() || !self.name.chars().all(is_name) {
            let why = "a name consists of letters, digits, “.”, “_” and “-”";
            return Err((why.to_owned(), "Choose another name"));
        }
        if taken.contains(&self.name) {
            return Err(("the name is taken".to_owned(), "Choose another name"));
        }
        let architecture = self.architecture()?;
        let origin = self.origin(folder, bundled)?;
        if let Some(sha256) = &self.sha256 {
            let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            if !(SHA256_DIGITS_MIN..=64).contains(&sha256.len()) || !sha256.bytes().all(is_hex) {
                return Err((
                    format!("“{sha256}” is not a SHA-256"),
                    "Give its 64 hexadecimal digits in lower case, or at least the first eight",
                ));
            }
        }
        let preprocessing = self.input.preprocessing()?;
        let side_px = preprocessing.crop_px;
        let correct = "Correct the encoder's input, or its architecture";
        architecture
            .check(side_px)
            .map_err(|error| (error.why, correct))?;
        if self
            .size_mib
            .is_some_and(|size| !size.is_finite() || size <= 0.0)
        {
            return Err((
                "its size_mib is not a size".to_owned(),
                "Give the size in MiB, or leave it out",
            ));
        }
        let title = self.title.unwrap_or_else(|| self.name.clone());
        Ok(Row {
            spec: EncoderSpec {
                name: self.name.into(),
                title: title.into(),
                source: self
                    .source
                    .unwrap_or_else(|| "added by the user".to_owned())
                    .into(),
                licence: self
                    .licence
                    .unwrap_or_else(|| "not stated".to_owned())
                    .into(),
                side_px,
                pooled_len: architecture.pooled_len(),
                logits_len: architecture.logits_len(),
                parameters: architecture.parameter_count(),
                stages: architecture.stage_specs(side_px),
                preprocessing,
            },
            architecture,
            origin,
            citation: self.citation.unwrap_or_default(),
            sha256: self.sha256,
            size_bytes: self.size_mib.map(|size| (size * f64::from(1 << 20)) as u64),
            gated: self.gated,
            note: self.note.unwrap_or_default(),
            prefix: self.prefix,
        })
    }

    fn architecture(&self) -> std::result::Result<Architecture, Refusal> {
        let name = &self.architecture;
        let published = Architecture::published(name).ok_or_else(|| {
            let near = nearest(name, Architecture::PUBLISHED.iter().copied());
            let hint = near
                .map(|near| format!("; did you mean “{near}”?"))
                .unwrap_or_default();
            (
                format!("there is no architecture “{name}”{hint}"),
                "Name one of those that “etascope encoders list” shows",
            )
        })?;
        match self.classes {
            None => Ok(published),
            Some(classes) if classes > CLASSES_MAX => Err((
                format!("{classes} classes are too many"),
                "Give the number of classes of the weights",
            )),
            Some(classes) => with_classes(&published, classes).ok_or_else(|| {
                let why = format!("{name} cannot have {classes} classes");
                (why, "Leave classes out")
            }),
        }
    }

    fn origin(
        &self,
        folder: &Path,
        bundled: &[(&'static str, &'static [u8])],
    ) -> std::result::Result<Origin, Refusal> {
        let one_of = "Give one of file, hub, url and page";
        let given = [
            self.bundled.is_some(),
            self.file.is_some(),
            self.hub.is_some(),
            self.url.is_some(),
            self.page.is_some(),
        ];
        if given.iter().filter(|given| **given).count() != 1 {
            return Err((
                "where its weights are is not stated once".to_owned(),
                one_of,
            ));
        }
        if self.hub.is_none() && (self.hub_file.is_some() || self.revision.is_some()) {
            let why = "hub_file and revision belong to hub";
            return Err((why.to_owned(), "Remove them, or name the repository"));
        }
        if let Some(name) = &self.bundled {
            let known = bundled.iter().find(|(known, _)| known == name);
            let (name, bytes) =
                known.ok_or_else(|| (format!("“{name}” is not bundled"), one_of))?;
            return Ok(Origin::Bundled(name, bytes));
        }
        if let Some(file) = &self.file {
            let path = folder.join(file);
            if !path.exists() {
                let why = format!("there is no file “{}”", path.display());
                return Err((
                    why,
                    "Correct the path; relative ones start at the folder of encoders.toml",
                ));
            }
            return Ok(Origin::File(path));
        }
        if let Some(repo) = &self.hub {
            let file = self
                .hub_file
                .clone()
                .unwrap_or_else(|| "model.safetensors".to_owned());
            if repo.split('/').count() != 2
                || !is_plain(Path::new(repo))
                || !is_plain(Path::new(&file))
            {
                let why = format!("“{repo}” with “{file}” is not a file of a repository");
                return Err((
                    why,
                    "Write the repository as OWNER/NAME and the file as its path there",
                ));
            }
            return Ok(Origin::Hub {
                repo: repo.clone(),
                revision: self.revision.clone().unwrap_or_else(|| "main".to_owned()),
                file,
            });
        }
        let is_web = |url: &str| url.starts_with("https://") || url.starts_with("http://");
        match (&self.url, &self.page) {
            (Some(url), _) if is_web(url) && file_name(url).is_some() => {
                Ok(Origin::Url(url.clone()))
            }
            (None, Some(page)) if is_web(page) => Ok(Origin::Page(page.clone())),
            _ => Err((
                "its address is not that of a file on the web".to_owned(),
                "Write it in full, from https:// to the file name",
            )),
        }
    }
}

impl Input {
    fn preprocessing(&self) -> std::result::Result<Preprocessing, Refusal> {
        let correct = "Correct the encoder's input";
        match self.recipe.as_deref() {
            Some("efficientnet_lite0") => return Ok(Preprocessing::efficientnet_lite0()),
            Some("squeezenet1_1") => return Ok(Preprocessing::squeezenet1_1()),
            Some(other) => return Err((format!("there is no input recipe “{other}”"), correct)),
            None => {}
        }
        let lacks = |field: &str| (format!("its input lacks {field}"), correct);
        let recipe = Preprocessing {
            resize_px: self.resize.ok_or_else(|| lacks("resize"))?,
            crop_px: self.crop.ok_or_else(|| lacks("crop"))?,
            squash: self.squash,
            filter: self.filter.ok_or_else(|| lacks("filter"))?,
            fractional: self.fractional,
            mean: self.mean.ok_or_else(|| lacks("mean"))?,
            std: self.std.ok_or_else(|| lacks("std"))?,
            channels: self.channels.unwrap_or(ChannelOrder::Rgb),
        };
        if recipe.crop_px == 0 || recipe.crop_px > recipe.resize_px || recipe.resize_px > SIDE_MAX {
            let why = format!(
                "a crop of {} px from {} px cannot be made; up to {SIDE_MAX} px can",
                recipe.crop_px, recipe.resize_px
            );
            return Err((why, correct));
        }
        let is_scale = |value: &f32| value.is_finite() && *value > 0.0;
        if !recipe.std.iter().all(is_scale) || !recipe.mean.iter().all(|mean| mean.is_finite()) {
            return Err(("its mean or std is not one of pixels".to_owned(), correct));
        }
        Ok(recipe)
    }
}
