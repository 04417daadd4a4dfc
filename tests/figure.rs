//! Figures: ticks, drawing, pixels and tables.

use std::sync::Arc;

use etascope::figure::spec::{Band, Dash, Guide, Ink, Marker, Scale, Secondary};
use etascope::figure::table::{Cell, csv};
use etascope::figure::ticks::{Tick, linear_ticks, log_ticks};
use etascope::figure::{Axis, Figure, Panel, Series, fonts, palette, png, svg};
use resvg::usvg;
use resvg::usvg::roxmltree::{Document, Node};

// ---- Ticks ----

const TICKS: &str = include_str!("golden/figure/ticks.json");

#[derive(serde::Deserialize)]
struct TickFixture {
    log: Vec<TickCase>,
    linear: Vec<TickCase>,
}

#[derive(serde::Deserialize)]
struct TickCase {
    range: [f64; 2],
    major: Vec<f64>,
    #[serde(default)]
    minor: Vec<f64>,
}

fn values(ticks: &[Tick], is_wanted: impl Fn(&Tick) -> bool) -> Vec<f64> {
    ticks
        .iter()
        .filter(|tick| is_wanted(tick))
        .map(|tick| tick.value)
        .collect()
}

/// Equal to the last few digits: matplotlib forms its places by products of powers.
fn assert_same(ours: &[f64], theirs: &[f64], what: &str) {
    assert_eq!(
        ours.len(),
        theirs.len(),
        "{what}: {ours:?} against {theirs:?}"
    );
    for (a, b) in ours.iter().zip(theirs) {
        assert!(
            (a - b).abs() <= 1e-12 * a.abs().max(b.abs()).max(1e-9),
            "{what}: {a} {b}"
        );
    }
}

#[test]
fn tick_places_are_those_of_matplotlib() {
    let fixture: TickFixture = serde_json::from_str(TICKS).expect("the fixture is JSON");
    for case in fixture.log {
        let ticks = log_ticks(case.range);
        let what = format!("log {:?}", case.range);
        assert_same(&values(&ticks, |tick| tick.major), &case.major, &what);
        assert_same(&values(&ticks, |tick| !tick.major), &case.minor, &what);
    }
    for case in fixture.linear {
        let ticks = linear_ticks(case.range);
        let what = format!("linear {:?}", case.range);
        assert_same(&values(&ticks, |tick| tick.major), &case.major, &what);
    }
}

fn labels(ticks: &[Tick]) -> Vec<&str> {
    ticks
        .iter()
        .filter_map(|tick| tick.label.as_deref())
        .collect()
}

#[test]
fn tick_labels_follow_their_rule() {
    assert_eq!(
        labels(&log_ticks([0.01, 100.0])),
        ["0.01", "0.1", "1", "10", "100"]
    );
    assert_eq!(
        labels(&log_ticks([1e-5, 1e-2])),
        ["10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²"]
    );
    assert_eq!(labels(&log_ticks([0.4, 30.0])), ["1", "10"]);
    // Less than two decades in sight: other digits are labelled.
    assert_eq!(labels(&log_ticks([0.4, 7.0])), ["0.5", "1", "2", "5"]);
    assert_eq!(labels(&log_ticks([2.5e6, 4.5e6])), ["3×10⁶", "4×10⁶"]);
    // Less than one digit: linear ticks.
    assert_eq!(
        labels(&log_ticks([1.02, 1.05])),
        labels(&linear_ticks([1.02, 1.05]))
    );
    assert_eq!(
        labels(&linear_ticks([-0.5, 1.0])),
        ["−0.5", "0", "0.5", "1.0"]
    );
    assert_eq!(
        labels(&linear_ticks([0.0, 109.0])),
        ["0", "20", "40", "60", "80", "100"]
    );
    assert_eq!(
        labels(&linear_ticks([0.0, 3e6])),
        [
            "0",
            "0.5×10⁶",
            "1.0×10⁶",
            "1.5×10⁶",
            "2.0×10⁶",
            "2.5×10⁶",
            "3.0×10⁶"
        ]
    );
}

#[test]
fn long_log_axes_label_every_nth_decade_and_1() {
    let ticks = log_ticks([1e-15, 1e15]);
    let labels = labels(&ticks);
    assert!(labels.len() <= 11 && labels.contains(&"10⁰"), "{labels:?}");
    // 31 decades: every fourth.
    assert!(
        labels.contains(&"10¹²") && labels.contains(&"10⁻¹²"),
        "{labels:?}"
    );
}

