//! An encoder at a photograph, as a [`Field`].

use std::sync::Arc;

use burn::tensor::{FloatDType, Tensor, TensorData};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::field::{Field, Perturbation, require_finite};
use crate::device::read;
use crate::encoders::Readout;
use crate::encoders::linear::Linearised;
use crate::encoders::registry::LoadedEncoder;
use crate::encoders::value::Value;
use crate::features::FeatureMap;
use crate::images::Prepared;
use crate::{Error, ErrorKind, Result};

/// Inputs in one pass on the CPU, unless it has more threads than that. Every layer already fills two
/// threads, and the largest activations of four inputs still fit the blocks that the allocator
/// recycles (32 MiB): measured on two threads, a pass over eight spends a fifth of its time on fresh
/// memory pages.
pub const CPU_BATCH: usize = 4;

/// Inputs in one pass on an adapter: enough to fill it, few enough that a cancel is heard soon.
pub const ADAPTER_BATCH: usize = 16;

/// The readout of a loaded encoder around one photograph.
///
/// The derivative at the photograph is recorded once, at the first product with it; every product
/// after that costs about one forward pass.
pub struct EncoderField {
    encoder: Arc<LoadedEncoder>,
    readout: Readout,
    /// The photograph in [0, 1], RGB: channel, row, column.
    pixels: Arc<[f32]>,
    /// Batch 1, 3 channels, rows, columns.
    input_shape: [usize; 4],
    /// Batch 1, channels, rows, columns.
    output_shape: [usize; 4],
    derivative: Option<Linearised>,
    /// Inputs in one pass.
    batch: usize,
}

impl EncoderField {
    /// The readout of `encoder` around a photograph prepared for it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Request`] where the encoder has no such stage or the photograph was prepared for
    /// another input side; [`ErrorKind::Numeric`] where a pixel value is not finite.
    pub fn new(encoder: Arc<LoadedEncoder>, readout: Readout, photo: &Prepared) -> Result<Self> {
        let spec = encoder.spec();
        let [channels, rows, cols] = spec.readout_shape(&readout)?;
        let side = spec.side_px;
        if photo.side_px != side || photo.pixels.len() != 3 * side * side {
            return Err(Error::new(
                ErrorKind::Request,
                format!("cannot show the photograph to {}", spec.title),
                format!(
                    "it was prepared at {} px, and the encoder reads {side} px",
                    photo.side_px
                ),
                "Prepare it with this encoder's own recipe",
            ));
        }
        let pixels: Vec<f64> = photo.pixels.iter().map(|&value| f64::from(value)).collect();
        require_finite(&pixels, "the photograph")?;
        Ok(Self {
            readout,
            pixels: photo.pixels.clone(),
            input_shape: [1, 3, side, side],
            output_shape: [1, channels, rows, cols],
            derivative: None,
            batch: if encoder.device.is_cpu() {
                CPU_BATCH.max(rayon::current_num_threads())
            } else {
                ADAPTER_BATCH
            },
            encoder,
        })
    }

    /// The same with `batch` inputs in one pass, at least 1, instead of the number that suits the device.
    ///
    /// The order of summation inside the network may depend on it, so that features differ by rounding.
    pub fn with_batch(mut self, batch: usize) -> Self {
        self.batch = batch.max(1);
        self
    }

    /// The encoder.
    pub fn encoder(&self) -> &Arc<LoadedEncoder> {
        &self.encoder
    }

    /// The feature of the photograph itself as a feature map; a vector has one row and one column.
    ///
    /// # Errors
    /// [`ErrorKind::Device`] where the device fails; [`ErrorKind::Numeric`] where a value is not finite.
    pub fn feature_map(&mut self) -> Result<FeatureMap> {
        let values = self.features(&[Perturbation {
            direction: vec![0.0; self.input_len()].into(),
            eta_l2: 0.0,
        }])?;
        let [_, channels, rows, columns] = self.output_shape;
        let planes: Vec<f32> = values.iter().map(|&value| value as f32).collect();
        FeatureMap::from_planes([channels, rows, columns], &planes)
    }

    /// `batch` inputs one after another; `value(i, p)` is value p of input i, rounded once to the
    /// encoder's precision.
    fn inputs(&self, batch: usize, value: impl Fn(usize, usize) -> f64 + Sync) -> Tensor<4> {
        let shape = Self::shape_of(self.input_shape, batch);
        if self.encoder.placement.dtype == FloatDType::F64 {
            self.upload(TensorData::new(self.rows(batch, value), shape))
        } else {
            let single = |i, p| value(i, p) as f32;
            self.upload(TensorData::new(self.rows(batch, single), shape))
        }
    }

    /// Values of a batch of inputs, made on all threads.
    fn rows<T: Copy + Default + Send>(
        &self,
        batch: usize,
        value: impl Fn(usize, usize) -> T + Sync,
    ) -> Vec<T> {
        let len = self.input_len();
        let mut values = vec![T::default(); batch * len];
        values.par_chunks_mut(len).enumerate().for_each(|(i, row)| {
            row.iter_mut()
                .enumerate()
                .for_each(|(p, at)| *at = value(i, p));
        });
        values
    }

    /// A batch of `values` with the shape of one item, in the encoder's precision.
    fn tensor(&self, values: Vec<f64>, item: [usize; 4], batch: usize) -> Tensor<4> {
        self.upload(TensorData::new(values, Self::shape_of(item, batch)))
    }

    fn shape_of(item: [usize; 4], batch: usize) -> [usize; 4] {
        [batch, item[1], item[2], item[3]]
    }

