//! What the worker says of an edit, as plain data.

use std::sync::Arc;

use crate::Result;
use crate::features::FeatureMap;
use crate::geometry::decode::{DecoderHeader, Iterate};
use crate::geometry::maps::readout::{BiasReadout, DisplacementReadout};
use crate::geometry::maps::{Cut, GammaChoice, MapFile, MapKind, Part};
use crate::geometry::spectrum::SpectrumReadout;
use crate::images::Picture;
use crate::metrics::agreement::agreement;
use crate::metrics::cosine::{cosines, masked_median_cosine, median_cosine};
use crate::metrics::divergence::{Prediction, jensen_shannon_bits};
use crate::metrics::mse::{features_mse, mse, psnr};
use crate::metrics::ssim::{Window, ssim};
use crate::recipe::EditRecipe;
use crate::report::LpipsNote;
use crate::worker::engine::Look;

/// A photograph's part in a fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// File name.
    pub name: String,
    /// What it is used for.
    pub part: Part,
}

/// How near a feature map comes to that of the edited picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeatureScores {
    /// MdnCS (features): the median over positions of the cosine; `None` where none is defined.
    pub mdncs: Option<f64>,
    /// The same over the positions that the edit touches; `None` where it touches none.
    pub mdncs_masked: Option<f64>,
    /// Mean squared difference of values, in the features' own units.
    pub mse: f64,
}

impl FeatureScores {
    /// Compares a feature map with that of the edited picture; `mask` marks the positions that the edit touches.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Request`] where the shapes differ.
    pub fn of(features: &FeatureMap, edited: &FeatureMap, mask: &[bool]) -> Result<Self> {
        Ok(Self {
            mdncs: median_cosine(features, edited)?,
            mdncs_masked: masked_median_cosine(features, edited, mask)?,
            mse: features_mse(features, edited)?,
        })
    }
}

/// How near a picture comes to the edited one, in 8-bit grey levels, at the picture's own side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PictureScores {
    /// SSIM over uniform windows of 7 × 7 pixels.
    pub ssim_uniform: Option<f64>,
    /// SSIM over Gaussian windows, σ 1.5 pixels.
    pub ssim_gaussian: Option<f64>,
    /// PSNR in dB; `None` where the pictures are equal.
    pub psnr_db: Option<f64>,
    /// Mean squared difference in grey levels.
    pub mse: f64,
    /// LPIPS v0.1 over AlexNet; `None` without its weights.
    pub lpips: Option<f64>,
}

impl PictureScores {
    /// Compares two pictures of one size; `lpips` is what that metric says of them.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Request`] where the sizes differ.
    pub fn of(picture: &Picture, target: &Picture, lpips: Option<f64>) -> Result<Self> {
        Ok(Self {
            ssim_uniform: ssim(picture, target, Window::Uniform)?,
            ssim_gaussian: ssim(picture, target, Window::Gaussian)?,
            psnr_db: psnr(picture, target)?,
            mse: mse(picture, target)?,
            lpips,
        })
    }
}

/// How near a picture comes to the edited one once the encoder has seen both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EncodedScores {
    /// MdnCS (images): the median over positions of the cosine at the encoder's deepest stage; `None` where none is defined. The paper takes
    /// ConvNeXt-B's deepest stage for all encoders, we take the encoder's own.
    pub mdncs_images: Option<f64>,
    /// Jensen–Shannon divergence of the predicted classes in bits; `None` without a classifier.
    pub divergence_bits: Option<f64>,
    /// Whether the likeliest class is the same; `None` without a classifier.
    pub top1_agrees: Option<bool>,
}

impl EncodedScores {
    /// Compares what an encoder makes of two pictures.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Request`] where it is not one encoder; [`crate::ErrorKind::Numeric`] where a score is not finite.
    pub(super) fn of(picture: &Look, target: &Look) -> Result<Self> {
        let [p, q] = [picture, target].map(|look| look.logits.as_deref());
        let classes = p.zip(q);
        let predictions = classes.map(|(p, q)| {
            let (p, q) = (Prediction::from_logits(p)?, Prediction::from_logits(q)?);
            jensen_shannon_bits(&p, &q)
        });
        let agrees = classes.map(|(p, q)| agreement(q, p).map(|found| found.top1));
        Ok(Self {
            mdncs_images: median_cosine(&picture.deepest, &target.deepest)?,
            divergence_bits: predictions.transpose()?,
            top1_agrees: agrees.transpose()?,
        })
    }
}

