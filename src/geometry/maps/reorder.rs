//! Spatial reorder: where an edit turns or mirrors a picture, the grid of vectors is turned with it before
//! anything is mapped. Alone, it is the baseline of such edits.

use crate::Result;
use crate::features::FeatureMap;
use crate::images::{GridSymmetry, Manipulation};

/// The turns and mirrors in a chain of manipulations, in their order.
pub fn symmetries(manipulations: &[Manipulation]) -> Vec<GridSymmetry> {
    let found = manipulations.iter().map(Manipulation::symmetry);
    found.flatten().collect()
}

/// A feature map with its positions moved and its vectors unchanged.
///
/// # Errors
/// None in practice: the number of vectors stays.
pub fn reordered(map: &FeatureMap, symmetries: &[GridSymmetry]) -> Result<FeatureMap> {
    let mut map = map.clone();
    for symmetry in symmetries {
        let [channels, rows, columns] = map.shape();
        let vectors = symmetry.apply(map.vectors(), rows, columns, channels);
        let (rows, columns) = symmetry.shape(rows, columns);
        map = FeatureMap::from_vectors([channels, rows, columns], vectors)?;
    }
    Ok(map)
}
