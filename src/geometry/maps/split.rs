//! Training, validation and held-out pictures.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, Result};

/// What a picture is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Fitting.
    Train,
    /// Choosing parameters of the fit.
    Validation,
    /// Scores alone.
    HeldOut,
}

/// How many photographs go where.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// Share for validation, from 0 below 1; the paper's is 0.05.
    pub validation: f64,
    /// Share held out, from 0 below 1.
    pub held_out: f64,
}

/// Assigns items, each known by its photograph (such as the hash of its file): all items of one
/// photograph, its crops for example, go to the same part. The photographs are shuffled by the seed, whatever
/// the order of the items; each share above 0 gets at least one.
///
/// # Errors
/// [`ErrorKind::Request`] for shares without sense, or where no photograph is left to train on.
pub fn split_by_photograph(photographs: &[&str], shares: Shares, seed: u64) -> Result<Vec<Part>> {
    let mut names: Vec<&str> = photographs.to_vec();
    names.sort_unstable();
    names.dedup();
    let refuse = |why: String, remedy: &str| {
        Err(Error::new(
            ErrorKind::Request,
            "cannot split the photographs",
            why,
            remedy,
        ))
    };
    let is_share = |share: f64| (0.0..1.0).contains(&share);
    if !is_share(shares.validation) || !is_share(shares.held_out) {
        return refuse(
            format!(
                "the shares are {} and {}",
                shares.validation, shares.held_out
            ),
            "Give shares from 0 to below 1",
        );
    }
    let number = |share: f64| {
        let number = (share * names.len() as f64).round() as usize;
        number.max(usize::from(share > 0.0))
    };
    let (validation, held_out) = (number(shares.validation), number(shares.held_out));
    if validation + held_out >= names.len() {
        return refuse(
            format!(
                "of {} photographs, {held_out} are held out and {validation} validate",
                names.len()
            ),
            "Use more photographs or smaller shares",
        );
    }
    names.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let mut parts: Vec<(&str, Part)> = names
        .into_iter()
        .enumerate()
        .map(|(i, name)| {
            let part = if i < held_out {
                Part::HeldOut
            } else if i < held_out + validation {
                Part::Validation
            } else {
                Part::Train
            };
            (name, part)
        })
        .collect();
    parts.sort_unstable_by_key(|(name, _)| *name);
    Ok(photographs
        .iter()
        .filter_map(|name| {
            let place = parts.binary_search_by_key(name, |(name, _)| *name).ok()?;
            Some(parts[place].1)
        })
        .collect())
}
