//! Table, sidecar and figure of a map cut to one rank after another.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::figure::{ASPECT, BOLD_PT, DEFAULT_WIDTH_MM};
use super::files::{drawn, json as json_file, write_formats, write_with};
use super::sidecar::envelope;
use super::{EditFiles, ExportFormat};
use crate::Result;
use crate::figure::table::{self, Cell};
use crate::figure::{Axis, Figure, Guide, Ink, Marker, Panel, Series};
use crate::geometry::decode::DecoderHeader;
use crate::geometry::maps::{Cut, MapFile, to_bytes};
use crate::images::sha256_hex;

/// Most ranks whose points are marked one by one.
const MARKED_MAX: usize = 32;

/// Agreement of a feature map with that of the edited photograph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// Median cosine over positions; `None` where no cosine is defined.
    pub mdncs_features: Option<f64>,
    /// The same over the positions that the edit touches; `None` where it touches none.
    pub mdncs_features_masked: Option<f64>,
    /// Mean squared difference of values, in the features' own units.
    pub mse_features: f64,
    /// The picture that is decoded from it beside the edited photograph; `None` without a decoder.
    pub picture: Option<PictureAgreement>,
}

/// Agreement of a decoded picture with the edited photograph at the decoder's side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PictureAgreement {
    /// Mean squared difference in squared grey levels.
    pub mse: f64,
    /// SSIM with the 7 × 7 uniform window; `None` for pictures smaller than that.
    pub ssim: Option<f64>,
    /// LPIPS v0.1 over AlexNet; `None` without its weights.
    pub lpips: Option<f64>,
}

/// Whether LPIPS could be computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LpipsNote {
    /// SHA-256 of AlexNet's weights.
    Weights(String),
    /// Why it could not, and what to do.
    Absent(String),
}

/// Agreement at one rank.
#[derive(Clone, Debug, PartialEq)]
pub struct RankScore {
    /// What is cut.
    pub cut: Cut,
    /// Rank k.
    pub rank: usize,
    /// How near the cut map comes.
    pub agreement: Agreement,
    /// Share of Σσ² in the first k singular values of what is cut; `None` where that is zero.
    pub energy_kept: Option<f64>,
}

/// A sweep over ranks at one photograph.
#[derive(Clone, Debug)]
pub struct SweepRun {
    /// File name of the photograph.
    pub image: String,
    /// SHA-256 of its file.
    pub image_sha256: String,
    /// Decoding and preparation, for people.
    pub image_steps: Vec<String>,
    /// SHA-256 of the edited photograph's file, where an outside editor has made it.
    pub edited_sha256: Option<String>,
    /// Pictures that were encoded.
    pub encoded: usize,
    /// Pictures whose feature maps were found in the cache.
    pub recalled: usize,
    /// Name of the encoder for people.
    pub encoder_title: String,
    /// Name of the compute device.
    pub device: String,
    /// SHA-256 of the map's file.
    pub map_sha256: String,
    /// Positions of the grid that the edit touches, turns and mirrors not counted.
    pub masked_positions: usize,
    /// Positions of the grid.
    pub positions: usize,
    /// The decoder that drew pictures of the features, if there was one.
    pub decoder: Option<DecoderHeader>,
    /// Whether LPIPS could be computed; `None` without a decoder.
    pub lpips: Option<LpipsNote>,
    /// Scores, cut by cut, ranks ascending; none of a map without a matrix.
    pub scores: Vec<RankScore>,
    /// The unedited features.
    pub identity: Agreement,
    /// The unedited features on the turned grid.
    pub reorder: Agreement,
    /// The map at its full rank.
    pub full: Agreement,
    /// The edited photograph's own features, decoded: what the decoder makes of what every map aims at; `None` without a decoder.
    pub reconstruction: Option<Agreement>,
    /// The map.
    pub file: MapFile,
}

/// A cut as it is written: `edit` or `w`.
pub fn cut_word(cut: Cut) -> &'static str {
    match cut {
        Cut::Map => "w",
        Cut::Edit => "edit",
    }
}

impl SweepRun {
    /// What a sweep is seen against, as it is written: `identity`, `reorder`, `map` and, with a decoder, `target`.
    pub fn references(&self) -> Vec<(&'static str, &Agreement)> {
        let mut references = vec![
            ("identity", &self.identity),
            ("reorder", &self.reorder),
            ("map", &self.full),
        ];
        references.extend((self.reconstruction.as_ref()).map(|agreement| ("target", agreement)));
        references
    }
}

/// A reference of a sweep for people.
pub fn reference_title(name: &str) -> &str {
    match name {
        "map" => "full map",
        "target" => "edited photograph, decoded",
        name => name,
    }
}

