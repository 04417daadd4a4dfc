//! ConvNeXt: a convolutional network with the proportions of a transformer.
//!
//! - Paper: Liu, Mao, Wu, Feichtenhofer, Darrell and Xie, “A ConvNet for the 2020s”, CVPR 2022.
//! - Original code: `facebookresearch/ConvNeXt`, MIT. Tensor names are those of timm's `convnext_*`.
//! - The pooled feature is what timm's `forward_head(pre_logits=True)` gives: the mean over positions, normalised.
//! - Deviations: the layer scale is multiplied into the projection before it, in double precision; stochastic
//!   depth, which acts in training only, is left out.
//!
//! Names elsewhere ([`keys`]), for stage i and block j:
//!
//! | timm | original | torchvision | transformers |
//! |---|---|---|---|
//! | `stem.0`, `stem.1` | `downsample_layers.0.0`, `.1` | `features.0.0`, `.1` | `convnext.embeddings.patch_embeddings`, `.layernorm` |
//! | `stages.i.downsample.k` | `downsample_layers.i.k` | `features.{2i}.k` | `convnext.encoder.stages.i.downsampling_layer.k` |
//! | `stages.i.blocks.j.conv_dw` | `stages.i.j.dwconv` | `features.{2i+1}.j.block.0` | `….stages.i.layers.j.dwconv` |
//! | `stages.i.blocks.j.norm` | `stages.i.j.norm` | `….block.2` | `….layernorm` |
//! | `stages.i.blocks.j.mlp.fc1` | `stages.i.j.pwconv1` | `….block.3` | `….pwconv1` |
//! | `stages.i.blocks.j.mlp.fc2` | `stages.i.j.pwconv2` | `….block.5` | `….pwconv2` |
//! | `stages.i.blocks.j.gamma` | `stages.i.j.gamma` | `….layer_scale`, (channel, 1, 1) | `….layer_scale_parameter` |
//! | `head.norm` | `norm` | `classifier.0` | `convnext.layernorm` |
//! | `head.fc` | `head` | `classifier.2` | `classifier` |

mod config;
pub mod keys;
mod model;

pub use config::ConvNeXtConfig;
pub use model::ConvNeXt;
