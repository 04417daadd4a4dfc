//! Manipulations: pictures in, pictures out.
//!
//! Edits of whole pictures work in grey levels of 8 bits, in memory: no file and no compression stands
//! between a picture and its edit, unless a round trip through JPEG is what is asked for. Where Krey,
//! Neukirch and Strodthoff (2026) used Pillow, the result is Pillow's, bit for bit
//! (`tests/manipulations.rs`): rotations, mirrors, hue, grey, filled squares; so are Pillow's
//! brightness, contrast, saturation, crop with resize, and its files of JPEG. Not Pillow's are:
//!
//! - the noise, which comes from a generator of ours and is rounded, not cut, to grey levels, so that it
//!   keeps the mean;
//! - the blur, a Gaussian cut off at 4σ with mirrored borders, where Pillow repeats three box filters.

mod jpeg;
mod levels;
mod placement;
mod written;

use serde::{Deserialize, Serialize};

pub use self::jpeg::Subsampling;
pub use self::placement::GridSymmetry;
pub use self::written::FORMS;
use super::gaussian::{Border, smooth};
use super::{Disc, Mask, Picture};
use crate::{Error, ErrorKind, Result};

/// Weights of red, green and blue in the luma of Recommendation ITU-R BT.601, on gamma-encoded values;
/// Pillow's conversion to grey has the same.
const LUMA: [f64; 3] = [0.299, 0.587, 0.114];

/// A change m(x) of a whole picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Manipulation {
    /// Turned or mirrored.
    Reorient {
        /// How.
        symmetry: GridSymmetry,
    },
    /// Independent Gaussian noise on every value, clipped to grey levels.
    Noise {
        /// Standard deviation in grey levels of 255; the paper's is 40.
        std_levels: f32,
        /// Seed; see [`Manipulation::edit`] for the stream.
        seed: u64,
    },
    /// Hue turned round the circle of HSV; the paper's angles are 60° and, for recursion, 10°.
    ///
    /// Pillow's circle has 255 steps on a scale of 256, so that the angle is cut to whole steps of 360°/255:
    /// 60° moves 42 of them, and 36 times 10° moves 252, not once round.
    Hue {
        /// Angle in degrees of 360, from red through yellow to green.
        degrees: f32,
    },
    /// Every channel replaced by the luma of Recommendation ITU-R BT.601.
    Grayscale,
    /// The paper's four filled squares ([`SQUARES`]).
    Squares,
    /// Blended with black, as Pillow's `ImageEnhance.Brightness`.
    Brightness {
        /// 0 is black, 1 the picture itself; above 1 it is extrapolated and clipped.
        factor: f32,
    },
    /// Blended with the picture's mean grey, as Pillow's `ImageEnhance.Contrast`.
    Contrast {
        /// 0 is one grey, 1 the picture itself; above 1 it is extrapolated and clipped.
        factor: f32,
    },
    /// Blended with the picture's grey form, as Pillow's `ImageEnhance.Color`.
    Saturation {
        /// 0 is grey, 1 the picture itself; above 1 it is extrapolated and clipped.
        factor: f32,
    },
    /// Smoothed by a Gaussian, with mirrored borders ([`Border::Mirrored`]).
    Blur {
        /// Standard deviation in pixels of the picture that is changed.
        sigma_px: f32,
    },
    /// Written as a JPEG file and read again, as Pillow with libjpeg-turbo does both.
    Jpeg {
        /// From 1 to 100, the scale of the Independent JPEG Group.
        quality: u8,
        /// Resolution of the colour differences.
        subsampling: Subsampling,
    },
    /// A part of the picture, resized to the size of the whole by Pillow's bicubic filter.
    Crop {
        /// Left edge, as a fraction of the width.
        left: f32,
        /// Upper edge, as a fraction of the height.
        top: f32,
        /// Width of the part, as a fraction of the width.
        width: f32,
        /// Height of the part, as a fraction of the height.
        height: f32,
    },
    /// Moved by whole pixels.
    Translate {
        /// To the right, as a fraction of the width; negative to the left.
        right: f32,
        /// Down, as a fraction of the height; negative up.
        down: f32,
        /// What is left behind.
        colour: [u8; 3],
    },
    /// Painted over.
    Fill {
        /// Where.
        mask: Mask,
        /// With what.
        colour: [u8; 3],
    },
}

/// A filled square of the paper: first and last pixel along both axes, inclusive, and its colour.
pub type Square = ([u32; 2], [u8; 3]);

/// Side at which the coordinates of [`SQUARES`] hold; they scale with the picture's sides, rounded to
/// the nearest pixel.
pub const SQUARES_SIDE_PX: u32 = 288;

/// The squares that [`Manipulation::Squares`] fills, in this order (Krey, Neukirch, Strodthoff 2026).
pub const SQUARES: [Square; 4] = [
    ([26, 103], [255, 0, 0]),
    // What Pillow draws for “green”, as browsers do; ours, since the name alone is stated.
    ([180, 270], [0, 128, 0]),
    ([90, 193], [0, 0, 255]),
    ([116, 154], [255, 255, 0]),
];

