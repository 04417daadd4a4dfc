//! Words of the command line for the values of a recipe, in both directions: for every value
//! that can be computed, `parse_x(&write_x(value)) == Ok(value)`.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::device::DeviceChoice;
use crate::encoders::{EncoderSpec, Readout};
use crate::geometry::directions::{DirectionFamily, SINGULAR_MAX};
use crate::geometry::trace::HUTCH_MAX;
use crate::images::{Background, Disc, Manipulation, Mask, bundled};
use crate::recipe::{Estimator, Preset, TraceMethod};
use crate::worker::{ExportFormat, ImageSource};
use crate::{Error, ErrorKind};

/// Words of [`Preset`].
pub const PRESETS: [(&str, Preset); 2] = [
    ("interactive", Preset::Interactive),
    ("paper", Preset::Paper),
];

/// Words of [`Estimator`].
pub const ESTIMATORS: [(&str, Estimator); 2] = [
    ("control-variate", Estimator::ControlVariate),
    ("paper", Estimator::Paper),
];

/// Words of [`ExportFormat`]; also the extensions of the files.
pub const FORMATS: [(&str, ExportFormat); 4] = [
    ("csv", ExportFormat::Csv),
    ("json", ExportFormat::Json),
    ("svg", ExportFormat::Svg),
    ("png", ExportFormat::Png),
];

/// The value that a word of `table` stands for.
pub fn parse_word<T: Copy>(table: &[(&str, T)], text: &str) -> Result<T, String> {
    table
        .iter()
        .find(|(word, _)| *word == text)
        .map(|(_, value)| *value)
        .ok_or_else(|| {
            let words: Vec<&str> = table.iter().map(|(word, _)| *word).collect();
            format!("choose one of {}", words.join(", "))
        })
}

