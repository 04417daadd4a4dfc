//! Sizes beyond the limits are refused before memory is taken. In a process of its own, since the memory
//! measured is the process's.

use std::fs;
use std::path::Path;

use etascope::ErrorKind;
use etascope::images::{self, Background};

/// Why a fixture is refused.
fn refusal(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/images/files");
    let error = images::open(&folder.join(name), Background::default()).expect_err(name);
    assert_eq!(error.kind, ErrorKind::Image);
    assert_eq!(error.what, format!("cannot open “{name}”"));
    assert!(!error.remedy.is_empty(), "{error}");
    error.why
}

/// Most bytes that this process has held, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib * 1024)
}

#[test]
fn sizes_beyond_the_limits_are_refused_before_memory_is_taken() {
    for name in ["huge.bmp", "huge.tiff", "huge.gif", "huge.jpg", "huge.webp"] {
        let why = refusal(name);
        assert!(
            why.ends_with("million in all, and at most 134 million are read"),
            "{name}: {why}"
        );
    }
    assert_eq!(
        refusal("huge.png"),
        "it is 20000 × 20000 pixels, 400 million in all, and at most 134 million are read"
    );
    assert_eq!(
        refusal("long.png"),
        "it is 70000 × 64 pixels and a side may have at most 65535"
    );
    assert_eq!(
        refusal("widest.png"),
        "decoding it needs more memory than is allowed"
    );
    for (name, size) in [("line.png", "30000 × 1"), ("dot.png", "1 × 1")] {
        assert_eq!(
            refusal(name),
            format!("it is {size} pixels and both sides must have at least 8")
        );
    }
    // The smallest picture of too many pixels needs 400 MB as RGB.
    if let Some(bytes) = peak_memory() {
        assert!(bytes < 200_000_000, "{bytes} bytes");
    }
}
