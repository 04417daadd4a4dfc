//! The safetensors format: eight bytes of header length, a JSON header that places each tensor, and
//! the tensors one after another (<https://huggingface.co/docs/safetensors>).
//!
//! The `safetensors` crate reads files that are whole in memory; this reads the header alone, so that
//! a file is never held twice, and names what is wrong with a damaged one.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use super::checkpoint::{AGAIN, Bytes, Stored, ValueType, cannot_read};
use super::verify::shape_text;
use crate::Result;

/// Longest header that the format admits, in bytes.
const HEADER_MAX: u64 = 100_000_000;

/// Bytes before the header.
const LENGTH_LEN: u64 = 8;

/// What the header says of one tensor.
#[derive(serde::Deserialize)]
struct Info {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [u64; 2],
}

/// The header's entries in their order.
struct Header(Vec<(String, Info)>);

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Header;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the tensors by name")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Header, A::Error> {
                let mut names = std::collections::HashSet::new();
                let mut entries = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if !names.insert(name.clone()) {
                        return Err(A::Error::custom(format_args!("“{name}” occurs twice")));
                    }
                    if name == "__metadata__" {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        entries.push((name, map.next_value()?));
                    }
                }
                Ok(Header(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// Type and bits of a value, by its name in headers.
fn value_type(name: &str) -> Option<(ValueType, u64)> {
    use ValueType::{Integer, Other};
    Some(match name {
        "F64" => (ValueType::F64, 64),
        "F32" => (ValueType::F32, 32),
        "F16" => (ValueType::F16, 16),
        "BF16" => (ValueType::BF16, 16),
        "BOOL" => (Integer("BOOL"), 8),
        "U8" => (Integer("U8"), 8),
        "I8" => (Integer("I8"), 8),
        "U16" => (Integer("U16"), 16),
        "I16" => (Integer("I16"), 16),
        "U32" => (Integer("U32"), 32),
        "I32" => (Integer("I32"), 32),
        "U64" => (Integer("U64"), 64),
        "I64" => (Integer("I64"), 64),
        "F8_E4M3" => (Other("F8_E4M3"), 8),
        "F8_E5M2" => (Other("F8_E5M2"), 8),
        "F8_E8M0" => (Other("F8_E8M0"), 8),
        "F8_E4M3FNUZ" => (Other("F8_E4M3FNUZ"), 8),
        "F8_E5M2FNUZ" => (Other("F8_E5M2FNUZ"), 8),
        "F6_E2M3" => (Other("F6_E2M3"), 6),
        "F6_E3M2" => (Other("F6_E3M2"), 6),
        "F4" => (Other("F4"), 4),
        "C64" => (Other("C64"), 64),
        _ => return None,
    })
}

/// The tensors of a file of `len` bytes. `read` fills a buffer from an offset; `at` makes a tensor's
/// place of offset and length, both within the file.
pub(super) fn tensors<'file>(
    source: &str,
    len: u64,
    read: impl Fn(u64, &mut [u8]) -> io::Result<()>,
    at: impl Fn(u64, usize) -> Bytes<'file>,
) -> Result<BTreeMap<String, Stored<'file>>> {
    let refuse = |why: String| cannot_read(source, why, AGAIN);
    let damaged = |error: io::Error| refuse(error.to_string());
    let cut_short = || refuse("the file is cut short or is not a safetensors file".to_owned());
    if len < LENGTH_LEN {
        return Err(cut_short());
    }
    let mut length = [0; LENGTH_LEN as usize];
    read(0, &mut length).map_err(damaged)?;
    let header_len = u64::from_le_bytes(length);
    if header_len > HEADER_MAX {
        let why = "its header claims more than 100 MB; it is not a safetensors file";
        return Err(refuse(why.to_owned()));
    }
    let start = LENGTH_LEN + header_len;
    if start > len {
        return Err(cut_short());
    }
    // At most the file's own length and 100 MB, so that it fits a usize.
    let mut header = vec![0; header_len as usize];
    read(LENGTH_LEN, &mut header).map_err(damaged)?;
    let Header(mut entries) = serde_json::from_slice(&header).map_err(|error| {
        refuse(format!(
            "its header is not that of a safetensors file ({error})"
        ))
    })?;
    drop(header);

    entries.sort_by_key(|(_, info)| info.data_offsets);
    let mut end = 0;
    let mut tensors = BTreeMap::new();
    for (name, info) in entries {
        let [from, to] = info.data_offsets;
        if from > to {
            return Err(refuse(format!("the tensor {name} ends before it begins")));
        }
        if from != end {
            let fault = if from < end {
                "overlaps"
            } else {
                "leaves a gap after"
            };
            return Err(refuse(format!(
                "the tensor {name} {fault} the one before it"
            )));
        }
        end = to;
        let Some((value_type, bits)) = value_type(&info.dtype) else {
            return Err(refuse(format!(
                "the tensor {name} is of the unknown type “{}”",
                info.dtype
            )));
        };
        let needed = info
            .shape
            .iter()
            .try_fold(bits, |bits, &side| bits.checked_mul(side as u64))
            .map(|bits| bits.div_ceil(8));
        if needed != Some(to - from) {
            return Err(refuse(format!(
                "the tensor {name} has {} bytes, which is not {} in {}",
                to - from,
                shape_text(&info.shape),
                info.dtype
            )));
        }
        let (Some(offset), Ok(bytes)) = (start.checked_add(from), usize::try_from(to - from))
        else {
            return Err(cut_short());
        };
        // A tensor beyond the end is told with all of them below, before any is read.
        let bytes = if offset
            .checked_add(bytes as u64)
            .is_some_and(|end| end <= len)
        {
            at(offset, bytes)
        } else {
            Bytes::Memory(&[])
        };
        tensors.insert(
            name,
            Stored {
                value_type,
                shape: info.shape,
                bytes,
            },
        );
    }
    match start.checked_add(end) {
        Some(whole) if whole == len => Ok(tensors),
        Some(whole) if whole < len => Err(refuse(format!(
            "{} bytes follow the last tensor",
            len - whole
        ))),
        whole => Err(refuse(format!(
            "the file is cut short: {len} bytes of {}",
            whole.unwrap_or(u64::MAX)
        ))),
    }
}
