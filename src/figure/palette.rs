//! The colours of series: eight hues that stay apart for colour-blind readers.
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
