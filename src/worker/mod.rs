//! The worker: one thread that owns the compute device and every tensor.
//!
//! [`Command`] in, [`Event`] out. Every request has a [`Lane`] and a [`Generation`]; a newer request
//! in a lane supersedes the older, which stops at its next step.

pub mod command;
pub mod event;

pub use command::{Command, Export, ExportFormat, Generation, ImageSource, Lane, Request};
pub use event::{Event, Progress};
