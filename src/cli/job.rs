//! `etascope profile`: from its arguments to what is to be computed.

use std::path::PathBuf;

use clap::Args;

use super::values::{
    ESTIMATORS, FORMATS, PRESETS, ReadoutName, parse_background, parse_device, parse_error_percent,
    parse_eta, parse_family, parse_image, parse_readout, parse_trace, parse_word,
};
use crate::device::DeviceChoice;
use crate::encoders::registry;
use crate::encoders::weights::checkpoint::Checkpoint;
use crate::geometry::directions::DirectionFamily;
use crate::images::Background;
use crate::recipe::{Estimator, Preset, ProfileRecipe, TraceMethod, WeightsKind};
use crate::worker::{ExportFormat, ImageSource};
use crate::{Error, ErrorKind, Result};

/// The arguments of `etascope profile`.
#[derive(Debug, Args)]
pub struct ProfileArgs {
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
    /// Folder for the files; made if absent
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Name of the files without extension
    #[arg(long, value_name = "NAME", default_value = "profile")]
    pub stem: String,
    /// Files to write: csv, json, svg, png
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "csv,json,svg,png",
          value_parser = |text: &str| parse_word(&FORMATS, text))]
    pub formats: Vec<ExportFormat>,
    /// The feature: pooled, logits or stage:NAME
    #[arg(long, value_name = "READOUT", default_value = "pooled", value_parser = parse_readout)]
    pub readout: ReadoutName,
    /// Directions: isotropic, rademacher, low-pass:SIGMA, logit-gradient, singular:COUNT,
    /// toward:IMAGE, mask:X,Y,R;X,Y,R… (noise inside discs given in fractions of the side), or along a
    /// manipulation, as blur:SIGMA, grayscale or hue:DEGREES
    #[arg(long, value_name = "FAMILY", default_value = "isotropic", value_parser = parse_family)]
    pub family: DirectionFamily,
    /// Seed of the directions
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Leave out the random-initialised twin
    #[arg(long)]
    pub no_twin: bool,
    /// Sampling: interactive (sharpens to about 1 %) or paper (2,048 directions, 256 JVPs)
    #[arg(long, default_value = "interactive",
          value_parser = |text: &str| parse_word(&PRESETS, text))]
    pub preset: Preset,
    /// Most antithetic pairs at a scale, instead of the preset's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub pairs: Option<u32>,
    /// Relative standard error in per cent at which a scale stops; 0: never
    #[arg(long, value_name = "PERCENT", value_parser = parse_error_percent)]
    pub error: Option<f64>,
    /// Estimator: control-variate or paper
    #[arg(long, value_parser = |text: &str| parse_word(&ESTIMATORS, text))]
    pub estimator: Option<Estimator>,
    /// Trace of JᵀJ for the control variate: exact or hutch++:SKETCH:PROBES
    #[arg(long, value_parser = parse_trace)]
    pub trace: Option<TraceMethod>,
    /// Directions with exact JVPs for the paper's estimator
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub jvps: Option<u32>,
    /// Magnitudes η (L2, raw [0, 1] pixels), separated by commas, instead of the paper's 17
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_eta)]
    pub etas: Vec<f64>,
    /// Dither the photograph by ±0.5/255 with this seed, which breaks ties on saturated pixels
    #[arg(long, value_name = "SEED")]
    pub dither: Option<u64>,
    /// Compute device: auto, cpu or a name that `etascope devices` lists
    #[arg(long, default_value = "auto", value_parser = parse_device)]
    pub device: DeviceChoice,
    /// Colour under transparent pixels: #rrggbb, white, black or grey
    #[arg(long, value_name = "COLOUR", default_value = "white", value_parser = parse_background)]
    pub background: Background,
    /// No progress bar and no summary
    #[arg(long, short)]
    pub quiet: bool,
}

/// What `etascope profile` is asked to compute and write.
#[derive(Clone, Debug)]
pub struct ProfileJob {
    /// Photographs, in the order of the arguments.
    pub images: Vec<ImageSource>,
    /// Recipes for each photograph: encoders in the order of the arguments, each followed by its
    /// twin.
    pub recipes: Vec<ProfileRecipe>,
    /// Compute device.
    pub device: DeviceChoice,
    /// Colour under transparent pixels.
    pub background: Background,
    /// Folder for the files.
    pub folder: PathBuf,
    /// Name of the files without extension.
    pub stem: String,
    /// Files to write.
    pub formats: Vec<ExportFormat>,
}

