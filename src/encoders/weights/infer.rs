//! Which architecture a weight file is of, proposed from the names and shapes in it.

use std::cmp::Reverse;

use serde::Serialize;

use super::Parameter;
use super::checkpoint::Checkpoint;
use super::names;
use super::remap::{self, Fit};
use super::verify::{Report, shape_text};
use crate::Result;
use crate::encoders::architecture::Architecture;

/// Share of an architecture's tensors that must be there for it to be worth a proposal.
const WORTH: f64 = 0.5;

/// An architecture that a file may be of, with the evidence.
#[derive(Clone, Debug, Serialize)]
pub struct Proposal {
    /// Registry names of the encoders with this architecture.
    pub encoders: Vec<String>,
    /// The architecture, with the number of classes that the file has.
    pub architecture: Architecture,
    /// What was found and what was not.
    pub report: Report,
}

impl Proposal {
    /// Whether the file holds the whole network and nothing unknown.
    pub fn is_complete(&self) -> bool {
        self.report.is_complete()
    }
}

/// The architecture's tensors in a checkpoint, with its number of classes changed to the file's where
/// nothing else differs, 0 where the file has no classifier.
///
/// # Errors
///
/// Those of [`remap::fit`].
pub fn fit(
    checkpoint: &Checkpoint<'_>,
    architecture: &Architecture,
    prefix: Option<&str>,
) -> Result<(Architecture, Fit)> {
    let parameters = architecture.parameters();
    let namings = names::of(architecture);
    let first = remap::fit(checkpoint, &parameters, &namings, prefix)?;
    if first.report.is_complete() {
        return Ok((architecture.clone(), first));
    }
    for classes in candidates(architecture, &parameters, &first) {
        let Some(adapted) = with_classes(architecture, classes) else {
            continue;
        };
        let fit = remap::fit(checkpoint, &adapted.parameters(), &namings, prefix)?;
        if fit.report.is_complete() {
            return Ok((adapted, fit));
        }
    }
    Ok((architecture.clone(), first))
}

/// Numbers of classes that would mend a fit: the rows of a classifier of another shape, or none where
/// the classifier is all that is missing.
fn candidates(architecture: &Architecture, parameters: &[Parameter], fit: &Fit) -> Vec<usize> {
    let report = &fit.report;
    let Some(other) = with_classes(architecture, architecture.logits_len() + 1) else {
        return Vec::new();
    };
    // The classifier's tensors are those whose shapes depend on the number of classes.
    let shapes: std::collections::BTreeMap<String, Vec<usize>> = (other.parameters().into_iter())
        .map(|p| (p.name, p.shape))
        .collect();
    let is_classifier =
        |parameter: &&Parameter| shapes.get(&parameter.name) != Some(&parameter.shape);
    let classifier: Vec<&Parameter> = parameters.iter().filter(is_classifier).collect();
    let mut classes: Vec<usize> = report
        .reshaped
        .iter()
        .filter(|tensor| {
            classifier
                .iter()
                .any(|p| p.shape.len() == tensor.expected.len())
        })
        .filter_map(|tensor| tensor.found.first().copied())
        .collect();
    let lacks_classifier = !report.missing.is_empty()
        && (report.missing.iter()).all(|m| classifier.iter().any(|p| p.name == m.name));
    if lacks_classifier {
        classes.push(0);
    }
    classes.sort_unstable();
    classes.dedup();
    classes
}

/// The same network for another number of classes.
pub fn with_classes(architecture: &Architecture, classes: usize) -> Option<Architecture> {
    let mut sizes = serde_json::to_value(architecture).ok()?;
    *sizes.get_mut("classes")? = classes.into();
    serde_json::from_value(sizes).ok()
}

/// The architectures that a file may be of, the best first: of `known` encoders with their names.
/// Encoders with one architecture make one proposal.
///
/// # Errors
///
/// Those of [`remap::fit`], where every fitting architecture is there in several copies.
pub fn propose<'a>(
    checkpoint: &Checkpoint<'_>,
    known: impl IntoIterator<Item = (&'a str, &'a Architecture)>,
    prefix: Option<&str>,
) -> Result<Vec<Proposal>> {
    let mut architectures: Vec<(&Architecture, Vec<String>)> = Vec::new();
    for (name, architecture) in known {
        match architectures
            .iter_mut()
            .find(|(one, _)| *one == architecture)
        {
            Some((_, names)) => names.push(name.to_owned()),
            None => architectures.push((architecture, vec![name.to_owned()])),
        }
    }
    let mut proposals: Vec<Proposal> = Vec::new();
    for (architecture, encoders) in architectures {
        let (architecture, Fit { report, .. }) = fit(checkpoint, architecture, prefix)?;
        let share = report.matched() as f64 / report.declared.max(1) as f64;
        if share >= WORTH {
            proposals.push(Proposal {
                encoders,
                architecture,
                report,
            });
        }
    }
    // Complete ones first, then by how little is wrong, then by how much of the file is used.
    proposals.sort_by_key(|proposal| {
        let report = &proposal.report;
        let faults = report.declared - report.matched() + report.unexpected.len();
        (!report.is_complete(), faults, Reverse(report.declared))
    });
    if proposals.iter().any(Proposal::is_complete) {
        proposals.retain(Proposal::is_complete);
    }
    for proposal in &mut proposals {
        proposal.report.suggest();
    }
    Ok(proposals)
}

/// What a file holds in a few lines, for people whose file fits nothing: the largest tensors.
pub fn describe(checkpoint: &Checkpoint<'_>) -> String {
    let mut largest: Vec<_> = checkpoint.tensors().iter().collect();
    largest.sort_by_key(|(_, stored)| Reverse(stored.shape.iter().product::<usize>()));
    let described = largest.iter().take(4).map(|(name, stored)| {
        format!(
            "{name} ({}, {})",
            shape_text(&stored.shape),
            stored.value_type
        )
    });
    let described: Vec<String> = described.collect();
    format!(
        "{} tensors, the largest {}",
        checkpoint.tensors().len(),
        described.join(", ")
    )
}
