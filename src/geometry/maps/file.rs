//! Fitted maps as files: safetensors, with what they are and where they come from as JSON in the header.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use faer::Mat;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use super::per_position::PositionMap;
use super::trained::{TrainedMap, TrainingRecord};
use super::{AffineMap, EditMap, Fitted, MapKind, Normalisation, PerPositionMap};
use crate::files::write_whole;
use crate::images::crop::CropSet;
use crate::images::sha256_hex;
use crate::images::{GridSymmetry, Manipulation};
use crate::{Error, ErrorKind, Result};

/// Number of the layout, raised when a field changes its meaning.
const FORMAT: u32 = 1;

/// Key of the JSON in the header.
const HEADER: &str = "etascope_map";

/// Largest file that is read, in bytes: twice a per-position map of the paper's largest grid.
const BYTES_MAX: u64 = 4 << 30;

/// A map with everything needed to trust it and to make it again.
#[derive(Clone, Debug)]
pub struct MapFile {
    /// Registry name of the encoder.
    pub encoder: String,
    /// SHA-256 of its weights, or the seed of random ones.
    pub weights_id: String,
    /// Name of the stage.
    pub stage: String,
    /// What was done to the pictures, in this order; empty for pairs from an outside editor.
    pub manipulations: Vec<Manipulation>,
    /// SHA-256 over the hashes of the training pictures in their order.
    pub data_sha256: String,
    /// Photographs that it was fitted to.
    pub photographs: usize,
    /// Pairs of vectors that it was fitted to.
    pub vectors: usize,
    /// The map.
    pub map: EditMap,
}

/// The header. `reorder` and `kind` are those of the map; arrays are tensors of the file.
#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    encoder: String,
    weights_id: String,
    stage: String,
    manipulations: Vec<Manipulation>,
    data_sha256: String,
    photographs: usize,
    vectors: usize,
    kind: MapKind,
    reorder: Vec<GridSymmetry>,
    is_normalised: bool,
    /// Of a trained map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    training: Option<TrainingRecord>,
}

/// One array: its name, its shape and its bytes, little-endian.
struct Stored {
    name: Cow<'static, str>,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Stored {
    fn wide<'a>(
        name: impl Into<Cow<'static, str>>,
        shape: Vec<usize>,
        values: impl IntoIterator<Item = &'a f64>,
    ) -> Self {
        let bytes = values.into_iter().flat_map(|value| value.to_le_bytes());
        Self {
            name: name.into(),
            dtype: Dtype::F64,
            shape,
            bytes: bytes.collect(),
        }
    }

    fn vector(name: &'static str, values: &[f64]) -> Self {
        Self::wide(name, vec![values.len()], values)
    }

    fn single<'a>(
        name: impl Into<Cow<'static, str>>,
        shape: Vec<usize>,
        values: impl IntoIterator<Item = &'a f32>,
    ) -> Self {
        let bytes = values.into_iter().flat_map(|value| value.to_le_bytes());
        Self {
            name: name.into(),
            dtype: Dtype::F32,
            shape,
            bytes: bytes.collect(),
        }
    }
}

/// SHA-256 of what a map is fitted to: the hashes of the training photographs in their order, then those of their edits by an outside
/// editor, and the random crops.
pub fn data_sha256<'a>(hashes: impl Iterator<Item = &'a str>, crops: Option<&CropSet>) -> String {
    let mut data: String = hashes.collect();
    if let Some(crops) = crops {
        data.push_str(&format!("{crops:?}"));
    }
    sha256_hex(data.as_bytes())
}

