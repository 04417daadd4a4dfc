//! The encoders that the program knows: rows of data, with where their weights are.
//!
//! Rows come from three places and are alike: the program's own (`encoders.toml` beside this file), a
//! user's (`encoders.toml` in the configuration folder, see [`read_user_rows`]), and weight files named
//! on the spot as `NAME@FILE` (see [`local_name`]). Rows stay for the life of the program.
//!
//! The bundled weights are stored in f16, which moves the pooled feature of the demo photographs by
//! 0.33–0.70 % (EfficientNet-Lite0) and 0.06–0.08 % (SqueezeNet 1.1), the logits by 0.30–0.64 % and
//! 0.02–0.03 % (relative L2, tests/golden/photos.json).

mod classes;
mod local;
mod rows;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, RwLock};

use serde::Serialize;

use super::architecture::Architecture;
use super::layers::Placement;
use super::weights::checkpoint::Checkpoint;
use super::weights::find::{Caches, Origin};
use super::weights::infer::{self, Proposal};
use super::weights::verify::{Report, nearest};
use super::weights::{Weights, names};
use super::{Encoder, EncoderSpec, WeightsKind};
use crate::device::ComputeDevice;
use crate::{Error, ErrorKind, Result};
use local::LOCAL;

pub use classes::{class_name, top5};
pub use local::{local_file, local_name, split_local};

/// An encoder on a device.
pub struct LoadedEncoder {
    /// The network.
    pub encoder: Box<dyn Encoder>,
    /// Trained or random parameters.
    pub weights: WeightsKind,
    /// SHA-256 of the weights file, or the seed of the random ones.
    pub weights_id: String,
    /// Seed of the random parameters; unused by the trained ones.
    pub seed: u64,
    /// Where its tensors live.
    pub device: ComputeDevice,
    /// Format of its tensors, f32 or, for reference values, f64.
    pub placement: Placement,
}

impl LoadedEncoder {
    /// What the encoder is.
    pub fn spec(&self) -> &EncoderSpec {
        self.encoder.spec()
    }
}

/// A row of the registry.
#[derive(Debug)]
pub struct Row {
    /// What the encoder is.
    pub spec: EncoderSpec,
    /// The network.
    pub architecture: Architecture,
    /// Where its weights come from.
    pub origin: Origin,
    /// The paper; empty where none is stated.
    pub citation: String,
    /// SHA-256 of the weight file in hexadecimal, or the digits of it that are published.
    pub sha256: Option<String>,
    /// Size of the weight file, as published.
    pub size_bytes: Option<u64>,
    /// Whether a licence must be accepted before the weights can be fetched.
    pub gated: bool,
    /// What else a reader should know; mostly empty.
    pub note: String,
    /// What every name of the network begins with in the file, where it must be said.
    pub prefix: Option<String>,
}

/// Whether an encoder's weights are on this machine, and what they take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Whether the encoder can be used now.
    pub installed: bool,
    /// The weight file, where it is one of its own.
    pub path: Option<PathBuf>,
    /// Size of the weight file: the real one where it is there, else the published one.
    pub size_bytes: Option<u64>,
    /// Memory that the parameters take once loaded in single precision.
    pub memory_bytes: u64,
    /// Whether the program can fetch the weights.
    pub can_be_fetched: bool,
}

impl Row {
    /// Whether the weights are on this machine. Looks at the file system, and nowhere else.
    pub fn status(&self) -> Status {
        let path = Caches::from_env().and_then(|caches| caches.find(&self.origin));
        let size = path.as_ref().and_then(|path| path.metadata().ok());
        let size = size
            .filter(std::fs::Metadata::is_file)
            .map(|file| file.len());
        let (installed, size) = match self.origin {
            Origin::Bundled(_, bytes) => (true, Some(bytes.len() as u64)),
            _ => (path.is_some(), size.or(self.size_bytes)),
        };
        Status {
            installed,
            path,
            size_bytes: size,
            memory_bytes: 4 * self.spec.parameters as u64,
            can_be_fetched: cfg!(feature = "hub") && self.origin.is_fetched(),
        }
    }

