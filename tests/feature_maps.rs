//! Maps between feature maps against scikit-learn, SciPy and NumPy (tests/golden/edits/gen_maps.py), against maps that
//! were planted, and against the mistakes that are easily made with them.

mod tiny;

use std::fs;
use std::sync::Arc;

use etascope::ErrorKind;
use etascope::features::FeatureMap;
use etascope::geometry::maps::readout::{bias_readout, displacement_readout, matched_magnitude};
use etascope::geometry::maps::reorder::{reordered, symmetries};
use etascope::geometry::maps::ridge::{GAMMA, choose_gamma, ridge, ridge_to_identity};
use etascope::geometry::maps::{
    AffineMap, Cut, Decomposition, EditMap, FeatureMapping, FitSums, Fitted, MapFile, MapKind,
    Moments, Normalisation, PairSums, Part, Shares, compose, load, recurse, save,
    split_by_photograph,
};
use etascope::geometry::spectrum::SpectrumReadout;
use etascope::images::{GridSymmetry, Manipulation};
use faer::Mat;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use serde_json::Value;
use tiny::{Fixture, relative};

const ROWS: usize = 6;
const COLUMNS: usize = 5;
const CHANNELS: usize = 12;
const PICTURES: usize = 10;
const RIDGE: MapKind = MapKind::Ridge { gamma: GAMMA };

