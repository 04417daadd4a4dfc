//! What a figure shows, as plain data: no colours in pixels, no positions on paper.
//!
//! All labels are marked up as in [`super::label`].

use super::palette;
use super::ticks::{Tick, linear_ticks, log_ticks};

/// A page of panels.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Width of the page in millimetres.
    pub width_mm: f64,
    /// How many panels stand side by side; the height follows.
    pub columns: usize,
    /// Width over height of the plotting areas.
    pub aspect: f64,
    /// What the figure shows, in one line, for the file's title.
    pub title: String,
    /// In reading order; two or more get the letters a, b, ….
    pub panels: Vec<Panel>,
}

/// One pair of axes with what is drawn in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Curves, the first lowest.
    pub series: Vec<Series>,
    /// Values marked across the panel.
    pub guides: Vec<Guide>,
}

/// How values are laid out along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences, equal lengths.
    #[default]
    Linear,
    /// Equal ratios, equal lengths; values ≤ 0 have no place.
    Log10,
}

/// One axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// The quantity.
    pub label: String,
    /// Its unit, written in brackets behind the label; empty for none.
    pub unit: String,
    /// How values are laid out.
    pub scale: Scale,
    /// First and last value; `None` fits all that is drawn.
    pub range: Option<[f64; 2]>,
    /// The same axis in another unit, on the opposite side.
    pub secondary: Option<Secondary>,
}

/// A copy of an axis in another unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Secondary {
    /// The quantity.
    pub label: String,
    /// Its unit; empty for none.
    pub unit: String,
    /// Value in this unit over value of the primary axis; positive.
    pub factor: f64,
}

/// One curve. NaN, and on a logarithmic axis what is not positive, breaks it.
///
/// A series without points draws nothing but has its place in the legend.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Places along the horizontal axis.
    pub x: Vec<f64>,
    /// Values, one for each place.
    pub y: Vec<f64>,
    /// A region about the curve, such as a standard error.
    pub band: Option<Band>,
    /// Points drawn hollow because they are not to be relied on; empty for none.
    pub hollow: Vec<bool>,
    /// Colour.
    pub ink: Ink,
    /// Stroke.
    pub dash: Dash,
    /// Width of the line in points.
    pub width_pt: f64,
    /// 0 (invisible) to 1.
    pub opacity: f64,
    /// Sign at every point; without one, only hollow points are marked, by circles.
    pub marker: Option<Marker>,
    /// Text in the legend; `None` keeps the curve out of it.
    pub label: Option<String>,
}

/// Lower and upper edge of a region about a curve, one value for each of its points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Band {
    /// Lower edge.
    pub low: Vec<f64>,
    /// Upper edge.
    pub high: Vec<f64>,
}

/// A colour by its role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ink {
    /// The colour of text and axes.
    #[default]
    Text,
    /// A hue of [`palette::OKABE_ITO`].
    Hue(usize),
}

impl Ink {
    /// sRGB on a light page.
    pub fn rgb(self) -> [u8; 3] {
        match self {
            Self::Text => [0x22, 0x22, 0x22],
            Self::Hue(index) => palette::okabe_ito(index),
        }
    }
}

/// Stroke of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dash {
    /// Unbroken.
    #[default]
    Solid,
    /// Broken.
    Dashed,
}

/// Sign at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// ●
    Circle,
    /// ■
    Square,
    /// ▲
    Triangle,
    /// ◆
    Diamond,
}

impl Marker {
    /// Sign of the series with this index, counted round after four: a second cue beside the colour.
    pub fn of_index(index: usize) -> Self {
        [Self::Circle, Self::Square, Self::Triangle, Self::Diamond][index % 4]
    }
}

/// A value marked by a line across the panel.
#[derive(Clone, Debug, PartialEq)]
pub enum Guide {
    /// A horizontal line.
    Horizontal {
        /// Its place on the vertical axis.
        at: f64,
        /// What it means; empty for no text.
        label: String,
    },
    /// A vertical line.
    Vertical {
        /// Its place on the horizontal axis.
        at: f64,
        /// What it means; empty for no text.
        label: String,
    },
}

