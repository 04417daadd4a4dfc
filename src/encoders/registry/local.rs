//! Weight files named on the spot: a known encoder with other weights.

use std::path::{Path, PathBuf};

use super::Row;
use crate::Result;
use crate::encoders::EncoderSpec;
use crate::encoders::weights::checkpoint::Checkpoint;
use crate::encoders::weights::find::Origin;
use crate::encoders::weights::infer;

/// Between a registry name and a weight file.
pub(super) const LOCAL: char = '@';

/// Between a weight file and a prefix in it.
const PREFIX: char = '#';

/// The name of a known encoder with weights from a file: `NAME@FILE`, or `NAME@FILE#PREFIX` where the
/// file holds several copies of the network and the one after `PREFIX` is meant. Such a name can be
/// used wherever a registry name can.
pub fn local_name(encoder: &str, file: &str) -> String {
    format!("{encoder}{LOCAL}{file}")
}

/// The registry name and the file of a [`local_name`]; no file for the name of a row.
pub fn split_local(name: &str) -> (&str, Option<&str>) {
    match name.split_once(LOCAL) {
        Some((encoder, file)) => (encoder, Some(file)),
        None => (name, None),
    }
}

/// Path and prefix of a weight file that was named on the spot as `FILE` or `FILE#PREFIX`.
pub fn local_file(file: &str) -> (PathBuf, Option<&str>) {
    // A file may have the sign in its name.
    if let Some((path, prefix)) = file
        .rsplit_once(PREFIX)
        .filter(|_| !Path::new(file).exists())
    {
        return (PathBuf::from(path), Some(prefix));
    }
    (PathBuf::from(file), None)
}

/// The row of a known encoder with weights from a file, with as many classes as the file has.
pub(super) fn row(name: &str, base: &Row, file: &str) -> Result<Row> {
    let (path, prefix) = local_file(file);
    let checkpoint = Checkpoint::open(&path)?;
    let (architecture, fit) = infer::fit(&checkpoint, &base.architecture, prefix)?;
    let mut report = fit.report;
    report.suggest();
    if let Some(mut error) = report.error() {
        error.remedy = format!(
            "“etascope encoders check {}” tells what the file is of",
            path.display()
        );
        return Err(error);
    }
    let file_name = path
        .file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy();
    Ok(Row {
        spec: EncoderSpec {
            name: name.into(),
            title: format!("{} ({file_name})", base.spec.title).into(),
            source: format!("{file}; network and input as {}", base.spec.name).into(),
            licence: "that of the file".into(),
            logits_len: architecture.logits_len(),
            parameters: architecture.parameter_count(),
            ..base.spec.clone()
        },
        architecture,
        origin: Origin::File(path),
        citation: base.citation.clone(),
        sha256: None,
        size_bytes: None,
        gated: false,
        note: String::new(),
        prefix: prefix.map(str::to_owned),
    })
}
