//! The compute side on a real device.

use std::sync::Arc;

use super::engine::{Engine, Subject, no_device};
use crate::Result;
use crate::device::{self, ComputeDevice, DeviceChoice, DeviceInfo, SelfCheck};
use crate::encoders::Readout;
use crate::encoders::layers::Placement;
use crate::encoders::registry::{self, LoadedEncoder};
use crate::geometry::encoder_field::EncoderField;
use crate::geometry::{Field, Perturbation};
use crate::images::{Photo, Prepared};
use crate::recipe::{ProfileRecipe, WeightsKind};

/// Seed of the random parameters of every twin, so that a twin is the same network everywhere.
pub const TWIN_SEED: u64 = 0;

/// Encoders that stay loaded: two with their twins.
const ENCODERS_MAX: usize = 4;

/// Encoders on one compute device.
#[derive(Default)]
pub struct DeviceEngine {
    device: Option<ComputeDevice>,
    /// Least recently used first.
    encoders: Vec<Checked>,
}

/// An encoder with what is known of its agreement with the CPU.
struct Checked {
    encoder: Arc<LoadedEncoder>,
    /// `None` before it was checked.
    self_check: Option<Option<SelfCheck>>,
}

impl DeviceEngine {
    /// An engine without a device.
    pub fn new() -> Self {
        Self::default()
    }

    /// An encoder that is loaded now or by this call; it becomes the most recently used one.
    fn encoder(&mut self, name: &str, weights: WeightsKind) -> Result<&mut Checked> {
        let is_it = |known: &Checked| {
            *known.encoder.spec().name == *name && known.encoder.weights == weights
        };
        let checked = match self.encoders.iter().position(is_it) {
            Some(position) => self.encoders.remove(position),
            None => {
                let Some(device) = &self.device else {
                    return Err(no_device(format!("cannot load “{name}”")));
                };
                let encoder = Arc::new(registry::load(name, weights, TWIN_SEED, device)?);
                Checked {
                    encoder,
                    self_check: None,
                }
            }
        };
        if self.encoders.len() >= ENCODERS_MAX {
            self.encoders.remove(0);
        }
        Ok(self.encoders.push_mut(checked))
    }
}

impl Engine for DeviceEngine {
    fn use_device(&mut self, choice: &DeviceChoice) -> Result<DeviceInfo> {
        let device = device::open(choice)?;
        let info = device.info.clone();
        self.encoders.clear();
        self.device = Some(device);
        Ok(info)
    }

    fn load(&mut self, encoder: &str, weights: WeightsKind) -> Result<()> {
        self.encoder(encoder, weights).map(|_| ())
    }

    fn self_check(&mut self, encoder: &str, weights: WeightsKind) -> Result<Option<SelfCheck>> {
        let checked = self.encoder(encoder, weights)?;
        if let Some(known) = checked.self_check {
            return Ok(known);
        }
        let found = device::self_check(&checked.encoder)?;
        checked.self_check = Some(found);
        Ok(found)
    }

    fn prepare(&mut self, photo: &Photo, recipe: &ProfileRecipe) -> Result<Subject> {
        let self_check = self.self_check(&recipe.encoder, recipe.weights)?;
        let encoder = Arc::clone(&self.encoder(&recipe.encoder, recipe.weights)?.encoder);
        let spec = encoder.spec().clone();
        let mut prepared = spec.preprocessing.apply(photo)?;
        if let Some(seed) = recipe.dither_seed {
            prepared = prepared.dithered(seed);
        }
        let top5 = match recipe.weights {
            WeightsKind::Trained if spec.logits_len > 0 => top5(&encoder, &prepared)?,
            WeightsKind::Trained | WeightsKind::Random => Vec::new(),
        };
        let weights_id = encoder.weights_id.clone();
        let field = EncoderField::new(encoder, recipe.readout.clone(), &prepared)?;
        Ok(Subject {
            spec: Arc::new(spec),
            weights_id,
            prepared: Arc::new(prepared),
            top5,
            self_check,
            field: Box::new(field),
        })
    }

    fn recover(&mut self) -> Result<()> {
        self.encoders.clear();
        let Some(device) = self.device.take() else {
            return Ok(());
        };
        // The smallest work there is: up, one kernel, down again.
        device.guard("cannot compute", || {
            let one = Placement::f32(&device.device).tensor(vec![1.0], [1; 4]);
            device::read(one.clone() + one)
        })?;
        self.device = Some(device);
        Ok(())
    }
}

/// The five likeliest classes of a photograph.
fn top5(encoder: &Arc<LoadedEncoder>, prepared: &Prepared) -> Result<Vec<(String, f32)>> {
    let mut field = EncoderField::new(Arc::clone(encoder), Readout::Logits, prepared)?;
    let direction = vec![0.0; field.input_len()].into();
    let logits = field.features(&[Perturbation {
        direction,
        eta_l2: 0.0,
    }])?;
    Ok(registry::top5(&logits))
}
