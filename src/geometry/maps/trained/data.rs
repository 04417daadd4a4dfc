//! Pairs of feature maps to train on.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::trainer::refused;
use crate::features::FeatureMap;
use crate::geometry::maps::{FeatureMapping, Normalisation, reorder};
use crate::images::GridSymmetry;
use crate::metrics::cosine;
use crate::{Error, ErrorKind, Result};

/// The feature maps of a picture and of its edit.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Of the picture.
    pub original: FeatureMap,
    /// Of its edit.
    pub edited: FeatureMap,
}

/// Pairs by what they are for, see [`crate::geometry::maps::split_by_photograph`].
#[derive(Clone, Debug, Default)]
pub struct TrainingData {
    /// To fit to.
    pub train: Vec<Pair>,
    /// To stop by; the paper takes 5 % of the photographs.
    pub validation: Vec<Pair>,
    /// For scores alone; may be empty.
    pub held_out: Vec<Pair>,
}

/// Mean MdnCS of a map over pairs: the score that stands beside every map; `None` where it is undefined.
///
/// # Errors
/// Those of the map.
pub fn score(map: &dyn FeatureMapping, pairs: &[Pair]) -> Result<Option<f64>> {
    let mut cosines = Vec::with_capacity(pairs.len());
    for pair in pairs {
        cosines.extend(cosine::median_cosine(
            &map.map(&pair.original)?,
            &pair.edited,
        )?);
    }
    let mean = cosines.iter().sum::<f64>() / cosines.len() as f64;
    Ok((!cosines.is_empty()).then_some(mean))
}

/// The order of an epoch depends on nothing but the seed and its number.
pub fn order(seed: u64, epoch: usize, len: usize) -> Vec<usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream((1 << 32) + epoch as u64);
    let mut order: Vec<usize> = (0..len).collect();
    order.shuffle(&mut rng);
    order
}

/// Channels, rows and columns of all maps after the reorder; all values finite.
pub fn common_shape(data: &TrainingData, symmetries: &[GridSymmetry]) -> Result<[usize; 3]> {
    let mut common = None;
    for pair in [&data.train, &data.validation, &data.held_out]
        .into_iter()
        .flatten()
    {
        let original = reorder::reordered(&pair.original, symmetries)?;
        let shape = *common.get_or_insert(original.shape());
        if original.shape() != shape || pair.edited.shape() != shape {
            return Err(refused(
                format!(
                    "feature maps have the shapes {shape:?}, {:?} and {:?}",
                    original.shape(),
                    pair.edited.shape()
                ),
                "Use feature maps of one stage, of pictures of one size",
            ));
        }
        let maps = [&pair.original, &pair.edited];
        if maps
            .iter()
            .any(|map| map.vectors().iter().any(|v| !v.is_finite()))
        {
            return Err(Error::new(
                ErrorKind::Numeric,
                "cannot train a map",
                "a feature is not a finite number",
                "Leave the picture out, or use another device",
            ));
        }
    }
    common.ok_or_else(|| refused("there are no pictures".to_owned(), "Use photographs"))
}

/// Mean and standard deviation of each channel over the unedited training maps.
pub fn normalisation(pairs: &[Pair]) -> Normalisation {
    let channels = pairs.first().map_or(0, |pair| pair.original.channels());
    let vectors = || {
        pairs
            .iter()
            .flat_map(|pair| pair.original.vectors().chunks_exact(channels))
    };
    let count = vectors().count().max(1) as f64;
    let mut mean = vec![0.0; channels];
    for vector in vectors() {
        for (mean, &value) in mean.iter_mut().zip(vector) {
            *mean += f64::from(value) / count;
        }
    }
    let mut variance = vec![0.0; channels];
    for vector in vectors() {
        for ((variance, mean), &value) in variance.iter_mut().zip(&mean).zip(vector) {
            *variance += (f64::from(value) - mean).powi(2) / count;
        }
    }
    Normalisation::new(mean, variance.into_iter().map(f64::sqrt).collect())
}
