//! Kinds of maps as words of the command line, and the choice of γ.

use crate::geometry::maps::ridge::{choose_gamma, ridge, ridge_to_identity};
use crate::geometry::maps::trained::{Loss, NetworkKind};
use crate::geometry::maps::{FitSums, MapKind};
use crate::report::GammaChoice;
use crate::{Error, ErrorKind, Result};

/// γ that are tried for ridge, on the un-averaged Gram matrix of (normalised) vectors.
const RIDGE_GAMMAS: [f64; 9] = [1e-3, 1e-2, 0.1, 1.0, 10.0, 1e2, 1e3, 1e4, 1e5];

/// γ that are tried for ridge toward the identity, in units of the Gram matrix's mean diagonal.
const IDENTITY_GAMMAS: [f64; 9] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0];

/// γ of a map for each position unless another is given: the paper's for ridge.
const POSITION_GAMMA: f64 = 1.0;

/// A kind of map before its γ is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapWord {
    /// [`MapKind::Identity`].
    Identity,
    /// [`MapKind::Additive`].
    Additive,
    /// [`MapKind::Linear`].
    Linear,
    /// [`MapKind::Ridge`].
    Ridge,
    /// [`MapKind::RidgeToIdentity`].
    RidgeIdentity,
    /// [`MapKind::Procrustes`].
    Procrustes,
    /// [`MapKind::PerPosition`].
    PerPosition,
    /// [`MapKind::Trained`].
    Trained(NetworkKind),
}

/// Words of [`MapWord`].
pub(super) const MAPS: [(&str, MapWord); 12] = [
    ("identity", MapWord::Identity),
    ("additive", MapWord::Additive),
    ("linear", MapWord::Linear),
    ("ridge", MapWord::Ridge),
    ("ridge-identity", MapWord::RidgeIdentity),
    ("procrustes", MapWord::Procrustes),
    ("per-position", MapWord::PerPosition),
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
        let has_penalty = matches!(self, Self::Ridge | Self::RidgeIdentity | Self::PerPosition);
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

    /// The kind of a closed-form map with its γ: the one given, or the one with the least error on validation photographs,
    /// found from sums alone.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where γ must be chosen and there is nothing to choose it on, or for a trained map; those of the
    /// fits.
    pub(super) fn closed_form(
        self,
        gamma: Option<f64>,
        is_normalised: bool,
        train: &mut FitSums,
        validation: &mut FitSums,
    ) -> Result<(MapKind, Option<GammaChoice>)> {
        let candidates = match (self, gamma) {
            (Self::Identity, _) => return Ok((MapKind::Identity, None)),
            (Self::Additive, _) => return Ok((MapKind::Additive, None)),
            (Self::Linear, _) => return Ok((MapKind::Linear, None)),
            (Self::Procrustes, _) => return Ok((MapKind::Procrustes, None)),
            (Self::PerPosition, gamma) => {
                let gamma = gamma.unwrap_or(POSITION_GAMMA);
                return Ok((MapKind::PerPosition { gamma }, None));
            }
            (Self::Ridge, Some(gamma)) => return Ok((MapKind::Ridge { gamma }, None)),
            (Self::RidgeIdentity, Some(gamma)) => {
                return Ok((MapKind::RidgeToIdentity { gamma }, None));
            }
            (Self::Ridge, None) => RIDGE_GAMMAS,
            (Self::RidgeIdentity, None) => IDENTITY_GAMMAS,
            (Self::Trained(_), _) => {
                return Err(Error::new(
                    ErrorKind::Internal,
                    "cannot fit the map",
                    "it is trained and has no closed form",
                    "This is a fault of the program; please report it",
                ));
            }
        };
        if validation.pictures() == 0 {
            return Err(Error::new(
                ErrorKind::Request,
                "cannot choose γ",
                "no photograph is for validation",
                "Give a share with --validation, or γ with --gamma",
            ));
        }
        let (mut seen, mut unseen) = (train.moments()?, validation.moments()?);
        if is_normalised {
            let normalisation = seen.normalisation();
            seen = seen.normalised(&normalisation);
            unseen = unseen.normalised(&normalisation);
        }
        let is_plain = self == Self::Ridge;
        let fit = |gamma| match is_plain {
            true => ridge(&seen, gamma),
            false => ridge_to_identity(&seen, gamma),
        };
        let (gamma, errors) = choose_gamma(fit, &candidates, &unseen)?;
        let kind = match is_plain {
            true => MapKind::Ridge { gamma },
            false => MapKind::RidgeToIdentity { gamma },
        };
        let choice = GammaChoice {
            candidates: candidates.to_vec(),
            errors,
        };
        Ok((kind, Some(choice)))
    }
}
