//! Edits of pictures against Pillow, bit for bit; what is not Pillow's against its own definition; pairs of
//! pictures from an outside editor. References: tests/golden/edits/gen_pictures.py.

mod tiny;

use std::fs;
use std::path::Path;

use etascope::images::manipulations::{SQUARES, Subsampling, edit_in_order};
use etascope::images::pairs::{find, reconcile};
use etascope::images::{Disc, GridSymmetry, Manipulation, Mask, Photo, Picture, bundled};
use etascope::{ErrorKind, Result};
use tiny::Fixture;

fn fixture() -> Fixture {
    Fixture::read("edits/manipulations.safetensors")
}

/// An 8-bit picture of the fixture, (row, column, channel).
fn picture(fixture: &Fixture, name: &str) -> Picture {
    let shape = fixture.shape(name);
    let rgb = fixture.get(name).iter().map(|&value| value as u8).collect();
    Picture::new(shape[1], shape[0], rgb).unwrap()
}

fn manipulation(text: &str) -> Manipulation {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn edits_are_pillows_bit_for_bit() {
    let fixture = fixture();
    let mut compared = 0;
    for name in fixture.names() {
        let Some((original, text)) = name.split_once('/') else {
            continue;
        };
        if text.contains('×') {
            continue;
        }
        let ours = manipulation(text)
            .edit(&picture(&fixture, original), 0)
            .unwrap();
        let theirs = picture(&fixture, name);
        assert_eq!(
            (ours.width(), ours.height()),
            (theirs.width(), theirs.height()),
            "{name}"
        );
        let differing = ours.rgb().iter().zip(theirs.rgb()).filter(|(a, b)| a != b);
        assert_eq!(differing.count(), 0, "values of {name} that differ");
        compared += 1;
    }
    // 21 edits of two pictures, and the JPEG files of six.
    assert!(compared > 100, "{compared} edits were compared");
}

#[test]
fn squares_lie_where_the_paper_says() {
    let white = Picture::new(288, 288, vec![255; 3 * 288 * 288]).unwrap();
    let ours = Manipulation::Squares.edit(&white, 0).unwrap();
    let labels = fixture();
    for (pixel, &label) in ours.rgb().chunks_exact(3).zip(labels.get("squares_288")) {
        let colour = match label as usize {
            0 => [255; 3],
            i => SQUARES[i - 1].1,
        };
        assert_eq!(pixel, colour);
    }
}

#[test]
fn a_recursion_of_hues_is_pillows_and_not_once_round_the_circle() {
    let fixture = fixture();
    let chain = vec![Manipulation::Hue { degrees: 10.0 }; 36];
    let ours = edit_in_order(&chain, &picture(&fixture, "cat"), 0).unwrap();
    assert_eq!(ours, picture(&fixture, "cat/hue:10 × 36"));
    assert_ne!(ours, picture(&fixture, "cat"));
}

#[test]
fn the_order_of_a_chain_counts() {
    let cat = picture(&fixture(), "cat");
    let [turn, squares] = [manipulation("rotate:90"), Manipulation::Squares];
    let one = edit_in_order(&[turn.clone(), squares.clone()], &cat, 0).unwrap();
    let other = edit_in_order(&[squares.clone(), turn.clone()], &cat, 0).unwrap();
    assert_ne!(one, other);
    assert_eq!(one, squares.edit(&turn.edit(&cat, 0).unwrap(), 0).unwrap());
}

#[test]
fn turns_and_mirrors_compose_as_a_group() {
    use GridSymmetry::{MirrorHorizontal, MirrorVertical, Rotate90, Rotate180, Rotate270};
    let (rows, columns) = (3, 5);
    let grid: Vec<usize> = (0..rows * columns).collect();
    let follow = |chain: &[GridSymmetry]| {
        let mut state = (grid.clone(), rows, columns);
        for symmetry in chain {
            let values = symmetry.apply(&state.0, state.1, state.2, 1);
            let (rows, columns) = symmetry.shape(state.1, state.2);
            state = (values, rows, columns);
        }
        state
    };
    assert_eq!(follow(&[Rotate90, Rotate270]).0, grid);
    assert_eq!(follow(&[Rotate90, Rotate90]), follow(&[Rotate180]));
    assert_eq!(
        follow(&[Rotate90, Rotate90, Rotate90]),
        follow(&[Rotate270])
    );
    assert_eq!(
        follow(&[MirrorHorizontal, MirrorVertical]),
        follow(&[Rotate180])
    );
    // The upper right corner comes to the upper left.
    assert_eq!(follow(&[Rotate90]).0[0], columns - 1);
}

#[test]
fn noise_has_its_spread_keeps_the_mean_and_depends_on_seed_and_stream() {
    let grey = Picture::new(200, 150, vec![128; 3 * 200 * 150]).unwrap();
    let noise = |std_levels, seed| Manipulation::Noise { std_levels, seed };
    let noisy = noise(20.0, 1).edit(&grey, 0).unwrap();
    let n = noisy.rgb().len() as f64;
    let mean = noisy.rgb().iter().map(|&v| f64::from(v)).sum::<f64>() / n;
    let variance = noisy
        .rgb()
        .iter()
        .map(|&v| (f64::from(v) - mean).powi(2))
        .sum::<f64>()
        / n;
    // Standard errors: 20/√90,000 = 0.067 and 20/√180,000 = 0.05; cutting instead of rounding would move the
    // mean by 0.5. Rounding adds 1/12 to the variance.
    assert!((mean - 128.0).abs() < 0.25, "mean {mean}");
    let std = (variance - 1.0 / 12.0).sqrt();
    assert!((std - 20.0).abs() < 0.2, "standard deviation {std}");
    assert_eq!(noisy, noise(20.0, 1).edit(&grey, 0).unwrap());
    assert_ne!(noisy, noise(20.0, 2).edit(&grey, 0).unwrap());
    assert_ne!(noisy, noise(20.0, 1).edit(&grey, 1).unwrap());
    // Far beyond the scale everything is clipped, nothing wraps.
    let loud = noise(510.0, 1).edit(&grey, 0).unwrap();
    let ends = loud.rgb().iter().filter(|&&v| v == 0 || v == 255).count() as f64 / n;
    // P(|128 + 510 g| outside the scale) = 0.803.
    assert!((ends - 0.803).abs() < 0.01, "{ends} at the ends");
}

#[test]
fn a_mask_is_filled_and_nothing_else_changes() {
    let cat = picture(&fixture(), "cat");
    let mask = Mask {
        discs: vec![Disc {
            x: 0.5,
            y: 0.5,
            radius: 0.3,
        }],
    };
    let covered = mask.covered(cat.height(), cat.width());
    let colour = [1, 2, 3];
    let filled = Manipulation::Fill { mask, colour }.edit(&cat, 0).unwrap();
    let pixels = filled.rgb().chunks_exact(3).zip(cat.rgb().chunks_exact(3));
    for ((new, old), covered) in pixels.zip(covered) {
        assert_eq!(new, if covered { &colour } else { old });
    }
}

#[test]
fn the_blur_of_a_picture_is_that_of_directions_rounded() {
    let cat = picture(&fixture(), "cat");
    let blur = Manipulation::Blur { sigma_px: 1.5 };
    let wide = blur.apply(&cat.planes(), cat.height(), cat.width());
    let area = cat.width() * cat.height();
    let edited = blur.edit(&cat, 0).unwrap();
    for (at, pixel) in edited.rgb().chunks_exact(3).enumerate() {
        for c in 0..3 {
            let expected = wide[c * area + at] * 255.0;
            // Half a level of rounding and that of f32.
            assert!((f64::from(pixel[c]) - expected).abs() < 0.5001);
        }
    }
}

#[test]
fn along_an_edit_dither_stays_where_it_is() {
    let cat = picture(&fixture(), "cat");
    let (rows, columns) = (cat.height(), cat.width());
    let dithered: Vec<f32> = (cat.planes().iter().enumerate())
        .map(|(i, v)| v + ((i % 7) as f32 - 3.0) / 6.0 * 0.49 / 255.0)
        .collect();
    for text in [
        "hue:60",
        "contrast:1.7",
        "jpeg:75:420",
        "squares",
        "crop:0.25,0.1,0.5,0.6",
    ] {
        let manipulation = manipulation(text);
        let edited = manipulation.edit(&cat, 0).unwrap().planes();
        let moved = manipulation.apply(&dithered, rows, columns);
        for i in 0..edited.len() {
            let change = moved[i] - f64::from(dithered[i]);
            let expected = f64::from(edited[i]) - f64::from(cat.planes_at(i));
            assert!((change - expected).abs() < 1e-7, "{text} at {i}");
        }
    }
    // A turn moves the dither along.
    let turned = manipulation("rotate:180").apply(&dithered, rows, columns);
    let area = rows * columns;
    assert_eq!(turned[0], f64::from(dithered[area - 1]));
}

trait PlanesAt {
    fn planes_at(&self, i: usize) -> f32;
}

impl PlanesAt for Picture {
    fn planes_at(&self, i: usize) -> f32 {
        let area = self.width() * self.height();
        f32::from(self.rgb()[3 * (i % area) + i / area]) / 255.0
    }
}

#[test]
fn written_forms_read_back_and_serialise() {
    let mut all: Vec<Manipulation> = fixture()
        .names()
        .filter_map(|name| name.split_once('/'))
        .filter(|(_, text)| !text.contains('×'))
        .map(|(_, text)| manipulation(text))
        .collect();
    all.extend([
        Manipulation::Noise {
            std_levels: 40.0,
            seed: u64::MAX,
        },
        Manipulation::Blur { sigma_px: 0.1 },
        Manipulation::zoom(1.5),
        Manipulation::Fill {
            mask: Mask {
                discs: vec![
                    Disc {
                        x: 0.1,
                        y: 1.0 / 3.0,
                        radius: 1e-3,
                    };
                    2
                ],
            },
            colour: [0, 127, 255],
        },
    ]);
    for manipulation in all {
        let text = manipulation.to_string();
        assert_eq!(
            text.parse::<Manipulation>().unwrap(),
            manipulation,
            "{text}"
        );
        assert!(text.starts_with(manipulation.word()));
        assert!(Manipulation::is_word(manipulation.word()));
        let json = serde_json::to_string(&manipulation).unwrap();
        assert_eq!(
            serde_json::from_str::<Manipulation>(&json).unwrap(),
            manipulation,
            "{json}"
        );
    }
}

#[test]
fn parameters_without_sense_are_refused_and_crash_nothing() {
    for text in [
        "",
        "rotate",
        "rotate:45",
        "rotate:horizontal",
        "mirror:90",
        "noise:40",
        "noise:-1:0",
        "noise:NaN:0",
        "hue:",
        "hue:361",
        "hue:inf",
        "grayscale:1",
        "brightness:-0.1",
        "contrast:NaN",
        "saturation:256",
        "blur:0",
        "jpeg:0:420",
        "jpeg:101:444",
        "jpeg:75:422",
        "jpeg:75",
        "crop:0,0,0,1",
        "crop:0.5,0,0.6,1",
        "crop:0,0,1",
        "translate:2,0:0,0,0",
        "translate:0,0:0,0,256",
        "fill:1,2,3:",
        "fill:1,2,3:0.5,0.5,0",
        "fill:0.5,0.5,0.1",
        "unknown:1",
    ] {
        let error = text.parse::<Manipulation>().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Request, "{text}");
    }
    let wrong = Manipulation::Jpeg {
        quality: 0,
        subsampling: Subsampling::Half,
    };
    let tiny = Picture::new(1, 1, vec![7; 3]).unwrap();
    assert!(wrong.edit(&tiny, 0).is_err());
    // One pixel has no neighbours, no second block and no second column.
    for text in [
        "jpeg:75:420",
        "jpeg:75:444",
        "rotate:90",
        "squares",
        "crop:0.4,0.4,0.2,0.2",
        "translate:1,1:0,0,0",
        "blur:3",
        "contrast:2",
    ] {
        assert!(manipulation(text).edit(&tiny, 0).is_ok(), "{text}");
    }
    assert!(Picture::new(0, 0, vec![]).is_err());
    assert!(Picture::new(2, 2, vec![0; 11]).is_err());
}

