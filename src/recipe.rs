//! What to compute, as plain data: the same value drives the window, the command line and, later, a
//! session file.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::encoders::Readout;
pub use crate::encoders::WeightsKind;
use crate::geometry::directions::DirectionFamily;
pub use crate::geometry::maps::MapFamily;
use crate::geometry::spectrum::SpectrumMethod;
use crate::images::Manipulation;

/// How r_η is estimated from the same forward passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Estimator {
    /// Displacements corrected by ‖Ju‖² of the same directions, over the trace of JᵀJ: small error
    /// at every scale (ours).
    #[default]
    ControlVariate,
    /// Ratio of means with exact JVPs on the first directions of the set as denominator: the
    /// estimator of Szymkowiak, Pałubicki and Adamczewski (2026, arXiv 2609.39115).
    Paper,
}

/// How tr(JᵀJ) is obtained for the control-variate estimator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceMethod {
    /// Hutch++ (Meyer, Musco, Musco and Woodruff 2021) on JJᵀ: exact on a `sketch`-dimensional leading subspace, `probes` random probes in
    /// its complement.
    HutchPlusPlus {
        /// Dimension of the leading subspace.
        sketch: usize,
        /// Random probes in its complement.
        probes: usize,
    },
    /// Σ‖Jᵀeᵢ‖² over all d_Z coordinates.
    Exact,
}

/// Default Hutch++ sizes: 96 products with Jᵀ had an error of 0.8–0.9 % on EfficientNet-Lite0 (ours).
pub const DEFAULT_TRACE: TraceMethod = TraceMethod::HutchPlusPlus {
    sketch: 32,
    probes: 32,
};

/// Everything that determines one singular spectrum apart from the photograph and the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpectrumRecipe {
    /// Registry name of the encoder.
    pub encoder: String,
    /// Trained parameters or the random twin.
    pub weights: WeightsKind,
    /// Which output of the encoder is the feature Φ whose Jacobian is taken.
    pub readout: Readout,
    /// All singular values or the leading ones.
    pub method: SpectrumMethod,
    /// Seed of the randomised search; an exact spectrum does not depend on it.
    pub seed: u64,
    /// Seed of a dither of the photograph, if it is dithered.
    pub dither_seed: Option<u64>,
}

/// The photographs that a map is learnt from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LearningSet {
    /// Those that come with the program, without the current one.
    #[default]
    Bundled,
    /// The pictures of a folder, without the current one.
    Folder(PathBuf),
    /// The originals of a folder with their edits by an outside editor, matched by name; the current photograph, which must be one
    /// of them, is left out. What is done to the pictures is then not ours, and no manipulation is named.
    Pairs(PathBuf),
    /// The current photograph alone, by its random crops: scores at it are then those of training.
    Own,
}

/// Everything that determines the map of an edit apart from the photograph and the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EditRecipe {
    /// Registry name of the encoder; always its trained parameters.
    pub encoder: String,
    /// Index of the stage whose feature maps are mapped.
    pub stage: usize,
    /// What is done to the pictures, in this order; without effect for [`LearningSet::Pairs`].
    pub manipulations: Vec<Manipulation>,
    /// What the map is learnt from.
    pub learnt_on: LearningSet,
    /// Random crops of each training photograph, besides the photograph as the encoder sees it.
    pub crops: usize,
    /// Seed of the crops and of the split by photograph.
    pub seed: u64,
    /// Kind of map.
    pub family: MapFamily,
    /// Its penalty; `None` for the one with the least error on validation photographs.
    pub gamma: Option<f64>,
    /// Whether vectors are normalised by channel first (Krey, Neukirch, Strodthoff 2026).
    pub normalised: bool,
}

