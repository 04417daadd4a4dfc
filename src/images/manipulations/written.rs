//! Manipulations as a word with its numbers, for command lines and file names.

use std::fmt;
use std::str::FromStr;

use super::{GridSymmetry, Manipulation, Subsampling};
use crate::images::{Disc, Mask};
use crate::{Error, ErrorKind, Result};

/// What can be written.
pub const FORMS: &str = "rotate:90, rotate:180, rotate:270, mirror:horizontal, mirror:vertical, \
    noise:STD:SEED, hue:DEGREES, grayscale, squares, brightness:FACTOR, contrast:FACTOR, \
    saturation:FACTOR, blur:SIGMA, jpeg:QUALITY:420 or 444, crop:LEFT,TOP,WIDTH,HEIGHT, \
    translate:RIGHT,DOWN:R,G,B or fill:R,G,B:X,Y,RADIUS;X,Y,RADIUS…";

/// All words, in the order of [`FORMS`].
const WORDS: [&str; 14] = [
    "rotate",
    "mirror",
    "noise",
    "hue",
    "grayscale",
    "squares",
    "brightness",
    "contrast",
    "saturation",
    "blur",
    "jpeg",
    "crop",
    "translate",
    "fill",
];

impl Manipulation {
    /// Whether the written form of a manipulation begins with this word.
    pub fn is_word(word: &str) -> bool {
        WORDS.contains(&word)
    }

    /// The word alone.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Reorient { symmetry } => match symmetry {
                GridSymmetry::MirrorHorizontal | GridSymmetry::MirrorVertical => "mirror",
                _ => "rotate",
            },
            Self::Noise { .. } => "noise",
            Self::Hue { .. } => "hue",
            Self::Grayscale => "grayscale",
            Self::Squares => "squares",
            Self::Brightness { .. } => "brightness",
            Self::Contrast { .. } => "contrast",
            Self::Saturation { .. } => "saturation",
            Self::Blur { .. } => "blur",
            Self::Jpeg { .. } => "jpeg",
            Self::Crop { .. } => "crop",
            Self::Translate { .. } => "translate",
            Self::Fill { .. } => "fill",
        }
    }
}

/// The word with its numbers; parsing gives the same manipulation.
impl fmt::Display for Manipulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word();
        match self {
            Self::Reorient { symmetry } => write!(f, "{word}:{}", symmetry_word(*symmetry)),
            Self::Noise { std_levels, seed } => write!(f, "{word}:{std_levels}:{seed}"),
            Self::Hue { degrees: value }
            | Self::Brightness { factor: value }
            | Self::Contrast { factor: value }
            | Self::Saturation { factor: value }
            | Self::Blur { sigma_px: value } => write!(f, "{word}:{value}"),
            Self::Grayscale | Self::Squares => f.write_str(word),
            Self::Jpeg {
                quality,
                subsampling,
            } => {
                let subsampling = match subsampling {
                    Subsampling::Half => "420",
                    Subsampling::Full => "444",
                };
                write!(f, "{word}:{quality}:{subsampling}")
            }
            Self::Crop {
                left,
                top,
                width,
                height,
            } => write!(f, "{word}:{left},{top},{width},{height}"),
            Self::Translate {
                right,
                down,
                colour: [r, g, b],
            } => write!(f, "{word}:{right},{down}:{r},{g},{b}"),
            Self::Fill {
                mask,
                colour: [r, g, b],
            } => {
                let discs: Vec<String> = (mask.discs.iter())
                    .map(|Disc { x, y, radius }| format!("{x},{y},{radius}"))
                    .collect();
                write!(f, "{word}:{r},{g},{b}:{}", discs.join(";"))
            }
        }
    }
}

impl FromStr for Manipulation {
    type Err = Error;

    /// # Errors
    /// [`ErrorKind::Request`] where the text is none of [`FORMS`] or its numbers make no sense.
    fn from_str(text: &str) -> Result<Self> {
        let manipulation = parse(text).ok_or_else(|| {
            Error::new(
                ErrorKind::Request,
                format!("cannot read the manipulation “{text}”"),
                "it has another form than those that are known",
                format!("Write {FORMS}"),
            )
        })?;
        manipulation.check()?;
        Ok(manipulation)
    }
}

fn symmetry_word(symmetry: GridSymmetry) -> &'static str {
    match symmetry {
        GridSymmetry::Rotate90 => "90",
        GridSymmetry::Rotate180 => "180",
        GridSymmetry::Rotate270 => "270",
        GridSymmetry::MirrorHorizontal => "horizontal",
        GridSymmetry::MirrorVertical => "vertical",
    }
}

fn parse(text: &str) -> Option<Manipulation> {
    let (word, rest) = text.split_once(':').unwrap_or((text, ""));
    let number = || rest.parse::<f32>().ok();
    Some(match word {
        "rotate" | "mirror" => {
            let symmetry = GridSymmetry::ALL
                .into_iter()
                .find(|&symmetry| symmetry_word(symmetry) == rest)?;
            Some(Manipulation::Reorient { symmetry })
                .filter(|manipulation| manipulation.word() == word)?
        }
        "noise" => {
            let (std_levels, seed) = rest.split_once(':')?;
            Manipulation::Noise {
                std_levels: std_levels.parse().ok()?,
                seed: seed.parse().ok()?,
            }
        }
        "hue" => Manipulation::Hue { degrees: number()? },
        "grayscale" if rest.is_empty() => Manipulation::Grayscale,
        "squares" if rest.is_empty() => Manipulation::Squares,
        "brightness" => Manipulation::Brightness { factor: number()? },
        "contrast" => Manipulation::Contrast { factor: number()? },
        "saturation" => Manipulation::Saturation { factor: number()? },
        "blur" => Manipulation::Blur {
            sigma_px: number()?,
        },
        "jpeg" => {
            let (quality, subsampling) = rest.split_once(':')?;
            Manipulation::Jpeg {
                quality: quality.parse().ok()?,
                subsampling: match subsampling {
                    "420" => Subsampling::Half,
                    "444" => Subsampling::Full,
                    _ => return None,
                },
            }
        }
        "crop" => {
            let [left, top, width, height] = numbers(rest)?;
            Manipulation::Crop {
                left,
                top,
                width,
                height,
            }
        }
        "translate" => {
            let (way, colour) = rest.split_once(':')?;
            let [right, down] = numbers(way)?;
            Manipulation::Translate {
                right,
                down,
                colour: numbers(colour)?,
            }
        }
        "fill" => {
            let (colour, discs) = rest.split_once(':')?;
            let disc = |text| numbers(text).map(|[x, y, radius]| Disc { x, y, radius });
            Manipulation::Fill {
                mask: Mask {
                    discs: discs.split(';').map(disc).collect::<Option<_>>()?,
                },
                colour: numbers(colour)?,
            }
        }
        _ => return None,
    })
}

/// Exactly N numbers separated by commas.
fn numbers<T: FromStr, const N: usize>(text: &str) -> Option<[T; N]> {
    let numbers: Vec<T> = text
        .split(',')
        .map(|number| number.trim().parse().ok())
        .collect::<Option<_>>()?;
    numbers.try_into().ok()
}
