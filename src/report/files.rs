//! The files of an export.

use std::path::{Path, PathBuf};

use super::{Export, ExportFormat, FigureOptions, csv, figure, sidecar};
use crate::figure::{Figure, png, svg};
use crate::files::write_whole;
use crate::{Error, ErrorKind, Result};

/// Writes the files of an export and returns their paths, in the order of its formats.
///
/// Everything is first written beside its place and renamed when all of it is complete, so a failure
/// leaves no partial file and a reader never sees one; files of the same name are replaced.
///
/// # Errors
/// [`ErrorKind::Request`] where there are no runs or the stem is not a file name;
/// [`ErrorKind::Output`] where the folder or a file in it cannot be written.
pub fn write(export: &Export) -> Result<Vec<PathBuf>> {
    let Export {
        folder,
        stem,
        formats,
        runs,
    } = export;
    if runs.is_empty() {
        return Err(Error::new(
            ErrorKind::Request,
            "nothing to export",
            "no profile has been computed yet",
            "Wait until a curve is there",
        ));
    }
    write_formats(folder, stem, formats, |format| content(export, format))
}

/// Writes one file for each format, `content` of it, all or none, and returns their paths.
///
/// # Errors
/// As [`write`], and those of `content`.
pub(super) fn write_formats(
    folder: &Path,
    stem: &str,
    formats: &[ExportFormat],
    content: impl Fn(ExportFormat) -> Result<Vec<u8>>,
) -> Result<Vec<PathBuf>> {
    if Path::new(stem).file_name() != Some(stem.as_ref()) {
        return Err(Error::new(
            ErrorKind::Request,
            format!("cannot name files “{stem}”"),
            "it is not a plain file name",
            "Choose a name without folders",
        ));
    }
    let contents: Vec<Vec<u8>> = formats
        .iter()
        .map(|&format| content(format))
        .collect::<Result<_>>()?;
    let paths: Vec<PathBuf> = formats
        .iter()
        .map(|format| folder.join(format!("{stem}.{}", format.extension())))
        .collect();
    let files: Vec<(PathBuf, Vec<u8>)> = paths.iter().cloned().zip(contents).collect();
    write_whole(folder, &files)?;
    Ok(paths)
}

fn content(export: &Export, format: ExportFormat) -> Result<Vec<u8>> {
    let figure = || figure(&export.runs, &FigureOptions::default());
    match format {
        ExportFormat::Csv => Ok(csv(&export.runs)?.into_bytes()),
        ExportFormat::Json => Ok(json(&sidecar(&export.runs))),
        ExportFormat::Svg | ExportFormat::Png => drawn(&figure(), format),
    }
}

/// A sidecar as a file.
pub(super) fn json(sidecar: &serde_json::Value) -> Vec<u8> {
    format!("{sidecar:#}\n").into_bytes()
}

/// A figure as a file: pixels where PNG is asked for, else vector graphics.
pub(super) fn drawn(figure: &Figure, format: ExportFormat) -> Result<Vec<u8>> {
    match format {
        ExportFormat::Png => png::render(&svg::render(figure), png::DEFAULT_DPI),
        _ => Ok(svg::render_outlined(figure).into_bytes()),
    }
}
