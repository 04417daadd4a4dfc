//! From a file, bytes or pasted pixels to a [`Photo`], within limits that are checked before memory
//! is taken.
//!
//! The format is told by the content, never by the extension. Every step that changes pixels is named
//! in [`Photo::treatment`]: first frame of an animation, floating point or 16 bits to 8, colour profile
//! to sRGB, CMYK, grey, transparency, orientation.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

use image::codecs::bmp::BmpDecoder;
use image::codecs::gif::GifDecoder;
use image::codecs::png::PngDecoder;
use image::codecs::webp::WebPDecoder;
use image::metadata::Orientation;
use image::{
    AnimationDecoder, DynamicImage, ImageDecoder, ImageError, ImageFormat, Limits, RgbImage,
};

use super::{Background, Photo, colour, jpeg, sha256_hex, tiff};
use crate::{Error, ErrorKind, Result};

/// Shortest side that is read, in pixels: one block of a JPEG. Anything smaller is a dot or a line,
/// and an encoder would see little but the resize.
pub const MIN_SIDE_PX: u32 = 8;
/// Longest side that is read, in pixels: the most that a JPEG or a GIF can hold.
pub const MAX_SIDE_PX: u32 = 65_535;
/// Most pixels that are read: 2²⁷, about 134 million, above the 108 million of telephone cameras.
pub const MAX_PIXELS: u64 = 1 << 27;
/// Most bytes that decoded pixels may take, 1 GiB: [`MAX_PIXELS`] of 16-bit RGB with alpha.
pub const MAX_DECODED_BYTES: u64 = 8 * MAX_PIXELS;
/// Largest file that is read, in bytes: uncompressed, [`MAX_DECODED_BYTES`] and as much again for
/// everything else that a file may carry.
pub const MAX_FILE_BYTES: u64 = 2 * MAX_DECODED_BYTES;

/// What the program reads, for messages.
const FORMATS: &str = "JPEG, PNG, WebP, TIFF, BMP and GIF are read";

/// Decoded pixels as a file holds them: not yet upright, opaque or sRGB.
pub(super) struct Raster {
    pub(super) samples: Samples,
    /// Embedded ICC profile.
    pub(super) profile: Option<Vec<u8>>,
    pub(super) orientation: Orientation,
}

/// Pixel values of a [`Raster`].
pub(super) enum Samples {
    /// Grey or RGB, with or without alpha, 8 or 16 bits.
    Light(DynamicImage),
    /// Cyan, magenta, yellow and black: four amounts of ink for each pixel, 255 being full ink.
    Ink {
        width: u32,
        height: u32,
        cmyk: Vec<u8>,
    },
}

/// Why a picture is refused, and what to do.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) why: String,
    pub(super) remedy: &'static str,
}

impl Refusal {
    pub(super) fn new(why: impl Into<String>, remedy: &'static str) -> Self {
        Self {
            why: why.into(),
            remedy,
        }
    }

    pub(super) fn truncated() -> Self {
        Self::new(
            "the file ends in the middle of the image data",
            "Copy or download it again; the original may be whole",
        )
    }

    pub(super) fn damaged(why: impl std::fmt::Display) -> Self {
        Self::new(
            format!("the image data is damaged ({why})"),
            "Copy or download it again, or save it anew in an image editor",
        )
    }

    pub(super) fn unsupported(why: impl Into<String>) -> Self {
        Self::new(why, "Save it as PNG or JPEG in an image editor")
    }

    fn into_error(self, name: &str) -> Error {
        Error::new(
            ErrorKind::Image,
            format!("cannot open “{name}”"),
            self.why,
            self.remedy,
        )
    }
}

impl From<ImageError> for Refusal {
    fn from(error: ImageError) -> Self {
        match error {
            ImageError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Self::truncated()
            }
            ImageError::Unsupported(error) => Self::unsupported(format!(
                "this variant of the format is not supported ({error})"
            )),
            ImageError::Limits(_) => Self::new(
                "decoding it needs more memory than is allowed",
                "Shrink it in an image editor, or save it as PNG or JPEG",
            ),
            error => {
                let text = error.to_string();
                // Some decoders report the end of the file in words only.
                let lower = text.to_lowercase();
                if lower.contains("unexpected eof") || lower.contains("unexpected end") {
                    Self::truncated()
                } else {
                    Self::damaged(text)
                }
            }
        }
    }
}

