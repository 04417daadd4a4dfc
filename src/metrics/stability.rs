//! `feature_split` of Shesha: whether two halves of the coordinates say the same of a set of pictures.
//!
//! Rows are scaled to unit L2 norm; the D coordinates are split at random into two disjoint halves of ⌊D/2⌋, each
//! gives the cosine distances of all pairs of pictures, and the two lists are compared by Spearman's ρ; the score is
//! the mean over the splits, from −1 to 1. At least 4 pictures and 4 coordinates; of more than
//! 1,600 pictures a random 1,600 are taken.
//!
//! The score measures how redundant the *coordinate axes* are: it is not invariant under rotation. So it is
//! never given alone but beside the same score after a random rotation of the coordinates
//! ([`FeatureSplit::rotated`]). Undefined where a half of a vector is zero or all pairs are equally far apart.

use faer::Mat;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use super::Rows;
use super::rdm::{Dissimilarity, condensed_rdm, spearman};
use crate::{Error, ErrorKind, Result};

/// Splits that are averaged (Shesha's default).
pub const SPLITS: usize = 30;
/// Most pictures that are used (Shesha's default).
pub const SAMPLES_MAX: usize = 1600;
/// Fewest pictures and fewest coordinates.
const LEAST: usize = 4;
/// Most coordinates (ours): a rotation is a matrix of their square, 128 MiB for these.
pub const LENGTH_MAX: usize = 4096;

// Streams of the generator, so that none depends on how many numbers another has drawn.
const SAMPLE_STREAM: u64 = 1;
const SPLIT_STREAM: u64 = 2;
const ROTATION_STREAM: u64 = 3;

/// The score with its companion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeatureSplit {
    /// Mean ρ in the encoder's own coordinates.
    pub own: Option<f64>,
    /// Mean ρ after a random rotation (uniform on the orthogonal group), with the same splits.
    pub rotated: Option<f64>,
}

/// Both scores, a function of the rows and the seed.
///
/// # Errors
/// [`ErrorKind::Request`] for fewer than 4 pictures or coordinates, or more than [`LENGTH_MAX`] of these.
pub fn feature_split(rows: Rows<'_>, seed: u64) -> Result<FeatureSplit> {
    if rows.count() < LEAST || !(LEAST..=LENGTH_MAX).contains(&rows.length()) {
        return Err(Error::new(
            ErrorKind::Request,
            "cannot split the features",
            format!(
                "there are {} pictures of {} coordinates",
                rows.count(),
                rows.length()
            ),
            format!(
                "Use at least {LEAST} pictures and a feature of {LEAST} to {LENGTH_MAX} values"
            ),
        ));
    }
    let length = rows.length();
    let all = rows.matrix();
    let sample = sample(rows.count(), seed);
    let x = Mat::from_fn(sample.len(), length, |i, j| all[(sample[i], j)]);
    let mut rng = stream(seed, SPLIT_STREAM);
    let orders: Vec<Vec<usize>> = (0..SPLITS)
        .map(|_| {
            let mut order: Vec<usize> = (0..length).collect();
            order.shuffle(&mut rng);
            order
        })
        .collect();
    Ok(FeatureSplit {
        own: split_score(&x, &orders),
        rotated: split_score(&(&x * rotation(length, seed)), &orders),
    })
}

/// Mean ρ over given orders of the coordinates: the first ⌊D/2⌋ of an order form one half, the next as many
/// the other. `None` where ρ is undefined for one of them, or there are none.
pub fn split_score(rows: &Mat<f64>, orders: &[Vec<usize>]) -> Option<f64> {
    let half = rows.ncols() / 2;
    let mut sum = 0.0;
    for order in orders {
        let distances = |columns: &[usize]| {
            // Scaling a row first, as the original does, changes no cosine.
            let part = Mat::from_fn(rows.nrows(), half, |i, j| rows[(i, columns[j])]);
            condensed_rdm(&part, Dissimilarity::Cosine)
        };
        sum += spearman(&distances(&order[..half])?, &distances(&order[half..])?)?;
    }
    (!orders.is_empty()).then(|| sum / orders.len() as f64)
}

/// Numbers of the pictures that are used, in order.
fn sample(count: usize, seed: u64) -> Vec<usize> {
    let mut all: Vec<usize> = (0..count).collect();
    if count > SAMPLES_MAX {
        all.shuffle(&mut stream(seed, SAMPLE_STREAM));
        all.truncate(SAMPLES_MAX);
        all.sort_unstable();
    }
    all
}

/// A rotation or reflection, uniform on the orthogonal group: the Q of a Gaussian matrix with the signs
/// of R's diagonal (Stewart 1980).
fn rotation(length: usize, seed: u64) -> Mat<f64> {
    let mut rng = stream(seed, ROTATION_STREAM);
    let gaussian = Mat::from_fn(length, length, |_, _| rng.sample::<f64, _>(StandardNormal));
    let qr = gaussian.qr();
    let (mut q, r) = (qr.compute_Q(), qr.thin_R());
    for j in 0..length {
        if r[(j, j)] < 0.0 {
            q.col_mut(j).iter_mut().for_each(|value| *value = -*value);
        }
    }
    q
}

fn stream(seed: u64, number: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(number);
    rng
}