fn fixture() -> (Fixture, Value) {
    let json = fs::read(tiny::golden_path("edits/maps.json")).unwrap();
    (
        Fixture::read("edits/maps.safetensors"),
        serde_json::from_slice(&json).unwrap(),
    )
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

fn wide(map: &FeatureMap) -> Vec<f64> {
    map.vectors()
        .iter()
        .map(|&value| f64::from(value))
        .collect()
}

/// The pictures of one side of the fixture.
fn pictures(fixture: &Fixture, side: &str) -> Vec<FeatureMap> {
    let vectors = narrow(fixture.get(side));
    vectors
        .chunks_exact(ROWS * COLUMNS * CHANNELS)
        .map(|vectors| FeatureMap::from_vectors([CHANNELS, ROWS, COLUMNS], vectors).unwrap())
        .collect()
}

fn sums(fixture: &Fixture) -> FitSums {
    let mut sums = FitSums::with_positions([CHANNELS, ROWS, COLUMNS], vec![]).unwrap();
    for (x, y) in pictures(fixture, "x").iter().zip(&pictures(fixture, "y")) {
        sums.add(x, y).unwrap();
    }
    assert_eq!(sums.pictures(), PICTURES);
    sums
}

fn affine(map: &EditMap) -> &AffineMap {
    map.affine().expect("the map has a matrix")
}

/// Entries row after row.
fn entries(matrix: faer::MatRef<'_, f64>) -> Vec<f64> {
    let rows = matrix.row_iter();
    rows.flat_map(|row| row.iter().copied().collect::<Vec<_>>())
        .collect()
}

fn outputs(map: &dyn FeatureMapping, fixture: &Fixture) -> Vec<f64> {
    let maps = pictures(fixture, "x");
    maps.iter()
        .flat_map(|x| wide(&map.map(x).unwrap()))
        .collect()
}

fn gaussian(rng: &mut ChaCha8Rng, len: usize) -> Vec<f64> {
    rng.sample_iter(StandardNormal).take(len).collect()
}

/// Products in f32 are good to about 1e-7; the Gram matrix of the fixture has a condition number near 50, by
/// which the weights may be worse.
const WEIGHT_TOLERANCE: f64 = 5e-6;
const OUTPUT_TOLERANCE: f64 = 5e-7;

#[test]
fn closed_forms_are_those_of_scikit_learn_and_scipy() {
    let (fixture, _) = fixture();
    let mut sums = sums(&fixture);
    for (kind, name) in [
        (MapKind::Linear, "linear"),
        (RIDGE, "ridge"),
        (MapKind::RidgeToIdentity { gamma: 0.1 }, "to_identity"),
        (MapKind::Procrustes, "procrustes"),
    ] {
        let map = sums.fit(kind, false).unwrap();
        let weight = fixture.get(&format!("{name}.weight"));
        let bias = fixture.get(&format!("{name}.bias"));
        let error = relative(&entries(affine(&map).weight()), weight);
        assert!(error < WEIGHT_TOLERANCE, "{name}: W is off by {error:.1e}");
        let theirs: Vec<f64> = pictures(&fixture, "x")
            .iter()
            .flat_map(wide)
            .collect::<Vec<_>>()
            .chunks_exact(CHANNELS)
            .flat_map(|x| {
                let rows = weight.chunks_exact(CHANNELS).zip(bias);
                rows.map(|(row, b)| tiny::dot(row, x) + b)
                    .collect::<Vec<_>>()
            })
            .collect();
        let error = relative(&outputs(&map, &fixture), &theirs);
        assert!(
            error < OUTPUT_TOLERANCE,
            "{name}: outputs are off by {error:.1e}"
        );
    }
    let map = sums.fit(MapKind::Additive, false).unwrap();
    let Fitted::Additive(delta) = &map.fitted else {
        panic!("{map:?}");
    };
    assert!(relative(delta, fixture.get("delta")) < 1e-6);
    let x = &pictures(&fixture, "x")[0];
    let shifted = map.map(x).unwrap();
    for (at, value) in wide(&shifted).iter().enumerate() {
        let expected = f64::from(x.vectors()[at]) + delta[at % CHANNELS];
        assert!((value - expected).abs() < 1e-5);
    }
}

#[test]
fn normalised_and_per_position_maps_are_those_of_scikit_learn() {
    let (fixture, _) = fixture();
    let mut sums = sums(&fixture);
    let map = sums.fit(RIDGE, true).unwrap();
    let error = relative(
        &entries(affine(&map).weight()),
        fixture.get("normalised.weight"),
    );
    assert!(error < WEIGHT_TOLERANCE, "W is off by {error:.1e}");
    let error = relative(&outputs(&map, &fixture), fixture.get("normalised.output"));
    assert!(error < OUTPUT_TOLERANCE, "outputs are off by {error:.1e}");

    let map = sums
        .fit(MapKind::PerPosition { gamma: 1.0 }, false)
        .unwrap();
    let error = relative(&outputs(&map, &fixture), fixture.get("per_position.output"));
    assert!(error < OUTPUT_TOLERANCE, "outputs are off by {error:.1e}");
    // Normalisation undone leaves the identity as it was, to the last bit.
    let identity = sums.fit(MapKind::Identity, true).unwrap();
    let x = &pictures(&fixture, "x")[0];
    assert_eq!(&identity.map(x).unwrap(), x);
}

#[test]
fn normalisation_is_undone() {
    let normalisation = Normalisation::new(vec![3.0, -1.0], vec![2.0, 0.0]);
    let map = FeatureMap::from_vectors([2, 1, 2], vec![5.0, -1.0, 1.0, -1.0]).unwrap();
    let normal = normalisation.apply(&map).unwrap();
    assert!((f64::from(normal.vectors()[0]) - 1.0).abs() < 1e-6);
    // A dead channel stays 0, not NaN.
    assert_eq!(normal.vectors()[1], 0.0);
    let back = normalisation.undo(&normal).unwrap();
    assert!(relative(&wide(&back), &wide(&map)) < 1e-7);
    assert!(
        Normalisation::new(vec![0.0], vec![1.0])
            .apply(&map)
            .is_err()
    );
}

#[test]
fn sums_do_not_depend_on_how_they_are_handed_over() {
    let (fixture, _) = fixture();
    let (x, y) = (narrow(fixture.get("x")), narrow(fixture.get("y")));
    let whole = |chunk: usize| {
        let mut sums = PairSums::new(CHANNELS);
        for (x, y) in x.chunks(chunk * CHANNELS).zip(y.chunks(chunk * CHANNELS)) {
            sums.add(x, y).unwrap();
        }
        assert_eq!(sums.count(), PICTURES * ROWS * COLUMNS);
        sums.moments().unwrap()
    };
    let (one, all) = (whole(1), whole(PICTURES * ROWS * COLUMNS));
    assert_eq!(one.source_products, all.source_products);
    assert_eq!(one.cross_products, all.cross_products);
    assert_eq!(one.source_mean, all.source_mean);
}

/// Products of the sums in f64 throughout.
fn moments_in_f64(x: &[f32], y: &[f32], channels: usize) -> (Mat<f64>, Mat<f64>) {
    let n = x.len() / channels;
    let centred = |values: &[f32]| {
        let at = |i: usize, j: usize| f64::from(values[j * channels + i]);
        let means: Vec<f64> = (0..channels)
            .map(|i| (0..n).map(|j| at(i, j)).sum::<f64>() / n as f64)
            .collect();
        Mat::from_fn(channels, n, |i, j| at(i, j) - means[i])
    };
    let (x, y) = (centred(x), centred(y));
    (&x * x.transpose(), &y * x.transpose())
}

#[test]
fn products_in_blocks_of_f32_are_as_good_as_the_features() {
    // Correlated channels far from zero, as features are; several blocks and a remainder.
    let (channels, n) = (48, 10_007);
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mixing = gaussian(&mut rng, channels * channels);
    let mut vectors = || -> Vec<f32> {
        (0..n)
            .flat_map(|_| {
                let z = gaussian(&mut rng, channels);
                let mixed = mixing.chunks_exact(channels).map(|row| tiny::dot(row, &z));
                mixed.map(|v| (v + 30.0) as f32).collect::<Vec<_>>()
            })
            .collect()
    };
    let (x, y) = (vectors(), vectors());
    let mut sums = PairSums::new(channels);
    sums.add(&x, &y).unwrap();
    let ours = sums.moments().unwrap();
    let (xx, yx) = moments_in_f64(&x, &y, channels);
    let mut worst = 0.0_f64;
    for j in 0..channels {
        for i in 0..channels {
            let scale = (xx[(i, i)] * xx[(j, j)]).sqrt();
            worst = worst
                .max((ours.source_products[(i, j)] - xx[(i, j)]).abs() / scale)
                .max((ours.cross_products[(i, j)] - yx[(i, j)]).abs() / scale);
        }
    }
    // The rounding of f32 is 6e-8; sums without anchors would be off by the square of mean over spread more.
    println!("largest error of a product: {worst:.1e}");
    assert!(worst < 3e-7, "products are off by {worst:.1e}");
}

/// A picture whose vectors are Gaussian about 2, and a map y = x + U Vᵀ(x − 2) + shift of low rank.
struct Planted {
    channels: usize,
    operator: Mat<f64>,
    shift: Vec<f64>,
}

impl Planted {
    fn new(channels: usize, rank: usize, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut factor = || {
            let values = gaussian(&mut rng, channels * rank);
            Mat::from_fn(channels, rank, |i, j| {
                values[i * rank + j] / (channels as f64).sqrt()
            })
        };
        let operator = factor() * factor().transpose();
        let shift = gaussian(&mut rng, channels);
        Self {
            channels,
            operator,
            shift,
        }
    }

    fn picture(&self, seed: u64) -> FeatureMap {
        let mut rng = ChaCha8Rng::seed_from_u64(1000 + seed);
        let values: Vec<f32> = gaussian(&mut rng, self.channels * 20)
            .iter()
            .map(|v| (v + 2.0) as f32)
            .collect();
        FeatureMap::from_vectors([self.channels, 4, 5], values).unwrap()
    }

    fn edited(&self, x: &FeatureMap) -> FeatureMap {
        let vectors: Vec<f32> = wide(x)
            .chunks_exact(self.channels)
            .flat_map(|x| {
                (0..self.channels)
                    .map(|i| {
                        let moved =
                            (0..self.channels).map(|j| self.operator[(i, j)] * (x[j] - 2.0));
                        (x[i] + moved.sum::<f64>() + self.shift[i]) as f32
                    })
                    .collect::<Vec<_>>()
            })
            .collect();
        FeatureMap::from_vectors(x.shape(), vectors).unwrap()
    }
}

#[test]
fn a_planted_edit_is_recovered_with_its_rank() {
    let planted = Planted::new(24, 3, 1);
    let mut sums = FitSums::new(24, vec![]);
    for i in 0..30 {
        let x = planted.picture(i);
        sums.add(&x, &planted.edited(&x)).unwrap();
    }
    let held_out = planted.picture(99);
    let target = planted.edited(&held_out);
    let map = sums.fit(MapKind::Linear, false).unwrap();
    let error = relative(&wide(&map.map(&held_out).unwrap()), &wide(&target));
    assert!(error < 1e-6, "held out: {error:.1e}");
    let edit = affine(&map).edit_operator();
    let error = relative(&entries(edit.as_ref()), &entries(planted.operator.as_ref()));
    assert!(error < 1e-5, "E is off by {error:.1e}");

    // E has the planted rank; W has full rank, and cutting it there cuts the picture away.
    let cut = |cut, rank| {
        let decomposition = Arc::new(Decomposition::new(affine(&map), cut).unwrap());
        let values = decomposition.values().to_vec();
        let mut truncation = map.truncation(decomposition, &held_out).unwrap();
        (
            relative(&wide(&truncation.at(rank).unwrap()), &wide(&target)),
            values,
        )
    };
    let (error, values) = cut(Cut::Edit, 3);
    assert!(error < 1e-5, "E at rank 3: {error:.1e}");
    assert!(values[3] < 1e-5 * values[0]);
    assert!(cut(Cut::Edit, 2).0 > 0.01);
    let (error, values) = cut(Cut::Map, 3);
    assert!(
        error > 0.3 && values[3] > 0.1 * values[0],
        "W at rank 3: {error}"
    );
}

#[test]
fn with_little_data_ridge_falls_back_to_zero_or_to_no_change() {
    let planted = Planted::new(24, 3, 2);
    // One picture of 20 vectors for 24 channels.
    let mut sums = FitSums::new(24, vec![]);
    let x = planted.picture(0);
    sums.add(&x, &planted.edited(&x)).unwrap();
    let moments = sums.moments().unwrap();
    let zero = ridge(&moments, 1e12).unwrap();
    assert!(entries(zero.weight()).iter().all(|w| w.abs() < 1e-6));
    let same = ridge_to_identity(&moments, 1e9).unwrap();
    assert!(
        entries(same.edit_operator().as_ref())
            .iter()
            .all(|e| e.abs() < 1e-6)
    );
    // Both still move the mean.
    for map in [&zero, &same] {
        assert_eq!(map.target_mean(), &moments.target_mean[..]);
    }
    // Without a penalty the equations have no unique solution: ridge says so, least squares takes the least W.
    assert_eq!(ridge(&moments, 0.0).unwrap_err().kind, ErrorKind::Numeric);
    let map = sums.fit(MapKind::Linear, false).unwrap();
    let error = relative(&wide(&map.map(&x).unwrap()), &wide(&planted.edited(&x)));
    assert!(error < 1e-5, "training vectors: {error:.1e}");
    for wrong in [-1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(ridge(&moments, wrong).unwrap_err().kind, ErrorKind::Request);
    }
}

#[test]
fn a_turned_picture_is_mapped_by_the_reorder_alone() {
    let planted = Planted::new(8, 2, 3);
    for symmetry in GridSymmetry::ALL {
        let chain = [Manipulation::Grayscale, Manipulation::Reorient { symmetry }];
        let reorder = symmetries(&chain);
        assert_eq!(reorder, [symmetry]);
        let (mut with, mut without) = (FitSums::new(8, reorder.clone()), FitSums::new(8, vec![]));
        let turned = |x: &FeatureMap| reordered(x, &[symmetry]).unwrap();
        for i in 0..20 {
            let x = planted.picture(i);
            with.add(&x, &turned(&x)).unwrap();
            let unturned = FeatureMap::from_vectors(x.shape(), turned(&x).vectors()).unwrap();
            without.add(&x, &unturned).unwrap();
        }
        let baseline = with.fit(MapKind::Identity, false).unwrap();
        let x = planted.picture(50);
        assert_eq!(baseline.map(&x).unwrap(), turned(&x));
        let map = with.fit(RIDGE, false).unwrap();
        let off = entries(affine(&map).edit_operator().as_ref());
        // γ = 1 beside sums of about 400.
        assert!(off.iter().all(|e| e.abs() < 5e-3), "{symmetry:?}");
        assert_eq!(map.map(&x).unwrap().shape(), turned(&x).shape());
        // Without the reorder nothing linear knows where a vector went.
        let map = without.fit(RIDGE, false).unwrap();
        let size = tiny::norm(&entries(affine(&map).edit_operator().as_ref()));
        assert!(size > 1.0, "{symmetry:?}: E has the norm {size}");
    }
}

#[test]
fn spectra_and_truncations_are_numpys() {
    let (fixture, numbers) = fixture();
    let map = sums(&fixture).fit(RIDGE, false).unwrap();
    let x = &pictures(&fixture, "x")[0];
    for (cut, name) in [(Cut::Map, "map"), (Cut::Edit, "edit")] {
        let decomposition = Arc::new(Decomposition::new(affine(&map), cut).unwrap());
        let theirs = fixture.get(&format!("{name}.values"));
        let values = decomposition.values();
        assert!(relative(values, theirs) < 1e-5, "{name}");
        assert!(values.is_sorted_by(|a, b| a >= b));
        // The first vectors, sign and all; the last belong to values that are near each other.
        for (side, ours) in [
            ("right", decomposition.right()),
            ("left", decomposition.left()),
        ] {
            let theirs = fixture.get(&format!("{name}.{side}"));
            for j in 0..3 {
                let column: Vec<f64> = theirs.iter().skip(j).step_by(CHANNELS).copied().collect();
                let error = relative(ours.col(j).try_as_col_major().unwrap().as_slice(), &column);
                assert!(
                    error < 1e-4,
                    "{name}: {side} vector {j} is off by {error:.1e}"
                );
            }
        }
        let readout = SpectrumReadout::of(values).unwrap();
        let theirs = &numbers[name];
        let near = |ours: f64, theirs: &Value, tolerance: f64| {
            let theirs = number(theirs);
            assert!(
                (ours / theirs - 1.0).abs() < tolerance,
                "{name}: {ours} against {theirs}"
            );
        };
        near(readout.entropy_nats, &theirs["entropy"], 1e-5);
        near(readout.effective_rank, &theirs["effective_rank"], 1e-5);
        near(readout.stable_rank, &theirs["stable_rank"], 1e-5);
        for (i, energy) in readout.energy_top.into_iter().enumerate() {
            near(energy, &theirs["energy"][i], 1e-5);
        }
        // The least singular value of E is noise of the fit, of 1e-3 of the largest.
        near(readout.condition.unwrap(), &theirs["condition"], 1e-2);

        let mut truncation = map.truncation(decomposition, x).unwrap();
        assert_eq!((truncation.rank(), truncation.full_rank()), (0, CHANNELS));
        // Forth and back: every rank is the same whichever way it is reached.
        for rank in [3, 1, 12, 3, 0, 12, 1, 0] {
            let ours = wide(&truncation.at(rank).unwrap());
            let error = relative(&ours, fixture.get(&format!("{name}.rank_{rank}")));
            // The first two singular values of W are near each other, and so their vectors loose.
            assert!(error < 5e-5, "{name} at rank {rank} is off by {error:.1e}");
            assert_eq!(truncation.rank(), rank);
        }
        let first = truncation.at(5).unwrap();
        for rank in (0..=12).chain((5..12).rev()) {
            truncation.at(rank).unwrap();
        }
        assert_eq!(truncation.at(5).unwrap(), first);
        // Nothing is cut at full rank, nor beyond.
        let error = relative(
            &wide(&truncation.at(99).unwrap()),
            &wide(&map.map(x).unwrap()),
        );
        assert!(error < 1e-6, "{name} at full rank is off by {error:.1e}");
    }
    assert_ne!(Cut::Map.title(), Cut::Edit.title());
}

#[test]
fn a_normalised_map_is_cut_in_normalised_space() {
    let (fixture, _) = fixture();
    let map = sums(&fixture).fit(RIDGE, true).unwrap();
    let x = &pictures(&fixture, "x")[0];
    let decomposition = Arc::new(Decomposition::new(affine(&map), Cut::Edit).unwrap());
    let mut truncation = map.truncation(decomposition, x).unwrap();
    let full = map.undone(truncation.at(CHANNELS).unwrap()).unwrap();
    assert!(relative(&wide(&full), &wide(&map.map(x).unwrap())) < 1e-6);
    let none = map.undone(truncation.at(0).unwrap()).unwrap();
    // At rank 0 every vector moves by the mean displacement.
    let delta = fixture.get("delta");
    for (i, (moved, x)) in wide(&none).iter().zip(wide(x)).enumerate() {
        assert!((moved - x - delta[i % CHANNELS]).abs() < 1e-4);
    }
}

#[test]
fn maps_without_a_matrix_cannot_be_cut() {
    let (fixture, _) = fixture();
    let mut sums = sums(&fixture);
    let decomposition = {
        let map = sums.fit(RIDGE, false).unwrap();
        Arc::new(Decomposition::new(affine(&map), Cut::Map).unwrap())
    };
    for kind in [
        MapKind::Identity,
        MapKind::Additive,
        MapKind::PerPosition { gamma: 1.0 },
    ] {
        let map = sums.fit(kind, false).unwrap();
        let x = &pictures(&fixture, "x")[0];
        let error = map.truncation(decomposition.clone(), x).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Request);
        assert!(error.what.contains(&kind.title()), "{error}");
    }
}

