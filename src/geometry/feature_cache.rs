//! Feature maps on disk, so that a picture that was encoded once is not encoded again.
//!
//! A file holds one feature map, as safetensors: the tensor `features` (row, column, channel) in f32, and in its header
//! the SHA-256 of the values and what they are of ([`FeatureKey`]). The file's name is the SHA-256 of the key.
//!
//! What is promised. A file that is cut short, damaged, of another program or of another key is a *miss*: the map is
//! computed again and the file replaced; nothing here is ever an error, since a cache that fails costs time alone. Files are
//! written beside their place and renamed, so that any number of processes can share the folder and one that is killed in
//! the middle leaves no more than an unfinished file, which a later eviction sweeps away. A hit renews the file's
//! time of modification; where the files take more than the budget, those go first that were not used for the longest.
//! Files that vanish meanwhile, because another process evicts too, are no matter.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::Serialize;

use crate::encoders::Readout;
use crate::encoders::architecture::Architecture;
use crate::encoders::registry::{LoadedEncoder, row, split_local};
use crate::features::FeatureMap;
use crate::files::{UNFINISHED, write_replaceable};
use crate::images::{Prepared, Preprocessing, sha256_hex};

/// Bytes that the files take at most unless another budget is set: some 20,000 maps of 14 × 14 × 112.
pub const BUDGET_BYTES_DEFAULT: u64 = 2 << 30;

/// Number of the layout, raised when a field changes its meaning.
const FORMAT: u32 = 1;

/// Key in the header of the hash of the values and, after a space, what they are of. It is one entry because the order of several is
/// random, and equal maps make equal files.
const HEADER: &str = "etascope_features";

/// Name of the tensor.
const TENSOR: &str = "features";

const EXTENSION: &str = "safetensors";

/// Largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Share of the budget, in sixteenths, that an eviction leaves, so that not every file that is added causes one.
const LEFT_SIXTEENTHS: u64 = 15;

/// Age of an unfinished file beyond which no process can still be writing it.
const ABANDONED: Duration = Duration::from_secs(3600);

/// What a feature map is of: the pixels, the network with its weights, and the place in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FeatureKey {
    /// All of it as JSON.
    text: String,
    /// SHA-256 of the text in hexadecimal.
    name: String,
}

/// The fields of a key. The picture stands for itself: its pixels are what the edit, the crop and the resize have left of the
/// photograph. The device and the version of the program are among them because features of either differ by rounding.
#[derive(Serialize)]
struct Fields<'a> {
    format: u32,
    program: &'a str,
    encoder: &'a str,
    architecture: Option<&'a Architecture>,
    weights: &'a str,
    stage: &'a Readout,
    preprocessing: &'a Preprocessing,
    device: &'a str,
    precision: String,
    side_px: usize,
    pixels_sha256: String,
}

impl FeatureKey {
    /// The key of what `encoder` shows of `picture` at `readout`.
    pub fn new(encoder: &LoadedEncoder, readout: &Readout, picture: &Prepared) -> Self {
        let spec = encoder.spec();
        let bytes: Vec<u8> = (picture.pixels.iter())
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let fields = Fields {
            format: FORMAT,
            program: env!("CARGO_PKG_VERSION"),
            // Without the place of a file: its weights are known by their hash.
            encoder: split_local(&spec.name).0,
            // A user's row may give a name another network.
            architecture: (row(&spec.name).ok()).map(|row| &row.architecture),
            weights: &encoder.weights_id,
            stage: readout,
            preprocessing: &spec.preprocessing,
            device: &encoder.device.info.name,
            precision: format!("{:?}", encoder.placement.dtype),
            side_px: picture.side_px,
            pixels_sha256: sha256_hex(&bytes),
        };
        // Plain fields cannot fail to be written; an empty text would be a key that fits no file.
        Self::of_text(serde_json::to_string(&fields).unwrap_or_default())
    }

    fn of_text(text: String) -> Self {
        Self {
            name: sha256_hex(text.as_bytes()),
            text,
        }
    }
}

