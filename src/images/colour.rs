//! Colour management: from what a file holds to 8-bit sRGB.

use image::{DynamicImage, ImageBuffer, Pixel, RgbImage};
use moxcms::{
    CmsError, ColorProfile, DataColorSpace, Layout, ProfileText, TransformExecutor,
    TransformOptions,
};

use super::decode::Samples;

/// Converts to 8-bit sRGB, with alpha where the file has it, and notes each step.
///
/// A profile that is malformed or does not fit the pixels is left out of account, and `treatment` says
/// so.
pub(super) fn to_srgb(
    samples: Samples,
    profile: Option<&[u8]>,
    treatment: &mut Vec<String>,
) -> DynamicImage {
    let image = match samples {
        Samples::Ink {
            width,
            height,
            cmyk,
        } => {
            return DynamicImage::ImageRgb8(rgb_from_ink(width, height, &cmyk, profile, treatment));
        }
        Samples::Light(image) => image,
    };
    let is_grey = !image.color().has_color();
    let is_deep = image.color().bytes_per_pixel() > image.color().channel_count();
    let managed = match profile.map(Profile::parse) {
        None => image,
        Some(Ok(profile)) if profile.is_grey() != is_grey || profile.is_cmyk() => {
            treatment.push(format!(
                "colour profile {} does not fit, ignored",
                profile.name
            ));
            image
        }
        Some(Ok(profile)) if profile.is_srgb() => image,
        Some(Ok(profile)) => match profile.apply(&image) {
            Ok(converted) => {
                treatment.push(format!("{} to sRGB", profile.name));
                converted
            }
            Err(error) => {
                treatment.push(unusable(&error));
                image
            }
        },
        Some(Err(error)) => {
            treatment.push(unusable(&error));
            image
        }
    };
    if is_deep {
        treatment.push("16 to 8 bits".into());
    }
    if is_grey {
        treatment.push("grey to RGB".into());
    }
    if managed.color().has_alpha() {
        DynamicImage::ImageRgba8(managed.into_rgba8())
    } else {
        DynamicImage::ImageRgb8(managed.into_rgb8())
    }
}

fn unusable(error: &CmsError) -> String {
    format!("colour profile ignored ({error})")
}

/// RGB from amounts of ink, by the profile or, without one, as light that each ink lets through.
fn rgb_from_ink(
    width: u32,
    height: u32,
    cmyk: &[u8],
    profile: Option<&[u8]>,
    treatment: &mut Vec<String>,
) -> RgbImage {
    match profile.map(Profile::parse) {
        Some(Ok(profile)) if profile.is_cmyk() => match profile.ink(cmyk) {
            Ok(rgb) => {
                if let Some(image) = RgbImage::from_raw(width, height, rgb) {
                    treatment.push(format!("CMYK {} to sRGB", profile.name));
                    return image;
                }
            }
            Err(error) => treatment.push(unusable(&error)),
        },
        Some(Ok(profile)) => {
            treatment.push(format!(
                "colour profile {} does not fit, ignored",
                profile.name
            ));
        }
        Some(Err(error)) => treatment.push(unusable(&error)),
        None => {}
    }
    treatment.push("CMYK to RGB without a profile".into());
    let mut image = RgbImage::new(width, height);
    for (out, ink) in image.pixels_mut().zip(cmyk.chunks_exact(4)) {
        let light = |ink: u8| u16::from(255 - ink);
        for (value, &colour) in out.0.iter_mut().zip(ink) {
            // At most 255.
            *value = ((light(colour) * light(ink[3]) + 127) / 255) as u8;
        }
    }
    image
}

/// An embedded profile.
struct Profile {
    profile: ColorProfile,
    /// Its description in quotes.
    name: String,
}

impl Profile {
    fn parse(bytes: &[u8]) -> Result<Self, CmsError> {
        let profile = ColorProfile::new_from_slice(bytes)?;
        let text = match &profile.description {
            Some(ProfileText::PlainString(text)) => text.as_str(),
            Some(ProfileText::Localizable(texts)) => {
                texts.first().map_or("", |text| text.value.as_str())
            }
            Some(ProfileText::Description(text)) if text.unicode_string.is_empty() => {
                &text.ascii_string
            }
            Some(ProfileText::Description(text)) => &text.unicode_string,
            None => "",
        };
        // One line of a status bar has no room for more.
        let text: String = text.chars().filter(|c| !c.is_control()).take(60).collect();
        let name = if text.trim().is_empty() {
            "unnamed".into()
        } else {
            text.trim().to_owned()
        };
        Ok(Self {
            profile,
            name: format!("“{name}”"),
        })
    }

    fn is_grey(&self) -> bool {
        self.profile.color_space == DataColorSpace::Gray
    }

    fn is_cmyk(&self) -> bool {
        self.profile.color_space == DataColorSpace::Cmyk
    }