#[test]
fn the_bias_is_counted_once() {
    let (fixture, numbers) = fixture();
    let map = sums(&fixture).fit(RIDGE, false).unwrap();
    let x = &pictures(&fixture, "x")[0];
    let ours = bias_readout(affine(&map), x).unwrap();
    let theirs = &numbers["bias"];
    for (ours, name) in [
        (ours.linear_share.unwrap(), "share"),
        (ours.cosine.unwrap(), "cosine"),
        (ours.bias_norm, "norm"),
    ] {
        let theirs = number(&theirs[name]);
        assert!(
            (ours / theirs - 1.0).abs() < 1e-4,
            "{name}: {ours} against {theirs}"
        );
    }
    // W = 0 is all bias, b = 0 none of it.
    let only_bias = AffineMap::from_bias(Mat::zeros(2, 2), &[3.0, 4.0], vec![1.0, 1.0]).unwrap();
    let x = FeatureMap::from_vectors([2, 1, 1], vec![1.0, 2.0]).unwrap();
    let readout = bias_readout(&only_bias, &x).unwrap();
    assert_eq!((readout.linear_share, readout.cosine), (Some(0.0), None));
    assert_eq!(readout.bias_norm, 5.0);
    let no_bias = AffineMap::from_bias(Mat::identity(2, 2), &[0.0; 2], vec![7.0, 1.0]).unwrap();
    let readout = bias_readout(&no_bias, &x).unwrap();
    assert!((readout.linear_share.unwrap() - 1.0).abs() < 1e-12);
    assert!((readout.cosine.unwrap() - 1.0).abs() < 1e-12);
    // With a bias of Wx's own size and direction, a second b would show as a share of 2/3.
    let even = AffineMap::from_bias(Mat::identity(2, 2), &[1.0, 2.0], vec![0.0; 2]).unwrap();
    assert!((bias_readout(&even, &x).unwrap().linear_share.unwrap() - 0.5).abs() < 1e-12);
    assert!((f64::from(even.apply(&x).unwrap().vectors()[0]) - 2.0).abs() < 1e-6);
}

