//! Table, sidecar and figure of singular spectra of Jacobians.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::figure::{ASPECT, BOLD_PT, THIN_OPACITY, THIN_PT};
use super::files::{drawn, json as json_file, write_formats};
use super::sidecar::envelope;
use super::{ExportFormat, quartiles};
use crate::encoders::WeightsKind;
use crate::figure::table::{self, Cell};
use crate::figure::{Axis, Band, Dash, Figure, Ink, Marker, Panel, Scale, Series, label};
use crate::geometry::Cost;
use crate::geometry::spectrum::{Bounds, ENERGY_TOP, JacobianSpectrum, SpectrumReadout};
use crate::recipe::SpectrumRecipe;
use crate::{Error, ErrorKind, Result};

/// Width of a figure over one column of a journal's page and a half.
const WIDTH_MM: f64 = 120.0;

/// Most values whose points are marked one by one.
const MARKED_MAX: usize = 32;

/// A singular spectrum together with everything needed to make it again.
#[derive(Clone, Debug)]
pub struct SpectrumRun {
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
    pub recipe: SpectrumRecipe,
    /// The feature as it is written: `pooled`, `logits` or `stage:NAME`.
    pub readout: String,
    /// Length d_Z of the feature.
    pub feature_len: usize,
    /// Length d_I of the input.
    pub input_len: usize,
    /// The result.
    pub spectrum: JacobianSpectrum,
    /// Work spent.
    pub cost: Cost,
    /// Time spent, in seconds.
    pub elapsed_secs: f64,
}

/// Columns of the table; `index` counts from 1, `sigma` descends, `error` bounds the distance to a singular value of J
/// and is empty for an exact spectrum, whose values are good to rounding.
pub const SPECTRUM_COLUMNS: [&str; 7] = [
    "image", "encoder", "weights", "readout", "index", "sigma", "error",
];

/// The table: one row for each singular value of each run.
///
/// # Errors
/// [`ErrorKind::Internal`] where the table cannot be written.
pub fn spectrum_csv(runs: &[SpectrumRun]) -> Result<String> {
    let rows = runs.iter().flat_map(|run| {
        let values = run.spectrum.values.iter().enumerate();
        values.map(move |(i, &sigma)| {
            [
                Cell::Text(run.image.clone()),
                Cell::Text(run.recipe.encoder.clone()),
                Cell::Text(run.recipe.weights.name().to_owned()),
                Cell::Text(run.readout.clone()),
                Cell::Count(i + 1),
                Cell::Number(sigma),
                Cell::Number(error(&run.spectrum, i)),
            ]
        })
    });
    table::csv(&SPECTRUM_COLUMNS, rows)
}

/// Bound of value i; NaN where there is none.
fn error(spectrum: &JacobianSpectrum, i: usize) -> f64 {
    match &spectrum.bounds {
        Bounds::Exact => f64::NAN,
        Bounds::Within(errors) => errors.get(i).copied().unwrap_or(f64::NAN),
    }
}

/// Versions, and for each run the photograph's hash and treatment, weights, device, recipe with its seed,
/// lengths, number of values and of those above rounding, what is read off an exact spectrum (`null` for a
/// leading part), cost and time.
pub fn spectrum_sidecar(runs: &[SpectrumRun]) -> Value {
    envelope("spectra", runs.iter().map(entry).collect())
}

fn entry(run: &SpectrumRun) -> Value {
    json!({
        "image": { "name": run.image, "sha256": run.image_sha256, "steps": run.image_steps },
        "encoder": { "name": run.recipe.encoder, "title": run.encoder_title },
        "weights": { "kind": run.recipe.weights, "id": run.weights_id },
        "readout": run.readout,
        "device": run.device,
        "recipe": run.recipe,
        "feature_len": run.feature_len,
        "input_len": run.input_len,
        "exact": run.spectrum.bounds == Bounds::Exact,
        "values": run.spectrum.values.len(),
        "above_rounding": run.spectrum.rank(),
        "readouts": run.spectrum.readout().as_ref().map(readouts),
        "cost": run.cost,
        "elapsed_secs": run.elapsed_secs,
    })
}

/// What is read off a spectrum, with the keys `entropy_nats`, `effective_rank`, `stable_rank`, `energy_top_1`,
/// `energy_top_5`, `energy_top_10` and `condition` (`null` where the least value is zero).
pub(super) fn readouts(readout: &SpectrumReadout) -> Value {
    let mut value = json!({
        "entropy_nats": readout.entropy_nats,
        "effective_rank": readout.effective_rank,
        "stable_rank": readout.stable_rank,
        "condition": readout.condition,
    });
    for (count, energy) in ENERGY_TOP.iter().zip(readout.energy_top) {
        value[format!("energy_top_{count}")] = energy.into();
    }
    value
}

