//! From the names in a file to the names that an architecture declares.
//!
//! Two things differ between checkpoints of one network: a *prefix* before every name, left by what
//! the network was wrapped in when it was saved (`module.`, `state_dict.model.`, `teacher.backbone.`),
//! and the *naming* of the library that wrote it. Prefixes are found by counting, namings are the
//! tables of each architecture ([`names`]); the pair under which most declared tensors are found is
//! taken. Where two copies of the network fit equally well and differ, the choice is left to the
//! reader.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::super::renaming::Renaming;
use super::checkpoint::{AGAIN, Checkpoint, Stored, cannot_read};
use super::verify::{PassedOver, Report};
use super::{Parameter, names};
use crate::{Error, ErrorKind, Result};

/// What a name of another library is among the declared ones, if that library uses it.
type Rename = dyn Fn(&str) -> Option<Renaming> + Send + Sync;

/// How a library names the tensors of a family of networks.
pub struct Naming {
    /// The library, for people.
    pub library: &'static str,
    rename: Box<Rename>,
}

impl fmt::Debug for Naming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Naming").field(&self.library).finish()
    }
}

impl Naming {
    /// Names as the architecture declares them: those of timm or torchvision.
    pub fn declared() -> Self {
        Self::new("timm or torchvision", |name| {
            Some(Renaming::Whole(name.to_owned()))
        })
    }

    /// The naming of a library.
    pub fn new(
        library: &'static str,
        rename: impl Fn(&str) -> Option<Renaming> + Send + Sync + 'static,
    ) -> Self {
        let rename = Box::new(rename);
        Self { library, rename }
    }

    /// What the tensor of this name is; `None` where the library has no such name.
    pub fn renaming(&self, name: &str) -> Option<Renaming> {
        (self.rename)(name)
    }
}

/// Which part of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// A third of its rows, counted from 0.
    Third(usize),
    /// The first of its positions, which are its last axis but one.
    First,
    /// All positions but the first.
    Rest,
}

impl Part {
    /// The part's shape in a tensor of this shape; `None` where it has no such part.
    fn shape(self, shape: &[usize]) -> Option<Vec<usize>> {
        let mut shape = shape.to_vec();
        match self {
            Self::Whole => {}
            Self::Third(_) => {
                let rows = shape.first_mut()?;
                if *rows % 3 != 0 {
                    return None;
                }
                *rows /= 3;
            }
            Self::First | Self::Rest => {
                let axis = shape.len().checked_sub(2)?;
                let (before, from) = shape.split_at_mut(axis);
                let positions = from.first_mut()?;
                // One after another in memory, and something on both sides of the cut.
                if before.iter().any(|&side| side != 1) || *positions < 2 {
                    return None;
                }
                *positions = if self == Self::First {
                    1
                } else {
                    *positions - 1
                };
            }
        }
        Some(shape)
    }

    /// The part's values among those of a tensor of this shape; none where it has no such part.
    pub(super) fn of<'v, T>(self, values: &'v [T], shape: &[usize]) -> &'v [T] {
        let len = self.shape(shape).map_or(0, |shape| shape.iter().product());
        let start = match self {
            Self::Whole | Self::First => 0,
            Self::Third(third) => third * len,
            Self::Rest => values.len().saturating_sub(len),
        };
        values.get(start..start + len).unwrap_or_default()
    }

    /// The shape of a tensor whose part has this one.
    fn whole(self, mut shape: Vec<usize>) -> Vec<usize> {
        let axis = shape.len().saturating_sub(2);
        if let (Self::Rest, Some(positions)) = (self, shape.get_mut(axis)) {
            *positions += 1;
        }
        shape
    }
}

/// A part of a stored tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Its name in the file.
    pub name: String,
    /// Which part of it.
    pub part: Part,
    /// Whether it is added to the pieces before it, instead of standing after them.
    pub is_added: bool,
}

/// A place in a declared tensor for a part of a stored one.
struct Place {
    /// Name of the declared tensor.
    target: String,
    /// Which part of it.
    of_target: Part,
    /// Which part of the stored tensor goes there.
    of_source: Part,
    /// Whether that is added to what else is there.
    is_added: bool,
}

