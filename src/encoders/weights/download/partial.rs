//! Files on their way: beside their place until they are whole and verified.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind as IoErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::super::checkpoint::{hash_into, hex};
use crate::{Error, ErrorKind, Result};

/// A file that is being fetched: its bytes so far, and their hash.
pub(super) struct Partial {
    path: PathBuf,
    file: File,
    pub(super) len: u64,
    hash: Sha256,
}

impl Partial {
    /// What an earlier attempt left of `place`, or an empty beginning; locked against others.
    pub(super) fn open(place: &Path) -> Result<Self> {
        let mut name = place.as_os_str().to_owned();
        name.push(".incomplete");
        let path = PathBuf::from(name);
        let failed = |error: &io::Error| unwritable(&path, error);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| failed(&error))?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| failed(&error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::new(
                    ErrorKind::Output,
                    format!("cannot write “{}”", path.display()),
                    "another program is fetching the same file",
                    "Wait until it has finished",
                ));
            }
            Err(TryLockError::Error(error)) => return Err(failed(&error)),
        }
        let mut hash = Sha256::new();
        let len = file.metadata().map_err(|error| failed(&error))?.len();
        if len > 0 {
            hash_into(&mut hash, &mut file).map_err(|error| failed(&error))?;
        }
        Ok(Self {
            path,
            file,
            len,
            hash,
        })
    }

    /// Forgets what is there.
    pub(super) fn restart(&mut self) -> Result<()> {
        if self.len > 0 {
            let emptied = self
                .file
                .set_len(0)
                .and_then(|()| self.file.seek(SeekFrom::Start(0)));
            emptied.map_err(|error| unwritable(&self.path, &error))?;
            self.len = 0;
            self.hash = Sha256::new();
        }
        Ok(())
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all(bytes)
            .map_err(|error| unwritable(&self.path, &error))?;
        self.hash.update(bytes);
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Moves the whole file to its place if its hash begins with each of `expected`; else removes it.
    pub(super) fn finish(self, place: &Path, expected: &[&str]) -> Result<()> {
        let found = hex(&self.hash.finalize());
        if let Some(wanted) = expected.iter().find(|wanted| !found.starts_with(**wanted)) {
            let _ = fs::remove_file(&self.path);
            return Err(Error::new(
                ErrorKind::Weights,
                format!("cannot use what was fetched for “{}”", place.display()),
                format!("its SHA-256 is {found}, not {wanted}: it is damaged, or another file"),
                "Try again; if it stays so, the file was replaced where it is published",
            ));
        }
        let done = self
            .file
            .sync_all()
            .and_then(|()| fs::rename(&self.path, place));
        done.map_err(|error| unwritable(place, &error))
    }
}

/// Makes `path` lead to `blob`, which lies in the same cache.
pub(super) fn link(blob: &Path, path: &Path) -> io::Result<()> {
    if path.is_file() {
        return Ok(());
    }
    // A link to a blob that was deleted.
    if path.symlink_metadata().is_ok() {
        fs::remove_file(path)?;
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(folder)?;
    #[cfg(unix)]
    {
        // Relative, so that a cache can be moved: up to the folder of the repository, down to blobs.
        let repo = blob
            .parent()
            .and_then(Path::parent)
            .unwrap_or(Path::new(""));
        let up = folder
            .strip_prefix(repo)
            .map_or(0, |inside| inside.components().count());
        let inside = blob.strip_prefix(repo).unwrap_or(blob);
        let target: PathBuf = std::iter::repeat_n(Path::new(".."), up)
            .chain([inside])
            .collect();
        std::os::unix::fs::symlink(target, path)
    }
    #[cfg(not(unix))]
    {
        // Links ask for rights there; the hub's own tools copy, too.
        fs::hard_link(blob, path).or_else(|_| fs::copy(blob, path).map(|_| ()))
    }
}

pub(super) fn unwritable(path: &Path, error: &io::Error) -> Error {
    let (why, remedy) = match error.kind() {
        IoErrorKind::StorageFull | IoErrorKind::QuotaExceeded => (
            "the disk is full".to_owned(),
            "Make room, or name another folder in HF_HOME or TORCH_HOME; what arrived is kept",
        ),
        IoErrorKind::PermissionDenied => (
            "permission is denied".to_owned(),
            "Allow writing there, or name another folder in HF_HOME or TORCH_HOME",
        ),
        _ => (
            error.to_string(),
            "Name another folder in HF_HOME or TORCH_HOME",
        ),
    };
    Error::new(
        ErrorKind::Output,
        format!("cannot write “{}”", path.display()),
        why,
        remedy,
    )
}
