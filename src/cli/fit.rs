//! `etascope fit`: a map from the feature maps of photographs to those of their edits.

use std::path::Path;

use clap::Args;

use super::compute::{Compute, ComputeArgs, STEPS};
use super::job::{check_stem, encoders};
use super::names;
use super::pictures::Pictures;
use super::print;
use super::table::table;
use super::values::{ReadoutName, parse_image, parse_word};
use crate::digits::significant;
use crate::encoders::registry;
use crate::encoders::{Readout, WeightsKind};
use crate::geometry::maps::reorder::{reordered, symmetries};
use crate::geometry::maps::ridge::{choose_gamma, ridge, ridge_to_identity};
use crate::geometry::maps::{
    EditMap, FeatureMapping, FitSums, MapFile, MapKind, Part, Shares, save, split_by_photograph,
};
use crate::images::{Manipulation, Photo, bundled, pairs, sha256_hex};
use crate::report::{FitRun, FittedPhoto, GammaChoice, Score, mean_scores, part_name, write_fit};
use crate::worker::ImageSource;
use crate::{Error, ErrorKind, Result};

/// γ that are tried for ridge, on the un-averaged Gram matrix of (normalised) vectors.
const RIDGE_GAMMAS: [f64; 9] = [1e-3, 1e-2, 0.1, 1.0, 10.0, 1e2, 1e3, 1e4, 1e5];

/// γ that are tried for ridge toward the identity, in units of the Gram matrix's mean diagonal.
const IDENTITY_GAMMAS: [f64; 9] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0];

/// A kind of map before its γ is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapWord {
    /// [`MapKind::Identity`].
    Identity,
    /// [`MapKind::Additive`].
    Additive,
    /// [`MapKind::Linear`].
    Linear,
    /// [`MapKind::Ridge`].
    Ridge,
    /// [`MapKind::RidgeToIdentity`].
    RidgeIdentity,
    /// [`MapKind::Procrustes`].
    Procrustes,
}

/// Words of [`MapWord`].
const MAPS: [(&str, MapWord); 6] = [
    ("identity", MapWord::Identity),
    ("additive", MapWord::Additive),
    ("linear", MapWord::Linear),
    ("ridge", MapWord::Ridge),
    ("ridge-identity", MapWord::RidgeIdentity),
    ("procrustes", MapWord::Procrustes),
];

