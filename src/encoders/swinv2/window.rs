//! Windows over a square of positions, shifted or not, and the position bias inside them.

use burn::tensor::{Int, Tensor, TensorData};

use super::super::attention::RelativeBias;
use super::super::layers::Placement;
use super::super::positions::Rearrangement;
use super::super::weights::Weights;
use super::config::BIAS_HIDDEN;
use crate::Result;

/// How a stage's positions are cut into windows.
#[derive(Debug)]
pub(super) struct Windows {
    /// Side of a window.
    pub side: usize,
    /// From (row, column) to (window, position in it). Positions beyond the edge are 0.
    pub partition: Rearrangement,
    /// The way back.
    pub merge: Rearrangement,
    /// For shifted windows the region of each position, (window, position): positions that are neighbours only
    /// because the square was rolled lie in different ones.
    pub regions: Option<Tensor<2>>,
    /// See [`RelativeBias`].
    pub bias_index: Tensor<1, Int>,
}

impl Windows {
    /// Windows of at most `window` positions a side over a square of `side` positions a side. Shifted ones are those
    /// of the square rolled up and left by half a window; where one window holds all, there is no shift.
    pub fn new(side: usize, window: usize, shifted: bool, at: &Placement) -> Self {
        let shift = if shifted && side > window {
            window / 2
        } else {
            0
        };
        let window = window.min(side);
        let count = side.div_ceil(window);
        let padded = count * window;
        // Row, or column, of a place (window, position in the window).
        let place = |w: usize, p: usize| w * window + p;
        let places: Vec<[usize; 2]> = (0..count * count * window * window)
            .map(|index| {
                let (w, p) = (index / (window * window), index % (window * window));
                [place(w / count, p / window), place(w % count, p % window)]
            })
            .collect();
        let source: Vec<Option<usize>> = places
            .iter()
            .map(|place| {
                let inside = place.iter().all(|at| *at < side);
                let [row, column] = place.map(|at| (at + shift) % side);
                inside.then_some(row * side + column)
            })
            .collect();
        let shape = [count * count, window * window];
        let partition = Rearrangement::new([side, side], shape, &source, at);
        // The last window a side, and of it the part that was rolled there.
        let region =
            |at: usize| usize::from(at >= padded - window) + usize::from(at >= padded - shift);
        let regions = (shift > 0).then(|| {
            let regions = places.iter().map(|place| {
                let [row, column] = place.map(region);
                (3 * row + column) as f64
            });
            at.tensor(regions.collect(), shape)
        });
        let index = RelativeBias::index(window);
        let len = index.len();
        Self {
            side: window,
            bias_index: Tensor::from_data(TensorData::new(index, [len]), &at.device),
            merge: partition.reversed(),
            partition,
            regions,
        }
    }
}

/// 16·σ(MLP(d)) for all differences d of positions in a window, (head, difference): section 3.3 of the paper. The
/// differences are scaled to ±8 over the window for which the bias was trained, then
/// sign(d)·log₂(1 + |d|)/log₂ 8.
pub(super) fn bias_table(
    key: &str,
    heads: usize,
    side: usize,
    trained: usize,
    weights: &mut Weights<'_>,
) -> Result<Vec<f64>> {
    let mut take = |name: &str| weights.take(&format!("{key}.cpb_mlp.{name}"));
    let (first, shift, second) = (take("0.weight")?, take("0.bias")?, take("2.weight")?);
    let trained = if trained > 0 { trained } else { side };
    let span = (trained.max(2) - 1) as f64;
    let coordinate = |index: usize| {
        let d = 8.0 * (index as f64 - (side as f64 - 1.0)) / span;
        d.signum() * (1.0 + d.abs()).log2() / 3.0
    };
    let differences = 2 * side - 1;
    let mut table = vec![0.0; heads * differences * differences];
    let mut hidden = vec![0.0; BIAS_HIDDEN];
    for row in 0..differences {
        for column in 0..differences {
            let (y, x) = (coordinate(row), coordinate(column));
            let units = first.as_chunks::<2>().0.iter().zip(&shift);
            for (hidden, ([of_row, of_column], shift)) in hidden.iter_mut().zip(units) {
                *hidden = (of_row * y + of_column * x + shift).max(0.0);
            }
            for (head, weights) in second.chunks_exact(BIAS_HIDDEN).enumerate() {
                let sum: f64 = hidden.iter().zip(weights).map(|(h, w)| h * w).sum();
                table[(head * differences + row) * differences + column] =
                    16.0 / (1.0 + (-sum).exp());
            }
        }
    }
    Ok(table)
}
