//! What ⓘ opens: formula, unit, source and one plain sentence for every quantity on screen.

use crate::geometry::summary::Shape;

/// The explanation of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Name of the quantity.
    pub title: &'static str,
    /// How it is computed.
    pub formula: &'static str,
    /// Its unit, or that it has none.
    pub unit: &'static str,
    /// Where it is defined; *ours* where the source is silent.
    pub source: &'static str,
    /// What it says, in one sentence.
    pub sentence: &'static str,
}

const PAPER: &str = "Szymkowiak, Pałubicki, Adamczewski 2026 (arXiv 2609.39115)";
const MAPS: &str = "Krey, Neukirch, Strodthoff 2026";
const OUR_CHOICE: &str = "ours";
const OURS: &str = "ours; the paper shows curves only";

/// The response profile.
pub const RESPONSE: Explanation = Explanation {
    title: "Response r",
    formula: "mean ‖Φ(x+ηu) − Φ(x)‖² / (η² mean ‖Ju‖²), u on the unit sphere",
    unit: "none: a ratio; 1 is what the linearisation predicts",
    source: PAPER,
    sentence: "How much farther the feature moves than the encoder’s derivative at the photograph \
               predicts, when the pixels are perturbed by noise of norm η.",
};

/// The workspace of edits.
pub const EDIT: Explanation = Explanation {
    title: "An edit as a map between features",
    formula: "ŷ = W(x − x̄) + ȳ for every position of the stage’s feature map",
    unit: "the feature’s own",
    source: MAPS,
    sentence: "One map is fitted from the features of pictures to those of their edits, applied to this photograph’s \
               features, cut to rank k and seen again as a picture; the picture of the unedited features \
               shows what the way back alone costs.",
};

/// The rank.
pub const RANK: Explanation = Explanation {
    title: "Rank k",
    formula: "E_k = U_k S_k V_kᵀ of E = W − I: ŷ = x + E_k(x − x̄) + (ȳ − x̄); or W_k of W, the bias kept",
    unit: "singular directions kept, 0 to C",
    source: "W: Krey, Neukirch, Strodthoff 2026; W − I: ours",
    sentence: "How many singular directions of the map are kept, those of the largest singular values first.",
};

/// Singular values of a map.
pub const MAP_SPECTRUM: Explanation = Explanation {
    title: "Singular values of the map",
    formula: "σ_i of E = W − I, or of W",
    unit: "none",
    source: "W: Krey, Neukirch, Strodthoff 2026; W − I: ours",
    sentence: "How strongly the map acts along each of its singular directions; filled points are kept at rank k.",
};

/// Scores of an edit.
pub const EDIT_SCORES: Explanation = Explanation {
    title: "Scores",
    formula: "MdnCS: median over positions of cos(ŷ, y); SSIM, PSNR, MSE between decoded and edited picture",
    unit: "none; dB for PSNR; grey levels squared for MSE",
    source: MAPS,
    sentence: "How near the mapped features, and the picture decoded from them, come to those of the edited photograph; \
               no picture can come nearer than the one decoded from the target’s own features.",
};

/// The table of maps.
pub const EDIT_TABLE: Explanation = Explanation {
    title: "All maps on held-out photographs",
    formula: "mean over photographs of MdnCS (features) and of the mean squared error of features",
    unit: "none; the feature’s own, squared",
    source: MAPS,
    sentence: "Every kind of map fitted to the same vectors, γ chosen on validation photographs, scored on photographs that \
               none of them has seen; the identity changes nothing.",
};

/// The kind of map.
pub const MAP_KIND: Explanation = Explanation {
    title: "Kind of map",
    formula: "identity x; additive x + δ; linear, ridge, Procrustes W(x − x̄) + ȳ",
    unit: "none",
    source: "Krey, Neukirch, Strodthoff 2026; ridge toward the identity: ours",
    sentence: "What the map from features to edited features may be; ridge toward the identity falls back to no change \
               where there is little to learn from.",
};

/// The penalty.
pub const GAMMA: Explanation = Explanation {
    title: "Penalty γ",
    formula: "ridge: + γ‖W‖²; toward the identity: + γ tr(G)/C ‖W − I‖²",
    unit: "of the Gram matrix; of its mean diagonal",
    source: "ridge: Krey, Neukirch, Strodthoff 2026, γ = 1; toward the identity: ours",
    sentence: "How much the map is held back; moving it solves again without encoding anything.",
};

/// The set.
pub const LEARNT_ON: Explanation = Explanation {
    title: "Learnt on",
    formula: "photographs split by seed: 5 % but at least one choose γ, and of five or more 20 % are held out",
    unit: "photographs",
    source: OUR_CHOICE,
    sentence: "The photographs whose features the map is fitted to; the one on screen is never among them, unless its own \
               crops are chosen.",
};

/// Random crops.
pub const CROPS: Explanation = Explanation {
    title: "Random crops",
    formula: "squares of 0.4 to 1 times the shorter side, half of them mirrored",
    unit: "crops of each training photograph",
    source: OUR_CHOICE,
    sentence: "More pictures to learn from; they are cut from training photographs alone.",
};