#[test]
fn zoom_enlarges_the_centre() {
    // A white centre of half the side fills the picture at zoom 2.
    let side = 40;
    let inner = side / 4..3 * side / 4;
    let rgb = (0..side * side)
        .flat_map(|at| {
            let is_white = inner.contains(&(at / side)) && inner.contains(&(at % side));
            [if is_white { 255 } else { 0 }; 3]
        })
        .collect();
    let picture = Picture::new(side, side, rgb).unwrap();
    let zoomed = Manipulation::zoom(2.0).edit(&picture, 0).unwrap();
    assert!(zoomed.rgb().iter().all(|&value| value == 255));
}

fn write_picture(folder: &Path, name: &str, width: u32, height: u32) {
    let image = image::RgbImage::from_fn(width, height, |x, y| image::Rgb([x as u8, y as u8, 90]));
    image.save(folder.join(name)).unwrap();
}

#[test]
fn pairs_of_two_folders_are_matched_by_name() {
    let root = tempfile::tempdir().unwrap();
    let (originals, edits) = (root.path().join("a"), root.path().join("b"));
    for folder in [&originals, &edits] {
        fs::create_dir(folder).unwrap();
    }
    for name in ["one.png", "two.bmp", "alone.png", "twice.png", "twice.bmp"] {
        write_picture(&originals, name, 16, 12);
    }
    for name in ["two.png", "one.png", "stray.png", "twice.png"] {
        write_picture(&edits, name, 16, 12);
    }
    fs::write(originals.join("notes.txt"), "x").unwrap();
    fs::write(originals.join(".hidden.png"), "x").unwrap();
    let report = find(&originals, Some(&edits)).unwrap();
    let names: Vec<&str> = report.pairs.iter().map(|pair| pair.name.as_str()).collect();
    assert_eq!(names, ["one", "two"]);
    assert_eq!(report.pairs[1].original, originals.join("two.bmp"));
    assert_eq!(report.pairs[1].edited, edits.join("two.png"));
    assert_eq!(report.originals_alone, [originals.join("alone.png")]);
    assert_eq!(report.edits_alone, [edits.join("stray.png")]);
    assert_eq!(report.ambiguous[0].0, "twice");
    assert_eq!(report.ambiguous[0].1.len(), 3);
    assert_eq!(report.ignored, [originals.join("notes.txt")]);
    assert_eq!(
        report.summary(),
        "2 pairs; 1 original without an edit; 1 edit without an original; 1 name with several files; \
         1 other file"
    );
}

