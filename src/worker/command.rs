//! What can be asked of the worker.

use std::path::PathBuf;
use std::sync::Arc;

use crate::device::DeviceChoice;
use crate::geometry::maps::Cut;
use crate::images::Background;
use crate::recipe::{EditRecipe, ProfileRecipe, SpectrumRecipe};
pub use crate::report::{Content, Export, ExportFormat};

/// Number of a request within the program's life; larger is newer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

/// Requests of one lane supersede each other; lanes are served in this order, most urgent first.
///
/// A change of the device or of the photograph also ends the work on it that was asked for before: it
/// answers [`super::Event::Failed`] as cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Choice of the compute device.
    Device,
    /// Opening of a photograph.
    Image,
    /// r at one exact η, while it is dragged.
    Measure,
    /// A fitted map at one rank, while it is dragged.
    Rank,
    /// Files to write; never superseded.
    Export,
    /// Fitting of an edit's map.
    Edit,
    /// Singular spectra.
    Spectrum,
    /// Pictures sought by gradient for mapped features.
    Invert,
    /// Response profiles.
    Profile,
}

impl Lane {
    /// All lanes, most urgent first.
    pub const ALL: [Self; 9] = [
        Self::Device,
        Self::Image,
        Self::Measure,
        Self::Rank,
        Self::Export,
        Self::Edit,
        Self::Spectrum,
        Self::Invert,
        Self::Profile,
    ];

    /// The lanes whose work is on the current photograph and device.
    pub const ON_PHOTOGRAPH: [Self; 6] = [
        Self::Measure,
        Self::Rank,
        Self::Edit,
        Self::Spectrum,
        Self::Invert,
        Self::Profile,
    ];
}

/// A command with its number.
#[derive(Clone, Debug)]
pub struct Request {
    /// Number given by the sender, returned in every [`super::Event`] about it.
    pub generation: Generation,
    /// What to do.
    pub command: Command,
}

/// What to do.
#[derive(Clone, Debug)]
pub enum Command {
    /// Move to another compute device; the current photograph and profile are computed anew by the
    /// sender's next requests.
    UseDevice(DeviceChoice),
    /// Read a photograph and make it the current one.
    OpenImage {
        /// Where it comes from.
        source: ImageSource,
        /// Colour under transparent pixels.
        background: Background,
    },
    /// Compute response profiles of the current photograph, one for each recipe (an encoder and its
    /// twin), a slice of each in turn so that all curves grow together.
    Profile(Vec<ProfileRecipe>),
    /// Measure r at one η for each recipe, with the few first pairs of the same directions.
    Measure {
        /// As in [`Command::Profile`]; `etas_l2` is ignored.
        recipes: Vec<ProfileRecipe>,
        /// The exact magnitude asked for.
        eta_l2: f64,
    },
    /// Fit the map of an edit, encoding what is not encoded yet.
    Edit(EditRecipe),
    /// Answer with the fitted map of an edit at one rank.
    Rank {
        /// What was fitted.
        recipe: EditRecipe,
        /// What is cut.
        cut: Cut,
        /// Rank k; above the largest, that.
        rank: usize,
    },
    /// Seek pictures by gradient for the unedited features and for those of a rank.
    Invert {
        /// What was fitted.
        recipe: EditRecipe,
        /// What is cut.
        cut: Cut,
        /// Rank k.
        rank: usize,
    },
    /// Write files.
    Export(Export),
    /// Singular spectra of the current photograph's Jacobians, and directions that move a feature least, one
    /// after the other.
    Spectrum(Vec<SpectrumTask>),
    /// Let the weights in memory take so many bytes together; those that are not in use and do not
    /// fit are unloaded at once.
    SetBudget(u64),
    /// Hold a lane's work until [`Command::Resume`].
    Pause(Lane),
    /// Go on with a lane's work.
    Resume(Lane),
    /// Stop a lane's work at its next step and end its pause; what was shown stays.
    Cancel(Lane),
    /// End the thread after the running step and after the exports that were asked for.
    Shutdown,
}

