//! `etascope fit`: a map from the feature maps of photographs to those of their edits.

use clap::Args;

use super::compute::{CacheArgs, Compute, ComputeArgs};
use super::fitting::Photographs;
use super::job::{check_stem, encoders};
use super::map_kind::{LOSSES, MAPS, MapWord};
use super::photographs::{PhotoArgs, Source};
use super::table::table;
use super::values::{ReadoutName, parse_word, write_image};
use super::{names, print};
use crate::digits::significant;
use crate::encoders::registry;
use crate::encoders::{Readout, WeightsKind};
use crate::geometry::encoding::StageEncoder;
use crate::geometry::maps::reorder::symmetries;
use crate::geometry::maps::trained::{Loss, TrainingConfig};
use crate::geometry::maps::{
    EditMap, MapFile, Part, Shares, data_sha256, save, split_by_photograph,
};
use crate::images::Manipulation;
use crate::images::crop::CropSet;
use crate::report::{FitRun, mean_scores, part_name, write_fit};
use crate::{Error, ErrorKind, Result};

/// The arguments of `etascope fit`.
#[derive(Debug, Args)]
pub struct FitArgs {
    /// Which photographs.
    #[command(flatten)]
    pub photographs: PhotoArgs,
    /// What is done to the photographs, as hue:60; several are done in their order
    #[arg(long, value_name = "EDIT", required_unless_present = "pairs",
          value_parser = |text: &str| text.parse::<Manipulation>())]
    pub manipulation: Vec<Manipulation>,
    /// Encoder, see `etascope encoders`
    #[arg(long, value_name = "NAME", required_unless_present = "weights")]
    pub encoder: Option<String>,
    /// Weight file for the encoder instead of its own; without --encoder the one that the file fits
    #[arg(long, value_name = "FILE")]
    pub weights: Option<String>,
    /// Stage whose feature maps are mapped
    #[arg(long, value_name = "NAME")]
    pub stage: String,
    /// Kind of map: identity, additive, linear, ridge, ridge-identity, procrustes or per-position; or trained by gradient
    /// descent: trained-linear, mlp, cnn, transformer or transformer-positions
    #[arg(long, value_name = "KIND", default_value = "ridge-identity",
          value_parser = |text: &str| parse_word(&MAPS, text))]
    pub map: MapWord,
    /// Penalty of ridge and ridge-identity, instead of one chosen on the validation photographs
    #[arg(long, value_name = "G", value_parser = parse_gamma)]
    pub gamma: Option<f64>,
    /// Use vectors as they are, without normalising each channel
    #[arg(long)]
    pub raw: bool,
    /// Random crops of each training photograph that are fitted to beside the whole of it; half of them are mirrored
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub crops: usize,
    /// Sides of the crops as shares of the photograph's shorter side, least and largest
    #[arg(long, value_name = "MIN,MAX", default_value = "0.4,1", value_parser = parse_scale)]
    pub crop_scale: [f64; 2],
    /// Epochs of a trained map at most
    #[arg(long, value_name = "N", default_value_t = TrainingConfig::default().epochs)]
    pub epochs: usize,
    /// Learning rate of a trained map
    #[arg(long, value_name = "RATE", default_value_t = TrainingConfig::default().rate)]
    pub rate: f64,
    /// Loss of a trained map: blend (the paper's), mse, huber or mean-cosine
    #[arg(long, value_name = "LOSS", default_value = "blend",
          value_parser = |text: &str| parse_word(&LOSSES, text))]
    pub loss: Loss,
    /// Seed of the split into training, validation and held-out photographs, of the crops and of a training
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Share of the photographs that choose γ
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    pub validation: f64,
    /// Share of the photographs that are held out for scores
    #[arg(long, value_name = "SHARE", default_value_t = 0.2)]
    pub held_out: f64,
    /// Name of the files without extension
    #[arg(long, value_name = "NAME", default_value = "map")]
    pub stem: String,
    /// Feature maps on disk.
    #[command(flatten)]
    pub cache: CacheArgs,
    /// Where, and what is written.
    #[command(flatten)]
    pub compute: ComputeArgs,
}

fn parse_scale(text: &str) -> std::result::Result<[f64; 2], String> {
    let shares: Option<Vec<f64>> = text
        .split(',')
        .map(|part| part.trim().parse().ok())
        .collect();
    match shares.as_deref() {
        Some(&[least, most]) => Ok([least, most]),
        _ => Err("give two shares, the smaller first, as 0.4,1".to_owned()),
    }
}

fn parse_gamma(text: &str) -> std::result::Result<f64, String> {
    match text.trim().parse() {
        Ok(gamma) if f64::is_finite(gamma) && gamma >= 0.0 => Ok(gamma),
        _ => Err("γ is a number of 0 or above".to_owned()),
    }
}

