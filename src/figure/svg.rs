//! Figure to SVG: sizes in points, width in millimetres, light page.

use resvg::usvg;
use svg::node::element::{
    Circle, ClipPath, Definitions, Description, Element, Group, Line, Path, Rectangle, Title,
};
use svg::node::{Blob, Node as _, Text as Characters};

use super::fonts;
use super::layout::{self, MAJOR_PT, MINOR_PT, POINTS_PER_MM, Page, Placed, PlacedAxis, SAMPLE};
use super::spec::{Dash, Figure, Ink, Marker, Series};
use super::text::{Text, hex, number, options, printable};
use crate::{Error, ErrorKind, Result};

/// Width of axes and ticks.
const AXIS_PT: f64 = 0.6;
/// Radius of a marker.
const MARKER_PT: f64 = 1.6;
/// Width of a marker's outline.
const RIM_PT: f64 = 0.8;
/// Opacity of a band over that of its curve.
const BAND_OPACITY: f64 = 0.22;
/// Dash and gap in line widths; at least as long as that of a line of one point.
const DASHES: [f64; 2] = [2.8, 1.8];
/// Colour of guides.
const GUIDE: &str = "#8a8a8a";

/// Draws a figure with text as text, in the family [`fonts::FAMILY`]; [`super::png::render`] reads it,
/// and so does every program on a machine where that family is installed.
pub fn render(figure: &Figure) -> String {
    draw_page(figure, Text::to_svg)
}

/// Draws a figure with text as outlines: a file that every program shows alike. Few of them load
/// fonts embedded in SVG (browsers do; Inkscape, Illustrator and LaTeX do not).
pub fn render_outlined(figure: &Figure) -> String {
    draw_page(figure, Text::to_outline)
}

fn draw_page(figure: &Figure, letter: fn(&Text) -> String) -> String {
    let page = layout::page(figure);
    let Page {
        width,
        height,
        panels,
    } = &page;
    let mut document = svg::Document::new()
        .set("width", format!("{}mm", number(figure.width_mm)))
        .set("height", format!("{}mm", number(height / POINTS_PER_MM)))
        .set(
            "viewBox",
            format!("0 0 {} {}", number(*width), number(*height)),
        )
        .set("font-family", fonts::FAMILY)
        .set("role", "img")
        .add(Title::new(printable(&figure.title)))
        .add(description(figure))
        .add(
            Rectangle::new()
                .set("width", number(*width))
                .set("height", number(*height))
                .set("fill", "#ffffff"),
        );
    let mut clips = Definitions::new();
    for (index, placed) in panels.iter().enumerate() {
        clips = clips.add(ClipPath::new().set("id", clip_id(index)).add(frame(placed)));
    }
    document = document.add(clips);
    for (index, (placed, panel)) in panels.iter().zip(&figure.panels).enumerate() {
        document = document.add(draw(index, placed, &panel.series, letter));
    }
    document.to_string()
}

/// Reads a drawing with the bundled fonts.
pub(super) fn parse(svg: &str) -> Result<usvg::Tree> {
    usvg::Tree::from_str(svg, &options()).map_err(|error| {
        let remedy = "Choose another width, or report this as a fault of the program";
        Error::new(
            ErrorKind::Output,
            "cannot read the drawn figure",
            error,
            remedy,
        )
    })
}

fn description(figure: &Figure) -> Description {
    Description::new().add(Characters::new(printable(&layout::description(figure))))
}

fn clip_id(index: usize) -> String {
    format!("plot-{index}")
}

fn frame(placed: &Placed) -> Rectangle {
    let plot = &placed.plot;
    Rectangle::new()
        .set("x", number(plot.left))
        .set("y", number(plot.top))
        .set("width", number(plot.width()))
        .set("height", number(plot.height()))
}

