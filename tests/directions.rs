//! Claims about the direction families.

mod fields;

use std::path::Path;
use std::sync::Arc;

use etascope::ErrorKind;
use etascope::geometry::directions::{SINGULAR_MAX, difference, sample};
use etascope::geometry::{Basis, DirectionFamily, Profile, Profiler};
use etascope::images::gaussian::{Border, smooth};
use etascope::images::{Disc, Manipulation, Mask};
use etascope::recipe::{ProfileRecipe, WeightsKind};
use fields::{Linear, Map, MapField, Planted};

const SHAPE: (usize, usize, usize) = (3, 16, 16);
const LEN: usize = 3 * 16 * 16;

fn random() -> [DirectionFamily; 4] {
    [
        DirectionFamily::Isotropic,
        DirectionFamily::Rademacher,
        DirectionFamily::LowPass { sigma_px: 1.5 },
        masked(&[(0.5, 0.5, 0.4)]),
    ]
}

fn mask(discs: &[(f32, f32, f32)]) -> Mask {
    let disc = |&(x, y, radius)| Disc { x, y, radius };
    Mask {
        discs: discs.iter().map(disc).collect(),
    }
}

fn masked(discs: &[(f32, f32, f32)]) -> DirectionFamily {
    DirectionFamily::Masked { mask: mask(discs) }
}

fn along(manipulation: Manipulation) -> DirectionFamily {
    DirectionFamily::Along { manipulation }
}

fn draw(family: &DirectionFamily, seed: u64, index: usize) -> Arc<[f32]> {
    sample(family, seed, index, SHAPE).unwrap()
}

fn wide(direction: &[f32]) -> Vec<f64> {
    direction.iter().map(|&v| f64::from(v)).collect()
}

#[test]
fn directions_are_unit_vectors() {
    for family in random() {
        for index in [0, 1, 1000] {
            let norm = fields::dot(
                &wide(&draw(&family, 7, index)),
                &wide(&draw(&family, 7, index)),
            );
            // Each value is rounded to f32 once: a relative 6e-8, mostly averaged out.
            assert!((norm - 1.0).abs() < 1e-7, "{family:?} {index}: {norm}");
        }
    }
}

#[test]
fn a_direction_depends_on_its_seed_and_index_alone() {
    for family in random() {
        let again = draw(&family, 3, 5);
        for index in 0..5 {
            draw(&family, 3, index);
        }
        assert_eq!(draw(&family, 3, 5), again);
        assert_ne!(draw(&family, 3, 6), again);
        assert_ne!(draw(&family, 4, 5), again);
    }
}

