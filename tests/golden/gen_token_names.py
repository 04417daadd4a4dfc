#!/usr/bin/env python3
"""The token architectures under the names of other libraries.

    python gen_token_names.py       writes tokens/elsewhere/ beside this script

elsewhere/LIBRARY_NETWORK.safetensors   a tiny random network of torchvision or transformers under its own tensor names
                                        (f32), with `fixture.input` and `fixture.pooled` (f64 arithmetic) beside them.
elsewhere/original.json                 for each original code its tensor names with timm's: the former written down
                                        here, the latter from timm's own conversion of checkpoints.

Made with torch 2.15.0, torchvision, timm 1.0.31 and transformers 5.24.0 on a CPU.
"""
import json
import re
import tempfile
from functools import partial
from pathlib import Path

import torch
import torchvision.models as tv
import transformers as hf
from safetensors.torch import load_file, save_file
from timm.models import convnext, eva, swin_transformer_v2, vision_transformer
from torch import nn
from torchvision.models.swin_transformer import PatchMergingV2, SwinTransformer, SwinTransformerBlockV2

from gen_tokens import convnext as timm_convnext, dinov3 as timm_dinov3, picture, scramble, swinv2 as timm_swinv2, vit as timm_vit

OUT = Path(__file__).parent / "tokens" / "elsewhere"
DEPTHS, DIMS = [1, 2, 1, 1], [4, 8, 12, 16]


def torchvision_convnext():
    setting = [tv.convnext.CNBlockConfig(dim, after, depth) for dim, after, depth in zip(DIMS, DIMS[1:] + [None], DEPTHS)]
    model = tv.convnext.ConvNeXt(setting, num_classes=5)
    return model, 64, lambda x: model.classifier[:2](model.avgpool(model.features(x)))


def torchvision_vit():
    model = tv.VisionTransformer(
        image_size=24, patch_size=8, num_layers=2, num_heads=2, hidden_dim=8, mlp_dim=32, num_classes=5)

    def pooled(x):
        x = model._process_input(x)
        return model.encoder(torch.cat([model.class_token, x], dim=1))[:, 0]

    return model, 24, pooled


def torchvision_swinv2():
    model = SwinTransformer(
        patch_size=[4, 4], embed_dim=4, depths=DEPTHS, num_heads=[1, 2, 2, 4], window_size=[2, 2], num_classes=5,
        norm_layer=partial(nn.LayerNorm, eps=1e-5), block=SwinTransformerBlockV2, downsample_layer=PatchMergingV2)
    return model, 64, lambda x: model.norm(model.features(x)).mean((1, 2))


SMALL = dict(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, patch_size=8, image_size=24)


def transformers_convnext():
    config = hf.ConvNextConfig(depths=DEPTHS, hidden_sizes=DIMS, layer_norm_eps=1e-6, num_labels=5)
    model = hf.ConvNextForImageClassification(config)
    return model, 64, lambda x: model.convnext(x).pooler_output


def transformers_vit():
    model = hf.ViTForImageClassification(hf.ViTConfig(intermediate_size=32, layer_norm_eps=1e-6, num_labels=5, **SMALL))
    return model, 24, lambda x: model.vit(x).last_hidden_state[:, 0]


def transformers_dinov2():
    model = hf.Dinov2Model(hf.Dinov2Config(layer_norm_eps=1e-6, **SMALL))
    return model, 24, lambda x: model(x).pooler_output


def transformers_dinov3():
    config = hf.DINOv3ViTConfig(intermediate_size=32, layer_norm_eps=1e-5, num_register_tokens=4, **SMALL)
    model = hf.DINOv3ViTModel(config)
    return model, 24, lambda x: model(x).pooler_output


def transformers_dinov2_registers():
    model = hf.Dinov2WithRegistersModel(hf.Dinov2WithRegistersConfig(layer_norm_eps=1e-6, num_register_tokens=4, **SMALL))
    return model, 24, lambda x: model(x).pooler_output


