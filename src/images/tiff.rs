//! TIFF files: grey and RGB of any depth with or without alpha, floating point, CMYK with its profile.

use std::io::Cursor;

use image::metadata::Orientation;
use image::{DynamicImage, ImageBuffer, Pixel};
use tiff::ColorType;
use tiff::TiffError;
use tiff::decoder::{Decoder, DecodingResult, Limits};
use tiff::tags::Tag;

use super::decode::{MAX_DECODED_BYTES, Raster, Refusal, Samples, check_size};

/// Largest value of a tag, in bytes. Profiles of printing presses have 1 to 3 MB.
const MAX_TAG_BYTES: usize = 16 << 20;

impl From<TiffError> for Refusal {
    fn from(error: TiffError) -> Self {
        match error {
            TiffError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                Self::truncated()
            }
            TiffError::UnsupportedError(error) => {
                Self::unsupported(format!("this variant of TIFF is not supported ({error})"))
            }
            TiffError::LimitsExceeded => Self::new(
                "decoding it needs more memory than is allowed",
                "Shrink it in an image editor, or save it as PNG or JPEG",
            ),
            error => Self::damaged(error),
        }
    }
}

/// Decodes the first page of a TIFF file.
pub(super) fn read(bytes: &[u8], treatment: &mut Vec<String>) -> Result<Raster, Refusal> {
    let mut limits = Limits::default();
    let most = usize::try_from(MAX_DECODED_BYTES).unwrap_or(usize::MAX);
    limits.decoding_buffer_size = most;
    limits.intermediate_buffer_size = most;
    limits.ifd_value_size = MAX_TAG_BYTES;
    let mut decoder = Decoder::new(Cursor::new(bytes))?.with_limits(limits);
    let (width, height) = decoder.dimensions()?;
    check_size(width, height)?;
    if decoder.more_images() {
        treatment.push("first page of several".into());
    }
    let orientation = decoder
        .find_tag_unsigned::<u8>(Tag::Orientation)
        .ok()
        .flatten()
        .and_then(Orientation::from_exif)
        .unwrap_or(Orientation::NoTransforms);
    let profile = decoder.get_tag_u8_vec(Tag::IccProfile).ok();
    let premultiplied = decoder
        .find_tag_unsigned_vec::<u16>(Tag::ExtraSamples)
        .is_ok_and(|kinds| kinds.is_some_and(|kinds| kinds.first() == Some(&ASSOCIATED_ALPHA)));

    let colours = decoder.colortype()?;
    let unsupported =
        || Refusal::unsupported(format!("TIFF of colour type {colours:?} is not supported"));
    let (channels, bits) = match colours {
        ColorType::Gray(bits) => (1, bits),
        ColorType::GrayA(bits)
        | ColorType::Multiband {
            bit_depth: bits,
            num_samples: 2,
        } => (2, bits),
        ColorType::RGB(bits) => (3, bits),
        ColorType::RGBA(bits) | ColorType::CMYK(bits) => (4, bits),
        _ => return Err(unsupported()),
    };
    let mut values = DecodingResult::U8(Vec::new());
    let layout = decoder.read_image_to_buffer(&mut values)?;
    let size = Size {
        width,
        height,
        channels,
        planes: layout.planes,
    };
    let alpha = if premultiplied {
        Alpha::Premultiplied
    } else {
        Alpha::Straight
    };

    let samples = match values {
        DecodingResult::U8(values) if matches!(colours, ColorType::CMYK(8)) => {
            let cmyk = size.interleave(values)?;
            return Ok(Raster {
                samples: Samples::Ink {
                    width,
                    height,
                    cmyk,
                },
                profile,
                orientation,
            });
        }
        _ if matches!(colours, ColorType::CMYK(_)) => return Err(unsupported()),
        DecodingResult::U8(values) if bits < 8 && channels == 1 => {
            size.image8(unpack(&values, width as usize, bits), alpha)?
        }
        DecodingResult::U8(values) if bits == 8 => size.image8(size.interleave(values)?, alpha)?,
        DecodingResult::U16(values) if bits == 16 => {
            size.image16(size.interleave(values)?, alpha)?
        }
        DecodingResult::F32(values) => size.image16(
            size.sixteen_bits(&size.interleave(values)?, treatment),
            alpha,
        )?,
        DecodingResult::F64(values) => {
            let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
            size.image16(
                size.sixteen_bits(&size.interleave(values)?, treatment),
                alpha,
            )?
        }
        _ => return Err(unsupported()),
    };
    Ok(Raster {
        samples: Samples::Light(samples),
        profile,
        orientation,
    })
}

/// Value of the tag `ExtraSamples` for alpha that is multiplied into the colours.
const ASSOCIATED_ALPHA: u16 = 1;

/// Whether colours are multiplied by their alpha.
#[derive(Clone, Copy)]
enum Alpha {
    Straight,
    Premultiplied,
}

/// Shape of a decoded page.
#[derive(Clone, Copy)]
struct Size {
    width: u32,
    height: u32,
    channels: usize,
    /// More than one where the file holds channel after channel.
    planes: usize,
}

