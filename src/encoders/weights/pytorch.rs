//! Files of PyTorch: zip archives (since 1.6), the pickle streams before them, and the tar archives
//! before those.
//!
//! A pickle is a program that builds objects; `torch.load` runs it. The reader used here interprets
//! what builds tensors and containers, and keeps everything else as opaque objects: nothing named in
//! a file is ever called. Names of nested dictionaries are joined by dots, as in
//! `state_dict.conv1.weight`.

use std::collections::BTreeMap;
use std::path::Path;

use pytorch_reader::{DType, FileFormat, PytorchError, PytorchReader};

use super::checkpoint::{AGAIN, Bytes, Stored, ValueType, cannot_read, unreadable};
use crate::Result;

/// Whether a file that begins like this is one of PyTorch.
pub(super) fn is_it(magic: &[u8]) -> bool {
    // `{` where safetensors has its header; its length's first byte may be any.
    let is_safetensors = magic.get(8) == Some(&b'{');
    let is_zip = magic.starts_with(b"PK\x03\x04") || magic.starts_with(b"PK\x05\x06");
    let is_tar = magic.get(257..262) == Some(b"ustar");
    let is_pickle = matches!(magic.first(), Some(0x80 | b'(' | b'}' | b']' | b'c'));
    // Protocols 0 and 1 write the magic number of old files as text.
    let is_old_text = magic.starts_with(b"L119547037146038801333356");
    is_zip || is_tar || ((is_pickle || is_old_text) && !is_safetensors)
}

/// Format and tensors of a file of PyTorch.
pub(super) fn tensors(path: &Path) -> Result<(String, BTreeMap<String, Stored<'static>>)> {
    let reader = PytorchReader::new(path).map_err(|error| explain(path, &error))?;
    let format = match reader.metadata().format_type {
        FileFormat::Zip => "PyTorch",
        FileFormat::Legacy => "PyTorch before 1.6",
        FileFormat::Tar => "PyTorch before 0.1.10",
        FileFormat::Pickle => "pickle",
    };
    let tensors: BTreeMap<String, Stored<'static>> = reader
        .into_tensors()
        .into_iter()
        .map(|(name, tensor)| {
            let stored = Stored {
                value_type: value_type(tensor.dtype()),
                shape: tensor.shape().to_vec(),
                bytes: Bytes::PyTorch(tensor),
            };
            (name, stored)
        })
        .collect();
    if tensors.is_empty() {
        let why = "there is no tensor in it";
        let remedy = "Open a file that torch.save wrote from a state_dict";
        return Err(cannot_read(&path.display().to_string(), why, remedy));
    }
    Ok((format.to_owned(), tensors))
}

fn value_type(dtype: DType) -> ValueType {
    match dtype {
        DType::F64 => ValueType::F64,
        DType::F32 => ValueType::F32,
        DType::F16 => ValueType::F16,
        DType::BF16 => ValueType::BF16,
        DType::I64 => ValueType::Integer("I64"),
        DType::I32 => ValueType::Integer("I32"),
        DType::I16 => ValueType::Integer("I16"),
        DType::I8 => ValueType::Integer("I8"),
        DType::U64 => ValueType::Integer("U64"),
        DType::U32 => ValueType::Integer("U32"),
        DType::U16 => ValueType::Integer("U16"),
        DType::U8 => ValueType::Integer("U8"),
        DType::Bool => ValueType::Integer("BOOL"),
    }
}

/// The reader's refusal in the program's words.
fn explain(path: &Path, error: &PytorchError) -> crate::Error {
    let refuse = |why: String, remedy: &str| cannot_read(&path.display().to_string(), why, remedy);
    let state_dict = "In PyTorch save model.state_dict() alone, and open that";
    let text = error.to_string();
    match error {
        PytorchError::Io(error) if error.kind() != std::io::ErrorKind::InvalidData => {
            if error.kind() == std::io::ErrorKind::UnexpectedEof {
                refuse("the file is cut short".to_owned(), AGAIN)
            } else {
                unreadable(path, error)
            }
        }
        PytorchError::Zip(error) => refuse(
            format!("the zip archive is damaged or cut short ({error})"),
            AGAIN,
        ),
        _ if text.contains("__torch__") => refuse(
            "it is a TorchScript program, not a checkpoint".to_owned(),
            state_dict,
        ),
        PytorchError::InvalidFormat(why) if why.contains("data.pkl") => refuse(
            "it is a zip archive that PyTorch did not write: it has no data.pkl".to_owned(),
            "If it is an archive with a checkpoint inside, unpack it first",
        ),
        PytorchError::InvalidFormat(why) => refuse(why.clone(), state_dict),
        PytorchError::Pickle(error) => refuse(
            format!("its pickle cannot be read ({error})"),
            "Get the file again; if it is whole, save model.state_dict() alone in PyTorch",
        ),
        _ => refuse(text, AGAIN),
    }
}