#[test]
fn procrustes_keeps_its_means() {
    // A rotation about a point far from zero: without the means no rotation fits it.
    let channels = 6;
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let values = gaussian(&mut rng, channels * channels);
    let rotation = Mat::from_fn(channels, channels, |i, j| values[i * channels + j])
        .qr()
        .compute_Q();
    let n = 400;
    let x: Vec<f32> = gaussian(&mut rng, n * channels)
        .iter()
        .map(|v| (v + 10.0) as f32)
        .collect();
    let y: Vec<f32> = x
        .chunks_exact(channels)
        .flat_map(|x| {
            (0..channels)
                .map(|i| {
                    let turned = (0..channels).map(|j| rotation[(i, j)] * (f64::from(x[j]) - 10.0));
                    (turned.sum::<f64>() - 5.0) as f32
                })
                .collect::<Vec<_>>()
        })
        .collect();
    let map = |values: &[f32]| FeatureMap::from_vectors([channels, 1, n], values).unwrap();
    let mut sums = FitSums::new(channels, vec![]);
    sums.add(&map(&x), &map(&y)).unwrap();
    let fitted = sums.fit(MapKind::Procrustes, false).unwrap();
    let error = relative(&wide(&fitted.map(&map(&x)).unwrap()), &wide(&map(&y)));
    assert!(error < 1e-5, "off by {error:.1e}");
    assert!(
        relative(
            &entries(affine(&fitted).weight()),
            &entries(rotation.as_ref())
        ) < 1e-5
    );
    // The same matrix without its means misses by more than the vectors are long.
    let forgotten =
        AffineMap::from_bias(affine(&fitted).weight().to_owned(), &[0.0; 6], vec![0.0; 6]);
    let error = relative(
        &wide(&forgotten.unwrap().apply(&map(&x)).unwrap()),
        &wide(&map(&y)),
    );
    assert!(error > 1.0, "without means it is off by {error}");
}

