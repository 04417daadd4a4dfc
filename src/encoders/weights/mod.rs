//! Parameters of an encoder: read from a weight file or drawn at random, by name.
//!
//! | step | where |
//! |---|---|
//! | find the file: bundled, in a library's cache, or named | [`find`] |
//! | fetch it where it is published (feature `hub`) | `download` |
//! | read names, shapes and types of its tensors | [`checkpoint`] |
//! | lead its names to the declared ones | [`remap`], [`names`] |
//! | report what is missing, unknown or of another shape | [`verify`] |
//! | propose the architecture that a file is of | [`infer`] |
//!
//! A file must hold exactly the tensors that the architecture declares, besides what is known to be
//! of no use. Whatever is missing, unknown or of another shape is reported by name, all at once, and
//! nothing is loaded in part.

pub mod checkpoint;
#[cfg(feature = "hub")]
pub mod download;
pub mod find;
mod index;
pub mod infer;
pub mod names;
mod pytorch;
pub mod remap;
mod safetensors;
pub mod verify;

use std::collections::BTreeMap;
use std::io;
use std::ops::Add;

use burn::tensor::{FloatDType, Tensor, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::layers::Placement;
use crate::{Error, ErrorKind, Result};
use checkpoint::{Checkpoint, Stored};
use remap::{Fit, Naming, Part, Piece};

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
    /// Its pieces in their order along the first axis, mostly one, and then what is added to them.
    Stored(Vec<(Stored<'file>, Piece)>),
    Drawn {
        seed: u64,
        stream: u64,
        init: Init,
        len: usize,
    },
}

impl<'file> Weights<'file> {
    /// The tensors of a safetensors file in memory, under declared names.
    ///
    /// `source` names the file for people. Values may be f64, f32, f16 or bf16.
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
        let checkpoint = Checkpoint::from_safetensors(source, file)?;
        Self::from_checkpoint(&checkpoint, parameters, &[Naming::declared()], None)
    }

    /// The tensors that an architecture declares, found in a checkpoint: see [`remap::fit`] for
    /// `namings` and `prefix`.
    ///
    /// # Errors
    ///
    /// Those of [`remap::fit`]; [`ErrorKind::Weights`] where a tensor is missing, unknown, or of
    /// another shape or type, and where the file cannot be read.
    pub fn from_checkpoint(
        checkpoint: &Checkpoint<'file>,
        parameters: &[Parameter],
        namings: &[Naming],
        prefix: Option<&str>,
    ) -> Result<Self> {
        let Fit {
            mut report,
            sources,
        } = remap::fit(checkpoint, parameters, namings, prefix)?;
        report.suggest();
        if let Some(error) = report.error() {
            return Err(error);
        }
        let tensors = checkpoint.tensors();
        let entries = sources.into_iter().map(|(name, pieces)| {
            let pieces = pieces
                .into_iter()
                .filter_map(|piece| Some((tensors.get(&piece.name)?.clone(), piece)));
            (name, Entry::Stored(pieces.collect()))
        });
        Ok(Self {
            source: checkpoint.source().to_owned(),
            id: checkpoint.sha256()?,
            entries: entries.collect(),
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
    /// [`ErrorKind::Weights`] where a value is not finite or cannot be read, and where the name was
    /// not declared or was taken before.
    pub fn take(&mut self, name: &str) -> Result<Vec<f64>> {
        self.take_as(name, |value| value, f64::is_finite)
    }

    /// One tensor at its place. In single precision its values never exist in double precision,
    /// which for the largest layers is what bounds the memory of loading.
    ///
    /// # Errors
    ///
    /// As [`Self::take`].
    pub fn tensor<const D: usize>(
        &mut self,
        name: &str,
        shape: [usize; D],
        at: &Placement,
    ) -> Result<Tensor<D>> {
        if !matches!(at.dtype, FloatDType::F32) {
            return Ok(at.tensor(self.take(name)?, shape));
        }
        let values = self.take_as(name, |value| value as f32, f32::is_finite)?;
        Ok(Tensor::from_data(
            TensorData::new(values, shape),
            at.options(),
        ))
    }

    fn take_as<T: Copy + Add<Output = T> + std::fmt::Display>(
        &mut self,
        name: &str,
        value: impl Fn(f64) -> T,
        is_finite: impl Fn(T) -> bool,
    ) -> Result<Vec<T>> {
        let entry = self.entries.remove(name).ok_or_else(|| {
            Error::new(
                ErrorKind::Internal,
                format!("cannot load “{}”", self.source),
                format!("the architecture uses the tensor {name} without declaring it"),
                "This is a fault of the program; please report it",
            )
        })?;
        let values = match entry {
            Entry::Stored(pieces) => joined(&pieces, value).map_err(|error| {
                let why = format!("the tensor {name} cannot be read ({error})");
                checkpoint::cannot_read(&self.source, why, checkpoint::AGAIN)
            })?,
            Entry::Drawn {
                seed,
                stream,
                init,
                len,
            } => draw(init, len, seed, stream, value),
        };
        match values.iter().position(|value| !is_finite(*value)) {
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

/// The values of all pieces, one after another or added.
fn joined<T: Copy + Add<Output = T>>(
    pieces: &[(Stored<'_>, Piece)],
    value: impl Fn(f64) -> T,
) -> io::Result<Vec<T>> {
    if let [(one, piece)] = pieces
        && piece.part == Part::Whole
    {
        return one.values(value);
    }
    let mut all = Vec::with_capacity(pieces.iter().map(|(stored, _)| stored.len()).sum());
    for (stored, piece) in pieces {
        let values = stored.values(&value)?;
        let values = piece.part.of(&values, &stored.shape);
        if piece.is_added {
            all.iter_mut()
                .zip(values)
                .for_each(|(sum, value)| *sum = *sum + *value);
        } else {
            all.extend_from_slice(values);
        }
    }
    Ok(all)
}

/// Values rounded to f32, as every library draws them.
fn draw<T>(init: Init, len: usize, seed: u64, stream: u64, value: impl Fn(f64) -> T) -> Vec<T> {
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
    (0..len).map(|_| value(f64::from(next() as f32))).collect()
}
