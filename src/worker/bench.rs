//! The workbench that jobs share: the engine, the photograph, and what is known of it so far.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use super::edit::EditStudy;
use super::engine::{DEVICE_REMEDY, Engine};
use super::memory::{LoadedWeights, Memory};
use super::study::Study;
use crate::device::{DeviceChoice, DeviceInfo};
use crate::images::{Background, Photo};
use crate::recipe::{ProfileRecipe, WeightsKind};
use crate::{Error, ErrorKind, Result};

/// Studies that are kept: four encoders, the most that are compared, and their twins; else an encoder
/// and its twin for several readouts. Each holds the derivative at the photograph on the device.
const STUDIES_MAX: usize = 8;

/// Everything that outlives a job.
pub(super) struct Bench {
    pub(super) engine: Box<dyn Engine>,
    /// The device in use; `None` before one was opened or after it was lost.
    pub(super) device: Option<DeviceInfo>,
    /// The current photograph.
    pub(super) photo: Option<Arc<Photo>>,
    /// Colour under its transparent pixels, and under those of an image that a direction leads to.
    pub(super) background: Background,
    /// The edit on screen, which holds its encoder.
    pub(super) edit: Option<EditStudy>,
    /// Least recently used first.
    studies: Vec<Rc<RefCell<Study>>>,
    /// The weights that the engine holds.
    memory: Memory,
}

impl Bench {
    pub(super) fn new(engine: Box<dyn Engine>) -> Self {
        Self {
            engine,
            device: None,
            photo: None,
            background: Background::default(),
            edit: None,
            studies: Vec::new(),
            memory: Memory::default(),
        }
    }

    /// The weights in memory.
    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Changes what weights may take, and keeps to it at once.
    pub(super) fn set_budget(&mut self, bytes: u64) {
        self.memory.budget_bytes = bytes;
        self.make_room(0);
    }

    /// From now on the encoders of `recipes` are those in use, and the others may go.
    pub(super) fn use_for(&mut self, recipes: &[ProfileRecipe]) {
        self.memory.use_for(recipes);
        self.make_room(0);
    }

    /// Loads an encoder, unless it is already; others give way first, so that the budget holds while
    /// it is read.
    pub(super) fn load(&mut self, encoder: &str, weights: WeightsKind) -> Result<()> {
        if self.memory.touch(encoder, weights) {
            return self.engine.load(encoder, weights);
        }
        let bytes = self.engine.weights_bytes(encoder)?;
        self.make_room(bytes);
        self.engine.load(encoder, weights)?;
        self.memory.loaded.push(LoadedWeights {
            encoder: encoder.to_owned(),
            weights,
            bytes,
        });
        Ok(())
    }

    /// Unloads what has to go for another `bytes`, with the studies that hold it.
    fn make_room(&mut self, bytes: u64) {
        for gone in self.memory.give_way(bytes) {
            self.studies.retain(|study| {
                let study = study.borrow();
                let recipe = study.recipe();
                recipe.encoder != gone.encoder || recipe.weights != gone.weights
            });
            let is_gone = gone.weights == WeightsKind::Trained;
            self.edit
                .take_if(|edit| is_gone && edit.uses(&gone.encoder));
            self.engine.unload(&gone.encoder, gone.weights);
        }
    }

    /// Moves to another device; on failure everything stays as it was.
    pub(super) fn use_device(&mut self, choice: &DeviceChoice) -> Result<DeviceInfo> {
        let engine = &mut self.engine;
        // Graphics drivers panic where others answer.
        let device = catch_unwind(AssertUnwindSafe(|| engine.use_device(choice))).unwrap_or_else(
            |payload| {
                let panic = Error::from_panic("cannot start the compute device", &*payload);
                Err(Error {
                    kind: ErrorKind::Device,
                    remedy: DEVICE_REMEDY.to_owned(),
                    ..panic
                })
            },
        )?;
        self.studies.clear();
        self.edit = None;
        self.memory.loaded.clear();
        self.device = Some(device.clone());
        Ok(device)
    }

    /// Makes a photograph the current one; what is known of others is forgotten.
    pub(super) fn use_photo(&mut self, photo: Arc<Photo>, background: Background) {
        let is_same_background = self.background == background;
        self.studies
            .retain(|study| is_same_background && study.borrow().shows(&photo));
        self.photo = Some(photo);
        self.background = background;
    }

    /// What is already known for this photograph and recipe.
    pub(super) fn known_study(
        &mut self,
        photo: &Arc<Photo>,
        recipe: &ProfileRecipe,
    ) -> Option<Rc<RefCell<Study>>> {
        self.study_that(recipe, |study| study.fits(photo, recipe))
    }

    /// A study that looks at the same feature of the photograph, whatever its directions: its recorded derivative
    /// serves every product.
    pub(super) fn study_of_feature(
        &mut self,
        photo: &Arc<Photo>,
        recipe: &ProfileRecipe,
    ) -> Option<Rc<RefCell<Study>>> {
        self.study_that(recipe, |study| study.has_feature_of(photo, recipe))
    }

    fn study_that(
        &mut self,
        recipe: &ProfileRecipe,
        is_it: impl Fn(&Study) -> bool,
    ) -> Option<Rc<RefCell<Study>>> {
        let position = self
            .studies
            .iter()
            .position(|study| is_it(&study.borrow()))?;
        self.memory.touch(&recipe.encoder, recipe.weights);
        let study = self.studies.remove(position);
        self.studies.push(Rc::clone(&study));
        Some(study)
    }

    /// Keeps a study for later requests, in place of the one that was not used for longest.
    pub(super) fn keep_study(&mut self, study: Study) -> Rc<RefCell<Study>> {
        if self.studies.len() >= STUDIES_MAX {
            self.studies.remove(0);
        }
        let study = Rc::new(RefCell::new(study));
        self.studies.push(Rc::clone(&study));
        study
    }

    /// Puts the compute side in order after a panic and says what it was.
    pub(super) fn recover(&mut self, asked: &str, payload: &(dyn Any + Send)) -> Error {
        self.judge(Error::from_panic(asked, payload))
    }

    /// Looks behind an error of a job: where the device or the program failed, what is on the
    /// device is not to be relied on, and the device may be lost.
    pub(super) fn judge(&mut self, error: Error) -> Error {
        if !matches!(error.kind, ErrorKind::Device | ErrorKind::Internal) {
            return error;
        }
        let Some(device) = self.device.take() else {
            return error;
        };
        match self.rebuild() {
            Ok(()) => {
                self.device = Some(device);
                error
            }
            Err(lost) => {
                let name = device.name;
                let why = format!("the device “{name}” was lost ({}): {}", lost.why, error.why);
                Error::new(ErrorKind::Device, error.what, why, DEVICE_REMEDY)
            }
        }
    }

    /// Drops everything on the device and tries it. Neither may end the thread.
    fn rebuild(&mut self) -> Result<()> {
        let studies = (std::mem::take(&mut self.studies), self.edit.take());
        self.memory.loaded.clear();
        let engine = &mut self.engine;
        catch_unwind(AssertUnwindSafe(|| {
            drop(studies);
            engine.recover()
        }))
        .unwrap_or_else(|payload| Err(Error::from_panic("the device fails", payload.as_ref())))
    }
}
