//! `etascope edit`: a fitted map cut to one rank after another, at a photograph.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::compute::{CacheArgs, Compute, ComputeArgs, STEPS};
use super::grid;
use super::job::check_stem;
use super::judge::{Judge, View};
use super::table::table;
use super::values::{ReadoutName, parse_image, parse_word};
use super::{names, print};
use crate::device::ComputeDevice;
use crate::digits::significant;
use crate::encoders::registry;
use crate::encoders::{Readout, WeightsKind};
use crate::figure::sheet::Row;
use crate::geometry::decode::{Decoder, DecoderHeader};
use crate::geometry::encoding::{Edit, StageEncoder};
use crate::geometry::maps::reorder::reordered;
use crate::geometry::maps::trained::Pair;
use crate::geometry::maps::{Cut, Decomposition, FeatureMapping, MapFile, load};
use crate::images::manipulations::edit_in_order;
use crate::images::{Manipulation, Picture, sha256_hex};
use crate::metrics::edit_mask::edit_mask;
use crate::report::{
    Agreement, LpipsNote, RankScore, SweepRun, cut_word, reference_title, write_sweep,
};
use crate::worker::ImageSource;
use crate::{Error, ErrorKind, Result};

/// Words of [`Cut`].
const CUTS: [(&str, Cut); 2] = [("edit", Cut::Edit), ("w", Cut::Map)];

/// Ranks of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranks {
    /// 0 to the number of channels.
    All,
    /// These, in any order.
    These(Vec<usize>),
}

/// The arguments of `etascope edit`.
#[derive(Debug, Args)]
pub struct EditArgs {
    /// Photograph: a file, or `bundled:NAME` for one of the program's own
    #[arg(value_name = "IMAGE", value_parser = parse_image)]
    pub image: ImageSource,
    /// Map that `etascope fit` has written
    #[arg(long, value_name = "FILE")]
    pub map: PathBuf,
    /// Weight file of the encoder, where it is not where it was when the map was fitted
    #[arg(long, value_name = "FILE")]
    pub weights: Option<String>,
    /// Edited photograph, for maps that were fitted to pairs from an outside editor
    #[arg(long, value_name = "IMAGE", value_parser = parse_image)]
    pub edited: Option<ImageSource>,
    /// Ranks separated by commas, or all, as without it; maps without a matrix have none
    #[arg(long, value_name = "LIST", value_parser = parse_ranks)]
    pub ranks: Option<Ranks>,
    /// What is cut: edit (the edit operator W − I) or w (W, as in the paper); both separated by a comma
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "edit",
          value_parser = |text: &str| parse_word(&CUTS, text))]
    pub cut: Vec<Cut>,
    /// Decoder that draws pictures of features, instead of the program's own
    #[arg(long, value_name = "FILE")]
    pub decoder: Option<PathBuf>,
    /// File of AlexNet's weights for LPIPS; without it those of alexnet.tv_in1k are used where they are on this machine
    #[arg(long, value_name = "FILE")]
    pub lpips: Option<PathBuf>,
    /// Picture that shows the photograph, its edit and what is decoded at each rank
    #[arg(long, value_name = "FILE.png")]
    pub grid: Option<PathBuf>,
    /// Name of the files without extension
    #[arg(long, value_name = "NAME", default_value = "edit")]
    pub stem: String,
    /// Feature maps on disk.
    #[command(flatten)]
    pub cache: CacheArgs,
    /// Where, and what is written.
    #[command(flatten)]
    pub compute: ComputeArgs,
}

fn parse_ranks(text: &str) -> std::result::Result<Ranks, String> {
    if text == "all" {
        return Ok(Ranks::All);
    }
    let ranks = text.split(',').map(|rank| rank.trim().parse().ok());
    ranks
        .collect::<Option<Vec<usize>>>()
        .map(Ranks::These)
        .ok_or_else(|| "ranks are numbers from 0, as 0,1,2,4,8, or all".to_owned())
}