    fn upload(&self, data: TensorData) -> Tensor<4> {
        let placement = &self.encoder.placement;
        Tensor::from_data(
            data.convert_dtype(placement.dtype.into()),
            placement.options(),
        )
    }

    /// Φ of a batch of inputs, row after row.
    fn evaluate(&self, inputs: Tensor<4>) -> Result<Vec<f64>> {
        let features = self
            .encoder
            .encoder
            .forward(Value::plain(inputs), &self.readout)?;
        read(features.into_primal())
    }

    /// What the feature is called in messages.
    fn feature_name(&self) -> String {
        let title = &self.encoder.spec().title;
        match &self.readout {
            Readout::Pooled => format!("the pooled feature of {title}"),
            Readout::Logits => format!("the logits of {title}"),
            Readout::Stage(index) => {
                format!(
                    "stage {} of {title}",
                    self.encoder.spec().stages[*index].name
                )
            }
        }
    }

    /// Runs work on the device; its failures and panics become errors that name the feature.
    fn on_device<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let device = self.encoder.device.clone();
        let asked = format!("cannot compute {}", self.feature_name());
        device.guard(&asked, || work(self))
    }

    /// A readout at the photograph with its derivative.
    fn traced(&self, readout: &Readout) -> Result<Value> {
        let x = self.inputs(1, |_, p| f64::from(self.pixels[p]));
        self.encoder.encoder.forward(Value::traced(x), readout)
    }

    /// The derivative at the photograph, recorded at the first call.
    fn derivative(&mut self) -> Result<&Linearised> {
        let derivative = match self.derivative.take() {
            Some(derivative) => derivative,
            None => derivative_of(&self.traced(&self.readout)?),
        };
        Ok(self.derivative.insert(derivative))
    }
}

impl Field for EncoderField {
    fn input_len(&self) -> usize {
        self.input_shape.iter().product()
    }

    fn output_len(&self) -> usize {
        self.output_shape.iter().product()
    }

    fn batch(&self) -> usize {
        self.batch
    }

    fn features(&mut self, steps: &[Perturbation]) -> Result<Vec<f64>> {
        let values = self.on_device(|field| {
            let mut values = Vec::with_capacity(steps.len() * field.output_len());
            for chunk in steps.chunks(field.batch) {
                let inputs = field.inputs(chunk.len(), |i, p| {
                    let Perturbation { direction, eta_l2 } = &chunk[i];
                    f64::from(field.pixels[p]) + eta_l2 * f64::from(direction[p])
                });
                values.extend(field.evaluate(inputs)?);
            }
            Ok(values)
        })?;
        require_finite(&values, &self.feature_name())?;
        Ok(values)
    }

    fn rounding_probe(&mut self, seed: u64) -> Result<Vec<f64>> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let double = self.encoder.placement.dtype == FloatDType::F64;
        let moved: Vec<f64> = self
            .pixels
            .iter()
            .map(|&value| match (double, rng.next_u32() & 1 == 0) {
                (false, true) => f64::from(value.next_up()),
                (false, false) => f64::from(value.next_down()),
                (true, true) => f64::from(value).next_up(),
                (true, false) => f64::from(value).next_down(),
            })
            .collect();
        // The moved photograph stands second in its batch, after the photograph itself.
        let values = self.on_device(|field| {
            let unmoved = |p: usize| f64::from(field.pixels[p]);
            let inputs = field.inputs(2, |i, p| if i == 0 { unmoved(p) } else { moved[p] });
            Ok(field.evaluate(inputs)?.split_off(field.output_len()))
        })?;
        require_finite(&values, &self.feature_name())?;
        Ok(values)
    }

    fn jvp(&mut self, tangents: &[Arc<[f32]>]) -> Result<Vec<f64>> {
        let values = self.on_device(|field| {
            let mut values = Vec::with_capacity(tangents.len() * field.output_len());
            for chunk in tangents.chunks(field.batch) {
                let chunk = field.inputs(chunk.len(), |i, p| f64::from(chunk[i][p]));
                values.extend(read(field.derivative()?.jvp(chunk))?);
            }
            Ok(values)
        })?;
        require_finite(&values, &format!("a derivative of {}", self.feature_name()))?;
        Ok(values)
    }

    fn vjp(&mut self, cotangents: &[f64]) -> Result<Vec<f64>> {
        let row = self.output_len();
        let values = self.on_device(|field| {
            let mut values = Vec::with_capacity(cotangents.len() / row * field.input_len());
            for chunk in cotangents.chunks(field.batch * row) {
                let batch = chunk.len() / row;
                let chunk = field.tensor(chunk.to_vec(), field.output_shape, batch);
                values.extend(read(field.derivative()?.vjp(chunk))?);
            }
            Ok(values)
        })?;
        require_finite(&values, &format!("a derivative of {}", self.feature_name()))?;
        Ok(values)
    }

    fn top_logit_gradient(&mut self) -> Result<Vec<f64>> {
        let values = self.on_device(|field| {
            let logits = field.traced(&Readout::Logits)?;
            let values = read(logits.primal().clone())?;
            let top = (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b]));
            let one_hot = (0..values.len())
                .map(|i| f64::from(u8::from(Some(i) == top)))
                .collect();
            let cotangent = field.tensor(one_hot, logits.primal().dims(), 1);
            read(derivative_of(&logits).vjp(cotangent))
        })?;
        require_finite(&values, "the gradient of the largest logit")?;
        Ok(values)
    }
}

fn derivative_of(value: &Value) -> Linearised {
    value
        .linearised()
        .expect("a value computed from a traced input is traced")
}
