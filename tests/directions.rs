//! Claims about the direction families.

mod fields;

use std::path::Path;
use std::sync::Arc;

use etascope::ErrorKind;
use etascope::geometry::directions::{low_pass, sample};
use etascope::geometry::{DirectionFamily, Profile, Profiler};
use etascope::recipe::{ProfileRecipe, WeightsKind};
use fields::{Linear, MapField, Planted};

const SHAPE: (usize, usize, usize) = (3, 16, 16);
const LEN: usize = 3 * 16 * 16;
const RANDOM: [DirectionFamily; 3] = [
    DirectionFamily::Isotropic,
    DirectionFamily::Rademacher,
    DirectionFamily::LowPass { sigma_px: 1.5 },
];

fn draw(family: DirectionFamily, seed: u64, index: usize) -> Arc<[f32]> {
    sample(family, seed, index, SHAPE).unwrap()
}

fn wide(direction: &[f32]) -> Vec<f64> {
    direction.iter().map(|&v| f64::from(v)).collect()
}

#[test]
fn directions_are_unit_vectors() {
    for family in RANDOM {
        for index in [0, 1, 1000] {
            let norm = fields::dot(
                &wide(&draw(family, 7, index)),
                &wide(&draw(family, 7, index)),
            );
            // Each value is rounded to f32 once: a relative 6e-8, mostly averaged out.
            assert!((norm - 1.0).abs() < 1e-7, "{family:?} {index}: {norm}");
        }
    }
}

#[test]
fn a_direction_depends_on_its_seed_and_index_alone() {
    for family in RANDOM {
        let again = draw(family, 3, 5);
        for index in 0..5 {
            draw(family, 3, index);
        }
        assert_eq!(draw(family, 3, 5), again);
        assert_ne!(draw(family, 3, 6), again);
        assert_ne!(draw(family, 4, 5), again);
    }
}

#[test]
fn different_directions_are_uncorrelated() {
    // The inner product of two independent unit vectors has standard deviation 1/√d, 0.036 here;
    // low-pass noise, whose autocorrelation is exp(−t²/4σ²), has d/(2πσ²) = 54 degrees of freedom.
    for (family, sd) in RANDOM.into_iter().zip([0.036, 0.036, 0.136]) {
        let set: Vec<_> = (0..20).map(|i| wide(&draw(family, 1, i))).collect();
        let mut squares = Vec::new();
        for i in 0..20 {
            for j in 0..i {
                squares.push(fields::dot(&set[i], &set[j]).powi(2));
            }
        }
        let rms = (squares.iter().sum::<f64>() / squares.len() as f64).sqrt();
        // 190 products: their rms is known to 5 %. Four times that.
        assert!((0.8 * sd..1.2 * sd).contains(&rms), "{family:?}: {rms}");
    }
}

#[test]
fn isotropic_and_sign_directions_have_the_moments_of_their_distributions() {
    let d = LEN as f64;
    let moment = |family, power: i32| -> f64 {
        let draws = (0..200).flat_map(|i| wide(&draw(family, 0, i)));
        draws.map(|u| u.powi(power)).sum::<f64>() / (200.0 * d)
    };
    let isotropic = DirectionFamily::Isotropic;
    // 153,600 values: the mean is known to 1/√153600 = 0.26 % of a standard deviation, the fourth
    // moment to √96/3/√153600 = 0.8 %. Bounds are four of these.
    assert!(moment(isotropic, 1).abs() < 0.0104 / d.sqrt());
    assert!((moment(isotropic, 2) * d - 1.0).abs() < 1e-6);
    assert!((moment(isotropic, 4) * d * (d + 2.0) / 3.0 - 1.0).abs() < 0.033);

    let signs = DirectionFamily::Rademacher;
    assert!(moment(signs, 1).abs() < 0.0104 / d.sqrt());
    assert!((moment(signs, 4) * d * d - 1.0).abs() < 1e-6);
    let level = draw(signs, 0, 0)[0].abs();
    assert!(draw(signs, 0, 9).iter().all(|u| u.abs() == level));
}

#[test]
fn low_pass_directions_are_smoothed_isotropic_ones() {
    let sigma_px = 1.5;
    let mut expected = wide(&draw(DirectionFamily::Isotropic, 2, 4));
    low_pass(&mut expected, SHAPE.1, SHAPE.2, f64::from(sigma_px));
    let norm = fields::dot(&expected, &expected).sqrt();
    let found = draw(DirectionFamily::LowPass { sigma_px }, 2, 4);
    for (found, expected) in found.iter().zip(expected) {
        // The isotropic vector was rounded to f32 before it was smoothed.
        assert!((f64::from(*found) - expected / norm).abs() < 1e-7);
    }
}

#[test]
fn low_pass_noise_keeps_its_variance_at_the_border() {
    // 3,000 draws of 16 corner-row values: the ratio of two variances is known to about 2 %.
    let (mut border, mut centre) = (0.0, 0.0);
    for i in 0..1000 {
        let u = draw(DirectionFamily::LowPass { sigma_px: 2.0 }, 0, i);
        for channel in u.chunks_exact(256) {
            border += channel[..16].iter().map(|v| v * v).sum::<f32>();
            centre += channel[8 * 16..9 * 16].iter().map(|v| v * v).sum::<f32>();
        }
    }
    assert!((border / centre - 1.0).abs() < 0.08, "{}", border / centre);
}

