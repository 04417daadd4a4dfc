//! Edits: a map learnt in feature space from photographs and their edits, cut to a rank and seen as pictures.
//!
//! Three lanes share one study at the bench: fitting makes it, answering a dragged rank reads it, and
//! inversion refines a picture from it.

mod export;
mod fit_job;
mod invert_job;
mod learning;
mod rank_job;
mod run;
mod study;

pub(super) use fit_job::FitJob;
pub(super) use invert_job::InvertJob;
pub(super) use rank_job::RankJob;
pub use run::{
    CutRun, EditRun, EncodedScores, FeatureScores, InvertedRun, Member, PictureScores, Seen,
    SeenFeature, Sweep,
};
pub(super) use study::EditStudy;