impl Size {
    /// Pixel after pixel, from channel after channel where the file is so.
    fn interleave<T: Copy>(self, values: Vec<T>) -> Result<Vec<T>, Refusal> {
        let pixels = self.width as usize * self.height as usize;
        if values.len() < pixels * self.channels {
            return Err(Refusal::damaged("fewer pixels than announced"));
        }
        if self.planes < 2 {
            return Ok(values);
        }
        Ok((0..pixels * self.channels)
            .map(|index| values[index % self.channels * pixels + index / self.channels])
            .collect())
    }

    fn image8(self, mut values: Vec<u8>, alpha: Alpha) -> Result<DynamicImage, Refusal> {
        if let Alpha::Premultiplied = alpha {
            self.divide_by_alpha(&mut values, u32::from(u8::MAX), |value| value as u8);
        }
        Ok(match self.channels {
            1 => DynamicImage::ImageLuma8(self.buffer(values)?),
            2 => DynamicImage::ImageLumaA8(self.buffer(values)?),
            3 => DynamicImage::ImageRgb8(self.buffer(values)?),
            _ => DynamicImage::ImageRgba8(self.buffer(values)?),
        })
    }

    fn image16(self, mut values: Vec<u16>, alpha: Alpha) -> Result<DynamicImage, Refusal> {
        if let Alpha::Premultiplied = alpha {
            self.divide_by_alpha(&mut values, u32::from(u16::MAX), |value| value as u16);
        }
        Ok(match self.channels {
            1 => DynamicImage::ImageLuma16(self.buffer(values)?),
            2 => DynamicImage::ImageLumaA16(self.buffer(values)?),
            3 => DynamicImage::ImageRgb16(self.buffer(values)?),
            _ => DynamicImage::ImageRgba16(self.buffer(values)?),
        })
    }

    fn buffer<P: Pixel>(
        self,
        values: Vec<P::Subpixel>,
    ) -> Result<ImageBuffer<P, Vec<P::Subpixel>>, Refusal> {
        ImageBuffer::from_raw(self.width, self.height, values)
            .ok_or_else(|| Refusal::damaged("fewer pixels than announced"))
    }

    /// Undoes the multiplication of colours by alpha. `narrow` takes a value of at most `full`.
    fn divide_by_alpha<T: Copy + Into<u32>>(
        self,
        values: &mut [T],
        full: u32,
        narrow: fn(u32) -> T,
    ) {
        if self.channels % 2 == 1 {
            return;
        }
        for pixel in values.chunks_exact_mut(self.channels) {
            let (colours, alpha) = pixel.split_at_mut(self.channels - 1);
            let alpha: u32 = alpha[0].into();
            if alpha == 0 {
                continue;
            }
            for value in colours {
                // 65535² + 32767 fits 32 bits.
                let straight = ((*value).into() * full + alpha / 2) / alpha;
                *value = narrow(straight.min(full));
            }
        }
    }

    /// Interleaved floating-point values as 16-bit ones. Colours within [0, 1] are taken as they are; a
    /// page that goes beyond is stretched from its smallest to its largest value, which `treatment`
    /// states. What is not a number becomes the smallest value. Alpha is clipped to [0, 1].
    fn sixteen_bits(self, values: &[f32], treatment: &mut Vec<String>) -> Vec<u16> {
        let is_alpha = |index: usize| {
            self.channels.is_multiple_of(2) && index % self.channels == self.channels - 1
        };
        let (mut low, mut high) = (0.0_f32, 1.0_f32);
        for (index, &value) in values.iter().enumerate() {
            if value.is_finite() && !is_alpha(index) {
                low = low.min(value);
                high = high.max(value);
            }
        }
        treatment.push(if (low, high) == (0.0, 1.0) {
            "floating point to 16 bits".into()
        } else {
            format!("floating point, {low} to {high} stretched to 16 bits")
        });
        let full = f32::from(u16::MAX);
        let convert = |(index, &value): (usize, &f32)| {
            let unit = if is_alpha(index) {
                value
            } else {
                (value - low) / (high - low)
            };
            // The cast saturates, and takes what is not a number to 0.
            (unit * full).round() as u16
        };
        values.iter().enumerate().map(convert).collect()
    }
}

/// One value a byte from rows of values of `bits` bits, each row padded to whole bytes, spread over
/// 0 to 255.
fn unpack(packed: &[u8], width: usize, bits: u8) -> Vec<u8> {
    let full = (1_u16 << bits) - 1;
    let bits = usize::from(bits);
    packed
        .chunks((width * bits).div_ceil(8))
        .flat_map(|row| {
            (0..width).map_while(move |x| {
                // A value of 3, 5, 6 or 7 bits may straddle two bytes.
                let bit = x * bits;
                let first = u16::from(*row.get(bit / 8)?) << 8;
                let pair = first | u16::from(row.get(bit / 8 + 1).copied().unwrap_or(0));
                let value = pair >> (16 - bits - bit % 8) & full;
                Some((value * 255 / full) as u8)
            })
        })
        .collect()
}
