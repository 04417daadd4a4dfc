//! Maps trained by gradient descent: against PyTorch, against ridge, against themselves after a pause.

mod tiny;

use burn::tensor::{Device, Tensor, TensorData};
use etascope::ErrorKind;
use etascope::device::ComputeDevice;
use etascope::encoders::layers::Placement;
use etascope::features::FeatureMap;
use etascope::geometry::learn::{AdamW, Parameters};
use etascope::geometry::maps::trained::{
    Loss, Network, NetworkKind, Pair, Pass, Step, Trainer, TrainingConfig, TrainingData, score,
};
use etascope::geometry::maps::{
    EditMap, FeatureMapping, FitSums, Fitted, MapFile, MapKind, load, save,
};
use etascope::images::GridSymmetry;
use tiny::{Fixture, norm, relative, values};

const KINDS: [(NetworkKind, &str); 5] = [
    (NetworkKind::Linear, "linear"),
    (NetworkKind::Mlp, "mlp"),
    (NetworkKind::Cnn, "cnn"),
    (NetworkKind::Transformer, "transformer"),
    (
        NetworkKind::TransformerWithPositions,
        "transformer_with_positions",
    ),
];

const LOSSES: [(Loss, &str); 4] = [
    (Loss::Blend, "blend"),
    (Loss::Mse, "mse"),
    (Loss::Huber, "huber"),
    (Loss::MeanCosine, "mean_cosine"),
];

/// f32 against f64 through a few dozen operations.
const BOUND: f64 = 2e-5;

fn fixture() -> Fixture {
    Fixture::read("trained/trained.safetensors")
}

fn at() -> Placement {
    Placement::f32(&Device::flex())
}

fn tensor<const D: usize>(fixture: &Fixture, name: &str) -> Tensor<D> {
    let data = TensorData::new(fixture.get(name).to_vec(), fixture.shape(name).to_vec());
    Tensor::from_data(data, at().options())
}

#[test]
fn losses_and_their_gradients_are_those_of_pytorch() {
    let fixture = fixture();
    for positions in [9, 10] {
        let of = |name: &str| format!("loss.{positions}.{name}");
        for (loss, name) in LOSSES {
            let mapped = tensor::<3>(&fixture, &of("mapped"))
                .autodiff()
                .require_grad();
            let target = tensor::<3>(&fixture, &of("target")).autodiff();
            let value = loss.of(mapped.clone(), target).expect("a loss");
            let found = values(value.clone().inner());
            let error = relative(&found, fixture.get(&of(name)));
            assert!(error <= BOUND, "{name}: {error:e}");
            let gradient = mapped.grad(&value.backward()).expect("it is tracked");
            let wanted = fixture.get(&format!("{}.gradient", of(name)));
            let error = relative(&values(gradient), wanted);
            assert!(error <= BOUND, "gradient of {name}: {error:e}");
        }
    }
}

#[test]
fn a_loss_of_zero_vectors_has_a_finite_gradient() {
    for (loss, name) in LOSSES {
        let zeros = Tensor::<3>::zeros([2, 3, 4], &Device::flex());
        let mapped = zeros.clone().autodiff().require_grad();
        let value = loss.of(mapped.clone(), zeros.autodiff()).expect("a loss");
        let gradient = mapped.grad(&value.backward()).expect("it is tracked");
        assert!(
            values(gradient).iter().all(|value| value.is_finite()),
            "{name}"
        );
    }
}

#[test]
fn steps_of_adamw_are_those_of_pytorch() {
    let fixture = fixture();
    let mut optimiser = AdamW::new(0.1);
    let mut value: Tensor<1> = tensor(&fixture, "adamw.start");
    for step in 0..5 {
        let gradient = tensor(&fixture, &format!("adamw.{step}.gradient"));
        value = optimiser.step(0, value, gradient, 0.01);
        let wanted = fixture.get(&format!("adamw.{step}.value"));
        let error = relative(&values(value.clone()), wanted);
        assert!(error <= 1e-6, "step {step}: {error:e}");
    }
}

