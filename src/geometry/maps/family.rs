//! Kinds of closed-form maps before their penalty γ is known, and its choice.

use serde::{Deserialize, Serialize};

use super::ridge::{GAMMA, choose_gamma, ridge, ridge_to_identity};
use super::{FitSums, MapKind};
use crate::{Error, ErrorKind, Result};

/// γ that are tried for ridge, on the un-averaged Gram matrix of (normalised) vectors.
const RIDGE_GAMMAS: [f64; 9] = [1e-3, 1e-2, 0.1, 1.0, 10.0, 1e2, 1e3, 1e4, 1e5];

/// γ that are tried for ridge toward the identity, in units of the Gram matrix's mean diagonal.
const IDENTITY_GAMMAS: [f64; 9] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0];

/// A kind of closed-form map before its γ is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MapFamily {
    /// [`MapKind::Identity`].
    Identity,
    /// [`MapKind::Additive`].
    Additive,
    /// [`MapKind::Linear`].
    Linear,
    /// [`MapKind::Ridge`].
    Ridge,
    /// [`MapKind::RidgeToIdentity`].
    #[default]
    RidgeToIdentity,
    /// [`MapKind::Procrustes`].
    Procrustes,
    /// [`MapKind::PerPosition`].
    PerPosition,
}

/// How γ was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct GammaChoice {
    /// What was tried.
    pub candidates: Vec<f64>,
    /// Mean squared error of each on the validation photographs, in the units that the map works in.
    pub errors: Vec<f64>,
}

impl MapFamily {
    /// Those that all positions share, the simplest first.
    pub const SHARED: [Self; 6] = [
        Self::Identity,
        Self::Additive,
        Self::Linear,
        Self::Ridge,
        Self::RidgeToIdentity,
        Self::Procrustes,
    ];

    /// Name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Additive => "additive",
            Self::Linear => "linear",
            Self::Ridge => "ridge",
            Self::RidgeToIdentity => "ridge toward the identity",
            Self::Procrustes => "Procrustes",
            Self::PerPosition => "per position",
        }
    }

    /// Penalties among which validation chooses; none where the kind has no penalty or a fixed one.
    pub fn gammas(self) -> &'static [f64] {
        match self {
            Self::Ridge => &RIDGE_GAMMAS,
            Self::RidgeToIdentity => &IDENTITY_GAMMAS,
            _ => &[],
        }
    }

    /// Whether it has a penalty.
    pub fn has_penalty(self) -> bool {
        matches!(
            self,
            Self::Ridge | Self::RidgeToIdentity | Self::PerPosition
        )
    }

    /// Whether it has a matrix that all positions share, which can be cut to a rank.
    pub fn has_matrix(self) -> bool {
        !matches!(self, Self::Identity | Self::Additive | Self::PerPosition)
    }

    /// The kind with its penalty, which those without one ignore.
    pub fn kind(self, gamma: f64) -> MapKind {
        match self {
            Self::Identity => MapKind::Identity,
            Self::Additive => MapKind::Additive,
            Self::Linear => MapKind::Linear,
            Self::Ridge => MapKind::Ridge { gamma },
            Self::RidgeToIdentity => MapKind::RidgeToIdentity { gamma },
            Self::Procrustes => MapKind::Procrustes,
            Self::PerPosition => MapKind::PerPosition { gamma },
        }
    }

    /// The kind with its γ: the one given, or the one with the least error on validation pictures, found from sums alone.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where γ must be chosen and there is nothing to choose it on; those of the fits.
    pub fn choose(
        self,
        gamma: Option<f64>,
        is_normalised: bool,
        train: &mut FitSums,
        validation: &mut FitSums,
    ) -> Result<(MapKind, Option<GammaChoice>)> {
        let candidates = self.gammas();
        if let Some(gamma) = gamma {
            return Ok((self.kind(gamma), None));
        }
        if candidates.is_empty() {
            // A map for each position has the paper's penalty for ridge.
            return Ok((self.kind(GAMMA), None));
        }
        if validation.pictures() == 0 {
            return Err(Error::new(
                ErrorKind::Request,
                "cannot choose γ",
                "no photograph is for validation",
                "Let some photographs validate, or give γ",
            ));
        }
        let (mut seen, mut unseen) = (train.moments()?, validation.moments()?);
        if is_normalised {
            let normalisation = seen.normalisation();
            seen = seen.normalised(&normalisation);
            unseen = unseen.normalised(&normalisation);
        }
        let fit = |gamma| match self {
            Self::Ridge => ridge(&seen, gamma),
            _ => ridge_to_identity(&seen, gamma),
        };
        let (gamma, errors) = choose_gamma(fit, candidates, &unseen)?;
        let choice = GammaChoice {
            candidates: candidates.to_vec(),
            errors,
        };
        Ok((self.kind(gamma), Some(choice)))
    }
}