fn draw(index: usize, placed: &Placed, series: &[Series], letter: fn(&Text) -> String) -> Group {
    let mut data = Group::new()
        .set("class", "data")
        .set("clip-path", format!("url(#{})", clip_id(index)));
    for &[from, to] in &placed.guides {
        data = data.add(
            line(from, to)
                .set("class", "guide")
                .set("stroke", GUIDE)
                .set("stroke-width", number(AXIS_PT)),
        );
    }
    for one in series {
        data = data.add(draw_series(placed, one));
    }
    let mut group = Group::new()
        .set("class", "panel")
        .add(data)
        .add(axes(placed));
    let mut legend = Group::new().set("class", "legend");
    for &(index, at) in &placed.samples {
        legend = legend.add(sample(&series[index], at));
    }
    group = group.add(legend);
    for text in &placed.texts {
        group = group.add(Blob::new(letter(text)));
    }
    group
}

fn line(from: (f64, f64), to: (f64, f64)) -> Line {
    Line::new()
        .set("x1", number(from.0))
        .set("y1", number(from.1))
        .set("x2", number(to.0))
        .set("y2", number(to.1))
}

/// Frame lines with ticks: left and below, and on the sides that carry a second unit.
fn axes(placed: &Placed) -> Group {
    let plot = &placed.plot;
    let mut group = Group::new()
        .set("class", "axes")
        .set("stroke", hex(Ink::Text.rgb()))
        .set("stroke-width", number(AXIS_PT))
        .set("stroke-linecap", "square")
        .add(line((plot.left, plot.bottom), (plot.right, plot.bottom)))
        .add(line((plot.left, plot.top), (plot.left, plot.bottom)));
    if placed.x_secondary.is_some() {
        group = group.add(line((plot.left, plot.top), (plot.right, plot.top)));
    }
    if placed.y_secondary.is_some() {
        group = group.add(line((plot.right, plot.top), (plot.right, plot.bottom)));
    }
    let mut sides = vec![ticks("x", &placed.x, |at, length| {
        line((at, plot.bottom), (at, plot.bottom + length))
    })];
    sides.push(ticks("y", &placed.y, |at, length| {
        line((plot.left - length, at), (plot.left, at))
    }));
    if let Some(axis) = &placed.x_secondary {
        sides.push(ticks("x2", axis, |at, length| {
            line((at, plot.top - length), (at, plot.top))
        }));
    }
    if let Some(axis) = &placed.y_secondary {
        sides.push(ticks("y2", axis, |at, length| {
            line((plot.right, at), (plot.right + length, at))
        }));
    }
    sides.into_iter().fold(group, Group::add)
}

fn ticks(side: &str, axis: &PlacedAxis, draw: impl Fn(f64, f64) -> Line) -> Group {
    let group = Group::new()
        .set("class", format!("ticks {side}"))
        .set("stroke-linecap", "butt");
    axis.ticks.iter().fold(group, |group, (at, tick)| {
        let long = tick.major || tick.label.is_some();
        let length = if long { MAJOR_PT } else { MINOR_PT };
        group.add(
            draw(*at, length)
                .set("class", if tick.major { "major" } else { "minor" })
                .set("data-value", tick.value),
        )
    })
}

fn draw_series(placed: &Placed, series: &Series) -> Group {
    let color = hex(series.ink.rgb());
    let mut group = Group::new()
        .set("class", "series")
        .set("opacity", number(series.opacity));
    for outline in layout::band(placed, series) {
        group = group.add(
            Path::new()
                .set("class", "band")
                .set("d", path(&outline, true))
                .set("fill", color.as_str())
                .set("fill-opacity", number(BAND_OPACITY)),
        );
    }
    let stretches = layout::curve(placed, series);
    if !stretches.is_empty() {
        let d: Vec<String> = stretches
            .iter()
            .map(|stretch| path(stretch, false))
            .collect();
        group = group.add(stroke(series, d.join(" ")).set("class", "curve"));
    }
    for (index, (&x, &y)) in series.x.iter().zip(&series.y).enumerate() {
        let hollow = series.hollow.get(index).copied().unwrap_or(false);
        let shape = series.marker.or(hollow.then_some(Marker::Circle));
        if let (Some(shape), Some(at)) = (shape, layout::point(placed, x, y)) {
            group = group.add(marker(shape, at, series, hollow));
        }
    }
    group
}