fn network(kind: NetworkKind) -> Network {
    Network {
        kind,
        shape: [6, 3, 4],
        hidden: 16,
    }
}

/// A network's parameters from the fixture.
fn parameters(fixture: &Fixture, kind: NetworkKind, name: &str) -> Parameters {
    let declared = network(kind).parameters();
    let in_file = fixture
        .names()
        .filter(|key| key.starts_with(&format!("{name}.value.")));
    assert_eq!(in_file.count(), declared.len(), "{name}");
    let values = declared.iter().map(|parameter| {
        let key = format!("{name}.value.{}", parameter.name);
        assert_eq!(fixture.shape(&key), parameter.shape, "{key}");
        fixture.get(&key).iter().map(|&v| v as f32).collect()
    });
    let values = values.collect();
    Parameters::from_values(declared, values, &at())
}

#[test]
fn networks_and_their_gradients_are_those_of_pytorch() {
    let fixture = fixture();
    for (kind, name) in KINDS {
        let parameters = parameters(&fixture, kind, name);
        let x: Tensor<3> = tensor(&fixture, "x");
        let mut pass = Pass::inference();
        let mapped = network(kind).forward(x.clone(), &parameters.live(), &mut pass);
        let error = relative(&values(mapped), fixture.get(&format!("{name}.mapped")));
        assert!(error <= BOUND, "{name}: {error:e}");

        let live = parameters.tracked();
        let mapped = network(kind).forward(x.autodiff(), &live, &mut Pass::inference());
        let y = tensor::<3>(&fixture, "y").autodiff();
        let gradients = Loss::Blend.of(mapped, y).expect("a loss").backward();
        let live = live.into_values();
        // Of each by itself, relative to the largest: some are nearly zero.
        let wanted = |parameter: &str| fixture.get(&format!("{name}.gradient.{parameter}"));
        let declared = parameters.declared().iter().zip(&live);
        let declared: Vec<_> = declared
            .filter(|(parameter, _)| parameter.trained)
            .collect();
        let largest = declared.iter().map(|(p, _)| norm(wanted(&p.name)));
        let largest = largest.fold(0.0, f64::max);
        for (parameter, live) in declared {
            let found = values(live.grad(&gradients).expect("it has a part in the loss"));
            let wanted = wanted(&parameter.name);
            let error: Vec<f64> = found.iter().zip(wanted).map(|(a, b)| a - b).collect();
            let error = norm(&error) / largest;
            assert!(error <= BOUND, "{name} {}: {error:e}", parameter.name);
        }
    }
}

#[test]
fn running_statistics_are_those_of_pytorch() {
    let fixture = fixture();
    let parameters = parameters(&fixture, NetworkKind::Cnn, "cnn");
    let mut pass = Pass::training(3, 0);
    let x: Tensor<3> = tensor(&fixture, "x");
    network(NetworkKind::Cnn).forward(x.autodiff(), &parameters.tracked(), &mut pass);
    let statistics = pass.into_statistics();
    assert_eq!(statistics.len(), 2);
    for (name, value) in statistics {
        let error = relative(&values(value), fixture.get(&format!("cnn.after.{name}")));
        assert!(error <= BOUND, "{name}: {error:e}");
    }
}

#[test]
fn dropout_zeroes_its_share_and_keeps_the_mean() {
    let x = Tensor::<3>::ones([40, 50, 10], &Device::flex());
    let dropped = values(Pass::training(5, 2).dropout(x.clone(), 0.2));
    let zeros = dropped.iter().filter(|&&value| value == 0.0).count() as f64;
    // 20,000 draws: three standard errors are 0.0085.
    assert!((zeros / 20_000.0 - 0.2).abs() < 0.0085, "{zeros}");
    assert!(dropped.iter().all(|&v| v == 0.0 || (v - 1.25).abs() < 1e-6));
    assert_eq!(
        dropped,
        values(Pass::training(5, 2).dropout(x.clone(), 0.2))
    );
    assert_ne!(
        dropped,
        values(Pass::training(5, 3).dropout(x.clone(), 0.2))
    );
    assert_eq!(values(Pass::inference().dropout(x.clone(), 0.2)), values(x));
}

