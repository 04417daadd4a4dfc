//! Parameters of an encoder: read from a safetensors file or drawn at random, by name.
//!
//! A file must hold exactly the tensors that the architecture declares. Whatever is missing, unknown
//! or of another shape is reported by name, all at once, and nothing is loaded in part.

use std::collections::BTreeMap;

use burn::tensor::{bf16, f16};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::images::sha256_hex;
use crate::{Error, ErrorKind, Result};

/// How many names a message lists of each kind of fault.
const NAMES_LISTED: usize = 4;

/// One tensor that an architecture needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name in weight files: that of timm or torchvision.
    pub name: String,
    /// Its shape in weight files.
    pub shape: Vec<usize>,
    /// Its distribution in an untrained network.
    pub init: Init,
    /// False for the running statistics of BatchNorm, which are not counted as parameters.
    pub trained: bool,
}

impl Parameter {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it holds no value at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Distribution of a tensor's values in an untrained network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// Normal with mean 0.
    Normal {
        /// Standard deviation.
        std: f64,
    },
    /// Normal with mean 0, drawn again while it lies beyond `±bound`.
    TruncatedNormal {
        /// Standard deviation before values are drawn again.
        std: f64,
        /// Largest absolute value, not far below `std`.
        bound: f64,
    },
    /// Uniform between `-bound` and `bound`.
    Uniform {
        /// Largest absolute value.
        bound: f64,
    },
    /// One value throughout.
    Constant(f64),
}

/// The parameters of an encoder, each to be taken once.
#[derive(Debug)]
pub struct Weights<'file> {
    source: String,
    id: String,
    entries: BTreeMap<String, Entry<'file>>,
}

#[derive(Debug)]
enum Entry<'file> {
    Stored(TensorView<'file>),
    Drawn {
        seed: u64,
        stream: u64,
        init: Init,
        len: usize,
    },
}

impl<'file> Weights<'file> {
    /// The tensors of a safetensors file in memory, checked against what the architecture needs.
    ///
    /// `source` names the file for people. Values may be f32, f16 or bf16. Batch counters
    /// (`num_batches_tracked`) play no part in inference and are passed over.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Weights`] where the file is not safetensors, is cut short, holds another type of
    /// value, or lacks, adds or reshapes a tensor.
    pub fn from_safetensors(
        source: &str,
        file: &'file [u8],
        parameters: &[Parameter],
    ) -> Result<Self> {
        let stored = SafeTensors::deserialize(file).map_err(|error| unreadable(source, &error))?;
        let entries: BTreeMap<String, TensorView<'file>> = stored
            .tensors()
            .into_iter()
            .filter(|(name, _)| !name.ends_with(".num_batches_tracked"))
            .collect();
        check(source, &entries, parameters)?;
        let entries = entries
            .into_iter()
            .map(|(name, view)| (name, Entry::Stored(view)))
            .collect();
        Ok(Self {
            source: source.to_owned(),
            id: sha256_hex(file),
            entries,
        })
    }

    /// Untrained parameters. Each tensor has its own stream of a ChaCha generator, so that the values
    /// depend on nothing but `seed` and the architecture: not on order, device or platform.
    pub fn random(parameters: &[Parameter], seed: u64) -> Self {
        let entries = parameters.iter().zip(0u64..).map(|(parameter, stream)| {
            let entry = Entry::Drawn {
                seed,
                stream,
                init: parameter.init,
                len: parameter.len(),
            };
            (parameter.name.clone(), entry)
        });
        Self {
            source: "random initialisation".to_owned(),
            id: format!("seed {seed}"),
            entries: entries.collect(),
        }
    }

    /// SHA-256 of the file in hexadecimal, or `seed N` for random parameters.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The values of one tensor, row after row.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Weights`] where a value is not finite, and where the name was not declared or was
    /// taken before.
    pub fn take(&mut self, name: &str) -> Result<Vec<f64>> {
        let entry = self.entries.remove(name).ok_or_else(|| {
            Error::new(
                ErrorKind::Internal,
                format!("cannot load “{}”", self.source),
                format!("the architecture uses the tensor {name} without declaring it"),
                "This is a fault of the program; please report it",
            )
        })?;
        let values = match entry {
            Entry::Stored(view) => decode(&view),
            Entry::Drawn {
                seed,
                stream,
                init,
                len,
            } => draw(init, len, seed, stream),
        };
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(values),
            Some(at) => Err(Error::new(
                ErrorKind::Weights,
                format!("cannot use the weights “{}”", self.source),
                format!("value {at} of the tensor {name} is {}", values[at]),
                "The file is damaged or its training diverged; use another copy",
            )),
        }
    }
}

/// Values of a stored tensor, whose type [`check`] has admitted.
fn decode(view: &TensorView<'_>) -> Vec<f64> {
    let bytes = view.data();
    match view.dtype() {
        Dtype::F16 => of_pairs(bytes, |pair| f16::from_le_bytes(pair).to_f64()),
        Dtype::BF16 => of_pairs(bytes, |pair| bf16::from_le_bytes(pair).to_f64()),
        _ => bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|quad| f64::from(f32::from_le_bytes(*quad)))
            .collect(),
    }
}

