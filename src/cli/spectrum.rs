//! `etascope spectrum`: singular spectra of encoders' Jacobians at photographs.

use std::sync::Arc;
use std::time::Instant;

use clap::Args;

use super::compute::{Compute, ComputeArgs, STEPS, verdict};
use super::job::{check_stem, encoders};
use super::table::table;
use super::values::{ReadoutName, parse_image, parse_readout, write_readout};
use super::{describe, names, print};
use crate::digits::significant;
use crate::encoders::registry::{self, LoadedEncoder};
use crate::geometry::encoder_field::EncoderField;
use crate::geometry::spectrum::{SpectrumEstimator, SpectrumMethod};
use crate::geometry::{Cost, Field};
use crate::images::Photo;
use crate::recipe::{SpectrumRecipe, WeightsKind};
use crate::report::{SpectrumRun, write_spectra};
use crate::worker::ImageSource;
use crate::{Error, Result};

/// The arguments of `etascope spectrum`.
#[derive(Debug, Args)]
pub struct SpectrumArgs {
    /// Photographs: files, or `bundled:NAME` for one of the program's own
    #[arg(required = true, value_name = "IMAGE", value_parser = parse_image)]
    pub images: Vec<ImageSource>,
    /// Encoders, see `etascope encoders`
    #[arg(
        long,
        value_name = "NAME",
        required_unless_present = "weights",
        value_delimiter = ','
    )]
    pub encoder: Vec<String>,
    /// Weight file for the encoder instead of its own, with `#PREFIX` for one of several copies of the
    /// network in it; without --encoder the one that the file fits
    #[arg(long, value_name = "FILE")]
    pub weights: Option<String>,
    /// The feature: pooled, logits or stage:NAME
    #[arg(long, value_name = "READOUT", default_value = "pooled", value_parser = parse_readout)]
    pub readout: ReadoutName,
    /// Only the K largest singular values, each with a bound of its error
    #[arg(long, value_name = "K", conflicts_with = "exact",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub leading: Option<u32>,
    /// All singular values, by one product a value of the feature; the default
    #[arg(long)]
    pub exact: bool,
    /// Leave out the random-initialised twin
    #[arg(long)]
    pub no_twin: bool,
    /// Seed of the search for leading values
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Dither the photograph by ±0.5/255 with this seed, which breaks ties on saturated pixels
    #[arg(long, value_name = "SEED")]
    pub dither: Option<u64>,
    /// Name of the files without extension
    #[arg(long, value_name = "NAME", default_value = "spectrum")]
    pub stem: String,
    /// Where, and what is written.
    #[command(flatten)]
    pub compute: ComputeArgs,
}

impl SpectrumArgs {
    /// Recipes for each photograph: encoders in the order of the arguments, each followed by its twin.
    pub(super) fn recipes(&self) -> Result<Vec<SpectrumRecipe>> {
        let method = match self.leading {
            Some(count) => SpectrumMethod::Leading {
                count: count as usize,
            },
            None => SpectrumMethod::Exact { vectors: 0 },
        };
        let mut recipes = Vec::new();
        for encoder in encoders(&self.encoder, self.weights.as_deref())? {
            let spec = registry::find(&encoder)?;
            let readout = self.readout.resolve(spec)?;
            // What is too large is refused before weights are read.
            let input_len = 3 * spec.side_px * spec.side_px;
            SpectrumEstimator::new(method, self.seed, spec.readout_len(&readout)?, input_len)?;
            for weights in [WeightsKind::Trained, WeightsKind::Random] {
                if weights == WeightsKind::Random && self.no_twin {
                    continue;
                }
                recipes.push(SpectrumRecipe {
                    encoder: encoder.clone(),
                    weights,
                    readout: readout.clone(),
                    method,
                    seed: self.seed,
                    dither_seed: self.dither,
                });
            }
        }
        Ok(recipes)
    }
}