/// Columns of the table. `cut` is `edit` or `w`; the rows `identity`, `reorder`, `map` and `target` (the edited
/// photograph's own features, of which the pictures alone say something) are what the sweep is seen against and have no rank.
/// `mse_picture` (squared grey levels), `ssim` and `lpips` compare what is decoded with the edited photograph. An undefined number
/// is an empty field.
pub const SWEEP_COLUMNS: [&str; 10] = [
    "image",
    "cut",
    "rank",
    "mdncs_features",
    "mdncs_features_masked",
    "energy_kept",
    "mse_features",
    "mse_picture",
    "ssim",
    "lpips",
];

/// The table: one row for each cut and rank, then the references.
///
/// # Errors
/// [`crate::ErrorKind::Internal`] where the table cannot be written.
pub fn sweep_csv(run: &SweepRun) -> Result<String> {
    let row = |name: &str, rank: Cell, agreement: &Agreement, energy: Option<f64>| {
        let number = |value: Option<f64>| Cell::Number(value.unwrap_or(f64::NAN));
        [
            Cell::Text(run.image.clone()),
            Cell::Text(name.to_owned()),
            rank,
            number(agreement.mdncs_features),
            number(agreement.mdncs_features_masked),
            number(energy),
            Cell::Number(agreement.mse_features),
            number(agreement.picture.map(|picture| picture.mse)),
            number(agreement.picture.and_then(|picture| picture.ssim)),
            number(agreement.picture.and_then(|picture| picture.lpips)),
        ]
    };
    let ranks = run.scores.iter().map(|score| {
        let rank = Cell::Count(score.rank);
        row(
            cut_word(score.cut),
            rank,
            &score.agreement,
            score.energy_kept,
        )
    });
    let references = run.references();
    let references = references
        .iter()
        .map(|(name, agreement)| row(name, Cell::Number(f64::NAN), agreement, None));
    table::csv(&SWEEP_COLUMNS, ranks.chain(references))
}

/// Versions, photograph, map with its hash and what it was fitted to, device, size of the mask, references.
fn sweep_sidecar(run: &SweepRun) -> Value {
    let file = &run.file;
    let written: Vec<String> = file.manipulations.iter().map(ToString::to_string).collect();
    let agreement = |agreement: &Agreement| {
        json!({
            "mdncs_features": agreement.mdncs_features,
            "mdncs_features_masked": agreement.mdncs_features_masked,
            "mse_features": agreement.mse_features,
            "picture": agreement.picture.map(|picture| json!({
                "mse": picture.mse,
                "ssim_uniform": picture.ssim,
                "lpips": picture.lpips,
            })),
        })
    };
    let mut cuts: Vec<Cut> = run.scores.iter().map(|score| score.cut).collect();
    cuts.dedup();
    let cuts: Vec<Value> = cuts
        .iter()
        .map(|cut| json!({ "cut": cut_word(*cut), "title": cut.title() }))
        .collect();
    let references: serde_json::Map<String, Value> = run
        .references()
        .iter()
        .map(|(name, of)| ((*name).to_owned(), agreement(of)))
        .collect();
    envelope(
        "edit",
        json!({
            "image": { "name": run.image, "sha256": run.image_sha256, "steps": run.image_steps },
            "edited_sha256": run.edited_sha256,
            "encoded": run.encoded,
            "found_in_cache": run.recalled,
            "encoder": { "name": file.encoder, "title": run.encoder_title },
            "weights": { "kind": "trained", "id": file.weights_id },
            "stage": file.stage,
            "device": run.device,
            "manipulations": written,
            "map": {
                "sha256": run.map_sha256,
                "kind": file.map.kind,
                "normalised": file.map.normalisation.is_some(),
                "reorder": file.map.reorder,
                "data_sha256": file.data_sha256,
                "photographs": file.photographs,
                "vectors": file.vectors,
            },
            "decoder": run.decoder,
            "lpips": run.lpips.as_ref().map(|note| match note {
                LpipsNote::Weights(id) => json!({ "weights": id }),
                LpipsNote::Absent(why) => json!({ "absent": why }),
            }),
            "cuts": cuts,
            "positions": run.positions,
            "masked_positions": run.masked_positions,
            "references": references,
        }),
    )
}

/// The figure: (a) MdnCS over all positions against rank, (b) over those that the edit touches, where there are any, and LPIPS of
/// what is decoded, where it could be computed; the full map, the identity and, for edits that turn the picture, the reorder are lines across.
fn sweep_figure(run: &SweepRun) -> Figure {
    let whole = panel(run, "MdnCS (features)", false, |agreement| {
        agreement.mdncs_features
    });
    let mut panels = vec![whole];
    if run.masked_positions > 0 {
        panels.push(panel(run, "masked MdnCS (features)", false, |agreement| {
            agreement.mdncs_features_masked
        }));
    }
    let lpips = |agreement: &Agreement| agreement.picture.and_then(|picture| picture.lpips);
    if lpips(&run.full).is_some() {
        panels.push(panel(run, "LPIPS (decoded)", true, lpips));
    }
    Figure {
        width_mm: if panels.len() > 1 {
            DEFAULT_WIDTH_MM
        } else {
            DEFAULT_WIDTH_MM / 2.0
        },
        columns: panels.len(),
        aspect: ASPECT,
        title: "Map cut to rank k".to_owned(),
        panels,
    }
}