/// A folder of feature maps with a budget.
#[derive(Debug)]
pub struct FeatureCache {
    folder: PathBuf,
    budget_bytes: u64,
    usage: Mutex<Usage>,
}

/// What this process knows of the folder.
#[derive(Debug, Default)]
struct Usage {
    /// Bytes at the last look, and what this process has written since.
    bytes: u64,
    /// Bytes that it may still write before it looks again; other processes write as well.
    before_next_look: u64,
}

impl FeatureCache {
    /// The cache in `folder`, which is made at the first write.
    pub fn new(folder: impl Into<PathBuf>, budget_bytes: u64) -> Self {
        Self {
            folder: folder.into(),
            budget_bytes,
            usage: Mutex::default(),
        }
    }

    /// The cache below the platform's folder for caches; `None` where there is no home folder.
    pub fn of_user(budget_bytes: u64) -> Option<Self> {
        Some(Self::new(Self::user_folder()?, budget_bytes))
    }

    /// The folder below the platform's folder for caches; `None` where there is no home folder.
    pub fn user_folder() -> Option<PathBuf> {
        let folders = directories::ProjectDirs::from("", "", "Etascope")?;
        Some(folders.cache_dir().join("features"))
    }

    /// Where the files are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The map of this key, if it is there and whole.
    pub fn get(&self, key: &FeatureKey) -> Option<FeatureMap> {
        let path = self.path(key);
        let size = fs::metadata(&path).ok()?.len();
        if size > FILE_BYTES_MAX {
            return None;
        }
        let map = read(&fs::read(&path).ok()?, key)?;
        // Used now. Where the time cannot be set the file only leaves earlier.
        let touched = (File::options().write(true).open(&path))
            .and_then(|file| file.set_modified(SystemTime::now()));
        if let Err(error) = touched {
            log::debug!("feature cache: {}: {error}", path.display());
        }
        Some(map)
    }

    /// Keeps a map; a file of the same key is replaced.
    pub fn put(&self, key: &FeatureKey, map: &FeatureMap) {
        let Some(content) = written(key, map) else {
            return;
        };
        let size = content.len() as u64;
        if size > self.budget_bytes.min(FILE_BYTES_MAX) {
            return;
        }
        if let Err(error) = write_replaceable(&self.path(key), &content) {
            log::warn!("feature cache: {}: {error}", self.folder.display());
            return;
        }
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        usage.bytes += size;
        if usage.bytes > self.budget_bytes || usage.before_next_look < size {
            usage.bytes = self.evict();
            usage.before_next_look = self.budget_bytes / 16;
        } else {
            usage.before_next_look -= size;
        }
    }

    fn path(&self, key: &FeatureKey) -> PathBuf {
        self.folder.join(format!("{}.{EXTENSION}", key.name))
    }

    /// Removes what was not used for the longest until the rest fits, and what was abandoned unfinished; returns the bytes that
    /// are left. Files that are none of the cache's stay and are not counted.
    fn evict(&self) -> u64 {
        let mut files = Vec::new();
        let now = SystemTime::now();
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let Ok(about) = entry.metadata() else {
                continue;
            };
            let Ok(modified) = about.modified() else {
                continue;
            };
            if name.starts_with(UNFINISHED) {
                let age = now.duration_since(modified).unwrap_or_default();
                if age > ABANDONED {
                    remove(&entry.path());
                }
            } else if about.is_file() && is_own(&name) {
                files.push((modified, entry.path(), about.len()));
            }
        }
        let mut bytes: u64 = files.iter().map(|(.., size)| size).sum();
        if bytes <= self.budget_bytes {
            return bytes;
        }
        files.sort();
        let left = self.budget_bytes / 16 * LEFT_SIXTEENTHS;
        for (_, path, size) in files {
            if bytes <= left {
                break;
            }
            if remove(&path) {
                bytes -= size;
            }
        }
        bytes
    }
}