/// Numbers of roughly unit variance without pattern, the same at every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f32 {
        let mut sum = 0.0;
        for _ in 0..3 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            sum += (self.0 >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
        }
        (2.0 * sum) as f32
    }

    fn map(&mut self, shape: [usize; 3]) -> FeatureMap {
        let vectors: Vec<f32> = (0..shape.iter().product()).map(|_| self.next()).collect();
        FeatureMap::from_vectors(shape, vectors).expect("a map")
    }
}

/// Pairs of an affine map with a little noise; channels have means and spreads of their own.
fn planted(count: usize, shape: [usize; 3], seed: u64) -> Vec<Pair> {
    let channels = shape[0];
    // The map is that of every call, the vectors those of the seed.
    let mut fixed = Noise(77);
    let weight: Vec<f32> = (0..channels * channels)
        .map(|k| 0.35 * fixed.next() + if k % (channels + 1) == 0 { 1.0 } else { 0.0 })
        .collect();
    let bias: Vec<f32> = (0..channels).map(|_| fixed.next()).collect();
    let mut noise = Noise(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    (0..count)
        .map(|_| {
            let raw = noise.map(shape);
            let x = raw.vectors().iter().enumerate().map(|(k, value)| {
                let channel = (k % channels) as f32;
                value * (0.5 + 0.1 * channel) + 0.3 * channel - 1.0
            });
            let x: Vec<f32> = x.collect();
            let y = x.chunks_exact(channels).flat_map(|x| {
                let row = |i: usize| &weight[i * channels..][..channels];
                let dot = |i: usize| row(i).iter().zip(x).map(|(w, x)| w * x).sum::<f32>();
                (0..channels).map(|i| dot(i) + bias[i]).collect::<Vec<_>>()
            });
            let y: Vec<f32> = y.collect();
            let y: Vec<f32> = y.into_iter().map(|y| y + 0.1 * noise.next()).collect();
            Pair {
                original: FeatureMap::from_vectors(shape, x).expect("a map"),
                edited: FeatureMap::from_vectors(shape, y).expect("a map"),
            }
        })
        .collect()
}

fn trainer(kind: NetworkKind, config: TrainingConfig, data: TrainingData) -> Trainer {
    let cpu = ComputeDevice::cpu();
    Trainer::new(kind, 32, config, Vec::new(), true, data, &cpu).expect("a sound training")
}

fn run(trainer: &mut Trainer) {
    while trainer.step().expect("a step") != Step::Finished {}
}

#[test]
fn the_trained_linear_map_reaches_the_held_out_score_of_ridge() {
    let shape = [8, 4, 4];
    let (train, held_out) = (planted(60, shape, 1), planted(20, shape, 2));
    let mut sums = FitSums::new(8, Vec::new());
    for pair in &train {
        sums.add(&pair.original, &pair.edited).expect("a pair");
    }
    let ridge = sums
        .fit(MapKind::Ridge { gamma: 1.0 }, true)
        .expect("a fit");
    let ridge = score(&ridge, &held_out).expect("a score").expect("defined");
    for loss in [Loss::Blend, Loss::Mse] {
        let config = TrainingConfig {
            loss,
            rate: 1e-2,
            batch: 10,
            epochs: 400,
            patience: 60,
            ..TrainingConfig::default()
        };
        let data = TrainingData {
            train: train.clone(),
            validation: planted(5, shape, 3),
            held_out: held_out.clone(),
        };
        let mut trainer = trainer(NetworkKind::Linear, config, data);
        run(&mut trainer);
        let map = trainer.map().expect("a map");
        let trained = score(&map, &held_out).expect("a score").expect("defined");
        println!("{loss:?}: ridge {ridge:.5}, trained {trained:.5}");
        // Ridge is all but optimal here: the margin is what AdamW leaves of its way.
        assert!(trained >= ridge - 5e-4, "{trained} against {ridge}");
        let best = trainer
            .history()
            .iter()
            .map(|report| report.held_out_cosine);
        assert!(best.flatten().any(|cosine| (cosine - trained).abs() < 1e-6));
    }
}

#[test]
fn every_kind_overfits_a_few_pairs() {
    for (kind, name) in KINDS {
        // The edit is no function of the vectors that a smooth map would find: random targets.
        let shape = [4, 3, 3];
        let mut noise = Noise(5);
        let few: Vec<Pair> = (0..2)
            .map(|_| Pair {
                original: noise.map(shape),
                edited: noise.map(shape),
            })
            .collect();
        let is_linear = kind == NetworkKind::Linear;
        let few = if is_linear { planted(2, shape, 9) } else { few };
        let config = TrainingConfig {
            loss: Loss::Mse,
            rate: if name.starts_with("transformer") {
                2e-3
            } else {
                1e-2
            },
            decay: 0.0,
            epochs: 500,
            patience: 500,
            ..TrainingConfig::default()
        };
        let data = TrainingData {
            train: few.clone(),
            validation: few.clone(),
            held_out: Vec::new(),
        };
        let cpu = ComputeDevice::cpu();
        let mut trainer =
            Trainer::new(kind, 64, config, Vec::new(), true, data, &cpu).expect("sound");
        run(&mut trainer);
        let history = trainer.history();
        let least = history.iter().map(|report| report.validation_loss);
        let least = least.fold(f64::INFINITY, f64::min);
        println!(
            "{name}: from {:.3} to {least:.4}",
            history[0].validation_loss
        );
        // The vectors have unit variance: a map that knows nothing leaves 1 or more.
        assert!(least < 0.1, "{name} leaves {least}");
        assert!(
            trainer
                .history()
                .iter()
                .all(|r| r.held_out_cosine.is_none())
        );
    }
}

fn short(seed: u64) -> TrainingConfig {
    TrainingConfig {
        rate: 1e-3,
        batch: 4,
        epochs: 3,
        seed,
        ..TrainingConfig::default()
    }
}

fn some_data() -> TrainingData {
    TrainingData {
        train: planted(10, [5, 3, 3], 1),
        validation: planted(3, [5, 3, 3], 2),
        held_out: planted(2, [5, 3, 3], 3),
    }
}

fn weights(map: &EditMap) -> Vec<Vec<u32>> {
    let Fitted::Trained(map) = &map.fitted else {
        panic!("a trained map");
    };
    let arrays = map.arrays().expect("arrays");
    let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect();
    arrays.into_iter().map(|(_, values)| bits(values)).collect()
}

#[test]
fn one_seed_gives_one_map_to_the_last_bit() {
    for (kind, name) in KINDS {
        let map = |seed| {
            let mut trainer = trainer(kind, short(seed), some_data());
            run(&mut trainer);
            weights(&trainer.map().expect("a map"))
        };
        assert_eq!(map(4), map(4), "{name}");
        assert_ne!(map(4), map(5), "{name}");
    }
}

#[test]
fn a_resumed_training_ends_where_an_uninterrupted_one_does() {
    let folder = tempfile::tempdir().expect("a folder");
    for (kind, name) in KINDS {
        let mut whole = trainer(kind, short(7), some_data());
        run(&mut whole);
        // Within the first epoch, between two, and before anything.
        for steps in [2, 3, 0, 5] {
            let path = folder.path().join(format!("{name}.{steps}.safetensors"));
            let mut first = trainer(kind, short(7), some_data());
            for _ in 0..steps {
                first.step().expect("a step");
            }
            first.save(&path).expect("a checkpoint");
            let mut second = trainer(kind, short(7), some_data());
            second.resume(&path).expect("the same training");
            run(&mut second);
            assert_eq!(second.history(), whole.history(), "{name} after {steps}");
            let [second, whole] =
                [&second, &whole].map(|trainer| weights(&trainer.map().expect("a map")));
            assert_eq!(second, whole, "{name} after {steps}");
        }
    }
}

#[test]
fn a_checkpoint_of_another_training_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("checkpoint.safetensors");
    let mut first = trainer(NetworkKind::Mlp, short(1), some_data());
    first.step().expect("a step");
    first.save(&path).expect("a checkpoint");
    let refused = |mut other: Trainer, path: &std::path::Path| {
        other.resume(path).expect_err("it is refused").kind
    };
    let other_kind = trainer(NetworkKind::Linear, short(1), some_data());
    assert_eq!(refused(other_kind, &path), ErrorKind::Request);
    let other_seed = trainer(NetworkKind::Mlp, short(2), some_data());
    assert_eq!(refused(other_seed, &path), ErrorKind::Request);
    let mut data = some_data();
    data.train.swap(0, 1);
    let other_data = trainer(NetworkKind::Mlp, short(1), data);
    assert_eq!(refused(other_data, &path), ErrorKind::Request);
    // More epochs than were planned are allowed.
    let longer = TrainingConfig {
        epochs: 9,
        ..short(1)
    };
    let mut longer = trainer(NetworkKind::Mlp, longer, some_data());
    longer.resume(&path).expect("the same but for its length");

    let whole = std::fs::read(&path).expect("the checkpoint");
    for cut in [0, 7, 40, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..cut]).expect("a file");
        let same = trainer(NetworkKind::Mlp, short(1), some_data());
        assert_eq!(refused(same, &path), ErrorKind::Weights, "cut at {cut}");
    }
}

