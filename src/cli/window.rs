//! `etascope` without a subcommand: the window.

use std::path::PathBuf;

use clap::Args;

use super::values::{parse_device, parse_image};
use crate::device::DeviceChoice;
use crate::worker::ImageSource;
use crate::{Error, ErrorKind, Result};

/// How the window starts.
#[derive(Debug, Args)]
pub struct WindowArgs {
    /// Photograph to open: a file, or `bundled:NAME` for one of the program's own
    #[arg(value_name = "IMAGE", value_parser = parse_image)]
    pub image: Option<ImageSource>,
    /// Encoder to choose, see `etascope encoders`
    #[arg(long, value_name = "NAME")]
    pub encoder: Option<String>,
    /// Compute device: auto, cpu or a name that `etascope devices` lists
    #[arg(long, value_parser = parse_device)]
    pub device: Option<DeviceChoice>,
    /// Write the window to this PNG once the curves are computed, and leave
    #[arg(long, value_name = "PNG", hide = true)]
    pub screenshot: Option<PathBuf>,
    /// Size of the window in the picture, in points
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "1280x800", hide = true,
          value_parser = parse_size)]
    pub size: [f32; 2],
    /// The picture in the light theme instead of the dark one
    #[arg(long, hide = true)]
    pub light: bool,
    /// The picture with the random twin
    #[arg(long, hide = true)]
    pub twin: bool,
    /// The workspace in the picture
    #[arg(long, hide = true, default_value = "response", value_parser = ["response", "spectrum", "edit"])]
    pub workspace: String,
}

/// `1280x800`.
fn parse_size(text: &str) -> std::result::Result<[f32; 2], String> {
    let wrong = || "give width and height in points, as 1280x800".to_owned();
    let (width, height) = text.split_once('x').ok_or_else(wrong)?;
    let side = |text: &str| text.parse::<u16>().map(f32::from).map_err(|_| wrong());
    Ok([side(width)?, side(height)?])
}

const HEADLESS: &str = "Without a window use “etascope profile”, see “etascope profile --help”";

/// Opens the window and stays until it is closed.
///
/// # Errors
/// Where there is no display, or the program was built without the window.
pub fn run(args: WindowArgs) -> Result<()> {
    // A fault in the user's own rows must not keep the window shut.
    if let Err(error) = super::with_user_rows() {
        super::note(&super::describe(&error));
    }
    if let Some(name) = &args.encoder {
        crate::encoders::registry::find(name)?;
    }
    open(args)
}

#[cfg(feature = "gui")]
fn open(args: WindowArgs) -> Result<()> {
    check_display()?;
    crate::app::run(crate::app::Options {
        image: args.image,
        encoder: args.encoder,
        device: args.device,
        screenshot: args.screenshot.map(|path| crate::app::Screenshot {
            path,
            size: args.size,
            theme: if args.light {
                crate::app::ThemeChoice::Light
            } else {
                crate::app::ThemeChoice::Dark
            },
            twin: args.twin,
            workspace: match args.workspace.as_str() {
                "spectrum" => crate::app::Workspace::Spectrum,
                "edit" => crate::app::Workspace::Edit,
                _ => crate::app::Workspace::Response,
            },
        }),
    })
}

#[cfg(not(feature = "gui"))]
fn open(_: WindowArgs) -> Result<()> {
    Err(cannot_open(
        "this program was built without the window (feature “gui”)",
    ))
}

/// On Linux a window needs a Wayland compositor or an X server, and these variables name them.
#[cfg(feature = "gui")]
fn check_display() -> Result<()> {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let needs = cfg!(all(unix, not(target_os = "macos")));
    if !needs
        || ["WAYLAND_DISPLAY", "WAYLAND_SOCKET", "DISPLAY"]
            .into_iter()
            .any(is_set)
    {
        return Ok(());
    }
    Err(cannot_open(
        "there is no display: neither WAYLAND_DISPLAY nor DISPLAY is set",
    ))
}

fn cannot_open(why: &str) -> Error {
    Error::new(ErrorKind::Request, "cannot open the window", why, HEADLESS)
}
