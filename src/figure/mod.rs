//! Figures: described once as plain data, drawn as SVG and PNG; tables as CSV.
//!
//! A [`Figure`] says what is shown ([`spec`]); [`svg`] places and draws it, [`png`] rasterises the
//! drawing. A [`sheet`] is pictures in rows. [`ticks`], [`label`], [`palette`] and [`fonts`] also serve the window, so that both look
//! alike.

pub mod fonts;
pub mod label;
mod layout;
pub mod palette;
pub mod png;
pub mod sheet;
pub mod spec;
pub mod svg;
pub mod table;
mod text;
pub mod ticks;

pub use spec::{Axis, Band, Dash, Figure, Guide, Ink, Marker, Panel, Scale, Secondary, Series};
