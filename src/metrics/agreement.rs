//! What an edit does to the classes that are named.
//!
//! Over the largest class scores of the original's and of the edit's prediction. Of equal scores the class
//! with the smaller number comes first, as in NumPy's stable sort.

use serde::{Deserialize, Serialize};

use crate::Result;

/// How many classes are named besides the first.
pub const TOP: usize = 5;

/// Agreement of two predictions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Both name the same class first.
    pub top1: bool,
    /// The original's first class is among the edit's first five (all, where there are fewer).
    pub top5: bool,
    /// Share of the first five that both name, whatever the order, from 0 to 1.
    pub top5_shared: f64,
}

/// Compares class scores.
///
/// # Errors
/// [`crate::ErrorKind::Request`] where their numbers differ or there are none.
pub fn agreement(original: &[f64], edited: &[f64]) -> Result<Agreement> {
    if original.len() != edited.len() || original.is_empty() {
        return Err(super::misfit(format!(
            "one prediction has {} classes, the other {}",
            original.len(),
            edited.len()
        )));
    }
    let (first, second) = (top(original, TOP), top(edited, TOP));
    let shared = first.iter().filter(|class| second.contains(class)).count();
    Ok(Agreement {
        top1: first[0] == second[0],
        top5: second.contains(&first[0]),
        top5_shared: shared as f64 / first.len() as f64,
    })
}

/// The `count` classes of the largest scores, largest first; all where there are fewer. A score that is not
/// a number comes last.
pub fn top(scores: &[f64], count: usize) -> Vec<usize> {
    let key = |class: usize| {
        let score = scores[class];
        if score.is_nan() {
            f64::NEG_INFINITY
        } else {
            score
        }
    };
    let mut classes: Vec<usize> = (0..scores.len()).collect();
    classes.sort_by(|&a, &b| key(b).total_cmp(&key(a)));
    classes.truncate(count);
    classes
}
