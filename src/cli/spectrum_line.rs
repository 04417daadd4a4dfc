//! Recipes of spectra as the command that computes them: the inverse of [`SpectrumArgs`].
//!
//! [`SpectrumArgs`]: super::SpectrumArgs

use std::path::Path;

use super::values::{write_background, write_device, write_image, write_readout};
use crate::device::DeviceChoice;
use crate::encoders::{Readout, registry};
use crate::geometry::spectrum::SpectrumMethod;
use crate::images::Background;
use crate::recipe::SpectrumRecipe;
use crate::worker::ImageSource;
use crate::{Error, ErrorKind, Result};

/// The command that computes the spectra of `recipes`, those of one or more trained encoders, at a photograph,
/// with the encoders' twins if `twin` is set, and writes them to `folder`: quoted for a POSIX shell, options at
/// their defaults left out.
///
/// # Errors
/// [`ErrorKind::Request`] where no command can name the photograph (it was pasted or dropped as bytes), an
/// encoder or the stage, or ask what the recipes ask: one command asks the same of all encoders.
pub fn spectrum_command_line(
    image: &ImageSource,
    recipes: &[SpectrumRecipe],
    twin: bool,
    device: &DeviceChoice,
    background: Background,
    folder: &Path,
) -> Result<String> {
    let cannot = |why: &str, remedy: &str| {
        let what = "cannot write this as a command";
        Error::new(ErrorKind::Request, what, why, remedy)
    };
    let Some((recipe, others)) = recipes.split_first() else {
        return Err(cannot("no encoder is named", "Choose an encoder"));
    };
    let image = write_image(image)
        .ok_or_else(|| cannot("the photograph is not a file", "Save it and open the file"))?;
    let readout = write_readout(&recipe.readout, registry::find(&recipe.encoder)?)
        .ok_or_else(|| cannot("the encoder has no such stage", "Choose another readout"))?;
    for other in others {
        let spec = registry::find(&other.encoder)?;
        let same = SpectrumRecipe {
            encoder: other.encoder.clone(),
            readout: other.readout.clone(),
            ..recipe.clone()
        };
        if *other != same || write_readout(&other.readout, spec).as_ref() != Some(&readout) {
            let why = format!("{} is asked something else", spec.title);
            return Err(cannot(&why, "Ask all encoders the same"));
        }
    }

    let mut words: Vec<String> = vec!["etascope".into(), "spectrum".into()];
    let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    if others.is_empty() {
        let (encoder, weights) = registry::split_local(&recipe.encoder);
        option("encoder", encoder.to_owned());
        if let Some(file) = weights {
            option("weights", file.to_owned());
        }
    } else {
        let names = recipes.iter().map(|recipe| recipe.encoder.as_str());
        let names: Vec<&str> = names.collect();
        if names.iter().any(|name| name.contains(',')) {
            return Err(cannot(
                "the name of a weights file holds a comma, which stands between encoders",
                "Rename the file",
            ));
        }
        option("encoder", names.join(","));
    }
    if recipe.readout != Readout::default() {
        option("readout", readout);
    }
    // The directions that are kept beside an exact spectrum change none of its values.
    if let SpectrumMethod::Leading { count } = recipe.method {
        option("leading", count.to_string());
    }
    if recipe.seed != 0 {
        option("seed", recipe.seed.to_string());
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    use crate::cli::{Cli, Headless, SpectrumArgs};
    use crate::recipe::WeightsKind;

    fn parse(line: &str) -> SpectrumArgs {
        let words = shlex::split(line).expect("a line that a shell can read");
        let cli = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}"));
        match cli.command {
            Some(Headless::Spectrum(args)) => *args,
            other => panic!("{line} gave {other:?}"),
        }
    }

    fn recipe(encoder: &str) -> SpectrumRecipe {
        SpectrumRecipe {
            encoder: encoder.to_owned(),
            weights: WeightsKind::Trained,
            readout: Readout::Pooled,
            method: SpectrumMethod::Leading { count: 16 },
            seed: 0,
            dither_seed: None,
        }
    }

    fn write(recipes: &[SpectrumRecipe], twin: bool) -> Result<String> {
        let image = ImageSource::Path("it's -a photo.png".into());
        let device = DeviceChoice::Adapter("An Adapter".into());
        let (colour, folder) = (Background([1, 2, 3]), Path::new("my spectra"));
        spectrum_command_line(&image, recipes, twin, &device, colour, folder)
    }

    #[test]
    fn a_command_parses_back_to_the_recipe() {
        let plain = recipe("squeezenet1_1");
        let exact = SpectrumRecipe {
            method: SpectrumMethod::Exact { vectors: 0 },
            readout: Readout::Logits,
            dither_seed: Some(9),
            ..plain.clone()
        };
        let stage = SpectrumRecipe {
            readout: Readout::Stage(2),
            seed: u64::MAX,
            method: SpectrumMethod::Leading { count: 3 },
            ..plain.clone()
        };
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/assets/encoders/squeezenet1_1.safetensors"
        );
        let local = recipe(&registry::local_name("squeezenet1_1", file));
        for recipe in [plain, exact, stage, local] {
            for twin in [false, true] {
                let line = write(std::slice::from_ref(&recipe), twin).expect("a command");
                let args = parse(&line);
                let mut expected = vec![recipe.clone()];
                if twin {
                    expected.push(SpectrumRecipe {
                        weights: WeightsKind::Random,
                        ..recipe.clone()
                    });
                }
                assert_eq!(args.recipes().expect("recipes"), expected, "{line}");
                assert_eq!(args.compute.background, Background([1, 2, 3]));
                assert_eq!(args.compute.out, Path::new("my spectra"));
                assert!(matches!(&args.images[..], [ImageSource::Path(path)]
                        if path == Path::new("it's -a photo.png")));
            }
        }
    }

    #[test]
    fn several_encoders_are_one_command_where_they_are_asked_the_same() {
        let mut both = ["efficientnet_lite0", "squeezenet1_1"].map(recipe);
        let line = write(&both, false).expect("one question");
        assert_eq!(parse(&line).recipes().expect("recipes"), both);
        both[1].seed = 4;
        assert_eq!(
            write(&both, false).expect_err("two seeds").kind,
            ErrorKind::Request
        );
        both[1].seed = 0;
        for recipe in &mut both {
            recipe.readout = Readout::Stage(0);
        }
        write(&both, false).expect_err("stages of different names");
        write(&[], false).expect_err("no encoder");
    }

    #[test]
    fn the_default_command_is_short_and_pasted_pixels_have_none() {
        let exact = SpectrumRecipe {
            method: SpectrumMethod::Exact { vectors: 0 },
            ..recipe("squeezenet1_1")
        };
        let line = |image: &ImageSource| {
            let (device, colour) = (DeviceChoice::Auto, Background::default());
            let recipes = std::slice::from_ref(&exact);
            spectrum_command_line(image, recipes, true, &device, colour, Path::new("out"))
        };
        assert_eq!(
            line(&ImageSource::Bundled("chelsea".into())).expect("a command"),
            "etascope spectrum --encoder squeezenet1_1 --out out -- bundled:chelsea"
        );
        let pasted = ImageSource::Rgba {
            width: 1,
            height: 1,
            rgba: vec![0; 4].into(),
        };
        line(&pasted).expect_err("pixels have no name");
    }
}