#[test]
fn displacements_are_read_as_by_scipy() {
    let (fixture, numbers) = fixture();
    let map = sums(&fixture).fit(RIDGE, false).unwrap();
    let (x, y) = (&pictures(&fixture, "x")[0], &pictures(&fixture, "y")[0]);
    let mapped = map.map(x).unwrap();
    let ours = displacement_readout(x, y, &mapped).unwrap();
    let line = ours.regression.unwrap();
    for (ours, name) in [
        (ours.cosine.unwrap(), "cosine"),
        (ours.endpoint_error, "endpoint_error"),
        (line.slope, "slope"),
        (line.intercept, "intercept"),
        (line.rmse, "rmse"),
    ] {
        let theirs = number(&numbers["displacement"][name]);
        assert!(
            (ours - theirs).abs() < 1e-4 * theirs.abs().max(0.1),
            "{name}: {ours}, {theirs}"
        );
    }
    // The target itself is reached along a line of slope 1; no displacement has no direction.
    let own = displacement_readout(x, y, y).unwrap();
    assert_eq!(own.endpoint_error, 0.0);
    assert!((own.regression.unwrap().slope - 1.0).abs() < 1e-12);
    let still = displacement_readout(x, x, x).unwrap();
    assert_eq!((still.cosine, still.regression), (None, None));
    let other = FeatureMap::from_vectors([CHANNELS, 1, 1], vec![0.0; CHANNELS]).unwrap();
    assert!(displacement_readout(x, y, &other).is_err());

    // The control moves as far, elsewhere.
    let norms = |to: &FeatureMap| -> Vec<f64> {
        let pairs = wide(to)
            .into_iter()
            .zip(wide(x))
            .map(|(to, from)| to - from);
        let moved: Vec<f64> = pairs.collect();
        moved.chunks_exact(CHANNELS).map(tiny::norm).collect()
    };
    for factor in [0.5, 1.0, 2.0] {
        let control = matched_magnitude(x, &mapped, factor, 3).unwrap();
        for (control, mapped) in norms(&control).iter().zip(norms(&mapped)) {
            assert!((control - factor * mapped).abs() < 1e-4);
        }
        assert_eq!(control, matched_magnitude(x, &mapped, factor, 3).unwrap());
        assert_ne!(control, matched_magnitude(x, &mapped, factor, 4).unwrap());
        let readout = displacement_readout(x, y, &control).unwrap();
        assert!(readout.cosine.unwrap().abs() < 0.3);
    }
}