fn of_pairs(bytes: &[u8], value: impl Fn([u8; 2]) -> f64) -> Vec<f64> {
    bytes
        .as_chunks::<2>()
        .0
        .iter()
        .map(|pair| value(*pair))
        .collect()
}

/// Values rounded to f32, as every library draws them.
fn draw(init: Init, len: usize, seed: u64, stream: u64) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    let mut next = || -> f64 {
        match init {
            Init::Normal { std } => {
                let z: f64 = StandardNormal.sample(&mut rng);
                std * z
            }
            Init::TruncatedNormal { std, bound } => loop {
                let z: f64 = StandardNormal.sample(&mut rng);
                if (std * z).abs() <= bound {
                    break std * z;
                }
            },
            Init::Uniform { bound } => bound * (2.0 * rng.random::<f64>() - 1.0),
            Init::Constant(value) => value,
        }
    };
    (0..len).map(|_| f64::from(next() as f32)).collect()
}

/// Holds a file's tensors against those that are needed.
fn check(
    source: &str,
    entries: &BTreeMap<String, TensorView<'_>>,
    parameters: &[Parameter],
) -> Result<()> {
    let needed: BTreeMap<&str, &Parameter> = parameters
        .iter()
        .map(|parameter| (parameter.name.as_str(), parameter))
        .collect();
    let unknown: Vec<&str> = entries
        .keys()
        .map(String::as_str)
        .filter(|name| !needed.contains_key(name))
        .collect();
    let missing: Vec<&str> = needed
        .keys()
        .copied()
        .filter(|name| !entries.contains_key(*name))
        .collect();
    let present = || {
        entries
            .iter()
            .filter_map(|(name, view)| Some((*needed.get(name.as_str())?, view)))
    };

    let mut faults = Vec::new();
    let missing_described =
        missing
            .iter()
            .map(|name| match nearest(name, unknown.iter().copied()) {
                Some(candidate) => format!("{name} (the file has {candidate})"),
                None => (*name).to_owned(),
            });
    faults.extend(listed("missing", missing.len(), missing_described));
    faults.extend(listed(
        "unknown",
        unknown.len(),
        unknown.iter().map(|&name| name.to_owned()),
    ));
    let reshaped: Vec<String> = present()
        .filter(|(parameter, view)| parameter.shape != view.shape())
        .map(|(parameter, view)| {
            let [found, expected] = [view.shape(), &parameter.shape].map(shape_text);
            format!("{} is {found}, not {expected}", parameter.name)
        })
        .collect();
    faults.extend(listed(
        "of another shape",
        reshaped.len(),
        reshaped.into_iter(),
    ));
    let retyped: Vec<String> = present()
        .filter(|(_, view)| !matches!(view.dtype(), Dtype::F32 | Dtype::F16 | Dtype::BF16))
        .map(|(parameter, view)| format!("{} is {:?}", parameter.name, view.dtype()))
        .collect();
    faults.extend(listed(
        "not F32, F16 or BF16",
        retyped.len(),
        retyped.into_iter(),
    ));

    if faults.is_empty() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Weights,
        format!("cannot use the weights “{source}”"),
        faults.join("; "),
        "Use the file that belongs to this encoder; nothing was loaded",
    ))
}

/// `2 tensors missing: a, b`; nothing where there are none.
fn listed(fault: &str, count: usize, names: impl Iterator<Item = String>) -> Option<String> {
    if count == 0 {
        return None;
    }
    let mut names: Vec<String> = names.take(NAMES_LISTED).collect();
    if count > names.len() {
        names.push(format!("and {} more", count - names.len()));
    }
    let noun = if count == 1 { "tensor" } else { "tensors" };
    Some(format!("{count} {noun} {fault}: {}", names.join(", ")))
}

fn shape_text(shape: &[usize]) -> String {
    if shape.is_empty() {
        return "a single value".to_owned();
    }
    shape
        .iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join("×")
}

fn unreadable(source: &str, error: &safetensors::SafeTensorError) -> Error {
    use safetensors::SafeTensorError as E;
    let why = match error {
        E::HeaderTooSmall | E::InvalidHeaderLength | E::MetadataIncompleteBuffer => {
            "the file is cut short or is not a safetensors file".to_owned()
        }
        E::HeaderTooLarge => "its header claims more than 100 MB".to_owned(),
        other => format!("its header is not that of a safetensors file ({other})"),
    };
    Error::new(
        ErrorKind::Weights,
        format!("cannot read the weights “{source}”"),
        why,
        "Get the file again from its source",
    )
}

/// The candidate that takes fewest insertions, deletions and substitutions to turn into `name`,
/// unless even that changes more than half of it.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
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
