//! What the window remembers between starts. Losing it costs nothing but convenience, so neither
//! reading nor writing it can fail the program.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::device::DeviceChoice;
use crate::render::ViewMode;
use crate::worker::DEFAULT_BUDGET_BYTES;
use crate::{Error, ErrorKind, Result};

/// Files in the recent list.
const RECENT_MAX: usize = 8;
/// Bytes of a decimal megabyte.
pub const MEGABYTE: u64 = 1_000_000;
/// Least and most that the weights in memory can be allowed, in decimal megabytes.
pub const BUDGET_RANGE_MB: [u64; 2] = [100, 100_000];

/// Light, dark, or as the system has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThemeChoice {
    /// As the system has it.
    #[default]
    System,
    /// Always light.
    Light,
    /// Always dark.
    Dark,
}

/// Scale of a plot's axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AxisScale {
    /// Equal ratios are equally long.
    Log,
    /// Equal differences are equally long.
    Linear,
}

/// What the middle of the window is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workspace {
    /// Response profiles against η.
    #[default]
    Response,
    /// Singular spectra of the Jacobian.
    Spectrum,
    /// Maps of edits, cut to a rank.
    Edit,
}

/// The settings file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Light or dark.
    pub theme: ThemeChoice,
    /// Scale of the whole interface; 1 is the system's own.
    pub zoom: f32,
    /// The workspace in front.
    pub workspace: Workspace,
    /// Whether the welcome was dismissed, which is for good.
    pub welcome_dismissed: bool,
    /// Photographs opened lately, newest first.
    pub recent: Vec<PathBuf>,
    /// Compute device.
    pub device: DeviceChoice,
    /// Whether the random twins are shown.
    pub twin: bool,
    /// What the weights in memory may take, in decimal megabytes.
    pub weights_budget_mb: u64,
    /// Scale of the η axis.
    pub x_scale: AxisScale,
    /// Scale of the r axis.
    pub y_scale: AxisScale,
    /// Scales of the index axis and of the axis of singular values.
    pub spectrum_scales: [AxisScale; 2],
    /// What the preview shows.
    pub view: ViewMode,
    /// Amplification of the noise view.
    pub gain: f32,
    /// Whether the preview interpolates between pixels.
    pub interpolate: bool,
    /// Folder of the last export.
    pub export_folder: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            theme: ThemeChoice::System,
            zoom: 1.0,
            workspace: Workspace::Response,
            welcome_dismissed: false,
            recent: Vec::new(),
            device: DeviceChoice::Auto,
            twin: false,
            weights_budget_mb: DEFAULT_BUDGET_BYTES / MEGABYTE,
            x_scale: AxisScale::Log,
            y_scale: AxisScale::Linear,
            spectrum_scales: [AxisScale::Log; 2],
            view: ViewMode::Split,
            // Ten grey levels of noise, η = 15 at 224 px, then fill the range from black to white.
            gain: 10.0,
            interpolate: false,
            export_folder: None,
        }
    }
}

impl Settings {
    /// Where the file stands on this system; `None` where there is no home folder.
    pub fn default_path() -> Option<PathBuf> {
        directories::ProjectDirs::from("", "", "Etascope")
            .map(|dirs| dirs.config_dir().join("settings.json"))
    }

    /// The settings in `path`; the defaults where it is absent or unreadable.
    pub fn load(path: &Path) -> Self {
        let Ok(text) = std::fs::read_to_string(path) else {
            return Self::default();
        };
        let mut settings: Self = serde_json::from_str(&text).unwrap_or_else(|error| {
            log::warn!("settings in “{}” are ignored: {error}", path.display());
            Self::default()
        });
        settings.zoom = settings.zoom.clamp(0.5, 3.0);
        let [least, most] = BUDGET_RANGE_MB;
        settings.weights_budget_mb = settings.weights_budget_mb.clamp(least, most);
        settings
    }

    /// Writes the settings to `path`, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<()> {
        let failed = |why: &dyn std::fmt::Display| {
            Error::new(
                ErrorKind::Output,
                format!("cannot save the settings to “{}”", path.display()),
                why,
                "Everything else works; the next start will not remember today’s choices",
            )
        };
        let folder = path.parent().unwrap_or(Path::new("."));
        let write = || -> std::io::Result<()> {
            std::fs::create_dir_all(folder)?;
            let file = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer_pretty(&file, self)?;
            file.persist(path)?;
            Ok(())
        };
        write().map_err(|error| failed(&error))
    }

    /// Scales of the horizontal and the vertical axis in the workspace in front.
    pub fn scales_in_front(&self) -> [AxisScale; 2] {
        match self.workspace {
            Workspace::Spectrum => self.spectrum_scales,
            Workspace::Response | Workspace::Edit => [self.x_scale, self.y_scale],
        }
    }

    /// Puts `path` at the head of the recent list.
    pub fn remember(&mut self, path: &Path) {
        self.recent.retain(|known| known != path);
        self.recent.insert(0, path.to_owned());
        self.recent.truncate(RECENT_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_a_round_trip_and_unknown_or_missing_fields() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/settings.json");
        let settings = Settings {
            welcome_dismissed: true,
            zoom: 1.25,
            ..Settings::default()
        };
        settings.save(&path).unwrap();
        assert_eq!(Settings::load(&path), settings);

        std::fs::write(&path, r#"{"twin": true, "field_of_a_later_version": 3}"#).unwrap();
        assert_eq!(
            Settings::load(&path),
            Settings {
                twin: true,
                ..Settings::default()
            }
        );
        std::fs::write(&path, "not JSON").unwrap();
        assert_eq!(Settings::load(&path), Settings::default());
    }

    #[test]
    fn an_unwritable_place_is_an_error_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = Settings::default()
            .save(&file.join("settings.json"))
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Output);
        assert!(!error.remedy.is_empty());
    }

    #[test]
    fn recent_files_are_unique_and_bounded() {
        let mut settings = Settings::default();
        for i in 0..20 {
            settings.remember(Path::new(&format!("{i}.png")));
        }
        settings.remember(Path::new("15.png"));
        assert_eq!(settings.recent.len(), RECENT_MAX);
        assert_eq!(settings.recent[0], Path::new("15.png"));
        assert_eq!(
            settings
                .recent
                .iter()
                .filter(|p| p.ends_with("15.png"))
                .count(),
            1
        );
    }
}
