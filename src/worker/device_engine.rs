//! The compute side on a real device.

use std::sync::Arc;

use super::engine::{Engine, Look, StageView, Subject, no_device};
use crate::device::{self, ComputeDevice, DeviceChoice, DeviceInfo, SelfCheck};
use crate::encoders::layers::Placement;
use crate::encoders::registry::{self, LoadedEncoder};
use crate::encoders::{EncoderSpec, Readout};
use crate::features::FeatureMap;
use crate::geometry::decode::{Decoder, DecoderHeader, Inversion, InversionConfig};
use crate::geometry::encoder_field::EncoderField;
use crate::geometry::encoding::{Edit, EncodedPair, StageEncoder};
use crate::geometry::feature_cache::FeatureCache;
use crate::geometry::maps::trained::Pair;
use crate::geometry::perceptual::Lpips;
use crate::geometry::{Field, Perturbation};
use crate::images::crop::CropSet;
use crate::images::{Photo, Picture, Prepared};
use crate::recipe::{ProfileRecipe, WeightsKind};
use crate::report::LpipsNote;
use crate::{ErrorKind, Result};

/// Seed of the random parameters of every twin, so that a twin is the same network everywhere.
pub const TWIN_SEED: u64 = 0;

/// Encoders on one compute device.
#[derive(Default)]
pub struct DeviceEngine {
    device: Option<ComputeDevice>,
    /// How many they are is the worker's to say, see [`Engine::unload`].
    encoders: Vec<Checked>,
    /// Feature maps that were computed before.
    cache: Option<Arc<FeatureCache>>,
    /// Read once, because its file is large; `None` before it was found on this device.
    lpips: Option<Arc<Metric>>,
}

/// LPIPS, or why it cannot be computed.
type Metric = std::result::Result<Lpips, String>;

/// An encoder with what is known of its agreement with the CPU.
struct Checked {
    encoder: Arc<LoadedEncoder>,
    /// `None` before it was checked.
    self_check: Option<Option<SelfCheck>>,
}

impl Checked {
    fn is(&self, name: &str, weights: WeightsKind) -> bool {
        *self.encoder.spec().name == *name && self.encoder.weights == weights
    }
}

impl DeviceEngine {
    /// An engine without a device.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with feature maps kept on disk.
    pub fn with_cache(self, cache: Option<FeatureCache>) -> Self {
        Self {
            cache: cache.map(Arc::new),
            ..self
        }
    }

    /// LPIPS on the device in use.
    fn lpips(&mut self, device: &ComputeDevice) -> Result<Arc<Metric>> {
        if let Some(known) = &self.lpips {
            return Ok(Arc::clone(known));
        }
        match Lpips::load(device) {
            Ok(metric) => Ok(Arc::clone(self.lpips.insert(Arc::new(Ok(metric))))),
            // Not remembered: the weights may be fetched meanwhile.
            Err(error) if error.kind == ErrorKind::Weights => {
                let why = format!("{}: {}. {}", error.what, error.why, error.remedy);
                Ok(Arc::new(Err(why)))
            }
            Err(error) => Err(error),
        }
    }

    /// An encoder that is loaded now or by this call.
    fn encoder(&mut self, name: &str, weights: WeightsKind) -> Result<&mut Checked> {
        let is_it = |known: &Checked| known.is(name, weights);
        if let Some(position) = self.encoders.iter().position(is_it) {
            return Ok(&mut self.encoders[position]);
        }
        let Some(device) = &self.device else {
            return Err(no_device(format!("cannot load “{name}”")));
        };
        let encoder = Arc::new(registry::load(name, weights, TWIN_SEED, device)?);
        Ok(self.encoders.push_mut(Checked {
            encoder,
            self_check: None,
        }))
    }
}

impl Engine for DeviceEngine {
    fn use_device(&mut self, choice: &DeviceChoice) -> Result<DeviceInfo> {
        let device = device::open(choice)?;
        let info = device.info.clone();
        self.encoders.clear();
        self.lpips = None;
        self.device = Some(device);
        Ok(info)
    }

    fn weights_bytes(&self, encoder: &str) -> Result<u64> {
        // Single precision.
        Ok(4 * registry::find(encoder)?.parameters as u64)
    }

