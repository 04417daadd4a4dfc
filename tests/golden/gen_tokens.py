#!/usr/bin/env python3
"""Reference values of the token architectures, from timm (PyTorch), on tiny random configurations.

    python gen_tokens.py            writes tokens/NAME.{weights,fixture}.safetensors beside this script

Made with torch 2.15.0, timm 1.0.31, safetensors 0.8.0 on a CPU. Every parameter is random and far from the value
that an untrained network has, so that a port which leaves one out is found.

NAME.weights.safetensors   timm's tensor names, f32.
NAME.fixture.safetensors   computed in f64 from the f32 weights and stored so, inputs in f32; maps are (1, channel, row,
                           column):
    input, direction               (1, 3, side, side), the direction of length 1
    stage.<i>.<module>             the stages in the order of execution; patches only
    pooled, logits                 timm's forward_head(pre_logits=True) and its logits, where there are classes
    jvp.<stage 1>, jvp.pooled      J·direction by forward-mode differentiation
    cotangent.pooled, vjp.pooled   Jᵀ·cotangent by reverse-mode differentiation
    other.input, other.stage.<i>.<module>, other.pooled, other.direction, other.jvp.pooled
                                   the same weights at another input side

timm keeps three tables in single precision even in a model of double precision: the coordinates of SwinV2's position
bias, the angles of rotary positions, and a resampled position embedding. They are computed again in double here, by
the original's formula, and compared with timm's to single precision.
"""
import copy
import math
from functools import partial
from pathlib import Path

import timm
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from timm.layers import LayerNorm, resample_abs_pos_embed
from timm.models.convnext import ConvNeXt
from timm.models.eva import Eva
from timm.models.swin_transformer_v2 import SwinTransformerV2
from timm.models.vision_transformer import VisionTransformer
from torch.func import jvp

OUT = Path(__file__).parent / "tokens"
CLASSES = 10

# Fused attention has no forward-mode differentiation on the CPU. Must be said before a model is made.
timm.layers.set_fused_attn(False)


def convnext(side):
    return ConvNeXt(depths=(1, 1, 2, 1), dims=(8, 16, 24, 32), num_classes=CLASSES)


def vit(side, **options):
    arguments = dict(img_size=side, patch_size=8, embed_dim=32, depth=3, num_heads=4, num_classes=CLASSES)
    return VisionTransformer(**{**arguments, **options})


def dinov3(side, **options):
    # As timm's vit_base_patch16_dinov3, with the original's pooling.
    arguments = dict(
        img_size=side, patch_size=8, embed_dim=32, depth=3, num_heads=2, num_classes=0, dynamic_img_size=True,
        qkv_bias=False, init_values=1e-5, rope_type="dinov3", rope_temperature=100, rope_rotate_half=True,
        use_rot_pos_emb=True, use_abs_pos_emb=False, num_reg_tokens=4, use_fc_norm=False,
        norm_layer=partial(LayerNorm, eps=1e-5), global_pool="token")
    return Eva(**{**arguments, **options})


def swinv2(side, **options):
    arguments = dict(
        img_size=side, patch_size=4, embed_dim=8, depths=(2, 2, 1, 1), num_heads=(1, 2, 2, 4), window_size=4,
        num_classes=CLASSES)
    return SwinTransformerV2(**{**arguments, **options})


DINOV2 = dict(init_values=1e-5, num_classes=0)
VIT_STAGES = ["blocks.0", "blocks.1", "norm"]
# Name: model for an input side, sides, stages, resampling of the position embedding.
MODELS = {
    # 72: every stage but the first cuts a row and a column off.
    "convnext": (convnext, (64, 72), [f"stages.{i}" for i in range(4)], None),
    "vit": (vit, (32, 48), VIT_STAGES, "antialiased"),
    "vit_average": (partial(vit, global_pool="avg", init_values=1e-5, reg_tokens=2), (48, 32),
                    ["blocks.0", "blocks.1", "blocks.2"], "antialiased"),
    "dinov2": (partial(vit, **DINOV2), (56, 40), VIT_STAGES, "enlarged"),
    "dinov2_registers": (partial(vit, reg_tokens=4, no_embed_class=True, **DINOV2), (40, 56), VIT_STAGES,
                         "antialiased"),
    "dinov3": (dinov3, (48, 64), VIT_STAGES, None),
    "dinov3_biases": (partial(dinov3, qkv_bias=True, global_pool="avg"), (48, 64), VIT_STAGES, None),
    # 16, 8, 4 and 2 positions a side; then 18, 9, 5 and 3, which windows of 4 do not divide.
    "swinv2": (swinv2, (64, 72), [f"layers.{i}" for i in range(4)], None),
    "swinv2_finetuned": (partial(swinv2, window_size=6, pretrained_window_sizes=(3, 3, 3, 2)), (64, 96),
                         [f"layers.{i}" for i in range(4)], None),
}


