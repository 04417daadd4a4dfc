//! Where everything stands on the page, in points from its upper left corner.

mod curves;
mod guides;
mod legend;

pub(crate) use self::curves::{band, curve, point};
pub(crate) use self::legend::SAMPLE;
use crate::figure::fonts::{CAP_HEIGHT, DESCENT};
use crate::figure::label;
use crate::figure::spec::{Axis, Figure, Ink, Panel, Scale};
use crate::figure::text::{Anchor, Text, width};
use crate::figure::ticks::Tick;

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

/// Room that a panel needs beside its plotting area.
#[derive(Clone, Copy, Default)]
struct Margins {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// The least margins that hold all of these.
fn union<'a>(margins: impl IntoIterator<Item = &'a Margins>) -> Margins {
    margins
        .into_iter()
        .fold(Margins::default(), |all, one| Margins {
            left: all.left.max(one.left),
            right: all.right.max(one.right),
            top: all.top.max(one.top),
            bottom: all.bottom.max(one.bottom),
        })
}

/// Lays a figure out.
pub(crate) fn page(figure: &Figure) -> Page {
    let columns = columns(figure);
    let inside = page_with(figure, &vec![false; figure.panels.len()]);
    // A legend without free room inside moves above its panel, and with it those of its row.
    let is_above: Vec<bool> = figure
        .panels
        .chunks(columns)
        .zip(inside.panels.chunks(columns))
        .flat_map(|(panels, placed)| {
            let lacks_room = |(panel, placed): (&Panel, &Placed)| {
                placed.samples.is_empty() && !legend::entries(panel).is_empty()
            };
            let any = panels.iter().zip(placed).any(lacks_room);
            panels.iter().map(move |_| any)
        })
        .collect();
    if is_above.contains(&true) {
        page_with(figure, &is_above)
    } else {
        inside
    }
}

fn columns(figure: &Figure) -> usize {
    figure.columns.clamp(1, figure.panels.len().max(1))
}

fn page_with(figure: &Figure, is_above: &[bool]) -> Page {
    let columns = columns(figure);
    let page_width = figure.width_mm * POINTS_PER_MM;
    let is_lettered = figure.panels.len() > 1;
    let mut margins: Vec<Margins> = figure
        .panels
        .iter()
        .map(|panel| margins(panel, is_lettered))
        .collect();
    // Plotting areas of a column have the same left and right edges.
    let sides: Vec<Margins> = (0..columns)
        .map(|column| union(margins.iter().skip(column).step_by(columns)))
        .collect();
    let taken: f64 = sides.iter().map(|side| side.left + side.right).sum();
    let free = page_width - 2.0 * EDGE - GUTTER * (columns - 1) as f64 - taken;
    let plot_width = (free / columns as f64).max(1.0);
    let plot_height = plot_width / figure.aspect;
    for (number, panel) in figure.panels.iter().enumerate() {
        if is_above[number] {
            let available = plot_width + sides[number % columns].right;
            margins[number].top += legend::height_above(panel, available) + INSET;
        }
    }

    let mut panels = Vec::with_capacity(figure.panels.len());
    let mut top = EDGE;
    for (row, row_panels) in figure.panels.chunks(columns).enumerate() {
        let first = row * columns;
        let tall = union(&margins[first..first + row_panels.len()]);
        let mut left = EDGE;
        for (column, panel) in row_panels.iter().enumerate() {
            let number = first + column;
            let plot = Rect {
                left: left + sides[column].left,
                top: top + tall.top,
                right: left + sides[column].left + plot_width,
                bottom: top + tall.top + plot_height,
            };
            let cell = Rect {
                left,
                top,
                right: plot.right + sides[column].right,
                bottom: plot.bottom + tall.bottom,
            };
            let letter = is_lettered.then(|| letter(number));
            panels.push(place(panel, cell, plot, is_above[number], letter));
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

fn margins(panel: &Panel, is_lettered: bool) -> Margins {
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
    if is_lettered {
        margins.top = margins.top.max(CAP_HEIGHT * LETTER_PT + INSET);
    }
    margins
}

fn place(panel: &Panel, cell: Rect, plot: Rect, is_above: bool, letter: Option<String>) -> Placed {
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
        texts: Vec::new(),
    };
    // Room that titles leave to the letter: across and down.
    let corner = letter.as_ref().map_or((0.0, 0.0), |letter| {
        (
            width(letter, LETTER_PT, true) + INSET,
            CAP_HEIGHT * LETTER_PT + INSET,
        )
    });
    place_axis_texts(panel, cell, corner, &mut placed);
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
    let drawn = curves::samples(panel, &placed);
    let mut taken = Vec::new();
    if drawn.is_empty() && !panel.series.iter().all(|series| series.x.is_empty()) {
        taken.push(place_note("no defined value", &mut placed));
    }
    taken.extend(guides::place(panel, &drawn, &taken, &mut placed));
    if is_above {
        legend::place_above(panel, cell, &mut placed);
    } else {
        legend::place_inside(panel, &drawn, &taken, &mut placed);
    }
    placed
}

/// Writes a note in the middle of the plotting area and returns its room.
fn place_note(note: &str, placed: &mut Placed) -> Rect {
    let plot = placed.plot;
    let (half, cap) = (width(note, SMALL_PT, false) / 2.0, CAP_HEIGHT * SMALL_PT);
    let (x, y) = (
        (plot.left + plot.right) / 2.0,
        (plot.top + plot.bottom + cap) / 2.0,
    );
    placed.texts.push(Text {
        label: note.to_owned(),
        at: (x, y),
        anchor: Anchor::Middle,
        rgb: QUIET,
        rim: true,
        ..text("note")
    });
    Rect {
        left: x - half,
        right: x + half,
        top: y - cap,
        bottom: y,
    }
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

fn place_axis_texts(panel: &Panel, cell: Rect, corner: (f64, f64), placed: &mut Placed) {
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
            (
                cell.top + corner.1,
                cell.bottom,
                (plot.top + plot.bottom) / 2.0,
            )
        } else {
            (
                cell.left + corner.0,
                cell.right,
                (plot.left + plot.right) / 2.0,
            )
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
