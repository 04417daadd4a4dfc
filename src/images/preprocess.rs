//! From a photograph to an encoder's input: resize, crop, scale to [0, 1].
//!
//! The resize is that of Pillow, bit for bit (or, without its rounding, torchvision's of tensors): filters widened by the scale factor when shrinking,
//! coefficients in 22-bit fixed point, columns before rows, eight bits between the two passes. The
//! crop rounds as torchvision's `CenterCrop` does. Measured against Pillow 13 and timm 1.0 on the three
//! bundled PNG photographs, bicubic, bilinear and nearest, both recipes: largest difference 0, mean
//! difference 0. On the fourth, a JPEG in Adobe RGB, where two JPEG decoders and two colour engines
//! stand between: largest 3 grey levels of 255, mean 0.1 (`tests/images.rs`).

use std::ops::Range;
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::Photo;
use crate::{Error, ErrorKind, Result};

/// Interpolation of the resize, with antialiasing as in Pillow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResizeFilter {
    /// Pillow's `BICUBIC` (a = −0.5).
    Bicubic,
    /// Pillow's `BILINEAR`.
    Bilinear,
    /// Pillow's `NEAREST`.
    Nearest,
}

/// Order of the channels that the network reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChannelOrder {
    /// Red, green, blue.
    Rgb,
    /// Blue, green, red (Caffe).
    Bgr,
}

/// A checkpoint's own input recipe. Mean and standard deviation are folded into the encoder, so that
/// perturbations live in raw [0, 1] pixels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preprocessing {
    /// Length of the shorter side after the resize, in pixels; with `squash` both sides.
    pub resize_px: usize,
    /// True where the original resizes both sides to `resize_px` and ignores the aspect ratio.
    pub squash: bool,
    /// Interpolation of the resize.
    pub filter: ResizeFilter,
    /// True where the original resizes pixels that are floating-point numbers already and so keeps fractions of
    /// grey levels, as torchvision does with tensors; Pillow rounds after each of the two passes.
    #[serde(default)]
    pub fractional: bool,
    /// Side of the centre crop in pixels: the encoder's input side.
    pub crop_px: usize,
    /// Mean per channel in the network's channel order, on the [0, 1] scale.
    pub mean: [f32; 3],
    /// Standard deviation per channel in the network's channel order, on the [0, 1] scale.
    pub std: [f32; 3],
    /// Order of the channels that the network reads; [`Prepared`] is always RGB.
    pub channels: ChannelOrder,
}

/// A photograph as an encoder sees it, before normalisation.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// Side of the square input in pixels.
    pub side_px: usize,
    /// Pixel values in [0, 1], RGB, channel after channel, row after row: `3 · side² `. After
    /// [`Prepared::dithered`] up to half a grey level outside.
    pub pixels: Arc<[f32]>,
    /// What was done, for people: `451 × 300 → 384 × 256 bicubic → centre 224 × 224`.
    pub steps: String,
}

impl Preprocessing {
    /// The recipe of EfficientNet-Lite0: shorter side to 256 px, bicubic; centre crop of 224 px; RGB,
    /// `(x − 127/255) / (128/255)`.
    ///
    /// What the sources say. The package that carries the weights holds no image code. The TensorFlow
    /// original cuts the central square of 224/256 of the shorter side and resizes it to 224 px by
    /// TensorFlow's bicubic, which does not antialias, then applies the mean of 127 and the standard
    /// deviation of 128 grey levels. timm, whose port (`tf_efficientnet_lite0`) has the same weights,
    /// shows the same field of view by resizing first (crop share 0.875, bicubic with antialiasing):
    /// that order is used here. timm rounds mean and standard deviation to 0.5; the original figures
    /// are used here. The example in the PyTorch port's README (no crop, ImageNet mean) was inherited
    /// from another model family and does not fit these weights.
    pub fn efficientnet_lite0() -> Self {
        Self {
            resize_px: 256,
            squash: false,
            filter: ResizeFilter::Bicubic,
            fractional: false,
            crop_px: 224,
            mean: [127.0 / 255.0; 3],
            std: [128.0 / 255.0; 3],
            channels: ChannelOrder::Rgb,
        }
    }

