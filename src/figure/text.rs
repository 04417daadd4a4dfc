//! Text as SVG, and its width as the same engine will draw it.

use std::fmt::Write as _;

use resvg::tiny_skia::{PathSegment, Point, Transform};
use resvg::usvg;

use super::fonts;
use super::label::{SCRIPT_SIZE, SUB_DROP, SUPER_RISE, Script, plain, spans};

/// What a point of text is fixed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A piece of text in its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text {
    /// Marked-up label.
    pub label: String,
    /// Anchor on the baseline, in points from the page's upper left corner.
    pub at: (f64, f64),
    pub anchor: Anchor,
    /// Type size in points.
    pub size: f64,
    pub bold: bool,
    /// Reads upward instead of to the right.
    pub upright: bool,
    pub rgb: [u8; 3],
    /// Has a white rim that separates it from what is drawn below.
    pub rim: bool,
    /// What it is, for readers of the file: `tick`, `title`, `legend`, `guide`, `letter`, `note`.
    pub role: &'static str,
}

impl Text {
    /// As a `text` element in the family [`fonts::FAMILY`], above a second one for the rim
    /// (`paint-order` would need no second, but not every program knows it).
    pub fn to_svg(&self) -> String {
        let (x, y) = self.at;
        let place = if self.upright {
            format!(
                r#"transform="translate({} {}) rotate(-90)""#,
                number(x),
                number(y)
            )
        } else {
            format!(r#"x="{}" y="{}""#, number(x), number(y))
        };
        let anchor = match self.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if self.bold {
            r#" font-weight="700""#
        } else {
            ""
        };
        let size = number(self.size);
        let characters = tspans(&self.label, self.size);
        let element = |attributes: &str| {
            format!(
                r#"<text {attributes} {place} font-size="{size}"{weight} text-anchor="{anchor}">{characters}</text>"#
            )
        };
        self.layers(element, "")
    }

    /// As `path` elements that need no font; the characters stay in an `aria-label`.
    pub fn to_outline(&self) -> String {
        let bare = Self {
            rim: false,
            ..self.clone()
        };
        let d = laid_out(&bare).map_or_else(String::new, |tree| {
            outline(tree.root(), Transform::identity())
        });
        let label = escape(&plain(&self.label)).replace('"', "&quot;");
        let element = |attributes: &str| format!(r#"<path {attributes} d="{d}"/>"#);
        self.layers(element, &format!(r#" role="img" aria-label="{label}""#))
    }

    /// The element of the characters, after that of the rim if there is one.
    fn layers(&self, element: impl Fn(&str) -> String, role: &str) -> String {
        let characters = element(&format!(
            r#"class="{}"{role} fill="{}""#,
            self.role,
            hex(self.rgb)
        ));
        if self.rim {
            element(RIM) + &characters
        } else {
            characters
        }
    }
}

/// Attributes of the rim.
const RIM: &str = r##"class="rim" aria-hidden="true" fill="none" stroke="#ffffff" stroke-width="2.4" stroke-linejoin="round""##;

/// Label as character data and `tspan` elements; `dy` is understood by every reader, `baseline-shift`
/// is not.
fn tspans(label: &str, size: f64) -> String {
    let mut svg = String::new();
    let mut level = 0.0;
    for span in spans(label) {
        let (wanted, scale) = match span.script {
            Script::Base => (0.0, 1.0),
            Script::Sub => (SUB_DROP * size, SCRIPT_SIZE),
            Script::Super => (-SUPER_RISE * size, SCRIPT_SIZE),
        };
        let text = escape(&span.text);
        if scale == 1.0 && level == 0.0 {
            svg.push_str(&text);
        } else {
            let shift = number(wanted - level);
            let size = number(scale * size);
            write!(
                svg,
                r#"<tspan dy="{shift}" font-size="{size}">{text}</tspan>"#
            )
            .expect("writing to a string cannot fail");
        }
        level = wanted;
    }
    svg
}

/// Width of `label` at `size` points.
pub(crate) fn width(label: &str, size: f64, bold: bool) -> f64 {
    let text = Text {
        label: label.to_owned(),
        at: (0.0, 0.0),
        anchor: Anchor::Start,
        size,
        bold,
        upright: false,
        rgb: [0; 3],
        rim: false,
        role: "measured",
    };
    // Text without a visible character has no node.
    let tree = laid_out(&text);
    let node = tree
        .as_ref()
        .and_then(|tree| tree.root().children().first());
    node.map_or(0.0, |node| f64::from(node.bounding_box().right().max(0.0)))
}

/// The text alone, laid out; a point is one unit.
fn laid_out(text: &Text) -> Option<usvg::Tree> {
    let svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1" font-family="{}">{}</svg>"#,
        fonts::FAMILY,
        text.to_svg()
    );
    usvg::Tree::from_str(&svg, &options()).ok()
}

/// Path data of all glyphs in a group. `page_from_text` is that of the text whose glyphs these are,
/// which their own transforms leave out.
fn outline(group: &usvg::Group, page_from_text: Transform) -> String {
    let mut d = String::new();
    for node in group.children() {
        match node {
            usvg::Node::Group(group) => d.push_str(&outline(group, page_from_text)),
            usvg::Node::Text(text) => {
                d.push_str(&outline(text.flattened(), text.abs_transform()));
            }
            usvg::Node::Path(path) => {
                let page_from_path = page_from_text.pre_concat(path.abs_transform());
                let placed = path.data().clone().transform(page_from_path);
                d.extend(placed.iter().flat_map(|path| path.segments()).map(segment));
            }
            usvg::Node::Image(_) => {}
        }
    }
    d
}

fn segment(segment: PathSegment) -> String {
    let pair = |point: Point| format!("{} {}", number(point.x.into()), number(point.y.into()));
    match segment {
        PathSegment::MoveTo(to) => format!("M{}", pair(to)),
        PathSegment::LineTo(to) => format!("L{}", pair(to)),
        PathSegment::QuadTo(via, to) => format!("Q{} {}", pair(via), pair(to)),
        PathSegment::CubicTo(a, b, to) => format!("C{} {} {}", pair(a), pair(b), pair(to)),
        PathSegment::Close => "Z".to_owned(),
    }
}

/// Options under which all drawing is read: the bundled fonts only.
pub(crate) fn options() -> usvg::Options<'static> {
    usvg::Options {
        fontdb: fonts::database(),
        font_family: fonts::FAMILY.to_owned(),
        ..usvg::Options::default()
    }
}

/// A coordinate in SVG, to a thousandth of a point.
pub(crate) fn number(value: f64) -> String {
    let rounded = (value * 1000.0).round() / 1000.0;
    // No negative zero.
    (rounded + 0.0).to_string()
}

/// Colour in SVG.
pub(crate) fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Character data of XML.
fn escape(text: &str) -> String {
    printable(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// White space as spaces, and characters that XML forbids as the replacement character.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '\t' | '\n' | '\r' => ' ',
            '\u{FFFE}' | '\u{FFFF}' => '\u{FFFD}',
            control if control.is_control() => '\u{FFFD}',
            other => other,
        })
        .collect()
}
