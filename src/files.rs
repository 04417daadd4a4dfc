//! Files that are written whole or not at all.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::{Error, ErrorKind, Result};

/// What the names of files begin with that are not complete yet.
pub const UNFINISHED: &str = ".etascope-";

/// Writes files into a folder, which is made if absent.
///
/// Everything is first written beside its place and renamed when all of it is complete, so a failure
/// leaves no partial file and a reader never sees one; files of the same name are replaced.
///
/// # Errors
/// [`ErrorKind::Output`] where the folder or a file in it cannot be written.
pub fn write_whole(folder: &Path, files: &[(PathBuf, Vec<u8>)]) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| {
        let why = if folder.is_file() {
            "a file has this name".to_owned()
        } else {
            reason(&error)
        };
        unwritable("make the folder", folder, why)
    })?;
    let written: Vec<NamedTempFile> = files
        .iter()
        .map(|(path, content)| {
            write_beside(folder, content).map_err(|error| unwritable("write", path, reason(&error)))
        })
        .collect::<Result<_>>()?;
    for (file, (path, _)) in written.into_iter().zip(files) {
        file.persist(path).map_err(|failure| {
            let why = if path.is_dir() {
                "a folder has this name".to_owned()
            } else {
                reason(&failure.error)
            };
            unwritable("write", path, why)
        })?;
    }
    Ok(())
}

/// Writes one file whose loss would cost no more than time: complete or not at all as long as the machine runs, but not
/// forced to its disk. After a power failure the file may be there and damaged, which its reader must notice. The folder is made
/// if absent.
///
/// # Errors
/// As the system says.
pub fn write_replaceable(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    unfinished(folder, content)?
        .persist(path)
        .map_err(|failure| failure.error)?;
    Ok(())
}

/// A complete file in `folder` that vanishes unless it is renamed, on its disk.
fn write_beside(folder: &Path, content: &[u8]) -> std::io::Result<NamedTempFile> {
    let file = unfinished(folder, content)?;
    file.as_file().sync_all()?;
    Ok(file)
}

fn unfinished(folder: &Path, content: &[u8]) -> std::io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(UNFINISHED);
    // Readable as any new file is, not by the owner alone as temporary files are.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(content)?;
    Ok(file)
}

/// What an input/output error means where something is written.
pub fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => "writing there is not permitted".to_owned(),
        // The folders above are there or were just made.
        std::io::ErrorKind::NotFound => "no file or folder can be made there".to_owned(),
        std::io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        std::io::ErrorKind::ReadOnlyFilesystem => "the disk is read-only".to_owned(),
        std::io::ErrorKind::NotADirectory => "a file stands where a folder is named".to_owned(),
        _ => error.to_string(),
    }
}

fn unwritable(action: &str, path: &Path, why: String) -> Error {
    Error::new(
        ErrorKind::Output,
        format!("cannot {action} “{}”", path.display()),
        why,
        "Choose another folder",
    )
}
