//! Checkpoints of several files, and folders with a checkpoint inside.
//!
//! Hugging Face libraries split large checkpoints into shards and write an index beside them: a JSON
//! object whose `weight_map` names the shard of each tensor.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::checkpoint::{AGAIN, Stored, cannot_read, tensors_of, unreadable};
use super::verify::listed;
use crate::Result;

/// Names under which libraries keep the checkpoint of a folder, the ones tried first in front.
const FILES: [&str; 6] = [
    "model.safetensors",
    "model.safetensors.index.json",
    "open_clip_model.safetensors",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    "model.pth",
];

/// Longest index that is read, in bytes: some hundred thousand names.
const INDEX_MAX: u64 = 64 << 20;

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// The file to open for `path`: itself, or the checkpoint in the folder that it is.
pub(super) fn resolve(path: &Path) -> Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let inside = FILES.iter().map(|name| path.join(name));
    inside
        .into_iter()
        .find(|file| file.is_file())
        .ok_or_else(|| {
            cannot_read(
                &path.display().to_string(),
                format!("the folder holds none of {}", FILES.join(", ")),
                "Name the weight file itself",
            )
        })
}

/// What an index leads to: the format, the shards in the order of their names, and all tensors.
type Sharded = (String, Vec<PathBuf>, BTreeMap<String, Stored<'static>>);

/// Opens the shards that the index `path` names.
pub(super) fn open(path: &Path) -> Result<Sharded> {
    let source = path.display().to_string();
    let shards_of = shards(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let names: BTreeSet<&String> = shards_of.values().collect();
    let absent: Vec<&String> = names
        .iter()
        .copied()
        .filter(|name| !folder.join(name).is_file())
        .collect();
    if let Some(absent) = listed("file", "missing beside it", absent) {
        let remedy = "Put all files of the checkpoint into one folder";
        return Err(cannot_read(&source, absent, remedy));
    }
    let mut tensors = BTreeMap::new();
    let mut lost: BTreeSet<&str> = shards_of.keys().map(String::as_str).collect();
    let mut format = String::new();
    for &shard in &names {
        let (kind, found) = tensors_of(&folder.join(shard))?;
        format = kind;
        for (name, tensor) in found {
            // A tensor that the index gives to another shard, or to none, plays no part.
            let Some((entry, _)) = shards_of
                .get_key_value(&name)
                .filter(|(_, of)| *of == shard)
            else {
                continue;
            };
            lost.remove(entry.as_str());
            tensors.insert(name, tensor);
        }
    }
    if let Some(lost) = listed("tensor", "named by the index and in no file", lost) {
        return Err(cannot_read(&source, lost, AGAIN));
    }
    let files = names.iter().map(|name| folder.join(name)).collect();
    Ok((format!("{format}, {} files", names.len()), files, tensors))
}

/// The shard of each tensor: plain file names beside the index.
pub(super) fn shards(path: &Path) -> Result<BTreeMap<String, String>> {
    let source = path.display().to_string();
    let mut text = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| unreadable(path, &error))?;
    file.take(INDEX_MAX)
        .read_to_end(&mut text)
        .map_err(|error| unreadable(path, &error))?;
    let index: Index = serde_json::from_slice(&text).map_err(|error| {
        cannot_read(
            &source,
            format!("it is not an index of shards ({error})"),
            "Open the weight file itself",
        )
    })?;
    let is_plain = |name: &str| {
        !name.contains(['/', '\\', ':'])
            && Path::new(name).file_name() == Some(std::ffi::OsStr::new(name))
    };
    if let Some(shard) = index.weight_map.values().find(|name| !is_plain(name)) {
        let why = format!("the index leads out of its folder, to “{shard}”");
        return Err(cannot_read(&source, why, AGAIN));
    }
    if index.weight_map.is_empty() {
        return Err(cannot_read(&source, "the index names no tensor", AGAIN));
    }
    Ok(index.weight_map)
}