/// Normalised vectors.
pub const NORMALISED: Explanation = Explanation {
    title: "Normalised channels",
    formula: "(x − mean)/(std + 10⁻⁶) by channel over unedited training vectors, undone after the map",
    unit: "standard deviations",
    source: MAPS,
    sentence: "Lets every channel count alike in the fit.",
};

/// Displacement and prediction.
pub const DISPLACEMENT: Explanation = Explanation {
    title: "Displacement and prediction",
    formula: "mean ‖Φ(x+ηu) − Φ(x)‖² and η² mean ‖Ju‖²",
    unit: "squared units of the feature",
    source: PAPER,
    sentence: "The measured squared movement of the feature and its linear prediction; \
               r is the ratio of the two curves.",
};

/// The magnitude.
pub const ETA: Explanation = Explanation {
    title: "Magnitude η",
    formula: "η = ‖x′ − x‖ over all 3HW pixel values in [0, 1]",
    unit: "L2 norm; as pixel RMS it is 255 η/√(3HW) grey levels",
    source: PAPER,
    sentence: "The size of the perturbation; perturbed images are never clipped, \
               so what the encoder sees can lie outside what a screen can show.",
};

/// The plateau.
pub const PLATEAU: Explanation = Explanation {
    title: "Plateau",
    formula: "median of r over the small scales before the first departure above 5 %",
    unit: "none",
    source: OURS,
    sentence: "Close to 1 when the encoder is linear for tiny perturbations; \
               elsewhere the profile is not to be trusted.",
};

/// The onset.
pub const ONSET: Explanation = Explanation {
    title: "Onset",
    formula: "first η with r > 1.1, between scales linear in log η",
    unit: "η, L2",
    source: OURS,
    sentence: "Where the encoder begins to respond more strongly than its linearisation.",
};

/// The height of the peak.
pub const PEAK: Explanation = Explanation {
    title: "Peak",
    formula: "vertex of the parabola in log η through the largest r and its neighbours",
    unit: "r: none; η: L2",
    source: OURS,
    sentence: "The largest response and the magnitude at which it occurs.",
};

/// The width.
pub const WIDTH: Explanation = Explanation {
    title: "Half-height width",
    formula: "distance in log₁₀ η between the places where r = 1 + (r* − 1)/2",
    unit: "decades of η",
    source: OURS,
    sentence: "Over how many powers of ten of η the response stays high.",
};

/// The crossing.
pub const CROSSING: Explanation = Explanation {
    title: "Crossing",
    formula: "first η after the peak with r < 1",
    unit: "η, L2",
    source: OURS,
    sentence: "From here on the feature moves less than the linearisation predicts.",
};

/// The end.
pub const END: Explanation = Explanation {
    title: "End of the ladder",
    formula: "r at the largest reliable η",
    unit: "none",
    source: OURS,
    sentence: "Where the curve is cut off: beyond it, r may go on falling or rise again.",
};

/// The shape word.
pub const SHAPE: Explanation = Explanation {
    title: "Shape",
    formula: Shape::RULE,
    unit: "a word",
    source: OURS,
    sentence: "The profile in a word, by the rule above.",
};

/// The readout.
pub const READOUT: Explanation = Explanation {
    title: "Readout Φ",
    formula: "pooled: mean over positions of the last feature map; logits: class scores; \
              a stage: its whole feature map",
    unit: "—",
    source: PAPER,
    sentence: "Which output of the encoder is taken as its feature; the paper takes the pooled vector.",
};

/// The direction family.
pub const FAMILY: Explanation = Explanation {
    title: "Directions u",
    formula: "isotropic: normalised Gaussian noise; toward an image t: t − x; along a manipulation m: \
              m(x) − x, both normalised; every u is used with its antipode −u",
    unit: "unit L2 norm",
    source: "isotropic: the paper; all others: ours",
    sentence: "Along which directions the pixels are perturbed; \
               only isotropic ones can be compared with the paper.",
};

/// The sampling.
pub const PRESET: Explanation = Explanation {
    title: "Sampling",
    formula: "interactive: up to 64 pairs, control variate over tr(JᵀJ); \
              paper: 1,024 pairs, 17 scales, 256 JVPs",
    unit: "—",
    source: "interactive: ours; paper: arXiv 2609.39115",
    sentence: "Interactive sharpens to about 1 % in seconds; \
               paper repeats the published protocol and takes long.",
};

/// The dither.
pub const DITHER: Explanation = Explanation {
    title: "Dither",
    formula: "x + seeded uniform noise of ±0.5/255",
    unit: "grey levels",
    source: "ours",
    sentence: "Breaks the ties of saturated pixels, which bend the plateau away from 1.",
};

