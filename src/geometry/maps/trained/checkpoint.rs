//! A training put aside: weights, moments of the optimiser, the best weights so far and all counters.
//!
//! Going on from a checkpoint gives the same weights, bit for bit on the CPU device, as never having stopped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::tensor::{Tensor, TensorData};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::trainer::{Progress, Trainer, TrainingConfig};
use super::{Network, TrainingData};
use crate::files::write_whole;
use crate::geometry::learn::{AdamW, Moments, Parameters, read_flat};
use crate::images::GridSymmetry;
use crate::{Error, ErrorKind, Result};

/// Number of the layout, raised when a field changes its meaning.
const FORMAT: u32 = 1;

/// Key of the JSON in the header.
const HEADER: &str = "etascope_training";

#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    network: Network,
    config: TrainingConfig,
    reorder: Vec<GridSymmetry>,
    is_normalised: bool,
    /// Of the pairs, so that a training does not go on with others.
    data: String,
    progress: Progress,
    /// Steps that each parameter has made; 0 for those without moments.
    steps: Vec<u32>,
}

impl Trainer {
    /// Writes the training as it stands, whole or not at all.
    ///
    /// # Errors
    /// [`ErrorKind::Output`] where the file cannot be written; [`ErrorKind::Device`] where the tensors cannot be read.
    pub fn save(&self, path: &Path) -> Result<()> {
        let declared = self.parameters.declared();
        let moments = self.optimiser.moments();
        let mut arrays: BTreeMap<String, Vec<f32>> = BTreeMap::new();
        let best = self.best.as_ref();
        for (i, parameter) in declared.iter().enumerate() {
            let name = &parameter.name;
            let mut keep = |part: &str, tensor: &Tensor<1>| -> Result<()> {
                arrays.insert(format!("{part}.{name}"), read_flat(tensor)?);
                Ok(())
            };
            keep("value", &self.parameters.values()[i])?;
            if let Some(best) = best {
                keep("best", &best.values()[i])?;
            }
            if let Some(Some(moments)) = moments.get(i) {
                keep("first", &moments.first)?;
                keep("second", &moments.second)?;
            }
        }
        let steps = (0..declared.len())
            .map(|i| moments.get(i).and_then(Option::as_ref))
            .map(|moments| moments.map_or(0, |moments| moments.steps));
        let header = Header {
            format: FORMAT,
            network: self.network,
            config: self.config,
            reorder: self.reorder.clone(),
            is_normalised: self.normalisation.is_some(),
            data: fingerprint(self.data()),
            progress: self.progress.clone(),
            steps: steps.collect(),
        };
        let unwritten = |why: String| {
            Error::new(
                ErrorKind::Output,
                format!("cannot write “{}”", path.display()),
                why,
                "This is a fault of the program; please report it",
            )
        };
        let bytes: Vec<(&String, Vec<u8>)> = arrays
            .iter()
            .map(|(name, values)| {
                let bytes = values.iter().flat_map(|value| value.to_le_bytes());
                (name, bytes.collect())
            })
            .collect();
        let views = bytes
            .iter()
            .map(|(name, bytes)| {
                let view = TensorView::new(Dtype::F32, vec![bytes.len() / 4], bytes)
                    .map_err(|error| unwritten(error.to_string()))?;
                Ok((name.as_str(), view))
            })
            .collect::<Result<Vec<_>>>()?;
        let json = serde_json::to_string(&header).map_err(|error| unwritten(error.to_string()))?;
        let metadata = [(HEADER.to_owned(), json)].into();
        let content = safetensors::serialize(views, Some(metadata))
            .map_err(|error| unwritten(error.to_string()))?;
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        write_whole(folder, &[(PathBuf::from(path), content)])
    }