/// The line of a series, of given path.
fn stroke(series: &Series, d: String) -> Path {
    let path = Path::new()
        .set("d", d)
        .set("fill", "none")
        .set("stroke", hex(series.ink.rgb()))
        .set("stroke-width", number(series.width_pt))
        .set("stroke-linejoin", "round");
    match series.dash {
        Dash::Solid => path.set("stroke-linecap", "round"),
        Dash::Dashed => {
            let [dash, gap] = DASHES.map(|length| number(length * series.width_pt.max(1.0)));
            path.set("stroke-linecap", "butt")
                .set("stroke-dasharray", format!("{dash} {gap}"))
        }
    }
}

fn path(points: &[(f64, f64)], is_closed: bool) -> String {
    let mut d = String::new();
    for (index, &(x, y)) in points.iter().enumerate() {
        d.push(if index == 0 { 'M' } else { 'L' });
        d.push_str(&number(x));
        d.push(' ');
        d.push_str(&number(y));
    }
    if let ([(x, y)], false) = (points, is_closed) {
        // A lone point: a line of no length, which round ends make a dot.
        d.push_str(&format!("L{} {}", number(*x), number(*y)));
    }
    if is_closed {
        d.push('Z');
    }
    d
}

fn marker(shape: Marker, (x, y): (f64, f64), series: &Series, hollow: bool) -> Element {
    let color = hex(series.ink.rgb());
    // Corners in units of the circle's radius, so that all shapes weigh about the same.
    let corners: &[(f64, f64)] = match shape {
        Marker::Circle => &[],
        Marker::Square => &[(-0.89, -0.89), (0.89, -0.89), (0.89, 0.89), (-0.89, 0.89)],
        Marker::Triangle => &[(0.0, -1.55), (1.35, 0.8), (-1.35, 0.8)],
        Marker::Diamond => &[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)],
    };
    let place = |&(dx, dy): &(f64, f64)| (x + MARKER_PT * dx, y + MARKER_PT * dy);
    let mut element: Element = if corners.is_empty() {
        Circle::new()
            .set("cx", number(x))
            .set("cy", number(y))
            .set("r", number(MARKER_PT))
            .into()
    } else {
        let corners: Vec<_> = corners.iter().map(place).collect();
        Path::new().set("d", path(&corners, true)).into()
    };
    let (class, fill) = if hollow {
        ("marker hollow", "#ffffff")
    } else {
        ("marker", &*color)
    };
    element.assign("class", class);
    element.assign("fill", fill);
    element.assign("stroke", color.as_str());
    element.assign("stroke-width", number(RIM_PT));
    element
}

/// A series' entry in the legend.
fn sample(series: &Series, (x, y): (f64, f64)) -> Group {
    let mut group = Group::new()
        .set("class", "sample")
        .set("opacity", number(series.opacity));
    let is_legend_only = series.x.is_empty();
    // Beside a curve the band would say twice what a legend-only series says once.
    if is_legend_only && series.band.is_some() {
        group = group.add(
            Rectangle::new()
                .set("x", number(x))
                .set("y", number(y - 3.0))
                .set("width", number(SAMPLE))
                .set("height", 6)
                .set("fill", hex(series.ink.rgb()))
                .set("fill-opacity", number(BAND_OPACITY)),
        );
    }
    if series.width_pt > 0.0 {
        group = group.add(stroke(series, path(&[(x, y), (x + SAMPLE, y)], false)));
    }
    if let Some(shape) = series.marker {
        // It may explain what hollow points mean.
        let hollow = is_legend_only && series.hollow.contains(&true);
        group = group.add(marker(shape, (x + SAMPLE / 2.0, y), series, hollow));
    }
    group
}