#[test]
fn different_directions_are_uncorrelated() {
    // The inner product of two independent unit vectors has standard deviation 1/√d, 0.036 here;
    // low-pass noise, whose autocorrelation is exp(−t²/4σ²), has d/(2πσ²) = 54 degrees of freedom, and
    // the disc covers π0.4² of the values, 386.
    for (family, sd) in random().into_iter().zip([0.036, 0.036, 0.136, 0.051]) {
        let set: Vec<_> = (0..20).map(|i| wide(&draw(&family, 1, i))).collect();
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
    let moment = |family: &DirectionFamily, power: i32| -> f64 {
        let draws = (0..200).flat_map(|i| wide(&draw(family, 0, i)));
        draws.map(|u| u.powi(power)).sum::<f64>() / (200.0 * d)
    };
    let isotropic = DirectionFamily::Isotropic;
    // 153,600 values: the mean is known to 1/√153600 = 0.26 % of a standard deviation, the fourth
    // moment to √96/3/√153600 = 0.8 %. Bounds are four of these.
    assert!(moment(&isotropic, 1).abs() < 0.0104 / d.sqrt());
    assert!((moment(&isotropic, 2) * d - 1.0).abs() < 1e-6);
    assert!((moment(&isotropic, 4) * d * (d + 2.0) / 3.0 - 1.0).abs() < 0.033);

    let signs = DirectionFamily::Rademacher;
    assert!(moment(&signs, 1).abs() < 0.0104 / d.sqrt());
    assert!((moment(&signs, 4) * d * d - 1.0).abs() < 1e-6);
    let level = draw(&signs, 0, 0)[0].abs();
    assert!(draw(&signs, 0, 9).iter().all(|u| u.abs() == level));
}

#[test]
fn low_pass_directions_are_smoothed_isotropic_ones() {
    let sigma_px = 1.5;
    let mut expected = wide(&draw(&DirectionFamily::Isotropic, 2, 4));
    let sigma = f64::from(sigma_px);
    smooth(&mut expected, SHAPE.1, SHAPE.2, sigma, Border::Wrapped);
    let norm = fields::dot(&expected, &expected).sqrt();
    let found = draw(&DirectionFamily::LowPass { sigma_px }, 2, 4);
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
        let u = draw(&DirectionFamily::LowPass { sigma_px: 2.0 }, 0, i);
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
        let [_, rows, columns] = fixture.shape;
        smooth(&mut values, rows, columns, case.sigma_px, Border::Wrapped);
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
        DirectionFamily::TopSingular {
            count: SINGULAR_MAX + 1,
        },
        DirectionFamily::TopSingular { count: usize::MAX },
        along(Manipulation::Blur { sigma_px: 0.0 }),
        along(Manipulation::Blur { sigma_px: f32::NAN }),
        // Nothing painted, a disc beside the photograph, one between pixel centres, no disc at all.
        masked(&[]),
        masked(&[(1.5, 0.5, 0.3)]),
        masked(&[(0.5, 0.5, 0.01)]),
        masked(&[(0.5, 0.5, f32::INFINITY)]),
    ] {
        let error = Profiler::new(recipe(family), SHAPE).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Request, "{error}");
    }
}

/// A map with a feature of half a gigabyte, of which no value is ever asked.
struct Vast;

impl Map for Vast {
    fn output_len(&self) -> usize {
        1 << 26
    }
    fn value(&self, _: &[f64]) -> Vec<f64> {
        unreachable!("the search is refused first")
    }
    fn jvp(&self, _: &[f64], _: &[f64]) -> Vec<f64> {
        unreachable!("the search is refused first")
    }
    fn vjp(&self, _: &[f64], _: &[f64]) -> Vec<f64> {
        unreachable!("the search is refused first")
    }
}

#[test]
fn a_search_that_would_not_fit_in_memory_is_refused() {
    let family = DirectionFamily::TopSingular { count: 32 };
    let mut profiler = Profiler::new(recipe(family), SHAPE).unwrap();
    let mut field = MapField::new(Vast, vec![0.0; LEN]);
    let error = profiler.step(&mut field).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Request, "{error}");
    assert!(error.why.contains("memory"), "{error}");
}

/// What SciPy, Pillow and NumPy make of two small pictures.
#[derive(serde::Deserialize)]
struct Pictures {
    shape: [usize; 3],
    pixels: Vec<f32>,
    other: Vec<f32>,
    distance: f64,
    toward: Vec<f64>,
    grayscale: Vec<f64>,
    blurs: Vec<Blur>,
    discs: Vec<(f32, f32, f32)>,
    covered: Vec<bool>,
}

#[derive(serde::Deserialize)]
struct Blur {
    sigma_px: f32,
    values: Vec<f64>,
}

fn pictures() -> Pictures {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/profile/pictures.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn largest_difference(ours: &[f64], theirs: &[f64]) -> f64 {
    assert_eq!(ours.len(), theirs.len());
    let differences = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, f64::max)
}