/// The figure: singular values against their index on logarithmic axes. An encoder has one colour for each
/// readout; trained weights are drawn solid, random ones dashed. One photograph gives a bold line, of a leading
/// part with its bounds; several give a thin line each and the bold median, as far as all of them reach. Values at the rounding of an exact
/// spectrum are not drawn.
pub fn spectrum_figure(runs: &[SpectrumRun]) -> Figure {
    let mut groups: Vec<Vec<&SpectrumRun>> = Vec::new();
    let key = |run: &SpectrumRun| (run.recipe.encoder.clone(), run.readout.clone());
    for run in runs {
        let is_same = |group: &&mut Vec<&SpectrumRun>| {
            group.first().is_some_and(|first| {
                key(first) == key(run) && first.recipe.weights == run.recipe.weights
            })
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    let mut hues = Vec::new();
    let (mut thin, mut bold) = (Vec::new(), Vec::new());
    for group in &groups {
        let Some(first) = group.first() else {
            continue;
        };
        let hue = hues.iter().position(|known| *known == key(first));
        let hue = hue.unwrap_or_else(|| {
            hues.push(key(first));
            hues.len() - 1
        });
        if group.len() > 1 {
            thin.extend(group.iter().map(|run| Series {
                width_pt: THIN_PT,
                opacity: THIN_OPACITY,
                ..line(first, hue, shown(&run.spectrum))
            }));
        }
        bold.push(told(group, first, hue));
    }
    Figure {
        width_mm: WIDTH_MM,
        columns: 1,
        aspect: ASPECT,
        title: "Singular spectrum of the Jacobian".to_owned(),
        panels: vec![Panel {
            x: Axis {
                label: "index of singular value".to_owned(),
                scale: Scale::Log10,
                ..Axis::default()
            },
            y: Axis {
                label: "singular value of J".to_owned(),
                scale: Scale::Log10,
                ..Axis::default()
            },
            series: thin.into_iter().chain(bold).collect(),
            guides: Vec::new(),
        }],
    }
}

/// Values above rounding.
fn shown(spectrum: &JacobianSpectrum) -> Vec<f64> {
    spectrum.values[..spectrum.rank()].to_vec()
}

fn line(run: &SpectrumRun, hue: usize, y: Vec<f64>) -> Series {
    Series {
        x: (1..=y.len()).map(|index| index as f64).collect(),
        ink: Ink::Hue(hue),
        dash: match run.recipe.weights {
            WeightsKind::Trained => Dash::Solid,
            WeightsKind::Random => Dash::Dashed,
        },
        width_pt: BOLD_PT,
        opacity: 1.0,
        y,
        ..Series::default()
    }
}

/// The bold line of a group, with its text in the legend.
fn told(group: &[&SpectrumRun], first: &SpectrumRun, hue: usize) -> Series {
    let mut parts = vec![
        label::escape(&first.encoder_title),
        first.recipe.weights.name().to_owned(),
    ];
    if first.readout != "pooled" {
        parts.push(label::escape(&first.readout.replace(':', " ")));
    }
    if group.len() > 1 {
        parts.push(format!("median of {}", group.len()));
    }
    let spectra: Vec<Vec<f64>> = group.iter().map(|run| shown(&run.spectrum)).collect();
    // Beyond the shortest the median would be of other photographs, and jump.
    let shortest = spectra.iter().map(Vec::len).min().unwrap_or(0);
    let medians = (0..shortest).map(|i| {
        let values = spectra.iter().filter_map(|values| values.get(i).copied());
        quartiles(values).map_or(f64::NAN, |[_, median, _]| median)
    });
    let mut series = line(first, hue, medians.collect());
    let bounds = &first.spectrum.bounds;
    if group.len() == 1 && *bounds != Bounds::Exact {
        let edge = |sign: f64| {
            let values = series.y.iter().enumerate();
            values
                .map(|(i, value)| value + sign * error(&first.spectrum, i))
                .collect()
        };
        series.band = Some(Band {
            low: edge(-1.0),
            high: edge(1.0),
        });
    }
    series.marker = (series.y.len() <= MARKED_MAX).then(|| Marker::of_index(hue));
    series.label = Some(parts.join(", "));
    series
}

/// Writes table, sidecar and figures of spectra, all or none, and returns their paths in the order of
/// `formats`.
///
/// # Errors
/// [`ErrorKind::Request`] where there are no runs or the stem is not a file name; [`ErrorKind::Output`] where the
/// folder or a file in it cannot be written.
pub fn write_spectra(
    folder: &Path,
    stem: &str,
    formats: &[ExportFormat],
    runs: &[SpectrumRun],
) -> Result<Vec<PathBuf>> {
    if runs.is_empty() {
        return Err(Error::new(
            ErrorKind::Request,
            "nothing to export",
            "no spectrum has been computed",
            "Compute one first",
        ));
    }
    write_formats(folder, stem, formats, |format| match format {
        ExportFormat::Csv => Ok(spectrum_csv(runs)?.into_bytes()),
        ExportFormat::Json => Ok(json_file(&spectrum_sidecar(runs))),
        ExportFormat::Svg | ExportFormat::Png => drawn(&spectrum_figure(runs), format),
    })
}