impl Command {
    /// The lane whose older request this one supersedes; `None` for commands that act at once and
    /// replace nothing.
    pub fn lane(&self) -> Option<Lane> {
        match self {
            Self::UseDevice(_) => Some(Lane::Device),
            Self::OpenImage { .. } => Some(Lane::Image),
            Self::Profile(_) => Some(Lane::Profile),
            Self::Measure { .. } => Some(Lane::Measure),
            Self::Edit(_) => Some(Lane::Edit),
            Self::Rank { .. } => Some(Lane::Rank),
            Self::Invert { .. } => Some(Lane::Invert),
            Self::Spectrum(_) => Some(Lane::Spectrum),
            Self::Export(_) => Some(Lane::Export),
            Self::SetBudget(_)
            | Self::Pause(_)
            | Self::Resume(_)
            | Self::Cancel(_)
            | Self::Shutdown => None,
        }
    }

    /// Commands with an equal key replace each other, the newer the older; `None` for those that are
    /// always carried out.
    pub fn coalescing_key(&self) -> Option<CoalescingKey> {
        match self {
            Self::UseDevice(_) => Some(CoalescingKey::Work(Lane::Device)),
            Self::OpenImage { .. } => Some(CoalescingKey::Work(Lane::Image)),
            Self::Profile(_) => Some(CoalescingKey::Work(Lane::Profile)),
            Self::Measure { .. } => Some(CoalescingKey::Work(Lane::Measure)),
            Self::Edit(_) => Some(CoalescingKey::Work(Lane::Edit)),
            Self::Rank { .. } => Some(CoalescingKey::Work(Lane::Rank)),
            Self::Invert { .. } => Some(CoalescingKey::Work(Lane::Invert)),
            Self::SetBudget(_) => Some(CoalescingKey::Budget),
            Self::Pause(lane) | Self::Resume(lane) => Some(CoalescingKey::Hold(*lane)),
            Self::Cancel(lane) => Some(CoalescingKey::Stop(*lane)),
            Self::Spectrum(_) => Some(CoalescingKey::Work(Lane::Spectrum)),
            Self::Export(_) | Self::Shutdown => None,
        }
    }
}

/// One piece of a request for spectra.
#[derive(Clone, Debug, PartialEq)]
pub enum SpectrumTask {
    /// The singular values, and the first [`DIRECTIONS_KEPT`] right-singular vectors.
    Values(SpectrumRecipe),
    /// A direction that the feature hardly answers to, by shifting
    /// ([`crate::geometry::spectrum::BottomSearch`]).
    Least {
        /// The encoder with its readout; method and seed of the spectrum do not matter but for the start, which
        /// is drawn with the seed.
        recipe: SpectrumRecipe,
        /// The largest singular value, or a little above.
        largest: f64,
    },
}

/// Right-singular vectors that are kept of a spectrum, and as many of the least of an exact one: 0.6 MB each at
/// 224 px.
pub const DIRECTIONS_KEPT: usize = 16;

impl SpectrumTask {
    /// The encoder with its readout.
    pub fn recipe(&self) -> &SpectrumRecipe {
        match self {
            Self::Values(recipe) | Self::Least { recipe, .. } => recipe,
        }
    }
}

/// What makes two commands replace each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CoalescingKey {
    /// Both ask for a lane's work.
    Work(Lane),
    /// Both pause or resume a lane.
    Hold(Lane),
    /// Both set the budget of the weights.
    Budget,
    /// Both stop a lane.
    Stop(Lane),
}

/// Where a photograph comes from.
#[derive(Clone, Debug)]
pub enum ImageSource {
    /// A file.
    Path(PathBuf),
    /// A photograph of the program's own, by its name in [`crate::images::bundled`].
    Bundled(String),
    /// Bytes of an encoded file that were dropped, with a name.
    Bytes {
        /// File name or description.
        name: String,
        /// The encoded file.
        bytes: Arc<[u8]>,
    },
    /// Pasted pixels: RGBA, row after row, not premultiplied.
    Rgba {
        /// Width in pixels.
        width: usize,
        /// Height in pixels.
        height: usize,
        /// `4 · width · height` values.
        rgba: Arc<[u8]>,
    },
}