/// A map as a file in memory.
///
/// # Errors
/// [`ErrorKind::Output`] where it cannot be laid out, which is a fault of the program.
pub fn to_bytes(file: &MapFile) -> Result<Vec<u8>> {
    let map = &file.map;
    let mut arrays = Vec::new();
    if let Some(normalisation) = &map.normalisation {
        arrays.push(Stored::vector("normalisation.mean", normalisation.mean()));
        arrays.push(Stored::vector("normalisation.scale", normalisation.scale()));
    }
    match &map.fitted {
        Fitted::Identity | Fitted::Trained(_) => {}
        Fitted::Additive(delta) => arrays.push(Stored::vector("delta", delta)),
        Fitted::Affine(affine) => {
            let size = affine.channels();
            let rows = affine.weight().row_iter();
            arrays.push(Stored::wide(
                "weight",
                vec![size, size],
                rows.flat_map(|row| row.iter().collect::<Vec<_>>()),
            ));
            arrays.push(Stored::vector("source_mean", affine.source_mean()));
            arrays.push(Stored::vector("target_mean", affine.target_mean()));
        }
        Fitted::PerPosition(maps) => {
            let [channels, rows, columns] = maps.shape;
            // Columns are stored one after another, so that the array is the transpose.
            arrays.push(Stored::single(
                "weight_transposed",
                vec![rows, columns, channels, channels],
                maps.maps.iter().flat_map(|map| &map.weight),
            ));
            arrays.push(Stored::single(
                "bias",
                vec![rows, columns, channels],
                maps.maps.iter().flat_map(|map| &map.bias),
            ));
        }
    }
    let mut training = None;
    if let Fitted::Trained(trained) = &map.fitted {
        training = Some(trained.record().clone());
        for (parameter, values) in trained.arrays()? {
            let name = format!("network.{}", parameter.name);
            arrays.push(Stored::single(name, parameter.shape, &values));
        }
    }
    let header = Header {
        format: FORMAT,
        encoder: file.encoder.clone(),
        weights_id: file.weights_id.clone(),
        stage: file.stage.clone(),
        manipulations: file.manipulations.clone(),
        data_sha256: file.data_sha256.clone(),
        photographs: file.photographs,
        vectors: file.vectors,
        kind: map.kind,
        reorder: map.reorder.clone(),
        is_normalised: map.normalisation.is_some(),
        training,
    };
    let unwritten = |why: String| {
        Error::new(
            ErrorKind::Output,
            "cannot write the map",
            why,
            "This is a fault of the program; please report it",
        )
    };
    let header = serde_json::to_string(&header).map_err(|error| unwritten(error.to_string()))?;
    let views: Vec<(&str, TensorView<'_>)> = arrays
        .iter()
        .map(|array| {
            let view = TensorView::new(array.dtype, array.shape.clone(), &array.bytes);
            Ok((
                array.name.as_ref(),
                view.map_err(|error| unwritten(error.to_string()))?,
            ))
        })
        .collect::<Result<_>>()?;
    let metadata = [(HEADER.to_owned(), header)].into();
    safetensors::serialize(views, Some(metadata)).map_err(|error| unwritten(error.to_string()))
}

/// Writes a map, whole or not at all.
///
/// # Errors
/// [`ErrorKind::Output`] where the file cannot be written.
pub fn save(file: &MapFile, path: &Path) -> Result<()> {
    let content = to_bytes(file)?;
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    write_whole(folder, &[(PathBuf::from(path), content)])
}

/// Reads a map.
///
/// # Errors
/// [`ErrorKind::Weights`] where the file cannot be read, is damaged, is no map or one of a later version, or
/// holds numbers that are not finite.
pub fn load(path: &Path) -> Result<MapFile> {
    let refuse = |why: String, remedy: &str| {
        Error::new(
            ErrorKind::Weights,
            format!("cannot use the map “{}”", path.display()),
            why,
            remedy,
        )
    };
    let damaged = |why: String| refuse(why, "Fit the map again, or use another copy of the file");
    let size = std::fs::metadata(path)
        .map_err(|error| refuse(error.to_string(), "Choose another file"))?
        .len();
    if size > BYTES_MAX {
        return Err(refuse(
            format!("it has {size} bytes, more than any map"),
            "Choose another file",
        ));
    }
    let bytes =
        std::fs::read(path).map_err(|error| refuse(error.to_string(), "Choose another file"))?;
    let (_, metadata) = SafeTensors::read_metadata(&bytes)
        .map_err(|error| damaged(format!("it is not a whole safetensors file ({error})")))?;
    let header = metadata
        .metadata()
        .as_ref()
        .and_then(|entries| entries.get(HEADER))
        .ok_or_else(|| {
            refuse(
                "it is a safetensors file, but not a map of this program".to_owned(),
                "Choose a file that was saved as a map",
            )
        })?;
    // The number is read first: a later layout may have fields that this version does not know.
    let number: serde_json::Value = serde_json::from_str(header)
        .map_err(|error| damaged(format!("its header is damaged ({error})")))?;
    match number.get("format").and_then(serde_json::Value::as_u64) {
        Some(format) if format == u64::from(FORMAT) => {}
        Some(format) => {
            return Err(refuse(
                format!("it has the layout {format}, and this version reads {FORMAT}"),
                "Use the version of the program that wrote it, or fit the map again",
            ));
        }
        None => return Err(damaged("its header names no layout".to_owned())),
    }
    let header: Header = serde_json::from_str(header)
        .map_err(|error| damaged(format!("its header is damaged ({error})")))?;
    let arrays = SafeTensors::deserialize(&bytes)
        .map_err(|error| damaged(format!("it is not a whole safetensors file ({error})")))?;
    let map = Reader { arrays: &arrays }.map(&header).map_err(damaged)?;
    Ok(MapFile {
        encoder: header.encoder,
        weights_id: header.weights_id,
        stage: header.stage,
        manipulations: header.manipulations,
        data_sha256: header.data_sha256,
        photographs: header.photographs,
        vectors: header.vectors,
        map,
    })
}

/// Arrays of a file; complaints are the reason alone.
struct Reader<'a> {
    arrays: &'a SafeTensors<'a>,
}

