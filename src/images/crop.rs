//! Square pieces of photographs at another size, such as trainings are fed with.

use super::preprocess::{ResizeFilter, resize};
use super::{Photo, Picture};
use crate::{Error, ErrorKind, Result};

/// The square of `side` pixels whose upper left corner is (`left`, `top`), resized to `to` pixels by Pillow's bicubic with
/// antialiasing.
///
/// # Errors
/// [`ErrorKind::Request`] where the square is empty or does not lie within the photograph.
pub fn square(photo: &Photo, [left, top]: [usize; 2], side: usize, to: usize) -> Result<Picture> {
    let (width, height) = (photo.width as usize, photo.height as usize);
    let is_inside =
        |start: usize, len: usize| start.checked_add(side).is_some_and(|end| end <= len);
    if side == 0 || to == 0 || !is_inside(left, width) || !is_inside(top, height) {
        return Err(Error::new(
            ErrorKind::Request,
            format!("cannot cut a piece out of “{}”", photo.name),
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
    let rgb = resize(&piece, (side, side), (to, to), ResizeFilter::Bicubic);
    Ok(Picture::from_parts(to, to, rgb))
}
