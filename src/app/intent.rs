//! What panels see and what they ask for. Panels draw and ask; only the app changes anything.

use std::path::PathBuf;

use super::settings::{AxisScale, Settings, ThemeChoice};
use super::state::State;
use super::ui_command::UiCommand;
use crate::device::DeviceChoice;
use crate::encoders::Readout;
use crate::geometry::directions::DirectionFamily;
use crate::recipe::Preset;
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
    /// Choose an encoder by name.
    Encoder(&'static str),
    /// Choose the feature.
    Readout(Readout),
    /// Choose the directions.
    Family(DirectionFamily),
    /// Set the seed.
    Seed(u64),
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
}
