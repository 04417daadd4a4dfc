//! `etascope encoders check`: what a weight file is of, and what of it differs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::encoders::{facts, megabytes};
use super::{ListArgs, print, print_json};
use crate::encoders::registry;
use crate::encoders::weights::checkpoint::Checkpoint;
use crate::encoders::weights::infer::{self, Proposal};
use crate::encoders::weights::verify::Report;
use crate::{Error, ErrorKind, Result};

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

/// Prints what a file is of.
pub fn check(args: &CheckArgs) -> Result<()> {
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
        if let (Some(report), Some(name)) = (&report, &args.encoder) {
            let verb = if report.is_complete() {
                "fits"
            } else {
                "does not fit"
            };
            print(&format!(
                "\n{verb} {name}: {}\n{}{}",
                report.evidence(),
                differences(report),
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
    if !proposal.is_complete() {
        text += &format!("  {}\n", proposal.report.faults());
    }
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

/// Every difference from what is declared, one a line.
fn differences(report: &Report) -> String {
    let missing = report.missing.iter().map(|missing| {
        let candidate = missing.candidate.as_ref();
        let hint = candidate
            .map(|name| format!(" (the file has {name})"))
            .unwrap_or_default();
        ("missing", format!("{}{hint}", missing.name))
    });
    let unexpected = report
        .unexpected
        .iter()
        .map(|name| ("unknown", name.clone()));
    let reshaped = report
        .reshaped
        .iter()
        .map(|tensor| ("another shape", tensor.to_string()));
    let retyped = report
        .retyped
        .iter()
        .map(|(name, of)| ("another type", format!("{name} is {of}")));
    missing
        .chain(unexpected)
        .chain(reshaped)
        .chain(retyped)
        .map(|(fault, text)| format!("  {fault:<13}  {text}\n"))
        .collect()
}

/// Copies and what was passed over, one a line.
fn details(report: &Report) -> String {
    let mut lines = Vec::new();
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
