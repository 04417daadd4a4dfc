//! Drawing by shaders, display only: what is shown here is never measured.

pub mod heat;
pub mod preview;

pub use heat::{HEAT_WGSL, Heat, HeatPipeline};
pub use preview::{PERTURBED_WGSL, Preview, PreviewPipeline, PreviewView, ViewMode};
