//! A recipe as the command that computes it: the inverse of [`ProfileArgs::job`].
//!
//! [`ProfileArgs::job`]: super::ProfileArgs::job

use std::path::Path;

use super::values::{
    ESTIMATORS, PRESETS, write_background, write_device, write_error_percent, write_family,
    write_image, write_readout, write_trace, write_word,
};
use crate::device::DeviceChoice;
use crate::encoders::registry;
use crate::images::Background;
use crate::recipe::{Preset, ProfileRecipe, WeightsKind, paper_etas};
use crate::worker::ImageSource;
use crate::{Error, ErrorKind, Result};

/// The command that computes `recipes`, those of one or more trained encoders, for a photograph, with
/// the encoders' twins if `twin` is set, and writes them to `folder`: quoted for a POSIX shell, options
/// at their defaults left out.
///
/// # Errors
/// [`ErrorKind::Request`] where no command can name the photograph (it was pasted or dropped as
/// bytes), an encoder or the stage, or ask what the recipes ask: of several encoders one command asks
/// the same, each on the scales of its own input side or all on the same.
pub fn command_line(
    image: &ImageSource,
    recipes: &[ProfileRecipe],
    twin: bool,
    device: &DeviceChoice,
    background: Background,
    folder: &Path,
) -> Result<String> {
    let cannot = |why: &str, remedy: &str| {
        Error::new(
            ErrorKind::Request,
            "cannot write this as a command",
            why,
            remedy,
        )
    };
    let Some((recipe, others)) = recipes.split_first() else {
        return Err(cannot("no encoder is named", "Choose an encoder"));
    };
    let spec = registry::find(&recipe.encoder)?;
    let image = write_image(image)
        .ok_or_else(|| cannot("the photograph is not a file", "Save it and open the file"))?;
    let readout = write_readout(&recipe.readout, spec)
        .ok_or_else(|| cannot("the encoder has no such stage", "Choose another readout"))?;

    let on_own_scales = recipe.etas_l2 == paper_etas(spec.side_px);
    for other in others {
        let spec = registry::find(&other.encoder)?;
        let etas_l2 = if on_own_scales {
            paper_etas(spec.side_px)
        } else {
            recipe.etas_l2.clone()
        };
        let same = ProfileRecipe {
            encoder: other.encoder.clone(),
            readout: other.readout.clone(),
            etas_l2,
            ..recipe.clone()
        };
        if *other != same || write_readout(&other.readout, spec).as_ref() != Some(&readout) {
            let why = format!("{} is asked something else", spec.title);
            return Err(cannot(&why, "Ask all encoders the same"));
        }
    }

    let mut base = ProfileRecipe::interactive(&recipe.encoder, WeightsKind::Trained, spec.side_px);
    let preset = preset_of(recipe);
    preset.apply(&mut base);

    let mut words: Vec<String> = vec!["etascope".into(), "profile".into()];
    let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    if others.is_empty() {
        let (encoder, weights) = registry::split_local(&recipe.encoder);
        option("encoder", encoder.to_owned());
        if let Some(file) = weights {
            option("weights", file.to_owned());
        }
    } else {
        let names: Vec<&str> = (recipes.iter())
            .map(|recipe| recipe.encoder.as_str())
            .collect();
        if names.iter().any(|name| name.contains(',')) {
            return Err(cannot(
                "the name of a weights file holds a comma, which stands between encoders",
                "Rename the file",
            ));
        }
        option("encoder", names.join(","));
    }
    if recipe.readout != base.readout {
        option("readout", readout);
    }
    if recipe.family != base.family {
        option("family", write_family(&recipe.family));
    }
    if recipe.seed != base.seed {
        option("seed", recipe.seed.to_string());
    }
    if preset != Preset::default() {
        option("preset", write_word(&PRESETS, &preset).to_owned());
    }
    if recipe.pairs_max != base.pairs_max {
        option("pairs", recipe.pairs_max.to_string());
    }
    if recipe.target_error != base.target_error {
        option("error", write_error_percent(recipe.target_error));
    }
    if recipe.estimator != base.estimator {
        option(
            "estimator",
            write_word(&ESTIMATORS, &recipe.estimator).to_owned(),
        );
    }
    if recipe.trace != base.trace {
        option("trace", write_trace(recipe.trace));
    }
    if recipe.jvps != base.jvps {
        option("jvps", recipe.jvps.to_string());
    }
    if recipe.etas_l2 != base.etas_l2 {
        let etas: Vec<String> = recipe.etas_l2.iter().map(f64::to_string).collect();
        option("etas", etas.join(","));
    }
    if let Some(seed) = recipe.dither_seed {
        option("dither", seed.to_string());
    }
    if *device != DeviceChoice::default() {
        option("device", write_device(device).to_owned());
    }
    if background != Background::default() {
        option("background", write_background(background));
    }
    option("out", folder.to_string_lossy().into_owned());
    if !twin {
        words.push("--no-twin".into());
    }
    // After `--` a file name may begin with a dash.
    words.extend(["--".into(), image]);
    shlex::try_join(words.iter().map(String::as_str))
        .map_err(|_| cannot("a name holds a zero byte", "Rename the file"))
}