/// Values beyond this, or within its reciprocal of 0 on a logarithmic axis, have no place: axes need
/// room for their margins within f64.
const LARGEST: f64 = 1e280;
/// Free room at either end of a fitted axis, as a fraction of its length.
const MARGIN: f64 = 0.04;

impl Scale {
    /// Whether `value` has a place.
    pub fn holds(self, value: f64) -> bool {
        match self {
            Self::Linear => value.abs() <= LARGEST,
            Self::Log10 => (1.0 / LARGEST..=LARGEST).contains(&value),
        }
    }

    /// Place of `value` between the ends of `range`, 0 to 1 within it.
    pub fn fraction(self, value: f64, range: [f64; 2]) -> f64 {
        let [low, high] = range;
        match self {
            Self::Linear => (value - low) / (high - low),
            Self::Log10 => (value.log10() - low.log10()) / (high.log10() - low.log10()),
        }
    }

    /// Ticks within `range`.
    pub fn ticks(self, range: [f64; 2]) -> Vec<Tick> {
        match self {
            Self::Linear => linear_ticks(range),
            Self::Log10 => log_ticks(range),
        }
    }

    /// A range that holds `values` with a little room; equal values are put in its middle, and where
    /// no value has a place it is 0…1, or 0.1…10 on a logarithmic axis.
    pub fn fit(self, values: impl IntoIterator<Item = f64>) -> [f64; 2] {
        let held = values.into_iter().filter(|&value| self.holds(value));
        let (low, high) = held.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        if low > high {
            return match self {
                Self::Linear => [0.0, 1.0],
                Self::Log10 => [0.1, 10.0],
            };
        }
        match self {
            Self::Linear => {
                let width = high - low;
                // Below this, the values are equal as far as ticks can tell.
                let resolvable = 1e-12 * low.abs().max(high.abs());
                let room = match width > resolvable {
                    true => MARGIN * width,
                    false if high == 0.0 => 1.0,
                    false => 0.5 * high.abs(),
                };
                [low - room, high + room]
            }
            Self::Log10 => {
                let width = high.log10() - low.log10();
                let room = if width > 1e-12 { MARGIN * width } else { 0.5 };
                [
                    10f64.powf(low.log10() - room),
                    10f64.powf(high.log10() + room),
                ]
            }
        }
    }
}

impl Axis {
    /// Label with unit.
    pub fn title(&self) -> String {
        title(&self.label, &self.unit)
    }
}

impl Secondary {
    /// Label with unit.
    pub fn title(&self) -> String {
        title(&self.label, &self.unit)
    }
}

fn title(label: &str, unit: &str) -> String {
    if unit.is_empty() {
        label.to_owned()
    } else {
        format!("{label} ({unit})")
    }
}

impl Panel {
    /// Range of the horizontal axis: the stated one if it is usable, else fitted to all points.
    pub fn x_range(&self) -> [f64; 2] {
        let guides = self.guides.iter().filter_map(|guide| match guide {
            Guide::Vertical { at, .. } => Some(*at),
            Guide::Horizontal { .. } => None,
        });
        self.x.resolve(
            self.series
                .iter()
                .flat_map(|series| series.x.iter().copied())
                .chain(guides),
        )
    }

    /// Range of the vertical axis: the stated one if it is usable, else fitted to curves, bands and
    /// guides.
    pub fn y_range(&self) -> [f64; 2] {
        let guides = self.guides.iter().filter_map(|guide| match guide {
            Guide::Horizontal { at, .. } => Some(*at),
            Guide::Vertical { .. } => None,
        });
        let bands = self.series.iter().filter_map(|series| series.band.as_ref());
        let edges = bands.flat_map(|band| band.low.iter().chain(&band.high).copied());
        let curves = self
            .series
            .iter()
            .flat_map(|series| series.y.iter().copied());
        self.y.resolve(curves.chain(edges).chain(guides))
    }
}

impl Axis {
    fn resolve(&self, values: impl IntoIterator<Item = f64>) -> [f64; 2] {
        match self.range {
            Some([low, high]) if low < high && self.scale.holds(low) && self.scale.holds(high) => {
                [low, high]
            }
            _ => self.scale.fit(values),
        }
    }
}
