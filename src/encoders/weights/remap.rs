//! From the names in a file to the names that an architecture declares.
//!
//! Two things differ between checkpoints of one network: a *prefix* before every name, left by what
//! the network was wrapped in when it was saved (`module.`, `state_dict.model.`, `teacher.backbone.`),
//! and the *naming* of the library that wrote it. Prefixes are found by counting, namings are tables
//! of rules; the pair under which most declared tensors are found is taken. Where two copies of the
//! network fit equally well and differ, the choice is left to the reader.

use std::collections::{BTreeMap, BTreeSet};

use super::checkpoint::{Checkpoint, Stored};
use super::verify::{PassedOver, Report};
use super::{Parameter, names};
use crate::{Error, ErrorKind, Result};

/// How a library names the tensors of a family of networks.
#[derive(Clone, Debug)]
pub struct Naming {
    /// The library, for people.
    pub library: &'static str,
    /// Prefixes within the network that the rules leave out, as `vit.` before all but the head.
    roots: &'static [&'static str],
    /// Tried in order; the first that matches decides. Empty: names are as declared.
    rules: Vec<Rule>,
}

/// One rule of a [`Naming`].
///
/// A pattern consists of parts between dots: `#` at a part's end stands for a number, `*` as the last
/// part for whatever remains, and both are carried over in order.
#[derive(Clone, Debug)]
pub struct Rule {
    from: String,
    to: To,
}

#[derive(Clone, Debug)]
enum To {
    /// A declared tensor, or one of several equal parts of it along its first axis.
    Tensor { name: String, part: Part },
    /// A tensor that plays no part in inference, with the reason.
    Nothing(&'static str),
}

/// Which part of a declared tensor a stored one is, along the first axis: `index` of `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// Place among the parts, from 0.
    pub index: usize,
    /// Number of parts.
    pub count: usize,
}

/// The whole tensor.
const WHOLE: Part = Part { index: 0, count: 1 };

/// What becomes of a stored tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// It is this part of the declared tensor of this name.
    Tensor(String, Part),
    /// It plays no part in inference, for this reason.
    Nothing(&'static str),
}

impl Naming {
    /// Names as the architecture declares them: those of timm or torchvision.
    pub fn declared() -> Self {
        Self::new("timm or torchvision", &[], Vec::new())
    }

    /// A naming by rules. Each of `roots`, where a name begins with it, is left out before the rules
    /// are tried.
    pub fn new(library: &'static str, roots: &'static [&'static str], rules: Vec<Rule>) -> Self {
        Self {
            library,
            roots,
            rules,
        }
    }

    /// What becomes of the tensor of this name; `None` where no rule knows it.
    pub fn target(&self, name: &str) -> Option<Target> {
        if self.rules.is_empty() {
            return Some(Target::Tensor(name.to_owned(), WHOLE));
        }
        let name = (self.roots.iter().find_map(|root| name.strip_prefix(root))).unwrap_or(name);
        self.rules.iter().find_map(|rule| rule.apply(name))
    }
}

impl Rule {
    /// A tensor of another name.
    pub fn rename(from: impl Into<String>, to: impl Into<String>) -> Self {
        Self::part(from, to, 0, 1)
    }

    /// A tensor that is one of `count` equal parts of a declared one, as queries, keys and values
    /// are of timm's `qkv`.
    pub fn part(
        from: impl Into<String>,
        to: impl Into<String>,
        index: usize,
        count: usize,
    ) -> Self {
        let part = Part { index, count };
        let name = to.into();
        let from = from.into();
        let to = To::Tensor { name, part };
        Self { from, to }
    }

    /// A tensor that plays no part in inference.
    pub fn nothing(from: impl Into<String>, why: &'static str) -> Self {
        let from = from.into();
        let to = To::Nothing(why);
        Self { from, to }
    }

    fn apply(&self, name: &str) -> Option<Target> {
        let captured = captures(&self.from, name)?;
        Some(match &self.to {
            To::Nothing(why) => Target::Nothing(why),
            To::Tensor { name, part } => Target::Tensor(filled(name, &captured), *part),
        })
    }
}

/// What `#` and `*` of a pattern stand for in a name that it matches.
fn captures<'a>(pattern: &str, name: &'a str) -> Option<Vec<&'a str>> {
    let mut captured = Vec::new();
    let mut rest = Some(name);
    for wanted in pattern.split('.') {
        let left = rest?;
        if wanted == "*" {
            captured.push(left);
            return Some(captured);
        }
        let (part, after) = match left.split_once('.') {
            Some((part, after)) => (part, Some(after)),
            None => (left, None),
        };
        if let Some(before) = wanted.strip_suffix('#') {
            let number = part.strip_prefix(before)?;
            if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            captured.push(number);
        } else if wanted != part {
            return None;
        }
        rest = after;
    }
    rest.is_none().then_some(captured)
}

/// A template with `#` and `*` filled in, in order.
fn filled(template: &str, captured: &[&str]) -> String {
    let mut captured = captured.iter();
    let mut name = String::new();
    for part in template.split('.') {
        if !name.is_empty() {
            name.push('.');
        }
        let before = part.strip_suffix(['#', '*']);
        name.push_str(before.unwrap_or(part));
        if before.is_some() {
            name.push_str(captured.next().copied().unwrap_or_default());
        }
    }
    name
}

