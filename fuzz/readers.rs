//! The readers of weight files, from the program's own source, without the networks that they serve.

#[path = "../src/error.rs"]
pub mod error;

pub use error::{Error, ErrorKind, Result};

/// What the readers use of the images' module.
pub mod images {
    use sha2::{Digest, Sha256};

    /// SHA-256 in hexadecimal.
    pub fn sha256_hex(bytes: &[u8]) -> String {
        Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The readers.
#[path = "../src/encoders/weights"]
pub mod weights {
    pub mod checkpoint;
    mod index;
    mod pytorch;
    mod safetensors;
    pub mod verify;

    /// What the report uses of a declared tensor.
    pub struct Parameter {
        pub name: String,
    }

    /// Reads all values of a checkpoint whose tensors are not beyond `len_max` values: a view may
    /// repeat a value a million times.
    pub fn read_all(checkpoint: &checkpoint::Checkpoint<'_>, len_max: usize) {
        for stored in checkpoint.tensors().values() {
            let len = stored.shape.iter().try_fold(1usize, |len, &side| len.checked_mul(side));
            if len.is_some_and(|len| len <= len_max)
                && let Ok(values) = stored.values(|value| value)
                && stored.value_type.is_float()
            {
                assert_eq!(Some(values.len()), len, "as many values as the shape says");
            }
        }
    }
}