/// Cuts the map to each rank and compares what comes out with the feature map of the edited photograph.
///
/// # Errors
/// Of the map, the request, the photograph, the device or the output.
pub fn run(args: &EditArgs) -> Result<()> {
    check_stem(&args.stem)?;
    let file: MapFile = load(&args.map)?;
    let ranks = args.checked(&file)?;
    let name = match &args.weights {
        Some(weights) => registry::local_name(registry::split_local(&file.encoder).0, weights),
        None => file.encoder.clone(),
    };
    let spec = registry::find(&name)?;
    let Readout::Stage(stage) = ReadoutName::Stage(file.stage.clone()).resolve(spec)? else {
        return Err(args.refused(ErrorKind::Request, "it names no stage", "Fit it again"));
    };
    let [_, rows, columns] = spec.readout_shape(&Readout::Stage(stage))?;
    // Each once, in the order of the words.
    let cuts: Vec<Cut> = (CUTS.iter().map(|(_, cut)| *cut))
        .filter(|cut| args.cut.contains(cut) && !ranks.is_empty())
        .collect();
    let compute = Compute::start(&args.compute, cuts.len() + 1)?;
    let background = args.compute.background;
    let photo = args.image.open(background)?;
    let edited = args.edited.as_ref().map(|edited| edited.open(background));
    let edited = edited.transpose()?;
    let encoder = compute.load(&name, WeightsKind::Trained)?;
    if encoder.weights_id != file.weights_id {
        let why = format!(
            "it was fitted with the weights {} of {}, and these are {}",
            file.weights_id, spec.title, encoder.weights_id
        );
        let remedy = "Fit it again with these weights";
        return Err(args.refused(ErrorKind::Weights, why, remedy));
    }
    let encoder = StageEncoder::new(encoder, stage, args.cache.open())?;
    let pair = encoder.pair(
        &photo,
        match &edited {
            Some(edited) => Edit::To(edited),
            None => Edit::By(&file.manipulations),
        },
    )?;
    // Where the edit turns the picture, the mask shows what it does besides.
    let turns: Vec<Manipulation> = (file.manipulations.iter())
        .filter(|edit| edit.symmetry().is_some())
        .cloned()
        .collect();
    let turned = edit_in_order(&turns, &pair.original_picture, 0)?;
    let mask = edit_mask(&turned, &pair.edited_picture, rows, columns)?;
    let Pair {
        original,
        edited: target,
    } = &pair.features;
    let judge = Judge {
        features: target,
        mask: &mask,
        view: args.view(&file, &pair.edited_picture, rows, &compute.device)?,
    };
    compute.bar.inc(STEPS);

    let (map, shown) = (&file.map, grid::ranks(&ranks));
    let (mut scores, mut sheet) = (Vec::new(), Vec::new());
    for cut in cuts {
        compute.bar.set_message(cut.title());
        let Some(affine) = map.affine() else {
            break;
        };
        let decomposition = Arc::new(Decomposition::new(affine, cut)?);
        let energies: Vec<f64> = decomposition.values().iter().map(|v| v * v).collect();
        let total: f64 = energies.iter().sum();
        let mut truncation = map.truncation(Arc::clone(&decomposition), original)?;
        let mut tiles = Vec::new();
        for &rank in &ranks {
            // An empty sum of f64 would be −0.
            let kept = energies
                .iter()
                .take(rank)
                .fold(0.0, |sum, energy| sum + energy);
            let (agreement, picture) = judge.agreement(&map.undone(truncation.at(rank)?)?)?;
            if let Some(picture) = picture.filter(|_| shown.contains(&rank)) {
                tiles.push(grid::tile(format!("k = {rank}"), picture, Some(&agreement)));
            }
            scores.push(RankScore {
                cut,
                rank,
                agreement,
                // An operator that is zero has no energy to keep.
                energy_kept: (total > 0.0).then(|| kept / total),
            });
        }
        sheet.push(Row {
            heading: cut.title().to_owned(),
            tiles,
        });
        compute.bar.inc(STEPS);
    }
    let (identity, unedited) = judge.agreement(original)?;
    let (reorder, _) = judge.agreement(&reordered(original, &map.reorder)?)?;
    let (full, mapped) = judge.agreement(&map.map(original)?)?;
    let (reconstruction, reconstructed) = judge.agreement(target)?;
    compute.bar.finish_and_clear();
    let bytes = std::fs::read(&args.map).map_err(|error| {
        args.refused(ErrorKind::Weights, error.to_string(), "Choose another file")
    })?;
    let label = names::distinct(std::slice::from_ref(&args.image));
    let run = SweepRun {
        image: label.into_iter().next().unwrap_or_default(),
        image_sha256: photo.sha256.clone(),
        image_steps: pair.steps.clone(),
        edited_sha256: edited.map(|edited| edited.sha256),
        encoded: encoder.passes(),
        recalled: encoder.recalled(),
        encoder_title: spec.title.to_string(),
        device: compute.device_name().to_owned(),
        map_sha256: sha256_hex(&bytes),
        masked_positions: mask.iter().filter(|&&is_inside| is_inside).count(),
        positions: mask.len(),
        decoder: judge.view.as_ref().map(|view| view.header().clone()),
        lpips: judge.view.as_ref().map(View::lpips),
        scores,
        identity,
        reorder,
        full,
        reconstruction: judge.view.is_some().then_some(reconstruction),
        file,
    };
    let ComputeArgs { out, formats, .. } = &args.compute;
    write_sweep(out, &args.stem, formats, &run)?;
    if let (Some(path), Some(view)) = (&args.grid, &judge.view) {
        let decoded = [
            ("original, decoded", unedited, &run.identity),
            ("edited, decoded", reconstructed, &reconstruction),
            ("full map", mapped, &run.full),
        ];
        let mut first = grid::pictures(&pair.original_picture, &view.target)?;
        for (label, picture, agreement) in decoded {
            first.extend(
                picture.map(|picture| grid::tile(label.to_owned(), picture, Some(agreement))),
            );
        }
        sheet.insert(0, grid::first_row(&run, first));
        grid::write(path, &sheet)?;
    }
    if !args.compute.quiet {
        print(&summary(&run))?;
    }
    Ok(())
}

