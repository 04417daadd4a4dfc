//! The one error of the program: what failed, why, and what to do about it.

use std::fmt;

/// Result with the program's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What an [`Error`] is about; decides the exit code and where the window shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A photograph that cannot be read or used.
    Image,
    /// A weights file that cannot be read or does not fit its architecture.
    Weights,
    /// A compute device that is absent, lost or wrong.
    Device,
    /// A request that cannot be met as asked: an unknown encoder, a bad number.
    Request,
    /// A file or folder that cannot be written.
    Output,
    /// A quantity that is undefined or not finite for this image and encoder.
    Numeric,
    /// The work was cancelled; nothing is wrong.
    Cancelled,
    /// A fault of the program itself, such as a caught panic.
    Internal,
}

impl ErrorKind {
    /// Process exit code of the headless commands. 2 is clap's own code for wrong usage.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Internal => 1,
            Self::Request => 2,
            Self::Image => 3,
            Self::Weights => 4,
            Self::Device => 5,
            Self::Output => 6,
            Self::Numeric => 7,
            Self::Cancelled => 130,
        }
    }
}

/// A failure told in three parts, each a sentence fragment without a final stop.
///
/// Cloneable and free of borrowed or device state, so that it can cross the worker's channel and
/// stay on screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What it is about.
    pub kind: ErrorKind,
    /// What failed, for example `cannot open “cat.png”`.
    pub what: String,
    /// Why, for example `the file ends in the middle of the image data`.
    pub why: String,
    /// What the reader can do; empty when there is nothing.
    pub remedy: String,
}

impl Error {
    /// An error from its three parts.
    pub fn new(
        kind: ErrorKind,
        what: impl Into<String>,
        why: impl fmt::Display,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            what: what.into(),
            why: why.to_string(),
            remedy: remedy.into(),
        }
    }

    /// The answer of work that was told to stop.
    pub fn cancelled(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Cancelled, what, "cancelled", "")
    }

    /// A caught panic. `what` says what had been asked.
    pub fn from_panic(what: impl Into<String>, payload: &(dyn std::any::Any + Send)) -> Self {
        let why = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "an internal check failed without a message".to_owned());
        Self::new(
            ErrorKind::Internal,
            what,
            why,
            "The rest of the program goes on; try again, or choose another device or encoder",
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)?;
        if self.remedy.is_empty() {
            Ok(())
        } else {
            write!(f, ". {}", self.remedy)
        }
    }
}

impl std::error::Error for Error {}
