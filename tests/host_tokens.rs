//! What transformers compute on the host in single precision, against the same in double precision.

use burn::tensor::{Device, Tensor, TensorData};
use etascope::encoders::host_norm::{Moments, layer_norm};
use etascope::encoders::host_token::{gelu, gelu_derivative, softmax_columns, softmax_derivative};
use etascope::encoders::layers::Placement;

/// Values between −1 and 1 without a pattern.
fn noise(len: usize) -> Vec<f32> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

/// Φ(x) by Burn's error function, in double precision that of libm.
fn distribution(x: &[f32]) -> Vec<f64> {
    let x: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let at = Placement::f64(&Device::flex());
    let len = x.len();
    let x: Tensor<1> = Tensor::from_data(TensorData::new(x, [len]), at.options());
    let erf = (x * std::f64::consts::FRAC_1_SQRT_2).erf();
    erf.into_data()
        .iter::<f64>()
        .map(|erf| 0.5 + 0.5 * erf)
        .collect()
}

#[test]
fn gelu_and_its_derivative_are_right_over_the_whole_line() {
    let x: Vec<f32> = (-120_000..=120_000).map(|i| i as f32 * 1e-4).collect();
    let (values, derivatives) = (gelu(&x), gelu_derivative(&x));
    for (i, (&x, phi)) in x.iter().zip(distribution(&x)).enumerate() {
        let x = f64::from(x);
        let value = x * phi;
        let derivative = phi + x * (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
        let error = (f64::from(values[i]) - value).abs();
        // Half a unit in the last place of x, and 4e-7 where it is small.
        assert!(
            error <= 4e-7_f64.max(x.abs() * 6e-8),
            "gelu({x}): {error:e}"
        );
        let error = (f64::from(derivatives[i]) - derivative).abs();
        assert!(error <= 4e-7, "gelu'({x}): {error:e}");
        // In the tail every digit counts: 1 + erf would leave none. The reference itself has none below −5.
        if (-5.0..-0.1).contains(&x) {
            let error = (f64::from(values[i]) / value - 1.0).abs();
            assert!(error <= 2e-6, "gelu({x}): {error:e} of itself");
        }
    }
    let special = gelu(&[f32::NAN, f32::INFINITY, 0.0, -40.0]);
    assert!(special[0].is_nan());
    assert_eq!(special[1..], [f32::INFINITY, 0.0, -0.0]);
}

#[test]
fn softmax_and_its_derivative_are_right_for_any_number_of_columns() {
    for (rows, columns) in [(1, 1), (7, 5), (64, 64), (197, 197), (3, 33)] {
        // Scores as far apart as those beyond a mask, whose weight is 0.
        let scores: Vec<f32> = noise(rows * columns)
            .iter()
            .enumerate()
            .map(|(i, v)| 8.0 * v - if i % 11 == 3 { 100.0 } else { 0.0 })
            .collect();
        let change = noise(rows * columns);
        let (mut found, mut found_change) = (scores.clone(), change.clone());
        let mut scratch = Vec::new();
        softmax_columns(&mut found, columns, &mut scratch);
        softmax_derivative(&found, &mut found_change, columns, &mut scratch);
        for column in 0..columns {
            let of = |values: &[f32]| -> Vec<f64> {
                let column = values.iter().skip(column).step_by(columns);
                column.map(|&v| f64::from(v)).collect()
            };
            let (scores, change) = (of(&scores), of(&change));
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = scores.iter().map(|score| (score - most).exp()).sum();
            let p: Vec<f64> = scores.iter().map(|s| (s - most).exp() / sum).collect();
            let mean: f64 = p.iter().zip(&change).map(|(p, c)| p * c).sum();
            for (row, found) in of(&found).into_iter().enumerate() {
                // Scores of 8 are rounded by 5e-7, of which exp makes as much of itself.
                assert!((found - p[row]).abs() <= 2e-6 * p[row] + 1e-30);
            }
            for (row, found) in of(&found_change).into_iter().enumerate() {
                // The differences are at most 2.
                let expected = p[row] * (change[row] - mean);
                assert!((found - expected).abs() <= 4e-6 * p[row] + 1e-30);
            }
        }
    }
}

#[test]
fn layer_norm_is_right_far_from_zero_and_at_the_edge_of_a_tile() {
    for (channels, plane) in [(1, 1), (3, 5), (17, 129), (96, 784), (768, 49)] {
        let batch = 2;
        let x: Vec<f32> = noise(batch * channels * plane)
            .iter()
            .map(|v| v + 30.0)
            .collect();
        let (scale, shift) = (noise(channels), noise(2 * channels)[channels..].to_vec());
        let found = layer_norm(&x, plane, &scale, &shift, 1e-5);
        let moments = Moments::of(&x, channels, plane, 1e-5);
        for (index, position) in (0..batch).flat_map(|i| (0..plane).map(move |p| (i, p))) {
            let at = |channel: usize| (index * channels + channel) * plane + position;
            let values: Vec<f64> = (0..channels).map(|c| f64::from(x[at(c)])).collect();
            let mean = values.iter().sum::<f64>() / channels as f64;
            let variance: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
            let inverse = (variance / channels as f64 + 1e-5).sqrt().recip();
            // Up to 96 partial sums of values around 30 are added up, each time with a rounding of 6e-8 of the
            // sum, which add up like a random walk.
            let mean_bound = 30.0 * 6e-7;
            let found_mean = f64::from(moments.mean[index * plane + position]);
            assert!(
                (found_mean - mean).abs() <= mean_bound,
                "{channels}×{plane}"
            );
            for (channel, value) in values.iter().enumerate() {
                let expected = (value - mean) * inverse * f64::from(scale[channel]);
                let expected = expected + f64::from(shift[channel]);
                let error = (f64::from(found[at(channel)]) - expected).abs();
                assert!(
                    error <= mean_bound * inverse.max(1.0),
                    "{channels}×{plane}: {error:e}"
                );
            }
        }
    }
}