    /// Whether the profile leaves every colour as it is, to one grey level.
    fn is_srgb(&self) -> bool {
        let probes: Vec<u8> = if self.is_grey() {
            (0..=255).collect()
        } else {
            let levels = || (0..=255_u8).step_by(15);
            levels()
                .flat_map(|r| levels().flat_map(move |g| levels().flat_map(move |b| [r, g, b])))
                .collect()
        };
        let layout = if self.is_grey() {
            Layout::Gray
        } else {
            Layout::Rgb
        };
        let repeats = 3 / layout.channels();
        self.eight_bits(&probes, layout, Layout::Rgb)
            .is_ok_and(|converted| {
                let expected = probes
                    .iter()
                    .flat_map(|value| std::iter::repeat_n(value, repeats));
                converted
                    .iter()
                    .zip(expected)
                    .all(|(a, &b)| a.abs_diff(b) <= 1)
            })
    }

    /// Grey or RGB pixels as sRGB of the same depth, alpha kept.
    fn apply(&self, image: &DynamicImage) -> Result<DynamicImage, CmsError> {
        use DynamicImage as Image;
        let (width, height) = (image.width(), image.height());
        Ok(match image {
            Image::ImageLuma8(grey) => {
                let rgb = self.eight_bits(grey, Layout::Gray, Layout::Rgb)?;
                Image::ImageRgb8(buffer(width, height, rgb)?)
            }
            Image::ImageLumaA8(grey) => {
                let rgba = self.eight_bits(grey, Layout::GrayAlpha, Layout::Rgba)?;
                Image::ImageRgba8(buffer(width, height, rgba)?)
            }
            Image::ImageRgb8(rgb) => {
                let rgb = self.eight_bits(rgb, Layout::Rgb, Layout::Rgb)?;
                Image::ImageRgb8(buffer(width, height, rgb)?)
            }
            Image::ImageRgba8(rgba) => {
                let rgba = self.eight_bits(rgba, Layout::Rgba, Layout::Rgba)?;
                Image::ImageRgba8(buffer(width, height, rgba)?)
            }
            Image::ImageLuma16(grey) => {
                let rgb = self.sixteen_bits(grey, Layout::Gray, Layout::Rgb)?;
                Image::ImageRgb16(buffer(width, height, rgb)?)
            }
            Image::ImageLumaA16(grey) => {
                let rgba = self.sixteen_bits(grey, Layout::GrayAlpha, Layout::Rgba)?;
                Image::ImageRgba16(buffer(width, height, rgba)?)
            }
            Image::ImageRgb16(rgb) => {
                let rgb = self.sixteen_bits(rgb, Layout::Rgb, Layout::Rgb)?;
                Image::ImageRgb16(buffer(width, height, rgb)?)
            }
            Image::ImageRgba16(rgba) => {
                let rgba = self.sixteen_bits(rgba, Layout::Rgba, Layout::Rgba)?;
                Image::ImageRgba16(buffer(width, height, rgba)?)
            }
            _ => return Err(CmsError::InvalidLayout),
        })
    }

    /// sRGB from four amounts of ink a pixel.
    fn ink(&self, cmyk: &[u8]) -> Result<Vec<u8>, CmsError> {
        // moxcms gives CMYK the four-channel layout of RGB with alpha.
        self.eight_bits(cmyk, Layout::Rgba, Layout::Rgb)
    }

    fn eight_bits(&self, values: &[u8], from: Layout, to: Layout) -> Result<Vec<u8>, CmsError> {
        let srgb = ColorProfile::new_srgb();
        let options = TransformOptions::default();
        let transform = self
            .profile
            .create_transform_8bit(from, &srgb, to, options)?;
        run(&*transform, values, from, to)
    }

    fn sixteen_bits(&self, values: &[u16], from: Layout, to: Layout) -> Result<Vec<u16>, CmsError> {
        let srgb = ColorProfile::new_srgb();
        let options = TransformOptions::default();
        let transform = self
            .profile
            .create_transform_16bit(from, &srgb, to, options)?;
        run(&*transform, values, from, to)
    }
}

fn run<T: Copy + Default>(
    transform: &(dyn TransformExecutor<T> + Send + Sync),
    values: &[T],
    from: Layout,
    to: Layout,
) -> Result<Vec<T>, CmsError> {
    let mut out = vec![T::default(); values.len() / from.channels() * to.channels()];
    transform.transform(values, &mut out)?;
    Ok(out)
}

fn buffer<P: Pixel>(
    width: u32,
    height: u32,
    values: Vec<P::Subpixel>,
) -> Result<ImageBuffer<P, Vec<P::Subpixel>>, CmsError> {
    ImageBuffer::from_raw(width, height, values).ok_or(CmsError::InvalidLayout)
}
