//! Where everything stands on the page, in points from its upper left corner.

use super::fonts::{CAP_HEIGHT, DESCENT};
use super::label;
use super::spec::{Axis, Figure, Guide, Ink, Panel, Scale, Series};
use super::text::{Anchor, Text, width};
use super::ticks::Tick;

/// Points in a millimetre.
pub(crate) const POINTS_PER_MM: f64 = 72.0 / 25.4;

/// Type size of axis titles.
const TITLE_PT: f64 = 8.0;
/// Type size of tick labels, legend and notes.
const SMALL_PT: f64 = 7.0;
/// Type size of panel letters.
const LETTER_PT: f64 = 10.0;
/// Length of a labelled tick.
pub(crate) const MAJOR_PT: f64 = 3.5;
/// Length of the others.
pub(crate) const MINOR_PT: f64 = 2.0;
/// Between a tick and its label.
const TICK_GAP: f64 = 2.5;
/// Between tick labels and the axis title.
const TITLE_GAP: f64 = 4.0;
/// Least distance between neighbouring tick labels.
const LABEL_GAP: f64 = 4.0;
/// Page margin.
const EDGE: f64 = 2.0;
/// Between panels.
const GUTTER: f64 = 12.0;
/// Distance of legend and guide labels from the frame.
const INSET: f64 = 5.0;
/// Row height of a legend.
const ROW: f64 = 10.0;
/// Length of a legend's line sample.
pub(crate) const SAMPLE: f64 = 20.0;
/// Between a legend's sample and its text.
const SAMPLE_GAP: f64 = 4.0;
/// Between the entries of a legend that stands above the panel.
const ENTRY_GAP: f64 = 12.0;
/// Step at which curves are sampled to find free room.
const SAMPLING: f64 = 2.0;
/// Coordinates are kept within this, so that drawing programs can hold them.
const FAR: f64 = 1e5;
/// Colour of text that explains rather than names.
const QUIET: [u8; 3] = [0x5c, 0x5c, 0x5c];

/// A rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rect {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Rect {
    pub fn width(&self) -> f64 {
        self.right - self.left
    }

    pub fn height(&self) -> f64 {
        self.bottom - self.top
    }

    fn contains(&self, (x, y): (f64, f64)) -> bool {
        x >= self.left && x <= self.right && y >= self.top && y <= self.bottom
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    fn grown(&self, by: f64) -> Self {
        Self {
            left: self.left - by,
            top: self.top - by,
            right: self.right + by,
            bottom: self.bottom + by,
        }
    }
}

/// The page.
pub(crate) struct Page {
    pub width: f64,
    pub height: f64,
    pub panels: Vec<Placed>,
}

/// A panel in its place.
pub(crate) struct Placed {
    /// The plotting area.
    pub plot: Rect,
    pub x: PlacedAxis,
    pub y: PlacedAxis,
    pub x_secondary: Option<PlacedAxis>,
    pub y_secondary: Option<PlacedAxis>,
    /// Lines of the guides.
    pub guides: Vec<[(f64, f64); 2]>,
    /// Line samples of the legend: index of the series and left end.
    pub samples: Vec<(usize, (f64, f64))>,
    /// Background of a legend that stands inside the plotting area.
    pub legend: Option<Rect>,
    pub texts: Vec<Text>,
}

/// An axis in its place.
pub(crate) struct PlacedAxis {
    pub scale: Scale,
    pub range: [f64; 2],
    /// Ticks with their coordinate along the axis.
    pub ticks: Vec<(f64, Tick)>,
}

impl PlacedAxis {
    fn new(scale: Scale, range: [f64; 2], start: f64, end: f64) -> Self {
        let ticks = scale
            .ticks(range)
            .into_iter()
            .map(|tick| {
                (
                    start + scale.fraction(tick.value, range) * (end - start),
                    tick,
                )
            })
            .collect();
        Self {
            scale,
            range,
            ticks,
        }
    }
}

