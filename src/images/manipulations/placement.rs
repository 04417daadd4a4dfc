//! Changes of where things are: turns and mirrors, crops, translations, painted squares.

use serde::{Deserialize, Serialize};

use super::{Picture, SQUARES, SQUARES_SIDE_PX};
use crate::images::preprocess::{ResizeFilter, resize};

/// A turn or mirror image of a grid: of the pixels of a picture, or of the positions of a feature map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GridSymmetry {
    /// A quarter turn, counter-clockwise.
    Rotate90,
    /// A half turn.
    Rotate180,
    /// Three quarter turns, counter-clockwise.
    Rotate270,
    /// Left and right exchanged.
    MirrorHorizontal,
    /// Top and bottom exchanged.
    MirrorVertical,
}

impl GridSymmetry {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Rotate90,
        Self::Rotate180,
        Self::Rotate270,
        Self::MirrorHorizontal,
        Self::MirrorVertical,
    ];

    /// Name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Rotate90 => "turned 90° counter-clockwise",
            Self::Rotate180 => "turned 180°",
            Self::Rotate270 => "turned 270° counter-clockwise",
            Self::MirrorHorizontal => "mirrored, left and right exchanged",
            Self::MirrorVertical => "mirrored, top and bottom exchanged",
        }
    }

    /// Rows and columns of the changed grid.
    pub fn shape(self, rows: usize, columns: usize) -> (usize, usize) {
        match self {
            Self::Rotate90 | Self::Rotate270 => (columns, rows),
            _ => (rows, columns),
        }
    }

    /// Where the item at (row, column) of the changed grid was in the grid of `rows · columns`.
    fn source(self, (row, column): (usize, usize), rows: usize, columns: usize) -> (usize, usize) {
        match self {
            Self::Rotate90 => (column, columns - 1 - row),
            Self::Rotate180 => (rows - 1 - row, columns - 1 - column),
            Self::Rotate270 => (rows - 1 - column, row),
            Self::MirrorHorizontal => (row, columns - 1 - column),
            Self::MirrorVertical => (rows - 1 - row, column),
        }
    }

    /// The changed grid, row after row, of one that holds `item` values side by side at each of its
    /// `rows · columns` places.
    pub fn apply<T: Copy>(self, values: &[T], rows: usize, columns: usize, item: usize) -> Vec<T> {
        let (new_rows, new_columns) = self.shape(rows, columns);
        let mut out = Vec::with_capacity(values.len());
        for row in 0..new_rows {
            for column in 0..new_columns {
                let (from_row, from_column) = self.source((row, column), rows, columns);
                let start = (from_row * columns + from_column) * item;
                out.extend_from_slice(&values[start..start + item]);
            }
        }
        out
    }
}

/// The part between fractions of the sides, each given as start and length, resized to the whole.
pub(super) fn crop(picture: &Picture, across: [f32; 2], down: [f32; 2]) -> Picture {
    let (width, height) = (picture.width(), picture.height());
    let (left, part_width) = pixels_of(across, width);
    let (top, part_height) = pixels_of(down, height);
    let rows = picture
        .rgb()
        .chunks_exact(3 * width)
        .skip(top)
        .take(part_height);
    let part: Vec<u8> = rows
        .flat_map(|row| &row[3 * left..3 * (left + part_width)])
        .copied()
        .collect();
    let rgb = resize(
        &part,
        (part_width, part_height),
        (width, height),
        ResizeFilter::Bicubic,
    );
    Picture::from_parts(width, height, rgb)
}

/// First pixel and number of pixels of a part of a side, at least one, inside the side.
fn pixels_of([start, length]: [f32; 2], side: usize) -> (usize, usize) {
    let whole = |fraction: f32| (f64::from(fraction) * side as f64).round() as usize;
    let start_px = whole(start).min(side - 1);
    let end_px = whole(start + length).clamp(start_px + 1, side);
    (start_px, end_px - start_px)
}

/// Moved by whole pixels, with `colour` where nothing comes to lie.
pub(super) fn translate(picture: &Picture, right: f32, down: f32, colour: [u8; 3]) -> Picture {
    let (width, height) = (picture.width(), picture.height());
    let whole = |fraction: f32, side: usize| (f64::from(fraction) * side as f64).round() as isize;
    let (right, down) = (whole(right, width), whole(down, height));
    let from = |place: usize, shift: isize, side: usize| {
        let place = place as isize - shift;
        usize::try_from(place).ok().filter(|&place| place < side)
    };
    let pixels: Vec<[u8; 3]> = picture.pixels().collect();
    let places = (0..height).flat_map(|row| (0..width).map(move |column| (row, column)));
    picture.with_pixels(places.map(|(row, column)| {
        match (from(row, down, height), from(column, right, width)) {
            (Some(row), Some(column)) => pixels[row * width + column],
            _ => colour,
        }
    }))
}

/// With the paper's squares filled.
pub(super) fn squares(picture: &Picture) -> Picture {
    let (width, height) = (picture.width(), picture.height());
    let scaled = |place: u32, side: usize| {
        let place = f64::from(place) * side as f64 / f64::from(SQUARES_SIDE_PX);
        place.round() as usize
    };
    let places = (0..height).flat_map(|row| (0..width).map(move |column| (row, column)));
    picture.with_pixels(picture.pixels().zip(places).map(|(pixel, (row, column))| {
        let covers = |&&([first, last], _): &&super::Square| {
            (scaled(first, height)..=scaled(last, height)).contains(&row)
                && (scaled(first, width)..=scaled(last, width)).contains(&column)
        };
        // The last square that was filled lies on top.
        SQUARES
            .iter()
            .rev()
            .find(covers)
            .map_or(pixel, |square| square.1)
    }))
}
