//! Maps between feature maps: from the features of a picture to those of its edit.
//!
//! A closed-form map is fitted in two steps. [`FitSums`] takes pairs of feature maps one by one and keeps sums
//! alone; [`FitSums::fit`] solves for a map of any [`MapKind`], any γ, with or without normalisation, without
//! encoding anything again. The result is an [`EditMap`]: reorder the grid, normalise, map, undo.
//!
//! Vectors are columns: ŷ = W(x − x̄) + ȳ. The maps of Krey, Neukirch and Strodthoff (2026) that are trained by gradient
//! descent (mlp, cnn, transformer) are not fitted from sums but by [`trained::Trainer`]; what comes out is an [`EditMap`]
//! as well. [`FeatureMapping`] is the one thing that everything downstream asks of a map.

pub mod additive;
pub mod affine;
mod family;
mod file;
pub mod least_squares;
mod normalise;
pub mod per_position;
pub mod procrustes;
pub mod readout;
pub mod reorder;
pub mod ridge;
mod split;
pub mod sums;
pub mod trained;
pub mod truncate;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::affine::AffineMap;
pub use self::family::{GammaChoice, MapFamily};
pub use self::file::{MapFile, data_sha256, load, save, to_bytes};
pub use self::normalise::Normalisation;
pub use self::per_position::{PerPositionMap, PositionSums};
pub use self::split::{Part, Shares, split_by_photograph};
pub use self::sums::{Moments, PairSums};
use self::trained::{Loss, NetworkKind, TrainedMap};
pub use self::truncate::{Cut, Decomposition, Truncation};
use crate::features::FeatureMap;
use crate::images::GridSymmetry;
use crate::{Error, ErrorKind, Result};

/// A map from the feature map of a picture to that of its edit.
pub trait FeatureMapping {
    /// ŷ of a feature map, in the features' own units.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where the feature map has a shape that this map does not take.
    fn map(&self, features: &FeatureMap) -> Result<FeatureMap>;
}

/// A kind of closed-form map.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "name")]
pub enum MapKind {
    /// No map: x itself, after the reorder. The baseline of every table.
    Identity,
    /// x + δ.
    Additive,
    /// Wx + b by least squares.
    Linear,
    /// Ridge, centred, with γ on the un-averaged Gram matrix.
    Ridge {
        /// γ.
        gamma: f64,
    },
    /// Ridge toward the identity (ours), with γ in units of the Gram matrix's mean diagonal.
    RidgeToIdentity {
        /// γ.
        gamma: f64,
    },
    /// Orthogonal Procrustes.
    Procrustes,
    /// A ridge map for each position of the grid.
    PerPosition {
        /// γ on the un-averaged Gram matrix of a position.
        gamma: f64,
    },
    /// A network, see [`trained`]; not fitted from sums.
    Trained {
        /// Its kind.
        network: NetworkKind,
        /// What it was trained on.
        loss: Loss,
    },
}

impl MapKind {
    /// Name for people.
    pub fn title(self) -> String {
        match self {
            Self::Identity => "identity".to_owned(),
            Self::Additive => "additive".to_owned(),
            Self::Linear => "linear".to_owned(),
            Self::Ridge { gamma } => format!("ridge, γ = {gamma}"),
            Self::RidgeToIdentity { gamma } => format!("ridge toward the identity, γ = {gamma}"),
            Self::Procrustes => "orthogonal Procrustes".to_owned(),
            Self::PerPosition { gamma } => format!("per position, γ = {gamma}"),
            Self::Trained { network, loss } => format!("{}; {}", network.title(), loss.title()),
        }
    }
}

/// The part of a fitted map that works on vectors.
#[derive(Clone, Debug)]
pub enum Fitted {
    /// x.
    Identity,
    /// x + δ.
    Additive(Vec<f64>),
    /// W(x − x̄) + ȳ.
    Affine(AffineMap),
    /// One map a position.
    PerPosition(PerPositionMap),
    /// A network.
    Trained(TrainedMap),
}

/// A fitted map: the grid is reordered, vectors are normalised, mapped, and the normalisation undone.
#[derive(Clone, Debug)]
pub struct EditMap {
    /// How it was fitted.
    pub kind: MapKind,
    /// Turns and mirrors of the grid, in this order.
    pub reorder: Vec<GridSymmetry>,
    /// Statistics of the unedited training maps; `None` where vectors are used as they are.
    pub normalisation: Option<Normalisation>,
    /// The map of normalised vectors.
    pub fitted: Fitted,
}

