//! Sheets: pictures in rows, pixel for pixel, each with a label below and each row with a heading above.

use resvg::usvg;

use super::fonts;
use super::png;
use super::svg::parse;
use super::text::{Anchor, Text};
use crate::images::Picture;
use crate::{Error, ErrorKind, Result};

/// Space between pictures and around the sheet, in pixels.
const GAP: usize = 8;
/// Type size of labels, in pixels.
const LABEL: usize = 11;
/// Type size of headings, in pixels.
const HEADING: usize = 13;
/// From one line of type to the next, over its size.
const LINE: f64 = 1.25;
/// Pixels an inch that are written into the file: labels are as large as on paper then.
const DPI: f64 = 120.0;
const INK: [u8; 3] = [0x20, 0x20, 0x20];

/// A picture of a sheet.
#[derive(Clone, Debug)]
pub struct Tile {
    /// What is shown.
    pub picture: Picture,
    /// What stands below it, line by line.
    pub label: Vec<String>,
}

/// A row of a sheet.
#[derive(Clone, Debug)]
pub struct Row {
    /// What stands above it.
    pub heading: String,
    /// Its pictures from left to right.
    pub tiles: Vec<Tile>,
}

/// Where a row's parts are, in pixels from the top.
struct Placed<'a> {
    row: &'a Row,
    heading: usize,
    pictures: usize,
    labels: usize,
}

fn lines(count: usize, size: usize) -> usize {
    (count as f64 * size as f64 * LINE).ceil() as usize
}

/// The sheet as an encoded PNG. Pictures keep their pixels; columns are as wide as the widest picture.
///
/// # Errors
/// [`ErrorKind::Output`] for a sheet without pictures or beyond 20,000 pixels.
pub fn render(rows: &[Row]) -> Result<Vec<u8>> {
    let tiles = || rows.iter().flat_map(|row| &row.tiles);
    let column = tiles().map(|tile| tile.picture.width()).max();
    let Some(column) = column else {
        return Err(Error::new(
            ErrorKind::Output,
            "cannot make the sheet",
            "there is no picture",
            "Ask for at least one",
        ));
    };
    let columns = rows.iter().map(|row| row.tiles.len()).max().unwrap_or(0);
    let width = GAP + columns * (column + GAP);
    let (mut top, mut placed) = (GAP, Vec::with_capacity(rows.len()));
    for row in rows {
        let pictures = top + lines(1, HEADING);
        let heights = row.tiles.iter().map(|tile| tile.picture.height());
        let labels = pictures + heights.max().unwrap_or(0) + GAP / 4;
        let count = row.tiles.iter().map(|tile| tile.label.len()).max();
        placed.push(Placed {
            row,
            heading: top,
            pictures,
            labels,
        });
        top = labels + lines(count.unwrap_or(0), LABEL) + GAP;
    }
    let mut pixmap = written(&placed, column, width, top)?;
    for Placed { row, pictures, .. } in &placed {
        for (at, tile) in row.tiles.iter().enumerate() {
            let left = GAP + at * (column + GAP);
            draw(&tile.picture, left, *pictures, width, &mut pixmap);
        }
    }
    png::encode(&pixmap, width as u32, top as u32, DPI)
}

/// Headings and labels on white: `width · height · 3` values.
fn written(placed: &[Placed<'_>], column: usize, width: usize, height: usize) -> Result<Vec<u8>> {
    let mut texts = String::new();
    let mut write = |label: &str, at: (f64, f64), anchor, size: usize, bold| {
        let text = Text {
            label: label.to_owned(),
            at,
            anchor,
            size: size as f64,
            bold,
            upright: false,
            rgb: INK,
            rim: false,
            role: "note",
        };
        texts.push_str(&text.to_svg());
    };
    let baseline = |top: usize, line: usize, size: usize| {
        (top + lines(line, size)) as f64 + size as f64 * (0.5 + fonts::CAP_HEIGHT / 2.0)
    };
    for row in placed {
        let at = (GAP as f64, baseline(row.heading, 0, HEADING));
        write(&row.row.heading, at, Anchor::Start, HEADING, true);
        for (index, tile) in row.row.tiles.iter().enumerate() {
            let middle = (GAP + index * (column + GAP)) as f64 + tile.picture.width() as f64 / 2.0;
            for (line, label) in tile.label.iter().enumerate() {
                let at = (middle, baseline(row.labels, line, LABEL));
                write(label, at, Anchor::Middle, LABEL, false);
            }
        }
    }
    let tree = parse(&format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="{}">{texts}</svg>"#,
        fonts::FAMILY
    ))?;
    png::drawn(
        &tree,
        width as u32,
        height as u32,
        usvg::Transform::identity(),
    )
}

fn draw(picture: &Picture, left: usize, top: usize, width: usize, pixels: &mut [u8]) {
    let rows = picture.rgb().chunks_exact(3 * picture.width());
    for (y, row) in rows.enumerate() {
        let start = 3 * ((top + y) * width + left);
        if let Some(place) = pixels.get_mut(start..start + row.len()) {
            place.copy_from_slice(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile(rgb: [u8; 3], side: usize) -> Tile {
        Tile {
            picture: Picture::new(side, side, rgb.repeat(side * side)).expect("a picture"),
            label: vec!["k = 4".to_owned(), "0.93".to_owned()],
        }
    }

    #[test]
    fn pictures_keep_their_pixels_and_labels_are_written_below() {
        let row = |heading: &str, tiles| Row {
            heading: heading.to_owned(),
            tiles,
        };
        let rows = [
            row("first", vec![tile([200, 10, 30], 40), tile([1, 2, 3], 40)]),
            row("second", vec![tile([9, 120, 9], 40)]),
        ];
        let file = render(&rows).expect("a sheet");
        let sheet = crate::images::decode(&file, "sheet.png", Default::default()).expect("a PNG");
        assert_eq!(sheet.width as usize, GAP + 2 * (40 + GAP));
        let at = |x: usize, y: usize| {
            let start = 3 * (y * sheet.width as usize + x);
            [0, 1, 2].map(|c| sheet.rgb[start + c])
        };
        let top = GAP + lines(1, HEADING);
        for (x, y) in [(GAP, top), (GAP + 39, top + 39)] {
            assert_eq!(at(x, y), [200, 10, 30]);
            assert_eq!(at(x + 40 + GAP, y), [1, 2, 3]);
        }
        assert_eq!(at(GAP - 1, top), [255; 3]);
        // Something dark stands in the strip of the labels.
        let strip = (top + 40)..(top + 40 + lines(2, LABEL));
        let mut pixels = strip.flat_map(|y| (GAP..GAP + 40).map(move |x| (x, y)));
        assert!(pixels.any(|(x, y)| at(x, y)[0] < 100));
        let second = top + 40 + GAP / 4 + lines(2, LABEL) + GAP + lines(1, HEADING);
        assert_eq!(at(GAP, second), [9, 120, 9]);
        assert!(render(&[]).is_err());
    }
}
