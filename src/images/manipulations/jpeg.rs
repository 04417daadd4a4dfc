//! What a JPEG file leaves of a picture.
//!
//! Entropy coding loses nothing, so that a file need not be written: the picture goes through the lossy
//! steps alone, there and back. They are those of libjpeg-turbo with its defaults, as Pillow uses it, in
//! the same integers: YCbCr in 16-bit fixed point, means of 2 × 2 colour differences, the accurate
//! integer cosine transform of Loeffler, Ligtenberg and Moschytz (1989) with 13-bit constants, tables of
//! the standard's annex K scaled by the quality, and triangular interpolation of the colour differences.

use serde::{Deserialize, Serialize};

use super::Picture;

/// Resolution of the colour differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Subsampling {
    /// Half of the luma's along both axes: what cameras and most programs write.
    #[serde(rename = "4:2:0")]
    Half,
    /// That of the luma.
    #[serde(rename = "4:4:4")]
    Full,
}

impl Subsampling {
    /// `4:2:0` or `4:4:4`.
    pub fn title(self) -> &'static str {
        match self {
            Self::Half => "4:2:0",
            Self::Full => "4:4:4",
        }
    }
}

/// Samples of one channel, row after row.
struct Plane {
    width: usize,
    height: usize,
    samples: Vec<u8>,
}

/// Side of a block.
const BLOCK: usize = 8;

/// The picture as a file of this quality (1 to 100) gives it back.
pub(super) fn round_trip(picture: &Picture, quality: u8, subsampling: Subsampling) -> Picture {
    let (width, height) = (picture.width(), picture.height());
    let [luma, blue, red] = ycc_planes(picture);
    let luma = coded(&luma, [width, height], &scaled_table(&LUMINANCE, quality));
    let table = scaled_table(&CHROMINANCE, quality);
    let [blue, red] = [blue, red].map(|plane| match subsampling {
        Subsampling::Full => coded(&plane, [width, height], &table),
        Subsampling::Half => {
            let (halved, size) = halved(&plane);
            doubled(&coded(&halved, size, &table), width, height)
        }
    });
    let samples = luma.samples.iter().zip(&blue.samples).zip(&red.samples);
    picture.with_pixels(samples.map(|((&y, &cb), &cr)| rgb_from_ycc(y, cb, cr)))
}

/// Bits after the point of the colour transform.
const COLOUR_BITS: u32 = 16;
const COLOUR_HALF: i32 = 1 << (COLOUR_BITS - 1);

fn ycc_planes(picture: &Picture) -> [Plane; 3] {
    // Rows of the JFIF transform: each adds up to 2¹⁶ or to 0.
    const ROWS: [[i32; 3]; 3] = [
        [19_595, 38_470, 7_471],
        [-11_059, -21_709, 32_768],
        [32_768, -27_439, -5_329],
    ];
    // The middle of the scale for the differences, and a rounding that never reaches 256.
    const OFFSETS: [i32; 3] = [
        COLOUR_HALF,
        (128 << COLOUR_BITS) + COLOUR_HALF - 1,
        (128 << COLOUR_BITS) + COLOUR_HALF - 1,
    ];
    [0, 1, 2].map(|channel| {
        let value = |pixel: [u8; 3]| {
            let parts = pixel.iter().zip(ROWS[channel]);
            let sum: i32 = parts
                .map(|(&value, weight)| i32::from(value) * weight)
                .sum();
            ((sum + OFFSETS[channel]) >> COLOUR_BITS) as u8
        };
        Plane {
            width: picture.width(),
            height: picture.height(),
            samples: picture.pixels().map(value).collect(),
        }
    })
}

fn rgb_from_ycc(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    let y = i32::from(y);
    let (cb, cr) = (i32::from(cb) - 128, i32::from(cr) - 128);
    let red = (91_881 * cr + COLOUR_HALF) >> COLOUR_BITS;
    let green = (-22_554 * cb - 46_802 * cr + COLOUR_HALF) >> COLOUR_BITS;
    let blue = (116_130 * cb + COLOUR_HALF) >> COLOUR_BITS;
    [red, green, blue].map(|part| (y + part).clamp(0, 255) as u8)
}