    /// Takes up the training of a checkpoint. This trainer was made for the same kind, configuration and pairs; only the number
    /// of epochs and the patience may differ.
    ///
    /// # Errors
    /// [`ErrorKind::Weights`] where the file cannot be read, is damaged or no checkpoint; [`ErrorKind::Request`] where it
    /// belongs to another training. The trainer is then as it was.
    pub fn resume(&mut self, path: &Path) -> Result<()> {
        let refuse = |why: String| {
            Error::new(
                ErrorKind::Weights,
                format!("cannot go on from “{}”", path.display()),
                why,
                "Start the training anew, or use another checkpoint",
            )
        };
        let bytes = std::fs::read(path).map_err(|error| refuse(error.to_string()))?;
        let damaged =
            |error: &dyn std::fmt::Display| refuse(format!("the file is damaged ({error})"));
        let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(|error| damaged(&error))?;
        let header = metadata
            .metadata()
            .as_ref()
            .and_then(|entries| entries.get(HEADER))
            .ok_or_else(|| refuse("it is no checkpoint of a training".to_owned()))?;
        let header: Header = serde_json::from_str(header).map_err(|error| damaged(&error))?;
        if header.format != FORMAT {
            return Err(refuse(format!(
                "it has the layout {}, and this version reads {FORMAT}",
                header.format
            )));
        }
        let progress = &header.progress;
        if progress.best_epoch > progress.epochs || progress.history.len() != progress.epochs {
            return Err(refuse("its counters contradict each other".to_owned()));
        }
        self.require_same(&header, path)?;
        let arrays = SafeTensors::deserialize(&bytes).map_err(|error| damaged(&error))?;
        let (mut values, mut best, mut moments) = (Vec::new(), Vec::new(), Vec::new());
        let declared = self.network.parameters();
        let has_best = header.progress.best_epoch > 0;
        for (i, parameter) in declared.iter().enumerate() {
            let read = |part: &str| -> Result<Vec<f32>> {
                let name = format!("{part}.{}", parameter.name);
                let view = arrays.tensor(&name).map_err(|error| damaged(&error))?;
                let is_whole = view.dtype() == Dtype::F32 && view.shape() == [parameter.len()];
                let values: Vec<f32> = view
                    .data()
                    .as_chunks()
                    .0
                    .iter()
                    .map(|bytes| f32::from_le_bytes(*bytes))
                    .collect();
                if !is_whole || values.iter().any(|value| !value.is_finite()) {
                    return Err(refuse(format!("its array {name} is damaged")));
                }
                Ok(values)
            };
            values.push(read("value")?);
            if has_best {
                best.push(read("best")?);
            }
            let steps = header.steps.get(i).copied().unwrap_or(0);
            moments.push(if steps == 0 {
                None
            } else {
                let tensor = |values: Vec<f32>| {
                    let shape = [values.len()];
                    Tensor::from_data(TensorData::new(values, shape), self.at.options())
                };
                Some(Moments {
                    first: tensor(read("first")?),
                    second: tensor(read("second")?),
                    steps,
                })
            });
        }
        self.parameters = Parameters::from_values(declared.clone(), values, &self.at);
        self.best = has_best.then(|| Parameters::from_values(declared, best, &self.at));
        self.optimiser = AdamW::from_moments(self.config.decay, moments);
        self.progress = header.progress;
        self.resume_order();
        Ok(())
    }

    fn require_same(&self, header: &Header, path: &Path) -> Result<()> {
        let own = TrainingConfig {
            epochs: header.config.epochs,
            patience: header.config.patience,
            ..self.config
        };
        let differing = if header.network != self.network {
            "another kind or size of map"
        } else if header.config != own {
            "another configuration"
        } else if header.reorder != self.reorder
            || header.is_normalised != self.normalisation.is_some()
        {
            "another treatment of the features"
        } else if header.data != fingerprint(self.data()) {
            "other pictures"
        } else {
            return Ok(());
        };
        Err(Error::new(
            ErrorKind::Request,
            format!("cannot go on from “{}”", path.display()),
            format!("its training had {differing}"),
            "Train with the same settings and pictures, or start anew",
        ))
    }
}

/// SHA-256 over the number of pairs in each part and the first vectors of all.
fn fingerprint(data: &TrainingData) -> String {
    let mut hash = Sha256::new();
    for part in [&data.train, &data.validation, &data.held_out] {
        hash.update((part.len() as u64).to_le_bytes());
        for pair in part {
            for map in [&pair.original, &pair.edited] {
                let first = map.vectors().iter().take(map.channels());
                first.for_each(|value| hash.update(value.to_le_bytes()));
            }
        }
    }
    let digest = hash.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
