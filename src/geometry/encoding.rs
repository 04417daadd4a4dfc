//! Photographs and their edits as a stage of an encoder shows them: whole and in random crops, each picture encoded once
//! and found in a [`FeatureCache`] ever after.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::encoder_field::EncoderField;
use super::feature_cache::{FeatureCache, FeatureKey};
use super::maps::trained::Pair;
use crate::Result;
use crate::encoders::Readout;
use crate::encoders::registry::LoadedEncoder;
use crate::features::FeatureMap;
use crate::images::crop::CropSet;
use crate::images::manipulations::edit_in_order;
use crate::images::{Manipulation, Photo, Picture, Prepared, pairs, sha256_hex};

/// What the edit of a photograph is.
#[derive(Clone, Copy, Debug)]
pub enum Edit<'a> {
    /// These manipulations in their order, of the picture at the encoder's own input side, in 8-bit grey levels.
    By(&'a [Manipulation]),
    /// This photograph, which an outside editor has made of it.
    To(&'a Photo),
}

/// A photograph and its edit as the encoder sees them, with their feature maps.
#[derive(Clone, Debug)]
pub struct EncodedPair {
    /// The feature maps.
    pub features: Pair,
    /// The photograph at the encoder's input side.
    pub original_picture: Picture,
    /// Its edit.
    pub edited_picture: Picture,
    /// Decoding and preparation, for people.
    pub steps: Vec<String>,
}

/// A stage of a loaded encoder, with what was encoded before.
pub struct StageEncoder {
    encoder: Arc<LoadedEncoder>,
    readout: Readout,
    cache: Option<Arc<FeatureCache>>,
    passes: AtomicUsize,
    recalled: AtomicUsize,
}

impl StageEncoder {
    /// The stage of this index; without a cache every picture is encoded.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Request`] where the encoder has no such stage.
    pub fn new(
        encoder: Arc<LoadedEncoder>,
        stage: usize,
        cache: Option<Arc<FeatureCache>>,
    ) -> Result<Self> {
        let readout = Readout::Stage(stage);
        encoder.spec().readout_shape(&readout)?;
        Ok(Self {
            encoder,
            readout,
            cache,
            passes: AtomicUsize::new(0),
            recalled: AtomicUsize::new(0),
        })
    }

    /// The encoder.
    pub fn encoder(&self) -> &Arc<LoadedEncoder> {
        &self.encoder
    }

    /// Pictures that were encoded so far.
    pub fn passes(&self) -> usize {
        self.passes.load(Ordering::Relaxed)
    }

    /// Pictures whose feature maps were found in the cache so far.
    pub fn recalled(&self) -> usize {
        self.recalled.load(Ordering::Relaxed)
    }

    /// The feature map of a picture that was prepared for this encoder.
    ///
    /// # Errors
    /// Those of [`EncoderField::new`] and [`EncoderField::feature_map`].
    pub fn feature_map(&self, picture: &Prepared) -> Result<FeatureMap> {
        let keyed = (self.cache.as_deref()).map(|cache| {
            (
                cache,
                FeatureKey::new(&self.encoder, &self.readout, picture),
            )
        });
        if let Some((cache, key)) = &keyed
            && let Some(map) = cache.get(key)
        {
            self.recalled.fetch_add(1, Ordering::Relaxed);
            return Ok(map);
        }
        let field = EncoderField::new(Arc::clone(&self.encoder), self.readout.clone(), picture);
        let map = field?.feature_map()?;
        self.passes.fetch_add(1, Ordering::Relaxed);
        if let Some((cache, key)) = &keyed {
            cache.put(key, &map);
        }
        Ok(map)
    }

    /// The whole photograph, prepared as the encoder's checkpoint expects, and its edit.
    ///
    /// # Errors
    /// Those of the preparation, the edit and the encoder.
    pub fn pair(&self, photo: &Photo, edit: Edit<'_>) -> Result<EncodedPair> {
        let recipe = &self.encoder.spec().preprocessing;
        let (prepared, edited_picture, mut steps) = match edit {
            Edit::By(manipulations) => {
                let prepared = recipe.apply(photo)?;
                let stream = stream(&photo.sha256);
                let edited = edit_in_order(manipulations, &Picture::from(&prepared), stream)?;
                (prepared, edited, photo.treatment.clone())
            }
            Edit::To(edited) => {
                let (photo, edited) = pairs::reconcile(photo, edited)?;
                let edited = Picture::from(&recipe.apply(&edited)?);
                (recipe.apply(&photo)?, edited, photo.treatment)
            }
        };
        steps.push(prepared.steps.clone());
        Ok(EncodedPair {
            features: Pair {
                original: self.feature_map(&prepared)?,
                edited: self.feature_map(&planes(&edited_picture))?,
            },
            original_picture: Picture::from(&prepared),
            edited_picture,
            steps,
        })
    }

    /// Random crops of a photograph at the encoder's input side, each with its edit: the same crop of the edited photograph, or
    /// the manipulations of the crop. The crops follow from their seed and the photograph's file alone.
    ///
    /// # Errors
    /// As [`StageEncoder::pair`], and those of [`CropSet::squares`].
    pub fn crop_pairs(&self, photo: &Photo, edit: Edit<'_>, crops: &CropSet) -> Result<Vec<Pair>> {
        let side = self.encoder.spec().side_px;
        let reconciled = match edit {
            Edit::By(_) => None,
            Edit::To(edited) => Some(pairs::reconcile(photo, edited)?),
        };
        let original = reconciled.as_ref().map_or(photo, |(original, _)| original);
        let squares = crops.squares(original, stream(&photo.sha256))?;
        let pair = |(number, square): (usize, &crate::images::crop::Square)| {
            let picture = square.cut(original, side)?;
            let edited = match (edit, &reconciled) {
                (Edit::By(manipulations), _) => {
                    // Noise of its own, as a picture of its own.
                    let name = sha256_hex(format!("{} {number}", photo.sha256).as_bytes());
                    edit_in_order(manipulations, &picture, stream(&name))?
                }
                (Edit::To(edited), None) => square.cut(edited, side)?,
                (Edit::To(_), Some((_, edited))) => square.cut(edited, side)?,
            };
            Ok(Pair {
                original: self.feature_map(&planes(&picture))?,
                edited: self.feature_map(&planes(&edited))?,
            })
        };
        squares.iter().enumerate().map(pair).collect()
    }
}

/// A picture at an encoder's input side as the encoder takes it.
fn planes(picture: &Picture) -> Prepared {
    Prepared {
        side_px: picture.width(),
        pixels: picture.planes().into(),
        steps: String::new(),
    }
}

/// The number of a photograph, from which its noise and its crops are drawn: of its own file, so that they are the same
/// in every set of photographs.
fn stream(sha256: &str) -> u64 {
    sha256
        .get(..16)
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .unwrap_or_default()
}