/// Fits a map, scores it and writes it with table, sidecar and figure.
///
/// # Errors
/// Of the request, the photographs, the device or the output. A photograph that cannot be read ends the fit,
/// because the map would silently be another one.
pub fn run(args: &FitArgs) -> Result<()> {
    check_stem(&args.stem)?;
    args.map.check_gamma(args.gamma)?;
    let named: Vec<String> = args.encoder.iter().cloned().collect();
    let names = encoders(&named, args.weights.as_deref())?;
    let name = names.first().map_or("", String::as_str);
    let spec = registry::find(name)?;
    let Readout::Stage(stage) = ReadoutName::Stage(args.stage.clone()).resolve(spec)? else {
        return Err(no_stage());
    };
    let (mut sources, report) = args.photographs.sources()?;
    let held_out = args.photographs.held_out()?;
    let shares = Shares {
        validation: args.validation,
        held_out: if held_out.is_empty() {
            args.held_out
        } else {
            0.0
        },
    };
    let mut hashes: Vec<String> = sources.iter().map(Source::sha256).collect::<Result<_>>()?;
    let drawn: Vec<&str> = hashes.iter().map(String::as_str).collect();
    let mut parts = split_by_photograph(&drawn, shares, args.seed)?;
    for source in held_out {
        let hash = source.sha256()?;
        if hashes.contains(&hash) {
            return Err(also_fitted(&source));
        }
        parts.push(Part::HeldOut);
        hashes.push(hash);
        sources.push(source);
    }
    let keys: Vec<&str> = hashes.iter().map(String::as_str).collect();
    let compute = Compute::start(&args.compute, sources.len() + 1)?;
    let encoder = compute.load(name, WeightsKind::Trained)?;
    let photographs = Photographs {
        args,
        sources: &sources,
        labels: names::distinct(&(sources.iter().map(|s| s.image.clone())).collect::<Vec<_>>()),
        parts: &parts,
        encoder: StageEncoder::new(encoder, stage, args.cache.open())?,
    };
    let shape = spec.readout_shape(&Readout::Stage(stage))?;
    let reorder = symmetries(&args.manipulation);
    let (fitted, read) = match args.map {
        MapWord::Trained(kind) => photographs.train(kind, reorder, &compute)?,
        MapWord::Closed(family) => photographs.solve(family, shape, reorder, &compute)?,
    };
    let scores = photographs.scores(&fitted.map, read.held)?;
    compute.bar.finish_and_clear();

    // What an outside editor has made of a photograph is as much of the data as the photograph.
    let is_train = |part: &Part| *part == Part::Train;
    let train = (keys.iter().zip(&parts)).filter(|(_, part)| is_train(part));
    let data = train.map(|(key, _)| *key);
    let data = data.chain(read.edit_hashes.iter().map(String::as_str));
    let file = MapFile {
        encoder: name.to_owned(),
        weights_id: photographs.encoder.encoder().weights_id.clone(),
        stage: args.stage.clone(),
        manipulations: args.manipulation.clone(),
        data_sha256: data_sha256(data, args.crop_set().as_ref()),
        photographs: parts.iter().filter(|part| is_train(part)).count(),
        vectors: fitted.vectors,
        map: fitted.map,
    };
    let run = FitRun {
        encoder_title: spec.title.to_string(),
        device: compute.device_name().to_owned(),
        seed: args.seed,
        shares,
        photographs: read.photographs,
        crops: args.crop_set(),
        pairs: report,
        encoded: photographs.encoder.passes(),
        recalled: photographs.encoder.recalled(),
        choice: fitted.choice,
        scores,
        file,
    };
    let ComputeArgs { out, formats, .. } = &args.compute;
    save(&run.file, &out.join(format!("{}.safetensors", args.stem)))?;
    write_fit(out, &args.stem, formats, &run)?;
    if !args.compute.quiet {
        print(&summary(&run))?;
    }
    Ok(())
}

fn no_stage() -> Error {
    Error::new(
        ErrorKind::Request,
        "cannot map the features",
        "no stage is named",
        "Name one with --stage",
    )
}

/// A photograph cannot be held out from a fit to itself.
fn also_fitted(source: &Source) -> Error {
    let name = write_image(&source.image).unwrap_or_default();
    Error::new(
        ErrorKind::Request,
        format!("cannot hold “{name}” out"),
        "the same file is among the other photographs",
        "Leave it out there",
    )
}

impl FitArgs {
    /// The crops of each training photograph; `None` where there are none.
    pub(super) fn crop_set(&self) -> Option<CropSet> {
        (self.crops > 0).then_some(CropSet {
            count: self.crops,
            scale: self.crop_scale,
            seed: self.seed,
        })
    }
}

/// What the map is, and its mean scores beside the baselines'.
fn summary(run: &FitRun) -> String {
    let EditMap { kind, .. } = &run.file.map;
    let heading = ["part", "method", "MdnCS (features)", "mean cosine", "MSE"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let cell = |value: Option<f64>| value.map_or("–".to_owned(), |value| significant(value, 4));
    for mean in mean_scores(&run.scores) {
        rows.push(vec![
            part_name(mean.part).to_owned(),
            mean.method,
            cell(mean.mdncs_features),
            cell(mean.mean_cosine),
            cell(Some(mean.mse)),
        ]);
    }
    let pairs = match &run.pairs {
        Some(report) => format!("{}\n", report.summary()),
        None => String::new(),
    };
    format!(
        "{pairs}{}; training photographs: {}, vectors: {}; pictures encoded: {}, found in the cache: {}\n{}",
        kind.title(),
        run.file.photographs,
        run.file.vectors,
        run.encoded,
        run.recalled,
        table(&rows)
    )
}
