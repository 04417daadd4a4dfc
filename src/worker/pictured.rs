//! Directions that are made from pictures: toward another image, along a manipulation.

use std::path::Path;
use std::sync::Arc;

use super::engine::Subject;
use crate::geometry::DirectionFamily;
use crate::geometry::directions::difference;
use crate::images::{self, Background, bundled};
use crate::recipe::ProfileRecipe;
use crate::{Error, ErrorKind, Result};

/// A direction with what it was made from.
pub(super) struct Pictured {
    /// Unit L2 norm, as long as the input.
    pub(super) direction: Arc<[f32]>,
    /// The picture at its end and how it was made, for people.
    pub(super) steps: Vec<String>,
}

impl Pictured {
    /// The direction of a recipe at a subject; `None` for the families that need no pictures.
    /// `background` is the colour under transparent pixels of another image.
    ///
    /// # Errors
    /// Where the other image cannot be read, or is the photograph itself; where the manipulation
    /// changes nothing.
    pub(super) fn of(
        recipe: &ProfileRecipe,
        subject: &Subject,
        background: Background,
    ) -> Result<Option<Self>> {
        let prepared = &subject.prepared;
        let (target, mut steps) = match &recipe.family {
            DirectionFamily::Toward { image } => {
                let photo = match bundled::name_in(image) {
                    Some(name) => bundled::open(name)?,
                    None => images::open(Path::new(image), background)?,
                };
                let mut target = subject.spec.preprocessing.apply(&photo)?;
                // The same dither as the photograph's, so that it drops out of the difference.
                if let Some(seed) = recipe.dither_seed {
                    target = target.dithered(seed);
                }
                let mut steps = vec![format!("{}, SHA-256 {}", photo.name, photo.sha256)];
                steps.extend(photo.treatment);
                steps.push(target.steps);
                let pixels: Vec<f64> = target.pixels.iter().map(|&v| f64::from(v)).collect();
                (pixels, steps)
            }
            DirectionFamily::Along { manipulation } => {
                let side = prepared.side_px;
                let pixels = manipulation.apply(&prepared.pixels, side, side);
                (pixels, vec![manipulation.title()])
            }
            _ => return Ok(None),
        };
        if target.len() != prepared.pixels.len() {
            return Err(Error::new(
                ErrorKind::Internal,
                "cannot make the direction",
                format!(
                    "the picture at its end has {} values, the photograph {}",
                    target.len(),
                    prepared.pixels.len()
                ),
                "",
            ));
        }
        let Some((direction, distance)) = difference(&target, &prepared.pixels) else {
            return Err(no_difference(&recipe.family));
        };
        steps.push(format!("reached at η = {distance:.4}"));
        Ok(Some(Self { direction, steps }))
    }
}

fn no_difference(family: &DirectionFamily) -> Error {
    let (why, remedy) = match family {
        DirectionFamily::Along { manipulation } => (
            format!("{} does not change this photograph", manipulation.title()),
            "Choose another manipulation or photograph",
        ),
        _ => (
            "to the encoder, the other image is the photograph itself".to_owned(),
            "Choose another image",
        ),
    };
    let what = format!("cannot make the direction {}", family.title());
    Error::new(ErrorKind::Request, what, why, remedy)
}
