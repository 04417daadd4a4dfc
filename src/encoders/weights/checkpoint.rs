//! A weight file as it stands on disk: the names, shapes and types of its tensors, whose values are
//! read one tensor at a time.
//!
//! Nothing of a file is executed and nothing is believed: every length that it states is held against
//! what is there before memory is set aside for it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn::tensor::{bf16, f16};
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::{index, pytorch, safetensors};
use crate::images::sha256_hex;
use crate::{Error, ErrorKind, Result};

/// Bytes of a file's beginning by which its kind is told.
const MAGIC_LEN: usize = 512;

/// Bytes read at a time while a file is hashed.
const HASHED_AT_ONCE: usize = 1 << 20;

/// Type of a tensor's stored values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueType {
    /// IEEE double.
    F64,
    /// IEEE single.
    F32,
    /// IEEE half.
    F16,
    /// The upper half of an IEEE single.
    BF16,
    /// A whole number or a truth value: a counter, an index or a mask, never a parameter.
    Integer(&'static str),
    /// A type that no parameter of ours is read from, such as an 8-bit float.
    Other(&'static str),
}

impl ValueType {
    /// Name in the manner of safetensors, for example `BF16`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F64 => "F64",
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::BF16 => "BF16",
            Self::Integer(name) | Self::Other(name) => name,
        }
    }

    /// Whether values of this type can be parameters.
    pub fn is_float(self) -> bool {
        !matches!(self, Self::Integer(_) | Self::Other(_))
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for ValueType {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A tensor of a file, its values not yet read.
#[derive(Clone, Debug)]
pub struct Stored<'file> {
    /// Type of its values.
    pub value_type: ValueType,
    /// Extents, outermost first; empty for a single value.
    pub shape: Vec<usize>,
    pub(super) bytes: Bytes<'file>,
}

/// Where a tensor's bytes are, row after row and little-endian.
#[derive(Clone, Debug)]
pub(super) enum Bytes<'file> {
    /// In memory.
    Memory(&'file [u8]),
    /// `len` bytes of a file from `offset` on; within the file when it was opened.
    File {
        file: Arc<File>,
        offset: u64,
        len: usize,
    },
    /// Behind the reader of PyTorch files, which gathers views and shared storages.
    PyTorch(pytorch_reader::Tensor),
}

impl Stored<'_> {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it holds no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn read(&self) -> io::Result<Cow<'_, [u8]>> {
        match &self.bytes {
            Bytes::Memory(bytes) => Ok(Cow::Borrowed(bytes)),
            Bytes::File { file, offset, len } => {
                let mut bytes = vec![0; *len];
                read_exact_at(file, &mut bytes, *offset)?;
                Ok(Cow::Owned(bytes))
            }
            Bytes::PyTorch(tensor) => tensor.read().map(Cow::Owned),
        }
    }

    /// The values, row after row, each passed through `value`; empty for types that are no floats.
    pub(super) fn values<T>(&self, value: impl Fn(f64) -> T) -> io::Result<Vec<T>> {
        let bytes = self.read()?;
        let bytes = bytes.as_ref();
        Ok(match self.value_type {
            ValueType::F64 => of(bytes, |b| value(f64::from_le_bytes(b))),
            ValueType::F32 => of(bytes, |b| value(f64::from(f32::from_le_bytes(b)))),
            ValueType::F16 => of(bytes, |b| value(f16::from_le_bytes(b).to_f64())),
            ValueType::BF16 => of(bytes, |b| value(bf16::from_le_bytes(b).to_f64())),
            ValueType::Integer(_) | ValueType::Other(_) => Vec::new(),
        })
    }

    /// Whether two tensors hold the same bytes in the same type.
    pub(super) fn same_values(&self, other: &Stored<'_>) -> io::Result<bool> {
        Ok(self.value_type == other.value_type
            && self.shape == other.shape
            && self.read()? == other.read()?)
    }
}

fn of<const N: usize, T>(bytes: &[u8], value: impl Fn([u8; N]) -> T) -> Vec<T> {
    let (values, _) = bytes.as_chunks::<N>();
    values.iter().map(|bytes| value(*bytes)).collect()
}

