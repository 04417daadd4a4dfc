//! Kinds of maps as words of the command line.

use crate::geometry::maps::MapFamily;
use crate::geometry::maps::trained::{Loss, NetworkKind};
use crate::{Error, ErrorKind, Result};

/// A kind of map before its γ is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapWord {
    /// In closed form.
    Closed(MapFamily),
    /// By gradient descent.
    Trained(NetworkKind),
}

/// Words of [`MapWord`].
pub(super) const MAPS: [(&str, MapWord); 12] = [
    ("identity", MapWord::Closed(MapFamily::Identity)),
    ("additive", MapWord::Closed(MapFamily::Additive)),
    ("linear", MapWord::Closed(MapFamily::Linear)),
    ("ridge", MapWord::Closed(MapFamily::Ridge)),
    (
        "ridge-identity",
        MapWord::Closed(MapFamily::RidgeToIdentity),
    ),
    ("procrustes", MapWord::Closed(MapFamily::Procrustes)),
    ("per-position", MapWord::Closed(MapFamily::PerPosition)),
    ("trained-linear", MapWord::Trained(NetworkKind::Linear)),
    ("mlp", MapWord::Trained(NetworkKind::Mlp)),
    ("cnn", MapWord::Trained(NetworkKind::Cnn)),
    ("transformer", MapWord::Trained(NetworkKind::Transformer)),
    (
        "transformer-positions",
        MapWord::Trained(NetworkKind::TransformerWithPositions),
    ),
];

/// Words of [`Loss`].
pub(super) const LOSSES: [(&str, Loss); 4] = [
    ("blend", Loss::Blend),
    ("mse", Loss::Mse),
    ("huber", Loss::Huber),
    ("mean-cosine", Loss::MeanCosine),
];

impl MapWord {
    /// Refuses a γ that the kind does not have.
    ///
    /// # Errors
    /// [`ErrorKind::Request`].
    pub(super) fn check_gamma(self, gamma: Option<f64>) -> Result<()> {
        let has_penalty = matches!(self, Self::Closed(family) if family.has_penalty());
        if gamma.is_none() || has_penalty {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Request,
            "cannot use --gamma",
            "this kind of map has no penalty",
            "Leave it out, or choose --map ridge, ridge-identity or per-position",
        ))
    }
}