/// Computes and writes what the arguments ask for. A photograph or spectrum that fails is reported and
/// the others go on.
///
/// # Errors
/// Of the request, the device or the output; at the end, where a photograph or spectrum failed.
pub fn run(args: &SpectrumArgs) -> Result<()> {
    check_stem(&args.stem)?;
    let recipes = args.recipes()?;
    let compute = Compute::start(&args.compute, args.images.len() * recipes.len())?;
    let mut failures = Vec::new();
    let mut fail = |error: Error| {
        compute.tell(&describe(&error));
        failures.push(error);
    };
    let mut photos: Vec<(usize, String, Photo)> = Vec::new();
    for (at, (image, name)) in args
        .images
        .iter()
        .zip(names::distinct(&args.images))
        .enumerate()
    {
        match image.open(args.compute.background) {
            Ok(photo) => photos.push((at, name, photo)),
            Err(error) => fail(error),
        }
    }
    // Encoder by encoder, so that each is loaded once and one is in memory at a time.
    let mut found: Vec<(usize, SpectrumRun)> = Vec::new();
    let mut done = 0;
    for recipe in recipes.iter().filter(|_| !photos.is_empty()) {
        let named = |error: Error, image: &str| Error {
            what: format!(
                "{image}{} ({}): {}",
                recipe.encoder,
                recipe.weights.name(),
                error.what
            ),
            ..error
        };
        match compute.load(&recipe.encoder, recipe.weights) {
            Ok(encoder) => {
                for (at, name, photo) in &photos {
                    match spectrum(&compute, &encoder, recipe, photo, name, done) {
                        Ok(run) => found.push((*at, run)),
                        Err(error) => fail(named(error, &format!("{name}, "))),
                    }
                    done += STEPS;
                    compute.bar.set_position(done);
                }
            }
            Err(error) => fail(named(error, "")),
        }
    }
    compute.bar.finish_and_clear();
    // As the arguments name them: photograph by photograph.
    found.sort_by_key(|(at, _)| *at);
    let runs: Vec<SpectrumRun> = found.into_iter().map(|(_, run)| run).collect();
    if !runs.is_empty() {
        let ComputeArgs { out, formats, .. } = &args.compute;
        write_spectra(out, &args.stem, formats, &runs)?;
        if !args.compute.quiet {
            print(&summary_table(&runs))?;
        }
    }
    verdict(&failures, !runs.is_empty(), "spectra")
}

/// The spectrum of a loaded encoder at a photograph known as `name`; the bar stands at `done`.
fn spectrum(
    compute: &Compute,
    encoder: &Arc<LoadedEncoder>,
    recipe: &SpectrumRecipe,
    photo: &Photo,
    name: &str,
    done: u64,
) -> Result<SpectrumRun> {
    let started = Instant::now();
    let spec = encoder.spec();
    compute.bar.set_message(format!(
        "{name} · {}, {}",
        spec.title,
        recipe.weights.name()
    ));
    let mut prepared = spec.preprocessing.apply(photo)?;
    if let Some(seed) = recipe.dither_seed {
        prepared = prepared.dithered(seed);
    }
    let mut field = EncoderField::new(Arc::clone(encoder), recipe.readout.clone(), &prepared)?;
    let (feature_len, input_len) = (field.output_len(), field.input_len());
    let mut search = SpectrumEstimator::new(recipe.method, recipe.seed, feature_len, input_len)?;
    let products = |cost: Cost| cost.forwards + cost.jvps + cost.vjps;
    let planned = products(SpectrumEstimator::planned_cost(recipe.method, feature_len)).max(1);
    let mut cost = Cost::default();
    while !search.step(&mut field, &mut cost)? {
        let share = (products(cost) as f64 / planned as f64).min(1.0);
        compute
            .bar
            .set_position(done + (share * STEPS as f64) as u64);
    }
    let spectrum = search.spectrum().cloned().ok_or_else(|| {
        Error::new(
            crate::ErrorKind::Internal,
            "cannot find the singular spectrum",
            "the search ended without a result",
            "Report this as a fault of the program",
        )
    })?;
    let mut image_steps = photo.treatment.clone();
    image_steps.push(prepared.steps);
    Ok(SpectrumRun {
        image: name.to_owned(),
        image_sha256: photo.sha256.clone(),
        image_steps,
        encoder_title: spec.title.to_string(),
        weights_id: encoder.weights_id.clone(),
        device: compute.device_name().to_owned(),
        recipe: recipe.clone(),
        readout: write_readout(&recipe.readout, spec).unwrap_or_default(),
        feature_len,
        input_len,
        spectrum,
        cost,
        elapsed_secs: started.elapsed().as_secs_f64(),
    })
}

/// One line a spectrum: its largest value and what is read off an exact one.
fn summary_table(runs: &[SpectrumRun]) -> String {
    let heading = [
        "image",
        "encoder",
        "weights",
        "values",
        "σ₁",
        "entropy",
        "effective rank",
        "stable rank",
        "energy in 10",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for run in runs {
        let readout = run.spectrum.readout();
        let cell =
            |value: Option<f64>| value.map_or("–".to_owned(), |value| significant(value, 3));
        rows.push(vec![
            run.image.clone(),
            run.encoder_title.clone(),
            run.recipe.weights.name().to_owned(),
            run.spectrum.values.len().to_string(),
            cell(run.spectrum.values.first().copied()),
            cell(readout.map(|readout| readout.entropy_nats)),
            cell(readout.map(|readout| readout.effective_rank)),
            cell(readout.map(|readout| readout.stable_rank)),
            cell(readout.map(|readout| readout.energy_top[2])),
        ]);
    }
    table(&rows)
}