/// A point of a series on the page; `None` where it has no place.
pub(crate) fn point(placed: &Placed, x: f64, y: f64) -> Option<(f64, f64)> {
    let (xs, ys) = (&placed.x, &placed.y);
    if !(xs.scale.holds(x) && ys.scale.holds(y)) {
        return None;
    }
    let plot = &placed.plot;
    let across = plot.left + xs.scale.fraction(x, xs.range) * plot.width();
    let down = plot.bottom - ys.scale.fraction(y, ys.range) * plot.height();
    Some((across.clamp(-FAR, FAR), down.clamp(-FAR, FAR)))
}

/// Unbroken stretches of a curve.
pub(crate) fn curve(placed: &Placed, series: &Series) -> Vec<Vec<(f64, f64)>> {
    let points = series
        .x
        .iter()
        .zip(&series.y)
        .map(|(&x, &y)| point(placed, x, y));
    stretches(points)
}

/// Closed outlines of a band. An edge that has no place because it is not positive on a logarithmic
/// axis lies at the axis's lower end; where the curve or an edge is NaN the band is broken.
pub(crate) fn band(placed: &Placed, series: &Series) -> Vec<Vec<(f64, f64)>> {
    let Some(band) = &series.band else {
        return Vec::new();
    };
    let lowest = placed.y.range[0];
    let edge = |x: f64, y: f64| {
        let below = placed.y.scale == Scale::Log10 && y <= lowest;
        point(placed, x, if below { lowest } else { y })
    };
    let edges = series
        .x
        .iter()
        .zip(&series.y)
        .zip(band.low.iter().zip(&band.high))
        .map(|((&x, &y), (&low, &high))| {
            point(placed, x, y)?;
            Some((edge(x, low)?, edge(x, high)?))
        });
    stretches(edges)
        .into_iter()
        .map(|stretch| {
            let upper = stretch.iter().map(|&(_, high)| high);
            let lower = stretch.iter().rev().map(|&(low, _)| low);
            upper.chain(lower).collect()
        })
        .collect()
}

fn stretches<T>(items: impl Iterator<Item = Option<T>>) -> Vec<Vec<T>> {
    let mut all = Vec::new();
    let mut open = Vec::new();
    for item in items {
        match item {
            Some(item) => open.push(item),
            None if open.is_empty() => {}
            None => all.push(std::mem::take(&mut open)),
        }
    }
    if !open.is_empty() {
        all.push(open);
    }
    all
}

