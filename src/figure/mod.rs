//! Figures: described once as plain data, drawn as SVG and PNG; tables as CSV.
//!
//! A [`Figure`] says what is shown ([`spec`]); [`svg::render`] places and draws it, [`svg::outlined`]
//! makes the drawing independent of installed fonts, [`png::render`] rasterises it. [`ticks`],
//! [`label`], [`palette`] and [`fonts`] also serve the window, so that both look alike.

pub mod fonts;
pub mod label;
mod layout;
pub mod palette;
pub mod png;
pub mod spec;
pub mod svg;
pub mod table;
mod text;
pub mod ticks;

pub use spec::{Axis, Band, Dash, Figure, Guide, Ink, Marker, Panel, Scale, Secondary, Series};