/// Largest factor of an enhancement: beyond it every value is black or white.
const FACTOR_MAX: f32 = 255.0;

impl Manipulation {
    /// The central part of a picture, enlarged `factor` times.
    pub fn zoom(factor: f32) -> Self {
        let part = 1.0 / factor;
        Self::Crop {
            left: (1.0 - part) / 2.0,
            top: (1.0 - part) / 2.0,
            width: part,
            height: part,
        }
    }

    /// Name for people.
    pub fn title(&self) -> String {
        match self {
            Self::Reorient { symmetry } => symmetry.title().to_owned(),
            Self::Noise { std_levels, seed } => {
                format!("Gaussian noise, σ {std_levels} grey levels, seed {seed}")
            }
            Self::Hue { degrees } => format!("hue {degrees:+}°"),
            Self::Grayscale => "grayscale".to_owned(),
            Self::Squares => "four filled squares".to_owned(),
            Self::Brightness { factor } => format!("brightness × {factor}"),
            Self::Contrast { factor } => format!("contrast × {factor}"),
            Self::Saturation { factor } => format!("saturation × {factor}"),
            Self::Blur { sigma_px } => format!("blur, σ {sigma_px} px"),
            Self::Jpeg {
                quality,
                subsampling,
            } => format!("JPEG {quality}, {}", subsampling.title()),
            Self::Crop { width, height, .. } => format!(
                "crop to {} % × {} %, resized",
                percent(*width),
                percent(*height)
            ),
            Self::Translate { right, down, .. } => format!(
                "moved by {} % to the right, {} % down",
                percent(*right),
                percent(*down)
            ),
            Self::Fill {
                colour: [r, g, b], ..
            } => format!("mask filled with #{r:02x}{g:02x}{b:02x}"),
        }
    }

    /// How positions move; `None` where every one stays in place.
    pub fn symmetry(&self) -> Option<GridSymmetry> {
        match self {
            Self::Reorient { symmetry } => Some(*symmetry),
            _ => None,
        }
    }

    /// # Errors
    /// [`ErrorKind::Request`] for parameters without sense.
    pub fn check(&self) -> Result<()> {
        let refuse = |what: &str, why: String, remedy: &str| {
            Err(Error::new(ErrorKind::Request, what, why, remedy))
        };
        match self {
            // Beyond this the kernel is wider than any input side.
            Self::Blur { sigma_px } if !(*sigma_px > 0.0 && *sigma_px <= 1000.0) => refuse(
                "cannot blur",
                format!("the width σ is {sigma_px} px"),
                "Give a width above 0 and up to 1000 px",
            ),
            // Twice the whole range of grey levels.
            Self::Noise { std_levels, .. } if !(*std_levels > 0.0 && *std_levels <= 510.0) => {
                refuse(
                    "cannot add noise",
                    format!("the standard deviation is {std_levels} grey levels"),
                    "Give one above 0 and up to 510 grey levels",
                )
            }
            Self::Hue { degrees } if !(-360.0..=360.0).contains(degrees) => refuse(
                "cannot turn the hue",
                format!("the angle is {degrees}°"),
                "Give an angle from −360° to 360°",
            ),
            Self::Brightness { factor }
            | Self::Contrast { factor }
            | Self::Saturation { factor }
                if !(0.0..=FACTOR_MAX).contains(factor) =>
            {
                refuse(
                    &format!("cannot change the {}", self.word()),
                    format!("the factor is {factor}"),
                    "Give a factor from 0 to 255; 1 changes nothing",
                )
            }
            Self::Jpeg { quality, .. } if !(1..=100).contains(quality) => refuse(
                "cannot compress",
                format!("the quality is {quality}"),
                "Give a quality from 1 to 100",
            ),
            Self::Crop {
                left,
                top,
                width,
                height,
            } if !(is_part(*left, *width) && is_part(*top, *height)) => refuse(
                "cannot crop",
                format!(
                    "a part of {width} × {height} at ({left}, {top}) is not inside the picture"
                ),
                "Give left, top, width and height as fractions between 0 and 1 that stay inside",
            ),
            Self::Translate { right, down, .. } if !(right.abs() <= 1.0 && down.abs() <= 1.0) => {
                refuse(
                    "cannot move the picture",
                    format!("the way is ({right}, {down})"),
                    "Give fractions of the sides from −1 to 1",
                )
            }
            Self::Fill { mask, .. }
                if mask.discs.is_empty() || !mask.discs.iter().all(Disc::is_valid) =>
            {
                refuse(
                    "cannot fill the mask",
                    "it is empty, or a disc has a number that is not finite or no radius"
                        .to_owned(),
                    "Paint a part of the picture",
                )
            }
            _ => Ok(()),
        }
    }

    /// m(x) of a picture in grey levels. The size stays, but a quarter turn exchanges the sides.
    ///
    /// `stream` is the picture's number in its set: noise is drawn from this stream of its seed's
    /// generator, so that it differs from picture to picture and can be drawn again. Nothing else
    /// depends on it.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] for parameters without sense.
    pub fn edit(&self, picture: &Picture, stream: u64) -> Result<Picture> {
        self.check()?;
        Ok(self.edited(picture, stream))
    }