#[test]
fn blur_agrees_with_scipy_and_grayscale_with_pillow() {
    let all = pictures();
    let [_, rows, columns] = all.shape;
    assert_eq!(all.blurs.len(), 3);
    for Blur { sigma_px, values } in all.blurs {
        let ours = Manipulation::Blur { sigma_px }.apply(&all.pixels, rows, columns);
        // Both in f64; the sums differ in their order.
        assert!(largest_difference(&ours, &values) < 1e-14, "σ {sigma_px}");
    }
    let ours = Manipulation::Grayscale.apply(&all.pixels, rows, columns);
    // Pillow's grey levels and our pixels are rounded to f32, at most 6e-8 each.
    assert!(largest_difference(&ours, &all.grayscale) < 1.2e-7);
}

#[test]
fn the_direction_between_two_pictures_agrees_with_numpy() {
    let all = pictures();
    let (direction, distance) = difference(&wide(&all.other), &all.pixels).unwrap();
    assert!((distance / all.distance - 1.0).abs() < 1e-14);
    // The direction's values, below 0.3, are rounded to f32.
    assert!(largest_difference(&wide(&direction), &all.toward) < 1.5e-8);
    // At η = the distance the other picture is reached, up to that rounding times the distance.
    let reached = all.pixels.iter().zip(direction.iter());
    let reached: Vec<f64> = reached
        .map(|(x, u)| f64::from(*x) + distance * f64::from(*u))
        .collect();
    assert!(largest_difference(&reached, &wide(&all.other)) < 1e-6);
}

#[test]
fn equal_pictures_have_no_direction_between_them() {
    let all = pictures();
    assert_eq!(difference(&wide(&all.pixels), &all.pixels), None);
    // Grey pictures stay as they are; the sum of the three products is off by some 1e-16.
    let grey: Vec<f32> = all.pixels[..63].iter().copied().cycle().take(189).collect();
    let same = Manipulation::Grayscale.apply(&grey, all.shape[1], all.shape[2]);
    assert_eq!(difference(&same, &grey), None);
    let flat = vec![0.3; 189];
    let same = Manipulation::Blur { sigma_px: 2.0 }.apply(&flat, all.shape[1], all.shape[2]);
    assert_eq!(difference(&same, &flat), None);
    // One grey level in one value is a difference.
    let mut other = wide(&all.pixels);
    other[7] += 1.0 / 255.0;
    let (direction, _) = difference(&other, &all.pixels).unwrap();
    assert_eq!(direction[7], 1.0);
}

#[test]
fn a_mask_covers_the_pixels_whose_centres_numpy_finds_in_its_discs() {
    let all = pictures();
    let covered = mask(&all.discs).covered(all.shape[1], all.shape[2]);
    assert_eq!(covered, all.covered);
    assert!(covered.contains(&true) && covered.contains(&false));
}

#[test]
fn masked_directions_are_isotropic_ones_cut_to_the_mask() {
    let discs = [(0.25, 0.5, 0.2), (0.8, 0.1, 0.15)];
    let covered = mask(&discs).covered(16, 16);
    let found = draw(&masked(&discs), 2, 4);
    let whole = wide(&draw(&DirectionFamily::Isotropic, 2, 4));
    let cut: Vec<f64> = (whole.iter().enumerate())
        .map(|(i, u)| if covered[i % 256] { *u } else { 0.0 })
        .collect();
    let norm = fields::dot(&cut, &cut).sqrt();
    for (i, (found, cut)) in found.iter().zip(cut).enumerate() {
        // The isotropic vector was rounded to f32 before it was scaled up, here by about 2.2.
        assert!((f64::from(*found) - cut / norm).abs() < 5e-8);
        assert_eq!(*found == 0.0, !covered[i % 256]);
    }
}

