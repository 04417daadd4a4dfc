//! What a map between feature maps costs beside the encoder, at the paper's deepest stage: 1,024 channels at 9 × 9
//! positions.
//!
//! `cargo bench --profile release --bench maps`

use std::sync::Arc;

use divan::{Bencher, black_box};
use etascope::features::FeatureMap;
use etascope::geometry::maps::ridge::{GAMMA, ridge};
use etascope::geometry::maps::{AffineMap, Cut, Decomposition, Moments, PairSums, Truncation};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const CHANNELS: usize = 1024;
const SIDE: usize = 9;
/// Pictures whose vectors are summed: 8,100 vectors.
const PICTURES: usize = 100;

fn main() {
    divan::main();
}

fn vectors(pictures: usize, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let values = (0..pictures * SIDE * SIDE * CHANNELS).map(|_| rng.random::<f32>());
    values.collect()
}

fn sums(x: &[f32], y: &[f32]) -> PairSums {
    let picture = SIDE * SIDE * CHANNELS;
    let mut sums = PairSums::new(CHANNELS);
    for (x, y) in x.chunks(picture).zip(y.chunks(picture)) {
        sums.add(x, y).expect("whole vectors");
    }
    sums
}

fn moments() -> Moments {
    let mut sums = sums(&vectors(PICTURES, 1), &vectors(PICTURES, 2));
    sums.moments().expect("enough vectors")
}

fn map() -> AffineMap {
    ridge(&moments(), GAMMA).expect("it can be solved")
}

/// Sums over 8,100 pairs of vectors.
#[divan::bench(sample_count = 10)]
fn sum_pairs(bencher: Bencher<'_, '_>) {
    let (x, y) = (vectors(PICTURES, 1), vectors(PICTURES, 2));
    bencher.bench_local(|| sums(&x, &y).count());
}

#[divan::bench(sample_count = 10)]
fn solve_ridge(bencher: Bencher<'_, '_>) {
    let moments = moments();
    bencher.bench_local(|| ridge(&moments, GAMMA).expect("it can be solved"));
}

#[divan::bench(sample_count = 5)]
fn decompose(bencher: Bencher<'_, '_>) {
    let map = map();
    bencher.bench_local(|| Decomposition::new(&map, Cut::Edit).expect("it converges"));
}

#[divan::bench]
fn apply(bencher: Bencher<'_, '_>) {
    let (map, features) = (map(), features());
    bencher.bench_local(|| map.apply(&features).expect("it fits"));
}

/// The rank moved by one, as by a slider.
#[divan::bench]
fn move_rank(bencher: Bencher<'_, '_>) {
    let map = map();
    let decomposition = Arc::new(Decomposition::new(&map, Cut::Edit).expect("it converges"));
    let mut truncation = Truncation::new(&map, decomposition, &features()).expect("it fits");
    bencher.bench_local(|| {
        let rank = if truncation.rank() == 100 { 101 } else { 100 };
        black_box(truncation.at(rank).expect("it fits"))
    });
}

fn features() -> FeatureMap {
    FeatureMap::from_vectors([CHANNELS, SIDE, SIDE], vectors(1, 3)).expect("whole vectors")
}
