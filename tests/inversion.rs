//! Pictures found from features: the gradient that is followed, known maps, a photograph, a changed target.

mod tiny;

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};
use etascope::ErrorKind;
use etascope::device::ComputeDevice;
use etascope::encoders::layers::Placement;
use etascope::encoders::registry::{self, LoadedEncoder};
use etascope::encoders::value::Value;
use etascope::encoders::{Readout, WeightsKind};
use etascope::features::FeatureMap;
use etascope::geometry::decode::{Decoder, Inversion, InversionConfig, Iterate};
use etascope::images::{Picture, bundled};
use etascope::metrics::{cosine, mse};
use tiny::{Tiny, values};

/// Numbers between −1 and 1 without pattern, the same at every run.
fn spread(len: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
        .collect()
}

fn tensor(pixels: &[f64], side: usize, at: &Placement) -> Tensor<4> {
    at.tensor(pixels.to_vec(), [1, 3, side, side])
}

/// A tiny network's stage in f64, searched toward the feature of a noise picture.
fn tiny_search(tiny: Tiny, config: InversionConfig) -> Inversion {
    let at = Placement::f64(&Device::flex());
    let (side, readout) = (tiny.side_px(), Readout::Stage(2));
    let encoder = tiny.load(&at);
    let noise: Vec<f64> = spread(3 * side * side, 5)
        .iter()
        .map(|v| 0.5 + 0.3 * v)
        .collect();
    let target = encoder.forward(Value::plain(tensor(&noise, side, &at)), &readout);
    let target = values(target.expect("a stage").into_primal());
    let shape = encoder.spec().readout_shape(&readout).expect("a stage");
    Inversion::of_map(
        Box::new(move |pixels| encoder.forward(pixels, &readout)),
        tiny.name().to_owned(),
        ComputeDevice::cpu(),
        at,
        [side; 2],
        shape,
        &target,
        config,
    )
    .expect("a sound search")
}

/// Central differences with steps of 1e-6 in f64 leave about 1e-10 / 1e-6 of the loss's own rounding.
const DIFFERENCE_BOUND: f64 = 1e-5;

#[test]
fn the_gradient_of_the_whole_loss_is_that_of_differences() {
    for tiny in tiny::BOTH {
        let config = InversionConfig {
            total_variation: 0.7,
            ..InversionConfig::default()
        };
        let mut search = tiny_search(tiny, config);
        let (_, gradients) = search.gradient().expect("a gradient");
        let lengths: Vec<usize> = gradients.iter().map(Vec::len).collect();
        assert!(lengths.len() >= 3, "64 px have levels of 64, 32, 16, 8 px");
        // Away from the grey picture, where total variation is at its flattest.
        for (level, &len) in lengths.iter().enumerate() {
            let start = spread(len, 11 + level as u64);
            let start = start.iter().map(|v| 0.4 * v).collect();
            search.nudge(level, start).expect("a level");
        }
        let (_, gradients) = search.gradient().expect("a gradient");
        for (level, gradient) in gradients.iter().enumerate() {
            let direction = spread(gradient.len(), 101 + level as u64);
            let step = 1e-6;
            let mut loss_at = |by: f64| {
                let change = direction.iter().map(|v| by * v).collect();
                search.nudge(level, change).expect("a level");
                search.gradient().expect("a gradient").0.loss
            };
            let (above, below) = (loss_at(step), loss_at(-2.0 * step));
            loss_at(step);
            let expected = (above - below) / (2.0 * step);
            let found = tiny::dot(gradient, &direction);
            let error = (found - expected).abs() / expected.abs().max(1e-3);
            assert!(
                error <= DIFFERENCE_BOUND,
                "{tiny:?} level {level}: {found} against {expected}"
            );
        }
    }
}

/// Means over an 8×8 grid: a linear map, of whose targets a picture is found to any accuracy.
fn grid_search(steps: usize) -> (Inversion, Vec<f64>) {
    let at = Placement::f32(&Device::flex());
    let target: Vec<f64> = spread(3 * 64, 3).iter().map(|v| 0.5 + 0.4 * v).collect();
    let config = InversionConfig {
        steps,
        total_variation: 0.0,
        ..InversionConfig::default()
    };
    let search = Inversion::of_map(
        Box::new(|pixels| Ok(pixels.grid_mean(8))),
        "means over a grid".to_owned(),
        ComputeDevice::cpu(),
        at,
        [32, 32],
        [3, 8, 8],
        &target,
        config,
    );
    (search.expect("a sound search"), target)
}

fn run(search: &mut Inversion) -> Vec<Iterate> {
    let mut path = Vec::new();
    while !search.is_finished() {
        path.push(search.step().expect("a step"));
    }
    path
}

