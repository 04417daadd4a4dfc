//! Photographs: what is read from files of every kind, held against Pillow; what is refused, and how; and
//! the encoders' inputs, held against Pillow, torchvision and timm.
//!
//! The pictures and what Pillow makes of them are in `golden/images`, made by `gen_images.py` there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use etascope::images::{
    self, Background, Photo, Prepared, Preprocessing, ResizeFilter, bundled, decode,
};
use etascope::{Error, ErrorKind};
use sha2::{Digest, Sha256};

const WHITE: Background = Background([255; 3]);

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/images")
}

fn file(name: &str) -> Vec<u8> {
    fs::read(golden().join("files").join(name)).expect("committed fixture")
}

/// A binary PPM: width, height, pixels.
fn expected(name: &str) -> (usize, usize, Vec<u8>) {
    let bytes = fs::read(golden().join("expected").join(format!("{name}.ppm"))).expect("fixture");
    let mut fields = bytes.splitn(4, u8::is_ascii_whitespace);
    assert_eq!(fields.next(), Some(&b"P6"[..]));
    let mut number = || -> usize {
        std::str::from_utf8(fields.next().expect("size"))
            .expect("text")
            .parse()
            .expect("number")
    };
    let (width, height) = (number(), number());
    let rest = fields.next().expect("pixels");
    (width, height, rest[4..].to_vec())
}

fn read(name: &str) -> Photo {
    images::decode(&file(name), name, WHITE).expect("a fixture that can be read")
}

/// Largest and mean absolute difference in grey levels.
fn difference(a: &[u8], b: &[u8]) -> (u8, f64) {
    assert_eq!(a.len(), b.len());
    let differences = a.iter().zip(b).map(|(a, b)| a.abs_diff(*b));
    let sum: f64 = differences.clone().map(f64::from).sum();
    (differences.max().unwrap_or(0), sum / a.len() as f64)
}

/// Reads a fixture, holds it against Pillow's pixels, and returns what was done to it.
fn agrees(name: &str, largest: u8) -> Vec<String> {
    let photo = read(name);
    let (width, height, pixels) = expected(name);
    assert_eq!(
        (photo.width as usize, photo.height as usize),
        (width, height),
        "{name}"
    );
    let (max, mean) = difference(&photo.rgb, &pixels);
    assert!(
        max <= largest,
        "{name}: largest difference {max}, mean {mean:.3}"
    );
    photo.treatment
}

const NOTHING: [&str; 0] = [];

#[test]
fn lossless_files_are_read_exactly() {
    for name in [
        "rgb.png",
        "rgb.bmp",
        "rgb.webp",
        "rgb.tiff",
        "deflate.tiff",
        "rgb.gif",
    ] {
        assert_eq!(agrees(name, 0), NOTHING, "{name}");
    }
    for name in ["palette.png", "palette.bmp"] {
        assert_eq!(agrees(name, 0), NOTHING, "{name}");
    }
}

#[test]
fn lossy_files_agree_with_pillow_to_rounding() {
    // Two correct JPEG decoders differ by the rounding of the transform and of YCbCr: 3 levels.
    for name in ["rgb.jpg", "progressive.jpg"] {
        assert_eq!(agrees(name, 3), NOTHING, "{name}");
    }
    assert_eq!(agrees("grey.jpg", 3), ["grey to RGB"]);
    // Where chroma is halved, the interpolation is each decoder's own choice, and this picture has
    // hard colour edges (measured: 9, mean 0.5).
    assert_eq!(agrees("subsampled.jpg", 12), NOTHING);
    // The format prescribes every bit of its decoder.
    assert_eq!(agrees("lossy.webp", 0), NOTHING);
}

