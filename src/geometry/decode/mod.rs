//! From feature maps back to pictures.

pub mod inversion;

pub use inversion::{Inversion, InversionConfig, Iterate};