/// A feature map seen as a picture, and how near that comes to the edited picture.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenFeature {
    /// The picture.
    pub picture: Arc<Picture>,
    /// Against the edited picture at the same side.
    pub scores: PictureScores,
    /// Against it as the encoder sees both.
    pub encoded: EncodedScores,
}

/// Feature maps as the decoder shows them. That of the edited picture says how near any map could come: the rest is
/// the decoder's own error.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The unedited feature map.
    pub original: SeenFeature,
    /// That of the edited picture.
    pub target: SeenFeature,
    /// The full map's.
    pub full: SeenFeature,
}

/// A cut at every rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// What is cut.
    pub cut: Cut,
    /// Singular values of what is cut, descending.
    pub values: Vec<f64>,
    /// What is read off them; `None` where all are zero.
    pub readout: Option<SpectrumReadout>,
    /// Ranks with their scores at this photograph, ascending, from 0 to C: every one of up to 128, else evenly in logarithmic terms.
    pub scores: Vec<(usize, FeatureScores)>,
}

impl Sweep {
    /// Share of Σσ² in the first `rank` values; `None` where all are zero.
    pub fn energy_kept(&self, rank: usize) -> Option<f64> {
        let energy = |values: &[f64]| values.iter().fold(0.0, |sum, value| sum + value * value);
        let total = energy(&self.values);
        let kept = energy(&self.values[..rank.min(self.values.len())]);
        (total > 0.0).then(|| kept / total)
    }
}

/// A fitted map at the current photograph.
#[derive(Clone, Debug)]
pub struct EditRun {
    /// What was asked.
    pub recipe: EditRecipe,
    /// File name of the photograph.
    pub image: String,
    /// SHA-256 of its file.
    pub image_sha256: String,
    /// Decoding and preparation, for people.
    pub image_steps: Vec<String>,
    /// Name of the encoder for people.
    pub encoder_title: String,
    /// SHA-256 of its weights.
    pub weights_id: String,
    /// Name of the compute device.
    pub device: String,
    /// Name of the stage.
    pub stage: String,
    /// Channels C, rows and columns of the mapped feature map.
    pub shape: [usize; 3],
    /// The photograph as the encoder sees it.
    pub original: Arc<Picture>,
    /// Its edit.
    pub target: Arc<Picture>,
    /// Positions that the edit touches, turns and mirrors not counted, row after row.
    pub mask: Arc<[bool]>,
    /// What the photograph on screen was used for.
    pub part: Part,
    /// The other photographs.
    pub members: Vec<Member>,
    /// Pairs of pictures that the map was fitted to.
    pub pairs: usize,
    /// Pairs of vectors in them.
    pub vectors: usize,
    /// The kind of map, with its γ.
    pub kind: MapKind,
    /// How γ was chosen; `None` where it was given or there is none.
    pub choice: Option<GammaChoice>,
    /// The unedited features, which every map has to beat.
    pub identity: FeatureScores,
    /// The same on the turned grid.
    pub reorder: FeatureScores,
    /// The whole map.
    pub full: FeatureScores,
    /// The cosine at each position of the unedited features on the turned grid, row after row; NaN where it is undefined.
    pub identity_cosines: Arc<[f32]>,
    /// Cosine below which the twentieth part of these lies, rounded down to tenths, from 0 to 0.9: where a scale of cosines begins, so
    /// that what a map gains is seen and the scale stays while the rank is dragged.
    pub scale_low: f32,
    /// The cosine at each position under the whole map, row after row; NaN where it is undefined.
    pub full_cosines: Arc<[f32]>,
    /// How much of the whole map's answer its bias is; `None` for a map without a matrix.
    pub bias: Option<BiasReadout>,
    /// How the whole map's displacements compare with those of the edit.
    pub displacement: DisplacementReadout,
    /// What was found of pairs from an outside editor, for people.
    pub outside: Option<String>,
    /// The edit operator's and W's; empty for a map without a matrix.
    pub sweeps: Vec<Sweep>,
    /// Through the decoder; `None` where there is none for this stage.
    pub seen: Option<Seen>,
    /// Every kind of map on held-out photographs, γ chosen anew for each: name and mean scores.
    pub table: Vec<(String, FeatureScores)>,
    /// Photographs behind `table`.
    pub table_photographs: usize,
    /// The decoder, if there is one for the stage.
    pub decoder: Option<DecoderHeader>,
    /// Whether LPIPS can be computed.
    pub lpips: LpipsNote,
    /// Pictures that were encoded.
    pub passes: usize,
    /// Pictures whose feature maps were found on disk.
    pub recalled: usize,
    /// The map with what it was fitted to.
    pub file: Arc<MapFile>,
}