impl FeatureMapping for EditMap {
    fn map(&self, features: &FeatureMap) -> Result<FeatureMap> {
        let prepared = self.prepared(features)?;
        let mapped = match &self.fitted {
            Fitted::Identity => prepared,
            Fitted::Additive(delta) => additive::shifted(&prepared, delta)?,
            Fitted::Affine(map) => map.apply(&prepared)?,
            Fitted::PerPosition(map) => map.apply(&prepared)?,
            Fitted::Trained(map) => map.apply(&prepared)?,
        };
        self.undone(mapped)
    }
}

impl EditMap {
    /// The affine map of its normalised vectors, of which spectra and truncations are taken; `None` for
    /// the identity, additive, per-position and trained maps, which have no one matrix to speak of.
    pub fn affine(&self) -> Option<&AffineMap> {
        match &self.fitted {
            Fitted::Affine(map) => Some(map),
            _ => None,
        }
    }

    /// A feature map as the fitted part sees it: reordered and normalised.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where it has another number of channels.
    pub fn prepared(&self, features: &FeatureMap) -> Result<FeatureMap> {
        let features = reorder::reordered(features, &self.reorder)?;
        match &self.normalisation {
            Some(normalisation) => normalisation.apply(&features),
            None => Ok(features),
        }
    }

    /// Features in their own units from what the fitted part gives.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where it has another number of channels.
    pub fn undone(&self, mapped: FeatureMap) -> Result<FeatureMap> {
        match &self.normalisation {
            Some(normalisation) => normalisation.undo(&mapped),
            None => Ok(mapped),
        }
    }

    /// One feature map under this map cut to any rank; each answer goes through [`EditMap::undone`].
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where this map has no matrix, and what [`Truncation::new`] says.
    pub fn truncation(
        &self,
        decomposition: Arc<Decomposition>,
        features: &FeatureMap,
    ) -> Result<Truncation> {
        let Some(map) = self.affine() else {
            return Err(Error::new(
                ErrorKind::Request,
                format!("cannot cut the map “{}” to a rank", self.kind.title()),
                "it has no matrix that all positions share",
                "Choose a linear, ridge or Procrustes map",
            ));
        };
        Truncation::new(map, decomposition, &self.prepared(features)?)
    }
}

/// Maps applied one after another, the first first.
///
/// # Errors
/// Those of the maps.
pub fn compose(maps: &[&dyn FeatureMapping], features: &FeatureMap) -> Result<FeatureMap> {
    let mut features = features.clone();
    for map in maps {
        features = map.map(&features)?;
    }
    Ok(features)
}

/// The feature maps after 1, 2, … `times` applications of one map.
///
/// # Errors
/// Those of the map.
pub fn recurse(
    map: &dyn FeatureMapping,
    features: &FeatureMap,
    times: usize,
) -> Result<Vec<FeatureMap>> {
    let mut steps: Vec<FeatureMap> = Vec::with_capacity(times);
    for _ in 0..times {
        let next = map.map(steps.last().unwrap_or(features))?;
        steps.push(next);
    }
    Ok(steps)
}

/// Sums over pairs of feature maps, of which nothing else is kept.
pub struct FitSums {
    reorder: Vec<GridSymmetry>,
    shared: PairSums,
    positions: Option<PositionSums>,
    /// Channels, rows and columns of reordered maps, once the first was seen.
    shape: Option<[usize; 3]>,
    pictures: usize,
}

impl FitSums {
    /// No pairs yet, of feature maps with `channels` channels; originals are reordered first.
    pub fn new(channels: usize, reorder: Vec<GridSymmetry>) -> Self {
        Self {
            reorder,
            shared: PairSums::new(channels),
            positions: None,
            shape: None,
            pictures: 0,
        }
    }

    /// The same for feature maps of this shape (channels, rows, columns of the original), with the sums that
    /// per-position maps need.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where they would take too much memory.
    pub fn with_positions(shape: [usize; 3], reorder: Vec<GridSymmetry>) -> Result<Self> {
        let [channels, mut rows, mut columns] = shape;
        for symmetry in &reorder {
            (rows, columns) = symmetry.shape(rows, columns);
        }
        let positions = PositionSums::new([channels, rows, columns])?;
        Ok(Self {
            positions: Some(positions),
            ..Self::new(channels, reorder)
        })
    }

