//! What tensors are called in other libraries. Parameters are declared under timm's names; each architecture
//! knows what its tensors are called elsewhere.

/// What a tensor of another library is among timm's, which an architecture declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renaming {
    /// The tensor of this name, perhaps with other axes of length 1.
    Whole(String),
    /// A third of the rows of the tensor of this name, counted from 0: query, key or value.
    Third(String, usize),
    /// The tensor of queries, keys and values one after the other, of which timm keeps queries and values
    /// under names of their own; that of the keys is 0 in every published network.
    QueryAndValue(String, String),
    /// A position embedding of which timm adds the first position, that of the class token, to the tensor of the first
    /// name, and keeps the others under the second: DINOv2 with registers.
    ClassAndPatches(String, String),
    /// No parameter of the network as it is used here: a buffer, or a part needed in training only.
    Unused,
}

impl Renaming {
    /// The name with a suffix, `weight` or `bias`.
    pub(super) fn whole(name: &str, suffix: &str) -> Self {
        Self::Whole(format!("{name}.{suffix}"))
    }
}

/// `name` without `prefix`, and what stands there up to the next point as a number.
pub(super) fn numbered<'a>(name: &'a str, prefix: &str) -> Option<(usize, &'a str)> {
    let (number, rest) = name.strip_prefix(prefix)?.split_once('.')?;
    Some((number.parse().ok()?, rest))
}

/// The last part of a name, `weight` or `bias` as a rule, and what stands before it.
pub(super) fn suffixed(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once('.')
}
