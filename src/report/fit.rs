//! Table, sidecar and figure of a fitted map.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::ExportFormat;
use super::figure::{ASPECT, BOLD_PT};
use super::files::{drawn, json as json_file, write_formats};
use super::sidecar::envelope;
use super::spectrum::readouts;
use crate::Result;
use crate::features::FeatureMap;
use crate::figure::table::{self, Cell};
use crate::figure::{Axis, Figure, Ink, Panel, Scale, Series};
use crate::geometry::maps::{Cut, Decomposition, Fitted, GammaChoice, MapFile, Part, Shares};
use crate::geometry::spectrum::SpectrumReadout;
use crate::images::crop::CropSet;
use crate::images::pairs::PairReport;
use crate::metrics::cosine::{cosines, median_cosine};
use crate::metrics::mse::features_mse;

/// Width of the figure in millimetres.
const WIDTH_MM: f64 = 120.0;

/// A photograph of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedPhoto {
    /// File name, or as much of the path as tells it from the others.
    pub name: String,
    /// SHA-256 of its file.
    pub sha256: String,
    /// What it was used for.
    pub part: Part,
    /// Decoding and preparation, for people.
    pub steps: Vec<String>,
}

/// How near a feature map comes to that of the edited photograph.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// Name of the photograph.
    pub photograph: String,
    /// What it was used for.
    pub part: Part,
    /// `identity`, `reorder` or `map`.
    pub method: String,
    /// Median cosine over positions; `None` where no cosine is defined.
    pub mdncs_features: Option<f64>,
    /// Mean of the same cosines.
    pub mean_cosine: Option<f64>,
    /// Mean squared difference of values, in the features' own units.
    pub mse: f64,
}

impl Score {
    /// Compares a feature map with that of the edited photograph.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Request`] where the shapes differ.
    pub fn of(
        photograph: &str,
        part: Part,
        method: &str,
        features: &FeatureMap,
        edited: &FeatureMap,
    ) -> Result<Self> {
        let defined: Vec<f64> = cosines(features, edited)?.into_iter().flatten().collect();
        let mean = defined.iter().sum::<f64>() / defined.len() as f64;
        Ok(Self {
            photograph: photograph.to_owned(),
            part,
            method: method.to_owned(),
            mdncs_features: median_cosine(features, edited)?,
            mean_cosine: (!defined.is_empty()).then_some(mean),
            mse: features_mse(features, edited)?,
        })
    }
}

/// A fitted map with everything needed to make it again.
#[derive(Clone, Debug)]
pub struct FitRun {
    /// Name of the encoder for people.
    pub encoder_title: String,
    /// Name of the compute device.
    pub device: String,
    /// Seed of the split.
    pub seed: u64,
    /// Shares of the split.
    pub shares: Shares,
    /// All photographs in their order.
    pub photographs: Vec<FittedPhoto>,
    /// Random crops of the training photographs, `None` without any.
    pub crops: Option<CropSet>,
    /// How the pairs were found, where an outside editor has made the edits.
    pub pairs: Option<PairReport>,
    /// Pictures that were encoded.
    pub encoded: usize,
    /// Pictures whose feature maps were found in the cache.
    pub recalled: usize,
    /// How γ was chosen; `None` where it was given or there is none.
    pub choice: Option<GammaChoice>,
    /// Scores, photograph by photograph.
    pub scores: Vec<Score>,
    /// The map.
    pub file: MapFile,
}

/// A part as it is written: `train`, `validation` or `held-out`.
pub fn part_name(part: Part) -> &'static str {
    match part {
        Part::Train => "train",
        Part::Validation => "validation",
        Part::HeldOut => "held-out",
    }
}

