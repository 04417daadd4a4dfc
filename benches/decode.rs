//! From features to a picture: what stands between a moved slider and the screen, and one step of an inversion.
//!
//! `cargo bench --profile release --bench decode`

use std::sync::Arc;

use divan::{Bencher, black_box};
use etascope::device::ComputeDevice;
use etascope::encoders::registry::{self, LoadedEncoder};
use etascope::encoders::{Readout, WeightsKind};
use etascope::features::FeatureMap;
use etascope::geometry::decode::{Decoder, Inversion, InversionConfig};
use etascope::geometry::maps::ridge::{GAMMA, ridge};
use etascope::geometry::maps::{Cut, Decomposition, PairSums, Truncation};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const ENCODER: &str = "efficientnet_lite0";
/// Shipped decoders and the number of their stage.
const STAGES: [(&str, usize); 3] = [("blocks.1", 2), ("blocks.2", 3), ("blocks.4", 5)];

fn main() {
    divan::main();
}

fn encoder() -> Arc<LoadedEncoder> {
    let device = ComputeDevice::cpu();
    let loaded = registry::load(ENCODER, WeightsKind::Trained, 0, &device);
    Arc::new(loaded.expect("the bundled weights"))
}

fn features(shape: [usize; 3], seed: u64) -> FeatureMap {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| rng.random()).collect();
    FeatureMap::from_vectors(shape, values).expect("a map")
}

/// Another rank of a cut map, and the picture of what it gives.
#[divan::bench(args = STAGES.map(|(name, _)| name))]
fn rank_and_decode(bencher: Bencher<'_, '_>, name: &str) {
    let encoder = encoder();
    let index = STAGES.iter().position(|(stage, _)| *stage == name);
    let stage = STAGES[index.expect("a stage")].1;
    let shape = encoder.spec().stages[stage].shape;
    let device = ComputeDevice::cpu();
    let decoder = Decoder::bundled(ENCODER, &encoder.weights_id, name, &device);
    let decoder = decoder.expect("a sound file").expect("it is bundled");
    let mut sums = PairSums::new(shape[0]);
    sums.add(features(shape, 1).vectors(), features(shape, 2).vectors())
        .expect("whole vectors");
    let map = ridge(&sums.moments().expect("enough vectors"), GAMMA).expect("it can be solved");
    let decomposition = Arc::new(Decomposition::new(&map, Cut::Edit).expect("it can be made"));
    let mut truncation =
        Truncation::new(&map, decomposition, &features(shape, 3)).expect("the same channels");
    let mut rank = 0;
    bencher.bench_local(|| {
        rank = (rank + 5) % shape[0];
        let mapped = truncation.at(rank).expect("a map");
        black_box(decoder.decode(&mapped).expect("a picture"));
    });
}

/// One step of an inversion of a stage.
#[divan::bench(args = [2, 5, 8], sample_count = 20)]
fn inversion_step(bencher: Bencher<'_, '_>, stage: usize) {
    let encoder = encoder();
    let shape = encoder.spec().stages[stage].shape;
    let target: Vec<f64> = features(shape, 1)
        .planes()
        .iter()
        .map(|&v| v.into())
        .collect();
    let config = InversionConfig {
        coarse_share: 0.0,
        ..InversionConfig::default()
    };
    let readout = Readout::Stage(stage);
    let mut search = Inversion::new(encoder, readout, &target, config).expect("a sound search");
    bencher.bench_local(|| black_box(search.step().expect("a step")));
}