#[test]
fn maps_compose_in_order_and_recur() {
    let (fixture, _) = fixture();
    let mut sums = sums(&fixture);
    let a = sums.fit(RIDGE, false).unwrap();
    let b = sums.fit(MapKind::Procrustes, true).unwrap();
    let c = sums.fit(MapKind::Procrustes, false).unwrap();
    let x = &pictures(&fixture, "x")[0];
    let there = compose(&[&a, &b], x).unwrap();
    assert_eq!(there, b.map(&a.map(x).unwrap()).unwrap());
    assert_ne!(there, compose(&[&b, &a], x).unwrap());
    assert_eq!(&compose(&[], x).unwrap(), x);
    // Two affine maps are one.
    let one = affine(&a).then(affine(&c)).unwrap();
    let error = relative(
        &wide(&one.apply(x).unwrap()),
        &wide(&compose(&[&a, &c], x).unwrap()),
    );
    assert!(error < 1e-6, "off by {error:.1e}");
    // Recursion: a rotation by a twelfth of the circle about its own point is back after twelve steps.
    let (sin, cos) = (std::f64::consts::TAU / 12.0).sin_cos();
    let turn = Mat::from_fn(2, 2, |i, j| {
        if i == j {
            cos
        } else if i < j {
            -sin
        } else {
            sin
        }
    });
    let map = EditMap {
        kind: MapKind::Linear,
        reorder: vec![],
        normalisation: None,
        fitted: Fitted::Affine(AffineMap::new(turn, vec![1.0, 2.0], vec![1.0, 2.0]).unwrap()),
    };
    let x = FeatureMap::from_vectors([2, 1, 1], vec![3.0, -1.0]).unwrap();
    let steps = recurse(&map, &x, 12).unwrap();
    assert_eq!(steps.len(), 12);
    assert!(relative(&wide(&steps[11]), &wide(&x)) < 1e-5);
    assert!((wide(&steps[5])[0] - -1.0).abs() < 1e-5);
    assert_eq!(steps[1], map.map(&steps[0]).unwrap());
}