/// Fills `buffer` from `offset` on without moving the file's cursor, so that threads can share it.
pub(super) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    {
        std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
    }
    #[cfg(windows)]
    {
        use std::os::windows::fs::FileExt;
        let mut done = 0;
        while done < buffer.len() {
            match file.seek_read(&mut buffer[done..], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The tensors of a weight file, or of the files over which one checkpoint is spread.
#[derive(Debug)]
pub struct Checkpoint<'file> {
    source: String,
    format: String,
    content: Content<'file>,
    tensors: BTreeMap<String, Stored<'file>>,
}

#[derive(Debug)]
enum Content<'file> {
    Memory(&'file [u8]),
    Files(Vec<PathBuf>),
}

impl<'file> Checkpoint<'file> {
    /// The tensors of a safetensors file in memory; `source` names it for people.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Weights`] where it is not one, or is cut short.
    pub fn from_safetensors(source: &str, file: &'file [u8]) -> Result<Self> {
        let len = file.len() as u64;
        let read = |offset: u64, buffer: &mut [u8]| {
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let bytes = file.get(start..).and_then(|rest| rest.get(..buffer.len()));
            buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        };
        let at = |offset: u64, len: usize| {
            // Within the file, as the header was checked to be.
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let bytes = file.get(start..).and_then(|rest| rest.get(..len));
            Bytes::Memory(bytes.unwrap_or_default())
        };
        Ok(Self {
            source: source.to_owned(),
            format: "safetensors".to_owned(),
            content: Content::Memory(file),
            tensors: safetensors::tensors(source, len, read, at)?,
        })
    }
}

impl Checkpoint<'static> {
    /// Opens a weight file: safetensors, any file of PyTorch, an index of shards
    /// (`*.safetensors.index.json`, `*.bin.index.json`), or a folder that holds one of them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Weights`] where there is no such file, it is of another kind, or it is damaged.
    pub fn open(path: &Path) -> Result<Self> {
        let source = path.display().to_string();
        let path = index::resolve(path)?;
        if path.to_string_lossy().ends_with(".json") {
            let (format, files, tensors) = index::open(&path)?;
            return Ok(Self {
                source,
                format,
                content: Content::Files(files),
                tensors,
            });
        }
        let (format, tensors) = tensors_of(&path)?;
        Ok(Self {
            source,
            format,
            content: Content::Files(vec![path]),
            tensors,
        })
    }
}

impl<'file> Checkpoint<'file> {
    /// The file, for people.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What kind of file it is, for people.
    pub fn format(&self) -> &str {
        &self.format
    }

    /// Tensors by name.
    pub fn tensors(&self) -> &BTreeMap<String, Stored<'file>> {
        &self.tensors
    }

    /// Bytes of the file, or of all files.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Weights`] where a file has gone.
    pub fn size_bytes(&self) -> Result<u64> {
        match &self.content {
            Content::Memory(file) => Ok(file.len() as u64),
            Content::Files(files) => files.iter().try_fold(0, |total, path| {
                let metadata = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?;
                Ok(total + metadata.len())
            }),
        }
    }

    /// SHA-256 of the file in hexadecimal; where there are several, of their own SHA-256 in the order
    /// of their names, each in hexadecimal.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Weights`] where a file cannot be read.
    pub fn sha256(&self) -> Result<String> {
        match &self.content {
            Content::Memory(file) => Ok(sha256_hex(file)),
            Content::Files(files) => {
                let digests: Vec<String> = files
                    .iter()
                    .map(|path| sha256_of(path).map_err(|error| unreadable(path, &error)))
                    .collect::<Result<_>>()?;
                Ok(match digests.as_slice() {
                    [one] => one.clone(),
                    many => sha256_hex(many.concat().as_bytes()),
                })
            }
        }
    }
}