/// The places that a stored tensor fills; none for one that is not used.
fn places(renaming: &Renaming) -> Vec<Place> {
    let place = |target: &String, of_target, of_source| Place {
        target: target.clone(),
        of_target,
        of_source,
        is_added: false,
    };
    match renaming {
        Renaming::Whole(target) => vec![place(target, Part::Whole, Part::Whole)],
        Renaming::Third(target, third) => {
            vec![place(target, Part::Third(*third), Part::Whole)]
        }
        Renaming::QueryAndValue(query, value) => vec![
            place(query, Part::Whole, Part::Third(0)),
            place(value, Part::Whole, Part::Third(2)),
        ],
        Renaming::ClassAndPatches(class, patches) => vec![
            Place {
                is_added: true,
                ..place(class, Part::Whole, Part::First)
            },
            place(patches, Part::Whole, Part::Rest),
        ],
        Renaming::Unused => Vec::new(),
    }
}

/// How a checkpoint serves an architecture: which stored tensors each declared one is made of.
#[derive(Clone, Debug)]
pub struct Fit {
    /// What was found, what was not, and under which names.
    pub report: Report,
    /// The pieces, in their order along the first axis, of each declared tensor that was found whole
    /// and in its shape.
    pub(super) sources: BTreeMap<String, Vec<Piece>>,
}

/// Finds an architecture's tensors in a checkpoint.
///
/// `prefix` is what every name of the network begins with, as `teacher.backbone.`; `None` to find it.
/// Batch counters and other whole numbers, tensors outside the prefix, and those that the naming
/// knows to be of no use are passed over and reported as such.
///
/// # Errors
///
/// [`ErrorKind::Weights`] where several copies of the network fit equally well and differ; the
/// message lists their prefixes. That tensors are missing or of another shape is no error here but
/// stands in the report.
pub fn fit(
    checkpoint: &Checkpoint<'_>,
    parameters: &[Parameter],
    namings: &[Naming],
    prefix: Option<&str>,
) -> Result<Fit> {
    let declared: BTreeMap<&str, &Parameter> = parameters
        .iter()
        .map(|parameter| (parameter.name.as_str(), parameter))
        .collect();
    let mut best: Option<(Score, usize, BTreeSet<&str>)> = None;
    for (index, naming) in namings.iter().enumerate() {
        let scores = match prefix {
            Some(prefix) => {
                BTreeMap::from([(prefix, score(checkpoint, &declared, naming, prefix))])
            }
            None => scores(checkpoint, &declared, naming),
        };
        let Some(&top) = scores.values().max() else {
            continue;
        };
        if best.as_ref().is_none_or(|(known, ..)| top > *known) {
            let same = scores.iter().filter(|(_, score)| **score == top);
            best = Some((top, index, same.map(|(prefix, _)| *prefix).collect()));
        }
    }
    let declared_naming = Naming::declared();
    let (naming, prefixes) = match &best {
        Some((_, index, prefixes)) => (&namings[*index], prefixes.clone()),
        None => (
            &declared_naming,
            BTreeSet::from([prefix.unwrap_or_default()]),
        ),
    };
    // Shorter first: the network itself before a copy that something else carries along.
    let mut copies: Vec<Fit> = prefixes
        .iter()
        .map(|prefix| of_copy(checkpoint, parameters, &declared, naming, prefix))
        .collect();
    copies.sort_by_key(|fit| fit.report.prefix.len());
    let mut copies = copies.into_iter();
    let Some(mut first) = copies.next() else {
        return Ok(of_copy(checkpoint, parameters, &declared, naming, ""));
    };
    for other in copies {
        // A naming may know the prefix itself, so that these are the same tensors.
        if other.sources == first.sources {
            continue;
        }
        if first.report.is_complete() && !same_values(checkpoint, &first, &other)? {
            return Err(ambiguous(checkpoint, &first, &other));
        }
        first.report.copies.push(other.report.prefix);
    }
    Ok(first)
}

/// Declared tensors found: in their shape, and at all. More of the former is better.
type Score = (usize, usize);

