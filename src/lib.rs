//! Etascope: the geometry of learned image encoders, seen at one photograph.
//!
//! The library is a house of floors; a module uses only its own floor and those below (see ARCHITECTURE.md):
//!
//! | floor | modules |
//! |---|---|
//! | 5 | [`app`] and [`render`] (feature `gui`), [`cli`] |
//! | 4 | [`worker`], [`report`] |
//! | 3 | [`geometry`], [`recipe`] |
//! | 2 | [`encoders`], [`device`] |
//! | 1 | [`images`], [`metrics`], [`figure`] |
//! | 0 | [`error`], [`features`], [`files`], [`digits`] |

// `expect` stays allowed: its text is the proof that it cannot fail.
#![warn(
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used
)]

#[cfg(feature = "gui")]
pub mod app;
pub mod cli;
pub mod device;
pub mod digits;
pub mod encoders;
pub mod error;
pub mod features;
pub mod figure;
pub mod files;
pub mod geometry;
pub mod images;
pub mod metrics;
pub mod recipe;
#[cfg(feature = "gui")]
pub mod render;
pub mod report;
pub mod worker;

pub use error::{Error, ErrorKind, Result};