impl ProfileArgs {
    /// What the arguments ask for.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] for an unknown encoder or stage, a repeated encoder, or a file name
    /// that is a path.
    pub fn job(&self) -> Result<ProfileJob> {
        check_stem(&self.stem)?;
        let mut recipes: Vec<ProfileRecipe> = Vec::new();
        for name in &encoders(&self.encoder, self.weights.as_deref())? {
            if recipes.iter().any(|recipe| recipe.encoder == *name) {
                return Err(Error::new(
                    ErrorKind::Request,
                    format!("cannot profile encoder “{name}” twice"),
                    "it is named twice in --encoder",
                    "Name each encoder once",
                ));
            }
            let trained = self.recipe(name)?;
            let twin = trained.with_weights(WeightsKind::Random);
            recipes.push(trained);
            if !self.no_twin {
                recipes.push(twin);
            }
        }
        Ok(ProfileJob {
            images: self.images.clone(),
            recipes,
            device: self.device.clone(),
            background: self.background,
            folder: self.out.clone(),
            stem: self.stem.clone(),
            formats: self.formats.clone(),
        })
    }

    /// The recipe for one encoder with trained weights.
    fn recipe(&self, encoder: &str) -> Result<ProfileRecipe> {
        let spec = registry::find(encoder)?;
        let mut recipe = ProfileRecipe::interactive(encoder, WeightsKind::Trained, spec.side_px);
        self.preset.apply(&mut recipe);
        recipe.readout = self.readout.resolve(spec)?;
        recipe.family = self.family.clone();
        recipe.seed = self.seed;
        recipe.dither_seed = self.dither;
        if let Some(pairs) = self.pairs {
            recipe.pairs_max = pairs as usize;
        }
        if let Some(error) = self.error {
            recipe.target_error = error;
        }
        if let Some(estimator) = self.estimator {
            recipe.estimator = estimator;
        }
        if let Some(trace) = self.trace {
            recipe.trace = trace;
        }
        if let Some(jvps) = self.jvps {
            recipe.jvps = jvps as usize;
        }
        if !self.etas.is_empty() {
            recipe.etas_l2.clone_from(&self.etas);
            recipe.etas_l2.sort_by(f64::total_cmp);
            recipe.etas_l2.dedup();
        }
        Ok(recipe)
    }
}

/// Names of the encoders: those given, or one with weights from a file.
pub(super) fn encoders(named: &[String], weights: Option<&str>) -> Result<Vec<String>> {
    let Some(file) = weights else {
        return Ok(named.to_vec());
    };
    let cannot = |why: String, remedy: &str| {
        Error::new(
            ErrorKind::Request,
            format!("cannot use the weights “{file}”"),
            why,
            remedy,
        )
    };
    match named {
        [one] => Ok(vec![registry::local_name(one, file)]),
        [] => {
            let (path, prefix) = registry::local_file(file);
            let proposals = registry::propose(&Checkpoint::open(&path)?, prefix)?;
            let complete = proposals.iter().filter(|proposal| proposal.is_complete());
            let names: Vec<&str> = complete
                .flat_map(|p| p.encoders.iter().map(String::as_str))
                .collect();
            match names.as_slice() {
                [one] => Ok(vec![registry::local_name(one, file)]),
                [] => Err(cannot(
                    "they fit no encoder that is known".to_owned(),
                    "See “etascope encoders check FILE” for what comes near",
                )),
                several => Err(cannot(
                    format!("they fit several encoders: {}", several.join(", ")),
                    "Choose one with --encoder; it decides how photographs are prepared",
                )),
            }
        }
        _ => Err(cannot(
            "several encoders are named".to_owned(),
            "Name the one encoder that the file belongs to",
        )),
    }
}

/// Refuses a name of files that is none.
pub(super) fn check_stem(stem: &str) -> Result<()> {
    let is_file_name = PathBuf::from(stem)
        .file_name()
        .is_some_and(|name| name.to_str() == Some(stem));
    if is_file_name {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Request,
        format!("cannot name the files “{stem}”"),
        "--stem is a file name without folders",
        "Give the folder with --out",
    ))
}
