//! The command line: arguments, and one file for each subcommand.
//!
//! `profile` sends the same [`Command`](crate::worker::Command)s to the same
//! [`Worker`](crate::worker::Worker) as the window; what the window does not offer is computed directly, on the thread
//! of the command line. Results go to standard output; progress, notes
//! and errors go to standard error; the exit code is [`ErrorKind::exit_code`].

mod check;
mod command_line;
mod compute;
mod devices;
mod edit;
mod edit_line;
mod encoders;
mod fit;
mod fitting;
mod grid;
mod job;
mod judge;
mod map_kind;
mod names;
mod photographs;
mod profile;
mod spectrum;
mod spectrum_line;
mod system;
mod table;
pub mod values;
mod window;

use std::io::{ErrorKind as IoErrorKind, Write, stderr, stdout};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

pub use command_line::command_line;
pub use compute::{CacheArgs, ComputeArgs};
pub use edit::{EditArgs, Ranks};
pub use edit_line::edit_line;
pub use encoders::EncodersArgs;
pub use fit::FitArgs;
pub use job::{ProfileArgs, ProfileJob};
pub use map_kind::MapWord;
pub use photographs::PhotoArgs;
pub use spectrum::SpectrumArgs;
pub use spectrum_line::spectrum_command_line;
pub use system::{CompletionArgs, ManArgs};
pub use window::WindowArgs;

use crate::encoders::registry;
use crate::{Error, ErrorKind, Result};

/// The arguments of the program.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    args_conflicts_with_subcommands = true,
    max_term_width = 100
)]
#[command(after_help = "Without a subcommand the window opens, on IMAGE if one is given.")]
pub struct Cli {
    /// What to do headless.
    #[command(subcommand)]
    pub command: Option<Headless>,
    /// How the window starts.
    #[command(flatten)]
    pub window: WindowArgs,
}

/// The headless subcommands.
#[derive(Debug, Subcommand)]
pub enum Headless {
    /// Compute response profiles of photographs and write table, sidecar and figure
    Profile(Box<ProfileArgs>),
    /// Compute singular spectra of encoders' Jacobians at photographs
    Spectrum(Box<SpectrumArgs>),
    /// Fit a map from feature maps of photographs to those of their edits
    Fit(Box<FitArgs>),
    /// Cut a fitted map to one rank after another at a photograph
    Edit(Box<EditArgs>),
    /// List the compute devices of this machine
    Devices(ListArgs),
    /// List, describe and fetch encoders, and check weight files
    Encoders(EncodersArgs),
    /// Tell what a bug report should say: version, system, devices, and where files are kept
    Info(ListArgs),
    /// Print the completions of a shell
    Completions(CompletionArgs),
    /// Write manual pages
    Man(ManArgs),
}

/// How a list is printed.
#[derive(Clone, Copy, Debug, Args)]
pub struct ListArgs {
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// The whole program: reads the arguments, does what they say, reports an error, and answers with
/// the exit code.
pub fn main() -> ExitCode {
    crate::device::isolate_environment();
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("error")).init();
    let cli = Cli::parse();
    let outcome = match cli.command {
        Some(Headless::Profile(args)) => with_user_rows().and_then(|()| profile::run(&args)),
        Some(Headless::Spectrum(args)) => with_user_rows().and_then(|()| spectrum::run(&args)),
        Some(Headless::Fit(args)) => with_user_rows().and_then(|()| fit::run(&args)),
        Some(Headless::Edit(args)) => with_user_rows().and_then(|()| edit::run(&args)),
        Some(Headless::Devices(args)) => devices::run(args),
        Some(Headless::Info(args)) => with_user_rows().and_then(|()| system::info(args)),
        Some(Headless::Completions(args)) => system::completions(args),
        Some(Headless::Man(args)) => system::man(&args),
        Some(Headless::Encoders(args)) => with_user_rows().and_then(|()| encoders::run(args)),
        None => window::run(cli.window),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&describe(&error));
            ExitCode::from(error.kind.exit_code())
        }
    }
}

/// Adds the user's own encoders to the registry.
fn with_user_rows() -> Result<()> {
    registry::user_rows_path().map_or(Ok(()), |path| registry::read_user_rows(&path))
}

/// An error in three lines: what failed, why, and what to do.
fn describe(error: &Error) -> String {
    let mut text = format!("error: {}\n  why: {}", error.what, error.why);
    if !error.remedy.is_empty() {
        text.push_str("\n  what to do: ");
        text.push_str(&error.remedy);
    }
    text
}

/// Writes a line to standard error. Where that is closed there is no one to tell.
fn note(text: &str) {
    let _ = writeln!(stderr().lock(), "{text}");
}

/// Writes a result to standard output. A reader that has seen enough (`| head`) is no error.
fn print(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != IoErrorKind::BrokenPipe => Err(Error::new(
            ErrorKind::Output,
            "cannot write to standard output",
            crate::files::reason(&error),
            "Send the output to a file or terminal that can be written",
        )),
        _ => Ok(()),
    }
}

/// Prints a value as indented JSON.
fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(|error| {
        Error::new(
            ErrorKind::Internal,
            "cannot write JSON",
            error,
            "Leave out --json",
        )
    })?;
    print(&(text + "\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn an_error_says_what_why_and_what_to_do() {
        let error = Error::new(
            ErrorKind::Image,
            "cannot open “a.png”",
            "it is empty",
            "Choose another",
        );
        assert_eq!(
            describe(&error),
            "error: cannot open “a.png”\n  why: it is empty\n  what to do: Choose another"
        );
        assert_eq!(
            describe(&Error::cancelled("profile")),
            "error: profile\n  why: cancelled"
        );
    }
}
