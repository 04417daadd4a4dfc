//! Legends: inside the plotting area where nothing is hidden, otherwise above the panel.

use super::curves::{between, hits};
use super::{INSET, Placed, Rect, SMALL_PT, text};
use crate::figure::fonts::CAP_HEIGHT;
use crate::figure::spec::Panel;
use crate::figure::text::{Text, width};

/// Row height of a legend.
const ROW: f64 = 10.0;
/// Length of a legend's line sample.
pub(crate) const SAMPLE: f64 = 16.0;
/// Between a legend's sample and its text.
const SAMPLE_GAP: f64 = 4.0;
/// Between the entries of a legend that stands above the panel.
const ENTRY_GAP: f64 = 9.0;

/// Legend entries: index of the series, text, its width.
pub(crate) fn entries(panel: &Panel) -> Vec<(usize, &str, f64)> {
    panel
        .series
        .iter()
        .enumerate()
        .filter_map(|(index, series)| {
            let label = series.label.as_deref()?;
            Some((index, label, width(label, SMALL_PT, false)))
        })
        .collect()
}

/// The room inside the plotting area that hides nothing, if there is one.
fn room_inside(
    panel: &Panel,
    drawn: &[(f64, f64)],
    labelled: &[Rect],
    placed: &Placed,
) -> Option<Rect> {
    let entries = entries(panel);
    let widest = entries
        .iter()
        .map(|&(_, _, width)| width)
        .fold(0.0, f64::max);
    let (wide, tall) = (SAMPLE + SAMPLE_GAP + widest, entries.len() as f64 * ROW);
    let plot = placed.plot.grown(-INSET);
    let (free_x, free_y) = (plot.width() - wide, plot.height() - tall);
    if free_x < 0.0 || free_y < 0.0 {
        return None;
    }
    // Corners first, then the middles of the edges, then anywhere between.
    let corners = [(1.0, 0.0), (0.0, 0.0), (1.0, 1.0), (0.0, 1.0)];
    let edges = [(0.5, 0.0), (1.0, 0.5), (0.0, 0.5), (0.5, 1.0)];
    let quarters = [0.25, 0.75, 0.5]
        .into_iter()
        .flat_map(|y| [0.25, 0.75, 0.5].map(|x| (x, y)));
    corners
        .into_iter()
        .chain(edges)
        .chain(quarters)
        .find_map(|(across, down)| {
            let (left, top) = (plot.left + across * free_x, plot.top + down * free_y);
            let room = Rect {
                left,
                top,
                right: left + wide,
                bottom: top + tall,
            };
            let air = room.grown(3.0);
            let is_free = hits(&air, drawn) == 0
                && !labelled.iter().any(|label| label.overlaps(&air))
                && !placed
                    .guides
                    .iter()
                    .any(|&[from, to]| !between(from, to, &room).is_empty());
            is_free.then_some(room)
        })
}

/// An entry of a legend above the panel.
struct Entry<'a> {
    /// Index of its series.
    series: usize,
    label: &'a str,
    size: f64,
    row: usize,
    /// Distance from the left edge of the plotting area.
    offset: f64,
}

/// Legend entries in rows, in as many aligned columns as have room.
fn flow(panel: &Panel, available: f64) -> Vec<Entry<'_>> {
    let entries = entries(panel);
    let sample = SAMPLE + SAMPLE_GAP;
    let widths = |columns: usize| -> Vec<f64> {
        let widest = |column: usize| {
            let column = entries.iter().skip(column).step_by(columns);
            sample + column.map(|&(_, _, width)| width).fold(0.0, f64::max)
        };
        (0..columns).map(widest).collect()
    };
    let fits = |columns: usize| {
        widths(columns).iter().sum::<f64>() + ENTRY_GAP * (columns - 1) as f64 <= available
    };
    let columns = (1..=entries.len())
        .rev()
        .find(|&columns| fits(columns))
        .unwrap_or(1);
    let widths = widths(columns);
    entries
        .iter()
        .enumerate()
        .map(|(order, &(series, label, natural))| {
            let column = order % columns;
            Entry {
                series,
                label,
                size: SMALL_PT * ((available - sample) / natural).min(1.0),
                row: order / columns,
                offset: widths[..column].iter().map(|width| width + ENTRY_GAP).sum(),
            }
        })
        .collect()
}

pub(crate) fn place_inside(
    panel: &Panel,
    drawn: &[(f64, f64)],
    labelled: &[Rect],
    placed: &mut Placed,
) {
    let entries = entries(panel);
    if entries.is_empty() {
        return;
    }
    let Some(room) = room_inside(panel, drawn, labelled, placed) else {
        return;
    };
    for (row, (index, label, _)) in entries.into_iter().enumerate() {
        let middle = room.top + (row as f64 + 0.5) * ROW;
        place_entry(placed, index, label, SMALL_PT, (room.left, middle));
    }
}

pub(crate) fn place_above(panel: &Panel, cell: Rect, placed: &mut Placed) {
    for Entry {
        series,
        label,
        size,
        row,
        offset,
    } in flow(panel, cell.right - placed.plot.left)
    {
        let middle = cell.top + (row as f64 + 0.5) * ROW;
        place_entry(
            placed,
            series,
            label,
            size,
            (placed.plot.left + offset, middle),
        );
    }
}

fn place_entry(placed: &mut Placed, index: usize, label: &str, size: f64, (x, y): (f64, f64)) {
    placed.samples.push((index, (x, y)));
    placed.texts.push(Text {
        label: label.to_owned(),
        at: (x + SAMPLE + SAMPLE_GAP, y + CAP_HEIGHT * size / 2.0),
        size,
        ..text("legend")
    });
}

/// Height of the legend above a panel with this much room for its rows.
pub(crate) fn height_above(panel: &Panel, available: f64) -> f64 {
    flow(panel, available)
        .last()
        .map_or(0.0, |entry| (entry.row + 1) as f64 * ROW)
}