#[test]
fn ticks_are_ascending_distinct_and_within_range_whatever_the_range() {
    let ends = [
        -1e280,
        -3.7,
        -1e-300,
        0.0,
        1e-300,
        2e-12,
        0.99,
        1.0,
        1.0 + 1e-15,
        7e9,
        1e280,
    ];
    for low in ends {
        for high in ends {
            for ticks in [log_ticks([low, high]), linear_ticks([low, high])] {
                assert!(ticks.len() < 200, "{low} {high}: {}", ticks.len());
                assert!(
                    ticks.windows(2).all(|pair| pair[0].value < pair[1].value),
                    "{low} {high}"
                );
                let slack = 1e-9 * (high - low).abs().max(low.abs().min(high.abs()));
                let is_within = |t: &Tick| t.value >= low - slack && t.value <= high + slack;
                assert!(ticks.iter().all(is_within), "{low} {high}");
                let labels = labels(&ticks);
                let distinct: std::collections::BTreeSet<_> = labels.iter().collect();
                assert_eq!(distinct.len(), labels.len(), "{low} {high}: {labels:?}");
            }
        }
    }
    for bad in [
        [f64::NAN, 1.0],
        [0.0, f64::INFINITY],
        [1.0, 1.0],
        [2.0, 1.0],
    ] {
        assert!(log_ticks(bad).is_empty() && linear_ticks(bad).is_empty());
    }
    assert!(log_ticks([0.0, 1.0]).is_empty() && log_ticks([-1.0, 1.0]).is_empty());
}

// ---- Drawing ----

fn etas() -> Vec<f64> {
    (0..17)
        .map(|i| 10f64.powf(-2.0 + 0.25 * f64::from(i)))
        .collect()
}

/// A bump such as trained encoders show: 1, then a peak of 3.5 at 2.5, then a fall towards 0.
fn bump(eta: f64) -> f64 {
    let rise = 2.5 * (-((eta / 2.5).log10() / 0.75).powi(2)).exp();
    (1.0 + rise) / (1.0 + (eta / 30.0).powi(2))
}

fn curve(f: impl Fn(f64) -> f64, hue: usize) -> Series {
    let y: Vec<f64> = etas().into_iter().map(f).collect();
    let edge = |factor: f64| y.iter().map(|y| y * factor).collect();
    Series {
        x: etas(),
        band: Some(Band {
            low: edge(0.95),
            high: edge(1.05),
        }),
        hollow: vec![true, true],
        ink: Ink::Hue(hue),
        dash: if hue.is_multiple_of(2) {
            Dash::Solid
        } else {
            Dash::Dashed
        },
        width_pt: 1.25,
        opacity: 1.0,
        marker: Some(Marker::of_index(hue)),
        label: Some(format!("Encoder {hue}, trained")),
        y,
    }
}

fn eta_axis() -> Axis {
    Axis {
        label: "perturbation η".to_owned(),
        unit: "L2 norm".to_owned(),
        scale: Scale::Log10,
        range: None,
        secondary: Some(Secondary {
            label: "pixel RMS".to_owned(),
            unit: "grey levels".to_owned(),
            factor: 0.657,
        }),
    }
}

fn panel(scale: Scale, series: Vec<Series>) -> Panel {
    Panel {
        x: eta_axis(),
        y: Axis {
            label: "response r_η".to_owned(),
            scale,
            ..Axis::default()
        },
        series,
        guides: vec![Guide::Horizontal {
            at: 1.0,
            label: "linear prediction".to_owned(),
        }],
    }
}

fn page(width_mm: f64, panels: Vec<Panel>) -> Figure {
    let columns = if width_mm > 140.0 { 2 } else { 1 };
    Figure {
        width_mm,
        columns,
        aspect: 1.35,
        title: "test".to_owned(),
        panels,
    }
}

fn realistic(width_mm: f64) -> Figure {
    let series = || vec![curve(bump, 0), curve(|eta| 1.0 / (1.0 + eta / 6.0), 1)];
    page(
        width_mm,
        vec![
            panel(Scale::Linear, series()),
            panel(Scale::Log10, series()),
        ],
    )
}