/// Format and tensors of one file.
pub(super) fn tensors_of(path: &Path) -> Result<(String, BTreeMap<String, Stored<'static>>)> {
    let source = path.display().to_string();
    let failed = |error: &io::Error| unreadable(path, error);
    let file = File::open(path).map_err(|error| failed(&error))?;
    let metadata = file.metadata().map_err(|error| failed(&error))?;
    if !metadata.is_file() {
        let why = "it is neither a file nor a folder";
        return Err(cannot_read(&source, why, "Name a weight file"));
    }
    let mut magic = Vec::new();
    (&file)
        .take(MAGIC_LEN as u64)
        .read_to_end(&mut magic)
        .map_err(|error| failed(&error))?;
    if let Some((why, remedy)) = foreign(&magic, path) {
        return Err(cannot_read(&source, why, remedy));
    }
    if pytorch::is_it(&magic) {
        return pytorch::tensors(path);
    }
    let file = Arc::new(file);
    let read = |offset: u64, buffer: &mut [u8]| read_exact_at(&file, buffer, offset);
    let at = |offset: u64, len: usize| Bytes::File {
        file: Arc::clone(&file),
        offset,
        len,
    };
    let tensors = safetensors::tensors(&source, metadata.len(), read, at)?;
    Ok(("safetensors".to_owned(), tensors))
}

/// Why a file that begins like this holds no weights of ours, and what to do.
fn foreign(magic: &[u8], path: &Path) -> Option<(&'static str, &'static str)> {
    let text = String::from_utf8_lossy(magic);
    let text = text.trim_start().to_ascii_lowercase();
    let convert = "Save its state_dict with torch.save or safetensors, and open that";
    Some(if magic.is_empty() {
        ("the file is empty, that is cut short", AGAIN)
    } else if text.starts_with("version https://git-lfs") {
        (
            "it is a Git LFS pointer: a note of 100 bytes that stands for the file",
            "Run “git lfs pull” in its repository, or download the file itself",
        )
    } else if text.starts_with("<!doctype")
        || text.starts_with("<html")
        || text.starts_with("<?xml")
    {
        (
            "it is a web page: the download answered with a page instead of the file",
            "Open the address in a browser, accept or sign in, and save the file itself",
        )
    } else if magic.starts_with(b"\x89HDF") {
        ("it is an HDF5 file, as Keras writes", convert)
    } else if magic.starts_with(b"GGUF") {
        ("it is a GGUF file, for language models", convert)
    } else if magic.starts_with(&[0x1f, 0x8b]) {
        (
            "it is compressed with gzip",
            "Unpack it and open what is inside",
        )
    } else if magic.starts_with(&[0xfd, b'7', b'z', b'X', b'Z']) || magic.starts_with(b"7z\xbc\xaf")
    {
        (
            "it is a compressed archive",
            "Unpack it and open what is inside",
        )
    } else if text.starts_with('{') {
        (
            "it is a JSON text, not weights",
            "Open the weight file itself, or an index whose name ends in .index.json",
        )
    } else if path.extension().is_some_and(|end| end == "onnx") {
        ("ONNX files are not read", convert)
    } else {
        return None;
    })
}

/// What to do about a damaged file.
pub(super) const AGAIN: &str = "Get the file again from its source";

pub(super) fn cannot_read(source: &str, why: impl fmt::Display, remedy: &str) -> Error {
    let what = format!("cannot read the weights “{source}”");
    Error::new(ErrorKind::Weights, what, why, remedy)
}

/// The operating system's refusal to read `path`.
pub(super) fn unreadable(path: &Path, error: &io::Error) -> Error {
    let (why, remedy) = match error.kind() {
        io::ErrorKind::NotFound => ("there is no such file".to_owned(), "Check the path"),
        io::ErrorKind::PermissionDenied => (
            "permission to read it is denied".to_owned(),
            "Allow reading it, or copy it",
        ),
        _ => (error.to_string(), AGAIN),
    };
    cannot_read(&path.display().to_string(), why, remedy)
}

/// SHA-256 of a file in hexadecimal, read in slices.
///
/// # Errors
///
/// Those of the operating system.
pub fn sha256_of(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    hash_into(&mut hash, &mut File::open(path)?)?;
    Ok(hex(&hash.finalize()))
}

/// Takes all that `reader` still has into a hash.
pub(super) fn hash_into(hash: &mut Sha256, reader: &mut impl Read) -> io::Result<()> {
    let mut buffer = vec![0; HASHED_AT_ONCE];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => hash.update(buffer.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

pub(super) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