#[test]
fn all_eight_orientations_are_turned_upright() {
    let notes = [
        "",
        "mirrored by EXIF",
        "rotated 180° by EXIF",
        "flipped upside down by EXIF",
        "rotated 90° and mirrored by EXIF",
        "rotated 90° by EXIF",
        "rotated 270° and mirrored by EXIF",
        "rotated 270° by EXIF",
    ];
    for (index, note) in notes.iter().enumerate() {
        let treatment = agrees(&format!("orient{}.jpg", index + 1), 3);
        let wanted: &[&str] = if note.is_empty() { &[] } else { &[note] };
        assert_eq!(treatment, wanted);
    }
    for extension in ["png", "webp", "tiff"] {
        assert_eq!(agrees(&format!("orient5.{extension}"), 0), [notes[4]]);
        assert_eq!(agrees(&format!("orient6.{extension}"), 0), [notes[5]]);
    }
}

#[test]
fn every_depth_becomes_eight_bits_by_rounding() {
    for name in ["rgb16.png", "rgb16.tiff", "planar16.tiff"] {
        assert_eq!(agrees(name, 0), ["16 to 8 bits"], "{name}");
    }
    assert_eq!(agrees("grey16.png", 0), ["16 to 8 bits", "grey to RGB"]);
    for name in ["grey8.png", "grey4.png", "bits1.png", "bits1.tiff"] {
        assert_eq!(agrees(name, 0), ["grey to RGB"], "{name}");
    }
    // By way of 16 bits, a value that sits on a half may round the other way.
    let treatment = agrees("float_rgb.tiff", 1);
    assert_eq!(treatment, ["floating point to 16 bits", "16 to 8 bits"]);
    for name in ["float_grey.tiff", "double_grey.tiff"] {
        let treatment = agrees(name, 1);
        assert_eq!(
            treatment,
            ["floating point to 16 bits", "16 to 8 bits", "grey to RGB"],
            "{name}"
        );
    }
    let treatment = agrees("float_beyond.tiff", 1);
    assert_eq!(
        treatment[0],
        "floating point, -50 to 800 stretched to 16 bits"
    );
}

#[test]
fn transparency_is_laid_over_the_named_background() {
    for name in ["rgba.png", "rgba.webp", "rgba.tiff", "palette_alpha.png"] {
        assert_eq!(agrees(name, 0), ["transparency on white"], "{name}");
    }
    assert_eq!(
        agrees("grey_alpha.png", 0),
        ["grey to RGB", "transparency on white"]
    );
    // Rounded to 8 bits before it is laid over white: half a level more than in one step.
    assert_eq!(
        agrees("rgba16.png", 1),
        ["16 to 8 bits", "transparency on white"]
    );
    // Multiplied by alpha and divided again, each rounded at 16 bits.
    assert_eq!(
        agrees("premultiplied.tiff", 1),
        ["16 to 8 bits", "transparency on white"]
    );

    for (colour, key, name) in [
        ([0; 3], "black", "black"),
        ([0x33, 0x66, 0x99], "336699", "#336699"),
    ] {
        let photo = images::decode(&file("rgba.png"), "rgba.png", Background(colour)).unwrap();
        assert_eq!(photo.treatment, [format!("transparency on {name}")]);
        assert_eq!(photo.rgb[..], expected(&format!("rgba.png.{key}")).2);
    }
}

#[test]
fn animations_and_pages_give_their_first() {
    for name in ["animated.gif", "animated.webp", "animated.png"] {
        assert_eq!(agrees(name, 0), ["first frame of an animation"], "{name}");
    }
    assert_eq!(agrees("pages.tiff", 0), ["first page of several"]);
}

#[test]
fn ink_becomes_light() {
    let plain = ["CMYK to RGB without a profile"];
    assert_eq!(agrees("cmyk.tiff", 0), plain);
    for name in ["cmyk.jpg", "ycck.jpg"] {
        assert_eq!(agrees(name, 3), plain, "{name}");
    }
    // Halved chroma, as in `subsampled.jpg`.
    assert_eq!(agrees("ycck_subsampled.jpg", 12), plain);
    // Between the nine points a side of the profile's table LittleCMS interpolates by tetrahedra, moxcms
    // along four axes. In values below 20, where sRGB is steep, that makes up to 17 levels (LittleCMS is
    // up to 9, moxcms up to 14 off the formula behind the table); the mean is 1.3.
    for name in ["cmyk_icc.jpg", "cmyk_icc.tiff"] {
        assert_eq!(agrees(name, 20), ["CMYK “Test inks” to sRGB"], "{name}");
        assert!(
            difference(&read(name).rgb, &expected(name).2).1 < 1.5,
            "{name}"
        );
        assert!(
            difference(&read(name).rgb, &expected("cmyk.tiff").2).1 > 10.0,
            "{name} is converted"
        );
    }
}

