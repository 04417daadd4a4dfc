//! Swin Transformer V2: attention inside shifted windows, by cosines, with a position bias that a small network
//! computes from logarithmic distances.
//!
//! - Paper: Liu et al., “Swin Transformer V2: Scaling Up Capacity and Resolution”, CVPR 2022; windows and patch
//!   merging as in Liu et al., “Swin Transformer”, ICCV 2021.
//! - Original code: `microsoft/Swin-Transformer`, MIT. Tensor names are those of timm's `swinv2_*`.
//! - Stages are the outputs of timm's `layers.i`, channels first. The pooled feature is the mean over positions
//!   after the last norm.
//! - Deviations: the position bias is computed once, in double precision, when the network is loaded. As in timm
//!   and torchvision patches are merged before a stage, not after the one before it, so that stage i
//!   of the original is seen before that.
//! - torchvision pads a stage with fewer positions a side than a window up to the window, and lets the padding be
//!   attended to; here, as in the original and timm, the window is narrowed. At 256 px neither happens.
//!
//! Names elsewhere ([`keys`]), for stage i and block j:
//!
//! | timm | original | torchvision | transformers |
//! |---|---|---|---|
//! | `patch_embed.proj`, `patch_embed.norm` | the same | `features.0.0`, `features.0.2` | `swinv2.embeddings.patch_embeddings.projection`, `swinv2.embeddings.norm` |
//! | `layers.i.downsample.reduction`, `norm` | `layers.{i-1}.downsample.…` | `features.{2i}.…` | `swinv2.encoder.layers.{i-1}.downsample.…` |
//! | `layers.i.blocks.j.…` | the same | `features.{2i+1}.j.…` | `swinv2.encoder.layers.i.blocks.j.…` |
//! | `….attn.qkv` | the same | the same | `….attention.self.query`, `key`, `value` |
//! | `….attn.q_bias`, `v_bias` | the same | thirds of `….attn.qkv.bias` | `….attention.self.query.bias`, `value.bias` |
//! | `….attn.cpb_mlp`, `attn.proj` | the same | the same | `….attention.self.continuous_position_bias_mlp`, `attention.output.dense` |
//! | `….norm1`, `norm2` | the same | the same | `….layernorm_before`, `layernorm_after` |
//! | `….mlp.fc1`, `fc2` | the same | `….mlp.0`, `3` | `….intermediate.dense`, `output.dense` |
//! | `norm`, `head.fc` | `norm`, `head` | `norm`, `head` | `swinv2.layernorm`, `classifier` |

mod config;
pub mod keys;
mod model;
mod window;

pub use config::SwinV2Config;
pub use model::SwinV2;
