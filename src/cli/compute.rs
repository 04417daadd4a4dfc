//! What the headless subcommands share: the output folder, the progress bar, the end; and the device of those that
//! need no worker, because nothing interrupts them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::note;
use super::values::{FORMATS, parse_background, parse_device, parse_word};
use crate::device::{self, ComputeDevice, DeviceChoice, SelfCheck};
use crate::encoders::WeightsKind;
use crate::encoders::registry::{self, LoadedEncoder};
use crate::geometry::feature_cache::{BUDGET_BYTES_DEFAULT, FeatureCache};
use crate::images::Background;
use crate::worker::{ExportFormat, TWIN_SEED};
use crate::{Error, ErrorKind, Result};

/// Steps of the progress bar for one unit of work, such as a recipe at a photograph.
pub(super) const STEPS: u64 = 1000;

/// Arguments of the subcommands that compute: where, and what is written.
#[derive(Debug, Args)]
pub struct ComputeArgs {
    /// Folder for the files; made if absent
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Files to write: csv, json, svg, png
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "csv,json,svg,png",
          value_parser = |text: &str| parse_word(&FORMATS, text))]
    pub formats: Vec<ExportFormat>,
    /// Compute device: auto, cpu or a name that `etascope devices` lists
    #[arg(long, default_value = "auto", value_parser = parse_device)]
    pub device: DeviceChoice,
    /// Colour under transparent pixels: #rrggbb, white, black or grey
    #[arg(long, value_name = "COLOUR", default_value = "white", value_parser = parse_background)]
    pub background: Background,
    /// No progress bar and no summary
    #[arg(long, short)]
    pub quiet: bool,
}

/// Arguments of the subcommands that encode the same pictures again and again.
#[derive(Clone, Copy, Debug, Args)]
pub struct CacheArgs {
    /// Megabytes that feature maps on disk take at most; the longest unused give way
    #[arg(long, value_name = "MB", default_value_t = BUDGET_BYTES_DEFAULT >> 20)]
    pub cache_budget: u64,
    /// Encode every picture: neither read feature maps from disk nor keep them
    #[arg(long, conflicts_with = "cache_budget")]
    pub no_cache: bool,
}

impl CacheArgs {
    /// The cache; `None` where none is wanted or there is no place for it.
    pub(super) fn open(self) -> Option<Arc<FeatureCache>> {
        if self.no_cache {
            return None;
        }
        FeatureCache::of_user(self.cache_budget.saturating_mul(1 << 20)).map(Arc::new)
    }
}

/// An open device with a progress bar.
pub(super) struct Compute {
    pub(super) device: ComputeDevice,
    pub(super) bar: ProgressBar,
}

impl Compute {
    /// Looks whether the folder can be written and opens the device. `units` is the number of [`STEPS`]
    /// that the bar is long.
    pub(super) fn start(args: &ComputeArgs, units: usize) -> Result<Self> {
        check_writable(&args.out)?;
        Ok(Self {
            device: device::open(&args.device)?,
            bar: progress_bar(units as u64 * STEPS, args.quiet),
        })
    }

    /// Name of the device.
    pub(super) fn device_name(&self) -> &str {
        &self.device.info.name
    }

    /// Loads an encoder and compares the device with the processor on it.
    pub(super) fn load(&self, name: &str, weights: WeightsKind) -> Result<Arc<LoadedEncoder>> {
        self.bar.set_message(format!("{name} · reading weights"));
        let encoder = Arc::new(registry::load(name, weights, TWIN_SEED, &self.device)?);
        if let Some(check) = device::self_check(&encoder)?
            && !check.passed()
        {
            self.tell(&differs(&check, &encoder.spec().title));
        }
        Ok(encoder)
    }

    /// Writes a line to standard error, above the progress bar.
    pub(super) fn tell(&self, text: &str) {
        self.bar.suspend(|| note(text));
    }
}

/// The warning that a device is not to be trusted with an encoder.
pub(super) fn differs(check: &SelfCheck, title: &str) -> String {
    format!(
        "warning: the device differs from the processor by {:.1e} on {title}, above {:.0e}; use \
         --device cpu",
        check.largest_relative_difference, check.bound
    )
}

/// A bar on standard error; invisible where that is no terminal.
pub(super) fn progress_bar(length: u64, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
    match ProgressStyle::with_template("{bar:24} {percent:>3} %  {elapsed}  {wide_msg}") {
        Ok(style) => bar.with_style(style),
        Err(error) => {
            log::warn!("progress style: {error}");
            bar
        }
    }
}

/// The end: where something failed, an error that sums it up with the kind of the first; `things` are
/// what the files hold.
pub(super) fn verdict(failures: &[Error], is_any_written: bool, things: &str) -> Result<()> {
    let Some(first) = failures.first() else {
        return Ok(());
    };
    let why = match failures.len() {
        1 => "one request failed as said above".to_owned(),
        count => format!("{count} requests failed as said above"),
    };
    let what = if is_any_written {
        format!("the files lack some {things}")
    } else {
        "nothing was written".to_owned()
    };
    Err(Error::new(first.kind, what, why, ""))
}

/// Refuses a folder that cannot be written before hours are spent on what shall go there. Leaves
/// nothing behind: a file without a name is opened in the deepest folder that exists.
pub(super) fn check_writable(folder: &Path) -> Result<()> {
    let existing = folder
        .ancestors()
        .find(|path| path.exists())
        .unwrap_or(Path::new("."));
    match tempfile::tempfile_in(existing) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::new(
            ErrorKind::Output,
            format!("cannot write to “{}”", folder.display()),
            crate::files::reason(&error),
            "Choose another folder with --out, or change its permissions",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writable_folder_is_recognised_without_a_trace() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let new = home.path().join("a/b");
        assert_eq!(check_writable(&new), Ok(()));
        assert!(!home.path().join("a").exists());
        assert_eq!(home.path().read_dir().expect("a folder").count(), 0);

        let file = home.path().join("file");
        std::fs::write(&file, "").expect("a file");
        let error = check_writable(&file.join("below")).expect_err("a file is no folder");
        assert_eq!(error.kind, ErrorKind::Output);
        assert_eq!(error.why, "a file stands where a folder is named");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_takes_no_files_is_refused_in_words() {
        let error = check_writable(Path::new("/proc/etascope")).expect_err("no folder for files");
        assert_eq!(error.why, "no file or folder can be made there");
    }
}
