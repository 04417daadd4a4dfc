#![no_main]
//! Any bytes as a safetensors file: read or refused, within the bytes.

use etascope_fuzz::weights::checkpoint::Checkpoint;
use etascope_fuzz::weights::read_all;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(checkpoint) = Checkpoint::from_safetensors("fuzz", bytes) {
        let stored: usize = checkpoint.tensors().values().map(|tensor| tensor.shape.len()).sum();
        assert!(stored <= bytes.len());
        read_all(&checkpoint, bytes.len());
    }
});
