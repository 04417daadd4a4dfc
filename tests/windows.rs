//! The CPU device's own convolutions and maxima against Burn's, in double precision.

use burn::tensor::{DType, Device, Tensor, TensorData, module};
use etascope::encoders::host_conv::Activation;
use etascope::encoders::host_pool::PoolConfig;
use etascope::encoders::value::Value;
use etascope::encoders::windows::{Kernel, max_pool2d, max_pool2d_with_winners};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A convolution as an encoder would ask for it.
struct Case {
    batch: usize,
    channels: [usize; 2],
    input: [usize; 2],
    kernel: usize,
    stride: usize,
    padding: (usize, usize),
    groups: usize,
}

const fn case(
    batch: usize,
    channels: [usize; 2],
    input: [usize; 2],
    (kernel, stride, padding): (usize, usize, (usize, usize)),
    groups: usize,
) -> Case {
    Case {
        batch,
        channels,
        input,
        kernel,
        stride,
        padding,
        groups,
    }
}

/// Every path: dense, 1×1 and depthwise; planes smaller than, equal to and larger than a tile; even
/// and uneven padding; strides that leave rows over; fewer images than threads, and more.
const CASES: [Case; 31] = [
    case(1, [3, 32], [224, 224], (3, 2, (0, 1)), 1),
    case(1, [3, 64], [227, 227], (3, 2, (0, 0)), 1),
    case(1, [16, 96], [112, 112], (1, 1, (0, 0)), 1),
    case(3, [8, 5], [40, 41], (1, 1, (0, 0)), 1),
    case(2, [8, 5], [33, 32], (3, 1, (1, 1)), 1),
    case(1, [4, 6], [32, 32], (5, 2, (1, 2)), 1),
    case(1, [5, 4], [9, 11], (1, 2, (0, 0)), 1),
    case(1, [7, 1], [9, 11], (3, 1, (2, 2)), 1),
    case(1, [1, 1], [9, 9], (3, 1, (1, 1)), 1),
    case(8, [160, 24], [7, 7], (1, 1, (0, 0)), 1),
    case(9, [5, 7], [7, 8], (3, 2, (1, 1)), 1),
    case(7, [5, 7], [6, 6], (3, 1, (1, 1)), 1),
    case(1, [32, 32], [112, 112], (3, 1, (1, 1)), 32),
    case(1, [24, 24], [112, 112], (3, 2, (0, 1)), 24),
    case(2, [24, 24], [56, 56], (5, 2, (1, 2)), 24),
    case(2, [12, 12], [28, 28], (5, 1, (2, 2)), 12),
    case(3, [12, 12], [14, 14], (3, 1, (1, 1)), 12),
    case(2, [12, 12], [7, 7], (5, 1, (2, 2)), 12),
    case(1, [4, 4], [15, 16], (7, 1, (3, 3)), 4),
    case(1, [4, 4], [15, 16], (5, 2, (2, 2)), 4),
    case(1, [5, 5], [9, 11], (3, 3, (1, 1)), 5),
    case(2, [6, 4], [9, 9], (3, 1, (1, 1)), 2),
    case(5, [24, 17], [14, 14], (3, 1, (1, 1)), 1),
    case(1, [9, 20], [30, 31], (3, 2, (1, 1)), 1),
    case(2, [3, 24], [32, 32], (4, 4, (0, 0)), 1),
    case(3, [8, 16], [15, 15], (1, 2, (0, 0)), 1),
    case(1, [6, 9], [12, 3], (5, 3, (2, 2)), 1),
    case(2, [4, 8], [1, 40], (1, 1, (0, 0)), 1),
    case(1, [2, 64], [3, 5], (1, 1, (0, 0)), 1),
    // Panels over the border between two images, and a last image by itself.
    case(5, [20, 17], [7, 7], (1, 1, (0, 0)), 1),
    case(2, [16, 24], [11, 12], (3, 2, (1, 1)), 1),
];

impl Case {
    fn kernel(&self, weight: &(Vec<f64>, [usize; 4]), dtype: DType) -> Kernel {
        Kernel::new(vec![tensor(weight, dtype)], [self.stride; 2], self.groups)
    }