    /// The recipe of SqueezeNet 1.1 as packaged in `ndf`: both sides to 227 px, bicubic, aspect ratio
    /// not kept; BGR grey levels minus (103.939, 116.779, 123.68).
    ///
    /// What the sources say. The package's only image code is `image.resize((227, 227))`, whose filter
    /// is Pillow's default: nearest when the package was published (2019), bicubic since Pillow 7. 227
    /// is also the crop of the Caffe original; the 224 in the package's input layer is never used. The
    /// mean is Keras's for Caffe networks; the example in the package's repository subtracts the
    /// Caffe means (104.006, 116.669, 122.679), at most one grey level away.
    pub fn squeezenet1_1() -> Self {
        Self {
            resize_px: 227,
            squash: true,
            filter: ResizeFilter::Bicubic,
            fractional: false,
            crop_px: 227,
            mean: [103.939 / 255.0, 116.779 / 255.0, 123.68 / 255.0],
            std: [1.0 / 255.0; 3],
            channels: ChannelOrder::Bgr,
        }
    }

    /// The recipe in one line.
    pub fn describe(&self) -> String {
        let side = self.resize_px;
        let resize = if self.squash {
            format!(
                "resize to {side} × {side}, {}, aspect ratio not kept",
                self.filter.name()
            )
        } else {
            format!("shorter side to {side}, {}", self.filter.name())
        };
        let crop = if self.squash && self.crop_px == side {
            String::new()
        } else {
            format!("; centre crop {0} × {0}", self.crop_px)
        };
        let rounding = if self.fractional {
            ", fractions of grey levels kept"
        } else {
            ""
        };
        let order = match self.channels {
            ChannelOrder::Rgb => "RGB",
            ChannelOrder::Bgr => "BGR",
        };
        let levels = |values: [f32; 3]| {
            let [a, b, c] = values.map(|value| (value * 255.0 * 1000.0).round() / 1000.0);
            if a == b && b == c {
                format!("{a}")
            } else {
                format!("({a}, {b}, {c})")
            }
        };
        format!(
            "{resize}{crop}{rounding}; {order}, grey levels minus {}, divided by {}",
            levels(self.mean),
            levels(self.std)
        )
    }

    /// Resizes and crops a photograph.
    ///
    /// # Errors
    /// Where the photograph is empty, its pixels are not `3 · width · height`, or the recipe's crop is
    /// larger than its resize.
    pub fn apply(&self, photo: &Photo) -> Result<Prepared> {
        let (width, height) = (photo.width as usize, photo.height as usize);
        let refuse = |why: String| {
            let what = format!("cannot prepare “{}”", photo.name);
            Err(Error::new(
                ErrorKind::Image,
                what,
                why,
                "Open another photograph",
            ))
        };
        if width == 0 || height == 0 || photo.rgb.len() != 3 * width * height {
            return refuse(format!(
                "{} values are not a picture of {width} × {height} pixels",
                photo.rgb.len()
            ));
        }
        if self.crop_px == 0 || self.crop_px > self.resize_px {
            return refuse(format!(
                "a crop of {} px does not fit a resize to {} px",
                self.crop_px, self.resize_px
            ));
        }
        let (new_width, new_height) = self.resized(width, height);
        let side = self.crop_px;
        let left = crop_start(new_width, side);
        let top = crop_start(new_height, side);
        let columns = taps(self.filter, width, new_width, left..left + side);
        let rows = taps(self.filter, height, new_height, top..top + side);
        let rgb: Vec<f32> = if self.fractional {
            resample_fractional(&photo.rgb, width, &columns, &rows)
        } else {
            let levels = resample(&photo.rgb, width, &fixed(&columns), &fixed(&rows));
            levels.into_iter().map(f32::from).collect()
        };

        let mut pixels = vec![0.0; 3 * side * side];
        for (index, pixel) in rgb.chunks_exact(3).enumerate() {
            for (channel, value) in pixel.iter().enumerate() {
                pixels[channel * side * side + index] = value / 255.0;
            }
        }
        let mut steps = format!("{width} × {height}");
        if (new_width, new_height) != (width, height) {
            steps += &format!(" → {new_width} × {new_height} {}", self.filter.name());
            if self.squash && width != height {
                steps += ", aspect ratio not kept";
            }
            if self.fractional {
                steps += ", fractions kept";
            }
        }
        if (new_width, new_height) != (side, side) {
            steps += &format!(" → centre {side} × {side}");
        }
        Ok(Prepared {
            side_px: side,
            pixels: pixels.into(),
            steps,
        })
    }

