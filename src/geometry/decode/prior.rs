//! The prior of an inversion: levels of a pyramid, and total variation.

use burn::tensor::Tensor;

use crate::encoders::layers::Placement;

/// ε of the total variation, in units of the pixel range: steps below one grey level count as smooth.
const SMOOTH: f64 = 1.0 / 255.0;

/// Side of the coarsest level is at least this many pixels.
const COARSEST_PX: usize = 7;

/// Rows and columns of the levels, the picture's own first; each halves the one before, rounded up.
pub fn pyramid(side: [usize; 2]) -> Vec<[usize; 2]> {
    let mut sides = vec![side];
    let mut next = side.map(|side| side.div_ceil(2));
    while next.iter().all(|&side| side >= COARSEST_PX) {
        sides.push(next);
        next = next.map(|side| side.div_ceil(2));
    }
    sides
}

/// The matrix (side, level) that enlarges bilinearly, pixel centres in proportion and edges repeated.
pub fn enlargement(side: usize, level: usize, at: &Placement) -> Tensor<2> {
    let scale = level as f64 / side as f64;
    let mut matrix = vec![0.0; side * level];
    for i in 0..side {
        let place = ((i as f64 + 0.5) * scale - 0.5).clamp(0.0, (level - 1) as f64);
        let below = place.floor();
        let share = place - below;
        let below = below as usize;
        matrix[i * level + below] += 1.0 - share;
        matrix[i * level + (below + 1).min(level - 1)] += share;
    }
    at.tensor(matrix, [side, level])
}

/// Mean over positions of √(‖∇x‖² + ε²) − ε, ∇ by forward differences over all channels; the last row and column have
/// none.
pub fn total_variation(x: &Tensor<4>) -> Tensor<1> {
    let [_, _, rows, columns] = x.dims();
    let inner = x.clone().narrow(2, 0, rows - 1).narrow(3, 0, columns - 1);
    let down = x.clone().narrow(2, 1, rows - 1).narrow(3, 0, columns - 1) - inner.clone();
    let across = x.clone().narrow(2, 0, rows - 1).narrow(3, 1, columns - 1) - inner;
    let squares = (down.clone() * down + across.clone() * across).sum_dim(1);
    ((squares + SMOOTH * SMOOTH).sqrt() - SMOOTH).mean()
}
