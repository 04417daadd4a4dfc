//! What is taken away from a profile: table, sidecar and figure, the same from window and command line.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::geometry::Profile;
use crate::recipe::ProfileRecipe;

/// A profile together with everything needed to make it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfileRun {
    /// File name of the photograph.
    pub image: String,
    /// SHA-256 of the photograph's file.
    pub image_sha256: String,
    /// What was done to the photograph: decoding, then preprocessing.
    pub image_steps: Vec<String>,
    /// Name of the encoder for people.
    pub encoder_title: String,
    /// SHA-256 of the weights file, or the seed of the random ones.
    pub weights_id: String,
    /// Name of the compute device.
    pub device: String,
    /// What was computed.
    pub recipe: ProfileRecipe,
    /// The result.
    pub profile: Arc<Profile>,
    /// Time spent, in seconds.
    pub elapsed_secs: f64,
}
