//! Vision Transformers: the plain one, those of DINOv2 and SynCLR, and DINOv3's with rotary positions.
//!
//! - Papers: Dosovitskiy et al., “An Image is Worth 16x16 Words”, ICLR 2021, with the training of Steiner et al.,
//!   “How to train your ViT?”, TMLR 2022 (augreg); Oquab et al., “DINOv2”, TMLR 2024; Darcet et al., “Vision
//!   Transformers Need Registers”, ICLR 2024; Siméoni et al., “DINOv3”, 2025, arXiv 2508.10104; Tian et al.,
//!   “Learning Vision from Models Rivals Learning Vision from Data” (SynCLR), CVPR 2024.
//! - Original code: `google-research/vision_transformer` and timm, Apache-2.0; `facebookresearch/dinov2`,
//!   Apache-2.0; `facebookresearch/dinov3`, DINOv3 License; `google-research/syn-rep-learn`, Apache-2.0. Tensor
//!   names are those of timm: `vit_*`, and `vit_*_dinov3` for rotary positions.
//! - Stages are the patches after chosen blocks and at the end, without class and register tokens. The pooled
//!   feature is what timm's `forward_head(pre_logits=True)` gives: the class token or the mean over patches, normalised
//!   before or after.
//! - Deviations: the layer scale is multiplied into the projection before it, in double precision. Periods
//!   of rotary positions are computed, as in timm and transformers; DINOv3's own checkpoints hold them
//!   rounded to bfloat16.
//!
//! Names elsewhere ([`keys`]), for block i:
//!
//! | timm | DINOv2, DINOv3 | torchvision | transformers (ViT, DINOv2; DINOv3) |
//! |---|---|---|---|
//! | `cls_token` | the same | `class_token` | `embeddings.cls_token` |
//! | `reg_token` | `register_tokens`; `storage_tokens` | | `embeddings.register_tokens` |
//! | `pos_embed` | the same | `encoder.pos_embedding` | `embeddings.position_embeddings` |
//! | `patch_embed.proj` | the same | `conv_proj` | `embeddings.patch_embeddings.projection`; `embeddings.patch_embeddings` |
//! | `blocks.i.norm1`, `norm2` | the same | `encoder.layers.encoder_layer_i.ln_1`, `ln_2` | `encoder.layer.i.layernorm_before`, `layernorm_after` or `norm1`, `norm2`; `layer.i.norm1`, `norm2` |
//! | `blocks.i.attn.qkv` | the same | `….self_attention.in_proj_weight`, `in_proj_bias` | `….attention.attention.query`, `key`, `value`; `….attention.q_proj`, `k_proj`, `v_proj` |
//! | `blocks.i.attn.q_bias`, `v_bias` (DINOv3) | parts of `attn.qkv.bias` | | `….attention.q_proj.bias`, `v_proj.bias` |
//! | `blocks.i.attn.proj` | the same | `….self_attention.out_proj` | `….attention.output.dense`; `….attention.o_proj` |
//! | `blocks.i.ls1.gamma` (DINOv3: `gamma_1`) | `ls1.gamma` | | `….layer_scale1.lambda1` |
//! | `blocks.i.mlp.fc1`, `fc2` | the same | `….mlp.0`, `3` or `mlp.linear_1`, `linear_2` | `….intermediate.dense`, `….output.dense` or `mlp.fc1`, `fc2`; `mlp.up_proj`, `down_proj` |
//! | `norm` | the same | `encoder.ln` | `layernorm`; `norm` |
//! | `head` | | `heads.head` | `classifier` |
//!
//! DINOv2 with registers adds the first row of its `pos_embed` to the class token; timm has done that addition and holds
//! the other rows only. It is done for files of the authors and of transformers as they are read ([`keys::with_registers`]).

mod config;
pub mod keys;
mod model;

pub use config::{Pooling, Position, QkvBias, VitConfig};
pub use model::Vit;