    /// Width and height after the resize. The longer side is cut to a whole number, as in torchvision.
    fn resized(&self, width: usize, height: usize) -> (usize, usize) {
        let side = self.resize_px;
        if self.squash {
            (side, side)
        } else if width <= height {
            (side, side * height / width)
        } else {
            (side * width / height, side)
        }
    }
}

impl Prepared {
    /// The same input with independent uniform noise of at most half a grey level (±0.5/255) on every
    /// value, a function of `seed` alone.
    ///
    /// Pixels at exactly 0 or 1 tie neighbours in max-pooling and sit on the kinks of ReLU, where a
    /// derivative does not describe the network; this undoes the ties. Not clipped, since clipping
    /// would tie them again.
    #[must_use]
    pub fn dithered(&self, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let noisy = self
            .pixels
            .iter()
            .map(|value| value + (rng.random::<f32>() - 0.5) / 255.0);
        Self {
            side_px: self.side_px,
            pixels: noisy.collect(),
            steps: format!("{} → dither ±0.5 grey levels, seed {seed}", self.steps),
        }
    }
}

impl ResizeFilter {
    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bicubic => "bicubic",
            Self::Bilinear => "bilinear",
            Self::Nearest => "nearest",
        }
    }
}

/// First row or column of a centre crop; a half is rounded to the even number, as Python does.
fn crop_start(len: usize, crop: usize) -> usize {
    let spare = len - crop;
    let half = spare / 2;
    if spare % 2 == 1 && half % 2 == 1 {
        half + 1
    } else {
        half
    }
}

/// Bits after the point of a resampling weight. Pillow keeps 8 for the value and 2 for overshoot of
/// a 32-bit sum.
const WEIGHT_BITS: u32 = 32 - 8 - 2;

/// One output row or column as a weighted sum of input ones: the first of them and the weights.
struct Tap<W> {
    start: usize,
    weights: Vec<W>,
}

/// The taps of the output positions in `wanted` when `len` positions become `new_len`; the weights of each sum
/// to 1.
fn taps(filter: ResizeFilter, len: usize, new_len: usize, wanted: Range<usize>) -> Vec<Tap<f64>> {
    let copy = |start| Tap {
        start,
        weights: vec![1.0],
    };
    if len == new_len {
        return wanted.map(copy).collect();
    }
    let scale = len as f64 / new_len as f64;
    let (radius, kernel): (f64, fn(f64) -> f64) = match filter {
        ResizeFilter::Nearest => {
            // The position is summed up step by step, as Pillow does, to round as it does.
            let mut position = scale * 0.5;
            let mut all = Vec::with_capacity(wanted.len());
            for index in 0..wanted.end {
                if index >= wanted.start {
                    all.push(copy((position as usize).min(len - 1)));
                }
                position += scale;
            }
            return all;
        }
        ResizeFilter::Bilinear => (1.0, triangle),
        ResizeFilter::Bicubic => (2.0, catmull_rom),
    };
    let widening = scale.max(1.0);
    let support = radius * widening;
    wanted
        .map(|index| {
            let centre = (index as f64 + 0.5) * scale;
            let start = (centre - support + 0.5).max(0.0) as usize;
            let end = ((centre + support + 0.5) as usize).min(len);
            let inverse = 1.0 / widening;
            let weights: Vec<f64> = (start..end)
                .map(|x| kernel((x as f64 - centre + 0.5) * inverse))
                .collect();
            let sum: f64 = weights.iter().sum();
            Tap {
                start,
                weights: weights.iter().map(|weight| weight / sum).collect(),
            }
        })
        .collect()
}

/// The same taps in fixed point.
fn fixed(taps: &[Tap<f64>]) -> Vec<Tap<i32>> {
    let weight = |weight: &f64| {
        // `as` cuts towards zero, so half is added away from it.
        let scaled = weight * f64::from(1 << WEIGHT_BITS);
        (scaled + 0.5_f64.copysign(scaled)) as i32
    };
    let tap = |tap: &Tap<f64>| Tap {
        start: tap.start,
        weights: tap.weights.iter().map(weight).collect(),
    };
    taps.iter().map(tap).collect()
}

