//! What the reader is told, and where.

use std::path::PathBuf;

use crate::Error;
use crate::worker::Lane;

/// Something the reader has to know, kept until dismissed and then in the list.
#[derive(Clone, Debug)]
pub struct Message {
    /// Number within the window's life.
    pub id: u64,
    /// What it is about: decides where it stands.
    pub place: Place,
    /// What was asked.
    pub asked: String,
    /// What happened.
    pub content: Content,
    /// Whether it was closed by the reader.
    pub dismissed: bool,
}

/// Content of a [`Message`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A failure.
    Failure(Error),
    /// Files that were written.
    Written(Vec<PathBuf>),
    /// Text for the reader.
    Note(String),
}

/// The panel in which a [`Message`] is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// With the photograph.
    Image,
    /// In the middle, with what is computed.
    Workspace,
    /// With the controls.
    Controls,
}

impl From<Lane> for Place {
    fn from(lane: Lane) -> Self {
        match lane {
            Lane::Image => Self::Image,
            Lane::Device => Self::Controls,
            _ => Self::Workspace,
        }
    }
}