/// The preset that needs fewest changes to become `recipe`.
fn preset_of(recipe: &ProfileRecipe) -> Preset {
    let changes = |preset: Preset| {
        let mut other = recipe.clone();
        preset.apply(&mut other);
        usize::from(other.estimator != recipe.estimator)
            + usize::from(other.trace != recipe.trace)
            + usize::from(other.pairs_max != recipe.pairs_max)
            + usize::from(other.jvps != recipe.jvps)
            + usize::from(other.target_error != recipe.target_error)
    };
    PRESETS
        .into_iter()
        .map(|(_, preset)| preset)
        .min_by_key(|preset| changes(*preset))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    use crate::cli::{Cli, Headless, ProfileJob};
    use crate::encoders::Readout;
    use crate::geometry::directions::DirectionFamily;
    use crate::images::{Disc, Manipulation, Mask};
    use crate::recipe::{Estimator, TraceMethod};

    fn parse(line: &str) -> ProfileJob {
        let words = shlex::split(line).expect("a line that a shell can read");
        let cli = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}"));
        match cli.command {
            Some(Headless::Profile(args)) => args.job().expect("a job"),
            other => panic!("{line} gave {other:?}"),
        }
    }

    fn squeezenet() -> ProfileRecipe {
        let spec = registry::find("squeezenet1_1").expect("a bundled encoder");
        ProfileRecipe::interactive(&spec.name, WeightsKind::Trained, spec.side_px)
    }

    fn recipes() -> Vec<ProfileRecipe> {
        let mut all = Vec::new();
        for spec in registry::bundled() {
            let plain = ProfileRecipe::interactive(&spec.name, WeightsKind::Trained, spec.side_px);
            let mut paper = plain.clone();
            Preset::Paper.apply(&mut paper);
            paper.pairs_max = 16;
            let logits = ProfileRecipe {
                readout: Readout::Logits,
                family: DirectionFamily::LowPass { sigma_px: 1.3 },
                seed: u64::MAX,
                etas_l2: vec![1e-3, 0.1 + 0.2, 17.0],
                trace: TraceMethod::Exact,
                target_error: 0.007,
                ..plain.clone()
            };
            let stage = ProfileRecipe {
                readout: Readout::Stage(spec.stages.len() - 1),
                family: DirectionFamily::TopSingular { count: 3 },
                estimator: Estimator::Paper,
                jvps: 5,
                dither_seed: Some(9),
                ..plain.clone()
            };
            let families = [
                DirectionFamily::Toward {
                    image: "a folder/it's; \"t: x\".png".to_owned(),
                },
                DirectionFamily::Along {
                    manipulation: Manipulation::Blur { sigma_px: 2.5 },
                },
                DirectionFamily::Along {
                    manipulation: Manipulation::Grayscale,
                },
                DirectionFamily::Masked {
                    mask: Mask {
                        discs: [0.1, 0.7]
                            .map(|x| Disc {
                                x,
                                y: 0.3,
                                radius: 0.05,
                            })
                            .to_vec(),
                    },
                },
            ];
            all.extend(families.map(|family| ProfileRecipe {
                family,
                ..plain.clone()
            }));
            all.extend([plain, paper, logits, stage]);
        }
        all
    }

    #[test]
    fn a_command_parses_back_to_the_recipe() {
        let folder = Path::new("out");
        for recipe in recipes() {
            let image = ImageSource::Bundled("chelsea".into());
            let device = DeviceChoice::Cpu;
            let colour = Background([1, 2, 3]);
            let line = command_line(
                &image,
                std::slice::from_ref(&recipe),
                true,
                &device,
                colour,
                folder,
            )
            .expect("a bundled photograph has a name");
            let job = parse(&line);
            assert_eq!(
                job.recipes,
                [recipe.clone(), recipe.with_weights(WeightsKind::Random)],
                "{line}"
            );
            assert_eq!((job.device, job.background), (device, colour));
            assert_eq!(job.folder, folder);
        }
    }

    #[test]
    fn several_encoders_are_one_command_that_parses_back() {
        let folder = Path::new("out");
        let image = ImageSource::Bundled("coffee".into());
        let write = |recipes: &[ProfileRecipe]| {
            let colour = Background::default();
            command_line(&image, recipes, true, &DeviceChoice::Auto, colour, folder)
        };
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/assets/encoders/squeezenet1_1.safetensors"
        );
        let local = registry::local_name("squeezenet1_1", file);
        let names = ["efficientnet_lite0", "squeezenet1_1", &local];
        let mut recipes = names.map(|name| {
            let spec = registry::find(name).expect("a known encoder");
            let mut recipe = ProfileRecipe::interactive(name, WeightsKind::Trained, spec.side_px);
            recipe.readout = Readout::Logits;
            recipe.seed = 3;
            recipe
        });
        let line = write(&recipes).expect("one question");
        let expected: Vec<ProfileRecipe> = (recipes.iter())
            .flat_map(|recipe| [recipe.clone(), recipe.with_weights(WeightsKind::Random)])
            .collect();
        assert_eq!(parse(&line).recipes, expected, "{line}");

        // Another question, and a stage of one encoder alone, no one command can ask.
        recipes[1].seed = 4;
        assert_eq!(
            write(&recipes).expect_err("two seeds").kind,
            ErrorKind::Request
        );
        recipes[1].seed = 3;
        for recipe in &mut recipes {
            recipe.readout = Readout::Stage(0);
        }
        let error = write(&recipes).expect_err("stages of different names");
        assert_eq!(error.kind, ErrorKind::Request);
        assert!(write(&[]).is_err());
    }

    #[test]
    fn names_that_a_shell_would_change_survive() {
        let recipe = squeezenet();
        for name in [
            "-rf.png",
            "it's $HOME; a \"photo\" & 50 %.jpg",
            "日本 η.webp",
        ] {
            let image = ImageSource::Path(name.into());
            let device = DeviceChoice::Adapter("An Adapter (tm) / 'x'".into());
            let folder = Path::new("my results");
            let line = command_line(
                &image,
                std::slice::from_ref(&recipe),
                false,
                &device,
                Background::default(),
                folder,
            )
            .expect("a file has a name");
            let job = parse(&line);
            assert!(
                matches!(&job.images[..], [ImageSource::Path(path)] if path == Path::new(name)),
                "{line}"
            );
            assert_eq!(job.recipes, std::slice::from_ref(&recipe));
            assert_eq!(job.device, device);
            assert_eq!(job.folder, folder);
        }
    }

    #[test]
    fn the_default_command_is_short() {
        let recipe = squeezenet();
        let image = ImageSource::Bundled("chelsea".into());
        let line = command_line(
            &image,
            &[recipe],
            true,
            &DeviceChoice::Auto,
            Background::default(),
            Path::new("out"),
        );
        assert_eq!(
            line.expect("a command"),
            "etascope profile --encoder squeezenet1_1 --out out -- bundled:chelsea"
        );
    }

    #[test]
    fn pasted_pixels_have_no_command() {
        let recipe = squeezenet();
        let image = ImageSource::Rgba {
            width: 1,
            height: 1,
            rgba: vec![0; 4].into(),
        };
        let error = command_line(
            &image,
            &[recipe],
            true,
            &DeviceChoice::Auto,
            Background::default(),
            Path::new("out"),
        )
        .expect_err("pixels have no name");
        assert_eq!(error.kind, ErrorKind::Request);
    }
}
