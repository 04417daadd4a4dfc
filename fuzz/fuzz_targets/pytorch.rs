#![no_main]
//! Any bytes as a file of any kind: opened as the program opens it, read or refused.

use std::path::PathBuf;
use std::sync::LazyLock;

use etascope_fuzz::weights::checkpoint::Checkpoint;
use etascope_fuzz::weights::read_all;
use libfuzzer_sys::fuzz_target;

/// One file for each process: the reader takes a path, since it reads tensors from the file later.
static PATH: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("etascope-fuzz-{}.pth", std::process::id())));

fuzz_target!(|bytes: &[u8]| {
    // Removed first: overwriting makes some file systems wait for the disk.
    let _ = std::fs::remove_file(&*PATH);
    if std::fs::write(&*PATH, bytes).is_ok()
        && let Ok(checkpoint) = Checkpoint::open(&PATH)
    {
        read_all(&checkpoint, 1 << 16);
    }
});