/// The twin.
pub const TWIN: Explanation = Explanation {
    title: "Random twin",
    formula: "the same architecture with its published random initialisation, seed recorded",
    unit: "—",
    source: PAPER,
    sentence: "Shows which part of the curve comes from training and which from the architecture.",
};

const EIGENDISTORTIONS: &str = "Berardino, Ballé, Laparra, Simoncelli 2017 (eigendistortions)";
const READ_OFF: &str = "Krey, Neukirch, Strodthoff 2026";

/// The singular spectrum.
pub const SPECTRUM: Explanation = Explanation {
    title: "Singular values σ of the Jacobian",
    formula: "J = ∂Φ/∂x = Σ σᵢ uᵢ vᵢᵀ, σ₁ ≥ σ₂ ≥ …; σᵢ² are the eigenvalues of JJᵀ",
    unit: "length of the feature per unit L2 norm of the pixels",
    source: EIGENDISTORTIONS,
    sentence: "How far the feature moves for a small step along each of the directions that the encoder tells \
               apart at this photograph, the most noticeable first.",
};

/// How the spectrum is found.
pub const SPECTRUM_METHOD: Explanation = Explanation {
    title: "Method",
    formula: "exact: all rows Jᵀeᵢ and the eigenvalues of JJᵀ; leading: randomised subspace iteration, 5 extra \
              dimensions, 2 power steps, each value with the bound ‖Jv − σu‖/√2",
    unit: "—",
    source: "Halko, Martinsson, Tropp 2011; sizes: ours",
    sentence: "Leading values come in seconds; only the whole spectrum has an entropy, ranks, energies and a \
               condition.",
};

/// A singular direction.
pub const SINGULAR_DIRECTION: Explanation = Explanation {
    title: "Singular directions v",
    formula: "Jvᵢ = σᵢuᵢ, ‖vᵢ‖ = 1; of v and −v the one whose largest entry is positive. Least: the random start \
              that is left after 32 multiplications by I − JᵀJ/σ₁²",
    unit: "unit L2 norm over all 3HW pixel values",
    source: EIGENDISTORTIONS,
    sentence: "The distortions of the photograph that the encoder notices most; the least one changes the pixels \
               as much and the feature hardly at all.",
};

/// The norm of the distortion.
pub const AMPLITUDE: Explanation = Explanation {
    title: "Distortion a",
    formula: "x + a·v with ‖v‖ = 1; the feature moves by about a·σ",
    unit: "L2 norm of the distortion; as pixel RMS it is 255 a/√(3HW) grey levels",
    source: EIGENDISTORTIONS,
    sentence: "How strongly the photograph on screen is distorted along the chosen direction; nothing is computed \
               anew.",
};

/// The number of values.
pub const VALUE_COUNT: Explanation = Explanation {
    title: "Number of values",
    formula: "of an exact spectrum the values above 10⁻⁶ σ₁, where f32 ends; else the leading ones that were asked \
              for",
    unit: "a number",
    source: "ours",
    sentence: "How many singular values are drawn; the feature has as many dimensions as the whole spectrum.",
};

/// Spectral entropy.
pub const ENTROPY: Explanation = Explanation {
    title: "Spectral entropy",
    formula: "−Σ p ln p, p = σ²/Σσ²",
    unit: "nats, from 0 to ln of the number of values",
    source: READ_OFF,
    sentence: "How evenly the energy is spread over the singular directions.",
};

/// Effective rank.
pub const EFFECTIVE_RANK: Explanation = Explanation {
    title: "Effective rank",
    formula: "exp(−Σ p ln p)",
    unit: "a number of directions",
    source: "Roy, Vetterli 2007",
    sentence: "As many equally strong directions would have the same entropy.",
};

/// Stable rank.
pub const STABLE_RANK: Explanation = Explanation {
    title: "Stable rank",
    formula: "Σσ²/σ₁²",
    unit: "a number of directions",
    source: "Rudelson, Vershynin 2007",
    sentence: "As many directions as strong as the first would have the same energy.",
};

/// Energy of the first values.
pub const ENERGY: Explanation = Explanation {
    title: "Energy of the first 1, 5 and 10",
    formula: "Σ σᵢ² over the first values / Σ σᵢ² over all",
    unit: "per cent",
    source: READ_OFF,
    sentence: "Which share of the mean squared response to small noise lies in the first directions.",
};

/// Condition.
pub const CONDITION: Explanation = Explanation {
    title: "Condition",
    formula: "σ₁/σ_C; none where the least value is rounding",
    unit: "none: a ratio",
    source: READ_OFF,
    sentence: "How much more the most noticeable direction moves the feature than the least of the spectrum.",
};

/// The error of leading values.
pub const SPECTRUM_ERROR: Explanation = Explanation {
    title: "Error",
    formula: "largest ‖Jv − σu‖/(√2 σ) of the leading values; an exact spectrum is good to rounding, 10⁻⁷ σ₁",
    unit: "per cent of the value",
    source: "Halko, Martinsson, Tropp 2011; bound: ours",
    sentence: "Within this distance of each value J has a singular value.",
};