fn with_class<'a>(node: Node<'a, 'a>, class: &str) -> Vec<Node<'a, 'a>> {
    node.descendants()
        .filter(|n| n.attribute("class") == Some(class))
        .collect()
}

fn float(node: Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name)
        .and_then(|text| text.parse().ok())
        .expect(name)
}

/// Plotting areas, in order: left, top, width, height.
fn plots(document: &Document<'_>) -> Vec<[f64; 4]> {
    document
        .descendants()
        .filter(|node| node.has_tag_name("clipPath"))
        .map(|clip| {
            let rect = clip
                .first_element_child()
                .expect("a clip path holds a rectangle");
            ["x", "y", "width", "height"].map(|name| float(rect, name))
        })
        .collect()
}

#[test]
fn ticks_are_drawn_where_the_scale_puts_them() {
    let mut figure = realistic(180.0);
    let [x, y_linear, y_log] = [[0.007, 130.0], [-0.5, 4.5], [0.02, 5.0]];
    for (panel, y) in figure.panels.iter_mut().zip([y_linear, y_log]) {
        panel.x.range = Some(x);
        panel.y.range = Some(y);
    }
    let text = svg::render(&figure);
    let document = Document::parse(&text).expect("the drawing is XML");
    let log = |v: f64, [low, high]: [f64; 2]| (v / low).ln() / (high / low).ln();
    let linear = |v: f64, [low, high]: [f64; 2]| (v - low) / (high - low);
    let panels = with_class(document.root(), "panel");
    let y_shares: [&dyn Fn(f64) -> f64; 2] = [&|v| linear(v, y_linear), &|v| log(v, y_log)];
    let mut seen = 0;
    for ((panel, [left, top, width, height]), y_share) in
        panels.into_iter().zip(plots(&document)).zip(y_shares)
    {
        let mut check = |class: &str, end: &str, place: &dyn Fn(f64) -> f64| {
            for tick in with_class(panel, class)[0]
                .children()
                .filter(Node::is_element)
            {
                let value = float(tick, "data-value");
                // The coordinate and both ends of the axis are written to a thousandth of a point.
                assert!(
                    (float(tick, end) - place(value)).abs() < 1.6e-3,
                    "{class} {value}"
                );
                seen += 1;
            }
        };
        check("ticks x", "x1", &|v| left + width * log(v, x));
        // One grey level stands where η is 1/0.657.
        check("ticks x2", "x1", &|v| left + width * log(v / 0.657, x));
        check("ticks y", "y1", &|v| top + height * (1.0 - y_share(v)));
    }
    // 39 ticks from 0.007 to 130, and as many or more on the other axes.
    assert!(seen > 150, "{seen}");
}

#[test]
fn curves_pass_through_their_points_and_break_at_nan() {
    let mut series = curve(bump, 0);
    series.y[5] = f64::NAN;
    series.y[11] = f64::NAN;
    let expected: Vec<f64> = series.y.iter().copied().filter(|y| y.is_finite()).collect();
    let mut one = panel(Scale::Linear, vec![series]);
    one.y.range = Some([0.0, 5.0]);
    let text = svg::render(&page(90.0, vec![one]));
    let document = Document::parse(&text).expect("the drawing is XML");
    let [_, top, _, height] = plots(&document)[0];
    let d = with_class(document.root(), "curve")[0]
        .attribute("d")
        .expect("a path has data");
    assert_eq!(d.matches('M').count(), 3, "{d}");
    let drawn: Vec<f64> = d
        .split(['M', 'L'])
        .filter_map(|pair| pair.split_whitespace().nth(1))
        .map(|y| 5.0 * (1.0 - (y.parse::<f64>().expect("a number") - top) / height))
        .collect();
    assert_eq!(drawn.len(), expected.len());
    for (drawn, expected) in drawn.iter().zip(&expected) {
        // A thousandth of a point in some 150 for a range of 5.
        assert!((drawn - expected).abs() < 1e-4, "{drawn} {expected}");
    }
    // Band and markers break with the curve: three regions, a marker at each defined point.
    assert_eq!(with_class(document.root(), "band").len(), 3);
    let data = with_class(document.root(), "data")[0];
    let hollow = with_class(data, "marker hollow").len();
    assert_eq!(
        (hollow, with_class(data, "marker").len()),
        (2, expected.len() - 2)
    );
}

