//! `etascope encoders`: list, describe and fetch encoders, and check weight files.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::check::{CheckArgs, check};
use super::table::table;
use super::{ListArgs, print, print_json};
use crate::Result;
use crate::encoders::EncoderSpec;
use crate::encoders::registry::{self, Row, Status};

/// The arguments of `etascope encoders`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct EncodersArgs {
    /// What to do; without it the encoders are listed.
    #[command(subcommand)]
    pub action: Option<EncodersAction>,
    /// How the list is printed.
    #[command(flatten)]
    pub list: ListArgs,
}

/// What `etascope encoders` can do.
#[derive(Debug, Subcommand)]
pub enum EncodersAction {
    /// List the encoders that the program knows
    List(ListArgs),
    /// Describe one encoder: source, licence, input, stages, weights
    Show(ShowArgs),
    /// Fetch the weights of an encoder from where they are published
    #[cfg(feature = "hub")]
    Fetch(FetchArgs),
    /// Tell what a weight file is of, or whether it fits an encoder
    Check(CheckArgs),
}

/// The arguments of `etascope encoders show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Registry name
    #[arg(value_name = "NAME")]
    pub name: String,
    /// How it is printed.
    #[command(flatten)]
    pub list: ListArgs,
}

/// The arguments of `etascope encoders fetch`.
#[cfg(feature = "hub")]
#[derive(Debug, Args)]
pub struct FetchArgs {
    /// Registry name
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Say what would be fetched, and leave
    #[arg(long)]
    pub dry_run: bool,
    /// No progress bar
    #[arg(long, short)]
    pub quiet: bool,
}

/// Does what the arguments say.
///
/// # Errors
/// Those of the registry, of weight files and of downloads; [`ErrorKind::Weights`] where a checked
/// file does not fit.
pub fn run(args: EncodersArgs) -> Result<()> {
    match args.action {
        None => list(args.list),
        Some(EncodersAction::List(args)) => list(args),
        Some(EncodersAction::Show(args)) => show(&args),
        #[cfg(feature = "hub")]
        Some(EncodersAction::Fetch(args)) => fetch(&args),
        Some(EncodersAction::Check(args)) => check(&args),
    }
}

/// A row as JSON.
#[derive(Serialize)]
struct Described<'a> {
    #[serde(flatten)]
    spec: &'a EncoderSpec,
    citation: &'a str,
    weights: String,
    gated: bool,
    note: &'a str,
    #[serde(flatten)]
    status: Status,
}

impl<'a> Described<'a> {
    fn new(row: &'a Row) -> Self {
        Self {
            spec: &row.spec,
            citation: &row.citation,
            weights: row.origin.describe(),
            gated: row.gated,
            note: &row.note,
            status: row.status(),
        }
    }
}

fn list(args: ListArgs) -> Result<()> {
    let rows = registry::all_rows();
    if args.json {
        let rows: Vec<Described<'_>> = rows.into_iter().map(Described::new).collect();
        return print_json(&rows);
    }
    let heading = [
        "name",
        "title",
        "input",
        "parameters",
        "file",
        "here",
        "licence",
    ];
    let mut cells = vec![heading.map(str::to_owned).to_vec()];
    for row in rows {
        let (spec, status) = (&row.spec, row.status());
        cells.push(vec![
            spec.name.to_string(),
            spec.title.to_string(),
            format!("{} px", spec.side_px),
            millions(spec.parameters),
            size(&status),
            if status.installed { "yes" } else { "no" }.to_owned(),
            licence(row),
        ]);
    }
    print(&table(&cells))
}

fn licence(row: &Row) -> String {
    let gated = if row.gated {
        ", to be accepted first"
    } else {
        ""
    };
    format!("{}{gated}", row.spec.licence)
}

fn millions(parameters: usize) -> String {
    format!("{:.2} M", parameters as f64 / 1e6)
}

/// Size of the file; where none is published, about what the parameters take in single precision.
fn size(status: &Status) -> String {
    status.size_bytes.map_or_else(
        || format!("≈ {}", megabytes(status.memory_bytes)),
        megabytes,
    )
}

