//! JPEG files, with the ink amounts of CMYK and YCCK kept so that their profile can be applied.

use image::metadata::Orientation;
use image::{DynamicImage, GrayImage, RgbImage};
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::decode::{MAX_SIDE_PX, Raster, Refusal, Samples, check_size};

/// Decodes a JPEG file.
///
/// A file that ends early is refused. One that is whole but breaks the standard elsewhere is decoded as
/// far as possible, and `treatment` says so.
pub(super) fn read(bytes: &[u8], treatment: &mut Vec<String>) -> Result<Raster, Refusal> {
    match attempt(bytes, true) {
        Err(Failure::Refused(refusal)) => Err(refusal),
        // The decoder fills what is missing with grey and does not always say so.
        _ if !is_whole(bytes) => Err(Refusal::truncated()),
        Ok(raster) => Ok(raster),
        Err(Failure::Decoder(_)) => {
            let raster = attempt(bytes, false).map_err(Refusal::from)?;
            treatment.push("damaged JPEG data, read as far as possible".into());
            Ok(raster)
        }
    }
}

/// Why decoding failed.
enum Failure {
    /// The decoder's own complaint.
    Decoder(DecodeErrors),
    /// A limit of ours.
    Refused(Refusal),
}

impl From<DecodeErrors> for Failure {
    fn from(error: DecodeErrors) -> Self {
        match error {
            DecodeErrors::Unsupported(scheme) => Self::Refused(Refusal::unsupported(format!(
                "this variant of JPEG is not supported ({scheme:?})"
            ))),
            error => Self::Decoder(error),
        }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Decoder(error) => Self::damaged(error),
            Failure::Refused(refusal) => refusal,
        }
    }
}

fn attempt(bytes: &[u8], strict: bool) -> Result<Raster, Failure> {
    let options = DecoderOptions::default()
        .set_strict_mode(strict)
        .set_max_width(MAX_SIDE_PX as usize)
        .set_max_height(MAX_SIDE_PX as usize);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers()?;
    let unread = || Failure::Refused(Refusal::damaged("no image header"));
    let (width, height) = decoder.dimensions().ok_or_else(unread)?;
    // JPEG sides are 16-bit numbers.
    let (width, height) = (width as u32, height as u32);
    check_size(width, height).map_err(Failure::Refused)?;
    let stored = decoder.input_colorspace().ok_or_else(unread)?;
    let wanted = match stored {
        ColorSpace::Luma | ColorSpace::CMYK | ColorSpace::YCCK => stored,
        _ => ColorSpace::RGB,
    };
    decoder.set_options(options.jpeg_set_out_colorspace(wanted));
    let profile = decoder.icc_profile();
    let orientation = decoder
        .exif()
        .and_then(|exif| Orientation::from_exif_chunk(exif))
        .unwrap_or(Orientation::NoTransforms);

    let mut values = decoder.decode()?;
    let misfit = || Failure::Refused(Refusal::damaged("fewer pixels than announced"));
    let samples = match wanted {
        ColorSpace::Luma => Samples::Light(DynamicImage::ImageLuma8(
            GrayImage::from_raw(width, height, values).ok_or_else(misfit)?,
        )),
        ColorSpace::RGB => Samples::Light(DynamicImage::ImageRgb8(
            RgbImage::from_raw(width, height, values).ok_or_else(misfit)?,
        )),
        _ => {
            if values.len() != 4 * width as usize * height as usize {
                return Err(misfit());
            }
            for pixel in values.chunks_exact_mut(4) {
                if wanted == ColorSpace::YCCK {
                    ink_from_ycc(pixel);
                } else {
                    pixel.iter_mut().for_each(|value| *value = 255 - *value);
                }
            }
            Samples::Ink {
                width,
                height,
                cmyk: values,
            }
        }
    };
    Ok(Raster {
        samples,
        profile,
        orientation,
    })
}

/// Ink amounts from a stored YCCK pixel, by the Adobe convention that every program follows: the first
/// three are the YCbCr form of the inks seen as red, green and blue; black is stored as 255 − ink.
fn ink_from_ycc(pixel: &mut [u8]) {
    let &mut [luma, blue_difference, red_difference, black] = pixel else {
        return;
    };
    let (y, cb, cr) = (
        f32::from(luma),
        f32::from(blue_difference) - 128.0,
        f32::from(red_difference) - 128.0,
    );
    // Inverse of the JFIF (BT.601, full range) transform.
    let level = |value: f32| value.round().clamp(0.0, 255.0) as u8;
    pixel[0] = level(y + 1.402 * cr);
    pixel[1] = level(y - 0.344_136 * cb - 0.714_136 * cr);
    pixel[2] = level(y + 1.772 * cb);
    pixel[3] = 255 - black;
}

/// Whether the end-of-image marker follows the start of the compressed data. The segments before it are
/// stepped over, since a thumbnail in one of them has an end of its own.
fn is_whole(bytes: &[u8]) -> bool {
    const MARKER: u8 = 0xff;
    const START_OF_SCAN: u8 = 0xda;
    const END_OF_IMAGE: [u8; 2] = [MARKER, 0xd9];
    let mut at = 2;
    while let Some(&[first, kind, high, low]) = bytes.get(at..at + 4) {
        if first != MARKER {
            at += 1;
            continue;
        }
        if kind == START_OF_SCAN {
            return bytes[at..].windows(2).any(|pair| pair == END_OF_IMAGE);
        }
        at += 2 + usize::from(u16::from_be_bytes([high, low]));
    }
    false
}