/// Means over the photographs of each part and method, in the order train, validation, held-out; undefined scores are
/// left out of a mean. Parts without photographs are absent.
pub fn mean_scores(scores: &[Score]) -> Vec<Score> {
    let mut means = Vec::new();
    for part in [Part::Train, Part::Validation, Part::HeldOut] {
        for method in ["identity", "reorder", "map"] {
            let these: Vec<&Score> = scores
                .iter()
                .filter(|score| score.part == part && score.method == method)
                .collect();
            if these.is_empty() {
                continue;
            }
            let mean = |value: fn(&Score) -> Option<f64>| {
                let defined: Vec<f64> = these.iter().filter_map(|score| value(score)).collect();
                let sum: f64 = defined.iter().sum();
                (!defined.is_empty()).then(|| sum / defined.len() as f64)
            };
            means.push(Score {
                photograph: String::new(),
                part,
                method: method.to_owned(),
                mdncs_features: mean(|score| score.mdncs_features),
                mean_cosine: mean(|score| score.mean_cosine),
                mse: mean(|score| Some(score.mse)).unwrap_or(f64::NAN),
            });
        }
    }
    means
}

/// Columns of the table of scores.
pub const FIT_COLUMNS: [&str; 6] = [
    "photograph",
    "part",
    "method",
    "mdncs_features",
    "mean_cosine",
    "mse",
];

/// The table: one row for each photograph and method.
///
/// # Errors
/// [`crate::ErrorKind::Internal`] where the table cannot be written.
pub fn fit_csv(run: &FitRun) -> Result<String> {
    let rows = run.scores.iter().map(|score| {
        [
            Cell::Text(score.photograph.clone()),
            Cell::Text(part_name(score.part).to_owned()),
            Cell::Text(score.method.clone()),
            Cell::Number(score.mdncs_features.unwrap_or(f64::NAN)),
            Cell::Number(score.mean_cosine.unwrap_or(f64::NAN)),
            Cell::Number(score.mse),
        ]
    });
    table::csv(&FIT_COLUMNS, rows)
}

/// Singular values of W, then of W − I, descending.
type Spectra = [(Cut, Vec<f64>); 2];

/// The spectra of a map; `None` for maps without a matrix.
///
/// # Errors
/// [`crate::ErrorKind::Numeric`] where the decomposition fails.
fn spectra(run: &FitRun) -> Result<Option<Spectra>> {
    let Some(map) = run.file.map.affine() else {
        return Ok(None);
    };
    let values = |cut| Ok((cut, Decomposition::new(map, cut)?.values().to_vec()));
    Ok(Some([values(Cut::Map)?, values(Cut::Edit)?]))
}

/// Versions, what the map is and was fitted to, photographs with their parts and hashes, the choice of γ, mean scores,
/// and for maps with a matrix the spectra of W and of the edit operator W − I with what is read off them. The matrices
/// are those of normalised vectors where `normalised` is true.
///
/// # Errors
/// As [`spectra`].
fn fit_sidecar(run: &FitRun) -> Result<Value> {
    let file = &run.file;
    let photographs: Vec<Value> = run
        .photographs
        .iter()
        .map(|photo| {
            json!({
                "name": photo.name,
                "sha256": photo.sha256,
                "part": part_name(photo.part),
                "steps": photo.steps,
            })
        })
        .collect();
    let scores: Vec<Value> = mean_scores(&run.scores)
        .iter()
        .map(|score| {
            json!({
                "part": part_name(score.part),
                "method": score.method,
                "mdncs_features": score.mdncs_features,
                "mean_cosine": score.mean_cosine,
                "mse": score.mse,
            })
        })
        .collect();
    let spectra = spectra(run)?.map(|spectra| {
        let entry = |(_, values): &(Cut, Vec<f64>)| {
            json!({
                "values": values,
                "readouts": SpectrumReadout::of(values).as_ref().map(readouts),
            })
        };
        let [map, edit] = &spectra;
        json!({ "w": entry(map), "edit": entry(edit) })
    });
    let written: Vec<String> = file.manipulations.iter().map(ToString::to_string).collect();
    let training = match &file.map.fitted {
        Fitted::Trained(map) => Some(map.record()),
        _ => None,
    };
    Ok(envelope(
        "fit",
        json!({
            "encoder": { "name": file.encoder, "title": run.encoder_title },
            "weights": { "kind": "trained", "id": file.weights_id },
            "stage": file.stage,
            "device": run.device,
            "manipulations": written,
            "map": file.map.kind,
            "normalised": file.map.normalisation.is_some(),
            "reorder": file.map.reorder,
            "seed": run.seed,
            "shares": run.shares,
            "photographs": photographs,
            "crops": run.crops,
            "pairs": run.pairs.as_ref().map(pairs),
            "encoded": run.encoded,
            "found_in_cache": run.recalled,
            "train_photographs": file.photographs,
            "train_vectors": file.vectors,
            "data_sha256": file.data_sha256,
            "gamma_choice": run.choice.as_ref().map(|choice| json!({
                "candidates": choice.candidates,
                "validation_mse": choice.errors,
            })),
            "training": training,
            "mean_scores": scores,
            "spectra": spectra,
        }),
    ))
}