impl EditRun {
    /// Whether no photograph of the set is held out.
    pub fn is_all_learnt(&self) -> bool {
        (self.members.iter()).all(|member| member.part != Part::HeldOut)
    }

    /// The sweep of a cut.
    pub fn sweep(&self, cut: Cut) -> Option<&Sweep> {
        self.sweeps.iter().find(|sweep| sweep.cut == cut)
    }
}

/// A fitted map cut to one rank at the current photograph.
#[derive(Clone, Debug, PartialEq)]
pub struct CutRun {
    /// What was fitted.
    pub recipe: EditRecipe,
    /// What is cut.
    pub cut: Cut,
    /// Rank k.
    pub rank: usize,
    /// How near the features come.
    pub scores: FeatureScores,
    /// The cosine at each position, row after row; NaN where it is undefined.
    pub cosines: Arc<[f32]>,
    /// How its displacements compare with those of the edit.
    pub displacement: DisplacementReadout,
    /// Through the decoder; `None` where there is none for this stage.
    pub seen: Option<SeenFeature>,
}

/// Pictures found by gradient for mapped features.
#[derive(Clone, Debug, PartialEq)]
pub struct InvertedRun {
    /// What is cut.
    pub cut: Cut,
    /// Rank k.
    pub rank: usize,
    /// For the unedited features, as far as it is.
    pub original: Option<SeenFeature>,
    /// For the features mapped at that rank, as far as it is.
    pub mapped: Option<SeenFeature>,
    /// Where the searches stand: that for the unedited features and that for the mapped ones.
    pub iterates: [Option<Iterate>; 2],
}

/// Ranks from 0 to `full`: every one of the first few, then each `ratio` times the one before.
pub(super) fn spread_ranks(full: usize, ratio: f64) -> Vec<usize> {
    let mut ranks = vec![0];
    let mut rank = 1.0_f64;
    while (rank.round() as usize) < full {
        ranks.push(rank.round() as usize);
        rank = (rank * ratio).max(rank + 1.0);
    }
    ranks.push(full);
    ranks.dedup();
    ranks
}

/// Where a scale of cosines begins, see [`EditRun::scale_low`].
pub(super) fn scale_low(cosines: &[f32]) -> f32 {
    let mut defined: Vec<f32> = cosines
        .iter()
        .copied()
        .filter(|value| value.is_finite())
        .collect();
    defined.sort_by(f32::total_cmp);
    let low = defined.get(defined.len() / 20).copied().unwrap_or(0.0);
    ((10.0 * low).floor() / 10.0).clamp(0.0, 0.9)
}

/// The cosine at each position as single numbers, NaN where it is undefined.
pub(super) fn cosine_grid(features: &FeatureMap, edited: &FeatureMap) -> Result<Arc<[f32]>> {
    let cosines = cosines(features, edited)?.into_iter();
    Ok(cosines
        .map(|cosine| cosine.map_or(f32::NAN, |cosine| cosine as f32))
        .collect())
}