/// The word of `table` for a value.
pub fn write_word<T: PartialEq>(table: &[(&'static str, T)], value: &T) -> &'static str {
    table
        .iter()
        .find(|(_, other)| other == value)
        .map_or("", |(word, _)| word)
}

/// `bundled:NAME` or a path.
pub fn parse_image(text: &str) -> Result<ImageSource, String> {
    Ok(match bundled::name_in(text) {
        Some(name) => ImageSource::Bundled(name.to_owned()),
        None => ImageSource::Path(PathBuf::from(text)),
    })
}

/// The photograph as an argument; `None` for dropped bytes and pasted pixels, which no command line
/// can name.
pub fn write_image(source: &ImageSource) -> Option<String> {
    match source {
        ImageSource::Path(path) => Some(path.to_string_lossy().into_owned()),
        ImageSource::Bundled(name) => Some(format!("{}{name}", bundled::PREFIX)),
        ImageSource::Bytes { .. } | ImageSource::Rgba { .. } => None,
    }
}

/// A readout before it is known which encoder it belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReadoutName {
    /// [`Readout::Pooled`].
    #[default]
    Pooled,
    /// [`Readout::Logits`].
    Logits,
    /// [`Readout::Stage`] by the name of the stage.
    Stage(String),
}

impl ReadoutName {
    /// The readout of `spec`.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where the encoder has no stage of that name.
    pub fn resolve(&self, spec: &EncoderSpec) -> crate::Result<Readout> {
        match self {
            Self::Pooled => Ok(Readout::Pooled),
            Self::Logits => Ok(Readout::Logits),
            Self::Stage(name) => spec
                .stages
                .iter()
                .position(|stage| stage.name == *name)
                .map(Readout::Stage)
                .ok_or_else(|| {
                    let names: Vec<&str> = spec.stages.iter().map(|s| s.name.as_str()).collect();
                    Error::new(
                        ErrorKind::Request,
                        format!("cannot read out stage “{name}”"),
                        format!("{} has no stage of this name", spec.title),
                        format!("Choose one of {}", names.join(", ")),
                    )
                }),
        }
    }
}

/// `pooled`, `logits` or `stage:NAME`.
pub fn parse_readout(text: &str) -> Result<ReadoutName, String> {
    match (text, text.strip_prefix("stage:")) {
        ("pooled", _) => Ok(ReadoutName::Pooled),
        ("logits", _) => Ok(ReadoutName::Logits),
        (_, Some(name)) if !name.is_empty() => Ok(ReadoutName::Stage(name.to_owned())),
        _ => Err("choose pooled, logits or stage:NAME".to_owned()),
    }
}

/// The argument for a readout of `spec`; `None` where the encoder has no such stage.
pub fn write_readout(readout: &Readout, spec: &EncoderSpec) -> Option<String> {
    spec.readout_name(readout)
}

/// What [`parse_family`] reads.
const FAMILIES: &str = "isotropic, rademacher, low-pass:SIGMA, logit-gradient, singular:COUNT, \
    toward:IMAGE, mask:X,Y,R;X,Y,R… or a manipulation, as blur:SIGMA, grayscale or hue:DEGREES";

/// `isotropic`, `rademacher`, `low-pass:SIGMA`, `logit-gradient`, `singular:COUNT`, `toward:IMAGE`,
/// `mask:X,Y,R;X,Y,R…` or a manipulation in its written form, such as `blur:SIGMA` or `grayscale`.
pub fn parse_family(text: &str) -> Result<DirectionFamily, String> {
    let (word, value) = text.split_once(':').unwrap_or((text, ""));
    match (word, value) {
        ("isotropic", "") => Ok(DirectionFamily::Isotropic),
        ("rademacher", "") => Ok(DirectionFamily::Rademacher),
        ("logit-gradient", "") => Ok(DirectionFamily::TopLogitGradient),
        ("low-pass", value) => parse_width(value)
            .map(|sigma_px| DirectionFamily::LowPass { sigma_px })
            .ok_or_else(|| {
                "low-pass needs a smoothing width above 0 in pixels, as low-pass:2".to_owned()
            }),
        ("singular", value) => parse_count(value, 1..=SINGULAR_MAX)
            .map(|count| DirectionFamily::TopSingular { count })
            .ok_or_else(|| {
                format!("singular needs a count from 1 to {SINGULAR_MAX}, as singular:8")
            }),
        ("toward", "") => {
            Err("toward needs an image, as toward:cat.jpg or toward:bundled:coffee".to_owned())
        }
        ("toward", image) => Ok(DirectionFamily::Toward {
            image: image.to_owned(),
        }),
        ("mask", discs) => discs
            .split(';')
            .map(parse_disc)
            .collect::<Option<_>>()
            .map(|discs| DirectionFamily::Masked {
                mask: Mask { discs },
            })
            .ok_or_else(|| {
                "mask needs discs as x,y,radius in fractions of the side, separated by ;, as \
                 mask:0.5,0.5,0.2"
                    .to_owned()
            }),
        _ if Manipulation::is_word(word) => text
            .parse()
            .map(|manipulation| DirectionFamily::Along { manipulation })
            .map_err(|error: crate::Error| error.to_string()),
        _ => Err(format!("choose {FAMILIES}")),
    }
}

fn parse_width(text: &str) -> Option<f32> {
    text.parse()
        .ok()
        .filter(|&sigma_px: &f32| sigma_px.is_finite() && sigma_px > 0.0)
}

fn parse_disc(text: &str) -> Option<Disc> {
    let numbers: Vec<f32> = text
        .split(',')
        .map(|number| number.trim().parse().ok())
        .collect::<Option<_>>()?;
    let [x, y, radius] = numbers[..] else {
        return None;
    };
    Some(Disc { x, y, radius }).filter(Disc::is_valid)
}

/// The argument for a direction family.
pub fn write_family(family: &DirectionFamily) -> String {
    match family {
        DirectionFamily::Isotropic => "isotropic".to_owned(),
        DirectionFamily::Rademacher => "rademacher".to_owned(),
        DirectionFamily::LowPass { sigma_px } => format!("low-pass:{sigma_px}"),
        DirectionFamily::TopLogitGradient => "logit-gradient".to_owned(),
        DirectionFamily::TopSingular { count } => format!("singular:{count}"),
        DirectionFamily::Toward { image } => format!("toward:{image}"),
        DirectionFamily::Along { manipulation } => manipulation.to_string(),
        DirectionFamily::Masked { mask } => {
            let discs: Vec<String> = (mask.discs.iter())
                .map(|Disc { x, y, radius }| format!("{x},{y},{radius}"))
                .collect();
            format!("mask:{}", discs.join(";"))
        }
    }
}

/// `exact` or `hutch++:SKETCH:PROBES`.
pub fn parse_trace(text: &str) -> Result<TraceMethod, String> {
    if text == "exact" {
        return Ok(TraceMethod::Exact);
    }
    let (sketch, probes) = text
        .strip_prefix("hutch++:")
        .and_then(|sizes| sizes.split_once(':'))
        .ok_or_else(|| "choose exact or hutch++:SKETCH:PROBES, as hutch++:32:32".to_owned())?;
    let size = |name: &str, text: &str, least: usize| {
        parse_count(text, least..=HUTCH_MAX).ok_or_else(|| {
            format!("{name} is a number from {least} to {HUTCH_MAX}, as in hutch++:32:32")
        })
    };
    Ok(TraceMethod::HutchPlusPlus {
        sketch: size("SKETCH", sketch, 1)?,
        // Two, because the error is taken from their spread.
        probes: size("PROBES", probes, 2)?,
    })
}

fn parse_count(text: &str, bounds: RangeInclusive<usize>) -> Option<usize> {
    text.parse().ok().filter(|count| bounds.contains(count))
}

/// The argument for a trace method.
pub fn write_trace(trace: TraceMethod) -> String {
    match trace {
        TraceMethod::Exact => "exact".to_owned(),
        TraceMethod::HutchPlusPlus { sketch, probes } => format!("hutch++:{sketch}:{probes}"),
    }
}

/// One perturbation magnitude η: finite and above 0.
pub fn parse_eta(text: &str) -> Result<f64, String> {
    match text.trim().parse() {
        Ok(eta) if f64::is_finite(eta) && eta > 0.0 => Ok(eta),
        _ => Err("η is an L2 norm: a number above 0".to_owned()),
    }
}

/// A relative error in per cent, as the fraction that recipes hold. The decimal point is moved in the
/// text, so that 0.7 becomes the number nearest to 0.007, which a division by 100 would miss.
pub fn parse_error_percent(text: &str) -> Result<f64, String> {
    match format!("{text}e-2").parse() {
        Ok(fraction) if (0.0..=1.0).contains(&fraction) => Ok(fraction),
        _ => Err("a number of per cent from 0 to 100".to_owned()),
    }
}

/// The argument for a relative error. Rounded to nine decimals, which undoes the rounding of the
/// product: any fraction of at most eleven decimals comes back exactly.
pub fn write_error_percent(fraction: f64) -> String {
    ((fraction * 100.0 * 1e9).round() / 1e9).to_string()
}

/// `auto`, `cpu` or the name of an adapter.
pub fn parse_device(text: &str) -> Result<DeviceChoice, String> {
    Ok(match text {
        "auto" => DeviceChoice::Auto,
        "cpu" => DeviceChoice::Cpu,
        "" => return Err("choose auto, cpu or a name that `etascope devices` lists".to_owned()),
        name => DeviceChoice::Adapter(name.to_owned()),
    })
}

/// The argument for a device.
pub fn write_device(device: &DeviceChoice) -> &str {
    match device {
        DeviceChoice::Auto => "auto",
        DeviceChoice::Cpu => "cpu",
        DeviceChoice::Adapter(name) => name,
    }
}

/// `#rrggbb`, with or without the `#`, or `white`, `black`, `grey`.
pub fn parse_background(text: &str) -> Result<Background, String> {
    let wrong =
        || "a colour is white, black, grey or six hexadecimal digits, as #1e90ff".to_owned();
    match text {
        "white" => return Ok(Background([255; 3])),
        "black" => return Ok(Background([0; 3])),
        "grey" | "gray" => return Ok(Background([128; 3])),
        _ => {}
    }
    let digits = text.strip_prefix('#').unwrap_or(text);
    if digits.len() != 6 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let [_, red, green, blue] = u32::from_str_radix(digits, 16)
        .map_err(|_| wrong())?
        .to_be_bytes();
    Ok(Background([red, green, blue]))
}

/// The argument for a background colour.
pub fn write_background(Background([red, green, blue]): Background) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_comes_back_from_its_words() {
        for family in [
            DirectionFamily::Isotropic,
            DirectionFamily::Rademacher,
            DirectionFamily::LowPass { sigma_px: 0.1 },
            DirectionFamily::LowPass { sigma_px: 12.75 },
            DirectionFamily::TopLogitGradient,
            DirectionFamily::TopSingular { count: 8 },
            DirectionFamily::TopSingular {
                count: SINGULAR_MAX,
            },
            DirectionFamily::Toward {
                image: "bundled:coffee".to_owned(),
            },
            DirectionFamily::Toward {
                image: "some folder/it's a: photo; 1,2.jpg".to_owned(),
            },
            DirectionFamily::Along {
                manipulation: Manipulation::Blur { sigma_px: 0.3 },
            },
            DirectionFamily::Along {
                manipulation: Manipulation::Grayscale,
            },
            DirectionFamily::Along {
                manipulation: Manipulation::Hue { degrees: -12.5 },
            },
            DirectionFamily::Masked {
                mask: Mask {
                    discs: vec![
                        Disc {
                            x: 0.1,
                            y: 1.0 / 3.0,
                            radius: 1e-3,
                        },
                        Disc {
                            x: -0.5,
                            y: 1.5,
                            radius: 2.0,
                        },
                    ],
                },
            },
        ] {
            assert_eq!(parse_family(&write_family(&family)), Ok(family));
        }
    }

    #[test]
    fn families_without_sense_are_refused() {
        for text in [
            "",
            "gaussian",
            "isotropic:2",
            "low-pass",
            "low-pass:0",
            "low-pass:-1",
            "low-pass:inf",
            "low-pass:NaN",
            "singular",
            "singular:0",
            "singular:1.5",
            "singular:257",
            "singular:99999999999999999999",
            "toward",
            "toward:",
            "blur",
            "blur:0",
            "blur:NaN",
            "grayscale:1",
            "hue",
            "hue:400",
            "jpeg:75",
            "mask",
            "mask:",
            "mask:0.5,0.5",
            "mask:0.5,0.5,0",
            "mask:0.5,0.5,-0.1",
            "mask:0.5,NaN,0.1",
            "mask:0.5,0.5,0.1;",
            "mask:0.5,0.5,0.1,0.5",
        ] {
            assert!(parse_family(text).is_err(), "{text:?} was taken");
        }
    }

    #[test]
    fn every_trace_method_comes_back_from_its_words() {
        for trace in [
            TraceMethod::Exact,
            TraceMethod::HutchPlusPlus {
                sketch: 1,
                probes: 2,
            },
            TraceMethod::HutchPlusPlus {
                sketch: HUTCH_MAX,
                probes: HUTCH_MAX,
            },
            crate::recipe::DEFAULT_TRACE,
        ] {
            assert_eq!(parse_trace(&write_trace(trace)), Ok(trace));
        }
        // What is wrong is named, with the numbers that would do.
        for (text, word) in [
            ("", "exact"),
            ("hutch++", "hutch++:SKETCH:PROBES"),
            ("hutch++:32", "hutch++:SKETCH:PROBES"),
            ("hutch++:0:32", "SKETCH is a number from 1 to 1024"),
            ("hutch++:1025:32", "SKETCH"),
            ("hutch++:a:32", "SKETCH"),
            ("hutch++:-1:32", "SKETCH"),
            ("hutch++:32:1", "PROBES is a number from 2 to 1024"),
            ("hutch++:32:1025", "PROBES"),
            ("hutch++:32:99999999999999999999", "PROBES"),
            ("hutch++:32:32:32", "PROBES"),
        ] {
            let error = parse_trace(text).expect_err("out of bounds");
            assert!(error.contains(word), "{text:?}: {error}");
        }
    }

    #[test]
    fn typed_percentages_come_back_exactly() {
        assert_eq!(parse_error_percent("0.7"), Ok(0.007));
        for percent in [
            "0", "0.1", "0.25", "0.3", "0.7", "1", "2.9", "7", "33.3", "100",
        ] {
            let fraction = parse_error_percent(percent).expect("a percentage");
            assert_eq!(write_error_percent(fraction), percent);
            assert_eq!(
                parse_error_percent(&write_error_percent(fraction)),
                Ok(fraction)
            );
        }
        for text in ["-1", "101", "NaN", "1%", ""] {
            assert!(parse_error_percent(text).is_err(), "{text:?} was taken");
        }
    }

    #[test]
    fn colours_are_read_as_in_css() {
        assert_eq!(
            parse_background("#1e90ff"),
            Ok(Background([0x1e, 0x90, 0xff]))
        );
        assert_eq!(
            parse_background("1E90FF"),
            Ok(Background([0x1e, 0x90, 0xff]))
        );
        assert_eq!(parse_background("white"), Ok(Background::default()));
        for colour in [Background([0, 1, 2]), Background([255, 128, 7])] {
            assert_eq!(parse_background(&write_background(colour)), Ok(colour));
        }
        for text in ["", "#12345", "#+12345", "mauve", "#1234567"] {
            assert!(parse_background(text).is_err(), "{text:?} was taken");
        }
    }

    #[test]
    fn devices_and_images_come_back_from_their_words() {
        for device in [
            DeviceChoice::Auto,
            DeviceChoice::Cpu,
            DeviceChoice::Adapter("llvmpipe (LLVM 15.0.6, 256 bits)".to_owned()),
        ] {
            assert_eq!(parse_device(write_device(&device)), Ok(device.clone()));
        }
        for text in ["bundled:chelsea", "some folder/a photo.jpg"] {
            let source = parse_image(text).expect("any text names an image");
            assert_eq!(write_image(&source).as_deref(), Some(text));
        }
    }

    #[test]
    fn a_magnitude_is_a_positive_number() {
        assert_eq!(parse_eta(" 0.5"), Ok(0.5));
        for text in ["0", "-1", "NaN", "inf", ""] {
            assert!(parse_eta(text).is_err(), "{text:?} was taken");
        }
    }
}