#[test]
fn a_log_axis_has_no_place_for_zero_and_negative_values() {
    let mut series = curve(bump, 0);
    series.y[4] = 0.0;
    series.y[9] = -2.0;
    let text = svg::render(&page(90.0, vec![panel(Scale::Log10, vec![series])]));
    let document = Document::parse(&text).expect("the drawing is XML");
    let d = with_class(document.root(), "curve")[0]
        .attribute("d")
        .expect("a path has data");
    assert_eq!(d.matches('M').count(), 3, "{d}");
}

fn decode(file: &[u8]) -> (Vec<u8>, ::png::Info<'static>) {
    let mut reader = ::png::Decoder::new(std::io::Cursor::new(file))
        .read_info()
        .expect("a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("it has a size")];
    reader.next_frame(&mut pixels).expect("it has pixels");
    (pixels, reader.info().clone())
}

#[test]
fn nothing_is_painted_outside_the_plotting_area() {
    let mut wild = panel(
        Scale::Linear,
        vec![curve(|eta| 400.0 * (eta.ln() * 3.0).sin(), 0)],
    );
    wild.y.range = Some([0.0, 2.0]);
    wild.x.range = Some([0.1, 10.0]);
    wild.series[0].label = None;
    let mut blank = wild.clone();
    blank.series.clear();
    // Labels of guides move with the data.
    wild.guides.clear();
    blank.guides.clear();
    let [with, without] = [wild, blank].map(|panel| svg::render(&page(90.0, vec![panel])));
    let document = Document::parse(&with).expect("the drawing is XML");
    let [left, top, width, height] = plots(&document)[0].map(|v| v * 150.0 / 72.0);
    let [(a, info), (b, _)] =
        [&with, &without].map(|text| decode(&png::render(text, 150.0).expect("it can be drawn")));
    let mut inside = 0;
    for (index, (a, b)) in a.chunks(3).zip(b.chunks(3)).enumerate() {
        let (x, y) = (
            (index as u32 % info.width) as f64,
            (index as u32 / info.width) as f64,
        );
        let is_outside = x + 1.0 < left - 1.0
            || x > left + width + 1.0
            || y + 1.0 < top - 1.0
            || y > top + height + 1.0;
        if is_outside {
            assert_eq!(a, b, "pixel {x} {y}");
        } else if a != b {
            inside += 1;
        }
    }
    assert!(inside > 1000, "the curve is drawn: {inside}");
}

// ---- Text ----

/// Where the ink of each text is: label, left, top, right, bottom in points.
fn text_boxes(text: &str) -> (Vec<(String, [f64; 4])>, [f64; 2]) {
    fn collect(group: &usvg::Group, boxes: &mut Vec<(String, [f64; 4])>) {
        for node in group.children() {
            match node {
                usvg::Node::Group(group) => collect(group, boxes),
                // Rims lie below the same text.
                usvg::Node::Text(text) if text.chunks()[0].spans()[0].fill().is_none() => {}
                usvg::Node::Text(text) => {
                    let content: String = text.chunks().iter().map(usvg::TextChunk::text).collect();
                    let ink = text
                        .flattened()
                        .bounding_box()
                        .transform(text.abs_transform());
                    let ink = ink.expect("the page has a size");
                    let sides = [ink.left(), ink.top(), ink.right(), ink.bottom()];
                    boxes.push((content, sides.map(|side| f64::from(side) * 0.75)));
                }
                _ => {}
            }
        }
    }
    let tree = usvg::Tree::from_str(text, &options()).expect("the drawing is SVG");
    let mut boxes = Vec::new();
    collect(tree.root(), &mut boxes);
    let size = [tree.size().width(), tree.size().height()].map(|side| f64::from(side) * 0.75);
    (boxes, size)
}

fn options() -> usvg::Options<'static> {
    let mut options = usvg::Options::default();
    for font in [fonts::REGULAR, fonts::BOLD] {
        options
            .fontdb_mut()
            .load_font_source(usvg::fontdb::Source::Binary(Arc::new(font)));
    }
    options
}

type Function = fn(f64) -> f64;

