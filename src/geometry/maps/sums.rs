//! Sums over pairs of feature vectors, from which every closed-form map is fitted: the pictures are encoded
//! once, and vectors are forgotten as soon as they are summed.

use faer::{Mat, MatRef};

use super::Normalisation;
use crate::geometry::gram::{BLOCK, ProductSum};
use crate::{Error, ErrorKind, Result};

/// Sums over pairs (x, y) of vectors of C values.
///
/// They are taken of x − a and y − a′, where a and a′ are the means of the first block: the spread of
/// features is often small beside their mean, and a sum of squares of the whole would lose it to rounding.
pub struct PairSums {
    channels: usize,
    block: usize,
    count: usize,
    /// a and a′, once the first block is whole.
    anchors: Option<[Vec<f32>; 2]>,
    /// Vectors that wait for their block, source and target.
    waiting: [Vec<f32>; 2],
    /// Σ(x − a), Σ(y − a′).
    sums: [Vec<f64>; 2],
    /// Σ(y − a′)², channel by channel.
    target_squares: Vec<f64>,
    /// Σ(x − a)(x − a)ᵀ.
    source_products: ProductSum,
    /// Σ(y − a′)(x − a)ᵀ.
    cross_products: ProductSum,
}

impl PairSums {
    /// No pairs yet, of vectors with `channels` values.
    pub fn new(channels: usize) -> Self {
        Self::with_block(channels, BLOCK)
    }

    /// The same, summed in blocks of `block` pairs.
    pub(super) fn with_block(channels: usize, block: usize) -> Self {
        Self {
            channels,
            block,
            count: 0,
            anchors: None,
            waiting: [Vec::new(), Vec::new()],
            sums: [vec![0.0; channels], vec![0.0; channels]],
            target_squares: vec![0.0; channels],
            source_products: ProductSum::new(channels, channels),
            cross_products: ProductSum::new(channels, channels),
        }
    }

    /// Length C of a vector.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Pairs so far.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Adds pairs: whole vectors, one after another, as many on either side.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where the sides differ in length or a vector is not whole;
    /// [`ErrorKind::Numeric`] where a value is not finite. Nothing is added then.
    pub fn add(&mut self, source: &[f32], target: &[f32]) -> Result<()> {
        if source.len() != target.len() || !source.len().is_multiple_of(self.channels) {
            return Err(Error::new(
                ErrorKind::Request,
                "cannot fit a map",
                format!(
                    "{} and {} values are not pairs of vectors of {}",
                    source.len(),
                    target.len(),
                    self.channels
                ),
                "Use feature maps of one stage, of pictures of one size",
            ));
        }
        for (side, values) in [("unedited", source), ("edited", target)] {
            if !values.iter().all(|value| value.is_finite()) {
                return Err(Error::new(
                    ErrorKind::Numeric,
                    "cannot fit a map",
                    format!("a feature of an {side} picture is not a finite number"),
                    "Leave this picture out, or use another device or encoder",
                ));
            }
        }
        self.count += source.len() / self.channels;
        let len = self.block * self.channels;
        let (mut source, mut target) = (source, target);
        while !source.is_empty() {
            let taken = (len - self.waiting[0].len()).min(source.len());
            for (waiting, values) in self.waiting.iter_mut().zip([&mut source, &mut target]) {
                let (first, rest) = values.split_at(taken);
                waiting.extend_from_slice(first);
                *values = rest;
            }
            if self.waiting[0].len() == len {
                self.sum_waiting();
            }
        }
        Ok(())
    }

    /// Sums the vectors that wait.
    fn sum_waiting(&mut self) {
        let channels = self.channels;
        let mut blocks = std::mem::take(&mut self.waiting);
        let anchors = self
            .anchors
            .get_or_insert_with(|| [mean(&blocks[0], channels), mean(&blocks[1], channels)]);
        for ((block, anchor), sums) in blocks.iter_mut().zip(anchors).zip(&mut self.sums) {
            for vector in block.chunks_exact_mut(channels) {
                for ((value, &anchor), sum) in vector.iter_mut().zip(anchor.iter()).zip(&mut *sums)
                {
                    *value -= anchor;
                    *sum += f64::from(*value);
                }
            }
        }
        for vector in blocks[1].chunks_exact(channels) {
            let squares = self.target_squares.iter_mut().zip(vector);
            squares.for_each(|(sum, &value)| *sum += f64::from(value).powi(2));
        }
        let vectors = |block: &[f32]| block.len() / channels;
        let [source, target] = [0, 1].map(|side| {
            MatRef::from_column_major_slice(&blocks[side], channels, vectors(&blocks[side]))
        });
        self.source_products.add_square(source);
        self.cross_products.add(target, source);
        // The memory is used again.
        blocks.iter_mut().for_each(Vec::clear);
        self.waiting = blocks;
    }

