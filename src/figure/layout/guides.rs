//! Values marked across a panel, with labels where they hide least.

use super::curves::{hits, point};
use super::{INSET, Placed, QUIET, Rect, SMALL_PT, text};
use crate::figure::fonts::CAP_HEIGHT;
use crate::figure::spec::{Guide, Panel};
use crate::figure::text::{Text, width};

/// Between a guide and its label: more than a marker's radius and the label's rim.
const GUIDE_GAP: f64 = 3.0;
/// Places along a guide that are tried for its label.
const GUIDE_PLACES: usize = 20;

/// Guides’ lines, and their labels where they hide least and nothing `taken`. Returns the labels’
/// rooms.
pub(crate) fn place(
    panel: &Panel,
    drawn: &[(f64, f64)],
    taken: &[Rect],
    placed: &mut Placed,
) -> Vec<Rect> {
    let plot = placed.plot;
    let cap = CAP_HEIGHT * SMALL_PT;
    let mut rooms: Vec<Rect> = Vec::new();
    for guide in &panel.guides {
        let (line, label, upright) = match guide {
            Guide::Horizontal { at, label } => {
                let Some((_, y)) = point(placed, placed.x.range[0], *at) else {
                    continue;
                };
                ([(plot.left, y), (plot.right, y)], label, false)
            }
            Guide::Vertical { at, label } => {
                let Some((x, _)) = point(placed, *at, placed.y.range[0]) else {
                    continue;
                };
                ([(x, plot.bottom), (x, plot.top)], label, true)
            }
        };
        if !plot.grown(0.01).contains(line[0]) {
            continue;
        }
        placed.guides.push(line);
        if label.is_empty() {
            continue;
        }
        let length = width(label, SMALL_PT, false);
        // All along the line, on either side of it, its ends first.
        let between = (1..GUIDE_PLACES).map(|place| place as f64 / GUIDE_PLACES as f64);
        let places = [1.0, 0.0].into_iter().chain(between);
        let places = places.flat_map(|along| [(along, true), (along, false)]);
        let room = |(along, is_before): (f64, bool)| {
            let (near, far) = (GUIDE_GAP, GUIDE_GAP + cap);
            if upright {
                let bottom = plot.bottom - INSET - along * (plot.height() - 2.0 * INSET - length);
                let (x, _) = line[0];
                let (left, right) = if is_before {
                    (x - far, x - near)
                } else {
                    (x + near, x + far)
                };
                Rect {
                    left,
                    right,
                    top: bottom - length,
                    bottom,
                }
            } else {
                let left = plot.left + INSET + along * (plot.width() - 2.0 * INSET - length);
                let (_, y) = line[0];
                let (top, bottom) = if is_before {
                    (y - far, y - near)
                } else {
                    (y + near, y + far)
                };
                Rect {
                    left,
                    right: left + length,
                    top,
                    bottom,
                }
            }
        };
        let best = places
            .map(room)
            .filter(|room| {
                plot.contains((room.left, room.top)) && plot.contains((room.right, room.bottom))
            })
            .filter(|room| {
                !rooms
                    .iter()
                    .chain(taken)
                    .any(|other| other.overlaps(&room.grown(1.0)))
            })
            .min_by_key(|room| hits(&room.grown(1.5), drawn));
        // A label without room is left out rather than laid over another.
        let Some(best) = best else { continue };
        let at = if upright {
            (best.right, best.bottom)
        } else {
            (best.left, best.bottom)
        };
        let label = label.clone();
        placed.texts.push(Text {
            label,
            at,
            upright,
            rgb: QUIET,
            rim: true,
            ..text("guide")
        });
        rooms.push(best);
    }
    rooms
}