/// Everything that determines one response profile apart from the photograph and the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfileRecipe {
    /// Registry name of the encoder, for example `efficientnet_lite0`.
    pub encoder: String,
    /// Trained parameters or the random twin.
    pub weights: WeightsKind,
    /// Which output of the encoder is the feature Φ.
    pub readout: Readout,
    /// Distribution of the directions u.
    pub family: DirectionFamily,
    /// Seed of the one direction set shared by all scales.
    pub seed: u64,
    /// Perturbation magnitudes η: L2 norms in raw [0, 1] pixels, ascending.
    pub etas_l2: Vec<f64>,
    /// How r_η is estimated.
    pub estimator: Estimator,
    /// How the trace is obtained; ignored by [`Estimator::Paper`].
    pub trace: TraceMethod,
    /// Most antithetic pairs (u and −u) at a scale.
    pub pairs_max: usize,
    /// Directions with exact JVPs for [`Estimator::Paper`]; the control variate uses one per pair.
    pub jvps: usize,
    /// A scale stops when its relative standard error is at most this; 0 never stops early.
    pub target_error: f64,
    /// Seed of a ±0.5/255 dither of the photograph, which breaks ties on saturated pixels.
    pub dither_seed: Option<u64>,
}

/// Named sets of sampling parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// A first curve at once, sharpening to about 1 %.
    #[default]
    Interactive,
    /// The stated protocol of Szymkowiak, Pałubicki and Adamczewski (2026): 17 scales, 1,024
    /// directions with their antipodes, 256 JVPs.
    Paper,
}

impl Preset {
    /// Sets the sampling fields of `recipe`; encoder, weights, readout, family and seed stay.
    pub fn apply(self, recipe: &mut ProfileRecipe) {
        match self {
            Self::Interactive => {
                recipe.estimator = Estimator::ControlVariate;
                recipe.trace = DEFAULT_TRACE;
                recipe.pairs_max = 64;
                recipe.jvps = 64;
                recipe.target_error = 0.01;
            }
            Self::Paper => {
                recipe.estimator = Estimator::Paper;
                recipe.trace = DEFAULT_TRACE;
                recipe.pairs_max = 1024;
                recipe.jvps = 256;
                recipe.target_error = 0.0;
            }
        }
    }
}

/// The paper's ladder for an input of `side_px` pixels: 17 log-spaced η, 10⁻²…10² at 224 px, scaled
/// by the side so that the per-pixel amplitude is the same (10^−2.85…10^1.15 at 32 px, §1 table).
pub fn paper_etas(side_px: usize) -> Vec<f64> {
    let factor = side_px as f64 / 224.0;
    (0..17)
        .map(|i| factor * 10f64.powf(-2.0 + 0.25 * i as f64))
        .collect()
}

/// Pixel RMS of a perturbation of L2 norm `eta_l2` over `len` pixel values, in grey levels of 255.
pub fn grey_rms(eta_l2: f64, len: usize) -> f64 {
    255.0 * eta_l2 / (len as f64).sqrt()
}

impl ProfileRecipe {
    /// The interactive recipe for an encoder with inputs of `side_px` pixels a side.
    pub fn interactive(encoder: &str, weights: WeightsKind, side_px: usize) -> Self {
        let mut recipe = Self {
            encoder: encoder.to_owned(),
            weights,
            readout: Readout::Pooled,
            family: DirectionFamily::Isotropic,
            seed: 0,
            etas_l2: paper_etas(side_px),
            estimator: Estimator::ControlVariate,
            trace: DEFAULT_TRACE,
            pairs_max: 0,
            jvps: 0,
            target_error: 0.0,
            dither_seed: None,
        };
        Preset::Interactive.apply(&mut recipe);
        recipe
    }

    /// The same recipe for the other kind of weights.
    pub fn with_weights(&self, weights: WeightsKind) -> Self {
        Self {
            weights,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ladder_matches_the_papers_table_at_both_sizes() {
        let at = |side: usize| {
            let etas = paper_etas(side);
            (etas.len(), etas[0].log10(), etas[16].log10())
        };
        let (n, low, high) = at(224);
        assert_eq!(n, 17);
        assert!((low + 2.0).abs() < 1e-12 && (high - 2.0).abs() < 1e-12);
        // The table gives two decimals.
        let (_, low, high) = at(32);
        assert!((low + 2.85).abs() < 0.006 && (high - 1.15).abs() < 0.006);
    }

    #[test]
    fn grey_levels_match_the_papers_table() {
        let len = 3 * 224 * 224;
        assert!((grey_rms(1.0, len) - 0.66).abs() < 0.005);
        assert!((grey_rms(100.0, len) - 66.0).abs() < 0.5);
    }
}