#[test]
fn profiles_are_applied_as_littlecms_does() {
    let wide = "“Test wide RGB” to sRGB";
    for name in ["icc_rgb.png", "icc_rgb.webp", "icc_rgb.tiff"] {
        assert_eq!(agrees(name, 1), [wide], "{name}");
    }
    // The differences of two JPEG decoders, spread by the profile's curve.
    assert_eq!(agrees("icc_rgb.jpg", 6), [wide]);
    assert_eq!(agrees("icc_rgb16.png", 1), [wide, "16 to 8 bits"]);
    assert_eq!(agrees("icc_rgba.png", 1), [wide, "transparency on white"]);
    assert_eq!(
        agrees("icc_grey.png", 1),
        ["“Test grey gamma 1.4” to sRGB", "grey to RGB"]
    );
    // The wide profile moves colours far more than those tolerances.
    assert!(difference(&read("icc_rgb.png").rgb, &expected("rgb.png").2).0 > 40);
}

#[test]
fn profiles_that_cannot_be_used_are_left_out_and_said() {
    assert_eq!(agrees("icc_srgb.png", 0), NOTHING);
    for name in ["icc_malformed.png", "icc_cut.png"] {
        let treatment = agrees(name, 0);
        assert!(
            treatment[0].starts_with("colour profile ignored ("),
            "{name}: {treatment:?}"
        );
    }
    assert_eq!(
        agrees("icc_other.png", 0),
        ["colour profile “Test grey gamma 1.4” does not fit, ignored"]
    );
}

/// The refusal of bytes that are no usable picture.
fn refused(bytes: &[u8], name: &str) -> Error {
    let error = images::decode(bytes, name, WHITE).expect_err(name);
    assert_eq!(error.kind, ErrorKind::Image);
    assert_eq!(error.what, format!("cannot open “{name}”"));
    assert!(!error.remedy.is_empty(), "{error}");
    error
}

#[test]
fn the_smallest_allowed_picture_is_read() {
    let side = decode::MIN_SIDE_PX as usize;
    let photo = images::from_rgba(side, side, &vec![9; 4 * side * side], "x", WHITE).unwrap();
    assert_eq!(photo.rgb.len(), 3 * side * side);
    assert!(
        images::from_rgba(side - 1, side, &vec![9; 4 * side * (side - 1)], "x", WHITE).is_err()
    );
}

#[test]
fn truncated_files_are_refused_as_such() {
    for name in [
        "rgb.png",
        "rgb.bmp",
        "rgb.webp",
        "rgb.tiff",
        "rgb.jpg",
        "progressive.jpg",
        "rgb.gif",
    ] {
        let bytes = file(name);
        for share in [0.5, 0.7, 0.9] {
            let cut = &bytes[..(bytes.len() as f64 * share) as usize];
            let error = refused(cut, name);
            let why = ["the file ends in the middle", "the image data is damaged"];
            assert!(
                why.iter().any(|why| error.why.starts_with(why)),
                "{name} at {share}: {error}"
            );
        }
    }
    // Where the missing part is pixels, the words are the plain ones.
    for name in ["rgb.png", "rgb.jpg", "rgb.bmp"] {
        let bytes = file(name);
        let error = refused(&bytes[..bytes.len() * 9 / 10], name);
        assert_eq!(
            error.why, "the file ends in the middle of the image data",
            "{name}"
        );
    }
}