/// SHA-256 of the file of a photograph, by which it is known, without decoding it.
///
/// # Errors
/// [`ErrorKind::Image`] for a path that cannot be read or is larger than what [`open`] reads.
pub fn file_sha256(path: &Path) -> Result<String> {
    read_file(path)
        .map(|bytes| sha256_hex(&bytes))
        .map_err(|refusal| refusal.into_error(&name_of(path)))
}

fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(
        || path.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// Reads a photograph from a file.
///
/// # Errors
/// [`ErrorKind::Image`] for a path that cannot be read, is no picture, is damaged, or is beyond the
/// limits of this module.
pub fn open(path: &Path, background: Background) -> Result<Photo> {
    let name = name_of(path);
    let bytes = read_file(path).map_err(|refusal| refusal.into_error(&name))?;
    let photo = decode(&bytes, &name, background)?;
    Ok(Photo {
        path: Some(path.to_owned()),
        ..photo
    })
}

/// Reads a photograph from the bytes of an image file. `name` is the file's name or a description; its
/// extension is only compared with the content.
///
/// # Errors
/// As [`open`].
pub fn decode(bytes: &[u8], name: &str, background: Background) -> Result<Photo> {
    let mut treatment = Vec::new();
    let rgb = recognise(bytes)
        .and_then(|format| {
            treatment.extend(wrong_extension(name, format));
            read(bytes, format, &mut treatment)
        })
        .map(|raster| finish(raster, background, &mut treatment))
        .map_err(|refusal| refusal.into_error(name))?;
    Ok(photo(name, rgb, sha256_hex(bytes), treatment))
}

/// A photograph from pasted pixels: `rgba` has `4 · width · height` values, row after row, sRGB, not
/// premultiplied.
///
/// # Errors
/// [`ErrorKind::Image`] where the number of values is another, or the size is beyond the limits of this
/// module.
pub fn from_rgba(
    width: usize,
    height: usize,
    rgba: &[u8],
    name: &str,
    background: Background,
) -> Result<Photo> {
    let refuse = |refusal: Refusal| refusal.into_error(name);
    // A side beyond u32 is beyond the limits too, so it may be cut down to the largest.
    let side = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
    check_size(side(width), side(height)).map_err(refuse)?;
    let image = image::RgbaImage::from_raw(side(width), side(height), rgba.to_vec())
        .filter(|_| rgba.len() == 4 * width * height)
        .ok_or_else(|| {
            refuse(Refusal::new(
                format!("{} values are not {width} × {height} pixels", rgba.len()),
                "Copy the picture again",
            ))
        })?;
    let raster = Raster {
        samples: Samples::Light(DynamicImage::ImageRgba8(image)),
        profile: None,
        orientation: Orientation::NoTransforms,
    };
    let mut treatment = Vec::new();
    let rgb = finish(raster, background, &mut treatment);
    let digest = sha256_hex(&rgb);
    Ok(photo(name, rgb, digest, treatment))
}

fn photo(name: &str, rgb: RgbImage, sha256: String, treatment: Vec<String>) -> Photo {
    Photo {
        name: name.to_owned(),
        path: None,
        width: rgb.width(),
        height: rgb.height(),
        rgb: rgb.into_raw().into(),
        sha256,
        treatment,
    }
}

/// All bytes of a regular file within [`MAX_FILE_BYTES`].
fn read_file(path: &Path) -> std::result::Result<Vec<u8>, Refusal> {
    let too_large = |len: u64| {
        Refusal::new(
            format!("the file has {len} bytes and at most {MAX_FILE_BYTES} are read"),
            "Shrink it in an image editor, or save it as JPEG",
        )
    };
    let refuse = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Refusal::new("there is no such file", "Check the path"),
        io::ErrorKind::PermissionDenied => Refusal::new(
            "you may not read this file",
            "Change its permissions or copy it",
        ),
        _ => Refusal::new(
            error.to_string(),
            "Check the disk, or copy the file elsewhere",
        ),
    };
    let metadata = std::fs::metadata(path).map_err(refuse)?;
    if metadata.is_dir() {
        return Err(Refusal::new("it is a folder", "Open a picture inside it"));
    }
    if !metadata.is_file() {
        return Err(Refusal::new(
            "it is a device and not a file",
            "Open a picture file",
        ));
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(too_large(metadata.len()));
    }
    let mut bytes = Vec::new();
    // The file may have grown since; one byte more than allowed tells.
    File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(refuse)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(bytes)
}

