//! What a checkpoint has and lacks for an architecture, told by name and all at once.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use super::Parameter;
use super::checkpoint::{Checkpoint, ValueType};
use crate::{Error, ErrorKind};

/// How many names a message lists of each kind of fault.
const NAMES_LISTED: usize = 4;

/// How many missing names are compared with how many unexpected ones: some hundred thousand pairs.
const COMPARED: (usize, usize) = (64, 2048);

/// How an architecture's tensors were found in a file, and which were not.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The file.
    pub source: String,
    /// What kind of file it is.
    pub format: String,
    /// The library whose names the file uses.
    pub naming: &'static str,
    /// What every name of the network begins with in the file.
    pub prefix: String,
    /// Prefixes of further copies with the same values.
    pub copies: Vec<String>,
    /// Number of tensors that the architecture declares.
    pub declared: usize,
    /// Declared tensors that the file lacks.
    pub missing: Vec<Missing>,
    /// Tensors of the file that the architecture does not know, by their names in the file.
    pub unexpected: Vec<String>,
    /// Tensors of another shape.
    pub reshaped: Vec<Reshaped>,
    /// Tensors whose values are of a type that is not read, by their names in the file.
    pub retyped: Vec<(String, ValueType)>,
    /// What of the file plays no part, with the number of tensors.
    pub passed_over: Vec<(PassedOver, usize)>,
    /// Types of the values that are read.
    pub value_types: BTreeSet<ValueType>,
    #[serde(skip)]
    pub(super) found: BTreeSet<String>,
}

/// A declared tensor that a file lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Its declared name.
    pub name: String,
    /// The name in the file that comes nearest, if one is near.
    pub candidate: Option<String>,
}

/// A tensor of another shape than declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reshaped {
    /// Its name in the file.
    pub name: String,
    /// Its shape in the file.
    pub found: Vec<usize>,
    /// The shape that it should have.
    pub expected: Vec<usize>,
}

/// Why a tensor of a file plays no part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PassedOver {
    /// It is outside the network's prefix: under this one.
    Outside(String),
    /// It holds whole numbers: a batch counter, an index, a mask.
    Integers,
    /// Inference does not use it: it serves training, or follows from the sizes.
    Unused,
    /// It is a bias of zeros, which the network does without.
    ZeroBias,
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside(prefix) => write!(f, "outside the network: {prefix}…"),
            Self::Integers => f.write_str("whole numbers: counters and indices"),
            Self::Unused => {
                f.write_str("unused in inference: of training, or following from sizes")
            }
            Self::ZeroBias => f.write_str("biases of zeros"),
        }
    }
}

impl Report {
    pub(super) fn new(
        checkpoint: &Checkpoint<'_>,
        declared: usize,
        naming: &'static str,
        prefix: &str,
    ) -> Self {
        Self {
            source: checkpoint.source().to_owned(),
            format: checkpoint.format().to_owned(),
            naming,
            prefix: prefix.to_owned(),
            declared,
            ..Self::default()
        }
    }

    pub(super) fn reshape(&mut self, name: &str, found: &[usize], expected: &[usize]) {
        self.reshaped.push(Reshaped {
            name: name.to_owned(),
            found: found.to_vec(),
            expected: expected.to_vec(),
        });
    }

    /// Fills in what is missing.
    pub(super) fn finish(&mut self, parameters: &[Parameter], checkpoint: &Checkpoint<'_>) {
        self.missing = parameters
            .iter()
            .filter(|parameter| !self.found.contains(&parameter.name))
            .map(|parameter| Missing {
                name: parameter.name.clone(),
                candidate: None,
            })
            .collect();
        self.value_types = (checkpoint.tensors().iter())
            .filter(|(name, stored)| name.starts_with(&self.prefix) && stored.value_type.is_float())
            .map(|(_, stored)| stored.value_type)
            .collect();
    }

    /// Looks among the unexpected names for the nearest to those that are missing. Comparing names
    /// takes time, so that only the first of long lists are compared.
    pub fn suggest(&mut self) {
        for missing in self.missing.iter_mut().take(COMPARED.0) {
            let names = self.unexpected.iter().take(COMPARED.1).map(String::as_str);
            missing.candidate = nearest(&missing.name, names).map(str::to_owned);
        }
    }

    /// Whether every declared tensor is there in its shape and nothing unknown besides.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
            && self.unexpected.is_empty()
            && self.reshaped.is_empty()
            && self.retyped.is_empty()
    }

    /// Number of declared tensors that are there in their shape.
    pub fn matched(&self) -> usize {
        self.declared
            .saturating_sub(self.missing.len() + self.reshaped.len() + self.retyped.len())
    }

    /// What was found, in one sentence fragment.
    pub fn evidence(&self) -> String {
        let mut text = if self.is_complete() {
            format!("all {} tensors are there in their shapes", self.declared)
        } else {
            format!("{} of {} tensors are there", self.matched(), self.declared)
        };
        text += &format!(", named as in {}", self.naming);
        if !self.prefix.is_empty() {
            text += &format!(", after “{}”", self.prefix);
        }
        text
    }

    /// The faults in words; empty where there are none.
    pub fn faults(&self) -> String {
        let missing = self.missing.iter().map(|missing| match &missing.candidate {
            Some(candidate) => format!("{} (the file has {candidate})", missing.name),
            None => missing.name.clone(),
        });
        let reshaped = self.reshaped.iter().map(|tensor| {
            let [found, expected] = [&tensor.found, &tensor.expected].map(|s| shape_text(s));
            format!("{} is {found}, not {expected}", tensor.name)
        });
        let retyped = self
            .retyped
            .iter()
            .map(|(name, of)| format!("{name} is {of}"));
        let faults = [
            listed("tensor", "missing", missing),
            listed("tensor", "unknown", &self.unexpected),
            listed("tensor", "of another shape", reshaped),
            listed("tensor", "not F64, F32, F16 or BF16", retyped),
        ];
        faults.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    /// The faults as an error; `None` where there are none.
    pub fn error(&self) -> Option<Error> {
        (!self.is_complete()).then(|| {
            Error::new(
                ErrorKind::Weights,
                format!("cannot use the weights “{}”", self.source),
                self.faults(),
                "Use the file that belongs to this encoder; nothing was loaded",
            )
        })
    }
}

/// `2 tensors missing: a, b`; nothing where there are none.
pub(super) fn listed<N: ToString>(
    noun: &str,
    fault: &str,
    names: impl IntoIterator<Item = N>,
) -> Option<String> {
    let mut names = names.into_iter();
    let mut shown: Vec<String> = names
        .by_ref()
        .take(NAMES_LISTED)
        .map(|n| n.to_string())
        .collect();
    let more = names.count();
    let count = shown.len() + more;
    if count == 0 {
        return None;
    }
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    let plural = if count == 1 { "" } else { "s" };
    Some(format!(
        "{count} {noun}{plural} {fault}: {}",
        shown.join(", ")
    ))
}

/// A shape for people: `64×3×7×7`.
pub fn shape_text(shape: &[usize]) -> String {
    if shape.is_empty() {
        return "a single value".to_owned();
    }
    shape
        .iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join("×")
}

/// The candidate that takes fewest insertions, deletions and substitutions to turn into `name`,
/// unless even that changes more than half of it.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, candidate) = candidates
        .map(|candidate| (edit_distance(name, candidate), candidate))
        .min()?;
    (2 * distance <= name.chars().count()).then_some(candidate)
}

/// Levenshtein's distance.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