/// Half as many samples along both axes: means of four, rounded up and down in turn from column to
/// column. As wide as whole blocks, the plane's last column being repeated first. Also the size without
/// this margin.
fn halved(plane: &Plane) -> (Plane, [usize; 2]) {
    let size = [plane.width.div_ceil(2), plane.height.div_ceil(2)];
    let width = size[0].next_multiple_of(BLOCK);
    let at = |row: usize, column: usize| {
        let (row, column) = (row.min(plane.height - 1), column.min(plane.width - 1));
        u16::from(plane.samples[row * plane.width + column])
    };
    let mut samples = Vec::with_capacity(width * size[1]);
    for row in (0..size[1]).map(|row| 2 * row) {
        for column in 0..width {
            let (left, right) = (2 * column, 2 * column + 1);
            let sum = at(row, left) + at(row, right) + at(row + 1, left) + at(row + 1, right);
            let rounding = 1 + (column & 1) as u16;
            // A mean of bytes.
            samples.push(((sum + rounding) >> 2) as u8);
        }
    }
    let halved = Plane {
        width,
        height: size[1],
        samples,
    };
    (halved, size)
}

/// Twice as many samples along both axes, `width · height` of them: each is made of the nearest samples,
/// 3 parts of the nearer to 1 of the farther along each axis.
fn doubled(plane: &Plane, width: usize, height: usize) -> Plane {
    let rows: Vec<&[u8]> = plane.samples.chunks_exact(plane.width).collect();
    let mut samples = Vec::with_capacity(width * height);
    // libjpeg repeats samples where there are but two columns.
    let is_smooth = plane.width > 2;
    for row in 0..height {
        let near = rows[row / 2];
        let far = match row % 2 {
            0 => rows[(row / 2).saturating_sub(1)],
            _ => rows[(row / 2 + 1).min(plane.height - 1)],
        };
        let sum = |column: usize| 3 * u16::from(near[column]) + u16::from(far[column]);
        for column in 0..width {
            let here = column / 2;
            samples.push(if !is_smooth {
                near[here]
            } else if column % 2 == 0 {
                ((3 * sum(here) + sum(here.saturating_sub(1)) + 8) >> 4) as u8
            } else {
                ((3 * sum(here) + sum((here + 1).min(plane.width - 1)) + 7) >> 4) as u8
            });
        }
    }
    Plane {
        width,
        height,
        samples,
    }
}

/// A plane after transform, quantisation and back; last column and row are repeated to fill blocks. The
/// first `width · height` samples.
fn coded(plane: &Plane, [width, height]: [usize; 2], table: &[i32; BLOCK * BLOCK]) -> Plane {
    let mut samples = vec![0; width * height];
    for top in (0..height).step_by(BLOCK) {
        for left in (0..width).step_by(BLOCK) {
            let mut block = [0; BLOCK * BLOCK];
            for (i, value) in block.iter_mut().enumerate() {
                let row = (top + i / BLOCK).min(plane.height - 1);
                let column = (left + i % BLOCK).min(plane.width - 1);
                *value = i32::from(plane.samples[row * plane.width + column]) - 128;
            }
            forward_transform(&mut block);
            for (value, &step) in block.iter_mut().zip(table) {
                // The transform is 8 times the orthonormal one.
                let divisor = 8 * step;
                *value = value.signum() * ((value.abs() + divisor / 2) / divisor) * step;
            }
            inverse_transform(&mut block);
            for (i, value) in block.iter().enumerate() {
                let (row, column) = (top + i / BLOCK, left + i % BLOCK);
                if row < height && column < width {
                    samples[row * width + column] = (value + 128).clamp(0, 255) as u8;
                }
            }
        }
    }
    Plane {
        width,
        height,
        samples,
    }
}

/// Bits after the point of the transform's constants, and of values between its two passes.
const CONSTANT_BITS: u32 = 13;
const PASS_BITS: u32 = 2;

// Sums of cosines of multiples of π/16, scaled by 2¹³, named by their values.
const C0_299: i32 = 2446;
const C0_390: i32 = 3196;
const C0_541: i32 = 4433;
const C0_765: i32 = 6270;
const C0_900: i32 = 7373;
const C1_176: i32 = 9633;
const C1_501: i32 = 12_299;
const C1_848: i32 = 15_137;
const C1_962: i32 = 16_069;
const C2_053: i32 = 16_819;
const C2_563: i32 = 20_995;
const C3_073: i32 = 25_172;

/// Without the lowest `bits`, rounded.
fn descale(value: i32, bits: u32) -> i32 {
    (value + (1 << (bits - 1))) >> bits
}

/// Runs a transform of eight values over all rows (`stride` 1) or columns (`stride` 8).
fn each_line(
    block: &mut [i32; BLOCK * BLOCK],
    stride: usize,
    transform: impl Fn([i32; BLOCK]) -> [i32; BLOCK],
) {
    for line in 0..BLOCK {
        let start = line * (BLOCK / stride);
        let place = |i: usize| start + i * stride;
        let out = transform(std::array::from_fn(|i| block[place(i)]));
        out.iter()
            .enumerate()
            .for_each(|(i, &value)| block[place(i)] = value);
    }
}