def scramble(model, seed):
    """Gives every parameter a value of ordinary size."""
    generator = torch.Generator().manual_seed(seed)

    def normal(tensor, std):
        return torch.randn(tensor.shape, generator=generator) * std

    def uniform(tensor, low, high):
        return torch.rand(tensor.shape, generator=generator) * (high - low) + low

    with torch.no_grad():
        for name, tensor in model.named_parameters():
            last = name.split(".")[-1]
            if last == "logit_scale":
                tensor.copy_(uniform(tensor, math.log(2), math.log(12)))
                if name.startswith("layers.1.blocks.0"):
                    tensor[0] = 5.0  # above its upper limit, ln 100
            elif last in ("gamma", "gamma_1", "gamma_2"):
                tensor.copy_(uniform(tensor, 0.3, 0.9))
            elif last in ("cls_token", "reg_token", "pos_embed"):
                tensor.copy_(normal(tensor, 0.5))
            elif tensor.ndim == 1 and last == "weight":
                tensor.copy_(uniform(tensor, 0.6, 1.4))
            elif tensor.ndim == 1:
                tensor.copy_(normal(tensor, 0.1))
            else:
                tensor.copy_(normal(tensor, 1.3 / math.sqrt(tensor[0].numel())))


def resampled(embedding, prefix, sides, how):
    """A position embedding (1, prefix + positions, channel) of one grid for another, in the tensor's precision."""
    old, new = sides
    if how is None or old == new:
        return embedding
    first, grid = embedding[:, :prefix], embedding[:, prefix:]
    grid = grid.reshape(1, old, old, -1).permute(0, 3, 1, 2)
    if how == "antialiased":
        grid = F.interpolate(grid, size=(new, new), mode="bicubic", antialias=True)
    else:
        # DINOv2, interpolate_pos_encoding.
        grid = F.interpolate(grid, scale_factor=(new + 0.1) / old, mode="bicubic")
    assert grid.shape[-2:] == (new, new)
    return torch.cat([first, grid.permute(0, 2, 3, 1).reshape(1, new * new, -1)], dim=1)