/// The arguments of `etascope fit`.
#[derive(Debug, Args)]
pub struct FitArgs {
    /// Photographs: files, folders of files, or `bundled:NAME`; without any the program's own
    #[arg(value_name = "PHOTO", value_parser = parse_image)]
    pub photos: Vec<ImageSource>,
    /// What is done to the photographs, as hue:60; several are done in their order
    #[arg(long, value_name = "EDIT", required = true,
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
    /// Kind of map: identity, additive, linear, ridge, ridge-identity or procrustes
    #[arg(long, value_name = "KIND", default_value = "ridge-identity",
          value_parser = |text: &str| parse_word(&MAPS, text))]
    pub map: MapWord,
    /// Penalty of ridge and ridge-identity, instead of one chosen on the validation photographs
    #[arg(long, value_name = "G", value_parser = parse_gamma)]
    pub gamma: Option<f64>,
    /// Use vectors as they are, without normalising each channel
    #[arg(long)]
    pub raw: bool,
    /// Seed of the split into training, validation and held-out photographs
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
    /// Where, and what is written.
    #[command(flatten)]
    pub compute: ComputeArgs,
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
    args.check_gamma()?;
    let named: Vec<String> = args.encoder.iter().cloned().collect();
    let names = encoders(&named, args.weights.as_deref())?;
    let name = names.first().map_or("", String::as_str);
    let spec = registry::find(name)?;
    let Readout::Stage(stage) = ReadoutName::Stage(args.stage.clone()).resolve(spec)? else {
        return Err(no_stage());
    };
    let [channels, ..] = spec.readout_shape(&Readout::Stage(stage))?;
    let sources = args.sources()?;
    let compute = Compute::start(&args.compute, 2 * sources.len())?;

    // Photographs are read again for each pass and not kept: sums and scores are all that is.
    let background = args.compute.background;
    let mut hashes = Vec::with_capacity(sources.len());
    for source in &sources {
        hashes.push(source.open(background)?.sha256);
    }
    let keys: Vec<&str> = hashes.iter().map(String::as_str).collect();
    let shares = Shares {
        validation: args.validation,
        held_out: args.held_out,
    };
    let parts = split_by_photograph(&keys, shares, args.seed)?;
    let pictures = Pictures {
        encoder: compute.load(name, WeightsKind::Trained)?,
        stage,
        manipulations: &args.manipulation,
    };
    let reorder = symmetries(&args.manipulation);
    let mut train = FitSums::new(channels, reorder.clone());
    let mut validation = FitSums::new(channels, reorder.clone());
    let labels = names::distinct(&sources);
    let mut photographs = Vec::with_capacity(sources.len());
    for (i, source) in sources.iter().enumerate() {
        compute.bar.set_message(format!("{} · encoding", labels[i]));
        let photo: Photo = source.open(background)?;
        let sums = match parts[i] {
            Part::Train => Some(&mut train),
            Part::Validation => Some(&mut validation),
            Part::HeldOut => None,
        };
        let mut steps = photo.treatment.clone();
        if let Some(sums) = sums {
            let pair = pictures.pair(&photo)?;
            sums.add(&pair.original, &pair.edited)?;
            steps = pair.steps;
        } else {
            steps.push(spec.preprocessing.apply(&photo)?.steps);
        }
        photographs.push(FittedPhoto {
            name: labels[i].clone(),
            sha256: photo.sha256,
            part: parts[i],
            steps,
        });
        compute.bar.inc(STEPS);
    }

    let (kind, choice) = args.kind(&mut train, &mut validation)?;
    let map = train.fit(kind, !args.raw)?;
    let mut scores = Vec::new();
    for (i, source) in sources.iter().enumerate() {
        compute.bar.set_message(format!("{} · scoring", labels[i]));
        let pair = pictures.pair(&source.open(background)?)?;
        let candidates = [
            ("identity", pair.original.clone()),
            ("reorder", reordered(&pair.original, &reorder)?),
            ("map", map.map(&pair.original)?),
        ];
        for (method, features) in &candidates {
            scores.push(Score::of(
                &labels[i],
                parts[i],
                method,
                features,
                &pair.edited,
            )?);
        }
        compute.bar.inc(STEPS);
    }
    compute.bar.finish_and_clear();

    let train_hashes: Vec<&str> = (keys.iter().zip(&parts))
        .filter(|(_, part)| **part == Part::Train)
        .map(|(key, _)| *key)
        .collect();
    let file = MapFile {
        encoder: name.to_owned(),
        weights_id: pictures.encoder.weights_id.clone(),
        stage: args.stage.clone(),
        manipulations: args.manipulation.clone(),
        data_sha256: sha256_hex(train_hashes.concat().as_bytes()),
        photographs: train_hashes.len(),
        vectors: train.moments()?.count as usize,
        map,
    };
    let run = FitRun {
        encoder_title: spec.title.to_string(),
        device: compute.device().to_owned(),
        seed: args.seed,
        shares,
        photographs,
        choice,
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

impl FitArgs {
    fn check_gamma(&self) -> Result<()> {
        if self.gamma.is_none() || matches!(self.map, MapWord::Ridge | MapWord::RidgeIdentity) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Request,
            "cannot use --gamma",
            "this kind of map has no penalty",
            "Leave it out, or choose --map ridge or ridge-identity",
        ))
    }

    /// The photographs: those given, folders replaced by the pictures in them; the bundled ones where none is.
    fn sources(&self) -> Result<Vec<ImageSource>> {
        if self.photos.is_empty() {
            return Ok(bundled::NAMES
                .map(|name| ImageSource::Bundled(name.to_owned()))
                .to_vec());
        }
        let mut sources = Vec::new();
        for photo in &self.photos {
            match photo {
                ImageSource::Path(path) if path.is_dir() => {
                    let found = pairs::pictures(path, &mut Vec::new())?;
                    if found.is_empty() {
                        return Err(no_pictures(path));
                    }
                    sources.extend(found.into_iter().map(ImageSource::Path));
                }
                photo => sources.push(photo.clone()),
            }
        }
        Ok(sources)
    }

    /// The kind of map with its γ: the one given, or the one with the least error on validation photographs,
    /// found from sums alone.
    fn kind(
        &self,
        train: &mut FitSums,
        validation: &mut FitSums,
    ) -> Result<(MapKind, Option<GammaChoice>)> {
        let candidates = match (self.map, self.gamma) {
            (MapWord::Identity, _) => return Ok((MapKind::Identity, None)),
            (MapWord::Additive, _) => return Ok((MapKind::Additive, None)),
            (MapWord::Linear, _) => return Ok((MapKind::Linear, None)),
            (MapWord::Procrustes, _) => return Ok((MapKind::Procrustes, None)),
            (MapWord::Ridge, Some(gamma)) => return Ok((MapKind::Ridge { gamma }, None)),
            (MapWord::RidgeIdentity, Some(gamma)) => {
                return Ok((MapKind::RidgeToIdentity { gamma }, None));
            }
            (MapWord::Ridge, None) => RIDGE_GAMMAS,
            (MapWord::RidgeIdentity, None) => IDENTITY_GAMMAS,
        };
        if validation.pictures() == 0 {
            return Err(Error::new(
                ErrorKind::Request,
                "cannot choose γ",
                "no photograph is for validation",
                "Give a share with --validation, or γ with --gamma",
            ));
        }
        let (mut seen, mut unseen) = (train.moments()?, validation.moments()?);
        if !self.raw {
            let normalisation = seen.normalisation();
            seen = seen.normalised(&normalisation);
            unseen = unseen.normalised(&normalisation);
        }
        let is_plain = self.map == MapWord::Ridge;
        let fit = |gamma| match is_plain {
            true => ridge(&seen, gamma),
            false => ridge_to_identity(&seen, gamma),
        };
        let (gamma, errors) = choose_gamma(fit, &candidates, &unseen)?;
        let kind = match is_plain {
            true => MapKind::Ridge { gamma },
            false => MapKind::RidgeToIdentity { gamma },
        };
        let choice = GammaChoice {
            candidates: candidates.to_vec(),
            errors,
        };
        Ok((kind, Some(choice)))
    }
}

fn no_pictures(folder: &Path) -> Error {
    Error::new(
        ErrorKind::Image,
        format!("cannot use the folder “{}”", folder.display()),
        "no picture lies in it",
        "Choose a folder with photographs; folders inside are not searched",
    )
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
    format!(
        "{}; training photographs: {}, vectors: {}\n{}",
        kind.title(),
        run.file.photographs,
        run.file.vectors,
        table(&rows)
    )
}
