//! Photographs and their edits as feature maps, for `etascope fit` and `etascope edit`.

use std::sync::Arc;

use crate::Result;
use crate::encoders::Readout;
use crate::encoders::registry::LoadedEncoder;
use crate::features::FeatureMap;
use crate::geometry::encoder_field::EncoderField;
use crate::images::manipulations::edit_in_order;
use crate::images::{Manipulation, Photo, Picture, Prepared};

/// A stage of an encoder, and what is done to the pictures that it sees.
pub(super) struct Pictures<'a> {
    pub(super) encoder: Arc<LoadedEncoder>,
    /// Index of the stage.
    pub(super) stage: usize,
    pub(super) manipulations: &'a [Manipulation],
}

/// A photograph and its edit as the encoder sees them, with their feature maps.
pub(super) struct Pair {
    pub(super) original: FeatureMap,
    pub(super) edited: FeatureMap,
    pub(super) original_picture: Picture,
    pub(super) edited_picture: Picture,
    /// Decoding and preparation, for people.
    pub(super) steps: Vec<String>,
}

impl Pictures<'_> {
    /// Edits the photograph at the encoder's own input size, in 8-bit grey levels, and encodes both.
    pub(super) fn pair(&self, photo: &Photo) -> Result<Pair> {
        let prepared = self.encoder.spec().preprocessing.apply(photo)?;
        let original_picture = Picture::from(&prepared);
        let edited_picture =
            edit_in_order(self.manipulations, &original_picture, stream(&photo.sha256))?;
        let edited = Prepared {
            side_px: prepared.side_px,
            pixels: edited_picture.planes().into(),
            steps: String::new(),
        };
        let mut steps = photo.treatment.clone();
        steps.push(prepared.steps.clone());
        Ok(Pair {
            original: self.encoded(&prepared)?,
            edited: self.encoded(&edited)?,
            original_picture,
            edited_picture,
            steps,
        })
    }

    fn encoded(&self, prepared: &Prepared) -> Result<FeatureMap> {
        let readout = Readout::Stage(self.stage);
        EncoderField::new(Arc::clone(&self.encoder), readout, prepared)?.feature_map()
    }
}

/// The number of a photograph, from which its noise is drawn: of its own file, so that an edit of it is the same
/// in every set of photographs.
fn stream(sha256: &str) -> u64 {
    sha256
        .get(..16)
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .unwrap_or_default()
}