/// How a checkpoint serves an architecture: which stored tensors each declared one is made of.
#[derive(Clone, Debug)]
pub struct Fit {
    /// What was found, what was not, and under which names.
    pub report: Report,
    /// Names in the file, in the order of the parts, for each declared tensor that was found whole
    /// and in its shape.
    pub(super) sources: BTreeMap<String, Vec<String>>,
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
    let Some(Target::Tensor(target, part)) = naming.target(name) else {
        return (0, 0);
    };
    match declared.get(target.as_str()) {
        Some(parameter) => (usize::from(fits(stored, parameter, part)), 1),
        None => (0, 0),
    }
}

/// Whether a stored tensor has the shape of its part of a declared one. Extents of 1 are of no
/// account, as in a scale per channel that is kept as C×1×1, and neither is where a kernel's extents
/// are multiplied out, as in a classifier that is kept as a convolution: the values are the same in
/// the same order.
fn fits(stored: &Stored<'_>, parameter: &Parameter, part: Part) -> bool {
    let expected = part_shape(&parameter.shape, part);
    let solid = |shape: &[usize]| -> Vec<usize> {
        shape.iter().copied().filter(|&side| side != 1).collect()
    };
    let (found, expected) = (solid(&stored.shape), solid(&expected));
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

/// Shape of a part of a declared tensor.
fn part_shape(shape: &[usize], part: Part) -> Vec<usize> {
    let mut shape = shape.to_vec();
    if let (Some(rows), 2..) = (shape.first_mut(), part.count) {
        *rows /= part.count;
    }
    shape
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
    let mut parts: BTreeMap<&str, BTreeMap<Part, &str>> = BTreeMap::new();
    let mut passed_over: BTreeMap<PassedOver, usize> = BTreeMap::new();
    for (name, stored) in checkpoint.tensors() {
        let mut pass_over = |what: PassedOver| *passed_over.entry(what).or_default() += 1;
        let Some(rest) = name.strip_prefix(prefix) else {
            pass_over(PassedOver::Outside(outside(name, prefix).to_owned()));
            continue;
        };
        let target = naming.target(rest);
        let known = match &target {
            Some(Target::Tensor(target, part)) => {
                let known = declared.get_key_value(target.as_str());
                known.map(|(target, parameter)| (*target, *parameter, *part))
            }
            Some(Target::Nothing(why)) => {
                pass_over(PassedOver::OfNoUse(why));
                continue;
            }
            None => None,
        };
        let Some((target, parameter, part)) = known else {
            if !stored.value_type.is_float() {
                pass_over(PassedOver::Integers);
            } else if let Some(why) = names::of_no_use(rest) {
                pass_over(PassedOver::OfNoUse(why));
            } else {
                report.unexpected.push(name.clone());
            }
            continue;
        };
        // Found, if not as it should be: not missing.
        report.found.insert(target.to_owned());
        if !stored.value_type.is_float() {
            report.retyped.push((name.clone(), stored.value_type));
        } else if !fits(stored, parameter, part) {
            report.reshape(name, &stored.shape, &part_shape(&parameter.shape, part));
        } else if parts
            .entry(target)
            .or_default()
            .insert(part, name)
            .is_some()
        {
            // Two tensors for one place.
            report.unexpected.push(name.clone());
        }
    }
    let mut sources = BTreeMap::new();
    for (target, parts) in parts {
        let count = parts.keys().next().map_or(1, |part| part.count);
        if parts.len() == count {
            sources.insert(
                target.to_owned(),
                parts.into_values().map(str::to_owned).collect(),
            );
        } else {
            report.found.remove(target);
        }
    }
    report.passed_over = passed_over.into_iter().collect();
    report.finish(parameters, checkpoint);
    Fit { report, sources }
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
    let failed = |error: std::io::Error| {
        super::checkpoint::cannot_read(checkpoint.source(), error, super::checkpoint::AGAIN)
    };
    let tensors = checkpoint.tensors();
    for (target, sources) in &a.sources {
        let Some(others) = b.sources.get(target) else {
            return Ok(false);
        };
        for (one, other) in sources.iter().zip(others) {
            let (Some(one), Some(other)) = (tensors.get(one), tensors.get(other)) else {
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
    fn patterns_match_whole_parts_and_carry_numbers_and_rests() {
        let rule = Rule::rename("layer.#.attention.*", "blocks.#.attn.*");
        let to = |name: &str| rule.apply(name);
        let whole = |name: &str| Some(Target::Tensor(name.to_owned(), WHOLE));
        assert_eq!(
            to("layer.11.attention.proj.bias"),
            whole("blocks.11.attn.proj.bias")
        );
        for other in [
            "layer.x.attention.proj",
            "layer.1.attentions.proj",
            "layer.1.attention",
            "layers.1.attention.proj",
            "layer..attention.proj",
            "",
        ] {
            assert_eq!(to(other), None, "{other}");
        }
        let exact = Rule::rename("cls", "cls_token");
        assert_eq!(exact.apply("cls"), whole("cls_token"));
        assert_eq!(exact.apply("cls.weight"), None);
    }

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