#[test]
fn low_pass_agrees_with_scipy() {
    #[derive(serde::Deserialize)]
    struct Case {
        sigma_px: f64,
        values: Vec<f64>,
    }
    #[derive(serde::Deserialize)]
    struct Fixture {
        shape: [usize; 3],
        noise: Vec<f64>,
        cases: Vec<Case>,
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/profile/low_pass.json");
    let fixture: Fixture = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(fixture.cases.len(), 3);
    for case in fixture.cases {
        let mut values = fixture.noise.clone();
        low_pass(
            &mut values,
            fixture.shape[1],
            fixture.shape[2],
            case.sigma_px,
        );
        for (ours, theirs) in values.iter().zip(&case.values) {
            // Both in f64; the sums differ in their order.
            assert!(
                (ours - theirs).abs() < 1e-13,
                "σ {}: {ours} {theirs}",
                case.sigma_px
            );
        }
    }
}

fn recipe(family: DirectionFamily) -> ProfileRecipe {
    let base = ProfileRecipe::interactive("map", WeightsKind::Trained, 224);
    ProfileRecipe {
        family,
        etas_l2: vec![0.1, 1.0],
        ..base
    }
}

fn finish(mut profiler: Profiler, field: &mut dyn etascope::geometry::Field) -> Profile {
    while !profiler.step(field).unwrap() {}
    profiler.snapshot()
}

#[test]
fn top_singular_directions_are_those_of_a_planted_spectrum() {
    // A spectrum as steep as an encoder's (σ² falls by 1/3 a step): three applications of JJᵀ
    // separate neighbours by (2/3)^(3 + 1/2) each and 5 extra dimensions shield the last of them.
    let sigma: Vec<f64> = (0..256)
        .map(|i| (2.0f64 / 3.0).powf(f64::from(i) / 2.0))
        .collect();
    let map = Planted::new(1, sigma.clone());
    let expected: Vec<_> = (0..4).map(|i| map.right_vector(i)).collect();
    let mut field = MapField::new(map, vec![0.0; 256]);
    let family = DirectionFamily::TopSingular { count: 4 };
    let profiler = Profiler::new(recipe(family), (1, 16, 16)).unwrap();
    let profile = finish(profiler, &mut field);
    assert_eq!(profile.pairs, 4);
    assert!((fields::dot(&wide(&profile.shown_direction), &expected[0]).abs() - 1.0).abs() < 1e-3);
    // The mean of ‖Ju‖² over the set is the mean of the four largest σ².
    let mean = sigma[..4].iter().map(|s| s * s).sum::<f64>() / 4.0;
    assert!((profile.mean_jvp_sq / mean - 1.0).abs() < 1e-3);
    // The whole set was used: there is nothing to be uncertain of.
    assert_eq!(profile.mean_jvp_sq_se, 0.0);
    assert!(
        profile
            .scales
            .iter()
            .all(|s| (s.r - 1.0).abs() < 1e-12 && s.r_se.is_nan())
    );
}

#[test]
fn top_singular_directions_are_no_more_than_the_rank() {
    let map = Linear::random(0, 3, 48, |i| [1.0, 0.5, 0.0][i]);
    let mut field = MapField::new(map, vec![0.0; 48]);
    let family = DirectionFamily::TopSingular { count: 10 };
    let profiler = Profiler::new(recipe(family), (3, 4, 4)).unwrap();
    assert_eq!(finish(profiler, &mut field).pairs, 2);
}

#[test]
fn the_logit_gradient_is_one_direction() {
    let mut field = MapField::new(Linear::random(0, 5, 48, |_| 1.0), vec![0.0; 48]);
    let mut gradient = vec![0.0; 48];
    (gradient[3], gradient[7]) = (3.0, -4.0);
    field.logit_gradient = Some(gradient);
    let family = DirectionFamily::TopLogitGradient;
    let profile = finish(
        Profiler::new(recipe(family), (3, 4, 4)).unwrap(),
        &mut field,
    );
    assert_eq!(
        (profile.shown_direction[3], profile.shown_direction[7]),
        (0.6, -0.8)
    );
    assert_eq!(profile.pairs, 1);
    assert_eq!(profile.scales[0].directions, 2);
    assert!((profile.scales[0].r - 1.0).abs() < 1e-12);
}

#[test]
fn a_map_without_logits_says_so() {
    let mut field = MapField::new(Linear::random(0, 5, 48, |_| 1.0), vec![0.0; 48]);
    let mut profiler = Profiler::new(recipe(DirectionFamily::TopLogitGradient), (3, 4, 4)).unwrap();
    assert_eq!(
        profiler.step(&mut field).unwrap_err().kind,
        ErrorKind::Request
    );
}

#[test]
fn impossible_families_are_refused() {
    for family in [
        DirectionFamily::LowPass { sigma_px: 0.0 },
        DirectionFamily::LowPass { sigma_px: f32::NAN },
        DirectionFamily::TopSingular { count: 0 },
    ] {
        let error = Profiler::new(recipe(family), SHAPE).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Request, "{error}");
    }
}