    /// The checkpoint of its weights.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Weights`] where it is not on this machine or cannot be read.
    pub fn checkpoint(&self) -> Result<Checkpoint<'static>> {
        if let Origin::Bundled(file, bytes) = self.origin {
            return Checkpoint::from_safetensors(file, bytes);
        }
        let found = Caches::from_env().and_then(|caches| caches.find(&self.origin));
        Checkpoint::open(&found.ok_or_else(|| self.absent())?)
    }

    /// How the tensors of its weight file serve its architecture.
    ///
    /// # Errors
    ///
    /// As [`Self::checkpoint`]; those of [`super::weights::remap::fit`].
    pub fn report(&self) -> Result<Report> {
        self.report_of(&self.checkpoint()?)
    }

    /// How the tensors of another weight file would serve its architecture.
    ///
    /// # Errors
    ///
    /// Those of [`super::weights::remap::fit`].
    pub fn report_of(&self, checkpoint: &Checkpoint<'_>) -> Result<Report> {
        let (_, fit) = infer::fit(checkpoint, &self.architecture, self.prefix.as_deref())?;
        let mut report = fit.report;
        report.suggest();
        Ok(report)
    }

    fn absent(&self) -> Error {
        let name = &self.spec.name;
        let by_hand = format!("and use it as “--encoder {name} --weights FILE”");
        let remedy = match &self.origin {
            Origin::Page(page) => format!("Fetch the file at {page}, {by_hand}"),
            _ if cfg!(feature = "hub") => format!("Run “etascope encoders fetch {name}”"),
            origin => format!("Fetch the file ({}), {by_hand}", origin.describe()),
        };
        Error::new(
            ErrorKind::Weights,
            format!("cannot load {}", self.spec.title),
            "its weights are not on this machine",
            remedy,
        )
    }
}

/// The program's own weight files.
static BUNDLED: [(&str, &[u8]); 2] = [
    (
        "efficientnet_lite0.safetensors",
        include_bytes!("../../../assets/encoders/efficientnet_lite0.safetensors"),
    ),
    (
        "squeezenet1_1.safetensors",
        include_bytes!("../../../assets/encoders/squeezenet1_1.safetensors"),
    ),
];

/// All rows so far, in the order in which they are offered.
static ROWS: LazyLock<RwLock<Vec<&'static Row>>> = LazyLock::new(|| {
    let own = rows::read(
        "encoders.toml of the program",
        include_str!("encoders.toml"),
        Path::new(""),
        &BUNDLED,
        &BTreeSet::new(),
    );
    let own = own.expect("the program's own rows are sound, as a test holds");
    RwLock::new(own.into_iter().map(kept).collect())
});

/// A row for the life of the program.
fn kept(row: Row) -> &'static Row {
    Box::leak(Box::new(row))
}

fn known() -> Vec<&'static Row> {
    // A thread that panicked while it held the lock has left whole rows behind.
    let rows = ROWS
        .read()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    rows.clone()
}

fn add(rows: impl IntoIterator<Item = &'static Row>) {
    let mut known = ROWS
        .write()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    for row in rows {
        if !known.iter().any(|one| one.spec.name == row.spec.name) {
            known.push(row);
        }
    }
}

/// Where a user's own rows stand: `encoders.toml` in the configuration folder. `None` where there is
/// no home folder.
pub fn user_rows_path() -> Option<PathBuf> {
    directories::ProjectDirs::from("", "", "Etascope")
        .map(|dirs| dirs.config_dir().join("encoders.toml"))
}

/// Adds the rows of a file to the registry, after those that are there. A file that does not exist
/// holds none.
///
/// # Errors
///
/// [`ErrorKind::Request`] with the line where something is unknown, missing or wrong; nothing is added
/// then.
pub fn read_user_rows(path: &Path) -> Result<()> {
    let source = path.display().to_string();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            let what = format!("cannot read the encoders in “{source}”");
            let remedy = "Allow reading the file, or remove it";
            return Err(Error::new(ErrorKind::Request, what, error, remedy));
        }
    };
    let taken = known()
        .iter()
        .map(|row| row.spec.name.to_string())
        .collect();
    let folder = path.parent().unwrap_or(Path::new(""));
    let rows = rows::read(&source, &text, folder, &[], &taken)?;
    add(rows.into_iter().map(kept));
    Ok(())
}

/// All rows in the order in which they are offered; the first is the default. Weight files that were
/// named on the spot are not among them.
pub fn all_rows() -> Vec<&'static Row> {
    known()
        .into_iter()
        .filter(|row| !row.spec.name.contains(LOCAL))
        .collect()
}

/// What is known of all encoders, whether their weights are on this machine or not.
pub fn all() -> impl Iterator<Item = &'static EncoderSpec> {
    all_rows().into_iter().map(|row| &row.spec)
}