/// The format of an image file, told by its first bytes.
fn recognise(bytes: &[u8]) -> std::result::Result<ImageFormat, Refusal> {
    if bytes.is_empty() {
        return Err(Refusal::new(
            "the file is empty",
            "Copy or download it again",
        ));
    }
    let other = match image::guess_format(bytes) {
        Ok(
            format @ (ImageFormat::Jpeg
            | ImageFormat::Png
            | ImageFormat::WebP
            | ImageFormat::Tiff
            | ImageFormat::Bmp
            | ImageFormat::Gif),
        ) => return Ok(format),
        Ok(format) => Some(format_name(format)),
        Err(_) => KNOWN_BY_MAGIC.iter().find_map(|(offset, magic, name)| {
            bytes.get(*offset..)?.starts_with(magic).then_some(*name)
        }),
    };
    Err(match other {
        Some(name) => Refusal::unsupported(format!("it is a {name} file; {FORMATS}")),
        None => Refusal::new(
            format!("it is not an image file; {FORMATS}"),
            "Open a picture, or save it as PNG or JPEG in an image editor",
        ),
    })
}

/// Common files that are not read, by a few bytes at an offset.
const KNOWN_BY_MAGIC: [(usize, &[u8], &str); 9] = [
    (4, b"ftyphei", "HEIC"),
    (4, b"ftyphev", "HEIC"),
    (4, b"ftypmif1", "HEIC"),
    (0, b"\x00\x00\x00\x0cJXL ", "JPEG XL"),
    (0, b"\xff\x0a", "JPEG XL"),
    (0, b"\x00\x00\x00\x0cjP  ", "JPEG 2000"),
    (0, b"%PDF", "PDF"),
    (0, b"<svg", "SVG"),
    (0, b"8BPS", "Photoshop"),
];

/// Name of a format for people.
fn format_name(format: ImageFormat) -> &'static str {
    match format {
        ImageFormat::Jpeg => "JPEG",
        ImageFormat::Png => "PNG",
        ImageFormat::WebP => "WebP",
        ImageFormat::Tiff => "TIFF",
        ImageFormat::Bmp => "BMP",
        ImageFormat::Gif => "GIF",
        ImageFormat::Avif => "AVIF",
        ImageFormat::Ico => "ICO",
        ImageFormat::OpenExr => "OpenEXR",
        ImageFormat::Hdr => "Radiance HDR",
        ImageFormat::Pnm => "PNM",
        ImageFormat::Dds => "DDS",
        ImageFormat::Qoi => "QOI",
        _ => "different kind of image",
    }
}

/// A note where the extension of `name` promises another format than the content is.
fn wrong_extension(name: &str, format: ImageFormat) -> Option<String> {
    let extension = Path::new(name).extension()?;
    let promised = ImageFormat::from_extension(extension)?;
    (promised != format).then(|| {
        format!(
            "{} despite its extension .{}",
            format_name(format),
            extension.display()
        )
    })
}

/// Refuses sizes beyond the limits of this module.
pub(super) fn check_size(width: u32, height: u32) -> std::result::Result<(), Refusal> {
    let size = format!("it is {width} × {height} pixels");
    let pixels = u64::from(width) * u64::from(height);
    if width.min(height) < MIN_SIDE_PX {
        Err(Refusal::new(
            format!("{size} and both sides must have at least {MIN_SIDE_PX}"),
            "Open a larger picture",
        ))
    } else if width.max(height) > MAX_SIDE_PX {
        Err(Refusal::new(
            format!("{size} and a side may have at most {MAX_SIDE_PX}"),
            "Crop or shrink it in an image editor",
        ))
    } else if pixels > MAX_PIXELS {
        Err(Refusal::new(
            format!(
                "{size}, {} million in all, and at most {} million are read",
                pixels / 1_000_000,
                MAX_PIXELS / 1_000_000
            ),
            "Shrink it in an image editor",
        ))
    } else {
        Ok(())
    }
}

