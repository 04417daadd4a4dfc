//! The sidecar: what is needed to trust the table and to make it again.

use std::sync::Arc;

use serde_json::{Value, json};

use super::ProfileRun;
use crate::geometry::profile::Basis;

/// Number of the sidecar's layout, raised when a field changes its meaning.
const FORMAT: u32 = 1;
/// The versions of all dependencies that the program was built with.
const LOCK: &str = include_str!("../../Cargo.lock");

/// Versions, and for each run the photograph's hash and treatment, the name of
/// the stage where one is read out, weights, device, recipe with its
/// seeds, hash and treatment of the image that a direction leads to, the basis of each scale's
/// denominator, the estimate of the trace of JᵀJ (where one was made), summary, cost and time.
/// Undefined numbers are `null`.
pub fn sidecar(runs: &[Arc<ProfileRun>]) -> Value {
    envelope("runs", runs.iter().map(|run| entry(run)).collect())
}

/// The versions that every sidecar begins with, and `content` under `key`.
pub(super) fn envelope(key: &str, content: Value) -> Value {
    let mut sidecar = json!({
        "format": FORMAT,
        "program": env!("CARGO_PKG_NAME"),
        "version": env!("CARGO_PKG_VERSION"),
        "libraries": { "burn": locked_version("burn"), "wgpu": locked_version("wgpu") },
        "platform": { "os": std::env::consts::OS, "architecture": std::env::consts::ARCH },
    });
    sidecar[key] = content;
    sidecar
}

fn entry(run: &ProfileRun) -> Value {
    let profile = &run.profile;
    let input_len = input_len(run);
    let is_from_trace = profile
        .scales
        .iter()
        .any(|scale| scale.basis == Basis::Trace);
    let trace = |mean: f64| input_len.filter(|_| is_from_trace).map(|len| mean * len);
    json!({
        "image": { "name": run.image, "sha256": run.image_sha256, "steps": run.image_steps },
        "encoder": { "name": run.recipe.encoder, "title": run.encoder_title },
        "stage": run.stage(),
        "weights": { "kind": run.recipe.weights, "id": run.weights_id },
        "device": run.device,
        "recipe": run.recipe,
        "direction_steps": run.direction_steps,
        "finished": profile.finished,
        "pairs": profile.pairs,
        "undefined": profile.undefined,
        "cost": profile.cost,
        "elapsed_secs": run.elapsed_secs,
        "basis": profile.scales.iter().map(|scale| scale.basis).collect::<Vec<_>>(),
        "mean_jvp_sq": profile.mean_jvp_sq,
        "mean_jvp_sq_se": profile.mean_jvp_sq_se,
        "input_len": input_len,
        "trace_jtj": trace(profile.mean_jvp_sq),
        "trace_jtj_se": trace(profile.mean_jvp_sq_se),
        "rounding_sq": profile.rounding_sq,
        "feature_norm": profile.feature_norm,
        "summary": profile.summary,
    })
}

/// Length d_I of the encoder's input, by which the grey-level column follows from η
/// ([`crate::recipe::grey_rms`]); `None` where no scale tells it.
fn input_len(run: &ProfileRun) -> Option<f64> {
    let scale = run
        .profile
        .scales
        .iter()
        .find(|scale| scale.eta_grey_rms > 0.0)?;
    Some((255.0 * scale.eta_l2 / scale.eta_grey_rms).powi(2).round())
}

/// Version of the first package of this name in the lock file.
fn locked_version(package: &str) -> Option<&'static str> {
    let (_, after) = LOCK.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    after.split('"').next()
}