    /// Means and centred products of all pairs so far.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where there are fewer than two pairs.
    pub fn moments(&mut self) -> Result<Moments> {
        if self.count < 2 {
            return Err(Error::new(
                ErrorKind::Request,
                "cannot fit a map",
                format!("there are {} pairs of vectors", self.count),
                "Use at least one picture and its edit",
            ));
        }
        if !self.waiting[0].is_empty() {
            self.sum_waiting();
        }
        let n = self.count as f64;
        let [source_shift, target_shift] = [0, 1].map(|side| {
            self.sums[side]
                .iter()
                .map(|sum| sum / n)
                .collect::<Vec<f64>>()
        });
        // There is an anchor once anything was summed.
        let mean = |side: usize, shift: &[f64]| -> Vec<f64> {
            let anchor = self
                .anchors
                .as_ref()
                .map_or(&[][..], |anchors| &anchors[side]);
            let parts = anchor.iter().zip(shift);
            parts
                .map(|(&anchor, shift)| f64::from(anchor) + shift)
                .collect()
        };
        let mut source_products = self.source_products.symmetric();
        let mut cross_products = self.cross_products.matrix();
        for j in 0..self.channels {
            for i in 0..self.channels {
                source_products[(i, j)] -= n * source_shift[i] * source_shift[j];
                cross_products[(i, j)] -= n * target_shift[i] * source_shift[j];
            }
        }
        let squares = self.target_squares.iter().zip(&target_shift);
        Ok(Moments {
            count: n,
            source_mean: mean(0, &source_shift),
            target_mean: mean(1, &target_shift),
            source_products,
            cross_products,
            target_squares: squares
                .map(|(sum, shift)| sum - n * shift * shift)
                .collect(),
        })
    }
}

/// Mean of a block of vectors, rounded to f32.
fn mean(block: &[f32], channels: usize) -> Vec<f32> {
    let mut sums = vec![0.0; channels];
    for vector in block.chunks_exact(channels) {
        let parts = sums.iter_mut().zip(vector);
        parts.for_each(|(sum, &value)| *sum += f64::from(value));
    }
    let n = (block.len() / channels) as f64;
    sums.iter().map(|sum| (sum / n) as f32).collect()
}

/// Means and centred, un-averaged products of pairs of vectors: all that a closed-form fit needs, so that
/// another regularisation or normalisation costs no encoding.
#[derive(Clone, Debug)]
pub struct Moments {
    /// Number M of pairs.
    pub count: f64,
    /// x̄, C values.
    pub source_mean: Vec<f64>,
    /// ȳ, C values.
    pub target_mean: Vec<f64>,
    /// Σ(x − x̄)(x − x̄)ᵀ.
    pub source_products: Mat<f64>,
    /// Σ(y − ȳ)(x − x̄)ᵀ.
    pub cross_products: Mat<f64>,
    /// Σ(y − ȳ)², channel by channel.
    pub target_squares: Vec<f64>,
}

impl Moments {
    /// Length C of a vector.
    pub fn channels(&self) -> usize {
        self.source_mean.len()
    }

    /// Mean and standard deviation (divisor M) of each channel of the unedited vectors.
    pub fn normalisation(&self) -> Normalisation {
        let variance = |c: usize| (self.source_products[(c, c)] / self.count).max(0.0);
        Normalisation::new(
            self.source_mean.clone(),
            (0..self.channels()).map(|c| variance(c).sqrt()).collect(),
        )
    }

    /// The moments of the normalised vectors, source and target by the same statistics.
    pub fn normalised(&self, normalisation: &Normalisation) -> Self {
        let scale = normalisation.scale();
        let scaled = |products: &Mat<f64>| {
            Mat::from_fn(products.nrows(), products.ncols(), |i, j| {
                products[(i, j)] / (scale[i] * scale[j])
            })
        };
        let squares = self.target_squares.iter().zip(scale);
        Self {
            count: self.count,
            source_mean: normalisation.normalised(&self.source_mean),
            target_mean: normalisation.normalised(&self.target_mean),
            source_products: scaled(&self.source_products),
            cross_products: scaled(&self.cross_products),
            target_squares: squares.map(|(sum, s)| sum / (s * s)).collect(),
        }
    }
}