/// Room that a panel needs beside its plotting area.
#[derive(Clone, Copy, Default)]
struct Margins {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Margins {
    fn union(self, other: Self) -> Self {
        Self {
            left: self.left.max(other.left),
            right: self.right.max(other.right),
            top: self.top.max(other.top),
            bottom: self.bottom.max(other.bottom),
        }
    }
}

/// Lays a figure out.
pub(crate) fn page(figure: &Figure) -> Page {
    // A legend that finds no free room inside moves above its panel, which moves everything.
    let mut rows_above = vec![0; figure.panels.len()];
    loop {
        let page = page_with(figure, &rows_above);
        let wanted: Vec<usize> = figure
            .panels
            .iter()
            .zip(&page.panels)
            .zip(&rows_above)
            .map(|((panel, placed), &above)| {
                if above > 0 {
                    above
                } else {
                    rows_wanted(panel, placed)
                }
            })
            .collect();
        if wanted == rows_above {
            return page;
        }
        rows_above = wanted;
    }
}

fn page_with(figure: &Figure, rows_above: &[usize]) -> Page {
    let columns = figure.columns.clamp(1, figure.panels.len().max(1));
    let page_width = figure.width_mm * POINTS_PER_MM;
    let is_lettered = figure.panels.len() > 1;
    let margins: Vec<Margins> = figure
        .panels
        .iter()
        .zip(rows_above)
        .map(|(panel, &rows)| margins(panel, rows, is_lettered))
        .collect();
    // Plotting areas of a column have the same left and right edges.
    let column = |index: usize| {
        margins
            .iter()
            .skip(index)
            .step_by(columns)
            .copied()
            .fold(Margins::default(), Margins::union)
    };
    let beside: f64 = (0..columns)
        .map(|index| column(index).left + column(index).right)
        .sum();
    let free = page_width - 2.0 * EDGE - GUTTER * (columns - 1) as f64 - beside;
    let plot_width = (free / columns as f64).max(1.0);
    let plot_height = plot_width / figure.aspect;

    let mut panels = Vec::with_capacity(figure.panels.len());
    let mut top = EDGE;
    for (row, row_panels) in figure.panels.chunks(columns).enumerate() {
        let indices = row * columns..row * columns + row_panels.len();
        let tall = margins[indices]
            .iter()
            .copied()
            .fold(Margins::default(), Margins::union);
        let mut left = EDGE;
        for (index, panel) in row_panels.iter().enumerate() {
            let beside = column(index);
            let number = row * columns + index;
            let plot = Rect {
                left: left + beside.left,
                top: top + tall.top,
                right: left + beside.left + plot_width,
                bottom: top + tall.top + plot_height,
            };
            let cell = Rect {
                left,
                top,
                right: plot.right + beside.right,
                bottom: plot.bottom + tall.bottom,
            };
            let letter = is_lettered.then(|| letter(number));
            panels.push(place(panel, cell, plot, rows_above[number], letter));
            left = cell.right + GUTTER;
        }
        top += tall.top + plot_height + tall.bottom + GUTTER;
    }
    Page {
        width: page_width,
        height: (top - GUTTER + EDGE).max(2.0 * EDGE + 1.0),
        panels,
    }
}

/// a, b, …, z, aa, ab, ….
fn letter(mut index: usize) -> String {
    let mut letters = String::new();
    loop {
        letters.insert(0, char::from(b'a' + (index % 26) as u8));
        if index < 26 {
            return letters;
        }
        index = index / 26 - 1;
    }
}

/// Height of a row of small text, tick included, beside an axis.
const TICK_ROW: f64 = MAJOR_PT + TICK_GAP + CAP_HEIGHT * SMALL_PT;
/// Height of an axis title with its gap; a subscript reaches a little below the descenders.
const TITLE_ROW: f64 = TITLE_GAP + (CAP_HEIGHT + DESCENT + 0.06) * TITLE_PT;

fn margins(panel: &Panel, rows_above: usize, is_lettered: bool) -> Margins {
    let widest = |scale: Scale, range: [f64; 2]| {
        let ticks = scale.ticks(range);
        let labels = ticks.iter().filter_map(|tick| tick.label.as_deref());
        labels
            .map(|label| width(label, SMALL_PT, false))
            .fold(0.0, f64::max)
    };
    let (x_range, y_range) = (panel.x_range(), panel.y_range());
    // Half of a tick label may stand out over either end of an axis.
    let half_x = widest(panel.x.scale, x_range) / 2.0;
    let half_y = CAP_HEIGHT * SMALL_PT / 2.0;
    let upright = |title: &str| if title.is_empty() { 0.0 } else { TITLE_ROW };
    let mut margins = Margins {
        left: upright(&panel.y.title()) + MAJOR_PT + TICK_GAP + widest(panel.y.scale, y_range),
        right: half_x,
        top: half_y,
        bottom: TICK_ROW + upright(&panel.x.title()),
    };
    margins.left = margins.left.max(half_x);
    if let Some(secondary) = &panel.x.secondary {
        let range = x_range.map(|value| value * secondary.factor);
        margins.top = TICK_ROW + upright(&secondary.title());
        margins.right = margins.right.max(widest(panel.x.scale, range) / 2.0);
    }
    if let Some(secondary) = &panel.y.secondary {
        let range = y_range.map(|value| value * secondary.factor);
        let labels = widest(panel.y.scale, range);
        margins.right = margins
            .right
            .max(upright(&secondary.title()) + MAJOR_PT + TICK_GAP + labels);
    }
    if rows_above > 0 {
        margins.top += rows_above as f64 * ROW + INSET;
    } else if is_lettered {
        margins.top = margins.top.max(CAP_HEIGHT * LETTER_PT + INSET);
    }
    margins
}

fn place(
    panel: &Panel,
    cell: Rect,
    plot: Rect,
    rows_above: usize,
    letter: Option<String>,
) -> Placed {
    let x = PlacedAxis::new(panel.x.scale, panel.x_range(), plot.left, plot.right);
    let y = PlacedAxis::new(panel.y.scale, panel.y_range(), plot.bottom, plot.top);
    let copy = |axis: &Axis, placed: &PlacedAxis, start, end| {
        axis.secondary
            .as_ref()
            .filter(|secondary| secondary.factor > 0.0)
            .map(|secondary| {
                let range = placed.range.map(|value| value * secondary.factor);
                PlacedAxis::new(placed.scale, range, start, end)
            })
    };
    let mut placed = Placed {
        plot,
        x_secondary: copy(&panel.x, &x, plot.left, plot.right),
        y_secondary: copy(&panel.y, &y, plot.bottom, plot.top),
        x,
        y,
        guides: Vec::new(),
        samples: Vec::new(),
        legend: None,
        texts: Vec::new(),
    };
    place_axis_texts(panel, cell, &mut placed);
    if let Some(letter) = letter {
        placed.texts.push(Text {
            label: letter,
            at: (cell.left, cell.top + CAP_HEIGHT * LETTER_PT),
            anchor: Anchor::Start,
            size: LETTER_PT,
            bold: true,
            ..text("letter")
        });
    }
    let drawn = samples(panel, &placed);
    if drawn.is_empty() && !panel.series.iter().all(|series| series.x.is_empty()) {
        placed.texts.push(Text {
            label: "no defined value".to_owned(),
            at: (
                (plot.left + plot.right) / 2.0,
                (plot.top + plot.bottom) / 2.0,
            ),
            anchor: Anchor::Middle,
            rgb: QUIET,
            ..text("note")
        });
    }
    let labelled = place_guides(panel, &drawn, &mut placed);
    if rows_above > 0 {
        place_legend_above(panel, cell, &mut placed);
    } else {
        place_legend_inside(panel, &drawn, &labelled, &mut placed);
    }
    placed
}

/// Text with the commonest properties.
fn text(role: &'static str) -> Text {
    Text {
        label: String::new(),
        at: (0.0, 0.0),
        anchor: Anchor::Start,
        size: SMALL_PT,
        bold: false,
        upright: false,
        rgb: Ink::Text.rgb(),
        rim: false,
        role,
    }
}

fn place_axis_texts(panel: &Panel, cell: Rect, placed: &mut Placed) {
    let plot = placed.plot;
    let mut texts = Vec::new();
    let widths = |ticks: &[(f64, Tick)]| -> Vec<f64> {
        let label = |tick: &Tick| {
            tick.label
                .as_deref()
                .map_or(0.0, |l| width(l, SMALL_PT, false))
        };
        ticks.iter().map(|(_, tick)| label(tick)).collect()
    };
    let cap = CAP_HEIGHT * SMALL_PT;
    let mut across = |axis: &mut PlacedAxis, baseline: f64| {
        let extents = widths(&axis.ticks);
        thin(axis, &extents);
        texts.extend(axis.ticks.iter().filter_map(|(at, tick)| {
            let label = tick.label.clone()?;
            Some(Text {
                label,
                at: (*at, baseline),
                anchor: Anchor::Middle,
                ..text("tick")
            })
        }));
    };
    across(&mut placed.x, plot.bottom + TICK_ROW);
    if let Some(axis) = &mut placed.x_secondary {
        across(axis, plot.top - MAJOR_PT - TICK_GAP);
    }
    let mut along = |axis: &mut PlacedAxis, at_x: f64, anchor: Anchor| {
        let extents = vec![cap; axis.ticks.len()];
        thin(axis, &extents);
        texts.extend(axis.ticks.iter().filter_map(|(at, tick)| {
            let label = tick.label.clone()?;
            Some(Text {
                label,
                at: (at_x, at + cap / 2.0),
                anchor,
                ..text("tick")
            })
        }));
    };
    along(&mut placed.y, plot.left - MAJOR_PT - TICK_GAP, Anchor::End);
    if let Some(axis) = &mut placed.y_secondary {
        along(axis, plot.right + MAJOR_PT + TICK_GAP, Anchor::Start);
    }

    let mut title = |label: String, upright: bool, place: f64| {
        if label.is_empty() {
            return;
        }
        // Centred on the plotting area, moved or made smaller where it would leave the panel.
        let (low, high, middle) = if upright {
            (cell.top, cell.bottom, (plot.top + plot.bottom) / 2.0)
        } else {
            (cell.left, cell.right, (plot.left + plot.right) / 2.0)
        };
        let natural = width(&label, TITLE_PT, false);
        let shrink = ((high - low) / natural).min(1.0);
        let half = natural * shrink / 2.0;
        let middle = middle.clamp(low + half, (high - half).max(low + half));
        let at = if upright {
            (place, middle)
        } else {
            (middle, place)
        };
        let size = TITLE_PT * shrink;
        texts.push(Text {
            label,
            at,
            anchor: Anchor::Middle,
            size,
            upright,
            ..text("title")
        });
    };
    let cap = CAP_HEIGHT * TITLE_PT;
    title(
        panel.x.title(),
        false,
        plot.bottom + TICK_ROW + TITLE_GAP + cap,
    );
    title(panel.y.title(), true, cell.left + cap);
    if let Some(secondary) = &panel.x.secondary {
        title(secondary.title(), false, plot.top - TICK_ROW - TITLE_GAP);
    }
    if let Some(secondary) = &panel.y.secondary {
        title(secondary.title(), true, cell.right - DESCENT * TITLE_PT);
    }
    placed.texts.append(&mut texts);
}

/// Takes labels away, evenly, until those left have room. The label of 1 (logarithmic) or 0 (linear)
/// stays if there is one.
fn thin(axis: &mut PlacedAxis, extents: &[f64]) {
    let labelled: Vec<usize> = (0..axis.ticks.len())
        .filter(|&i| axis.ticks[i].1.label.is_some())
        .collect();
    let origin = if axis.scale == Scale::Log10 { 1.0 } else { 0.0 };
    let anchor = labelled
        .iter()
        .position(|&i| axis.ticks[i].1.value == origin)
        .unwrap_or(0);
    let fits = |stride: usize| {
        let kept: Vec<usize> = labelled
            .iter()
            .skip(anchor % stride)
            .step_by(stride)
            .copied()
            .collect();
        kept.windows(2).all(|pair| {
            let distance = (axis.ticks[pair[1]].0 - axis.ticks[pair[0]].0).abs();
            distance >= (extents[pair[0]] + extents[pair[1]]) / 2.0 + LABEL_GAP
        })
    };
    let stride = (1..=labelled.len())
        .find(|&stride| fits(stride))
        .unwrap_or(1);
    for (order, &index) in labelled.iter().enumerate() {
        if order % stride != anchor % stride {
            axis.ticks[index].1.label = None;
        }
    }
}

/// Points that stand for what is drawn, close enough to each other that nothing slips through.
fn samples(panel: &Panel, placed: &Placed) -> Vec<(f64, f64)> {
    let visible = placed.plot.grown(SAMPLING);
    let mut points = Vec::new();
    for series in &panel.series {
        for stretch in curve(placed, series)
            .into_iter()
            .chain(band(placed, series))
        {
            points.extend(stretch.first());
            for pair in stretch.windows(2) {
                points.extend(between(pair[0], pair[1], &visible));
            }
        }
    }
    points.retain(|&point| visible.contains(point));
    points
}

/// Samples of the part of a line that lies within `bounds`, its end included.
fn between(from: (f64, f64), to: (f64, f64), bounds: &Rect) -> Vec<(f64, f64)> {
    // Share of the line, 0 to 1, that lies between two parallels.
    let share = |from: f64, to: f64, low: f64, high: f64| {
        if from == to {
            return if from >= low && from <= high {
                (0.0, 1.0)
            } else {
                (1.0, 0.0)
            };
        }
        let (a, b) = ((low - from) / (to - from), (high - from) / (to - from));
        (a.min(b).max(0.0), a.max(b).min(1.0))
    };
    let across = share(from.0, to.0, bounds.left, bounds.right);
    let down = share(from.1, to.1, bounds.top, bounds.bottom);
    let (start, end) = (across.0.max(down.0), across.1.min(down.1));
    if start > end {
        return Vec::new();
    }
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let steps = (dx.hypot(dy) * (end - start) / SAMPLING).ceil().max(1.0);
    (0..=steps as usize)
        .map(|step| start + (end - start) * step as f64 / steps)
        .map(|t| (from.0 + t * dx, from.1 + t * dy))
        .collect()
}

fn hits(area: &Rect, points: &[(f64, f64)]) -> usize {
    points.iter().filter(|&&point| area.contains(point)).count()
}

/// Guides' lines, and their labels where they hide least. Returns the rooms of the labels.
fn place_guides(panel: &Panel, drawn: &[(f64, f64)], placed: &mut Placed) -> Vec<Rect> {
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
        // At either end or in the middle of the line, on either side of it, in order of liking.
        let places = [1.0, 0.0, 0.5]
            .into_iter()
            .flat_map(|along| [(along, true), (along, false)]);
        let room = |(along, is_before): (f64, bool)| {
            let (near, far) = (2.5, 2.5 + cap);
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
            .filter(|room| !rooms.iter().any(|taken| taken.overlaps(&room.grown(1.0))))
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

/// Legend entries: index of the series, text, its width.
fn entries(panel: &Panel) -> Vec<(usize, &str, f64)> {
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

/// Rows that the legend needs above the panel; 0 if it has room inside.
fn rows_wanted(panel: &Panel, placed: &Placed) -> usize {
    let has_entries = panel.series.iter().any(|series| series.label.is_some());
    if placed.legend.is_some() || !has_entries {
        return 0;
    }
    flow(panel, placed.plot.width())
        .last()
        .map_or(0, |&(row, ..)| row + 1)
}

/// Entries of a legend above the panel: row, offset, index of the series, text, its type size.
fn flow(panel: &Panel, available: f64) -> Vec<(usize, f64, usize, &str, f64)> {
    let (mut row, mut offset) = (0, 0.0);
    entries(panel)
        .into_iter()
        .map(|(index, label, natural)| {
            let shrink = ((available - SAMPLE - SAMPLE_GAP) / natural).min(1.0);
            let wide = SAMPLE + SAMPLE_GAP + natural * shrink;
            if offset > 0.0 && offset + wide > available {
                (row, offset) = (row + 1, 0.0);
            }
            let entry = (row, offset, index, label, SMALL_PT * shrink);
            offset += wide + ENTRY_GAP;
            entry
        })
        .collect()
}

fn place_legend_inside(
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
    placed.legend = Some(room);
    for (row, (index, label, _)) in entries.into_iter().enumerate() {
        let middle = room.top + (row as f64 + 0.5) * ROW;
        place_entry(placed, index, label, SMALL_PT, (room.left, middle));
    }
}

fn place_legend_above(panel: &Panel, cell: Rect, placed: &mut Placed) {
    for (row, offset, index, label, size) in flow(panel, placed.plot.width()) {
        let middle = cell.top + (row as f64 + 0.5) * ROW;
        place_entry(
            placed,
            index,
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

/// What the figure shows, for readers who cannot see it.
pub(crate) fn description(figure: &Figure) -> String {
    let panels = figure.panels.iter().map(|panel| {
        let entries = panel
            .series
            .iter()
            .filter_map(|series| series.label.as_deref());
        let entries: Vec<String> = entries.map(label::plain).collect();
        let (x, y) = (
            label::plain(&panel.x.title()),
            label::plain(&panel.y.title()),
        );
        format!("{y} against {x}: {}", entries.join(", "))
    });
    panels.collect::<Vec<_>>().join("; ")
}