#[test]
fn a_thumbnail_does_not_hide_a_truncated_jpeg() {
    // An EXIF segment with an end-of-image marker inside, as every thumbnail has.
    let whole = file("rgb.jpg");
    let mut bytes = vec![0xff, 0xd8, 0xff, 0xe1, 0, 12];
    bytes.extend(b"Exif\0\0\xff\xd9\0\0");
    bytes.extend(&whole[2..]);
    assert!(images::decode(&bytes, "x.jpg", WHITE).is_ok());
    let error = refused(&bytes[..bytes.len() - 60], "x.jpg");
    assert_eq!(error.why, "the file ends in the middle of the image data");
}

#[test]
fn a_whole_jpeg_that_breaks_the_standard_is_read_and_said() {
    // Two stray bytes before a segment.
    let mut bytes = file("rgb.jpg");
    let at = bytes
        .windows(2)
        .position(|pair| pair == [0xff, 0xdb])
        .unwrap();
    bytes.splice(at..at, [0, 0]);
    let photo = images::decode(&bytes, "x.jpg", WHITE).unwrap();
    assert_eq!(
        photo.treatment,
        ["damaged JPEG data, read as far as possible"]
    );
    assert_eq!(photo.rgb, read("rgb.jpg").rgb);
}

#[test]
fn files_that_are_no_pictures_are_told_apart() {
    let why = |bytes: &[u8]| refused(bytes, "x").why;
    let formats = "JPEG, PNG, WebP, TIFF, BMP and GIF are read";
    assert_eq!(why(b""), "the file is empty");
    assert_eq!(
        why(b"hello world, hello world"),
        format!("it is not an image file; {formats}")
    );
    assert_eq!(
        why(b"\0\0\0\x20ftypheic\0\0\0\0"),
        format!("it is a HEIC file; {formats}")
    );
    assert_eq!(why(b"%PDF-1.7\n"), format!("it is a PDF file; {formats}"));
    assert_eq!(why(b"P6 4 4 255\n"), format!("it is a PNM file; {formats}"));
}

#[test]
fn content_decides_and_a_wrong_extension_is_said() {
    let photo = images::decode(&file("rgb.jpg"), "cat.png", WHITE).unwrap();
    assert_eq!(photo.treatment, ["JPEG despite its extension .png"]);
    for name in ["cat.jpeg", "cat.JPG", "cat", "cat.data"] {
        let photo = images::decode(&file("rgb.jpg"), name, WHITE).unwrap();
        assert_eq!(photo.treatment, NOTHING, "{name}");
    }
}

#[test]
fn paths_that_cannot_be_read_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &Path| images::open(path, WHITE);

    let path = folder.path().join("kept.png");
    fs::write(&path, file("rgb.png")).unwrap();
    let photo = open(&path).unwrap();
    assert_eq!(
        (photo.name.as_str(), photo.path.as_deref()),
        ("kept.png", Some(path.as_path()))
    );
    assert_eq!(photo.sha256, hex(&Sha256::digest(file("rgb.png"))));

    let missing = open(&folder.path().join("missing.png")).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "cannot open “missing.png”: there is no such file. Check the path"
    );
    assert_eq!(open(folder.path()).unwrap_err().why, "it is a folder");

    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(
            open(Path::new("/dev/null")).unwrap_err().why,
            "it is a device and not a file"
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        // The administrator may read what nobody may.
        if fs::read(&path).is_err() {
            assert_eq!(open(&path).unwrap_err().why, "you may not read this file");
        }
    }
}

#[test]
fn pasted_pixels_are_a_photo() {
    let rgba: Vec<u8> = (0..4 * 10 * 8).map(|value| value as u8).collect();
    let photo = images::from_rgba(10, 8, &rgba, "pasted image", Background([1, 2, 3])).unwrap();
    assert_eq!(
        (photo.width, photo.height, photo.path.as_deref()),
        (10, 8, None)
    );
    assert_eq!(photo.treatment, ["transparency on #010203"]);
    assert_eq!(photo.sha256, hex(&Sha256::digest(&photo.rgb)));
    assert!(images::from_rgba(10, 8, &rgba[1..], "x", WHITE).is_err());
    assert!(images::from_rgba(10, 9, &rgba, "x", WHITE).is_err());
    assert!(images::from_rgba(usize::MAX, usize::MAX, &rgba, "x", WHITE).is_err());
}

