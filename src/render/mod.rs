//! Drawing by shaders, display only: what is shown here is never measured.

pub mod preview;

pub use preview::{PERTURBED_WGSL, Preview, PreviewPipeline, PreviewView, ViewMode};
