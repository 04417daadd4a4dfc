//! Drawing to pixels.

use resvg::{tiny_skia, usvg};

use super::svg::parse;
use crate::{Error, ErrorKind, Result};

/// Resolution of printed figures.
pub const DEFAULT_DPI: f64 = 300.0;
/// Largest side of the picture in pixels.
const SIDE_MAX: f64 = 20_000.0;
/// Pixels in which usvg counts, in an inch.
const USVG_DPI: f64 = 96.0;
const METRES_PER_INCH: f64 = 0.0254;

/// An encoded PNG of a drawing made by [`super::svg`], at `dpi` pixels an inch, which is written into
/// the file too.
///
/// Only the bundled fonts are used, so the pixels are the same on every machine. Fails where a side
/// would have no pixel or more than 20,000.
pub fn render(svg: &str, dpi: f64) -> Result<Vec<u8>> {
    let tree = parse(svg)?;
    let scale = dpi / USVG_DPI;
    let size = tree.size();
    let width = pixels(f64::from(size.width()) * scale)?;
    let height = pixels(f64::from(size.height()) * scale)?;
    let transform =
        usvg::Transform::from_scale(width as f32 / size.width(), height as f32 / size.height());
    encode(&drawn(&tree, width, height, transform)?, width, height, dpi)
}

/// A drawing on white: `width · height · 3` values.
pub(super) fn drawn(
    tree: &usvg::Tree,
    width: u32,
    height: u32,
    transform: usvg::Transform,
) -> Result<Vec<u8>> {
    let [width, height] = [pixels(f64::from(width))?, pixels(f64::from(height))?];
    let mut pixmap = tiny_skia::Pixmap::new(width, height)
        .ok_or_else(|| failed(format!("there is no room for {width} × {height} pixels")))?;
    pixmap.fill(tiny_skia::Color::WHITE);
    resvg::render(tree, transform, &mut pixmap.as_mut());
    let values = pixmap.data().as_chunks::<4>().0.iter();
    Ok(values.flat_map(|&[r, g, b, _]| [r, g, b]).collect())
}

/// Pixels as a PNG file that says `dpi` pixels an inch.
pub(super) fn encode(rgb: &[u8], width: u32, height: u32, dpi: f64) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
    let per_metre = (dpi / METRES_PER_INCH).round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: per_metre,
        yppu: per_metre,
        unit: png::Unit::Meter,
    }));
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(rgb).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(file)
}

fn pixels(side: f64) -> Result<u32> {
    let side = side.round();
    if (1.0..=SIDE_MAX).contains(&side) {
        Ok(side as u32)
    } else {
        Err(failed(format!(
            "a side would have {side} pixels; 1 to {SIDE_MAX} are possible"
        )))
    }
}

fn failed(why: impl std::fmt::Display) -> Error {
    let remedy = "Choose another width or resolution";
    Error::new(ErrorKind::Output, "cannot make the PNG figure", why, remedy)
}