/// Figures that try a layout hard, each with a name.
fn hard_cases() -> Vec<(String, Figure)> {
    let scales = [Scale::Linear, Scale::Log10];
    let functions: [(&str, Function); 9] = [
        ("bump", bump),
        ("constant", |_| 1.0),
        ("zero", |_| 0.0),
        ("tiny", |eta| 1e-290 * eta),
        ("huge", |eta| 1e270 * eta),
        ("far apart", |eta| eta.powi(60)),
        ("all undefined", |_| f64::NAN),
        ("large offset", |eta| 1e6 + eta * 1e-3),
        ("negative", |eta| -3e4 * eta),
    ];
    let mut cases = Vec::new();
    for width in [60.0, 90.0, 180.0] {
        for (name, function) in functions {
            let panels = scales.map(|scale| panel(scale, vec![curve(function, 0)]));
            cases.push((format!("{name} at {width} mm"), page(width, panels.into())));
        }
        cases.push((
            format!("no series at {width} mm"),
            page(width, vec![panel(Scale::Log10, vec![])]),
        ));
        cases.push((format!("no panel at {width} mm"), page(width, vec![])));
        let mut wordy = panel(Scale::Linear, (0..9).map(|hue| curve(bump, hue)).collect());
        wordy.y.label =
            "a label that is much too long for the axis beside which it stands".repeat(2);
        wordy.series[0].label = Some("an entry of the legend that is wider than a page ".repeat(4));
        wordy.y.secondary = Some(Secondary {
            label: "twice r_η".to_owned(),
            unit: String::new(),
            factor: 2.0,
        });
        wordy.guides.push(Guide::Vertical {
            at: 2.5,
            label: "peak η^*".to_owned(),
        });
        wordy.guides.push(Guide::Horizontal {
            at: 1.02,
            label: "next to the other".to_owned(),
        });
        cases.push((
            format!("wordy at {width} mm"),
            page(width, vec![wordy.clone(), wordy]),
        ));
        cases.push((format!("realistic at {width} mm"), realistic(width)));
    }
    cases
}

#[test]
fn texts_stay_on_the_page_and_apart() {
    for (name, figure) in hard_cases() {
        let (boxes, [width, height]) = text_boxes(&svg::render(&figure));
        for (index, (text, [left, top, right, bottom])) in boxes.iter().enumerate() {
            assert!(
                *left >= 0.0 && *top >= 0.0 && *right <= width && *bottom <= height,
                "{name}: “{text}” leaves the page: {left} {top} {right} {bottom} of {width} {height}"
            );
            for (other, [other_left, other_top, other_right, other_bottom]) in &boxes[..index] {
                let overlaps = left < other_right
                    && other_left < right
                    && top < other_bottom
                    && other_top < bottom;
                assert!(!overlaps, "{name}: “{text}” lies over “{other}”");
            }
        }
    }
}

#[test]
fn a_panel_without_a_defined_value_says_so() {
    let says_so = |f: Function| {
        svg::render(&page(90.0, vec![panel(Scale::Linear, vec![curve(f, 0)])]))
            .contains("no defined value")
    };
    assert!(says_so(|_| f64::NAN));
    assert!(!says_so(|_| 0.0));
}