    fn unload(&mut self, encoder: &str, weights: WeightsKind) {
        self.encoders.retain(|known| !known.is(encoder, weights));
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

    fn stage(&mut self, encoder: &str, stage: usize) -> Result<Box<dyn StageView>> {
        let encoder = Arc::clone(&self.encoder(encoder, WeightsKind::Trained)?.encoder);
        let cache = self.cache.clone();
        let lpips = self.lpips(&encoder.device)?;
        Ok(Box::new(DeviceStage::new(encoder, stage, cache, lpips)?))
    }

    fn recover(&mut self) -> Result<()> {
        self.encoders.clear();
        self.lpips = None;
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

/// A stage of a loaded encoder with its decoder.
struct DeviceStage {
    encoder: StageEncoder,
    readout: Readout,
    decoder: Option<Decoder>,
    lpips: Arc<Metric>,
    /// The picture that others were compared with last, as the metric sees it.
    lpips_target: Option<(Arc<Picture>, Vec<FeatureMap>)>,
}

impl DeviceStage {
    fn new(
        encoder: Arc<LoadedEncoder>,
        stage: usize,
        cache: Option<Arc<FeatureCache>>,
        lpips: Arc<Metric>,
    ) -> Result<Self> {
        let spec = encoder.spec();
        let name = spec.stages.get(stage).map_or("", |stage| &stage.name);
        let device = &encoder.device;
        let decoder = Decoder::bundled(&spec.name, &encoder.weights_id, name, device)?;
        Ok(Self {
            lpips,
            lpips_target: None,
            encoder: StageEncoder::new(encoder, stage, cache)?,
            readout: Readout::Stage(stage),
            decoder,
        })
    }
}

impl StageView for DeviceStage {
    fn spec(&self) -> &EncoderSpec {
        self.encoder.encoder().spec()
    }

    fn weights_id(&self) -> &str {
        &self.encoder.encoder().weights_id
    }

    fn pair(&mut self, photo: &Photo, edit: Edit<'_>) -> Result<EncodedPair> {
        self.encoder.pair(photo, edit)
    }

    fn crop_pairs(&mut self, photo: &Photo, edit: Edit<'_>, crops: &CropSet) -> Result<Vec<Pair>> {
        self.encoder.crop_pairs(photo, edit, crops)
    }

    fn look(&mut self, picture: &Picture) -> Result<Look> {
        let spec = self.spec();
        let (last, has_classes) = (spec.stages.len() - 1, spec.logits_len > 0);
        let prepared = Prepared {
            side_px: picture.width(),
            pixels: picture.planes().into(),
            steps: String::new(),
        };
        let field = |readout| {
            let encoder = Arc::clone(self.encoder.encoder());
            EncoderField::new(encoder, readout, &prepared)
        };
        let logits = has_classes.then(|| field(Readout::Logits)?.feature_map());
        Ok(Look {
            logits: logits
                .transpose()?
                .map(|logits| logits.planes().into_iter().map(f64::from).collect()),
            deepest: field(Readout::Stage(last))?.feature_map()?,
        })
    }

    fn decode(&mut self, features: &FeatureMap) -> Result<Option<Picture>> {
        let Some(decoder) = &self.decoder else {
            return Ok(None);
        };
        let decoded = decoder.decode(features)?;
        let picture = Picture::from_planes(&decoded.pixels, decoded.rows, decoded.columns);
        Ok(Some(picture))
    }

    fn decoder(&self) -> Option<&DecoderHeader> {
        self.decoder.as_ref().map(Decoder::header)
    }

    fn lpips(&mut self, picture: &Picture, target: &Arc<Picture>) -> Result<Option<f64>> {
        let Ok(metric) = &*self.lpips else {
            return Ok(None);
        };
        let known = self.lpips_target.take();
        let stages = match known.filter(|(known, _)| Arc::ptr_eq(known, target)) {
            Some((_, stages)) => stages,
            None => metric.stages(target)?,
        };
        let distance = metric.between(&metric.stages(picture)?, &stages)?;
        self.lpips_target = Some((Arc::clone(target), stages));
        Ok(Some(distance))
    }

    fn lpips_note(&self) -> LpipsNote {
        match &*self.lpips {
            Ok(metric) => LpipsNote::Weights(metric.weights_id().to_owned()),
            Err(why) => LpipsNote::Absent(why.clone()),
        }
    }

    fn passes(&self) -> [usize; 2] {
        [self.encoder.passes(), self.encoder.recalled()]
    }

    fn invert(&mut self, target: &[f64]) -> Result<Inversion> {
        let encoder = Arc::clone(self.encoder.encoder());
        Inversion::new(
            encoder,
            self.readout.clone(),
            target,
            InversionConfig::default(),
        )
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