/// Decodes a file of a known format.
fn read(
    bytes: &[u8],
    format: ImageFormat,
    treatment: &mut Vec<String>,
) -> std::result::Result<Raster, Refusal> {
    const FIRST_FRAME: &str = "first frame of an animation";
    let source = Cursor::new(bytes);
    match format {
        ImageFormat::Jpeg => jpeg::read(bytes, treatment),
        ImageFormat::Tiff => tiff::read(bytes, treatment),
        ImageFormat::Png => {
            let decoder = PngDecoder::with_limits(source, limits())?;
            if decoder.is_apng()? {
                treatment.push(FIRST_FRAME.into());
            }
            read_decoder(decoder)
        }
        ImageFormat::WebP => {
            let decoder = WebPDecoder::new(source)?;
            if decoder.has_animation() {
                treatment.push(FIRST_FRAME.into());
            }
            read_decoder(decoder)
        }
        ImageFormat::Gif => {
            let raster = read_decoder(GifDecoder::new(source)?)?;
            let mut frames = GifDecoder::new(Cursor::new(bytes))?.into_frames();
            if matches!(frames.nth(1), Some(Ok(_))) {
                treatment.push(FIRST_FRAME.into());
            }
            Ok(raster)
        }
        _ => read_decoder(BmpDecoder::new(source)?),
    }
}

/// Memory limits of the decoders; sides and pixels are checked by [`check_size`].
fn limits() -> Limits {
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    limits
}

/// Runs one of the `image` crate's decoders within the limits.
fn read_decoder(mut decoder: impl ImageDecoder) -> std::result::Result<Raster, Refusal> {
    let (width, height) = decoder.dimensions();
    check_size(width, height)?;
    decoder.set_limits(limits())?;
    // Metadata that cannot be read does not make the picture unreadable.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let profile = decoder.icc_profile().ok().flatten();
    let image = DynamicImage::from_decoder(decoder)?;
    Ok(Raster {
        samples: Samples::Light(image),
        profile,
        orientation,
    })
}

/// Makes decoded pixels 8-bit sRGB, opaque and upright.
fn finish(raster: Raster, background: Background, treatment: &mut Vec<String>) -> RgbImage {
    let image = colour::to_srgb(raster.samples, raster.profile.as_deref(), treatment);
    let rgb = match image {
        DynamicImage::ImageRgba8(rgba) => {
            if rgba.pixels().any(|pixel| pixel.0[3] < 255) {
                treatment.push(format!("transparency on {}", background_name(background)));
            }
            composite(&rgba, background)
        }
        opaque => opaque.into_rgb8(),
    };
    let turned = match raster.orientation {
        Orientation::NoTransforms => return rgb,
        Orientation::Rotate90 => "rotated 90° by EXIF",
        Orientation::Rotate180 => "rotated 180° by EXIF",
        Orientation::Rotate270 => "rotated 270° by EXIF",
        Orientation::FlipHorizontal => "mirrored by EXIF",
        Orientation::FlipVertical => "flipped upside down by EXIF",
        Orientation::Rotate90FlipH => "rotated 90° and mirrored by EXIF",
        Orientation::Rotate270FlipH => "rotated 270° and mirrored by EXIF",
    };
    treatment.push(turned.into());
    let mut upright = DynamicImage::ImageRgb8(rgb);
    upright.apply_orientation(raster.orientation);
    upright.into_rgb8()
}

/// Lays pixels over an opaque background.
fn composite(rgba: &image::RgbaImage, background: Background) -> RgbImage {
    let mut rgb = RgbImage::new(rgba.width(), rgba.height());
    for (out, pixel) in rgb.pixels_mut().zip(rgba.pixels()) {
        let [red, green, blue, alpha] = pixel.0.map(u16::from);
        let over = |value: u16, under: u8| {
            // At most 255, since the weights add up to 255.
            ((value * alpha + u16::from(under) * (255 - alpha) + 127) / 255) as u8
        };
        let [under_red, under_green, under_blue] = background.0;
        out.0 = [
            over(red, under_red),
            over(green, under_green),
            over(blue, under_blue),
        ];
    }
    rgb
}

/// Name of a background colour for people.
fn background_name(Background([red, green, blue]): Background) -> String {
    match [red, green, blue] {
        [255, 255, 255] => "white".into(),
        [0, 0, 0] => "black".into(),
        _ => format!("#{red:02x}{green:02x}{blue:02x}"),
    }
}