#[test]
fn of_a_linear_map_the_target_is_reached() {
    let (mut search, target) = grid_search(200);
    let path = run(&mut search);
    let rises = path
        .windows(2)
        .filter(|pair| pair[1].loss > pair[0].loss)
        .count();
    // Adam overshoots where a level joins and near the end; it must not wander.
    assert!(
        rises <= path.len() / 4,
        "the loss rose in {rises} of {} steps",
        path.len()
    );
    let reached = path.last().expect("steps").feature_error;
    assert!(reached < 2e-3, "the error is {reached}");
    // The same by the picture itself: means over squares of 4 × 4 pixels.
    let pixels = search.pixels().expect("a picture");
    assert!(pixels.iter().all(|value| (0.0..=1.0).contains(value)));
    for (place, &wanted) in target.iter().enumerate() {
        let (channel, row, column) = (place / 64, place / 8 % 8, place % 8);
        let mean = (0..16)
            .map(|k| {
                let (y, x) = (4 * row + k / 4, 4 * column + k % 4);
                f64::from(pixels[channel * 1024 + y * 32 + x]) / 16.0
            })
            .sum::<f64>();
        assert!((mean - wanted).abs() < 5e-3, "{mean} for {wanted}");
    }
}

#[test]
fn the_same_steps_give_the_same_picture() {
    let picture = || {
        let (mut search, _) = grid_search(30);
        run(&mut search);
        search.pixels().expect("a picture")
    };
    assert_eq!(picture(), picture());
}

struct Photograph {
    encoder: Arc<LoadedEncoder>,
    pixels: Arc<[f32]>,
    picture: Picture,
}

impl Photograph {
    fn new(name: &str) -> Self {
        let device = ComputeDevice::cpu();
        let encoder = registry::load("efficientnet_lite0", WeightsKind::Trained, 0, &device);
        let encoder = Arc::new(encoder.expect("the bundled weights"));
        let photo = bundled::open(name).expect("a bundled photograph");
        let prepared = encoder.spec().preprocessing.apply(&photo).expect("a crop");
        Self {
            picture: Picture::from(&prepared),
            pixels: prepared.pixels,
            encoder,
        }
    }

    fn features(&self, pixels: &[f32], readout: &Readout) -> Vec<f64> {
        let data = TensorData::new(pixels.to_vec(), [1, 3, 224, 224]);
        let x = Tensor::from_data(data, self.encoder.placement.options());
        let y = self.encoder.encoder.forward(Value::plain(x), readout);
        values(y.expect("a readout").into_primal())
    }

    /// PSNR of a picture, and MdnCS of its features with those of the photograph.
    fn scores(&self, pixels: &[f32], readout: &Readout) -> (f64, f64) {
        let shape = self.encoder.spec().readout_shape(readout).expect("a stage");
        let map = |pixels: &[f32]| {
            let planes = self.features(pixels, readout);
            let planes: Vec<f32> = planes.iter().map(|&v| v as f32).collect();
            FeatureMap::from_planes(shape, &planes).expect("a map")
        };
        let found = Picture::from_planes(pixels, 224, 224);
        let psnr = mse::psnr(&found, &self.picture).expect("one size");
        let cosine = cosine::median_cosine(&map(pixels), &map(&self.pixels)).expect("one shape");
        (
            psnr.expect("they differ"),
            cosine.expect("features are not zero"),
        )
    }
}

#[test]
fn a_photograph_is_found_from_its_shallow_stages() {
    let photograph = Photograph::new("chelsea");
    // Measured after these steps, half of the default: 24.9 dB and 0.994 at 24×56², 20.3 dB and 0.990 at 40×28².
    for (stage, steps, psnr_db, least_cosine) in [(2, 100, 24.0, 0.99), (3, 100, 19.0, 0.98)] {
        let readout = Readout::Stage(stage);
        let target = photograph.features(&photograph.pixels, &readout);
        let config = InversionConfig {
            steps,
            ..InversionConfig::default()
        };
        let encoder = photograph.encoder.clone();
        let mut search = Inversion::new(encoder, readout.clone(), &target, config).expect("sound");
        let path = run(&mut search);
        let pixels = search.pixels().expect("a picture");
        let (psnr, cosine) = photograph.scores(&pixels, &readout);
        let error = path.last().expect("steps").feature_error;
        println!("stage {stage}: {psnr:.2} dB, MdnCS {cosine:.4}, feature error {error:.4}");
        assert!(psnr >= psnr_db, "stage {stage}: {psnr} dB");
        assert!(cosine >= least_cosine, "stage {stage}: MdnCS {cosine}");
    }
}

