//! `etascope encoders`: list, describe and fetch encoders, and check weight files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::table::table;
use super::{ListArgs, print, print_json};
use crate::encoders::EncoderSpec;
use crate::encoders::registry::{self, Row, Status};
use crate::encoders::weights::checkpoint::Checkpoint;
use crate::encoders::weights::infer::{self, Proposal};
use crate::encoders::weights::verify::Report;
use crate::{Error, ErrorKind, Result};

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

/// The arguments of `etascope encoders check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Weight file: safetensors, PyTorch, an index of shards, or a folder with one of them; with
    /// `#PREFIX` for one of several copies of a network in it
    #[arg(value_name = "FILE")]
    pub file: String,
    /// Encoder that the file should fit, instead of proposals
    #[arg(long, value_name = "NAME")]
    pub encoder: Option<String>,
    /// How it is printed.
    #[command(flatten)]
    pub list: ListArgs,
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

fn size(status: &Status) -> String {
    status.size_bytes.map_or_else(|| "?".to_owned(), megabytes)
}

/// Bytes in decimal megabytes, as servers and shops count.
fn megabytes(bytes: u64) -> String {
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
fn facts(lines: &[(&str, String)]) -> String {
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

/// What a check finds, as JSON.
#[derive(Serialize)]
struct Checked<'a> {
    file: &'a str,
    format: &'a str,
    size_bytes: u64,
    sha256: String,
    tensors: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<&'a Report>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    proposals: Vec<&'a Proposal>,
}

fn check(args: &CheckArgs) -> Result<()> {
    let (path, prefix): (PathBuf, _) = registry::local_file(&args.file);
    let checkpoint = Checkpoint::open(&path)?;
    let (report, proposals) = match &args.encoder {
        Some(name) => {
            let row = registry::row(name)?;
            let prefix = prefix.or(row.prefix.as_deref());
            let (_, fit) = infer::fit(&checkpoint, &row.architecture, prefix)?;
            let mut report = fit.report;
            report.suggest();
            (Some(report), Vec::new())
        }
        None => (None, registry::propose(&checkpoint, prefix)?),
    };
    let size_bytes = checkpoint.size_bytes()?;
    let sha256 = checkpoint.sha256()?;
    if args.list.json {
        print_json(&Checked {
            file: checkpoint.source(),
            format: checkpoint.format(),
            size_bytes,
            sha256,
            tensors: checkpoint.tensors().len(),
            report: report.as_ref(),
            proposals: proposals.iter().collect(),
        })?;
    } else {
        let mut types: BTreeMap<&str, usize> = BTreeMap::new();
        for stored in checkpoint.tensors().values() {
            *types.entry(stored.value_type.name()).or_default() += 1;
        }
        let types: Vec<String> = types
            .iter()
            .map(|(of, count)| format!("{count} {of}"))
            .collect();
        let lines = [
            ("file", checkpoint.source().to_owned()),
            (
                "format",
                format!("{}, {}", checkpoint.format(), megabytes(size_bytes)),
            ),
            ("SHA-256", sha256),
            (
                "tensors",
                format!("{}: {}", checkpoint.tensors().len(), types.join(", ")),
            ),
        ];
        print(&facts(&lines))?;
        for proposal in &proposals {
            print(&proposed(proposal, &args.file))?;
        }
        if let (Some(report), Some(name)) = (&report, &args.encoder)
            && report.is_complete()
        {
            print(&format!(
                "\nfits {name}: {}\n{}",
                report.evidence(),
                details(report)
            ))?;
        }
    }
    match report {
        Some(report) => report.error().map_or(Ok(()), Err),
        None if proposals.iter().any(Proposal::is_complete) => Ok(()),
        None => Err(unknown(&checkpoint, &proposals)),
    }
}

/// A proposal with its evidence and with how to use it.
fn proposed(proposal: &Proposal, file: &str) -> String {
    let architecture = proposal.encoders.join(", ");
    let mut text = format!("\n{}: {}\n", architecture, proposal.report.evidence());
    text += &details(&proposal.report);
    if proposal.is_complete()
        && let Some(name) = proposal.encoders.first()
    {
        let weights = shlex::try_quote(file).unwrap_or(file.into());
        text += &format!(
            "  use it: etascope profile IMAGE --encoder {name} --weights {weights} --out DIR\n"
        );
        if proposal.encoders.len() > 1 {
            text += "  (the encoders share the network and differ in input or weights: choose by the input)\n";
        }
    }
    text
}

/// Faults, copies and what was passed over, one a line.
fn details(report: &Report) -> String {
    let mut lines = Vec::new();
    if !report.is_complete() {
        lines.push(report.faults());
    }
    for copy in &report.copies {
        lines.push(format!("the same values again after “{copy}”"));
    }
    for (what, count) in &report.passed_over {
        lines.push(format!("passed over: {count} {what}"));
    }
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

fn unknown(checkpoint: &Checkpoint<'_>, proposals: &[Proposal]) -> Error {
    let what = format!("cannot tell what “{}” is of", checkpoint.source());
    let why = match proposals.first() {
        Some(nearest) => format!(
            "no known network fits; the nearest is that of {}: {}",
            nearest.encoders.join(", "),
            nearest.report.faults()
        ),
        None => format!(
            "no known network resembles it: {}",
            infer::describe(checkpoint)
        ),
    };
    let remedy = "Name the encoder that it should fit with --encoder, to see all that differs";
    Error::new(ErrorKind::Weights, what, why, remedy)
}
