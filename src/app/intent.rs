//! What panels see and what they ask for. Panels draw and ask; only the app changes anything.

use std::path::PathBuf;

use super::settings::{AxisScale, Settings, ThemeChoice};
use super::state::{SeenBy, Selected, State};
use super::ui_command::UiCommand;
use crate::device::DeviceChoice;
use crate::encoders::Readout;
use crate::geometry::directions::DirectionFamily;
use crate::geometry::maps::Cut;
use crate::geometry::spectrum::SpectrumMethod;
use crate::recipe::{EditRecipe, Preset, WeightsKind};
use crate::render::ViewMode;
use crate::worker::{ExportFormat, ImageSource};

/// What a panel draws from.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The model.
    pub state: &'a State,
    /// The settings.
    pub settings: &'a Settings,
}

/// Something a panel asks for.
#[derive(Clone, Debug)]
pub enum Intent {
    /// A command that menu and keys know as well.
    Do(UiCommand),
    /// Open a photograph.
    Open(ImageSource),
    /// Show the system's dialog for a photograph.
    BrowseFile,
    /// Show the system's dialog for a folder.
    BrowseFolder,
    /// Move the marker.
    SetEta(f64),
    /// Choose the leading encoder by name.
    Encoder(&'static str),
    /// Put an encoder on screen beside the others.
    AddEncoder(&'static str),
    /// Take an encoder off the screen.
    RemoveEncoder(&'static str),
    /// Ask for size and place of an encoder's published weights.
    Look(&'static str),
    /// Fetch what was offered.
    Fetch(&'static str),
    /// Stop fetching, or forget an offer or a failure.
    StopFetching(&'static str),
    /// Look into a weights file, by itself or held against an encoder.
    Inspect {
        /// Path, with `#PREFIX` for one of several copies of a network.
        file: String,
        /// Registry name.
        encoder: Option<&'static str>,
    },
    /// Use the file that was looked into as this encoder.
    Adopt(String),
    /// Show the system's dialog for a weights file.
    BrowseWeights,
    /// Let the weights in memory take so many decimal megabytes.
    Budget(u64),
    /// Choose the feature.
    Readout(Readout),
    /// Choose the directions.
    Family(DirectionFamily),
    /// Set the seed.
    Seed(u64),
    /// Move the rank.
    Rank(usize),
    /// Choose what is cut.
    Cut(Cut),
    /// Choose how feature maps are seen.
    SeeBy(SeenBy),
    /// Want another map.
    ChangeEdit(Box<EditRecipe>),
    /// Fit again what failed or was stopped.
    EditAgain,
    /// Choose the sampling.
    Preset(Preset),
    /// Start what waits for it.
    Start,
    /// Switch the dither.
    Dither(bool),
    /// Choose the compute device.
    Device(DeviceChoice),
    /// Write files.
    Export {
        /// Where.
        folder: PathBuf,
        /// Name without extension.
        stem: String,
        /// Which.
        formats: Vec<ExportFormat>,
    },
    /// Close a message.
    Dismiss(u64),
    /// Close the welcome for good.
    DismissWelcome,
    /// Choose light or dark.
    Theme(ThemeChoice),
    /// Choose what the preview shows.
    View(ViewMode),
    /// Amplification of the noise view.
    Gain(f32),
    /// Interpolation of the preview.
    Interpolate(bool),
    /// Scale of the η axis.
    XScale(AxisScale),
    /// Scale of the r axis.
    YScale(AxisScale),
    /// Choose all singular values or the leading ones.
    SpectrumMethod(SpectrumMethod),
    /// Mark a singular value, or seek the least direction.
    Select(Selected),
    /// Show the singular directions of the leading encoder or of its twin.
    DirectionsOf(WeightsKind),
    /// Change the norm of the distortion.
    SetAmplitude(f64),
}