#[test]
fn a_changed_target_is_refined_and_not_begun_anew() {
    let photograph = Photograph::new("chelsea");
    let readout = Readout::Stage(2);
    let target = photograph.features(&photograph.pixels, &readout);
    let config = InversionConfig {
        steps: 60,
        refining_steps: 15,
        ..InversionConfig::default()
    };
    let encoder = photograph.encoder.clone();
    let mut search =
        Inversion::new(encoder.clone(), readout.clone(), &target, config).expect("sound");
    run(&mut search);
    // The features of a somewhat darker photograph.
    let darker: Vec<f32> = photograph.pixels.iter().map(|v| 0.85 * v).collect();
    let changed = photograph.features(&darker, &readout);
    search.aim(&changed).expect("the same stage");
    let refined = run(&mut search);
    assert_eq!(refined.len(), 15);

    let config = InversionConfig {
        steps: 15,
        ..config
    };
    let mut anew = Inversion::new(encoder, readout, &changed, config).expect("sound");
    let anew = run(&mut anew).last().expect("steps").feature_error;
    let refined = refined.last().expect("steps").feature_error;
    println!("after 15 steps: refined {refined:.3}, anew {anew:.3}");
    assert!(refined < 0.5 * anew, "{refined} against {anew}");
}

#[test]
fn a_decoders_picture_is_a_better_start_than_grey() {
    let photograph = Photograph::new("coffee");
    let readout = Readout::Stage(2);
    let target = photograph.features(&photograph.pixels, &readout);
    let encoder = photograph.encoder.clone();
    let device = ComputeDevice::cpu();
    let decoder = Decoder::bundled(
        "efficientnet_lite0",
        &encoder.weights_id,
        "blocks.1",
        &device,
    );
    let decoder = decoder.expect("a sound file").expect("it is bundled");
    let planes: Vec<f32> = target.iter().map(|&v| v as f32).collect();
    let features = FeatureMap::from_planes([24, 56, 56], &planes).expect("a map");
    let decoded = decoder.decode(&features).expect("a picture");
    let config = InversionConfig {
        steps: 20,
        refining_steps: 20,
        ..InversionConfig::default()
    };
    let found = |start: Option<&[f32]>| {
        let search = Inversion::new(encoder.clone(), readout.clone(), &target, config);
        let mut search = search.expect("a sound search");
        if let Some(pixels) = start {
            search.start_from(pixels).expect("224 px");
        }
        let error = run(&mut search).last().expect("steps").feature_error;
        let pixels = search.pixels().expect("a picture");
        (error, photograph.scores(&pixels, &readout).0)
    };
    let (grey, refined) = (found(None), found(Some(&decoded.pixels)));
    println!("feature error and PSNR after 20 steps: {refined:?}, from grey {grey:?}");
    assert!(refined.0 < grey.0);
    assert!(refined.1 > grey.1 + 5.0);
}

#[test]
fn a_picture_to_start_from_is_kept() {
    let (mut search, _) = grid_search(10);
    let pixels: Vec<f32> = spread(3 * 32 * 32, 9)
        .iter()
        .map(|v| 0.5 + 0.49 * *v as f32)
        .collect();
    search.start_from(&pixels).expect("a picture of the size");
    let found = search.pixels().expect("a picture");
    for (found, wanted) in found.iter().zip(&pixels) {
        assert!((found - wanted).abs() < 1e-5);
    }
    // Beyond the range that the logistic function reaches, the nearest that it does.
    search.start_from(&vec![1.0; 3 * 32 * 32]).expect("white");
    let white = search.pixels().expect("a picture");
    assert!(
        white
            .iter()
            .all(|value| (1.0 - value - 1.0 / 512.0).abs() < 1e-5)
    );
}

#[test]
fn what_cannot_be_inverted_is_refused() {
    let (mut search, target) = grid_search(10);
    let kind = |result: Result<(), etascope::Error>| result.expect_err("it is refused").kind;
    assert_eq!(kind(search.aim(&target[1..])), ErrorKind::Request);
    assert_eq!(kind(search.aim(&vec![0.0; 192])), ErrorKind::Numeric);
    let mut broken = target.clone();
    broken[7] = f64::NAN;
    assert_eq!(kind(search.aim(&broken)), ErrorKind::Numeric);
    assert_eq!(kind(search.start_from(&[0.5; 3])), ErrorKind::Request);
    assert_eq!(
        kind(search.start_from(&[f32::NAN; 3072])),
        ErrorKind::Numeric
    );
    assert_eq!(kind(search.nudge(9, vec![0.0])), ErrorKind::Request);
    // After all that it goes on as before.
    search.step().expect("a step");

    let encoder = Photograph::new("chelsea").encoder;
    let config = InversionConfig::default();
    let request = |readout, config| {
        let search = Inversion::new(encoder.clone(), readout, &[1.0], config);
        search.err().expect("it is refused").kind
    };
    assert_eq!(request(Readout::Stage(99), config), ErrorKind::Request);
    for config in [
        InversionConfig {
            rate: 0.0,
            ..config
        },
        InversionConfig { steps: 0, ..config },
        InversionConfig {
            total_variation: f64::NAN,
            ..config
        },
        InversionConfig {
            coarse_share: 1.5,
            ..config
        },
    ] {
        assert_eq!(request(Readout::Pooled, config), ErrorKind::Request);
    }
}
