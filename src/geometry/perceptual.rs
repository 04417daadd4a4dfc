//! LPIPS v0.1 of two pictures (Zhang, Isola, Efros, Shechtman, Wang, “The Unreasonable Effectiveness of Deep Features as a
//! Perceptual Metric”, CVPR 2018): AlexNet up to its fifth ReLU, then [`lpips_head`] with the layers that the authors have
//! learnt. From 0 up, 0 for equal pictures; no units; smaller is more alike.
//!
//! The learnt layers come with the program (scripts/make_lpips_asset.py). AlexNet's weights do not: they are torchvision's, which the
//! registry knows as [`ENCODER`], or a file of the same network, of which the convolutions are enough.
//!
//! The original scales pictures from [0, 1] to [−1, 1], subtracts (−0.030, −0.088, −0.188) and divides by (0.458, 0.448, 0.450).
//! That is torchvision's own recipe, mean (0.485, 0.456, 0.406) and standard deviation (0.229, 0.224, 0.225) of values in [0, 1],
//! by which this encoder's row reads pictures.

use std::path::Path;

use burn::tensor::{Tensor, TensorData};
use safetensors::SafeTensors;

use crate::device::{ComputeDevice, read};
use crate::encoders::architecture::Architecture;
use crate::encoders::chain::Trunk;
use crate::encoders::layers::Placement;
use crate::encoders::normalised;
use crate::encoders::registry::{self, Row};
use crate::encoders::value::Value;
use crate::encoders::weights::checkpoint::Checkpoint;
use crate::encoders::weights::{Parameter, Weights, names};
use crate::features::FeatureMap;
use crate::images::Picture;
use crate::metrics::lpips::{Layer, lpips_head};
use crate::{Error, ErrorKind, Result};

/// Registry name of the network.
pub const ENCODER: &str = "alexnet.tv_in1k";

/// Stages that are compared: the five ReLUs.
const LAYERS: usize = 5;

/// What the names of the convolutions begin with, where names have no prefix.
const TRUNK: &str = "features.";

/// Smallest side of a picture, of which the last stage has one position.
const SMALLEST_SIDE: usize = 31;

/// The learnt layers: `lin0` … `lin4`, a weight for each channel.
const HEAD: &[u8] = include_bytes!("../../assets/metrics/lpips_alex.safetensors");

/// The network with the learnt layers.
pub struct Lpips {
    trunk: Trunk,
    head: Vec<Vec<f32>>,
    row: &'static Row,
    weights_id: String,
    device: ComputeDevice,
    at: Placement,
}

impl Lpips {
    /// The metric with the weights of the registry's AlexNet.
    ///
    /// # Errors
    /// [`ErrorKind::Weights`] where they are not on this machine, with what to do, or are damaged.
    pub fn load(device: &ComputeDevice) -> Result<Self> {
        let row = registry::row(ENCODER)?;
        let metric = Self::from_checkpoint(&row.checkpoint()?, device)?;
        match &row.sha256 {
            Some(published) if !metric.weights_id.starts_with(published.as_str()) => {
                Err(Error::new(
                    ErrorKind::Weights,
                    "cannot compute LPIPS",
                    format!(
                        "the SHA-256 of AlexNet's file is {}, not {published}",
                        metric.weights_id
                    ),
                    "Remove the file and fetch it again",
                ))
            }
            _ => Ok(metric),
        }
    }

    /// The metric with AlexNet's weights from a file, of the whole network or of its convolutions.
    ///
    /// # Errors
    /// [`ErrorKind::Weights`] where the file cannot be read or is of another network.
    pub fn open(path: &Path, device: &ComputeDevice) -> Result<Self> {
        Self::from_checkpoint(&Checkpoint::open(path)?, device)
    }