/// Rows first. The result is 8 times the orthonormal transform.
fn forward_transform(block: &mut [i32; BLOCK * BLOCK]) {
    each_line(block, 1, |line| {
        forward_line(line, |value| value << PASS_BITS, CONSTANT_BITS - PASS_BITS)
    });
    each_line(block, BLOCK, |line| {
        let even = |value| descale(value, PASS_BITS);
        forward_line(line, even, CONSTANT_BITS + PASS_BITS)
    });
}

fn forward_line(d: [i32; BLOCK], even: impl Fn(i32) -> i32, bits: u32) -> [i32; BLOCK] {
    let sums = [d[0] + d[7], d[1] + d[6], d[2] + d[5], d[3] + d[4]];
    let outer = [sums[0] + sums[3], sums[0] - sums[3]];
    let inner = [sums[1] + sums[2], sums[1] - sums[2]];
    let shared = (inner[1] + outer[1]) * C0_541;
    let odd = odd_part([d[3] - d[4], d[2] - d[5], d[1] - d[6], d[0] - d[7]]);
    [
        even(outer[0] + inner[0]),
        descale(odd[3], bits),
        descale(shared + outer[1] * C0_765, bits),
        descale(odd[2], bits),
        even(outer[0] - inner[0]),
        descale(odd[1], bits),
        descale(shared - inner[1] * C1_848, bits),
        descale(odd[0], bits),
    ]
}

/// The part of odd frequencies, which is its own inverse up to order.
fn odd_part(d: [i32; 4]) -> [i32; 4] {
    let shared = (d[0] + d[2] + d[1] + d[3]) * C1_176;
    let z1 = -(d[0] + d[3]) * C0_900;
    let z2 = -(d[1] + d[2]) * C2_563;
    let z3 = -(d[0] + d[2]) * C1_962 + shared;
    let z4 = -(d[1] + d[3]) * C0_390 + shared;
    [
        d[0] * C0_299 + z1 + z3,
        d[1] * C2_053 + z2 + z4,
        d[2] * C3_073 + z2 + z3,
        d[3] * C1_501 + z1 + z4,
    ]
}

/// Columns first.
fn inverse_transform(block: &mut [i32; BLOCK * BLOCK]) {
    each_line(block, BLOCK, |line| {
        inverse_line(line, CONSTANT_BITS - PASS_BITS)
    });
    // Three bits undo the factor 8.
    each_line(block, 1, |line| {
        inverse_line(line, CONSTANT_BITS + PASS_BITS + 3)
    });
}

fn inverse_line(c: [i32; BLOCK], bits: u32) -> [i32; BLOCK] {
    let shared = (c[2] + c[6]) * C0_541;
    let (low, high) = (shared + c[2] * C0_765, shared - c[6] * C1_848);
    let (sum, difference) = (
        (c[0] + c[4]) << CONSTANT_BITS,
        (c[0] - c[4]) << CONSTANT_BITS,
    );
    let even = [sum + low, difference + high, difference - high, sum - low];
    let odd = odd_part([c[7], c[5], c[3], c[1]]);
    std::array::from_fn(|i| {
        let value = if i < 4 {
            even[i] + odd[3 - i]
        } else {
            even[7 - i] - odd[i - 4]
        };
        descale(value, bits)
    })
}

/// A table of the standard at a quality, limited to what baseline files can hold.
fn scaled_table(table: &[i32; BLOCK * BLOCK], quality: u8) -> [i32; BLOCK * BLOCK] {
    let quality = i32::from(quality.clamp(1, 100));
    let percent = if quality < 50 {
        5000 / quality
    } else {
        200 - 2 * quality
    };
    table.map(|step| ((step * percent + 50) / 100).clamp(1, 255))
}

/// Table K.1 of ITU-T T.81, row after row.
#[rustfmt::skip]
const LUMINANCE: [i32; BLOCK * BLOCK] = [
    16, 11, 10, 16, 24, 40, 51, 61,
    12, 12, 14, 19, 26, 58, 60, 55,
    14, 13, 16, 24, 40, 57, 69, 56,
    14, 17, 22, 29, 51, 87, 80, 62,
    18, 22, 37, 56, 68, 109, 103, 77,
    24, 35, 55, 64, 81, 104, 113, 92,
    49, 64, 78, 87, 103, 121, 120, 101,
    72, 92, 95, 98, 112, 100, 103, 99,
];

/// Table K.2 of ITU-T T.81, row after row.
#[rustfmt::skip]
const CHROMINANCE: [i32; BLOCK * BLOCK] = [
    17, 18, 24, 47, 99, 99, 99, 99,
    18, 21, 26, 66, 99, 99, 99, 99,
    24, 26, 56, 99, 99, 99, 99, 99,
    47, 66, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99,
];
