//! The grid of `etascope edit`: the photograph, its edit, the decoder's own reconstruction, and what is decoded at each rank.

use std::path::Path;

use crate::Result;
use crate::digits::significant;
use crate::figure::sheet::{self, Row, Tile};
use crate::files::write_whole;
use crate::images::Picture;
use crate::report::{Agreement, SweepRun};

/// Most ranks of which a grid shows every one.
const GRID_RANKS_MAX: usize = 10;

/// The photograph and its edit at the decoder's side.
pub(super) fn pictures(original: &Picture, edited: &Picture) -> Result<Vec<Tile>> {
    let original = original.resized(edited.width(), edited.height())?;
    Ok(vec![
        tile("original".to_owned(), original, None),
        tile("edited".to_owned(), edited.clone(), None),
    ])
}

/// The row of everything that has no rank, under what the grid is of.
pub(super) fn first_row(run: &SweepRun, tiles: Vec<Tile>) -> Row {
    let file = &run.file;
    let written: Vec<String> = file.manipulations.iter().map(ToString::to_string).collect();
    let edit = if written.is_empty() {
        "outside edit".to_owned()
    } else {
        written.join(" ")
    };
    let (encoder, stage) = (&run.encoder_title, &file.stage);
    let kind = file.map.kind.title();
    Row {
        heading: format!("{}, {edit}; {encoder} {stage}; {kind}", run.image),
        tiles,
    }
}

/// Writes the grid as a PNG file.
pub(super) fn write(path: &Path, rows: &[Row]) -> Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    write_whole(folder, &[(path.to_owned(), sheet::render(rows)?)])
}

/// A picture of the grid with what it is and how near it comes to the edited photograph.
pub(super) fn tile(name: String, picture: Picture, agreement: Option<&Agreement>) -> Tile {
    let mut label = vec![name];
    if let Some(agreement) = agreement {
        let cosine = agreement.mdncs_features.map(|value| significant(value, 3));
        label.extend(cosine.map(|cosine| format!("MdnCS {cosine}")));
        let lpips = agreement.picture.and_then(|picture| picture.lpips);
        label.extend(lpips.map(|lpips| format!("LPIPS {}", significant(lpips, 3))));
    }
    Tile { picture, label }
}

/// The ranks that a grid shows: all where they are few, else 0, 1, 2, 4, … and the largest.
pub(super) fn ranks(ranks: &[usize]) -> Vec<usize> {
    if ranks.len() <= GRID_RANKS_MAX {
        return ranks.to_vec();
    }
    let is_power = |rank: usize| rank == 0 || rank.is_power_of_two();
    let chosen = ranks.iter().copied();
    chosen
        .filter(|&rank| is_power(rank) || Some(&rank) == ranks.last())
        .collect()
}
