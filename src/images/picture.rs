//! Pictures in grey levels of 8 bits, on which edits work.

use super::preprocess::{ResizeFilter, resize};
use super::{Photo, Prepared};
use crate::{Error, ErrorKind, Result};

/// An RGB picture of 8 bits a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    width: usize,
    height: usize,
    /// `height · width · 3` values, row after row, the channels of a pixel side by side.
    rgb: Vec<u8>,
}

impl Picture {
    /// A picture from its values, row after row, the channels of a pixel side by side.
    ///
    /// # Errors
    /// [`ErrorKind::Image`] where it is empty or the number of values is not `3 · width · height`.
    pub fn new(width: usize, height: usize, rgb: Vec<u8>) -> Result<Self> {
        let is_whole = width.checked_mul(height).and_then(|n| n.checked_mul(3)) == Some(rgb.len());
        if rgb.is_empty() || !is_whole {
            return Err(Error::new(
                ErrorKind::Image,
                "cannot use the picture",
                format!("{} values are not {width} × {height} pixels", rgb.len()),
                "Open another picture",
            ));
        }
        Ok(Self { width, height, rgb })
    }

    /// From values in [0, 1] in the order (channel, row, column), rounded to the nearest grey level;
    /// values outside, such as dither leaves, are clipped. `pixels` holds `3 · rows · columns` of them.
    pub fn from_planes(pixels: &[f32], rows: usize, columns: usize) -> Self {
        let area = rows * columns;
        let rgb = (0..area)
            .flat_map(|at| (0..3).map(move |channel| pixels[channel * area + at]))
            // `as` clips and takes NaN to 0.
            .map(|value| (f64::from(value) * 255.0).round() as u8)
            .collect();
        Self {
            width: columns,
            height: rows,
            rgb,
        }
    }

    /// Width in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Height in pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Grey levels, row after row, the channels of a pixel side by side.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// Values in [0, 1] in the order (channel, row, column), as [`Prepared`] holds them.
    pub fn planes(&self) -> Vec<f32> {
        let pixels = || self.rgb.chunks_exact(3);
        (0..3)
            .flat_map(|channel| pixels().map(move |pixel| f32::from(pixel[channel]) / 255.0))
            .collect()
    }

    /// The picture at another size, by Pillow's bicubic with antialiasing.
    ///
    /// # Errors
    /// [`ErrorKind::Image`] where a side would be 0.
    pub fn resized(&self, width: usize, height: usize) -> Result<Self> {
        if (width, height) == (self.width, self.height) {
            return Ok(self.clone());
        }
        if width == 0 || height == 0 {
            return Self::new(width, height, Vec::new());
        }
        let (from, to) = ((self.width, self.height), (width, height));
        Self::new(
            width,
            height,
            resize(&self.rgb, from, to, ResizeFilter::Bicubic),
        )
    }

    /// A picture of the same size from pixels in the order of [`Picture::rgb`].
    pub(super) fn with_pixels(&self, pixels: impl Iterator<Item = [u8; 3]>) -> Self {
        Self {
            width: self.width,
            height: self.height,
            rgb: pixels.flatten().collect(),
        }
    }

    /// Parts of a picture that other modules of the room have made; `rgb` fits the size.
    pub(super) fn from_parts(width: usize, height: usize, rgb: Vec<u8>) -> Self {
        Self { width, height, rgb }
    }

    /// Pixels, row after row.
    pub(super) fn pixels(&self) -> impl ExactSizeIterator<Item = [u8; 3]> {
        self.rgb.as_chunks::<3>().0.iter().copied()
    }
}

impl From<&Photo> for Picture {
    fn from(photo: &Photo) -> Self {
        Self {
            width: photo.width as usize,
            height: photo.height as usize,
            rgb: photo.rgb.to_vec(),
        }
    }
}

impl From<&Prepared> for Picture {
    fn from(prepared: &Prepared) -> Self {
        Self::from_planes(&prepared.pixels, prepared.side_px, prepared.side_px)
    }
}