    fn output(&self) -> [usize; 2] {
        let (before, after) = self.padding;
        self.input
            .map(|side| (side + before + after - self.kernel) / self.stride + 1)
    }

    fn name(&self) -> String {
        let Self {
            batch,
            channels,
            input,
            kernel,
            stride,
            padding,
            groups,
        } = self;
        format!("{batch}×{channels:?} {input:?} k{kernel} s{stride} p{padding:?} g{groups}")
    }

    fn weight(&self, rng: &mut ChaCha8Rng) -> (Vec<f64>, [usize; 4]) {
        let [inputs, outputs] = self.channels;
        random(
            [outputs, inputs / self.groups, self.kernel, self.kernel],
            rng,
        )
    }
}

/// Numbers in ±1 that single precision holds exactly.
fn random(shape: [usize; 4], rng: &mut ChaCha8Rng) -> (Vec<f64>, [usize; 4]) {
    let len = shape.iter().product();
    (
        (0..len)
            .map(|_| f64::from(rng.random_range(-1.0f32..1.0)))
            .collect(),
        shape,
    )
}

fn tensor((values, shape): &(Vec<f64>, [usize; 4]), dtype: DType) -> Tensor<4> {
    let data = TensorData::new(values.clone(), *shape).convert_dtype(dtype);
    Tensor::from_data(data, (&Device::flex(), dtype))
}

fn relative_difference(single: Tensor<4>, double: Tensor<4>) -> f64 {
    assert_eq!(single.dims(), double.dims());
    let [single, double]: [Vec<f64>; 2] =
        [single, double].map(|t| t.into_data().iter::<f64>().collect());
    let norm = double.iter().map(|v| v * v).sum::<f64>().sqrt();
    let difference = single
        .iter()
        .zip(&double)
        .map(|(a, b)| (a - b).powi(2))
        .sum::<f64>()
        .sqrt();
    difference / norm
}

/// Sums of up to a thousand products in single precision round by some 1e-7 of their size.
const TOLERANCE: f64 = 1e-6;

#[test]
fn host_convolutions_agree_with_burns() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for case in &CASES {
        let [inputs, outputs] = case.channels;
        let x = random([case.batch, inputs, case.input[0], case.input[1]], &mut rng);
        let weight = case.weight(&mut rng);
        let bias = random([1, outputs, 1, 1], &mut rng);
        for activation in [Activation::None, Activation::Relu, Activation::Relu6] {
            let [single, double] = [DType::F32, DType::F64].map(|dtype| {
                let bias = tensor(&bias, dtype).reshape([outputs]);
                let (x, margins) = (tensor(&x, dtype), [case.padding; 2]);
                case.kernel(&weight, dtype)
                    .forward(x, Some(&bias), margins, activation, None)
            });
            let difference = relative_difference(single, double);
            assert!(
                difference < TOLERANCE,
                "{} {activation:?}: {difference:e}",
                case.name()
            );
        }
    }
}

#[test]
fn host_transposes_agree_with_burns() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for case in &CASES {
        let weight = case.weight(&mut rng);
        let [rows, columns] = case.output();
        let v = random([case.batch, case.channels[1], rows, columns], &mut rng);
        let [single, double] = [DType::F32, DType::F64].map(|dtype| {
            let (v, margins) = (tensor(&v, dtype), [case.padding; 2]);
            case.kernel(&weight, dtype)
                .transposed(v, None, margins, case.input)
        });
        let difference = relative_difference(single, double);
        assert!(difference < TOLERANCE, "{}: {difference:e}", case.name());
    }
}

