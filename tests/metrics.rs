//! Metrics against scikit-image, OpenCV, SciPy, lpips and shesha-geometry (tests/golden/edits/gen_pictures.py),
//! and what they say where they are undefined.

mod tiny;

use etascope::features::FeatureMap;
use etascope::images::Picture;
use etascope::metrics::Rows;
use etascope::metrics::agreement::{agreement, top};
use etascope::metrics::cka::linear_cka;
use etascope::metrics::cosine::{cosine, masked_median_cosine, median_cosine};
use etascope::metrics::divergence::{Prediction, jensen_shannon_bits};
use etascope::metrics::edit_mask::{any_pool, edit_mask};
use etascope::metrics::lpips::{Layer, lpips_head};
use etascope::metrics::mse::{mse, psnr};
use etascope::metrics::procrustes::procrustes_distance;
use etascope::metrics::rdm::{Dissimilarity, rdm_spearman, spearman};
use etascope::metrics::ssim::{Window, ssim};
use etascope::metrics::stability::{feature_split, split_score};
use etascope::{ErrorKind, Result};
use faer::{Mat, MatRef};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use serde_json::Value;
use tiny::Fixture;

fn fixture() -> (Fixture, Value) {
    let json = std::fs::read(tiny::golden_path("edits/metrics.json")).unwrap();
    (
        Fixture::read("edits/metrics.safetensors"),
        serde_json::from_slice(&json).unwrap(),
    )
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn close(ours: f64, theirs: &Value, tolerance: f64) {
    let theirs = number(theirs);
    assert!((ours - theirs).abs() < tolerance, "{ours} against {theirs}");
}

fn picture(fixture: &Fixture, name: &str) -> Picture {
    let shape = fixture.shape(name);
    let rgb = fixture.get(name).iter().map(|&value| value as u8).collect();
    Picture::new(shape[1], shape[0], rgb).unwrap()
}

/// A map of the fixture, (row, column, channel).
fn feature_map(fixture: &Fixture, name: &str) -> FeatureMap {
    let shape = fixture.shape(name);
    let vectors: Vec<f32> = fixture.get(name).iter().map(|&v| v as f32).collect();
    FeatureMap::from_vectors([shape[2], shape[0], shape[1]], vectors).unwrap()
}

fn constant(side: usize, value: u8) -> Picture {
    Picture::new(side, side, vec![value; 3 * side * side]).unwrap()
}

#[test]
fn picture_metrics_are_those_of_scikit_image() -> Result<()> {
    let (fixture, numbers) = fixture();
    let original = picture(&fixture, "picture");
    for edit in ["noisy", "hue", "spot"] {
        let edited = picture(&fixture, &format!("picture/{edit}"));
        let theirs = &numbers[edit];
        // Both in f64; scikit-image sums in another order.
        let uniform = ssim(&original, &edited, Window::Uniform)?.unwrap();
        close(uniform, &theirs["ssim_uniform"], 1e-10);
        let gaussian = ssim(&original, &edited, Window::Gaussian)?.unwrap();
        close(gaussian, &theirs["ssim_gaussian"], 1e-10);
        close(mse(&original, &edited)?, &theirs["mse"], 1e-9);
        close(psnr(&original, &edited)?.unwrap(), &theirs["psnr"], 1e-10);
    }
    Ok(())
}

#[test]
fn picture_metrics_at_their_ends() -> Result<()> {
    let (black, white) = (constant(16, 0), constant(16, 255));
    assert_eq!(mse(&black, &white)?, 65_025.0);
    assert_eq!(psnr(&black, &white)?, Some(0.0));
    assert_eq!(psnr(&black, &black)?, None);
    for window in [Window::Uniform, Window::Gaussian] {
        assert_eq!(ssim(&black, &black, window)?, Some(1.0));
        assert_eq!(ssim(&constant(6, 0), &constant(6, 0), window)?, None);
        let error = ssim(&black, &constant(15, 0), window).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Request);
    }
    assert_ne!(Window::Uniform.title(), Window::Gaussian.title());
    assert!(mse(&black, &constant(15, 0)).is_err());
    Ok(())
}