    fn from_checkpoint(checkpoint: &Checkpoint<'_>, device: &ComputeDevice) -> Result<Self> {
        let row = registry::row(ENCODER)?;
        let Architecture::AlexNet(config) = &row.architecture else {
            return Err(damaged("the registry's row is of another network"));
        };
        // A file without fully connected layers serves as well; one with them must have them all.
        let is_whole = checkpoint
            .tensors()
            .keys()
            .any(|name| name.contains("classifier"));
        let mut parameters: Vec<Parameter> = row.architecture.parameters();
        parameters.retain(|parameter| is_whole || parameter.name.starts_with(TRUNK));
        let namings = names::of(&row.architecture);
        let mut weights = Weights::from_checkpoint(checkpoint, &parameters, &namings, None)?;
        let weights_id = weights.id().to_owned();
        let at = Placement::f32(&device.device);
        let trunk = device.guard("cannot load LPIPS", || {
            config.plan().load_trunk(&mut weights, &at)
        })?;
        let head = learnt()?;
        let widths = head.iter().map(Vec::len);
        if !widths.eq(config.channels) {
            return Err(damaged("the learnt layers are of another network"));
        }
        Ok(Self {
            trunk,
            head,
            row,
            weights_id,
            device: device.clone(),
            at,
        })
    }

    /// SHA-256 of the file of AlexNet's weights.
    pub fn weights_id(&self) -> &str {
        &self.weights_id
    }

    /// What the metric compares of a picture: the feature maps of the five stages.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] for pictures of less than 31 pixels a side; [`ErrorKind::Device`] where the device fails.
    pub fn stages(&self, picture: &Picture) -> Result<Vec<FeatureMap>> {
        let (rows, columns) = (picture.height(), picture.width());
        if rows.min(columns) < SMALLEST_SIDE {
            return Err(Error::new(
                ErrorKind::Request,
                "cannot compute LPIPS",
                format!("the picture has {columns} × {rows} pixels"),
                format!("Use pictures of at least {SMALLEST_SIDE} pixels a side"),
            ));
        }
        self.device.guard("cannot compute LPIPS", || {
            let data = TensorData::new(picture.planes(), [1, 3, rows, columns]);
            let pixels = Value::plain(Tensor::from_data(data, self.at.options()));
            let mut values = Vec::with_capacity(LAYERS);
            let _ = self.trunk.visit(
                normalised(pixels, &self.row.spec.preprocessing),
                &mut |stage, value| {
                    values.push(value.primal().clone());
                    if stage + 1 < LAYERS {
                        std::ops::ControlFlow::Continue(())
                    } else {
                        std::ops::ControlFlow::Break(())
                    }
                },
            );
            values.into_iter().map(feature_map).collect()
        })
    }

    /// The distance of two pictures from their stages.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where the pictures had different sizes.
    pub fn between(&self, a: &[FeatureMap], b: &[FeatureMap]) -> Result<f64> {
        let layers: Vec<Layer<'_>> = (a.iter().zip(b).zip(&self.head))
            .map(|((a, b), weights)| Layer { a, b, weights })
            .collect();
        lpips_head(&layers)
    }

    /// The distance of two pictures of one size.
    ///
    /// # Errors
    /// As [`Lpips::stages`] and [`Lpips::between`].
    pub fn distance(&self, a: &Picture, b: &Picture) -> Result<f64> {
        self.between(&self.stages(a)?, &self.stages(b)?)
    }
}

fn feature_map(tensor: Tensor<4>) -> Result<FeatureMap> {
    let [_, channels, rows, columns] = tensor.dims();
    let values: Vec<f32> = read(tensor)?
        .into_iter()
        .map(|value| value as f32)
        .collect();
    FeatureMap::from_planes([channels, rows, columns], &values)
}

/// The learnt layers of the program's own file.
fn learnt() -> Result<Vec<Vec<f32>>> {
    let arrays = SafeTensors::deserialize(HEAD).map_err(damaged)?;
    (0..LAYERS)
        .map(|layer| {
            let tensor = arrays.tensor(&format!("lin{layer}"));
            let values = tensor.map_err(damaged)?.data();
            let values = values.as_chunks().0.iter();
            Ok(values.map(|bytes| f32::from_le_bytes(*bytes)).collect())
        })
        .collect()
}

fn damaged(why: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::Internal,
        "cannot compute LPIPS",
        why,
        "This is a fault of the program; please report it",
    )
}