fn panel(
    run: &SweepRun,
    label: &str,
    is_of_pictures: bool,
    value: fn(&Agreement) -> Option<f64>,
) -> Panel {
    let mut series: Vec<Series> = Vec::new();
    for (hue, cut) in [Cut::Edit, Cut::Map].into_iter().enumerate() {
        let scores = || run.scores.iter().filter(|score| score.cut == cut);
        if scores().next().is_none() {
            continue;
        }
        let x: Vec<f64> = scores().map(|score| score.rank as f64).collect();
        series.push(Series {
            y: scores()
                .map(|score| value(&score.agreement).unwrap_or(f64::NAN))
                .collect(),
            ink: Ink::Hue(hue),
            width_pt: BOLD_PT,
            opacity: 1.0,
            marker: (x.len() <= MARKED_MAX).then(|| Marker::of_index(hue)),
            label: Some(cut.title().to_owned()),
            x,
            ..Series::default()
        });
    }
    let turns = !run.file.map.reorder.is_empty();
    let guides = run
        .references()
        .into_iter()
        .filter(|(name, _)| turns || *name != "reorder")
        // The target's own features agree with themselves; of them the picture alone says something.
        .filter(|(name, _)| is_of_pictures || *name != "target")
        .filter_map(|(name, agreement)| {
            Some(Guide::Horizontal {
                at: value(agreement)?,
                label: if name == "target" {
                    "decoder"
                } else {
                    reference_title(name)
                }
                .to_owned(),
            })
        });
    Panel {
        x: Axis {
            label: "rank k".to_owned(),
            ..Axis::default()
        },
        y: Axis {
            label: label.to_owned(),
            ..Axis::default()
        },
        series,
        guides: guides.collect(),
    }
}

/// Writes table, sidecar and figures of a sweep, all or none, and returns their paths. A map without a matrix has no ranks and
/// therefore no figure.
///
/// # Errors
/// As [`super::write`].
pub fn write_sweep(
    folder: &Path,
    stem: &str,
    formats: &[ExportFormat],
    run: &SweepRun,
) -> Result<Vec<PathBuf>> {
    write_formats(folder, stem, &drawable(run, formats), |format| {
        sweep_content(run, format)
    })
}

/// Columns of the table of maps.
pub const MAP_COLUMNS: [&str; 4] = ["map", "photographs", "mdncs_features", "mse_features"];

/// The same with the map itself, as `STEM.safetensors`, and with the table, the one of other kinds of maps, as `STEM.maps.csv`; the
/// hash of the map is filled in.
pub(super) fn write_edit(
    folder: &Path,
    stem: &str,
    formats: &[ExportFormat],
    files: &EditFiles,
) -> Result<Vec<PathBuf>> {
    let map = to_bytes(&files.sweep.file)?;
    let run = SweepRun {
        map_sha256: sha256_hex(&map),
        ..files.sweep.clone()
    };
    let mut more = vec![("safetensors", map)];
    if formats.contains(&ExportFormat::Csv) && !files.maps.is_empty() {
        let rows = files.maps.iter().map(|score| {
            [
                Cell::Text(score.kind.clone()),
                Cell::Count(score.photographs),
                Cell::Number(score.mdncs_features.unwrap_or(f64::NAN)),
                Cell::Number(score.mse_features),
            ]
        });
        more.push(("maps.csv", table::csv(&MAP_COLUMNS, rows)?.into_bytes()));
    }
    let content = |format| sweep_content(&run, format);
    write_with(folder, stem, &drawable(&run, formats), content, more)
}

fn drawable(run: &SweepRun, formats: &[ExportFormat]) -> Vec<ExportFormat> {
    let is_drawn = |format: &ExportFormat| {
        !run.scores.is_empty() || matches!(format, ExportFormat::Csv | ExportFormat::Json)
    };
    formats.iter().copied().filter(is_drawn).collect()
}

fn sweep_content(run: &SweepRun, format: ExportFormat) -> Result<Vec<u8>> {
    match format {
        ExportFormat::Csv => Ok(sweep_csv(run)?.into_bytes()),
        ExportFormat::Json => Ok(json_file(&sweep_sidecar(run))),
        ExportFormat::Svg | ExportFormat::Png => drawn(&sweep_figure(run), format),
    }
}