#[test]
fn the_mask_of_an_edit_is_that_of_opencv_and_adaptive_pooling() -> Result<()> {
    let (fixture, _) = fixture();
    let original = picture(&fixture, "picture");
    let mut touched = 0;
    for edit in ["noisy", "hue", "spot"] {
        let edited = picture(&fixture, &format!("picture/{edit}"));
        for (rows, columns) in [(9, 9), (4, 7), (53, 75)] {
            let ours = edit_mask(&original, &edited, rows, columns)?;
            let theirs = fixture.get(&format!("mask/{edit}/{rows}x{columns}"));
            let theirs: Vec<bool> = theirs.iter().map(|&flag| flag != 0.0).collect();
            assert_eq!(ours, theirs, "{edit} on {rows} × {columns}");
            touched += ours.iter().filter(|&&flag| flag).count();
        }
    }
    assert!(touched > 100, "{touched} positions are touched");
    // No edit, no mask.
    assert!(!edit_mask(&original, &original, 9, 9)?.contains(&true));
    // One flag is found in its cell, whatever the sides.
    let mut flags = vec![false; 10 * 11];
    flags[9 * 11 + 10] = true;
    assert_eq!(
        any_pool(&flags, 10, 11, 2, 3),
        [false, false, false, false, false, true]
    );
    Ok(())
}

#[test]
fn median_cosine_leaves_out_what_has_no_direction() -> Result<()> {
    let (fixture, numbers) = fixture();
    let (a, b) = (
        feature_map(&fixture, "map.a"),
        feature_map(&fixture, "map.b"),
    );
    close(median_cosine(&a, &b)?.unwrap(), &numbers["mdncs"], 1e-12);
    let mask: Vec<bool> = fixture.get("map.mask").iter().map(|&v| v != 0.0).collect();
    close(
        masked_median_cosine(&a, &b, &mask)?.unwrap(),
        &numbers["mdncs_masked"],
        1e-12,
    );
    assert_eq!(
        masked_median_cosine(&a, &b, &vec![false; mask.len()])?,
        None
    );
    assert_eq!(cosine(&[0.0, 0.0], &[0.0, 0.0]), None);
    assert_eq!(cosine(&[0.0, 0.0], &[3.0, 4.0]), Some(0.0));
    assert_eq!(cosine(&[3.0, 4.0], &[6.0, 8.0]), Some(1.0));
    let zero = FeatureMap::from_vectors([2, 1, 2], vec![0.0; 4])?;
    assert_eq!(median_cosine(&zero, &zero)?, None);
    // Of an even number the mean of the middle two: cosines 1 and 0.
    let one = FeatureMap::from_vectors([2, 1, 2], vec![1.0, 0.0, 1.0, 0.0])?;
    let other = FeatureMap::from_vectors([2, 1, 2], vec![2.0, 0.0, 0.0, 5.0])?;
    assert_eq!(median_cosine(&one, &other)?, Some(0.5));
    assert!(median_cosine(&one, &a).is_err());
    assert!(masked_median_cosine(&one, &other, &[true]).is_err());
    Ok(())
}

#[test]
fn divergences_of_predictions_are_scipys() -> Result<()> {
    let (_, numbers) = fixture();
    let logits = |i: usize| -> Vec<f64> {
        let values = numbers["logits"][i].as_array().unwrap();
        values.iter().map(number).collect()
    };
    let [p, q] = [logits(0), logits(1)];
    let [p, q] = [Prediction::from_logits(&p)?, Prediction::from_logits(&q)?];
    close(jensen_shannon_bits(&p, &q)?, &numbers["js_bits"], 1e-12);
    close(
        p.normalised_entropy().unwrap(),
        &numbers["entropy_share"],
        1e-12,
    );
    assert_eq!(jensen_shannon_bits(&p, &p)?, 0.0);
    // Scores far apart give certain predictions: no overlap is one bit, an even prediction full entropy.
    let sure = |class: usize| {
        let mut scores = vec![0.0; 4];
        scores[class] = 1e4;
        Prediction::from_logits(&scores)
    };
    assert!((jensen_shannon_bits(&sure(0)?, &sure(3)?)? - 1.0).abs() < 1e-12);
    assert_eq!(sure(1)?.normalised_entropy(), Some(0.0));
    let even = Prediction::from_logits(&[7.0; 5])?;
    assert!((even.normalised_entropy().unwrap() - 1.0).abs() < 1e-12);
    assert_eq!(Prediction::from_logits(&[1.0])?.normalised_entropy(), None);
    for wrong in [&[][..], &[f64::NAN, 0.0], &[f64::INFINITY, 0.0]] {
        assert_eq!(
            Prediction::from_logits(wrong).unwrap_err().kind,
            ErrorKind::Numeric
        );
    }
    assert!(jensen_shannon_bits(&p, &even).is_err());
    Ok(())
}