def of_other_libraries():
    makers = [torchvision_convnext, torchvision_vit, torchvision_swinv2, transformers_convnext, transformers_vit,
              transformers_dinov2, transformers_dinov3, transformers_dinov2_registers]
    for seed, make in enumerate(makers):
        torch.manual_seed(seed)
        model, side, pooled = make()
        model = model.eval()
        scramble(model, 200 + seed)
        with torch.no_grad():
            for name, tensor in model.named_parameters():
                if name.endswith("attn.qkv.bias"):  # torchvision's SwinV2: the keys have no bias
                    tensor[tensor.numel() // 3:2 * tensor.numel() // 3] = 0
            x = picture(side, 300 + seed)
            model = model.double()
            feature = pooled(x).flatten(1)
        model = model.float()
        if isinstance(model, hf.PreTrainedModel):
            # In memory transformers uses names other than in files.
            with tempfile.TemporaryDirectory() as folder:
                model.save_pretrained(folder)
                state = load_file(Path(folder) / "model.safetensors")
        else:
            state = model.state_dict()
        weights = {name: tensor.contiguous() for name, tensor in state.items() if tensor.is_floating_point()}
        weights |= {"fixture.input": x.float(), "fixture.pooled": feature}
        path = OUT / f"{make.__name__}.safetensors"
        save_file(weights, path)
        print(f"{make.__name__:22} {path.stat().st_size // 1000} kB, |pooled| {feature.norm():.3g}")


def converted(model, state, convert):
    """timm's names of the tensors of an original checkpoint, by value."""
    result = {}
    for name, tensor in convert(dict(state), model).items():
        assert tensor.shape == model.state_dict()[name].shape, name
        result[name] = tensor
    assert set(result) == set(model.state_dict())
    pairs = {}
    for original, tensor in state.items():
        same = [name for name, found in result.items() if found.numel() == tensor.numel()
                and torch.equal(found.flatten(), tensor.flatten())]
        pairs[original] = same
    return pairs


def originals():
    """Names written down from the original codes; which tensor is which comes from timm's conversion."""
    found = {}
    both = lambda *names: [f"{name}.{kind}" for name in names for kind in ("weight", "bias")]

    def random_state(names, shape_of):
        torch.manual_seed(1)
        return {name: torch.randn(shape_of(name)) for name in names}

    # facebookresearch/ConvNeXt, models/convnext.py
    model = timm_convnext(64)
    names = []
    for i, depth in enumerate((1, 1, 2, 1)):
        names += both(f"downsample_layers.{i}.0", f"downsample_layers.{i}.1")
        for j in range(depth):
            key = f"stages.{i}.{j}"
            names += [f"{key}.gamma"] + both(*(f"{key}.{n}" for n in ("dwconv", "norm", "pwconv1", "pwconv2")))
    names += both("norm", "head")
    state = model.state_dict()
    order = {  # shapes: from the places where timm puts them
        name: next(iter(convnext.checkpoint_filter_fn({name: torch.zeros(1)}, model))) for name in names}
    values = random_state(names, lambda name: state[order[name]].shape)
    found["convnext"] = converted(model, values, convnext.checkpoint_filter_fn)

    # microsoft/Swin-Transformer, models/swin_transformer_v2.py
    model = timm_swinv2(64)
    state = model.state_dict()
    values = {}
    for name, tensor in state.items():
        original = re.sub(r"layers\.(\d)\.downsample", lambda m: f"layers.{int(m[1]) - 1}.downsample", name)
        values[original.replace("head.fc", "head")] = torch.randn(tensor.shape)
    for buffer in ("relative_position_index", "relative_coords_table"):
        values[f"layers.0.blocks.0.attn.{buffer}"] = torch.randn(3)
    values["layers.0.blocks.1.attn_mask"] = torch.randn(3)
    found["swinv2"] = converted(model, values, swin_transformer_v2.checkpoint_filter_fn)

    # facebookresearch/dinov2, dinov2/models/vision_transformer.py
    model = timm_vit(56, init_values=1e-5, num_classes=0)
    values = {name: torch.randn(tensor.shape) for name, tensor in model.state_dict().items()}
    values["mask_token"] = torch.randn(1, 3)
    found["dinov2"] = converted(model, values, vision_transformer.checkpoint_filter_fn)

    # facebookresearch/dinov3, dinov3/models/vision_transformer.py
    model = timm_dinov3(48, qkv_bias=True)
    values = {}
    for name, tensor in model.state_dict().items():
        if name.endswith("v_bias"):
            continue
        original = name.replace("reg_token", "storage_tokens").replace("gamma_1", "ls1.gamma").replace("gamma_2", "ls2.gamma")
        shape = [3 * tensor.numel()] if name.endswith("q_bias") else tensor.shape
        values[original.replace("q_bias", "qkv.bias")] = torch.randn(shape)
    for i in range(3):
        values[f"blocks.{i}.attn.qkv.bias_mask"] = torch.randn(3)
    values |= {"mask_token": torch.randn(1, 3), "rope_embed.periods": torch.randn(3)}
    pairs = converted(model, values, eva.checkpoint_filter_fn)
    for name in pairs:
        if name.endswith("qkv.bias"):
            key = name.removesuffix("qkv.bias")
            pairs[name] = [f"{key}q_bias", f"{key}v_bias"]
    found["dinov3"] = pairs
    for architecture, pairs in found.items():
        unused = [name for name, timms in pairs.items() if not timms]
        assert all(len(timms) <= 2 for timms in pairs.values())
        print(f"{architecture:10} {len(pairs)} names, unused: {', '.join(unused)}")
    (OUT / "original.json").write_text(json.dumps(found, indent=1) + "\n")


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    of_other_libraries()
    originals()


if __name__ == "__main__":
    main()
