//! What is taken away from profiles, spectra and maps: table, sidecar and figure, the same from window and
//! command line.

mod figure;
mod files;
mod fit;
mod sidecar;
mod spectrum;
mod sweep;

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::figure::{DEFAULT_WIDTH_MM, FigureOptions, GREY_TOLERANCE, figure};
pub use self::files::write;
pub use self::fit::{
    FIT_COLUMNS, FitRun, FittedPhoto, Score, fit_csv, mean_scores, part_name, write_fit,
};
pub use self::sidecar::sidecar;
pub use self::spectrum::{
    SPECTRUM_COLUMNS, SpectrumRun, spectrum_csv, spectrum_figure, spectrum_sidecar, write_spectra,
};
pub use self::sweep::{
    Agreement, LpipsNote, PictureAgreement, RankScore, SWEEP_COLUMNS, SweepRun, cut_word,
    reference_title, sweep_csv, write_sweep,
};
use crate::Result;
use crate::encoders::{Readout, registry};
use crate::figure::table::{self, Cell};
use crate::geometry::Profile;
use crate::recipe::ProfileRecipe;

/// A profile together with everything needed to make it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfileRun {
    /// File name of the photograph, or as much of its path as tells it from the others of an export.
    pub image: String,
    /// SHA-256 of the photograph's file.
    pub image_sha256: String,
    /// What was done to the photograph: decoding, then preprocessing.
    pub image_steps: Vec<String>,
    /// Name of the encoder for people.
    pub encoder_title: String,
    /// SHA-256 of the weights file, or the seed of the random ones.
    pub weights_id: String,
    /// Name of the compute device.
    pub device: String,
    /// What was computed.
    pub recipe: ProfileRecipe,
    /// The picture at the end of a direction toward another image or along a manipulation: what it
    /// is, how it was made and at which η it is reached; empty for the other families.
    #[serde(default)]
    pub direction_steps: Vec<String>,
    /// The result.
    pub profile: Arc<Profile>,
    /// Time spent, in seconds.
    pub elapsed_secs: f64,
}

impl ProfileRun {
    /// Name of the stage that is read out, such as `blocks.0`, in the original code; its index where
    /// the encoder is not known; `None` for the pooled feature and the logits.
    pub fn stage(&self) -> Option<String> {
        let Readout::Stage(index) = self.recipe.readout else {
            return None;
        };
        let spec = registry::find(&self.recipe.encoder).ok();
        let stage = spec.and_then(|spec| spec.stages.get(index));
        Some(stage.map_or_else(|| index.to_string(), |stage| stage.name.clone()))
    }
}

/// Files to write.
#[derive(Clone, Debug)]
pub struct Export {
    /// Folder; made if absent.
    pub folder: PathBuf,
    /// File name without extension.
    pub stem: String,
    /// Which files.
    pub formats: Vec<ExportFormat>,
    /// What is written.
    pub content: Content,
}

/// What is written of a fitted edit: the map itself, as safetensors, its ranks, and other kinds of maps.
#[derive(Clone, Debug)]
pub struct EditFiles {
    /// The map cut to its ranks; the hash of the map is filled in.
    pub sweep: SweepRun,
    /// Every kind of map on held-out photographs.
    pub maps: Vec<MapScore>,
}

/// A kind of map on held-out photographs.
#[derive(Clone, Debug, PartialEq)]
pub struct MapScore {
    /// The kind with its γ, for people.
    pub kind: String,
    /// Photographs behind the means.
    pub photographs: usize,
    /// Mean of MdnCS (features); `None` where it is defined for none.
    pub mdncs_features: Option<f64>,
    /// Mean squared difference of features, averaged.
    pub mse_features: f64,
}

/// What files are written of.
#[derive(Clone, Debug)]
pub enum Content {
    /// Response profiles.
    Profiles(Vec<Arc<ProfileRun>>),
    /// Singular spectra.
    Spectra(Vec<Arc<SpectrumRun>>),
    /// A fitted edit.
    Edit(Box<EditFiles>),
}

/// One kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExportFormat {
    /// Exactly the plotted numbers.
    Csv,
    /// Versions, hashes, seeds, device, recipes, summaries.
    Json,
    /// The figure as vector graphics.
    Svg,
    /// The figure as pixels, 300 dpi.
    Png,
}

impl ExportFormat {
    /// File name extension, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Svg => "svg",
            Self::Png => "png",
        }
    }
}

/// Columns of the table; `weights` is `trained` or `random`, `reliable` is `true` or `false`, and an
/// undefined number is an empty field. See [`crate::geometry::ScaleEstimate`] for the quantities.
pub const COLUMNS: [&str; 11] = [
    "image",
    "encoder",
    "weights",
    "eta_l2",
    "eta_grey_rms",
    "r",
    "r_se",
    "displacement_sq",
    "prediction_sq",
    "directions",
    "reliable",
];

/// The table: one row for each scale of each run, numbers in the fewest digits that read back
/// exactly.
pub fn csv(runs: &[Arc<ProfileRun>]) -> Result<String> {
    let rows = runs
        .iter()
        .flat_map(|run| run.profile.scales.iter().map(move |s| (run, s)));
    table::csv(
        &COLUMNS,
        rows.map(|(run, scale)| {
            [
                Cell::Text(run.image.clone()),
                Cell::Text(run.recipe.encoder.clone()),
                Cell::Text(run.recipe.weights.name().to_owned()),
                Cell::Number(scale.eta_l2),
                Cell::Number(scale.eta_grey_rms),
                Cell::Number(scale.r),
                Cell::Number(scale.r_se),
                Cell::Number(scale.displacement_sq),
                Cell::Number(scale.prediction_sq),
                Cell::Count(scale.directions),
                Cell::Flag(scale.reliable),
            ]
        }),
    )
}

/// Lower quartile, median and upper quartile of the values that are not NaN, by linear interpolation
/// between order statistics (definition 7 of Hyndman and Fan 1996, the default of NumPy and R);
/// `None` where there are none.
pub fn quartiles(values: impl IntoIterator<Item = f64>) -> Option<[f64; 3]> {
    let mut sorted: Vec<f64> = values.into_iter().filter(|value| !value.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some([0.25, 0.5, 0.75].map(|share| {
        let place = share * last as f64;
        let (below, above) = (
            sorted[place.floor() as usize],
            sorted[place.ceil() as usize],
        );
        // Equal neighbours are returned as they are: interpolation would make ∞ − ∞ of infinities.
        if below == above {
            below
        } else {
            below + place.fract() * (above - below)
        }
    }))
}