/// How many declared tensors each prefix gives.
fn scores<'a>(
    checkpoint: &'a Checkpoint<'_>,
    declared: &BTreeMap<&str, &Parameter>,
    naming: &Naming,
) -> BTreeMap<&'a str, Score> {
    let mut scores: BTreeMap<&str, Score> = BTreeMap::new();
    for (name, stored) in checkpoint.tensors() {
        let starts = std::iter::once(0).chain(name.match_indices('.').map(|(at, _)| at + 1));
        for start in starts {
            let (prefix, rest) = name.split_at(start);
            let (fits, is_there) = tensor_score(stored, rest, declared, naming);
            if is_there > 0 {
                let score = scores.entry(prefix).or_default();
                *score = (score.0 + fits, score.1 + is_there);
            }
        }
    }
    scores
}

/// How many declared tensors one prefix gives.
fn score(
    checkpoint: &Checkpoint<'_>,
    declared: &BTreeMap<&str, &Parameter>,
    naming: &Naming,
    prefix: &str,
) -> Score {
    checkpoint
        .tensors()
        .iter()
        .filter_map(|(name, stored)| Some((name.strip_prefix(prefix)?, stored)))
        .map(|(rest, stored)| tensor_score(stored, rest, declared, naming))
        .fold((0, 0), |(a, b), (c, d)| (a + c, b + d))
}

fn tensor_score(
    stored: &Stored<'_>,
    name: &str,
    declared: &BTreeMap<&str, &Parameter>,
    naming: &Naming,
) -> Score {
    let places = naming.renaming(name).map(|renaming| places(&renaming));
    let known = places.iter().flatten().filter_map(|place| {
        let parameter = declared.get(place.target.as_str())?;
        Some(usize::from(fits(stored, parameter, place)))
    });
    known.fold((0, 0), |(fit, there), fits| (fit + fits, there + 1))
}

/// Whether a piece of a stored tensor has the shape of its place in a declared one. Extents of 1 are
/// of no account, as in a scale per channel that is kept as C×1×1, and neither is where a kernel's
/// extents are multiplied out, as in a classifier that is kept as a convolution: the values are the
/// same in the same order.
fn fits(stored: &Stored<'_>, parameter: &Parameter, place: &Place) -> bool {
    let (Some(found), Some(expected)) = (
        place.of_source.shape(&stored.shape),
        place.of_target.shape(&parameter.shape),
    ) else {
        return false;
    };
    let solid = |shape: &[usize]| -> Vec<usize> {
        shape.iter().copied().filter(|&side| side != 1).collect()
    };
    let (found, expected) = (solid(&found), solid(&expected));
    if found == expected {
        return true;
    }
    let product = |shape: &[usize]| {
        shape
            .iter()
            .try_fold(1usize, |n, &side| n.checked_mul(side))
    };
    // Rows stay rows: only a matrix against a kernel of as many outputs.
    let is_flat = found.len().min(expected.len()) == 2 && found.len().max(expected.len()) == 4;
    is_flat && found.first() == expected.first() && product(&found) == product(&expected)
}