/// The derivative of an activation is multiplied in on the way, forwards after the sums and backwards
/// before them.
#[test]
fn factors_agree_with_burns() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for case in &CASES {
        let weight = case.weight(&mut rng);
        let ([rows, columns], outputs) = (case.output(), case.channels[1]);
        let factors = random([1, outputs, rows, columns], &mut rng);
        let x = random(
            [case.batch, case.channels[0], case.input[0], case.input[1]],
            &mut rng,
        );
        let v = random([case.batch, outputs, rows, columns], &mut rng);
        let [single, double] = [DType::F32, DType::F64].map(|dtype| {
            let (kernel, margins) = (case.kernel(&weight, dtype), [case.padding; 2]);
            let factors = tensor(&factors, dtype);
            [
                kernel.forward(
                    tensor(&x, dtype),
                    None,
                    margins,
                    Activation::None,
                    Some(&factors),
                ),
                kernel.transposed(tensor(&v, dtype), Some(&factors), margins, case.input),
            ]
        });
        for (single, double) in single.into_iter().zip(double) {
            let difference = relative_difference(single, double);
            assert!(difference < TOLERANCE, "{}: {difference:e}", case.name());
        }
    }
}

/// Kernels of two sizes over one input: by Burn one after the other, here as one.
#[test]
fn kernels_side_by_side_agree_with_burns() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    for (stride, margin) in [(1, (1, 1)), (2, (1, 0)), (1, (0, 0)), (2, (0, 1))] {
        let (batch, inputs, side) = (3, 5, 15);
        let narrow = random([6, inputs, 1, 1], &mut rng);
        let wide = random([11, inputs, 3, 3], &mut rng);
        let bias = random([1, 17, 1, 1], &mut rng);
        let x = random([batch, inputs, side, side], &mut rng);
        let [single, double] = [DType::F32, DType::F64].map(|dtype| {
            let parts = vec![tensor(&narrow, dtype), tensor(&wide, dtype)];
            let kernel = Kernel::new(parts, [stride; 2], 1);
            let bias = tensor(&bias, dtype).reshape([17]);
            let (x, margins) = (tensor(&x, dtype), [margin; 2]);
            let y = kernel.forward(x, Some(&bias), margins, Activation::Relu, None);
            let back = kernel.transposed(y.clone(), None, margins, [side; 2]);
            [y, back]
        });
        for (single, double) in single.into_iter().zip(double) {
            let difference = relative_difference(single, double);
            assert!(
                difference < TOLERANCE,
                "stride {stride}, margin {margin:?}: {difference:e}"
            );
        }
    }
}

#[test]
fn a_view_of_a_larger_tensor_is_read_where_it_lies() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let x = random([3, 4, 9, 9], &mut rng);
    let weight = random([5, 4, 3, 3], &mut rng);
    let kernel = Kernel::new(vec![tensor(&weight, DType::F32)], [1; 2], 1);
    let run = |x: Tensor<4>| kernel.forward(x, None, [(1, 1); 2], Activation::None, None);
    let whole = run(tensor(&x, DType::F32)).narrow(0, 1, 1);
    let view = run(tensor(&x, DType::F32).narrow(0, 1, 1));
    whole.into_data().assert_eq(&view.into_data(), true);
}

#[test]
fn not_a_number_passes_through_activations() {
    let x = tensor(&(vec![f64::NAN; 16], [1, 1, 4, 4]), DType::F32);
    let weight = tensor(&(vec![1.0], [1, 1, 1, 1]), DType::F32);
    let kernel = Kernel::new(vec![weight], [1; 2], 1);
    let y = kernel.forward(x, None, [(0, 0); 2], Activation::Relu6, None);
    assert!(y.into_data().iter::<f32>().all(f32::is_nan));
}

/// Kernel, stride, padding.
type Pooling = (usize, usize, usize);

