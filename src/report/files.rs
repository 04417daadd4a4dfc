//! The files of an export.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::sweep::write_edit;
use super::{
    Content, Export, ExportFormat, FigureOptions, ProfileRun, SpectrumRun, csv, figure, sidecar,
    write_spectra,
};
use crate::figure::{Figure, png, svg};
use crate::files::write_whole;
use crate::{Error, ErrorKind, Result};

/// Writes the files of an export and returns their paths, in the order of its formats.
///
/// Everything is first written beside its place and renamed when all of it is complete, so a failure
/// leaves no partial file and a reader never sees one; files of the same name are replaced.
///
/// # Errors
/// [`ErrorKind::Request`] where there is nothing to write or the stem is not a file name;
/// [`ErrorKind::Output`] where the folder or a file in it cannot be written.
pub fn write(export: &Export) -> Result<Vec<PathBuf>> {
    let Export {
        folder,
        stem,
        formats,
        content,
    } = export;
    match content {
        Content::Profiles(runs) if runs.is_empty() => Err(Error::new(
            ErrorKind::Request,
            "nothing to export",
            "no profile has been computed yet",
            "Wait until a curve is there",
        )),
        Content::Profiles(runs) => {
            write_formats(folder, stem, formats, |format| profiles(runs, format))
        }
        Content::Spectra(runs) => {
            let runs: Vec<SpectrumRun> = runs.iter().map(|run| (**run).clone()).collect();
            write_spectra(folder, stem, formats, &runs)
        }
        Content::Edit(files) => write_edit(folder, stem, formats, files),
    }
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
    write_with(folder, stem, formats, content, Vec::new())
}

/// The same, with further files of the same stem, each with its extension, before those of the formats.
pub(super) fn write_with(
    folder: &Path,
    stem: &str,
    formats: &[ExportFormat],
    content: impl Fn(ExportFormat) -> Result<Vec<u8>>,
    more: Vec<(&str, Vec<u8>)>,
) -> Result<Vec<PathBuf>> {
    if Path::new(stem).file_name() != Some(stem.as_ref()) {
        return Err(Error::new(
            ErrorKind::Request,
            format!("cannot name files “{stem}”"),
            "it is not a plain file name",
            "Choose a name without folders",
        ));
    }
    let named = |extension: &str| folder.join(format!("{stem}.{extension}"));
    let more = more.into_iter();
    let mut files: Vec<(PathBuf, Vec<u8>)> = more
        .map(|(extension, bytes)| (named(extension), bytes))
        .collect();
    for &format in formats {
        files.push((named(format.extension()), content(format)?));
    }
    let paths = files.iter().map(|(path, _)| path.clone()).collect();
    write_whole(folder, &files)?;
    Ok(paths)
}

fn profiles(runs: &[Arc<ProfileRun>], format: ExportFormat) -> Result<Vec<u8>> {
    match format {
        ExportFormat::Csv => Ok(csv(runs)?.into_bytes()),
        ExportFormat::Json => Ok(json(&sidecar(runs))),
        ExportFormat::Svg | ExportFormat::Png => {
            drawn(&figure(runs, &FigureOptions::default()), format)
        }
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
