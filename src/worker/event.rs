//! What the worker says.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::command::{Generation, Lane};
use super::edit::{CutRun, EditRun, InvertedRun, PictureScores};
use super::memory::Memory;
use crate::Error;
use crate::device::{DeviceInfo, SelfCheck};
use crate::encoders::EncoderSpec;
use crate::geometry::ScaleEstimate;
use crate::geometry::maps::Cut;
use crate::geometry::spectrum::BottomDirection;
use crate::images::{Photo, Prepared};
use crate::recipe::{SpectrumRecipe, WeightsKind};
use crate::report::{ProfileRun, SpectrumRun};

/// Something that happened, with the number of the request it answers.
#[derive(Clone, Debug)]
pub enum Event {
    /// The compute device that is now in use.
    DeviceReady {
        /// The request.
        generation: Generation,
        /// The device.
        device: DeviceInfo,
    },
    /// A photograph is now the current one.
    ImageOpened {
        /// The request.
        generation: Generation,
        /// The photograph.
        photo: Arc<Photo>,
    },
    /// An encoder's weights are loaded and the photograph was prepared for it.
    EncoderReady {
        /// The request.
        generation: Generation,
        /// Its lane.
        lane: Lane,
        /// Index of the recipe in the request.
        index: usize,
        /// The encoder.
        spec: Arc<EncoderSpec>,
        /// Trained or random.
        weights: WeightsKind,
        /// SHA-256 of the weights file, or the seed of the random ones.
        weights_id: String,
        /// The photograph as the encoder sees it.
        prepared: Arc<Prepared>,
        /// The five classes with the largest probability, trained encoders only: label and
        /// probability.
        top5: Vec<(String, f32)>,
        /// Comparison of the device with the CPU on a fixed input; `None` on the CPU itself.
        self_check: Option<SelfCheck>,
    },
    /// A profile has sharpened.
    ProfileUpdated {
        /// The request.
        generation: Generation,
        /// Index of the recipe in the request.
        index: usize,
        /// The profile with what it was made from.
        run: Arc<ProfileRun>,
    },
    /// r at an exact η.
    Measured {
        /// The request.
        generation: Generation,
        /// Index of the recipe in the request.
        index: usize,
        /// The estimate; its `eta_l2` is the one asked for.
        estimate: ScaleEstimate,
    },
    /// The map of an edit was fitted.
    EditFitted {
        /// The request.
        generation: Generation,
        /// The map with what it does.
        run: Arc<EditRun>,
    },
    /// A fitted map at a rank.
    EditCut {
        /// The request.
        generation: Generation,
        /// What it gives.
        run: Arc<CutRun>,
    },
    /// The decoded picture of one more rank was compared with the edited one.
    EditSeen {
        /// The request.
        generation: Generation,
        /// What is cut.
        cut: Cut,
        /// Rank k.
        rank: usize,
        /// How near the picture comes.
        scores: PictureScores,
    },
    /// Pictures sought by gradient have sharpened.
    Inverted {
        /// The request.
        generation: Generation,
        /// The pictures.
        run: Arc<InvertedRun>,
    },
    /// A singular spectrum is there.
    SpectrumFound {
        /// The request.
        generation: Generation,
        /// Index of the task in the request.
        index: usize,
        /// The spectrum with what it was made from.
        run: Arc<SpectrumRun>,
    },
    /// The search for a direction that moves the feature least has come nearer.
    LeastUpdated {
        /// The request.
        generation: Generation,
        /// Index of the task in the request.
        index: usize,
        /// The direction with what it was made from.
        run: Arc<LeastRun>,
    },
    /// How far a request is.
    Progress {
        /// The request.
        generation: Generation,
        /// Its lane.
        lane: Lane,
        /// How far.
        progress: Progress,
    },
    /// Files were written.
    Exported {
        /// The request.
        generation: Generation,
        /// The files.
        files: Vec<PathBuf>,
    },
    /// Weights were loaded or unloaded, or their budget was changed; this answers no request.
    Memory(Memory),
    /// A request is complete.
    Finished {
        /// The request.
        generation: Generation,
        /// Its lane.
        lane: Lane,
    },
    /// A request failed or was cancelled; what was shown before still holds.
    Failed {
        /// The request.
        generation: Generation,
        /// Its lane.
        lane: Lane,
        /// What was asked, for people.
        asked: String,
        /// Why it failed; [`crate::ErrorKind::Cancelled`] where it was stopped on request.
        error: Error,
    },
}

/// A direction that the feature hardly answers to, with what it was made from.
#[derive(Clone, Debug, PartialEq)]
pub struct LeastRun {
    /// Name of the photograph.
    pub image: String,
    /// SHA-256 of the photograph's file.
    pub image_sha256: String,
    /// Name of the compute device.
    pub device: String,
    /// The encoder with its readout, and the seed of the start.
    pub recipe: SpectrumRecipe,
    /// The direction, its gain and its residual.
    pub found: BottomDirection,
    /// Steps done.
    pub steps: usize,
    /// Steps of the whole search.
    pub steps_max: usize,
}

/// How far a request is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// What is being done, for people: `reading weights`, `96 of 128 directions`.
    pub stage: String,
    /// Fraction done, 0 to 1.
    pub fraction: f32,
    /// Time since the request was started.
    pub elapsed: Duration,
    /// Estimated time to the end, once known.
    pub remaining: Option<Duration>,
}