/// The encoders whose weights are in the program itself.
pub fn bundled() -> impl Iterator<Item = &'static EncoderSpec> {
    let rows = all_rows().into_iter();
    rows.filter(|row| matches!(row.origin, Origin::Bundled(..)))
        .map(|row| &row.spec)
}

/// The encoders that can be used now.
pub fn specs() -> Vec<&'static EncoderSpec> {
    let rows = all_rows().into_iter();
    rows.filter(|row| row.status().installed)
        .map(|row| &row.spec)
        .collect()
}

/// The encoder of this registry name, or of this name with a file (see [`local_name`]).
///
/// # Errors
///
/// [`ErrorKind::Request`] with the known names where there is none; [`ErrorKind::Weights`] where the
/// file cannot be read or is of another architecture.
pub fn find(name: &str) -> Result<&'static EncoderSpec> {
    row(name).map(|row| &row.spec)
}

/// As [`find`], with where its weights are.
///
/// # Errors
///
/// As [`find`].
pub fn row(name: &str) -> Result<&'static Row> {
    let rows = known();
    if let Some(row) = rows.iter().find(|row| *row.spec.name == *name) {
        return Ok(row);
    }
    if let (base, Some(file)) = split_local(name) {
        let row = kept(local::row(name, row(base)?, file)?);
        add([row]);
        return Ok(row);
    }
    let names: Vec<&str> = all().map(|spec| &*spec.name).collect();
    let remedy = match nearest(name, names.iter().copied()) {
        Some(candidate) => format!("Did you mean “{candidate}”?"),
        None => "Choose one of those that etascope encoders lists".to_owned(),
    };
    // The bundled ones always work, and all are too many for a sentence.
    let bundled: Vec<&str> = bundled().map(|spec| &*spec.name).collect();
    Err(Error::new(
        ErrorKind::Request,
        format!("cannot use the encoder “{name}”"),
        format!(
            "it is none of the {} that are known, such as {}",
            names.len(),
            bundled.join(", ")
        ),
        remedy,
    ))
}

/// The encoders that a weight file may be of, the best first; see [`super::weights::remap::fit`] for
/// `prefix`.
///
/// # Errors
///
/// Those of [`infer::propose`].
pub fn propose(checkpoint: &Checkpoint<'_>, prefix: Option<&str>) -> Result<Vec<Proposal>> {
    let rows = all_rows();
    let known = rows.iter().map(|row| (&*row.spec.name, &row.architecture));
    infer::propose(checkpoint, known, prefix)
}

/// Loads a known encoder onto a device in single precision. `seed` draws the random parameters and
/// is not used for the trained ones.
///
/// # Errors
///
/// As [`find`]; [`ErrorKind::Weights`] for weights that are damaged or not on this machine; [`ErrorKind::Device`] where the device
/// fails.
pub fn load(
    name: &str,
    weights: WeightsKind,
    seed: u64,
    device: &ComputeDevice,
) -> Result<LoadedEncoder> {
    load_at(name, weights, seed, device, Placement::f32(&device.device))
}

/// As [`load`], in single or double precision.
///
/// # Errors
///
/// As [`load`].
pub fn load_at(
    name: &str,
    kind: WeightsKind,
    seed: u64,
    device: &ComputeDevice,
    placement: Placement,
) -> Result<LoadedEncoder> {
    let row = row(name)?;
    let parameters = row.architecture.parameters();
    let mut weights = match kind {
        WeightsKind::Trained => {
            let namings = names::of(&row.architecture);
            let checkpoint = row.checkpoint()?;
            Weights::from_checkpoint(&checkpoint, &parameters, &namings, row.prefix.as_deref())?
        }
        WeightsKind::Random => Weights::random(&parameters, seed),
    };
    let weights_id = weights.id().to_owned();
    if let (WeightsKind::Trained, Some(published)) = (kind, &row.sha256)
        && !weights_id.starts_with(published.as_str())
    {
        return Err(Error::new(
            ErrorKind::Weights,
            format!("cannot use the weights of {}", row.spec.title),
            format!("the SHA-256 of their file is {weights_id}, not {published}"),
            "Remove the file and fetch it again, or name it with --weights if it is meant",
        ));
    }
    let asked = format!("cannot load {}", row.spec.title);
    let encoder = device.guard(&asked, || {
        row.architecture
            .load(row.spec.clone(), &mut weights, &placement)
    })?;
    let device = device.clone();
    Ok(LoadedEncoder {
        encoder,
        weights: kind,
        weights_id,
        seed,
        device,
        placement,
    })
}