/// What did and did not match among the files of an outside editor, as file names.
fn pairs(report: &PairReport) -> Value {
    let name = |path: &PathBuf| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let names = |paths: &[PathBuf]| -> Vec<String> { paths.iter().filter_map(name).collect() };
    let ambiguous = report.ambiguous.iter();
    json!({
        "found": report.pairs.iter().map(|pair| &pair.name).collect::<Vec<_>>(),
        "originals_alone": names(&report.originals_alone),
        "edits_alone": names(&report.edits_alone),
        "ambiguous": ambiguous.map(|(_, files)| names(files)).collect::<Vec<_>>(),
        "other_files": names(&report.ignored),
    })
}

/// The figure: singular values of W and of W − I against their index on logarithmic axes.
fn fit_figure(spectra: &Spectra) -> Figure {
    let series = spectra.iter().enumerate().map(|(hue, (cut, values))| {
        let name = match cut {
            Cut::Map => "W",
            Cut::Edit => "edit operator W − I",
        };
        // Rounding of f64 is not drawn.
        let floor = f64::EPSILON * values.len() as f64 * values.first().copied().unwrap_or(0.0);
        let y: Vec<f64> = values
            .iter()
            .copied()
            .take_while(|&value| value > floor)
            .collect();
        Series {
            x: (1..=y.len()).map(|index| index as f64).collect(),
            y,
            ink: Ink::Hue(hue),
            width_pt: BOLD_PT,
            opacity: 1.0,
            label: Some(name.to_owned()),
            ..Series::default()
        }
    });
    let axis = |label: &str| Axis {
        label: label.to_owned(),
        scale: Scale::Log10,
        ..Axis::default()
    };
    Figure {
        width_mm: WIDTH_MM,
        columns: 1,
        aspect: ASPECT,
        title: "Singular spectra of the map".to_owned(),
        panels: vec![Panel {
            x: axis("index of singular value"),
            y: axis("singular value"),
            series: series.collect(),
            guides: Vec::new(),
        }],
    }
}

/// Writes table, sidecar and figures of a fit, all or none, and returns their paths. Maps without a matrix have no spectra and
/// therefore no figure.
///
/// # Errors
/// As [`super::write`], and [`crate::ErrorKind::Numeric`] where a decomposition fails.
pub fn write_fit(
    folder: &Path,
    stem: &str,
    formats: &[ExportFormat],
    run: &FitRun,
) -> Result<Vec<PathBuf>> {
    let spectra = spectra(run)?;
    let is_drawn = |format: &ExportFormat| {
        spectra.is_some() || matches!(format, ExportFormat::Csv | ExportFormat::Json)
    };
    let formats: Vec<ExportFormat> = formats.iter().copied().filter(is_drawn).collect();
    write_formats(folder, stem, &formats, |format| match (format, &spectra) {
        (ExportFormat::Csv, _) => Ok(fit_csv(run)?.into_bytes()),
        (ExportFormat::Svg | ExportFormat::Png, Some(spectra)) => {
            drawn(&fit_figure(spectra), format)
        }
        _ => Ok(json_file(&fit_sidecar(run)?)),
    })
}
