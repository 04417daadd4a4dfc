//! `etascope edit`: a fitted map cut to one rank after another, at a photograph.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::compute::{CacheArgs, Compute, ComputeArgs, STEPS};
use super::job::check_stem;
use super::table::table;
use super::values::{ReadoutName, parse_image, parse_word};
use super::{names, print};
use crate::digits::significant;
use crate::encoders::registry;
use crate::encoders::{Readout, WeightsKind};
use crate::features::FeatureMap;
use crate::geometry::encoding::{Edit, StageEncoder};
use crate::geometry::maps::reorder::reordered;
use crate::geometry::maps::{Cut, Decomposition, FeatureMapping, MapFile, load};
use crate::images::manipulations::edit_in_order;
use crate::images::{Manipulation, sha256_hex};
use crate::metrics::cosine::{masked_median_cosine, median_cosine};
use crate::metrics::edit_mask::edit_mask;
use crate::metrics::mse::features_mse;
use crate::report::{Agreement, RankScore, SweepRun, cut_word, write_sweep};
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
    /// Ranks separated by commas, or all
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = parse_ranks)]
    pub ranks: Ranks,
    /// What is cut: edit (the edit operator W − I) or w (W, as in the paper); both separated by a comma
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "edit",
          value_parser = |text: &str| parse_word(&CUTS, text))]
    pub cut: Vec<Cut>,
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
    let refuse = |kind, why: String, remedy: &str| {
        let what = format!("cannot use the map “{}”", args.map.display());
        Error::new(kind, what, why, remedy)
    };
    let file: MapFile = load(&args.map)?;
    let Some(affine) = file.map.affine() else {
        return Err(refuse(
            ErrorKind::Request,
            format!(
                "a map of the kind “{}” has no matrix to cut",
                file.map.kind.title()
            ),
            "Fit a linear, ridge or Procrustes map",
        ));
    };
    let is_from_pairs = file.manipulations.is_empty();
    if is_from_pairs != args.edited.is_some() {
        let (why, remedy) = if is_from_pairs {
            (
                "it was fitted to pairs from an outside editor, so that the edit must be given",
                "Name the edited photograph with --edited",
            )
        } else {
            ("it makes its edit itself", "Leave --edited out")
        };
        return Err(refuse(ErrorKind::Request, why.to_owned(), remedy));
    }
    let name = match &args.weights {
        Some(weights) => registry::local_name(registry::split_local(&file.encoder).0, weights),
        None => file.encoder.clone(),
    };
    let spec = registry::find(&name)?;
    let Readout::Stage(stage) = ReadoutName::Stage(file.stage.clone()).resolve(spec)? else {
        return Err(refuse(
            ErrorKind::Request,
            "it names no stage".to_owned(),
            "Fit it again",
        ));
    };
    let [channels, rows, columns] = spec.readout_shape(&Readout::Stage(stage))?;
    let ranks = args.ranks(channels)?;
    // Each once, in the order of the words.
    let cuts: Vec<Cut> = (CUTS.iter().map(|(_, cut)| *cut))
        .filter(|cut| args.cut.contains(cut))
        .collect();
    let compute = Compute::start(&args.compute, cuts.len())?;
    let background = args.compute.background;
    let photo = args.image.open(background)?;
    let edited = args.edited.as_ref().map(|edited| edited.open(background));
    let edited = edited.transpose()?;
    let encoder = compute.load(&name, WeightsKind::Trained)?;
    if encoder.weights_id != file.weights_id {
        return Err(refuse(
            ErrorKind::Weights,
            format!(
                "it was fitted with the weights {} of {}, and these are {}",
                file.weights_id, spec.title, encoder.weights_id
            ),
            "Fit it again with these weights",
        ));
    }
    let stage = StageEncoder::new(encoder, stage, args.cache.open())?;
    let edit = match &edited {
        Some(edited) => Edit::To(edited),
        None => Edit::By(&file.manipulations),
    };
    let pair = stage.pair(&photo, edit)?;
    // Where the edit turns the picture, the mask shows what it does besides.
    let turns: Vec<Manipulation> = (file.manipulations.iter())
        .filter(|edit| edit.symmetry().is_some())
        .cloned()
        .collect();
    let turned = edit_in_order(&turns, &pair.original_picture, 0)?;
    let mask = edit_mask(&turned, &pair.edited_picture, rows, columns)?;
    let agreement = |features: &FeatureMap| -> Result<Agreement> {
        Ok(Agreement {
            mdncs_features: median_cosine(features, &pair.features.edited)?,
            mdncs_features_masked: masked_median_cosine(features, &pair.features.edited, &mask)?,
            mse_features: features_mse(features, &pair.features.edited)?,
        })
    };
    let map = &file.map;
    let mut scores = Vec::new();
    for cut in cuts {
        compute.bar.set_message(cut.title());
        let decomposition = Arc::new(Decomposition::new(affine, cut)?);
        let energies: Vec<f64> = decomposition.values().iter().map(|v| v * v).collect();
        let total: f64 = energies.iter().sum();
        let mut truncation = map.truncation(Arc::clone(&decomposition), &pair.features.original)?;
        for &rank in &ranks {
            // An empty sum of f64 would be −0.
            let kept = energies
                .iter()
                .take(rank)
                .fold(0.0, |sum, energy| sum + energy);
            scores.push(RankScore {
                cut,
                rank,
                agreement: agreement(&map.undone(truncation.at(rank)?)?)?,
                // An operator that is zero has no energy to keep.
                energy_kept: (total > 0.0).then(|| kept / total),
            });
        }
        compute.bar.inc(STEPS);
    }
    compute.bar.finish_and_clear();
    let bytes = std::fs::read(&args.map)
        .map_err(|error| refuse(ErrorKind::Weights, error.to_string(), "Choose another file"))?;
    let label = names::distinct(std::slice::from_ref(&args.image));
    let run = SweepRun {
        image: label.into_iter().next().unwrap_or_default(),
        image_sha256: photo.sha256.clone(),
        image_steps: pair.steps.clone(),
        edited_sha256: edited.map(|edited| edited.sha256),
        encoded: stage.passes(),
        recalled: stage.recalled(),
        encoder_title: spec.title.to_string(),
        device: compute.device_name().to_owned(),
        map_sha256: sha256_hex(&bytes),
        masked_positions: mask.iter().filter(|&&is_inside| is_inside).count(),
        positions: mask.len(),
        scores,
        identity: agreement(&pair.features.original)?,
        reorder: agreement(&reordered(&pair.features.original, &map.reorder)?)?,
        full: agreement(&map.map(&pair.features.original)?)?,
        file,
    };
    let ComputeArgs { out, formats, .. } = &args.compute;
    write_sweep(out, &args.stem, formats, &run)?;
    if !args.compute.quiet {
        print(&summary(&run))?;
    }
    Ok(())
}

impl EditArgs {
    /// Ranks in ascending order, each once.
    fn ranks(&self, channels: usize) -> Result<Vec<usize>> {
        let mut ranks = match &self.ranks {
            Ranks::All => (0..=channels).collect(),
            Ranks::These(ranks) => ranks.clone(),
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
}

/// The baselines, the full map, and for each cut the rank of the best agreement.
fn summary(run: &SweepRun) -> String {
    let heading = [
        "",
        "rank",
        "MdnCS (features)",
        "masked",
        "MSE (features)",
        "energy kept",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let cell = |value: Option<f64>| value.map_or("–".to_owned(), |value| significant(value, 4));
    let mut row = |name: String, rank: String, agreement: &Agreement, energy: Option<f64>| {
        rows.push(vec![
            name,
            rank,
            cell(agreement.mdncs_features),
            cell(agreement.mdncs_features_masked),
            cell(Some(agreement.mse_features)),
            cell(energy),
        ]);
    };
    let none = || "–".to_owned();
    row("identity".to_owned(), none(), &run.identity, None);
    row("reorder".to_owned(), none(), &run.reorder, None);
    row("full map".to_owned(), none(), &run.full, None);
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
    table(&rows)
}