    /// Adds a picture and its edit.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where the shapes do not fit; [`ErrorKind::Numeric`] where a value is not finite.
    pub fn add(&mut self, original: &FeatureMap, edited: &FeatureMap) -> Result<()> {
        let original = reorder::reordered(original, &self.reorder)?;
        let shape = self.shape.unwrap_or(original.shape());
        for map in [&original, edited] {
            require_channels(map, self.shared.channels())?;
            if map.shape() != original.shape() || map.shape() != shape {
                return Err(Error::new(
                    ErrorKind::Request,
                    "cannot fit a map",
                    format!(
                        "feature maps have the shapes {shape:?}, {:?} and {:?}",
                        original.shape(),
                        edited.shape()
                    ),
                    "Use feature maps of one stage, of pictures of one size",
                ));
            }
        }
        self.shared.add(original.vectors(), edited.vectors())?;
        if let Some(positions) = &mut self.positions {
            positions.add(&original, edited)?;
        }
        self.shape = Some(shape);
        self.pictures += 1;
        Ok(())
    }

    /// Pictures so far.
    pub fn pictures(&self) -> usize {
        self.pictures
    }

    /// Means and products over all positions of all pairs, such as validation needs.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where there are fewer than two pairs of vectors.
    pub fn moments(&mut self) -> Result<Moments> {
        self.shared.moments()
    }

    /// Solves for a map; `is_normalised` says whether vectors are normalised first, which the identity
    /// never needs.
    ///
    /// # Errors
    /// What the kind's own fit says; [`ErrorKind::Request`] for a per-position map without its sums.
    pub fn fit(&mut self, kind: MapKind, is_normalised: bool) -> Result<EditMap> {
        let raw = self.moments()?;
        let is_normalised = is_normalised && kind != MapKind::Identity;
        let normalisation = is_normalised.then(|| raw.normalisation());
        let moments = match &normalisation {
            Some(normalisation) => raw.normalised(normalisation),
            None => raw,
        };
        let fitted = match kind {
            MapKind::Identity => Fitted::Identity,
            MapKind::Additive => Fitted::Additive(additive::additive(&moments)),
            MapKind::Linear => Fitted::Affine(least_squares::linear(&moments)?),
            MapKind::Ridge { gamma } => Fitted::Affine(ridge::ridge(&moments, gamma)?),
            MapKind::RidgeToIdentity { gamma } => {
                Fitted::Affine(ridge::ridge_to_identity(&moments, gamma)?)
            }
            MapKind::Procrustes => Fitted::Affine(procrustes::procrustes(&moments)?),
            MapKind::PerPosition { gamma } => {
                let sums = self.positions.as_mut().ok_or_else(|| {
                    Error::new(
                        ErrorKind::Request,
                        "cannot fit a map for each position",
                        "the sums of single positions were not kept",
                        "Encode the pictures again for this kind of map",
                    )
                })?;
                Fitted::PerPosition(sums.fit(gamma, normalisation.as_ref())?)
            }
            MapKind::Trained { .. } => {
                return Err(Error::new(
                    ErrorKind::Request,
                    format!("cannot fit the map “{}”", kind.title()),
                    "it is trained on the feature maps themselves, of which sums are not enough",
                    "Train it, or choose a kind with a closed form",
                ));
            }
        };
        Ok(EditMap {
            kind,
            reorder: self.reorder.clone(),
            normalisation,
            fitted,
        })
    }
}

fn require_channels(map: &FeatureMap, channels: usize) -> Result<()> {
    if map.channels() == channels {
        return Ok(());
    }
    Err(wrong_channels(channels, map.channels()))
}

fn wrong_channels(wanted: usize, given: usize) -> Error {
    Error::new(
        ErrorKind::Request,
        "cannot map the features",
        format!("they have {given} channels, and the map takes {wanted}"),
        "Use the encoder and stage that the map was fitted at",
    )
}

fn undecomposed(why: String) -> Error {
    Error::new(
        ErrorKind::Numeric,
        "cannot decompose the matrix of a map",
        why,
        "Fit it with more pictures or a larger γ",
    )
}