/// Whether the file is gone, by whomever.
fn remove(path: &Path) -> bool {
    match fs::remove_file(path) {
        Ok(()) => true,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
        Err(error) => {
            log::warn!("feature cache: {}: {error}", path.display());
            false
        }
    }
}

/// Whether a file has the name of a key.
fn is_own(name: &str) -> bool {
    let stem = name
        .strip_suffix(EXTENSION)
        .and_then(|n| n.strip_suffix('.'));
    stem.is_some_and(|stem| stem.len() == 64 && stem.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// The file of a map; `None` where it cannot be made.
fn written(key: &FeatureKey, map: &FeatureMap) -> Option<Vec<u8>> {
    let [channels, rows, columns] = map.shape();
    let bytes: Vec<u8> = (map.vectors().iter())
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let header = format!("{} {}", sha256_hex(&bytes), key.text);
    let metadata = [(HEADER.to_owned(), header)].into();
    let view = TensorView::new(Dtype::F32, vec![rows, columns, channels], &bytes).ok()?;
    safetensors::serialize([(TENSOR, view)], Some(metadata)).ok()
}

/// The map in a file; `None` where it is anything but the whole map of this key.
fn read(file: &[u8], key: &FeatureKey) -> Option<FeatureMap> {
    let (_, metadata) = SafeTensors::read_metadata(file).ok()?;
    let header = metadata.metadata().as_ref()?.get(HEADER)?;
    let (checksum, of) = header.split_once(' ')?;
    if of != key.text {
        return None;
    }
    let arrays = SafeTensors::deserialize(file).ok()?;
    let tensor = arrays.tensor(TENSOR).ok()?;
    let &[rows, columns, channels] = tensor.shape() else {
        return None;
    };
    let bytes = tensor.data();
    if tensor.dtype() != Dtype::F32 || checksum != sha256_hex(bytes) {
        return None;
    }
    let values: Vec<f32> = (bytes.as_chunks().0.iter())
        .map(|bytes| f32::from_le_bytes(*bytes))
        .collect();
    FeatureMap::from_vectors([channels, rows, columns], values).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    fn key(number: usize) -> FeatureKey {
        FeatureKey::of_text(format!("map {number:03}"))
    }

    fn map(number: usize) -> FeatureMap {
        let values: Vec<f32> = (0..2 * 3 * 5).map(|i| (i + 100 * number) as f32).collect();
        FeatureMap::from_vectors([5, 2, 3], values).expect("a map")
    }

    fn size_of_a_file() -> u64 {
        written(&key(0), &map(0)).expect("a file").len() as u64
    }

    /// The time of modification is set, not waited for.
    fn age(cache: &FeatureCache, number: usize, seconds: u64) {
        let path = cache.path(&key(number));
        let file = File::options().write(true).open(path).expect("a file");
        let then = SystemTime::now() - Duration::from_secs(seconds);
        file.set_modified(then).expect("a time");
    }

    fn files(folder: &Path) -> usize {
        fs::read_dir(folder).expect("a folder").count()
    }

    #[test]
    fn a_map_comes_back_as_it_was_and_only_under_its_key() {
        let home = tempfile::tempdir().expect("a folder");
        let cache = FeatureCache::new(home.path().join("new/folder"), 1 << 20);
        assert_eq!(cache.get(&key(1)), None);
        cache.put(&key(1), &map(1));
        assert_eq!(cache.get(&key(1)), Some(map(1)));
        assert_eq!(cache.get(&key(2)), None);
        // A file under the name of another key.
        fs::copy(cache.path(&key(1)), cache.path(&key(2))).expect("a copy");
        assert_eq!(cache.get(&key(2)), None);
        cache.put(&key(2), &map(2));
        assert_eq!(cache.get(&key(2)), Some(map(2)));
    }

    #[test]
    fn every_damage_is_a_miss_and_is_mended() {
        let home = tempfile::tempdir().expect("a folder");
        let cache = FeatureCache::new(home.path(), 1 << 20);
        cache.put(&key(1), &map(1));
        let path = cache.path(&key(1));
        let whole = fs::read(&path).expect("a file");
        for at in 0..whole.len() {
            // Cut short there, and one bit of the byte turned.
            fs::write(&path, &whole[..at]).expect("a file");
            assert_eq!(cache.get(&key(1)), None, "cut at {at}");
            let mut turned = whole.clone();
            turned[at] ^= 1;
            fs::write(&path, &turned).expect("a file");
            // A turned bit in the name of a field of padding may be harmless; other values never are.
            let found = cache.get(&key(1));
            assert!(found.is_none() || found == Some(map(1)), "bit of {at}");
        }
        cache.put(&key(1), &map(1));
        assert_eq!(cache.get(&key(1)), Some(map(1)));
    }

    #[test]
    fn what_was_not_used_for_the_longest_leaves_first() {
        let home = tempfile::tempdir().expect("a folder");
        let cache = FeatureCache::new(home.path(), 16 * size_of_a_file());
        for number in 0..16 {
            cache.put(&key(number), &map(number));
            age(&cache, number, 1000 - number as u64);
        }
        // 0 and 1 are the oldest; 0 is used again.
        assert_eq!(cache.get(&key(0)), Some(map(0)));
        let foreign = home.path().join("notes.safetensors");
        fs::write(&foreign, "kept").expect("a file");
        let abandoned = home.path().join(format!("{UNFINISHED}old"));
        fs::write(&abandoned, "half").expect("a file");
        let file = File::options().write(true).open(&abandoned);
        let then = SystemTime::now() - 2 * ABANDONED;
        file.and_then(|file| file.set_modified(then))
            .expect("a time");
        let recent = home.path().join(format!("{UNFINISHED}new"));
        fs::write(&recent, "half").expect("a file");

        cache.put(&key(16), &map(16));
        let kept: Vec<usize> = (0..17)
            .filter(|&number| cache.get(&key(number)).is_some())
            .collect();
        // Of 17 files 15 sixteenths of the budget stay.
        let mut expected = vec![0];
        expected.extend(3..17);
        assert_eq!(kept, expected);
        assert!(foreign.exists() && recent.exists() && !abandoned.exists());
    }

    #[test]
    fn a_map_larger_than_the_budget_is_not_kept() {
        let home = tempfile::tempdir().expect("a folder");
        let cache = FeatureCache::new(home.path().join("none"), size_of_a_file() - 1);
        cache.put(&key(0), &map(0));
        assert_eq!(cache.get(&key(0)), None);
        assert!(!cache.folder().exists());
    }

    #[test]
    fn a_folder_that_cannot_be_written_costs_time_alone() {
        let home = tempfile::tempdir().expect("a folder");
        let file = home.path().join("file");
        fs::write(&file, "").expect("a file");
        let cache = FeatureCache::new(file.join("below"), 1 << 20);
        cache.put(&key(0), &map(0));
        assert_eq!(cache.get(&key(0)), None);
    }

    #[test]
    fn several_writers_and_evictions_at_once_leave_whole_files() {
        let home = tempfile::tempdir().expect("a folder");
        let writers = 4;
        let barrier = Barrier::new(writers);
        thread::scope(|scope| {
            for _ in 0..writers {
                scope.spawn(|| {
                    // A cache of its own each, as in processes; all write and evict the same files.
                    let cache = FeatureCache::new(home.path(), 8 * size_of_a_file());
                    barrier.wait();
                    for round in 0..200 {
                        let number = round % 20;
                        cache.put(&key(number), &map(number));
                        let found = cache.get(&key(number));
                        assert!(found.is_none() || found == Some(map(number)));
                    }
                });
            }
        });
        assert!(files(home.path()) <= 20);
        for entry in fs::read_dir(home.path()).expect("a folder").flatten() {
            let name = entry.file_name();
            assert!(is_own(&name.to_string_lossy()), "{name:?}");
        }
    }
}