/// A small generator of repeatable numbers (SplitMix64), so that a failure can be repeated.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }
}

#[test]
fn damaged_files_are_read_or_refused_but_never_panic() {
    let mut numbers = Numbers(1);
    let mut names: Vec<_> = fs::read_dir(golden().join("files"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let (mut read, mut refused) = (0, 0);
    for name in &names {
        let original = file(name);
        for _ in 0..60 {
            let mut bytes = original.clone();
            for _ in 0..=numbers.below(4) {
                // Most harm is done in headers.
                let end = if numbers.below(2) == 0 {
                    bytes.len().min(160)
                } else {
                    bytes.len()
                };
                let at = numbers.below(end);
                match numbers.below(8) {
                    0..=3 => bytes[at] ^= 1 << numbers.below(8),
                    4 | 5 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][numbers.below(5)],
                    6 => bytes.truncate(at.max(4)),
                    _ => drop(bytes.remove(at)),
                }
            }
            match images::decode(&bytes, name, WHITE) {
                Ok(photo) => {
                    assert_eq!(photo.rgb.len() as u32, 3 * photo.width * photo.height);
                    read += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    // Both ends of the code were reached.
    assert!(
        read > 500 && refused > 500,
        "{read} read, {refused} refused"
    );
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The grey levels of an input, pixel after pixel.
fn levels(prepared: &Prepared) -> Vec<u8> {
    let pixels = prepared.side_px * prepared.side_px;
    (0..3 * pixels)
        .map(|index| {
            let value = prepared.pixels[index % 3 * pixels + index / 3] * 255.0;
            assert!((value - value.round()).abs() < 1e-4, "a whole grey level");
            value.round() as u8
        })
        .collect()
}

#[derive(serde::Deserialize)]
struct Manifest {
    digests: BTreeMap<String, String>,
    torchvision_center_crop_224: Vec<[usize; 2]>,
}

fn manifest() -> Manifest {
    let text = fs::read_to_string(golden().join("manifest.json")).expect("committed fixture");
    serde_json::from_str(&text).expect("the script's manifest")
}

#[test]
fn resized_pixels_equal_pillow_in_every_bit() {
    let digests = manifest().digests;
    assert_eq!(digests.len(), 4 * 2 * 3 + 3);
    for (case, digest) in digests {
        let words: Vec<_> = case.split(' ').collect();
        let photo = match words[0] {
            name @ ("rgb" | "strip") => read(&format!("{name}.png")),
            name => bundled::open(name).unwrap(),
        };
        let filter = match words[2] {
            "bicubic" => ResizeFilter::Bicubic,
            "bilinear" => ResizeFilter::Bilinear,
            _ => ResizeFilter::Nearest,
        };
        let recipe = match words[1] {
            "crop" => Preprocessing::efficientnet_lite0(),
            _ => Preprocessing::squeezenet1_1(),
        };
        let prepared = Preprocessing { filter, ..recipe }.apply(&photo).unwrap();
        assert_eq!(hex(&Sha256::digest(levels(&prepared))), digest, "{case}");
    }
}

/// Every kind of resize and crop, odd and even, shrinking and enlarging (golden/images/gen_resize.py).
#[test]
fn resizes_of_every_kind_equal_torchvision() {
    let bytes = fs::read(golden().join("resize.safetensors")).expect("committed fixture");
    let cases = safetensors::SafeTensors::deserialize(&bytes).expect("it is sound");
    assert_eq!(cases.len(), 6 * 2 * 2 * 2);
    for (case, expected) in cases.tensors() {
        let words: Vec<&str> = case.split(' ').collect();
        let [photo, resize, crop, filter, aspect, precision] = words[..] else {
            panic!("{case}")
        };
        let photo = match photo {
            "rgb" => read("rgb.png"),
            name => bundled::open(name).unwrap(),
        };
        let recipe = Preprocessing {
            resize_px: resize.parse().unwrap(),
            crop_px: crop.parse().unwrap(),
            squash: aspect == "squash",
            filter: match filter {
                "bicubic" => ResizeFilter::Bicubic,
                _ => ResizeFilter::Bilinear,
            },
            fractional: precision == "fractions",
            ..Preprocessing::efficientnet_lite0()
        };
        let found = recipe.apply(&photo).unwrap();
        let expected: Vec<f32> = match expected.dtype() {
            safetensors::Dtype::U8 => expected.data().iter().copied().map(f32::from).collect(),
            _ => expected
                .data()
                .chunks_exact(4)
                .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
                .collect(),
        };
        assert_eq!(found.pixels.len(), expected.len(), "{case}");
        let largest = found
            .pixels
            .iter()
            .zip(&expected)
            .map(|(found, expected)| (found * 255.0 - expected).abs())
            .fold(0.0, f32::max);
        // Two roundings to f32 of up to 255 grey levels.
        assert!(largest < 5e-5, "{case}: {largest:e}");
    }
}

#[test]
fn inputs_equal_timm_from_the_file_on() {
    let recipe = Preprocessing::efficientnet_lite0();
    let prepared = recipe.apply(&bundled::open("chelsea").unwrap()).unwrap();
    let (width, height, pixels) = expected("chelsea.efficientnet_lite0");
    assert_eq!((width, height, prepared.side_px), (224, 224, 224));
    assert_eq!(difference(&levels(&prepared), &pixels), (0, 0.0));
    assert_eq!(
        prepared.steps,
        "451 × 300 → 384 × 256 bicubic → centre 224 × 224"
    );

    // A JPEG in Adobe RGB: two JPEG decoders and two colour engines stand between; the resize averages
    // their differences.
    let prepared = recipe.apply(&bundled::open("rocket").unwrap()).unwrap();
    let (max, mean) = difference(&levels(&prepared), &expected("rocket.efficientnet_lite0").2);
    assert!(max <= 4 && mean < 0.3, "largest {max}, mean {mean:.3}");
}

#[test]
fn the_centre_crop_rounds_as_torchvision() {
    let crops = manifest().torchvision_center_crop_224;
    assert_eq!(crops.len(), 16);
    for [length, start] in crops {
        // Each column has its own grey level.
        let row: Vec<u8> = (0..length)
            .flat_map(|x| [x as u8, x as u8, x as u8, 255])
            .collect();
        let photo = images::from_rgba(length, 224, &row.repeat(224), "x", WHITE).unwrap();
        let recipe = Preprocessing {
            resize_px: 224,
            ..Preprocessing::efficientnet_lite0()
        };
        assert_eq!(
            usize::from(levels(&recipe.apply(&photo).unwrap())[0]),
            start,
            "{length}"
        );
    }
}

#[test]
fn a_constant_picture_stays_constant_and_a_matching_one_untouched() {
    let grey = images::from_rgba(97, 61, &[7, 130, 255, 255].repeat(97 * 61), "x", WHITE).unwrap();
    for recipe in [
        Preprocessing::efficientnet_lite0(),
        Preprocessing::squeezenet1_1(),
    ] {
        for filter in [
            ResizeFilter::Bicubic,
            ResizeFilter::Bilinear,
            ResizeFilter::Nearest,
        ] {
            let prepared = Preprocessing {
                filter,
                ..recipe.clone()
            }
            .apply(&grey)
            .unwrap();
            assert!(
                levels(&prepared)
                    .chunks(3)
                    .all(|pixel| pixel == [7, 130, 255])
            );
        }
    }
    let photo = read("rgb.png");
    let recipe = Preprocessing {
        resize_px: 16,
        crop_px: 16,
        ..Preprocessing::efficientnet_lite0()
    };
    let prepared = recipe.apply(&photo).unwrap();
    assert_eq!(prepared.steps, "24 × 16 → centre 16 × 16");
    let rows = photo.rgb.chunks(3 * 24).map(|row| &row[3 * 4..3 * 20]);
    assert_eq!(levels(&prepared), rows.collect::<Vec<_>>().concat());
}

#[test]
fn recipes_are_told_in_one_line() {
    assert_eq!(
        Preprocessing::efficientnet_lite0().describe(),
        "shorter side to 256, bicubic; centre crop 224 × 224; RGB, grey levels minus 127, divided by \
         128"
    );
    assert_eq!(
        Preprocessing::squeezenet1_1().describe(),
        "resize to 227 × 227, bicubic, aspect ratio not kept; BGR, grey levels minus \
         (103.939, 116.779, 123.68), divided by 1"
    );
    let fractional = Preprocessing {
        fractional: true,
        ..Preprocessing::efficientnet_lite0()
    };
    assert!(fractional.describe().starts_with(
        "shorter side to 256, bicubic; centre crop 224 × 224, fractions of grey levels kept; RGB"
    ));
}

#[test]
fn an_impossible_recipe_or_photo_is_refused() {
    let photo = read("rgb.png");
    let recipe = Preprocessing::efficientnet_lite0();
    assert!(
        Preprocessing {
            crop_px: 257,
            ..recipe.clone()
        }
        .apply(&photo)
        .is_err()
    );
    assert!(
        Preprocessing {
            crop_px: 0,
            ..recipe.clone()
        }
        .apply(&photo)
        .is_err()
    );
    assert!(
        recipe
            .apply(&Photo {
                width: 0,
                ..photo.clone()
            })
            .is_err()
    );
    assert!(
        recipe
            .apply(&Photo {
                height: 15,
                ..photo
            })
            .is_err()
    );
}

#[test]
fn dither_is_small_uniform_and_repeatable() {
    let photo = bundled::open("chelsea").unwrap();
    let prepared = Preprocessing::efficientnet_lite0().apply(&photo).unwrap();
    let dithered = prepared.dithered(7);
    assert_eq!(dithered, prepared.dithered(7));
    assert_ne!(dithered.pixels, prepared.dithered(8).pixels);
    assert!(
        dithered
            .steps
            .ends_with("→ dither ±0.5 grey levels, seed 7")
    );
    let noise: Vec<f64> = dithered
        .pixels
        .iter()
        .zip(prepared.pixels.iter())
        .map(|(a, b)| f64::from(a - b) * 255.0)
        .collect();
    let count = noise.len() as f64;
    let mean = noise.iter().sum::<f64>() / count;
    let variance = noise.iter().map(|value| value * value).sum::<f64>() / count;
    // Uniform on ±1/2: mean 0 and variance 1/12; five standard errors for 150,528 values.
    assert!(mean.abs() < 5.0 * (1.0 / 12.0 / count).sqrt(), "{mean}");
    assert!(
        (variance - 1.0 / 12.0).abs() < 5.0 * (1.0 / 180.0 / count).sqrt(),
        "{variance}"
    );
    // A grey level of rounding in f32 is 2e-5 of a level.
    assert!(noise.iter().all(|value| value.abs() <= 0.5001));
}

#[test]
fn bundled_photographs_open_and_the_first_is_not_saturated() {
    assert_eq!(bundled::NAMES, ["chelsea", "coffee", "astronaut", "rocket"]);
    let treatments = bundled::PHOTOS.map(|bundled| {
        let photo = bundled::open(bundled.name).unwrap();
        assert_eq!(photo.name, bundled.name);
        assert!(!bundled.title.is_empty() && !bundled.credit.is_empty());
        photo.treatment
    });
    assert!(treatments[..3].iter().all(Vec::is_empty), "{treatments:?}");
    assert_eq!(treatments[3], ["“Adobe RGB (1998)” to sRGB"]);

    let first = bundled::open(bundled::NAMES[0]).unwrap();
    let share = |level| {
        first.rgb.iter().filter(|value| **value == level).count() as f64 / first.rgb.len() as f64
    };
    assert!(share(255) == 0.0 && share(0) < 2e-4);
    assert_eq!(
        bundled::open("nobody").unwrap_err().kind,
        ErrorKind::Request
    );
}