impl Reader<'_> {
    fn map(&self, header: &Header) -> std::result::Result<EditMap, String> {
        let normalisation = if header.is_normalised {
            let mean = self.vector("normalisation.mean")?;
            let scale = self.vector("normalisation.scale")?;
            if mean.len() != scale.len() || !scale.iter().all(|&scale| scale > 0.0) {
                return Err("its normalisation makes no sense".to_owned());
            }
            Some(Normalisation::from_parts(mean, scale))
        } else {
            None
        };
        let fitted = match header.kind {
            MapKind::Identity => Fitted::Identity,
            MapKind::Additive => Fitted::Additive(self.vector("delta")?),
            MapKind::PerPosition { .. } => Fitted::PerPosition(self.per_position()?),
            MapKind::Trained { .. } => Fitted::Trained(self.trained(header)?),
            MapKind::Linear
            | MapKind::Ridge { .. }
            | MapKind::RidgeToIdentity { .. }
            | MapKind::Procrustes => {
                let (shape, values) = self.wide("weight")?;
                let [rows, columns] = shape[..] else {
                    return Err(format!("its weight has {} axes", shape.len()));
                };
                let weight = Mat::from_fn(rows, columns, |i, j| values[i * columns + j]);
                let affine = AffineMap::new(
                    weight,
                    self.vector("source_mean")?,
                    self.vector("target_mean")?,
                );
                Fitted::Affine(affine.map_err(|error| error.why)?)
            }
        };
        let channels = match &fitted {
            Fitted::Identity => None,
            Fitted::Additive(delta) => Some(delta.len()),
            Fitted::Affine(affine) => Some(affine.channels()),
            Fitted::PerPosition(maps) => Some(maps.shape[0]),
            Fitted::Trained(map) => Some(map.record().network.shape[0]),
        };
        let is_fitting = |normalisation: &Normalisation| {
            channels.is_none_or(|channels| channels == normalisation.mean().len())
        };
        if !normalisation.as_ref().is_none_or(is_fitting) {
            return Err("its normalisation has another number of channels".to_owned());
        }
        Ok(EditMap {
            kind: header.kind,
            reorder: header.reorder.clone(),
            normalisation,
            fitted,
        })
    }

    fn trained(&self, header: &Header) -> std::result::Result<TrainedMap, String> {
        let record = header.training.clone();
        let record = record.ok_or("its header says nothing of its training")?;
        if let Some(why) = record.network.fault() {
            return Err(why);
        }
        let values = record.network.parameters().into_iter().map(|parameter| {
            let (shape, values) = self.single(&format!("network.{}", parameter.name))?;
            if shape == parameter.shape {
                Ok(values)
            } else {
                Err(format!("its array {} is of another shape", parameter.name))
            }
        });
        let values = values.collect::<std::result::Result<_, String>>()?;
        TrainedMap::new(record, values).map_err(|error| error.why)
    }

    fn per_position(&self) -> std::result::Result<PerPositionMap, String> {
        let (shape, weights) = self.single("weight_transposed")?;
        let (bias_shape, biases) = self.single("bias")?;
        let [rows, columns, channels, width] = shape[..] else {
            return Err(format!("its weights have {} axes", shape.len()));
        };
        if channels != width || channels == 0 || bias_shape != [rows, columns, channels] {
            return Err(format!(
                "its weights and biases have the shapes {shape:?} and {bias_shape:?}"
            ));
        }
        let weights = weights.chunks_exact(channels * channels);
        let maps = weights.zip(biases.chunks_exact(channels));
        Ok(PerPositionMap {
            shape: [channels, rows, columns],
            maps: maps
                .map(|(weight, bias)| PositionMap {
                    weight: weight.to_vec(),
                    bias: bias.to_vec(),
                })
                .collect(),
        })
    }

    fn vector(&self, name: &str) -> std::result::Result<Vec<f64>, String> {
        let (shape, values) = self.wide(name)?;
        match shape.len() {
            1 => Ok(values),
            axes => Err(format!("its array {name} has {axes} axes")),
        }
    }

    fn wide(&self, name: &str) -> std::result::Result<(Vec<usize>, Vec<f64>), String> {
        let view = self.view(name, Dtype::F64)?;
        let values: Vec<f64> = view
            .data()
            .as_chunks()
            .0
            .iter()
            .map(|bytes| f64::from_le_bytes(*bytes))
            .collect();
        require_finite(name, values.iter().all(|value| value.is_finite()))?;
        Ok((view.shape().to_vec(), values))
    }

    fn single(&self, name: &str) -> std::result::Result<(Vec<usize>, Vec<f32>), String> {
        let view = self.view(name, Dtype::F32)?;
        let values: Vec<f32> = view
            .data()
            .as_chunks()
            .0
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect();
        require_finite(name, values.iter().all(|value| value.is_finite()))?;
        Ok((view.shape().to_vec(), values))
    }

    fn view(&self, name: &str, dtype: Dtype) -> std::result::Result<TensorView<'_>, String> {
        let view = self
            .arrays
            .tensor(name)
            .map_err(|_| format!("its array {name} is missing"))?;
        if view.dtype() != dtype {
            return Err(format!(
                "its array {name} is of type {:?}, not {dtype:?}",
                view.dtype()
            ));
        }
        Ok(view)
    }
}

fn require_finite(name: &str, is_finite: bool) -> std::result::Result<(), String> {
    if is_finite {
        Ok(())
    } else {
        Err(format!(
            "its array {name} holds a number that is not finite"
        ))
    }
}