#[test]
fn gamma_is_chosen_from_sums_alone() {
    let (fixture, numbers) = fixture();
    let mut all = sums(&fixture);
    let moments = all.moments().unwrap();
    for (kind, name) in [(MapKind::Linear, "linear"), (RIDGE, "ridge")] {
        let map = all.fit(kind, false).unwrap();
        let ours = affine(&map).mean_squared_error(&moments).unwrap();
        let theirs = number(&numbers["mse"][name]);
        assert!(
            (ours / theirs - 1.0).abs() < 1e-4,
            "{name}: {ours} against {theirs}"
        );
    }
    // Few noisy training vectors: the least error on others is at neither end.
    let planted = Planted::new(24, 24, 6);
    let noisy = |pictures: std::ops::Range<u64>| -> Moments {
        let mut sums = FitSums::new(24, vec![]);
        for i in pictures {
            let x = planted.picture(i);
            let noise = gaussian(&mut ChaCha8Rng::seed_from_u64(i), 24 * 20);
            let y: Vec<f32> = (planted.edited(&x).vectors().iter().zip(noise))
                .map(|(y, noise)| y + noise as f32)
                .collect();
            sums.add(&x, &FeatureMap::from_vectors(x.shape(), y).unwrap())
                .unwrap();
        }
        sums.moments().unwrap()
    };
    let (train, validation) = (noisy(0..2), noisy(10..20));
    let candidates = [1e-6, 1e-3, 0.1, 1.0, 10.0, 1e4];
    let fit = |gamma| ridge_to_identity(&train, gamma);
    let (gamma, errors) = choose_gamma(fit, &candidates, &validation).unwrap();
    let best = candidates
        .iter()
        .position(|&candidate| candidate == gamma)
        .unwrap();
    assert!((1..5).contains(&best), "γ = {gamma} of {errors:?}");
    assert!(errors.iter().all(|&error| error >= errors[best]));
    assert!(choose_gamma(fit, &[], &validation).is_err());
}

#[test]
fn photographs_are_split_and_not_their_crops() {
    let names: Vec<String> = (0..20)
        .flat_map(|i| vec![format!("photo {i}"); 1 + i % 3])
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let shares = Shares {
        validation: 0.05,
        held_out: 0.2,
    };
    let parts = split_by_photograph(&names, shares, 1).unwrap();
    assert_eq!(parts.len(), names.len());
    let mut photographs = std::collections::BTreeMap::new();
    for (name, part) in names.iter().zip(&parts) {
        assert_eq!(photographs.entry(*name).or_insert(*part), part, "{name}");
    }
    let count = |part| photographs.values().filter(|&&other| other == part).count();
    assert_eq!(
        [
            count(Part::Train),
            count(Part::Validation),
            count(Part::HeldOut)
        ],
        [15, 1, 4]
    );
    assert_eq!(parts, split_by_photograph(&names, shares, 1).unwrap());
    assert_ne!(parts, split_by_photograph(&names, shares, 2).unwrap());
    // The order of the items does not matter.
    let reversed: Vec<&str> = names.iter().rev().copied().collect();
    let back: Vec<Part> = split_by_photograph(&reversed, shares, 1).unwrap();
    assert!(back.iter().rev().eq(&parts));
    for (validation, held_out, photographs) in [
        (0.5, 0.5, &names[..]),
        (-0.1, 0.2, &names[..]),
        (0.0, f64::NAN, &names[..]),
        (0.1, 0.1, &["a", "b"][..]),
        (0.0, 0.0, &[][..]),
    ] {
        let shares = Shares {
            validation,
            held_out,
        };
        let error = split_by_photograph(photographs, shares, 0).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Request);
    }
}

fn stored(map: EditMap) -> MapFile {
    MapFile {
        encoder: "some_encoder".into(),
        weights_id: "seed 3".into(),
        stage: "blocks.4".into(),
        manipulations: vec![Manipulation::Hue { degrees: 60.0 }, Manipulation::Grayscale],
        data_sha256: "ab".repeat(32),
        photographs: PICTURES,
        vectors: PICTURES * ROWS * COLUMNS,
        map,
    }
}

#[test]
fn maps_are_saved_and_loaded_bit_for_bit() {
    let (fixture, _) = fixture();
    let mut sums = sums(&fixture);
    let folder = tempfile::tempdir().unwrap();
    let x = &pictures(&fixture, "x")[0];
    for (i, kind) in [
        MapKind::Identity,
        MapKind::Additive,
        MapKind::Linear,
        RIDGE,
        MapKind::RidgeToIdentity { gamma: 0.3 },
        MapKind::Procrustes,
        MapKind::PerPosition { gamma: 2.0 },
    ]
    .into_iter()
    .enumerate()
    {
        let mut map = sums.fit(kind, i % 2 == 0).unwrap();
        map.reorder = vec![GridSymmetry::Rotate180, GridSymmetry::MirrorVertical];
        let file = stored(map);
        // In a folder that is made.
        let path = folder.path().join("new").join(format!("{i}.safetensors"));
        save(&file, &path).unwrap();
        let back = load(&path).unwrap();
        assert_eq!(back.map.kind, kind);
        assert_eq!(back.map.reorder, file.map.reorder);
        assert_eq!(back.map.normalisation, file.map.normalisation);
        assert_eq!(back.map.map(x).unwrap(), file.map.map(x).unwrap());
        assert_eq!(back.manipulations, file.manipulations);
        assert_eq!(
            (back.encoder, back.weights_id, back.stage, back.data_sha256),
            (file.encoder, file.weights_id, file.stage, file.data_sha256)
        );
        assert_eq!(
            (back.photographs, back.vectors),
            (file.photographs, file.vectors)
        );
    }
    // Nothing is left beside the files.
    let names = fs::read_dir(folder.path().join("new")).unwrap();
    assert_eq!(names.count(), 7);
}