def in_double(model, make, sides, how):
    """The model in double precision for the input side sides[1], with the tables of the docstring in double."""
    native, side = sides
    double = make(side).eval().double()
    state = {name: tensor.double() for name, tensor in model.state_dict().items()}
    if "pos_embed" in state:
        prefix = 0 if model.no_embed_class else model.num_prefix_tokens
        grids = (native // 8, side // 8)
        embedding = resampled(state["pos_embed"], prefix, grids, how)
        if how == "antialiased":
            timms = resample_abs_pos_embed(
                model.pos_embed, new_size=(grids[1],) * 2, old_size=(grids[0],) * 2, num_prefix_tokens=prefix)
            assert (embedding - timms.double()).abs().max() < 2e-6
        state["pos_embed"] = embedding
    double.load_state_dict(state)
    for name, module in double.named_modules():
        if hasattr(module, "relative_coords_table"):
            table = module.relative_coords_table
            window, trained = module.window_size[0], module.pretrained_window_size[0] or module.window_size[0]
            steps = torch.arange(-(window - 1), window, dtype=torch.float64) * 8 / max(trained - 1, 1)
            steps = steps.sign() * (steps.abs() + 1).log2() / 3
            exact = torch.stack(torch.meshgrid(steps, steps, indexing="ij"), dim=-1)[None]
            assert exact.shape == table.shape and (exact - table).abs().max() < 1e-6
            module.relative_coords_table = exact
    if isinstance(double, Eva):
        width, grid = double.rope.dim, side // 8
        periods = 100.0 ** (2 * torch.arange(width // 4, dtype=torch.float64) / (width // 2))
        steps = 2 * (torch.arange(grid, dtype=torch.float64) + 0.5) / grid - 1
        places = torch.stack(torch.meshgrid(steps, steps, indexing="ij"), dim=-1).reshape(-1, 2, 1)
        angles = (2 * math.pi * places / periods).flatten(1)
        exact = torch.cat([angles.sin(), angles.sin(), angles.cos(), angles.cos()], dim=-1)
        assert (exact - double.rope.get_embed(shape=(grid, grid))).abs().max() < 1e-5
        double.rope.get_embed = lambda shape: exact
    return double


def as_map(model, tensor):
    """Patches of a stage as (1, channel, row, column)."""
    if tensor.ndim == 3:
        patches = tensor[:, model.num_prefix_tokens:]
        side = math.isqrt(patches.shape[1])
        return patches.reshape(1, side, side, -1).permute(0, 3, 1, 2)
    return tensor.permute(0, 3, 1, 2) if isinstance(model, SwinTransformerV2) else tensor


def outputs(model, x, stages):
    """Stages, pooled feature and logits by name."""
    found, hooks = {}, []
    for i, stage in enumerate(stages):
        def hook(module, arguments, output, key=f"stage.{i}.{stage}"):
            found[key] = as_map(model, output)
        hooks.append(model.get_submodule(stage).register_forward_hook(hook))
    features = model.forward_features(x)
    for hook in hooks:
        hook.remove()
    found["pooled"] = model.forward_head(features, pre_logits=True)
    if model.num_classes > 0:
        found["logits"] = model.forward_head(features)
    return found


def picture(side, seed):
    """A smooth random picture: sums of noise at several scales."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.zeros(1, 3, side, side, dtype=torch.float64)
    for grid in (2, 4, 8, 16):
        noise = torch.randn(1, 3, grid, grid, generator=generator, dtype=torch.float64)
        x += F.interpolate(noise, size=(side, side), mode="bilinear") / math.sqrt(grid)
    # Rounded, so that both precisions start from the same input.
    return (x / x.std()).float().double()


def direction(side, seed):
    generator = torch.Generator().manual_seed(seed)
    u = torch.randn(1, 3, side, side, generator=generator, dtype=torch.float64)
    return (u / u.norm()).float().double()


def check_against_differences(model, x, u, stages, expected):
    step = 1e-5
    with torch.no_grad():
        ahead, behind = (outputs(model, x + s * step * u, stages)["pooled"] for s in (1, -1))
    error = float(((ahead - behind) / (2 * step) - expected.detach()).norm() / expected.detach().norm())
    assert error < 1e-6, error
    return error


def reference(model, side, stages, seed, everything):
    x, u = picture(side, seed), direction(side, seed + 1)
    values, tangents = jvp(lambda z: outputs(model, z, stages), (x,), (u,))
    error = check_against_differences(model, x, u, stages, tangents["pooled"])
    result = {"input": x, "direction": u, **values, "jvp.pooled": tangents["pooled"]}
    if everything:
        middle = f"stage.1.{stages[1]}"
        result[f"jvp.{middle}"] = tangents[middle]
        generator = torch.Generator().manual_seed(seed + 2)
        v = torch.randn(values["pooled"].shape, generator=generator, dtype=torch.float64)
        z = x.clone().requires_grad_()
        (outputs(model, z, stages)["pooled"] * v).sum().backward()
        result |= {"cotangent.pooled": v, "vjp.pooled": z.grad}
    else:
        result.pop("logits", None)
    return result, error


def main():
    OUT.mkdir(exist_ok=True)
    for seed, (name, (make, (native, other), stages, how)) in enumerate(MODELS.items()):
        torch.manual_seed(seed)
        model = make(native).eval()
        scramble(model, 100 + seed)
        fixture, error = reference(in_double(model, make, (native, native), how), native, stages, 10 * seed, True)
        second, _ = reference(in_double(model, make, (native, other), how), other, stages, 10 * seed + 5, False)
        fixture |= {f"other.{key}": tensor for key, tensor in second.items()}
        fixture = {key: tensor.detach().clone().contiguous() for key, tensor in fixture.items()}
        for key in [key for key in fixture if key.endswith(("input", "direction"))]:
            fixture[key] = fixture[key].float()  # exact
        weights = {key: tensor.detach().clone().contiguous() for key, tensor in model.state_dict().items()}
        save_file(fixture, OUT / f"{name}.fixture.safetensors")
        save_file(weights, OUT / f"{name}.weights.safetensors")
        sizes = [(OUT / f"{name}.{kind}.safetensors").stat().st_size // 1000 for kind in ("weights", "fixture")]
        print(f"{name:18} weights {sizes[0]} kB, fixture {sizes[1]} kB, J·u against differences {error:.1e}, "
              f"|pooled| {fixture['pooled'].norm():.3g}, |Ju| {fixture['jvp.pooled'].norm():.3g}")


if __name__ == "__main__":
    main()
