//! What jobs need from the compute side: a device, encoders on it, and a field at a photograph.

use std::sync::Arc;

use crate::device::{DeviceChoice, DeviceInfo, SelfCheck};
use crate::encoders::EncoderSpec;
use crate::features::FeatureMap;
use crate::geometry::Field;
use crate::geometry::decode::{DecoderHeader, Inversion};
use crate::geometry::encoding::{Edit, EncodedPair};
use crate::geometry::maps::trained::Pair;
use crate::images::crop::CropSet;
use crate::images::{Photo, Picture, Prepared};
use crate::recipe::{ProfileRecipe, WeightsKind};
use crate::report::LpipsNote;
use crate::{Error, ErrorKind, Result};

/// What to do about a device that is absent, lost or wrong.
pub const DEVICE_REMEDY: &str =
    "Choose the device “cpu” in the settings, or start with `--device cpu`";

/// An encoder at a photograph.
pub struct Subject {
    /// The encoder.
    pub spec: Arc<EncoderSpec>,
    /// SHA-256 of the weights file, or the seed of the random ones.
    pub weights_id: String,
    /// The photograph as the encoder sees it.
    pub prepared: Arc<Prepared>,
    /// The five classes with the largest probability, trained encoders only: label and probability.
    pub top5: Vec<(String, f32)>,
    /// Comparison of the device with the CPU; `None` on the CPU itself.
    pub self_check: Option<SelfCheck>,
    /// The map Φ at the photograph.
    pub field: Box<dyn Field>,
}

/// What an encoder makes of a picture.
#[derive(Clone, Debug)]
pub struct Look {
    /// Class scores; `None` without a classifier.
    pub logits: Option<Vec<f64>>,
    /// The feature map of the deepest stage.
    pub deepest: FeatureMap,
}

/// A stage of an encoder: pictures in, feature maps out, and back.
pub trait StageView {
    /// The encoder.
    fn spec(&self) -> &EncoderSpec;

    /// SHA-256 of its weights file.
    fn weights_id(&self) -> &str;

    /// A photograph and its edit as the encoder sees them, with their feature maps.
    ///
    /// # Errors
    /// Where an edit makes no sense, the device fails or a value is not finite.
    fn pair(&mut self, photo: &Photo, edit: Edit<'_>) -> Result<EncodedPair>;

    /// The feature maps of random crops of a photograph and of their edits.
    ///
    /// # Errors
    /// As [`StageView::pair`].
    fn crop_pairs(&mut self, photo: &Photo, edit: Edit<'_>, crops: &CropSet) -> Result<Vec<Pair>>;

    /// What the whole encoder makes of a picture of its input side.
    ///
    /// # Errors
    /// Where the device fails or a value is not finite.
    fn look(&mut self, picture: &Picture) -> Result<Look>;

    /// The picture that the stage's decoder draws of a feature map; `None` where there is no decoder for it.
    ///
    /// # Errors
    /// Where the device fails or the feature map does not fit.
    fn decode(&mut self, features: &FeatureMap) -> Result<Option<Picture>>;

    /// What the decoder is, if there is one.
    fn decoder(&self) -> Option<&DecoderHeader>;

    /// LPIPS between two pictures of one size; `None` without its weights.
    ///
    /// # Errors
    /// Where the device fails or the sizes differ.
    fn lpips(&mut self, picture: &Picture, target: &Arc<Picture>) -> Result<Option<f64>>;

    /// The weights of LPIPS, or why there are none.
    fn lpips_note(&self) -> LpipsNote;

    /// Pictures that were encoded so far, and those whose feature maps were found on disk.
    fn passes(&self) -> [usize; 2];

    /// A search for a picture with these features, in the order of encoders, from a grey one.
    ///
    /// # Errors
    /// Where the features do not fit or are all zero.
    fn invert(&mut self, target: &[f64]) -> Result<Inversion>;
}

/// The compute side of the worker. It lives on the worker thread and owns every tensor.
///
/// Each method is one step of work. A method may panic: the worker then calls
/// [`Engine::recover`] before anything else.
pub trait Engine {
    /// Moves to a device. The encoders of the old one are dropped.
    ///
    /// # Errors
    /// Where the device is absent or does not start; the old device then stays in use.
    fn use_device(&mut self, choice: &DeviceChoice) -> Result<DeviceInfo>;

    /// Memory that the weights of an encoder take once they are loaded, in bytes.
    ///
    /// # Errors
    /// Unknown encoder.
    fn weights_bytes(&self, encoder: &str) -> Result<u64>;

    /// Drops an encoder, if it is loaded.
    fn unload(&mut self, encoder: &str, weights: WeightsKind);

    /// Makes an encoder ready, unless it is already.
    ///
    /// # Errors
    /// Unknown encoder, unreadable weights, no device in use.
    fn load(&mut self, encoder: &str, weights: WeightsKind) -> Result<()>;

    /// Compares an encoder that was loaded with the CPU's answer on a fixed input, unless that was
    /// done already; `None` on the CPU itself.
    ///
    /// # Errors
    /// Where the device fails.
    fn self_check(&mut self, encoder: &str, weights: WeightsKind) -> Result<Option<SelfCheck>>;

    /// Prepares a photograph for the recipe's encoder, which was loaded, and looks at it once.
    ///
    /// # Errors
    /// Where the recipe does not fit the encoder, or the device fails.
    fn prepare(&mut self, photo: &Photo, recipe: &ProfileRecipe) -> Result<Subject>;

    /// A stage of an encoder that was loaded, trained.
    ///
    /// # Errors
    /// Where the encoder has no such stage.
    fn stage(&mut self, encoder: &str, stage: usize) -> Result<Box<dyn StageView>>;

    /// After a panic or a failure of the device: drops every encoder and tries whether the device
    /// still computes.
    ///
    /// # Errors
    /// Where it does not: the device is lost and given up.
    fn recover(&mut self) -> Result<()>;
}

/// The error of work that needs a device while none is in use.
pub(super) fn no_device(what: impl Into<String>) -> Error {
    Error::new(
        ErrorKind::Device,
        what,
        "no compute device is in use",
        DEVICE_REMEDY,
    )
}