    fn edited(&self, picture: &Picture, stream: u64) -> Picture {
        match self {
            Self::Reorient { symmetry } => {
                let (width, height) = (picture.width(), picture.height());
                let rgb = symmetry.apply(picture.rgb(), height, width, 3);
                let (height, width) = symmetry.shape(height, width);
                Picture::from_parts(width, height, rgb)
            }
            Self::Noise { std_levels, seed } => {
                levels::noise(picture, f64::from(*std_levels), *seed, stream)
            }
            Self::Hue { degrees } => levels::hue(picture, f64::from(*degrees)),
            Self::Grayscale => picture.with_pixels(picture.pixels().map(|p| [levels::luma(p); 3])),
            Self::Squares => placement::squares(picture),
            Self::Brightness { factor } => levels::enhance(picture, *factor, |_| [0; 3]),
            Self::Contrast { factor } => {
                let mean = levels::mean_luma(picture);
                levels::enhance(picture, *factor, |_| [mean; 3])
            }
            Self::Saturation { factor } => {
                levels::enhance(picture, *factor, |pixel| [levels::luma(pixel); 3])
            }
            Self::Blur { sigma_px } => {
                let (rows, columns) = (picture.height(), picture.width());
                let mut values: Vec<f64> = picture
                    .planes()
                    .iter()
                    .map(|&value| f64::from(value))
                    .collect();
                smooth(
                    &mut values,
                    rows,
                    columns,
                    f64::from(*sigma_px),
                    Border::Mirrored,
                );
                let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
                Picture::from_planes(&values, rows, columns)
            }
            Self::Jpeg {
                quality,
                subsampling,
            } => jpeg::round_trip(picture, *quality, *subsampling),
            Self::Crop {
                left,
                top,
                width,
                height,
            } => placement::crop(picture, [*left, *width], [*top, *height]),
            Self::Translate {
                right,
                down,
                colour,
            } => placement::translate(picture, *right, *down, *colour),
            Self::Fill { mask, colour } => {
                let covered = mask.covered(picture.height(), picture.width());
                let pixels = picture.pixels().zip(covered);
                picture.with_pixels(pixels.map(|(p, covered)| if covered { *colour } else { p }))
            }
        }
    }

    /// m(x) of an RGB picture: `3 · rows · columns` values in [0, 1] in the order (channel, row,
    /// column), gamma-encoded as in the file; after a quarter turn of `columns` rows.
    ///
    /// Blur, grey, turns and mirrors are computed in f64 and not rounded to grey levels, so that a small
    /// change m(x) − x keeps its shape. For the others the change is that of the picture rounded to grey
    /// levels, as [`Manipulation::edit`] makes it, so that what rounding removes, such as dither, is in
    /// x and in m(x) alike.
    pub fn apply(&self, pixels: &[f32], rows: usize, columns: usize) -> Vec<f64> {
        let mut values: Vec<f64> = pixels.iter().map(|&value| f64::from(value)).collect();
        let area = rows * columns;
        match self {
            Self::Blur { sigma_px } => {
                let sigma_px = f64::from(*sigma_px);
                smooth(&mut values, rows, columns, sigma_px, Border::Mirrored);
            }
            Self::Grayscale => {
                for at in 0..area {
                    let luma = (0..3).map(|c| LUMA[c] * values[c * area + at]).sum();
                    (0..3).for_each(|c| values[c * area + at] = luma);
                }
            }
            Self::Reorient { symmetry } => {
                let channels = values.chunks_exact(area.max(1));
                return channels
                    .flat_map(|channel| symmetry.apply(channel, rows, columns, 1))
                    .collect();
            }
            _ => {
                let rounded = Picture::from_planes(pixels, rows, columns);
                let edited = self.edited(&rounded, 0);
                for at in 0..area {
                    for c in 0..3 {
                        let [to, from] =
                            [&edited, &rounded].map(|p| f64::from(p.rgb()[3 * at + c]));
                        values[c * area + at] += (to - from) / 255.0;
                    }
                }
            }
        }
        values
    }
}

/// Manipulations one after another, each on the result of the one before; see [`Manipulation::edit`].
///
/// # Errors
/// [`ErrorKind::Request`] where one of them has parameters without sense.
pub fn edit_in_order(
    manipulations: &[Manipulation],
    picture: &Picture,
    stream: u64,
) -> Result<Picture> {
    let mut edited = picture.clone();
    for manipulation in manipulations {
        edited = manipulation.edit(&edited, stream)?;
    }
    Ok(edited)
}

/// Whether a part of this length from this start lies within a side of length 1 (up to rounding of f32).
fn is_part(start: f32, length: f32) -> bool {
    start >= 0.0 && length > 0.0 && start + length <= 1.0 + 1e-6
}

fn percent(fraction: f32) -> f64 {
    (f64::from(fraction) * 1000.0).round() / 10.0
}