#[test]
fn training_stops_when_validation_no_longer_improves_and_keeps_the_best() {
    let config = TrainingConfig {
        loss: Loss::Mse,
        rate: 3e-2,
        decay: 0.0,
        epochs: 400,
        patience: 6,
        ..TrainingConfig::default()
    };
    // Random targets: what is learnt of two pairs is worse than nothing for others.
    let mut noise = Noise(21);
    let mut pairs = |count: usize| -> Vec<Pair> {
        let pair = |_| Pair {
            original: noise.map([4, 3, 3]),
            edited: noise.map([4, 3, 3]),
        };
        (0..count).map(pair).collect()
    };
    let data = TrainingData {
        train: pairs(2),
        validation: pairs(2),
        held_out: Vec::new(),
    };
    let mut trainer = trainer(NetworkKind::Mlp, config, data);
    run(&mut trainer);
    let history = trainer.history();
    assert!(history.len() < 400);
    let losses: Vec<f64> = history.iter().map(|r| r.validation_loss).collect();
    let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
    let best = losses.iter().position(|&loss| loss == least).expect("some") + 1;
    assert_eq!(history.len(), best + 6);
    let map = trainer.map().expect("a map");
    let Fitted::Trained(map) = map.fitted else {
        panic!("a trained map");
    };
    assert_eq!(map.record().best_epoch, best);
}

