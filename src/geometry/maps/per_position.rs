//! *per-position*: W_p x + b_p with a matrix of its own at each position p of the grid.

use rayon::prelude::*;

use super::Normalisation;
use super::affine::{AffineMap, columns};
use super::ridge::ridge;
use super::sums::PairSums;
use crate::features::FeatureMap;
use crate::{Error, ErrorKind, Result};

/// Most bytes of sums: those of the paper's largest grids take 1.4 to 1.9 GB.
const BYTES_MAX: usize = 2 << 30;

/// Pairs in one block of a position's sums: pictures that are summed at once.
const BLOCK: usize = 32;

/// Sums of each position.
pub struct PositionSums {
    shape: [usize; 3],
    positions: Vec<PairSums>,
}

impl PositionSums {
    /// No pairs yet, for feature maps of this shape (channels, rows, columns).
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where they would take too much memory.
    pub fn new(shape: [usize; 3]) -> Result<Self> {
        let [channels, rows, columns] = shape;
        let bytes = [channels, rows, columns, 2 * size_of::<f64>()]
            .iter()
            .try_fold(channels, |bytes, &factor| bytes.checked_mul(factor));
        if bytes.is_none_or(|bytes| bytes > BYTES_MAX) {
            return Err(Error::new(
                ErrorKind::Request,
                "cannot fit a map for each position",
                format!(
                    "{rows} × {columns} matrices of {channels} × {channels} take too much memory"
                ),
                "Choose a deeper stage, or a map that all positions share",
            ));
        }
        let positions = (0..rows * columns).map(|_| PairSums::with_block(channels, BLOCK));
        Ok(Self {
            shape,
            positions: positions.collect(),
        })
    }

    /// Adds a picture and its edit.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] for another shape; [`ErrorKind::Numeric`] where a value is not finite.
    pub fn add(&mut self, source: &FeatureMap, target: &FeatureMap) -> Result<()> {
        for map in [source, target] {
            require_shape(map, self.shape)?;
        }
        let channels = self.shape[0];
        let vectors = source.vectors().par_chunks_exact(channels);
        let pairs = vectors.zip(target.vectors().par_chunks_exact(channels));
        let positions = self.positions.par_iter_mut().zip(pairs);
        positions.try_for_each(|(sums, (source, target))| sums.add(source, target))
    }

    /// Ridge maps of all positions, of normalised vectors where statistics are given.
    ///
    /// # Errors
    /// Those of [`ridge`], and [`ErrorKind::Request`] for fewer than two pictures.
    pub fn fit(
        &mut self,
        gamma: f64,
        normalisation: Option<&Normalisation>,
    ) -> Result<PerPositionMap> {
        let mut maps = Vec::with_capacity(self.positions.len());
        for sums in &mut self.positions {
            let mut moments = sums.moments()?;
            if let Some(normalisation) = normalisation {
                moments = moments.normalised(normalisation);
            }
            let map = ridge(&moments, gamma)?;
            maps.push(PositionMap::rounded(&map));
        }
        Ok(PerPositionMap {
            shape: self.shape,
            maps,
        })
    }
}

/// The map of one position in f32: there are too many of them for more.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PositionMap {
    /// W, column after column.
    pub(super) weight: Vec<f32>,
    pub(super) bias: Vec<f32>,
}

impl PositionMap {
    fn rounded(map: &AffineMap) -> Self {
        let columns = map.weight().col_iter();
        Self {
            weight: columns
                .flat_map(|column| column.iter().map(|&value| value as f32).collect::<Vec<_>>())
                .collect(),
            bias: map.bias().iter().map(|&value| value as f32).collect(),
        }
    }
}

/// A map for each position of a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct PerPositionMap {
    pub(super) shape: [usize; 3],
    pub(super) maps: Vec<PositionMap>,
}

impl PerPositionMap {
    /// Channels, rows and columns of the maps that it applies to.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// ŷ at every position, summed in f64.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] for a feature map of another shape.
    pub fn apply(&self, map: &FeatureMap) -> Result<FeatureMap> {
        require_shape(map, self.shape)?;
        let channels = self.shape[0];
        let columns = columns(map, None);
        let mut vectors = vec![0.0_f32; map.vectors().len()];
        let positions = vectors.par_chunks_mut(channels).zip(&self.maps).enumerate();
        positions.for_each(|(at, (out, map))| {
            let mut sums: Vec<f64> = map.bias.iter().map(|&value| f64::from(value)).collect();
            for (weights, x) in map
                .weight
                .chunks_exact(channels)
                .zip(columns.col(at).iter())
            {
                let parts = sums.iter_mut().zip(weights);
                parts.for_each(|(sum, &weight)| *sum += f64::from(weight) * x);
            }
            let parts = out.iter_mut().zip(sums);
            parts.for_each(|(out, sum)| *out = sum as f32);
        });
        FeatureMap::from_vectors(map.shape(), vectors)
    }
}

fn require_shape(map: &FeatureMap, shape: [usize; 3]) -> Result<()> {
    if map.shape() == shape {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Request,
        "cannot map each position",
        format!(
            "the feature map has the shape {:?}, not {shape:?}",
            map.shape()
        ),
        "Use the stage and the input side that the map was fitted at",
    ))
}
