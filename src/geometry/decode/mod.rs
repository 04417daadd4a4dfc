//! From feature maps back to pictures: by gradient through the encoder, for any stage, and by a small
//! feed-forward network where one was trained.

mod crops;
pub mod decoder;
pub mod inversion;
pub mod plan;
mod prior;
pub mod training;

pub use decoder::{Decoded, Decoder, DecoderHeader};
pub use inversion::{Inversion, InversionConfig, Iterate};
pub use plan::DecoderPlan;
pub use training::{DecoderStep, DecoderTrainer, DecoderTrainingConfig, HeldOut};