#[test]
fn a_trained_map_comes_back_from_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    for (kind, name) in KINDS {
        let cpu = ComputeDevice::cpu();
        let turns = vec![GridSymmetry::MirrorHorizontal];
        let mut trainer =
            Trainer::new(kind, 32, short(3), turns, true, some_data(), &cpu).expect("sound");
        run(&mut trainer);
        let file = MapFile {
            encoder: "tiny".into(),
            weights_id: "seed 0".into(),
            stage: "blocks.2".into(),
            manipulations: Vec::new(),
            data_sha256: "00".into(),
            photographs: 10,
            vectors: 90,
            map: trainer.map().expect("a map"),
        };
        let path = folder.path().join(format!("{name}.safetensors"));
        save(&file, &path).expect("it is written");
        let read = load(&path).expect("it is read");
        assert_eq!(read.map.kind, file.map.kind);
        assert_eq!(weights(&read.map), weights(&file.map), "{name}");
        let picture = &some_data().held_out[0].original;
        let [before, after] = [&file.map, &read.map].map(|map| map.map(picture).expect("mapped"));
        assert_eq!(before, after, "{name}");
        assert_ne!(&before, picture);
        // The linear map and the mlp know no grid; the position code knows but one.
        let larger = Noise(3).map([5, 4, 4]);
        let is_bound = kind == NetworkKind::TransformerWithPositions;
        assert_eq!(read.map.map(&larger).is_err(), is_bound, "{name}");
        let wrong = Noise(3).map([6, 3, 3]);
        let error = read
            .map
            .map(&wrong)
            .expect_err("another number of channels");
        assert_eq!(error.kind, ErrorKind::Request);
        let whole = std::fs::read(&path).expect("the file");
        std::fs::write(&path, &whole[..whole.len() - 9]).expect("a file");
        assert_eq!(load(&path).expect_err("cut").kind, ErrorKind::Weights);
    }
}

