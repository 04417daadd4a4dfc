//! How much memory loading a checkpoint takes, in a process of its own, and how long.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;

use etascope::device::ComputeDevice;
use etascope::encoders::registry;
use etascope::encoders::weights::Parameter;
use etascope::encoders::{Readout, WeightsKind};

/// The most memory that this process has had, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("it is stated");
    let kilobytes: u64 = line
        .trim()
        .trim_end_matches(" kB")
        .trim()
        .parse()
        .expect("a number");
    1024 * kilobytes
}

/// A safetensors file of constants, written in slices so that this process never holds it.
fn write(path: &Path, parameters: &[Parameter]) -> u64 {
    let mut offset = 0;
    let entries: Vec<String> = parameters
        .iter()
        .map(|parameter| {
            let (from, to) = (offset, offset + 4 * parameter.len());
            offset = to;
            let (name, shape) = (&parameter.name, &parameter.shape);
            format!(r#""{name}":{{"dtype":"F32","shape":{shape:?},"data_offsets":[{from},{to}]}}"#)
        })
        .collect();
    let header = format!("{{{}}}", entries.join(","));
    let mut file = BufWriter::new(fs::File::create(path).expect("it can be made"));
    file.write_all(&(header.len() as u64).to_le_bytes())
        .expect("there is room");
    file.write_all(header.as_bytes()).expect("there is room");
    let slice: Vec<u8> = 1e-3f32.to_le_bytes().repeat(1 << 18);
    let mut left = offset;
    while left > 0 {
        let len = left.min(slice.len());
        file.write_all(&slice[..len]).expect("there is room");
        left -= len;
    }
    file.flush().expect("there is room");
    path.metadata().expect("it is there").len()
}

/// AlexNet, two thirds of whose parameters are one matrix: the worst that a published network does to
/// the memory of loading, 244 MB in f32.
#[test]
fn loading_takes_at_most_twice_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("alexnet.safetensors");
    let row = registry::row("alexnet.tv_in1k").expect("it is known");
    let len = write(&path, &row.architecture.parameters());
    let name = registry::local_name("alexnet.tv_in1k", path.to_str().expect("UTF-8"));
    let cpu = ComputeDevice::cpu();
    let before = peak();
    let loaded = registry::load(&name, WeightsKind::Trained, 0, &cpu).expect("it loads");
    let taken = peak() - before;
    assert!(loaded.encoder.spec().readout_len(&Readout::Pooled).is_ok());
    assert!(taken <= 2 * len, "{taken} bytes for a file of {len}");
    // The network itself is in memory, so that the measurement measures.
    assert!(taken >= len, "{taken} bytes for a file of {len}");
}