/// Bytes in decimal megabytes, as servers and shops count.
pub(super) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn show(args: &ShowArgs) -> Result<()> {
    let row = registry::row(&args.name)?;
    if args.list.json {
        return print_json(&Described::new(row));
    }
    let (spec, status) = (&row.spec, row.status());
    let here = match (&status.path, status.installed) {
        (Some(path), _) => path.display().to_string(),
        (None, true) => "in the program".to_owned(),
        (None, false) if status.can_be_fetched => {
            format!("no; “etascope encoders fetch {}” fetches them", spec.name)
        }
        (None, false) => "no".to_owned(),
    };
    let stages: Vec<String> = spec
        .stages
        .iter()
        .map(|stage| {
            let [channels, rows, cols] = stage.shape;
            format!("{} ({channels}×{rows}×{cols})", stage.name)
        })
        .collect();
    let mut lines = vec![
        ("name", spec.name.to_string()),
        ("title", spec.title.to_string()),
        ("source", spec.source.to_string()),
        ("paper", row.citation.clone()),
        ("licence", licence(row)),
        ("note", row.note.clone()),
        ("weights", row.origin.describe()),
        ("here", here),
        ("file", size(&status)),
        (
            "SHA-256",
            row.sha256
                .clone()
                .map(|digits| shortened(&digits))
                .unwrap_or_default(),
        ),
        (
            "parameters",
            format!(
                "{}, {} in memory",
                millions(spec.parameters),
                megabytes(status.memory_bytes)
            ),
        ),
        ("input", spec.preprocessing.describe()),
        ("pooled", spec.pooled_len.to_string()),
        ("classes", spec.logits_len.to_string()),
        ("stages", stages.join(", ")),
    ];
    lines.retain(|(_, text)| !text.is_empty());
    print(&facts(&lines))
}

/// A hash of which fewer digits are published than it has.
fn shortened(digits: &str) -> String {
    if digits.len() < 64 {
        format!("{digits}… (as far as published)")
    } else {
        digits.to_owned()
    }
}

/// Names and values, one pair a line.
pub(super) fn facts(lines: &[(&str, String)]) -> String {
    let rows: Vec<Vec<String>> = lines
        .iter()
        .map(|(name, value)| vec![(*name).to_owned(), value.clone()])
        .collect();
    table(&rows)
}

#[cfg(feature = "hub")]
fn fetch(args: &FetchArgs) -> Result<()> {
    use std::ops::ControlFlow;

    use indicatif::{ProgressBar, ProgressStyle};

    use super::note;
    use crate::encoders::weights::download::{Client, Progress};

    let row = registry::row(&args.name)?;
    let status = row.status();
    if status.installed {
        let place = status
            .path
            .map_or("the program itself".to_owned(), |p| p.display().to_string());
        note(&format!("{} is here already: {place}", row.spec.title));
        return Ok(());
    }
    let client = Client::from_env()?;
    let remote = client.look(&row.origin)?;
    let size = remote
        .size_bytes
        .or(row.size_bytes)
        .map_or("of unknown size".to_owned(), megabytes);
    note(&format!(
        "{}: {size} from {}\n  licence: {}\n  to: {}",
        row.spec.title,
        remote.url,
        licence(row),
        remote.path.display()
    ));
    if args.dry_run {
        return Ok(());
    }
    let bar = if args.quiet {
        ProgressBar::hidden()
    } else {
        ProgressBar::new(remote.size_bytes.unwrap_or_default())
    };
    if let Ok(style) =
        ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
    {
        bar.set_style(style);
    }
    let path = client.fetch(
        &row.origin,
        row.sha256.as_deref(),
        &mut |progress: Progress| {
            if let Some(total) = progress.total_bytes {
                bar.set_length(total);
            }
            bar.set_position(progress.done_bytes);
            ControlFlow::Continue(())
        },
    )?;
    bar.finish_and_clear();
    if let Some(error) = row.report()?.error() {
        return Err(error);
    }
    print(&format!("{}\n", path.display()))
}
