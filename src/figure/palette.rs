//! The colours of series: eight hues that stay apart for colour-blind readers; and a scale for numbers.
//!
//! Okabe and Ito, *Color Universal Design* (2008). Their order here puts first the hues that are
//! dark enough for thin lines on white; yellow is the last.

/// The eight colours, sRGB.
pub const OKABE_ITO: [[u8; 3]; 8] = [
    [0x00, 0x72, 0xB2], // blue
    [0xD5, 0x5E, 0x00], // vermilion
    [0x00, 0x9E, 0x73], // bluish green
    [0xCC, 0x79, 0xA7], // reddish purple
    [0xE6, 0x9F, 0x00], // orange
    [0x56, 0xB4, 0xE9], // sky blue
    [0x00, 0x00, 0x00], // black
    [0xF0, 0xE4, 0x42], // yellow
];

/// Colour of the series with this index, counted round after eight.
pub fn okabe_ito(index: usize) -> [u8; 3] {
    OKABE_ITO[index % OKABE_ITO.len()]
}

/// A scale for numbers, evenly spaced from the least to the largest, sRGB: viridis by van der Walt and Smith (2015, CC0), whose lightness rises
/// evenly, so that it reads in grey and by colour-blind readers.
pub const VIRIDIS: [[u8; 3]; 17] = [
    [68, 1, 84],
    [72, 24, 106],
    [71, 45, 123],
    [66, 64, 134],
    [59, 82, 139],
    [51, 99, 141],
    [44, 114, 142],
    [38, 130, 142],
    [33, 145, 140],
    [31, 160, 136],
    [40, 174, 128],
    [63, 188, 115],
    [94, 201, 98],
    [132, 212, 75],
    [173, 220, 48],
    [216, 226, 25],
    [253, 231, 37],
];

/// Colour of a fraction of the scale, cut to 0 to 1, as the shader mixes it.
pub fn viridis(fraction: f64) -> [u8; 3] {
    let place = fraction.clamp(0.0, 1.0) * (VIRIDIS.len() - 1) as f64;
    let below = (place as usize).min(VIRIDIS.len() - 2);
    let weight = place - below as f64;
    std::array::from_fn(|channel| {
        let [low, high] = [below, below + 1].map(|stop| f64::from(VIRIDIS[stop][channel]));
        (low + weight * (high - low)).round() as u8
    })
}
