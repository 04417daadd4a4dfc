//! Square pieces of photographs at another size, such as trainings are fed with.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::preprocess::{ResizeFilter, resize};
use super::{GridSymmetry, Photo, Picture};
use crate::{Error, ErrorKind, Result};

/// A square of a photograph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Square {
    /// Column and row of its upper left corner.
    pub place: [usize; 2],
    /// Side in pixels of the photograph.
    pub side: usize,
    /// Whether left and right are exchanged in it.
    pub is_mirrored: bool,
}

impl Square {
    /// A random one of a photograph of `width · height` pixels: its side between `least` and `most` pixels, uniform in its
    /// logarithm, its place uniform, mirrored in one of two cases. Sides beyond the shorter side of the photograph are cut to it.
    pub fn draw(
        [width, height]: [usize; 2],
        [least, most]: [f64; 2],
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let side = (least * (most / least).powf(rng.random::<f64>())).round() as usize;
        let side = side.clamp(1, width.min(height).max(1));
        let place = [width, height].map(|len| rng.random_range(0..=len.saturating_sub(side)));
        Self {
            place,
            side,
            is_mirrored: rng.random::<bool>(),
        }
    }

    /// This part of the photograph, resized to `to` pixels by Pillow's bicubic with antialiasing.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where the square is empty or does not lie within the photograph.
    pub fn cut(&self, photo: &Photo, to: usize) -> Result<Picture> {
        let Self {
            place: [left, top],
            side,
            is_mirrored,
        } = *self;
        let (width, height) = (photo.width as usize, photo.height as usize);
        let is_inside =
            |start: usize, len: usize| start.checked_add(side).is_some_and(|end| end <= len);
        if side == 0 || to == 0 || !is_inside(left, width) || !is_inside(top, height) {
            return Err(refused(
                photo,
                format!(
                    "{side} × {side} pixels at ({left}, {top}) do not lie within {width} × {height}"
                ),
                "Use a smaller piece",
            ));
        }
        let rows = photo.rgb.chunks_exact(3 * width).skip(top).take(side);
        let piece: Vec<u8> = rows
            .flat_map(|row| &row[3 * left..3 * (left + side)])
            .copied()
            .collect();
        let mut rgb = resize(&piece, (side, side), (to, to), ResizeFilter::Bicubic);
        if is_mirrored {
            rgb = GridSymmetry::MirrorHorizontal.apply(&rgb, to, to, 3);
        }
        Ok(Picture::from_parts(to, to, rgb))
    }
}

/// Random crops by which a photograph becomes many: squares, half of them mirrored.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CropSet {
    /// Crops of each photograph.
    pub count: usize,
    /// Least and largest side, as shares of the photograph's shorter side, from above 0 to 1.
    pub scale: [f64; 2],
    /// Seed from which they are drawn.
    pub seed: u64,
}

impl CropSet {
    /// Range of [`CropSet::scale`] unless another is given (ours): the objects of a photograph stay recognisable, and most of
    /// its grain too.
    pub const SCALE: [f64; 2] = [0.4, 1.0];

    /// The crops of a photograph, a function of the seed and `stream`, the number by which the photograph is known. More crops
    /// begin with those of fewer.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where the scales make no sense.
    pub fn squares(&self, photo: &Photo, stream: u64) -> Result<Vec<Square>> {
        let [least, most] = self.scale;
        if !(least > 0.0 && least <= most && most <= 1.0) {
            return Err(refused(
                photo,
                format!("sides from {least} to {most} of the shorter side make no sense"),
                "Give two shares from above 0 to 1, the smaller first",
            ));
        }
        let size = [photo.width as usize, photo.height as usize];
        let short = size[0].min(size[1]) as f64;
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(stream);
        let sides = self.scale.map(|share| share * short);
        Ok((0..self.count)
            .map(|_| Square::draw(size, sides, &mut rng))
            .collect())
    }
}

fn refused(photo: &Photo, why: String, remedy: &str) -> Error {
    let what = format!("cannot cut a piece out of “{}”", photo.name);
    Error::new(ErrorKind::Request, what, why, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each pixel names its place: red its column, green its row.
    fn photo(width: u32, height: u32) -> Photo {
        let places = (0..height).flat_map(|y| (0..width).map(move |x| [x as u8, y as u8, 0]));
        Photo {
            name: "places".to_owned(),
            path: None,
            width,
            height,
            rgb: places.flatten().collect::<Vec<u8>>().into(),
            sha256: String::new(),
            treatment: Vec::new(),
        }
    }

    #[test]
    fn crops_lie_within_the_photograph_and_have_the_sides_asked_for() {
        let photo = photo(90, 60);
        let crops = CropSet {
            count: 400,
            scale: [0.5, 0.8],
            seed: 3,
        };
        let squares = crops.squares(&photo, 7).expect("squares");
        assert!(squares.iter().all(|s| (30..=48).contains(&s.side)));
        assert!(
            squares
                .iter()
                .all(|s| s.place[0] + s.side <= 90 && s.place[1] + s.side <= 60)
        );
        for reached in [30, 48] {
            assert!(squares.iter().any(|s| s.side == reached), "{reached}");
        }
        let mirrored = squares.iter().filter(|s| s.is_mirrored).count();
        // Five standard deviations of a binomial distribution.
        assert!((150..=250).contains(&mirrored), "{mirrored}");
        // Of one seed and photograph the same, of another others; fewer are the first of more.
        assert_eq!(crops.squares(&photo, 7).expect("squares"), squares);
        assert_ne!(crops.squares(&photo, 8).expect("squares"), squares);
        let fewer = CropSet { count: 5, ..crops };
        assert_eq!(fewer.squares(&photo, 7).expect("squares"), squares[..5]);
    }

    #[test]
    fn a_cut_shows_the_place_and_a_mirrored_one_from_right_to_left() {
        let photo = photo(40, 30);
        let square = Square {
            place: [10, 5],
            side: 8,
            is_mirrored: false,
        };
        let first = |square: Square| square.cut(&photo, 8).expect("a picture").rgb()[..2].to_vec();
        assert_eq!(first(square), [10, 5]);
        let mirrored = Square {
            is_mirrored: true,
            ..square
        };
        assert_eq!(first(mirrored), [17, 5]);
        let beyond = Square { side: 26, ..square };
        assert!(beyond.cut(&photo, 8).is_err());
    }

    #[test]
    fn scales_without_sense_are_refused() {
        for scale in [[0.0, 1.0], [0.9, 0.5], [0.5, 1.5], [f64::NAN, 1.0]] {
            let crops = CropSet {
                count: 1,
                scale,
                seed: 0,
            };
            assert!(crops.squares(&photo(9, 9), 0).is_err(), "{scale:?}");
        }
    }
}
