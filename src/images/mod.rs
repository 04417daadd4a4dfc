//! Photographs: reading files safely, preparing them as an encoder's checkpoint expects, and editing them.

pub mod bundled;
mod colour;
pub mod crop;
pub mod decode;
pub mod gaussian;
mod jpeg;
pub mod manipulations;
pub mod mask;
pub mod pairs;
pub mod picture;
pub mod preprocess;
mod tiff;

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use decode::{decode, file_sha256, from_rgba, open};
pub use manipulations::{GridSymmetry, Manipulation};
pub use mask::{Disc, Mask};
pub use picture::Picture;
pub use preprocess::{ChannelOrder, Prepared, Preprocessing, ResizeFilter};

/// A decoded photograph: upright, opaque, 8-bit sRGB.
#[derive(Clone, Debug, PartialEq)]
pub struct Photo {
    /// File name or a description such as `pasted image`.
    pub name: String,
    /// Where it was read from, if from a file.
    pub path: Option<PathBuf>,
    /// Width in pixels after orientation.
    pub width: u32,
    /// Height in pixels after orientation.
    pub height: u32,
    /// `height · width · 3` values, row after row.
    pub rgb: Arc<[u8]>,
    /// SHA-256 of the file's bytes, or of `rgb` where there is no file, in hexadecimal.
    pub sha256: String,
    /// What was done to the file, in order, for one line under the image; for example
    /// `rotated 90° by EXIF`, `16 to 8 bits`, `“Adobe RGB (1998)” to sRGB`.
    pub treatment: Vec<String>,
}

/// Colour under transparent pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Background(pub [u8; 3]);

impl Default for Background {
    /// White, as most viewers show it.
    fn default() -> Self {
        Self([255; 3])
    }
}

/// SHA-256 in hexadecimal, by which photographs and weights are known.
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