#[test]
fn the_legend_covers_no_curve() {
    for (name, figure) in hard_cases() {
        let text = svg::render(&figure);
        let document = Document::parse(&text).expect("the drawing is XML");
        for panel in with_class(document.root(), "panel") {
            let legends = with_class(panel, "legend");
            let rows: Vec<f64> = legends
                .iter()
                .filter(|node| node.has_tag_name("text"))
                .map(|node| float(*node, "y"))
                .collect();
            let starts = legends.iter().filter(|node| node.has_tag_name("text"));
            let left = starts
                .map(|node| float(*node, "x"))
                .fold(f64::INFINITY, f64::min);
            // Points of the first curve within the rows, from the text's left edge over half of the
            // shortest entry.
            for d in with_class(panel, "data")
                .iter()
                .flat_map(|data| with_class(*data, "curve"))
            {
                for pair in d.attribute("d").unwrap_or_default().split(['M', 'L']) {
                    let xy: Vec<f64> = pair
                        .split_whitespace()
                        .filter_map(|n| n.parse().ok())
                        .collect();
                    let [x, y] = xy[..] else { continue };
                    let is_in_row = rows.iter().any(|row| y > row - 6.0 && y < row + 1.0);
                    assert!(
                        !(is_in_row && x > left && x < left + 30.0),
                        "{name}: {x} {y}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_legend_moves_above_a_panel_that_its_band_fills() {
    let text = svg::render(&page(
        90.0,
        vec![panel(Scale::Linear, vec![curve(|_| 1.0, 0)])],
    ));
    let document = Document::parse(&text).expect("the drawing is XML");
    let [_, top, _, _] = plots(&document)[0];
    let legends = with_class(document.root(), "legend");
    let entry = legends
        .iter()
        .find(|node| node.has_tag_name("text"))
        .expect("it has an entry");
    assert!(float(*entry, "y") < top);
}

/// Width of a text at 100 pixels, and those of its characters that the bundled family lacks.
fn measure(text: &str, weight: u32) -> (f32, Vec<String>) {
    let svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text font-family="{}"
        font-weight="{weight}" font-size="100">{text}</text></svg>"#,
        fonts::FAMILY
    );
    let tree = usvg::Tree::from_str(&svg, &options()).expect("it is SVG");
    let node = tree.root().children().first();
    let Some(usvg::Node::Text(text)) = node else {
        unreachable!("one text was given")
    };
    let glyphs = text
        .layouted()
        .iter()
        .flat_map(|span| &span.positioned_glyphs);
    let missing = glyphs
        .filter(|glyph| glyph.id.0 == 0)
        .map(|glyph| glyph.text.clone());
    (text.bounding_box().width(), missing.collect())
}

#[test]
fn the_family_has_every_sign_and_its_figures_are_of_one_width() {
    let signs = "0123456789 rJΦuxE‖|+-−–×·±≈≤≥→←∞∂√°%()[]“”’…αβγδεζηθικλμνξοπρστυφχψωΓΔΘΛΞΠΣΦΨΩ\
                 ⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺₀₁₂₃₄₅₆₇₈₉₋₊ᵀ";
    for weight in [400, 700] {
        assert_eq!(measure(signs, weight).1, [""; 0]);
        let widths = (0..10).map(|digit| measure(&digit.to_string().repeat(8), weight).0);
        let widths: Vec<f32> = widths.collect();
        assert!(
            widths.iter().all(|width| (width - widths[0]).abs() < 1e-3),
            "{widths:?}"
        );
    }
    // A sign that the family lacks is noticed.
    assert_eq!(measure("a∈b", 400).1, ["∈"]);
}

#[test]
fn scripts_are_set_smaller_and_shifted() {
    let text = svg::render(&page(
        90.0,
        vec![panel(Scale::Linear, vec![curve(bump, 0)])],
    ));
    let document = Document::parse(&text).expect("the drawing is XML");
    let span = document
        .descendants()
        .find(|node| node.has_tag_name("tspan"))
        .expect("r_η has one");
    assert_eq!(span.text(), Some("η"));
    assert!(float(span, "dy") > 0.0);
    let base = float(span.parent().expect("it stands in a text"), "font-size");
    assert!(float(span, "font-size") < base);
}

// ---- Files ----

#[test]
fn pngs_have_the_promised_size_resolution_and_no_chance_in_them() {
    for (width_mm, dpi) in [(90.0, 300.0), (180.0, 300.0), (85.5, 96.0)] {
        let text = svg::render(&realistic(width_mm));
        let file = png::render(&text, dpi).expect("it can be drawn");
        let (_, info) = decode(&file);
        assert_eq!(f64::from(info.width), (width_mm / 25.4 * dpi).round());
        let document = Document::parse(&text).expect("the drawing is XML");
        let height = document
            .root_element()
            .attribute("height")
            .expect("it has a height");
        let height_mm: f64 = height
            .trim_end_matches("mm")
            .parse()
            .expect("in millimetres");
        assert_eq!(f64::from(info.height), (height_mm / 25.4 * dpi).round());
        let dims = info.pixel_dims.expect("pHYs is there");
        assert_eq!(dims.unit, ::png::Unit::Meter);
        assert_eq!(
            (dims.xppu, dims.yppu),
            ((dpi / 0.0254).round() as u32, dims.xppu)
        );
        assert_eq!(
            file,
            png::render(&svg::render(&realistic(width_mm)), dpi).expect("again")
        );
    }
    for dpi in [0.0, -1.0, 1e9, f64::NAN] {
        assert!(
            png::render(&svg::render(&realistic(90.0)), dpi).is_err(),
            "{dpi}"
        );
    }
}

#[test]
fn outlined_drawings_need_no_font_and_look_the_same() {
    let text = svg::render(&realistic(90.0));
    let outlined = svg::render_outlined(&realistic(90.0));
    assert!(text.contains("<text") && !outlined.contains("<text"));
    // The size in print and the words for screen readers stay.
    let document = Document::parse(&outlined).expect("the drawing is XML");
    assert_eq!(document.root_element().attribute("width"), Some("90mm"));
    let is_read = |words: &str| {
        document
            .descendants()
            .any(|node| node.attribute("aria-label") == Some(words))
    };
    assert!(is_read("response rη") && is_read("linear prediction") && is_read("0.01"));
    // Nothing here has a font.
    let tree = usvg::Tree::from_str(&outlined, &usvg::Options::default()).expect("it is SVG");
    assert!(tree.fontdb().is_empty());
    let [a, b] = [&text, &outlined].map(|t| decode(&png::render(t, 150.0).expect("drawn")).0);
    let differing = a
        .iter()
        .zip(&b)
        .filter(|(a, b)| a.abs_diff(**b) > 32)
        .count();
    // Rounding coordinates to a thousandth moves edges by far less than a pixel.
    assert!(differing * 10_000 < a.len(), "{differing} of {}", a.len());
}

#[test]
fn labels_cannot_break_the_file() {
    let mut nasty = panel(Scale::Linear, vec![curve(bump, 0)]);
    nasty.y.label = "a < b & c > \"d\" \u{0} \u{7} ' \\_ ^".to_owned();
    nasty.series[0].label = Some("</text><script>x</script>]]>".to_owned());
    let mut figure = page(90.0, vec![nasty]);
    figure.title = "</title>&".to_owned();
    let text = svg::render(&figure);
    let document = Document::parse(&text).expect("the drawing is XML");
    assert!(
        !document
            .descendants()
            .any(|node| node.has_tag_name("script"))
    );
    assert!(png::render(&text, 96.0).is_ok());
    assert!(png::render(&svg::render_outlined(&figure), 96.0).is_ok());
}

#[test]
fn numbers_in_tables_read_back_bit_by_bit() {
    let mut numbers = vec![
        0.1,
        1.0 / 3.0,
        1e300,
        5e-324,
        -0.0,
        f64::MAX,
        1e16,
        f64::INFINITY,
    ];
    // A fixed walk over bit patterns.
    let mut bits = 0x9E37_79B9_7F4A_7C15_u64;
    for _ in 0..2000 {
        bits = bits
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        numbers.push(f64::from_bits(bits));
    }
    let rows = numbers
        .iter()
        .map(|&number| [Cell::Number(number), Cell::Text("a,\"b\"\n".into())]);
    let text = csv(&["number", "text"], rows).expect("rows match the header");
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let mut read = 0;
    for (record, number) in reader.records().zip(&numbers) {
        let record = record.expect("a row");
        if number.is_nan() {
            assert_eq!(&record[0], "");
        } else {
            let back: f64 = record[0].parse().expect("a number");
            assert_eq!(
                back.to_bits(),
                number.to_bits(),
                "{number:?} as {}",
                &record[0]
            );
        }
        assert_eq!(&record[1], "a,\"b\"\n");
        read += 1;
    }
    assert_eq!(read, numbers.len());
    assert!(csv(&["one"], [[Cell::Count(1), Cell::Flag(true)]]).is_err());
}

// ---- Colour ----

#[test]
fn the_palette_is_that_of_okabe_and_ito_and_readable_on_white() {
    // Colours as published, in their own order.
    let published = [
        [0, 0, 0],
        [230, 159, 0],
        [86, 180, 233],
        [0, 158, 115],
        [240, 228, 66],
        [0, 114, 178],
        [213, 94, 0],
        [204, 121, 167],
    ];
    let mut ours = palette::OKABE_ITO.to_vec();
    let mut theirs = published.to_vec();
    ours.sort_unstable();
    theirs.sort_unstable();
    assert_eq!(ours, theirs);
    // WCAG contrast of graphical objects: 3 to 1. The first three hues serve thin lines.
    let luminance = |rgb: [u8; 3]| {
        let linear = rgb.map(|v| {
            let v = f64::from(v) / 255.0;
            if v <= 0.04045 {
                v / 12.92
            } else {
                ((v + 0.055) / 1.055).powf(2.4)
            }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    };
    for index in 0..3 {
        let contrast = 1.05 / (luminance(palette::okabe_ito(index)) + 0.05);
        assert!(contrast > 3.0, "hue {index}: {contrast}");
    }
}