#[test]
fn damaged_maps_are_refused_with_a_reason() {
    let (fixture, _) = fixture();
    let map = sums(&fixture).fit(RIDGE, true).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("map.safetensors");
    save(&stored(map), &path).unwrap();
    let whole = fs::read(&path).unwrap();
    let refusal = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let error = load(&path).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Weights);
        assert!(error.what.contains("map.safetensors"), "{error}");
        error.why
    };
    for length in [0, 7, 8, 100, whole.len() / 2, whole.len() - 1] {
        let why = refusal(&whole[..length]);
        assert!(
            why.contains("not a whole safetensors file"),
            "{length}: {why}"
        );
    }
    // Text of the header, changed in place where the length allows.
    let replaced = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let at = whole
            .windows(from.len())
            .position(|window| window == from.as_bytes());
        let at = at.unwrap_or_else(|| panic!("{from} is in the header"));
        let mut bytes = whole.clone();
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        bytes
    };
    let why = refusal(&replaced("etascope_map", "another_prog"));
    assert!(why.contains("not a map of this program"), "{why}");
    let why = refusal(&replaced("\\\"format\\\":1", "\\\"format\\\":9"));
    assert!(why.contains("layout 9"), "{why}");
    let why = refusal(&replaced("\\\"stage\\\"", "\\\"stagf\\\""));
    assert!(why.contains("header is damaged"), "{why}");
    let why = refusal(&replaced("\"source_mean\"", "\"source_maen\""));
    assert!(why.contains("source_mean is missing"), "{why}");
    // A number that is not finite, in the last array.
    let mut bytes = whole.clone();
    let end = bytes.len();
    bytes[end - 8..].copy_from_slice(&f64::NAN.to_le_bytes());
    let why = refusal(&bytes);
    assert!(why.contains("not finite"), "{why}");
    // Another file of the same format, and none at all.
    let weights = fs::read(tiny::golden_path("edits/maps.safetensors")).unwrap();
    assert!(refusal(&weights).contains("not a map of this program"));
    assert_eq!(
        load(&folder.path().join("absent")).err().unwrap().kind,
        ErrorKind::Weights
    );
    // Where nothing can be written.
    fs::write(folder.path().join("file"), "x").unwrap();
    let map = sums(&fixture).fit(MapKind::Identity, false).unwrap();
    let error = save(&stored(map), &folder.path().join("file/map.safetensors")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Output);
}

#[test]
fn what_does_not_fit_is_refused() {
    let map = |shape: [usize; 3]| {
        FeatureMap::from_vectors(shape, vec![1.0; shape.iter().product()]).unwrap()
    };
    let mut sums = FitSums::new(3, vec![GridSymmetry::Rotate90]);
    assert_eq!(sums.fit(RIDGE, false).unwrap_err().kind, ErrorKind::Request);
    sums.add(&map([3, 2, 4]), &map([3, 4, 2])).unwrap();
    for (x, y) in [
        ([3, 2, 4], [3, 2, 4]),
        ([3, 4, 2], [3, 2, 4]),
        ([2, 2, 4], [2, 4, 2]),
    ] {
        let error = sums.add(&map(x), &map(y)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Request);
    }
    assert_eq!(sums.pictures(), 1);
    let nan = FeatureMap::from_vectors([3, 4, 2], vec![f32::NAN; 24]).unwrap();
    assert_eq!(
        sums.add(&map([3, 2, 4]), &nan).unwrap_err().kind,
        ErrorKind::Numeric
    );
    let error = sums
        .fit(MapKind::PerPosition { gamma: 1.0 }, false)
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Request);
    // Constant vectors have no spread; the map is their mean.
    let fitted = sums.fit(RIDGE, true).unwrap();
    let mapped = fitted.map(&map([3, 2, 4])).unwrap();
    assert!(
        mapped
            .vectors()
            .iter()
            .all(|&value| (value - 1.0).abs() < 1e-6)
    );
    assert!(sums.fit(MapKind::Linear, false).is_ok());
    assert!(fitted.map(&map([4, 2, 4])).is_err());
    assert!(AffineMap::new(Mat::zeros(2, 3), vec![0.0; 2], vec![0.0; 2]).is_err());
    assert!(AffineMap::new(Mat::zeros(2, 2), vec![0.0; 2], vec![f64::NAN; 2]).is_err());
    assert!(FitSums::with_positions([4096, 100, 100], vec![]).is_err());
    // What is undefined of a spectrum is not a number that could be taken for one.
    assert_eq!(SpectrumReadout::of(&[]), None);
    assert_eq!(SpectrumReadout::of(&[0.0, 0.0]), None);
    assert_eq!(SpectrumReadout::of(&[2.0, 0.0]).unwrap().condition, None);
    let flat = SpectrumReadout::of(&[1e200; 4]).unwrap();
    assert!((flat.effective_rank - 4.0).abs() < 1e-12 && (flat.stable_rank - 4.0).abs() < 1e-12);
}