/// The copy of the network under one prefix.
fn of_copy(
    checkpoint: &Checkpoint<'_>,
    parameters: &[Parameter],
    declared: &BTreeMap<&str, &Parameter>,
    naming: &Naming,
    prefix: &str,
) -> Fit {
    let mut report = Report::new(checkpoint, parameters.len(), naming.library, prefix);
    let is_headless = names::is_headless(parameters);
    let mut pieces: BTreeMap<&str, BTreeMap<(bool, Part), Piece>> = BTreeMap::new();
    let mut passed_over: BTreeMap<PassedOver, usize> = BTreeMap::new();
    for (name, stored) in checkpoint.tensors() {
        let mut pass_over = |what: PassedOver| *passed_over.entry(what).or_default() += 1;
        let Some(rest) = name.strip_prefix(prefix) else {
            pass_over(PassedOver::Outside(outside(name, prefix).to_owned()));
            continue;
        };
        let renaming = naming.renaming(rest);
        let places = renaming.as_ref().map(places).unwrap_or_default();
        let known = |place: &Place| declared.get_key_value(place.target.as_str());
        if !places.iter().any(|place| known(place).is_some()) {
            if !stored.value_type.is_float() {
                pass_over(PassedOver::Integers);
            } else if matches!(renaming, Some(Renaming::Unused))
                || names::is_of_no_use(rest, is_headless)
            {
                pass_over(PassedOver::Unused);
            } else if places.iter().any(|place| is_bias(&place.target)) && is_zero(stored, &places)
            {
                pass_over(PassedOver::ZeroBias);
            } else {
                report.unexpected.push(name.clone());
            }
            continue;
        }
        for place in &places {
            let Some((&target, parameter)) = known(place) else {
                continue;
            };
            // Found, if not as it should be: not missing.
            report.found.insert(target.to_owned());
            if !stored.value_type.is_float() {
                report.retyped.push((name.clone(), stored.value_type));
            } else if !fits(stored, parameter, place) {
                let expected = place.of_target.shape(&parameter.shape).unwrap_or_default();
                let expected = place.of_source.whole(expected);
                report.reshape(name, &stored.shape, &expected);
            } else {
                let piece = Piece {
                    name: name.clone(),
                    part: place.of_source,
                    is_added: place.is_added,
                };
                let others = pieces.entry(target).or_default();
                let at = (place.is_added, place.of_target);
                if others.insert(at, piece).is_some() {
                    // Two tensors for one place.
                    report.unexpected.push(name.clone());
                }
            }
        }
    }
    let mut sources = BTreeMap::new();
    for (target, pieces) in pieces {
        let solid = pieces.keys().filter(|(is_added, _)| !is_added).count();
        let is_whole = if pieces.contains_key(&(false, Part::Whole)) {
            solid == 1
        } else {
            solid == 3
        };
        if is_whole {
            sources.insert(target.to_owned(), pieces.into_values().collect());
        } else {
            report.found.remove(target);
        }
    }
    report.passed_over = passed_over.into_iter().collect();
    report.finish(parameters, checkpoint);
    Fit { report, sources }
}

fn is_bias(target: &str) -> bool {
    target.ends_with("bias")
}

/// Whether all that a stored tensor would contribute is zero, so that a network without it is the
/// same: DINOv3's biases of queries and values.
fn is_zero(stored: &Stored<'_>, places: &[Place]) -> bool {
    let Ok(values) = stored.values(|value| value) else {
        return false;
    };
    let used = |place: &Place| place.of_source.of(&values, &stored.shape);
    places
        .iter()
        .all(|place| used(place).iter().all(|value| *value == 0.0))
}

/// The part of a name by which tensors outside a prefix are grouped: up to the dot after the last
/// part that it shares with the prefix.
fn outside<'a>(name: &'a str, prefix: &str) -> &'a str {
    let shared = name
        .split_inclusive('.')
        .zip(prefix.split_inclusive('.'))
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len())
        .sum::<usize>();
    let end = name[shared..]
        .find('.')
        .map_or(name.len(), |at| shared + at + 1);
    &name[..end]
}

/// Whether two copies of a network hold the same values.
fn same_values(checkpoint: &Checkpoint<'_>, a: &Fit, b: &Fit) -> Result<bool> {
    let failed = |error: std::io::Error| cannot_read(checkpoint.source(), error, AGAIN);
    let tensors = checkpoint.tensors();
    for (target, sources) in &a.sources {
        let Some(others) = b.sources.get(target) else {
            return Ok(false);
        };
        for (one, other) in sources.iter().zip(others) {
            let (Some(one), Some(other)) = (tensors.get(&one.name), tensors.get(&other.name))
            else {
                return Ok(false);
            };
            if !one.same_values(other).map_err(failed)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn ambiguous(checkpoint: &Checkpoint<'_>, first: &Fit, other: &Fit) -> Error {
    let [a, b] = [first, other].map(|fit| match fit.report.prefix.as_str() {
        "" => "names without a prefix".to_owned(),
        prefix => format!("“{prefix}”"),
    });
    Error::new(
        ErrorKind::Weights,
        format!("cannot choose the weights in “{}”", checkpoint.source()),
        format!("it holds several copies of the network that differ: {a} and {b}"),
        format!(
            "Name the one you mean after the file, as in “{}#{}”",
            checkpoint.source(),
            other.report.prefix
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_a_prefix_is_grouped_by_where_it_leaves_it() {
        assert_eq!(
            outside("module.attacker.model.fc.bias", "module.model."),
            "module.attacker."
        );
        assert_eq!(
            outside("optimizer.state.0.m", "module.model."),
            "optimizer."
        );
        assert_eq!(outside("epoch", "module."), "epoch");
    }
}