impl EditArgs {
    fn refused(&self, kind: ErrorKind, why: impl std::fmt::Display, remedy: &str) -> Error {
        let what = format!("cannot use the map “{}”", self.map.display());
        Error::new(kind, what, why, remedy)
    }

    /// Refuses what the map cannot do; the ranks to which it is cut in ascending order, each once: those asked for, or
    /// all of a map with a matrix.
    fn checked(&self, file: &MapFile) -> Result<Vec<usize>> {
        let is_from_pairs = file.manipulations.is_empty();
        if is_from_pairs != self.edited.is_some() {
            let (why, remedy) = if is_from_pairs {
                (
                    "it was fitted to pairs from an outside editor, so that the edit must be given",
                    "Name the edited photograph with --edited",
                )
            } else {
                ("it makes its edit itself", "Leave --edited out")
            };
            return Err(self.refused(ErrorKind::Request, why, remedy));
        }
        let Some(affine) = file.map.affine() else {
            return match self.ranks {
                None => Ok(Vec::new()),
                Some(_) => Err(self.refused(
                    ErrorKind::Request,
                    format!(
                        "a map of the kind “{}” has no matrix to cut",
                        file.map.kind.title()
                    ),
                    "Leave --ranks out, or fit a linear, ridge or Procrustes map",
                )),
            };
        };
        let channels = affine.channels();
        let mut ranks = match &self.ranks {
            None | Some(Ranks::All) => (0..=channels).collect(),
            Some(Ranks::These(ranks)) => ranks.clone(),
        };
        ranks.sort_unstable();
        ranks.dedup();
        match ranks.last() {
            Some(&largest) if largest > channels => Err(Error::new(
                ErrorKind::Request,
                format!("cannot cut the map to rank {largest}"),
                format!("its matrix is {channels} × {channels}"),
                format!("Give ranks from 0 to {channels}"),
            )),
            _ => Ok(ranks),
        }
    }