#[test]
fn a_map_without_position_code_follows_a_permutation_of_the_positions() {
    // A mirror of the grid before the map or after it: the same for a transformer that cannot tell positions apart.
    for (kind, is_blind) in [
        (NetworkKind::Transformer, true),
        (NetworkKind::TransformerWithPositions, false),
    ] {
        let mut trainer = trainer(kind, short(3), some_data());
        run(&mut trainer);
        let map = trainer.map().expect("a map");
        let picture = some_data().held_out[0].original.clone();
        let mirrored = |map: &FeatureMap| {
            let [channels, rows, columns] = map.shape();
            let mirror = GridSymmetry::MirrorHorizontal;
            let vectors = mirror.apply(map.vectors(), rows, columns, channels);
            FeatureMap::from_vectors(map.shape(), vectors).expect("a map")
        };
        let before = map.map(&mirrored(&picture)).expect("mapped");
        let after = mirrored(&map.map(&picture).expect("mapped"));
        let [before, after] = [before, after].map(|map| {
            map.vectors()
                .iter()
                .map(|&v| f64::from(v))
                .collect::<Vec<_>>()
        });
        let error = relative(&before, &after);
        assert_eq!(error < 1e-5, is_blind, "{kind:?}: {error:e}");
    }
}

#[test]
fn what_cannot_be_trained_is_refused() {
    let cpu = ComputeDevice::cpu();
    let refused = |kind, hidden, config, data| {
        let trainer = Trainer::new(kind, hidden, config, Vec::new(), true, data, &cpu);
        trainer.err().expect("it is refused").kind
    };
    let mlp = NetworkKind::Mlp;
    for config in [
        TrainingConfig {
            rate: 0.0,
            ..short(0)
        },
        TrainingConfig {
            rate: f64::NAN,
            ..short(0)
        },
        TrainingConfig {
            decay: -1.0,
            ..short(0)
        },
        TrainingConfig {
            batch: 0,
            ..short(0)
        },
        TrainingConfig {
            epochs: 0,
            ..short(0)
        },
    ] {
        assert_eq!(refused(mlp, 32, config, some_data()), ErrorKind::Request);
    }
    let mut data = some_data();
    data.validation.clear();
    assert_eq!(refused(mlp, 32, short(0), data), ErrorKind::Request);
    let mut data = some_data();
    data.train.push(planted(1, [5, 3, 4], 1).remove(0));
    assert_eq!(refused(mlp, 32, short(0), data), ErrorKind::Request);
    let mut data = some_data();
    let broken = vec![f32::NAN; 45];
    data.train[0].edited = FeatureMap::from_vectors([5, 3, 3], broken).expect("a map");
    assert_eq!(refused(mlp, 32, short(0), data), ErrorKind::Numeric);
    let transformer = NetworkKind::Transformer;
    assert_eq!(
        refused(transformer, 12, short(0), some_data()),
        ErrorKind::Request
    );
    assert_eq!(refused(mlp, 0, short(0), some_data()), ErrorKind::Request);
    // A closed form is not to be had of it.
    let mut sums = FitSums::new(5, Vec::new());
    for pair in some_data().train {
        sums.add(&pair.original, &pair.edited).expect("a pair");
    }
    let kind = MapKind::Trained {
        network: mlp,
        loss: Loss::Blend,
    };
    let error = sums.fit(kind, true).expect_err("it is refused");
    assert_eq!(error.kind, ErrorKind::Request);
}