#[test]
fn pairs_of_one_folder_are_matched_by_their_marks() {
    let root = tempfile::tempdir().unwrap();
    for name in [
        "dog.png",
        "dog_edited.png",
        "cat-original.png",
        "cat-EDIT.png",
        "a_before.png",
        "a_after.png",
        "lone.png",
        "edited.png",
    ] {
        write_picture(root.path(), name, 16, 12);
    }
    let report = find(root.path(), None).unwrap();
    let names: Vec<&str> = report.pairs.iter().map(|pair| pair.name.as_str()).collect();
    assert_eq!(names, ["a", "cat", "dog"]);
    // “edited” without a name before it is a name.
    assert_eq!(report.originals_alone.len(), 2);
}

#[test]
fn a_folder_without_pairs_says_what_was_found() {
    let root = tempfile::tempdir().unwrap();
    write_picture(root.path(), "x.png", 16, 12);
    let error = find(root.path(), None).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Image);
    assert!(error.why.contains("1 original without an edit"), "{error}");
    assert!(find(&root.path().join("absent"), None).is_err());
}

fn shrunk(photo: &Photo, width: u32, height: u32) -> Photo {
    let full = image::RgbImage::from_raw(photo.width, photo.height, photo.rgb.to_vec()).unwrap();
    let small = image::imageops::thumbnail(&full, width, height);
    Photo {
        width,
        height,
        rgb: small.into_raw().into(),
        ..photo.clone()
    }
}