#[test]
fn agreement_counts_classes() -> Result<()> {
    let original = [0.0, 9.0, 8.0, 7.0, 6.0, 5.0, 1.0, 2.0];
    assert_eq!(top(&original, 5), [1, 2, 3, 4, 5]);
    // Class 1 falls from the first to the fourth place, class 5 out of the first five.
    let edited = [0.0, 6.0, 8.0, 9.0, 7.0, 1.0, 2.0, 3.0];
    let found = agreement(&original, &edited)?;
    assert!(!found.top1 && found.top5);
    assert_eq!(found.top5_shared, 0.8);
    let same = agreement(&original, &original)?;
    assert!(same.top1 && same.top5 && same.top5_shared == 1.0);
    // Equal scores go to the smaller number, fewer classes than five are all named.
    assert_eq!(top(&[1.0, 1.0, f64::NAN], 5), [0, 1, 2]);
    assert!(agreement(&original, &edited[1..]).is_err());
    assert!(agreement(&[], &[]).is_err());
    Ok(())
}

#[test]
fn representations_are_compared_as_by_scipy() -> Result<()> {
    let (fixture, numbers) = fixture();
    for name in ["tall", "wide"] {
        let rows = |side: &str| {
            let key = format!("{name}.{side}");
            Rows::new(fixture.get(&key), fixture.shape(&key)[1])
        };
        let (x, y) = (rows("x")?, rows("y")?);
        let theirs = |what: &str| &numbers[format!("{name}.{what}")];
        close(linear_cka(x, y)?.unwrap(), theirs("cka"), 1e-12);
        // The square root of a small difference in the reference.
        close(
            procrustes_distance(x, y)?.unwrap(),
            theirs("procrustes"),
            1e-9,
        );
        for (dissimilarity, word) in [
            (Dissimilarity::Correlation, "rdm_correlation"),
            (Dissimilarity::Cosine, "rdm_cosine"),
        ] {
            close(
                rdm_spearman(x, y, dissimilarity)?.unwrap(),
                theirs(word),
                1e-12,
            );
        }
        // Equal up to rotation, scale and place: itself.
        assert!((linear_cka(x, x)?.unwrap() - 1.0).abs() < 1e-12);
        assert!(procrustes_distance(x, x)?.unwrap() < 1e-9);
        assert_eq!(rdm_spearman(x, x, Dissimilarity::Cosine)?.unwrap(), 1.0);
    }
    let ties = |i: usize| -> Vec<f64> {
        let values = numbers["ties"][i].as_array().unwrap();
        values.iter().map(number).collect()
    };
    close(
        spearman(&ties(0), &ties(1)).unwrap(),
        &numbers["ties_spearman"],
        1e-12,
    );
    Ok(())
}

#[test]
fn what_does_not_vary_cannot_be_compared() -> Result<()> {
    let flat = [0.1, 0.2, 0.3].repeat(6);
    let varied: Vec<f64> = (0..18).map(|i| f64::from(i * i % 7)).collect();
    let (flat, varied) = (Rows::new(&flat, 3)?, Rows::new(&varied, 3)?);
    assert_eq!(linear_cka(flat, varied)?, None);
    assert_eq!(procrustes_distance(varied, flat)?, None);
    // All pairs are equally far apart.
    assert_eq!(rdm_spearman(flat, varied, Dissimilarity::Cosine)?, None);
    // A constant vector has no correlation, a zero one no cosine.
    let constant = [1.0; 18];
    let constant = Rows::new(&constant, 3)?;
    assert_eq!(
        rdm_spearman(constant, varied, Dissimilarity::Correlation)?,
        None
    );
    assert_eq!(spearman(&[1.0], &[2.0]), None);
    assert_eq!(spearman(&[1.0, 2.0], &[2.0]), None);
    assert_eq!(spearman(&[1.0, f64::NAN], &[2.0, 3.0]), None);
    let few = [1.0, 2.0, 3.0];
    assert!(linear_cka(varied, Rows::new(&few, 3)?).is_err());
    assert!(Rows::new(&few, 2).is_err());
    assert!(Rows::new(&[], 2).is_err());
    assert_eq!(
        Rows::new(&[f64::NAN], 1).unwrap_err().kind,
        ErrorKind::Numeric
    );
    Ok(())
}

