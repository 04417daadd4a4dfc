//! Manipulations: pictures in, pictures out.

use serde::{Deserialize, Serialize};

use super::gaussian::{Border, smooth};
use crate::{Error, ErrorKind, Result};

/// Weights of red, green and blue in the luma of Recommendation ITU-R BT.601, on gamma-encoded values;
/// Pillow's conversion to grey has the same.
const LUMA: [f64; 3] = [0.299, 0.587, 0.114];

/// A change m(x) of a whole picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Manipulation {
    /// Smoothed by a Gaussian, with mirrored borders ([`Border::Mirrored`]).
    Blur {
        /// Standard deviation in pixels of the picture that is changed.
        sigma_px: f32,
    },
    /// Every channel replaced by the luma of Recommendation ITU-R BT.601.
    Grayscale,
}

impl Manipulation {
    /// Name for people.
    pub fn title(&self) -> String {
        match self {
            Self::Blur { sigma_px } => format!("blur, σ {sigma_px} px"),
            Self::Grayscale => "grayscale".to_owned(),
        }
    }

    /// # Errors
    /// [`ErrorKind::Request`] for parameters without sense.
    pub fn check(&self) -> Result<()> {
        match *self {
            // Beyond this the kernel is wider than any input side.
            Self::Blur { sigma_px } if !(sigma_px > 0.0 && sigma_px <= 1000.0) => Err(Error::new(
                ErrorKind::Request,
                "cannot blur",
                format!("the width σ is {sigma_px} px"),
                "Give a width above 0 and up to 1000 px",
            )),
            _ => Ok(()),
        }
    }

    /// m(x) of an RGB picture: `3 · rows · columns` values in [0, 1] in the order (channel, row,
    /// column), gamma-encoded as in the file. Computed in f64 and not rounded to grey levels, so that
    /// a small change m(x) − x keeps its shape.
    pub fn apply(&self, pixels: &[f32], rows: usize, columns: usize) -> Vec<f64> {
        let mut values: Vec<f64> = pixels.iter().map(|&value| f64::from(value)).collect();
        match self {
            Self::Blur { sigma_px } => {
                let sigma_px = f64::from(*sigma_px);
                smooth(&mut values, rows, columns, sigma_px, Border::Mirrored);
            }
            Self::Grayscale => {
                let area = rows * columns;
                for at in 0..area {
                    let luma = (0..3).map(|c| LUMA[c] * values[c * area + at]).sum();
                    (0..3).for_each(|c| values[c * area + at] = luma);
                }
            }
        }
        values
    }
}
