//! Local geometry of an encoder at one photograph: directions, response profile, trace and spectrum of
//! JᵀJ; and the maps between the feature maps of pictures and their edits.
//!
//! What is local is written against [`Field`], a differentiable map seen at one point, so that
//! the statistics are tested on maps with closed forms and used on encoders.

pub mod decode;
pub mod directions;
pub mod encoder_field;
pub mod encoding;
pub mod estimator;
pub mod feature_cache;
pub mod field;
mod gram;
pub mod learn;
pub mod maps;
pub mod perceptual;
pub mod profile;
pub mod profiler;
pub mod spectrum;
pub mod summary;
pub mod trace;

pub use directions::DirectionFamily;
pub use field::{Field, Perturbation};
pub use profile::{Basis, Cost, Profile, ScaleEstimate};
pub use profiler::Profiler;
pub use summary::{Reading, Shape, Summary};
pub use trace::{TraceEstimate, TraceEstimator};