#[test]
fn feature_split_is_sheshas_and_sees_axes() -> Result<()> {
    let (fixture, numbers) = fixture();
    let shape = fixture.shape("shesha.x");
    let values = fixture.get("shesha.x");
    let matrix: Mat<f64> = MatRef::from_row_major_slice(values, shape[0], shape[1]).to_owned();
    let orders: Vec<Vec<usize>> = (fixture.get("shesha.orders").chunks_exact(shape[1]))
        .map(|order| order.iter().map(|&place| place as usize).collect())
        .collect();
    close(
        split_score(&matrix, &orders).unwrap(),
        &numbers["shesha"],
        1e-12,
    );

    let rows = Rows::new(values, shape[1])?;
    let score = feature_split(rows, 3)?;
    assert_eq!(score, feature_split(rows, 3)?);
    assert_ne!(score, feature_split(rows, 4)?);

    // Three numbers of each picture on three axes of 32, noise on the others: no half of the axes sees all
    // three, until a rotation spreads them over all.
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let (n, length) = (64, 32);
    let few_axes: Vec<f64> = (0..n * length)
        .map(|i| {
            let spread = if i % length < 3 { 1.0 } else { 0.05 };
            spread * rng.sample::<f64, _>(StandardNormal)
        })
        .collect();
    let score = feature_split(Rows::new(&few_axes, length)?, 0)?;
    let (own, rotated) = (score.own.unwrap(), score.rotated.unwrap());
    assert!(own + 0.2 < rotated, "own {own}, rotated {rotated}");

    // A vector that is zero on a half has no cosine there.
    let mut zeros = few_axes.clone();
    zeros[..length - 1].fill(0.0);
    assert_eq!(feature_split(Rows::new(&zeros, length)?, 0)?.own, None);
    assert!(feature_split(Rows::new(&few_axes[..3 * length], length)?, 0).is_err());
    assert!(feature_split(Rows::new(&few_axes[..12], 3)?, 0).is_err());
    // Too long to rotate.
    assert!(feature_split(Rows::new(&[1.0; 5 * 5000], 5000)?, 0).is_err());
    Ok(())
}

#[test]
fn the_head_of_lpips_is_that_of_the_package() -> Result<()> {
    let (fixture, numbers) = fixture();
    let maps: Vec<[FeatureMap; 2]> = (0..5)
        .map(|i| {
            let key = format!("lpips.maps.{i}");
            let shape = fixture.shape(&key);
            let values: Vec<f32> = fixture.get(&key).iter().map(|&v| v as f32).collect();
            let (a, b) = values.split_at(values.len() / 2);
            [a, b].map(|planes| {
                FeatureMap::from_planes([shape[1], shape[2], shape[3]], planes).unwrap()
            })
        })
        .collect();
    let weights: Vec<Vec<f32>> = (0..5)
        .map(|i| {
            let weights = fixture.get(&format!("lpips.weights.{i}"));
            weights.iter().map(|&v| v as f32).collect()
        })
        .collect();
    let layers: Vec<Layer<'_>> = (maps.iter().zip(&weights))
        .map(|([a, b], weights)| Layer { a, b, weights })
        .collect();
    // The package computes in f32.
    close(lpips_head(&layers)?, &numbers["lpips"], 1e-6);
    let same = Layer {
        a: &maps[0][0],
        b: &maps[0][0],
        weights: &weights[0],
    };
    assert_eq!(lpips_head(&[same])?, 0.0);
    assert!(lpips_head(&[]).is_err());
    let wrong = Layer {
        weights: &weights[1],
        ..same
    };
    assert!(lpips_head(&[wrong]).is_err());
    Ok(())
}

#[test]
fn feature_maps_change_their_order_and_back() -> Result<()> {
    let planes: Vec<f32> = (0..24).map(|i| i as f32).collect();
    let map = FeatureMap::from_planes([2, 3, 4], &planes)?;
    assert_eq!(map.vectors()[..4], [0.0, 12.0, 1.0, 13.0]);
    assert_eq!(map.planes(), planes);
    assert_eq!((map.channels(), map.positions()), (2, 12));
    for shape in [[2, 3, 5], [0, 3, 4], [usize::MAX, 2, 2]] {
        assert!(FeatureMap::from_planes(shape, &planes).is_err());
        assert!(FeatureMap::from_vectors(shape, planes.clone()).is_err());
    }
    assert!(FeatureMap::from_vectors([0, 0, 0], vec![]).is_err());
    Ok(())
}