#[test]
fn sides_of_a_pair_get_one_size() -> Result<()> {
    let photo = bundled::open("chelsea")?;
    let (width, height) = (photo.width, photo.height);
    // As an editor that rounds to multiples of 8 leaves it: narrower, but as high as can be.
    let edit = shrunk(&photo, width / 8 * 8, height / 8 * 8);
    let (a, b) = reconcile(&photo, &edit)?;
    assert_eq!((a.width, a.height), (b.width, b.height));
    assert_eq!((b.width, b.height), (width / 8 * 8, height / 8 * 8));
    assert_eq!(b, edit);
    assert_eq!(a.rgb.len(), b.rgb.len());
    assert_eq!(a.treatment.len(), photo.treatment.len() + 1);
    // Which side is larger does not matter.
    let (c, d) = reconcile(&edit, &photo)?;
    assert_eq!((&c.rgb, &d.rgb), (&b.rgb, &a.rgb));
    // Equal sizes are left alone.
    let (a, b) = reconcile(&photo, &photo)?;
    assert_eq!((&a, &b), (&photo, &photo));
    // A square cut of a wide photograph is another picture.
    let side = width.min(height);
    let error = reconcile(&photo, &shrunk(&photo, side, side)).unwrap_err();
    assert!(error.why.contains("different shapes"), "{error}");
    Ok(())
}
