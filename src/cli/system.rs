//! What packagers and bug reports need: completions, manual pages, and what the program finds on a machine.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, ListArgs, print, print_json};
use crate::encoders::registry;
use crate::geometry::feature_cache::FeatureCache;
use crate::{Error, ErrorKind, Result, device};

/// The arguments of `etascope completions`.
#[derive(Clone, Copy, Debug, Args)]
pub struct CompletionArgs {
    /// For which shell
    pub shell: Shell,
}

/// The arguments of `etascope man`.
#[derive(Clone, Debug, Args)]
pub struct ManArgs {
    /// Folder for the pages, etascope.1 and one for each subcommand; made if absent
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Prints the completions of a shell.
///
/// # Errors
/// Where standard output cannot be written.
pub fn completions(args: CompletionArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "etascope", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Writes the manual pages.
///
/// # Errors
/// [`ErrorKind::Output`] where the folder cannot be written.
pub fn man(args: &ManArgs) -> Result<()> {
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(&args.folder)?;
        clap_mangen::generate_to(Cli::command(), &args.folder)
    };
    write().map_err(|error| {
        Error::new(
            ErrorKind::Output,
            format!("cannot write manual pages to “{}”", args.folder.display()),
            crate::files::reason(&error),
            "Choose another folder",
        )
    })
}

/// What the program is and finds on this machine.
#[derive(Debug, serde::Serialize)]
struct Info {
    version: &'static str,
    system: String,
    processor: Vec<&'static str>,
    threads: usize,
    features: Vec<&'static str>,
    devices: Vec<device::DeviceInfo>,
    encoders: usize,
    settings: Option<PathBuf>,
    own_encoders: Option<PathBuf>,
    feature_maps: Option<PathBuf>,
}

/// Prints what a bug report should say: version, system, processor, devices, and where the program keeps its files. Nothing of
/// the user's photographs.
///
/// # Errors
/// Where standard output cannot be written.
pub fn info(args: ListArgs) -> Result<()> {
    let mut features = Vec::new();
    if cfg!(feature = "gui") {
        features.push("gui");
    }
    if cfg!(feature = "hub") {
        features.push("hub");
    }
    #[cfg(feature = "gui")]
    let settings = crate::app::Settings::default_path();
    #[cfg(not(feature = "gui"))]
    let settings = None;
    let info = Info {
        version: env!("CARGO_PKG_VERSION"),
        system: format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH),
        processor: processor(),
        threads: rayon::current_num_threads(),
        features,
        devices: device::list(),
        encoders: registry::all_rows().len(),
        settings,
        own_encoders: registry::user_rows_path(),
        feature_maps: FeatureCache::user_folder(),
    };
    if args.json {
        return print_json(&info);
    }
    let path = |path: &Option<PathBuf>| {
        path.as_ref()
            .map_or_else(|| "nowhere".to_owned(), |path| path.display().to_string())
    };
    let devices = info.devices.iter().map(|device| {
        let software = if device.software { ", software" } else { "" };
        format!("{} ({}{software})", device.name, device.api)
    });
    let lines = [
        ("etascope", info.version.to_owned()),
        ("system", info.system.clone()),
        ("processor", info.processor.join(", ")),
        ("threads", info.threads.to_string()),
        ("built with", info.features.join(", ")),
        ("devices", devices.collect::<Vec<_>>().join("; ")),
        ("encoders known", info.encoders.to_string()),
        ("settings", path(&info.settings)),
        ("own encoders", path(&info.own_encoders)),
        ("feature maps", path(&info.feature_maps)),
    ];
    let text: String = (lines.iter())
        .map(|(name, value)| format!("{name:16}{value}\n"))
        .collect();
    print(&text)
}

/// The instruction sets of this processor that decide how fast the program is.
fn processor() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        let known = [
            ("AVX2", std::is_x86_feature_detected!("avx2")),
            ("FMA", std::is_x86_feature_detected!("fma")),
            ("AVX-512F", std::is_x86_feature_detected!("avx512f")),
        ];
        let found = known.into_iter().filter(|(_, is_there)| *is_there);
        found.map(|(name, _)| name).collect()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        vec![std::env::consts::ARCH]
    }
}