    /// The decoder named, or the program's own for the map's stage.
    fn view(
        &self,
        file: &MapFile,
        edited: &Picture,
        rows: usize,
        device: &ComputeDevice,
    ) -> Result<Option<View>> {
        let decoder = match &self.decoder {
            Some(path) => {
                let decoder = Decoder::open(path, device)?;
                let DecoderHeader {
                    weights_id, stage, ..
                } = decoder.header();
                if (weights_id, stage) != (&file.weights_id, &file.stage) {
                    return Err(Error::new(
                        ErrorKind::Request,
                        format!("cannot use the decoder “{}”", path.display()),
                        format!("it draws {stage} of the weights {weights_id}"),
                        "Name a decoder of the map's encoder and stage",
                    ));
                }
                Some(decoder)
            }
            None => Decoder::bundled(&file.encoder, &file.weights_id, &file.stage, device)?,
        };
        let Some(decoder) = decoder else {
            if self.grid.is_none() && self.lpips.is_none() {
                return Ok(None);
            }
            let stages =
                Decoder::bundled_stages().map(|(encoder, stage)| format!("{encoder} {stage}"));
            return Err(Error::new(
                ErrorKind::Request,
                "cannot draw pictures of the features",
                format!("there is no decoder for {} {}", file.encoder, file.stage),
                format!(
                    "Name one with --decoder, or fit a map at {}",
                    stages.collect::<Vec<_>>().join(", ")
                ),
            ));
        };
        View::new(decoder, edited, rows, self.lpips.as_deref(), device).map(Some)
    }
}

/// The baselines, the full map, and for each cut the rank of the best agreement.
fn summary(run: &SweepRun) -> String {
    let mut heading = vec![
        "",
        "rank",
        "MdnCS (features)",
        "masked",
        "MSE (features)",
        "energy kept",
    ];
    let is_drawn = run.decoder.is_some();
    if is_drawn {
        heading.extend(["SSIM (pictures)", "LPIPS"]);
    }
    let mut rows = vec![heading.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    let cell = |value: Option<f64>| value.map_or("–".to_owned(), |value| significant(value, 4));
    let mut row = |name: String, rank: String, agreement: &Agreement, energy: Option<f64>| {
        let mut cells = vec![
            name,
            rank,
            cell(agreement.mdncs_features),
            cell(agreement.mdncs_features_masked),
            cell(Some(agreement.mse_features)),
            cell(energy),
        ];
        if is_drawn {
            cells.push(cell(agreement.picture.and_then(|picture| picture.ssim)));
            cells.push(cell(agreement.picture.and_then(|picture| picture.lpips)));
        }
        rows.push(cells);
    };
    for (name, agreement) in run.references() {
        row(
            reference_title(name).to_owned(),
            "–".to_owned(),
            agreement,
            None,
        );
    }
    for (_, cut) in CUTS {
        let best = run
            .scores
            .iter()
            .filter(|score| score.cut == cut && score.agreement.mdncs_features.is_some())
            .max_by(|a, b| {
                let value = |score: &RankScore| score.agreement.mdncs_features.unwrap_or(-1.0);
                // Of equal ones the smaller rank.
                value(a).total_cmp(&value(b)).then(b.rank.cmp(&a.rank))
            });
        if let Some(score) = best {
            let name = format!("best of {}", cut_word(cut));
            row(
                name,
                score.rank.to_string(),
                &score.agreement,
                score.energy_kept,
            );
        }
    }
    let note = match &run.lpips {
        Some(LpipsNote::Absent(why)) => format!("{why}\n"),
        _ => String::new(),
    };
    table(&rows) + &note
}
