//! Changes of grey levels in place: hue, enhancement, noise. Integer and f32 arithmetic follow Pillow's
//! (`Convert.c`, `Blend.c`, `ImageEnhance.py`), so that results are its own.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use super::Picture;

/// Luma in grey levels: the weights of BT.601 in 16-bit fixed point, rounded.
pub(super) fn luma([r, g, b]: [u8; 3]) -> u8 {
    const HALF: u32 = 1 << 15;
    let sum = 19_595 * u32::from(r) + 38_470 * u32::from(g) + 7_471 * u32::from(b);
    // The weights add up to 2¹⁶.
    ((sum + HALF) >> 16) as u8
}

/// Mean luma, rounded to a grey level.
pub(super) fn mean_luma(picture: &Picture) -> u8 {
    let sum: u64 = picture.pixels().map(|pixel| u64::from(luma(pixel))).sum();
    let mean = sum as f64 / picture.pixels().len().max(1) as f64;
    (mean + 0.5) as u8
}

/// Each pixel p blended with `base(p)`: base + factor · (p − base), extrapolated for factors above 1.
pub(super) fn enhance(
    picture: &Picture,
    factor: f32,
    base: impl Fn([u8; 3]) -> [u8; 3],
) -> Picture {
    picture.with_pixels(picture.pixels().map(|pixel| {
        let base = base(pixel);
        [0, 1, 2].map(|c| {
            let (from, to) = (i16::from(base[c]), i16::from(pixel[c]));
            // `as` cuts the fraction, as Pillow does, and clips to 0 and 255.
            (f32::from(from) + factor * f32::from(to - from)) as u8
        })
    }))
}

/// Turns the hue by whole steps of Pillow's circle, the fraction cut, as torchvision's `adjust_hue`
/// does with Pillow's images.
pub(super) fn hue(picture: &Picture, degrees: f64) -> Picture {
    let steps = (degrees / 360.0 * 255.0) as i32;
    // Hues wrap at 256.
    let shift = steps.rem_euclid(256) as u8;
    picture.with_pixels(picture.pixels().map(|pixel| {
        let [h, s, v] = hsv_from_rgb(pixel);
        rgb_from_hsv([h.wrapping_add(shift), s, v])
    }))
}

fn hsv_from_rgb([r, g, b]: [u8; 3]) -> [u8; 3] {
    let most = r.max(g).max(b);
    let least = r.min(g).min(b);
    if most == least {
        return [0, 0, most];
    }
    let range = f32::from(most - least);
    let s = range / f32::from(most);
    let [rc, gc, bc] = [r, g, b].map(|value| f32::from(most - value) / range);
    let h = if r == most {
        bc - gc
    } else if g == most {
        (2.0 + f64::from(rc) - f64::from(bc)) as f32
    } else {
        (4.0 + f64::from(gc) - f64::from(rc)) as f32
    };
    let h = ((f64::from(h) / 6.0 + 1.0) % 1.0) as f32;
    // `as` cuts the fraction and clips.
    let level = |value: f32| (f64::from(value) * 255.0) as u8;
    [level(h), level(s), most]
}

fn rgb_from_hsv([h, s, v]: [u8; 3]) -> [u8; 3] {
    if s == 0 {
        return [v; 3];
    }
    let fs = (f64::from(s) / 255.0) as f32;
    let sixths = f64::from(f32::from(h) * 6.0) / 255.0;
    let sector = sixths.floor();
    let f = (sixths - sector) as f32;
    let (value, fs, f) = (f64::from(v), f64::from(fs), f64::from(f));
    let level = |value: f64| value.round() as u8;
    let p = level(value * (1.0 - fs));
    let q = level(value * (1.0 - fs * f));
    let t = level(value * (1.0 - fs * (1.0 - f)));
    match sector as u8 % 6 {
        0 => [v, t, p],
        1 => [q, v, p],
        2 => [p, v, t],
        3 => [p, q, v],
        4 => [t, p, v],
        _ => [v, p, q],
    }
}

/// Adds noise, rounds to the nearest grey level and clips.
pub(super) fn noise(picture: &Picture, std_levels: f64, seed: u64, stream: u64) -> Picture {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    picture.with_pixels(picture.pixels().map(|pixel| {
        pixel.map(|value| {
            let normal: f64 = rng.sample(StandardNormal);
            (f64::from(value) + std_levels * normal).round() as u8
        })
    }))
}