#[test]
fn a_linear_map_responds_linearly_along_every_family() {
    let map = || Linear::random(3, 7, LEN, |_| 1.0);
    for family in random() {
        let mut field = MapField::new(map(), vec![0.4; LEN]);
        let recipe = ProfileRecipe {
            pairs_max: 16,
            target_error: 0.0,
            ..recipe(family.clone())
        };
        let profile = finish(Profiler::new(recipe, SHAPE).unwrap(), &mut field);
        assert_eq!(profile.pairs, 16);
        for scale in &profile.scales {
            // In f64; where the trace is estimated the control variate is exact for a linear map
            // up to rounding.
            assert!((scale.r - 1.0).abs() < 1e-9, "{family:?}: {}", scale.r);
        }
    }
    let x: Vec<f32> = (0..LEN).map(|i| (i * 37 % 101) as f32 / 101.0).collect();
    let target: Vec<f64> = (0..LEN).map(|i| (i * 53 % 97) as f64 / 97.0).collect();
    let blurred = Manipulation::Blur { sigma_px: 1.0 }.apply(&x, 16, 16);
    let grey = Manipulation::Grayscale.apply(&x, 16, 16);
    for (family, end) in [
        (
            DirectionFamily::Toward {
                image: "other.png".to_owned(),
            },
            target,
        ),
        (along(Manipulation::Blur { sigma_px: 1.0 }), blurred),
        (along(Manipulation::Grayscale), grey),
    ] {
        let mut field = MapField::new(map(), wide(&x));
        let (direction, _) = difference(&end, &x).unwrap();
        let profiler = Profiler::new(recipe(family.clone()), SHAPE)
            .unwrap()
            .with_directions(vec![direction])
            .unwrap();
        let profile = finish(profiler, &mut field);
        assert_eq!(profile.pairs, 1);
        for scale in &profile.scales {
            assert!((scale.r - 1.0).abs() < 1e-9, "{family:?}: {}", scale.r);
            assert_eq!(scale.directions, 2, "one direction and its antipode");
            assert!(scale.r_se.is_nan(), "one direction has no sampling error");
            assert_eq!(scale.basis, Basis::SameDirections);
        }
    }
}

/// Φ(x)_i = w_i x_i.
struct Weighted(Vec<f64>);

impl fields::Map for Weighted {
    fn output_len(&self) -> usize {
        self.0.len()
    }

    fn value(&self, x: &[f64]) -> Vec<f64> {
        self.0.iter().zip(x).map(|(w, x)| w * x).collect()
    }

    fn jvp(&self, _: &[f64], tangent: &[f64]) -> Vec<f64> {
        self.value(tangent)
    }

    fn vjp(&self, _: &[f64], cotangent: &[f64]) -> Vec<f64> {
        self.value(cotangent)
    }
}

#[test]
fn a_masked_response_is_measured_against_its_own_directions() {
    let discs = [(0.5, 0.5, 0.3)];
    let covered = mask(&discs).covered(16, 16);
    let profile = |weight: fn(bool) -> f64| {
        let weights = (0..LEN).map(|i| weight(covered[i % 256])).collect();
        let mut field = MapField::new(Weighted(weights), vec![0.0; LEN]);
        let profiler = Profiler::new(recipe(masked(&discs)), SHAPE).unwrap();
        finish(profiler, &mut field)
    };
    // The norm of u is all inside, so that ‖Ju‖² is 4 for every direction; the trace over d, to which
    // isotropic directions are held, is below 4/3.
    let seen = profile(|is_covered| if is_covered { 2.0 } else { 0.0 });
    assert!((seen.mean_jvp_sq - 4.0).abs() < 1e-6);
    assert!(seen.undefined.is_none());
    assert!(seen.scales.iter().all(|s| s.basis == Basis::SameDirections));
    // An encoder that looks elsewhere sees nothing.
    let unseen = profile(|is_covered| if is_covered { 0.0 } else { 2.0 });
    let why = unseen.undefined.expect("nothing moves");
    assert!(why.contains("along any of these directions"), "{why}");
}

#[test]
fn directions_from_pictures_must_be_handed_over() {
    let mut field = MapField::new(Linear::random(0, 5, LEN, |_| 1.0), vec![0.0; LEN]);
    let family = along(Manipulation::Grayscale);
    let mut profiler = Profiler::new(recipe(family), SHAPE).unwrap();
    let error = profiler.step(&mut field).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Internal);
}