#[test]
fn host_maxima_are_burns() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let cases: [([usize; 2], Pooling); 14] = [
        ([9, 9], (3, 2, 0)),
        ([10, 13], (3, 2, 0)),
        ([113, 113], (3, 2, 0)),
        ([8, 6], (2, 2, 0)),
        ([7, 7], (2, 3, 0)),
        // A last window would begin at or beyond the edge.
        ([5, 6], (1, 3, 0)),
        ([9, 8], (2, 5, 0)),
        ([6, 10], (3, 7, 0)),
        ([3, 3], (3, 1, 0)),
        ([112, 111], (3, 2, 1)),
        ([5, 8], (3, 2, 1)),
        ([6, 7], (5, 1, 2)),
        ([9, 4], (4, 3, 2)),
        ([1, 2], (3, 2, 1)),
    ];
    for (side, (kernel, stride, padding)) in cases {
        for ceil in [false, true] {
            let pool = PoolConfig {
                kernel,
                stride,
                padding,
                ceil,
            };
            // Padding with zeros instead of nothing would show where all values of a window are negative.
            let (values, shape) = random([2, 3, side[0], side[1]], &mut rng);
            let x = (values.iter().map(|v| v - 1.0).collect(), shape);
            let [single, double] =
                [DType::F32, DType::F64].map(|dtype| max_pool2d(tensor(&x, dtype), pool));
            let double = double.into_data().convert_dtype(DType::F32);
            single.into_data().assert_eq(&double, true);
            let sides = side.map(|side| pool.output_side(side));
            assert_eq!(double.shape()[2..], sides, "{side:?} {pool:?}");

            let image = |dtype| tensor(&x, dtype).narrow(0, 0, 1);
            let [single, double] = [DType::F32, DType::F64].map(|dtype| {
                let (y, winners) = max_pool2d_with_winners(image(dtype), pool);
                let pair = Tensor::cat(vec![y.clone(), y.clone() * 2.0], 0);
                let restored = winners.restore(pair);
                // What was selected and brought back is selected again.
                let again = winners.select(restored.clone()).narrow(0, 0, 1);
                [y, restored, again]
            });
            for (single, double) in single.into_iter().zip(double) {
                let difference = relative_difference(single, double);
                assert!(difference < TOLERANCE, "{side:?} {pool:?}: {difference:e}");
            }
        }
    }
}

#[test]
fn a_pooling_needs_the_input_that_it_says() {
    for (kernel, stride, padding) in [(3, 2, 0), (2, 2, 0), (3, 2, 1), (5, 3, 2), (4, 1, 1)] {
        for ceil in [false, true] {
            let pool = PoolConfig {
                kernel,
                stride,
                padding,
                ceil,
            };
            for output in 1..5 {
                let least = pool.smallest_input(output);
                assert_eq!(pool.output_side(least), output, "{pool:?}");
                assert!(
                    output == 1 || pool.output_side(least - 1) < output,
                    "{pool:?}"
                );
            }
        }
    }
}

#[test]
fn means_over_a_grid_are_burns_adaptive_pooling_with_its_derivative() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for (side, grid) in [
        ([7, 7], 7),
        ([9, 10], 7),
        ([2, 1], 3),
        ([13, 6], 6),
        ([5, 4], 1),
    ] {
        let x = tensor(&random([2, 3, side[0], side[1]], &mut rng), DType::F64);
        let found = Value::plain(x.clone()).grid_mean(grid).into_primal();
        let expected = module::adaptive_avg_pool2d(x.clone(), [grid; 2]);
        assert!(relative_difference(found, expected.clone()) < 1e-14);

        let traced = Value::traced(x.clone().narrow(0, 0, 1)).grid_mean(grid);
        if let Some(derivative) = traced.flatten().linearised() {
            // Linear: the derivative is the map itself.
            let forward = derivative.jvp(x.clone());
            let flat = expected.reshape([2, 3 * grid * grid, 1, 1]);
            assert!(relative_difference(forward, flat.clone()) < 1e-14);
            let back = derivative.vjp(flat.clone());
            let total = |t: Tensor<4>| t.sum().into_scalar::<f64>();
            let (a, b) = (total(back * x), total(flat.clone() * flat));
            assert!((a / b - 1.0).abs() < 1e-13, "{a} {b}");
        } else {
            panic!("traced values have a derivative");
        }
    }
}

#[test]
fn not_a_number_passes_through_maxima() {
    for at in 0..9 {
        let mut values = vec![1.0; 9];
        values[at] = f64::NAN;
        let y = max_pool2d(
            tensor(&(values, [1, 1, 3, 3]), DType::F32),
            PoolConfig::inside(3, 2),
        );
        assert!(
            y.into_data().iter::<f32>().all(f32::is_nan),
            "position {at}"
        );
    }
}