/// Kernel of the bilinear filter.
fn triangle(x: f64) -> f64 {
    (1.0 - x.abs()).max(0.0)
}

/// Kernel of the bicubic filter with a = −0.5 (Keys 1981, equal to Catmull–Rom).
fn catmull_rom(x: f64) -> f64 {
    const A: f64 = -0.5;
    let x = x.abs();
    if x < 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * A
    } else {
        0.0
    }
}

/// Resizes interleaved RGB rows as Pillow does; sizes are width and height.
pub(super) fn resize(
    rgb: &[u8],
    (width, height): (usize, usize),
    (new_width, new_height): (usize, usize),
    filter: ResizeFilter,
) -> Vec<u8> {
    let columns = taps(filter, width, new_width, 0..new_width);
    let rows = taps(filter, height, new_height, 0..new_height);
    resample(rgb, width, &fixed(&columns), &fixed(&rows))
}

/// The rows of the input that any tap uses.
fn used_rows<W>(rows: &[Tap<W>]) -> Range<usize> {
    let end = rows.iter().map(|tap| tap.start + tap.weights.len()).max();
    rows.first().map_or(0, |tap| tap.start)..end.unwrap_or(0)
}

/// Resamples interleaved RGB rows of `width` pixels: columns first, then rows.
fn resample(rgb: &[u8], width: usize, columns: &[Tap<i32>], rows: &[Tap<i32>]) -> Vec<u8> {
    let used = used_rows(rows);
    let row_len = 3 * columns.len();
    let mut narrowed = Vec::with_capacity(used.len() * row_len);
    for y in used.clone() {
        let row = &rgb[3 * width * y..3 * width * (y + 1)];
        for tap in columns {
            let mut sums = [HALF; 3];
            for (pixel, weight) in row[3 * tap.start..].chunks_exact(3).zip(&tap.weights) {
                for (sum, value) in sums.iter_mut().zip(pixel) {
                    *sum += i32::from(*value) * weight;
                }
            }
            narrowed.extend(sums.map(eight_bits));
        }
    }
    let mut out = Vec::with_capacity(rows.len() * row_len);
    for tap in rows {
        let mut sums = vec![HALF; row_len];
        let first = tap.start - used.start;
        for (row, weight) in narrowed[first * row_len..]
            .chunks_exact(row_len)
            .zip(&tap.weights)
        {
            for (sum, value) in sums.iter_mut().zip(row) {
                *sum += i32::from(*value) * weight;
            }
        }
        out.extend(sums.into_iter().map(eight_bits));
    }
    out
}

/// As [`resample`], without rounding to grey levels: sums in f64.
fn resample_fractional(
    rgb: &[u8],
    width: usize,
    columns: &[Tap<f64>],
    rows: &[Tap<f64>],
) -> Vec<f32> {
    let used = used_rows(rows);
    let row_len = 3 * columns.len();
    let mut narrowed = Vec::with_capacity(used.len() * row_len);
    for y in used.clone() {
        let row = &rgb[3 * width * y..3 * width * (y + 1)];
        for tap in columns {
            let mut sums = [0.0; 3];
            for (pixel, weight) in row[3 * tap.start..].chunks_exact(3).zip(&tap.weights) {
                for (sum, value) in sums.iter_mut().zip(pixel) {
                    *sum += f64::from(*value) * weight;
                }
            }
            narrowed.extend(sums);
        }
    }
    let mut out = Vec::with_capacity(rows.len() * row_len);
    for tap in rows {
        let mut sums = vec![0.0; row_len];
        let first = tap.start - used.start;
        for (row, weight) in narrowed[first * row_len..]
            .chunks_exact(row_len)
            .zip(&tap.weights)
        {
            for (sum, value) in sums.iter_mut().zip(row) {
                *sum += value * weight;
            }
        }
        out.extend(sums.into_iter().map(|sum| sum as f32));
    }
    out
}

/// One half in fixed point, so that cutting rounds.
const HALF: i32 = 1 << (WEIGHT_BITS - 1);

/// From fixed point to a grey level, overshoot clipped.
fn eight_bits(sum: i32) -> u8 {
    (sum >> WEIGHT_BITS).clamp(0, 255) as u8
}
