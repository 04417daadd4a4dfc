#!/usr/bin/env python3
"""Checkpoints in every form that researchers keep, and names in every form that libraries use.

    python gen_checkpoints.py files       files of one small network, as PyTorch and others write them
    python gen_checkpoints.py names       names.json: what each library calls the tensors of timm's networks

`files` writes for a SqueezeNet with torchvision's names (its sizes stand in tests/checkpoints.rs)
  expected.safetensors   its tensors in f32
  NAME.pth, .ckpt, …     the same tensors, wrapped, cast, nested and laid out as the name says

`names` builds, for each family and library, a small network there and the same network in timm, copies the
weights over by rules of this script, and asserts that both give the same features. Only then does it write
down, for every tensor of the library's checkpoint, the tensor of timm that it is: its name, and which third of the
rows of either it is, where it is not the whole. The shapes are not those of published networks; the names are.

Needs torch, torchvision, timm, transformers, safetensors, dill and numpy.
"""

import collections
import io
import json
import pathlib
import re
import sys
import tempfile
import types
from functools import partial

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn

HERE = pathlib.Path(__file__).parent
CHANNELS, FIRES, CLASSES = 4, [(1, 2)] * 8, 5


class Fire(nn.Module):
    def __init__(self, inputs, squeeze, expand):
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeeze, 1)
        self.expand1x1 = nn.Conv2d(squeeze, expand, 1)
        self.expand3x3 = nn.Conv2d(squeeze, expand, 3, padding=1)


class SqueezeNet(nn.Module):
    """torchvision's `squeezenet1_1` with other widths; only its tensors matter here."""

    def __init__(self):
        super().__init__()
        layers, inputs = [nn.Conv2d(3, CHANNELS, 3, 2), nn.ReLU()], CHANNELS
        for i, (squeeze, expand) in enumerate(FIRES):
            if i in (0, 2, 4):
                layers.append(nn.MaxPool2d(3, 2, ceil_mode=True))
            layers.append(Fire(inputs, squeeze, expand))
            inputs = 2 * expand
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(), nn.Conv2d(inputs, CLASSES, 1))


def prefixed(prefix, state):
    return collections.OrderedDict((prefix + name, value) for name, value in state.items())


def strided(state):
    """The same values as views: transposed, cut out of larger storages, and all out of one storage."""
    views, flat = collections.OrderedDict(), torch.cat([value.flatten() for value in state.values()])
    start = 0
    for i, (name, value) in enumerate(state.items()):
        if i % 3 == 0:
            dims = tuple(reversed(range(value.dim())))
            views[name] = value.permute(dims).contiguous().permute(dims)
        elif i % 3 == 1:
            wide = torch.full((*value.shape[:-1], value.shape[-1] + 3), float("nan"))
            wide[..., 1 : 1 + value.shape[-1]] = value
            views[name] = wide[..., 1 : 1 + value.shape[-1]]
        else:
            views[name] = flat[start : start + value.numel()].view(value.shape)
        start += value.numel()
    return views


def files():
    import dill

    torch.manual_seed(0)
    model = SqueezeNet()
    # Copies: the optimiser below moves the model.
    state = collections.OrderedDict((name, value.clone()) for name, value in model.state_dict().items())
    save_file({name: value.contiguous() for name, value in state.items()}, HERE / "expected.safetensors")

    def save(name, content, **more):
        torch.save(content, HERE / name, **more)

    cast = lambda dtype: {name: value.to(dtype) for name, value in state.items()}
    save("plain.pth", state)
    save("legacy.pth", state, _use_new_zipfile_serialization=False)
    save("protocol4.pth", dict(state), pickle_protocol=4)
    save("half.pth", cast(torch.float16))
    save("brain.pth", cast(torch.bfloat16))
    save("double.pth", cast(torch.float64))
    save("strided.pth", strided(state))
    save("strided_legacy.pth", strided(state), _use_new_zipfile_serialization=False)
    save("parameters.pth", collections.OrderedDict((n, nn.Parameter(v)) for n, v in state.items()))
    compiled = prefixed("_orig_mod.", state)
    save("compiled.pth", {"model": compiled, "epoch": 3, "args": types.SimpleNamespace(lr=0.1, name="run")})

    # As Lightning writes: nested, prefixed, beside an optimiser, numpy scalars and a schedule.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    sum(parameter.sum() for parameter in model.parameters()).backward()
    optimizer.step()
    save(
        "lightning.ckpt",
        {
            "epoch": 7,
            "pytorch-lightning_version": "2.4.0",
            "state_dict": prefixed("backbone.", state),
            "optimizer_states": [optimizer.state_dict()],
            "best": np.float64(0.5),
            "rng": np.arange(3),
            "path": pathlib.PurePosixPath("a/b"),
        },
    )
    model.load_state_dict(state)

    # As `robustness` writes, with dill: an attacker that carries the same network along, and functions.
    # Compiled under a name of its own, because the pickle keeps the path of the source.
    functions = {}
    exec(compile("def decay(scale):\n    return lambda epoch: scale**epoch\n", "train.py", "exec"), functions)
    counters = {"module.normalizer.new_mean": torch.zeros(3, 1, 1), "module.normalizer.new_std": torch.ones(3, 1, 1)}
    attacked = {**prefixed("module.model.", state), **prefixed("module.attacker.model.", state), **counters}
    schedule = {"last_epoch": 3, "lr_lambdas": [functions["decay"](0.5)], "_step_count": 4}
    save(
        "robustness.ckpt",
        {"model": attacked, "optimizer": optimizer.state_dict(), "schedule": schedule, "epoch": 4, "prec": np.float32(3)},
        pickle_module=dill,
    )

    # As DINO writes: two networks that differ.
    other = {name: value + 1 for name, value in state.items()}
    teacher = {**prefixed("backbone.", state), "head.mlp.0.weight": torch.zeros(2, 2)}
    save("dino.pth", {"student": prefixed("module.backbone.", other), "teacher": teacher, "epoch": 1})

    # A whole model, as torch.save(model) writes it. Its class need not exist where it is read.
    save("whole_model.pth", model)

    # Tensors that are no parameters.
    extra = {**state, "features.0.num_batches_tracked": torch.tensor(5), "mask_token": torch.zeros(1, 1, 3)}
    save("counters.pth", extra)

    # TorchScript is a program.
    script = io.BytesIO()
    torch.jit.save(torch.jit.script(nn.Linear(2, 2)), script)
    (HERE / "script.pt").write_bytes(script.getvalue())

    # Shards with an index, as transformers writes them.
    names = sorted(state)
    half = len(names) // 2
    shards = {f"model-0000{i + 1}-of-00002.safetensors": part for i, part in enumerate((names[:half], names[half:]))}
    folder = HERE / "sharded"
    folder.mkdir(exist_ok=True)
    for shard, part in shards.items():
        save_file({name: state[name].contiguous() for name in part}, folder / shard)
    weight_map = {name: shard for shard, part in shards.items() for name in part}
    index = {"metadata": {"total_size": 0}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1))


# ---- names ---------------------------------------------------------------------------------------


def lively(model):
    """A model none of whose tensors has a special value, so that a confusion of two shows."""
    generator = torch.Generator().manual_seed(1)
    for name, value in model.state_dict().items():
        if value.dtype.is_floating_point and not name.endswith("relative_coords_table"):
            noise = torch.randn(value.shape, generator=generator) * 0.2
            value.copy_(noise.abs() + 0.5 if name.endswith("running_var") else value.clamp(-1, 1) + noise)
    return model.eval()


def carried(state, rules, thirds=()):
    """The table from the names of `state` to timm's, and timm's state dict that follows from it."""
    table, pieces = {}, collections.defaultdict(dict)
    for name, value in state.items():
        if not value.dtype.is_floating_point:
            continue
        for pattern, to in rules:
            match = re.fullmatch(pattern, name)
            if match:
                break
        else:
            raise KeyError(name)
        if to is None:
            table[name] = []
            continue
        places = to(match) if callable(to) else match.expand(to)
        table[name] = []
        for place in [places] if isinstance(places, (str, tuple)) else places:
            target, of_target, of_source = (place, None, None) if isinstance(place, str) else place
            piece = value if of_source is None else value.chunk(3)[of_source]
            pieces[target][of_target] = piece
            table[name].append([target, of_target, of_source])
    ours = {target: torch.cat([parts[k] for k in sorted(parts, key=lambda k: k or 0)]) for target, parts in pieces.items()}
    return table, ours


def same(a, b, what):
    error = ((a - b).norm() / b.norm()).item()
    assert error < 1e-5, f"{what}: {error}"
    return error


def published(model):
    """The tensors under the names of the files that transformers publishes and saves."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return load_file(pathlib.Path(folder) / "model.safetensors")


def part(prefix, names=("query", "key", "value")):
    return lambda m: (f"{prefix(m)}.{m[m.lastindex]}", names.index(m["qkv"]), None)


def names():
    import timm
    import torchvision
    import transformers as hf

    torch.backends.mha.set_fastpath_enabled(False)
    tables = {}

    def note(family, library, theirs, state, rules, ours, x, features, timm_features=None):
        table, carried_state = carried(state, rules)
        missing = [k for k in ours.state_dict() if k not in carried_state and not k.endswith("num_batches_tracked")]
        shapes = {k: v.shape for k, v in ours.state_dict().items()}
        reshaped = {k: v.reshape(shapes[k]) for k, v in carried_state.items()}
        counters = {k: v for k, v in ours.state_dict().items() if k.endswith("num_batches_tracked")}
        assert not missing, missing
        ours.load_state_dict({**reshaped, **counters}, strict=True)
        with torch.no_grad():
            timm_features = timm_features or (lambda m, x: m(x))
            error = same(timm_features(ours.eval(), x), features(theirs, x), f"{family} {library}")
        print(f"{family}, {library}: {len(table)} tensors, relative difference {error:.1e}")
        tables.setdefault(family, {})[library] = table

    x = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(2))

    # ResNet
    config = hf.ResNetConfig(embedding_size=64, hidden_sizes=[256, 512, 1024, 2048], depths=[1, 2, 1, 1], num_labels=7)
    model = lively(hf.ResNetForImageClassification(config))
    rules = [
        (r"resnet\.embedder\.embedder\.convolution\.(.*)", r"conv1.\1"),
        (r"resnet\.embedder\.embedder\.normalization\.(.*)", r"bn1.\1"),
        (r"resnet\.encoder\.stages\.(\d)\.layers\.(\d)\.shortcut\.convolution\.(.*)", lambda m: f"layer{int(m[1]) + 1}.{m[2]}.downsample.0.{m[3]}"),
        (r"resnet\.encoder\.stages\.(\d)\.layers\.(\d)\.shortcut\.normalization\.(.*)", lambda m: f"layer{int(m[1]) + 1}.{m[2]}.downsample.1.{m[3]}"),
        (r"resnet\.encoder\.stages\.(\d)\.layers\.(\d)\.layer\.(\d)\.convolution\.(.*)", lambda m: f"layer{int(m[1]) + 1}.{m[2]}.conv{int(m[3]) + 1}.{m[4]}"),
        (r"resnet\.encoder\.stages\.(\d)\.layers\.(\d)\.layer\.(\d)\.normalization\.(.*)", lambda m: f"layer{int(m[1]) + 1}.{m[2]}.bn{int(m[3]) + 1}.{m[4]}"),
        (r"classifier\.1\.(.*)", r"fc.\1"),
    ]
    ours = timm.models.resnet.ResNet(timm.models.resnet.Bottleneck, [1, 2, 1, 1], num_classes=7)
    note("resnet", "transformers", model, published(model), rules, ours, x, lambda m, x: m(x).logits)

    # VGG
    ours = torchvision.models.vgg.VGG(torchvision.models.vgg.make_layers([4, "M", 4, "M", 4, "M", 4, "M", 4, "M"]), num_classes=7)
    ours.classifier[0], ours.classifier[3], ours.classifier[6] = nn.Linear(4 * 49, 8), nn.Linear(8, 8), nn.Linear(8, 7)
    model = timm.models.vgg.VGG([4, "M", 4, "M", 4, "M", 4, "M", 4, "M"], num_classes=7)
    model.pre_logits = timm.models.vgg.ConvMlp(4, 8, 7, mlp_ratio=1.0)
    model.head = timm.layers.ClassifierHead(8, 7)
    rules = [(r"pre_logits\.fc1\.(.*)", r"classifier.0.\1"), (r"pre_logits\.fc2\.(.*)", r"classifier.3.\1"),
             (r"head\.fc\.(.*)", r"classifier.6.\1"), (r"(features\..*)", r"\1")]
    wide = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(2))
    note("vgg", "timm", lively(model), model.state_dict(), rules, ours, wide, lambda m, x: m(x))

    # ConvNeXt
    dims, depths = [8, 16, 24, 32], [1, 2, 1, 1]
    new = lambda: timm.models.convnext.ConvNeXt(depths=depths, dims=dims, num_classes=7)
    settings = torchvision.models.convnext.CNBlockConfig
    model = lively(torchvision.models.ConvNeXt([settings(a, b, d) for a, b, d in zip(dims, dims[1:] + [None], depths)], num_classes=7))
    block = lambda m: f"stages.{(int(m[1]) - 1) // 2}.blocks.{m[2]}"
    rules = [
        (r"features\.0\.(\d)\.(.*)", r"stem.\1.\2"),
        (r"features\.([246])\.(\d)\.(weight|bias)", lambda m: f"stages.{int(m[1]) // 2}.downsample.{m[2]}.{m[3]}"),
        (r"features\.([1357])\.(\d)\.layer_scale", lambda m: f"{block(m)}.gamma"),
        (r"features\.([1357])\.(\d)\.block\.0\.(.*)", lambda m: f"{block(m)}.conv_dw.{m[3]}"),
        (r"features\.([1357])\.(\d)\.block\.2\.(.*)", lambda m: f"{block(m)}.norm.{m[3]}"),
        (r"features\.([1357])\.(\d)\.block\.3\.(.*)", lambda m: f"{block(m)}.mlp.fc1.{m[3]}"),
        (r"features\.([1357])\.(\d)\.block\.5\.(.*)", lambda m: f"{block(m)}.mlp.fc2.{m[3]}"),
        (r"classifier\.0\.(.*)", r"head.norm.\1"),
        (r"classifier\.2\.(.*)", r"head.fc.\1"),
    ]
    note("convnext", "torchvision", model, model.state_dict(), rules, new(), x, lambda m, x: m(x))
    config = hf.ConvNextConfig(hidden_sizes=dims, depths=depths, num_labels=7, layer_norm_eps=1e-6)
    model = lively(hf.ConvNextForImageClassification(config))
    # The head's norm has the model's ε there; in the blocks it is fixed.
    block = r"convnext\.encoder\.stages\.(\d)\.layers\.(\d)"
    rules = [
        (r"convnext\.embeddings\.patch_embeddings\.(.*)", r"stem.0.\1"),
        (r"convnext\.embeddings\.layernorm\.(.*)", r"stem.1.\1"),
        (block + r"\.layer_scale_parameter", r"stages.\1.blocks.\2.gamma"),
        (block + r"\.dwconv\.(.*)", r"stages.\1.blocks.\2.conv_dw.\3"),
        (block + r"\.layernorm\.(.*)", r"stages.\1.blocks.\2.norm.\3"),
        (block + r"\.pwconv(\d)\.(.*)", r"stages.\1.blocks.\2.mlp.fc\3.\4"),
        (r"convnext\.encoder\.stages\.(\d)\.downsampling_layer\.(\d)\.(.*)", r"stages.\1.downsample.\2.\3"),
        (r"convnext\.layernorm\.(.*)", r"head.norm.\1"),
        (r"classifier\.(.*)", r"head.fc.\1"),
    ]
    note("convnext", "transformers", model, published(model), rules, new(), x, lambda m, x: m(x).logits)
    # The authors' names: timm itself renames them, and says to what.
    state, authors = lively(new()).state_dict(), {}
    for name, value in state.items():
        theirs = name.replace("head.norm.", "norm.").replace("head.fc.", "head.")
        theirs = re.sub(r"^stem\.", "downsample_layers.0.", theirs)
        theirs = re.sub(r"^stages\.(\d)\.downsample\.", r"downsample_layers.\1.", theirs)
        theirs = re.sub(r"^stages\.(\d)\.blocks\.", r"stages.\1.", theirs)
        theirs = theirs.replace("conv_dw", "dwconv").replace("mlp.fc1", "pwconv1").replace("mlp.fc2", "pwconv2")
        authors[theirs] = value
    renamed = timm.models.convnext.checkpoint_filter_fn(dict(authors), new())
    assert renamed.keys() == state.keys() and all(torch.equal(renamed[k], state[k]) for k in state)
    back = {id(value): name for name, value in state.items()}
    tables["convnext"]["authors"] = {theirs: [[back[id(value)], None, None]] for theirs, value in authors.items()}

    # ViT
    new = lambda **more: timm.models.vision_transformer.VisionTransformer(
        img_size=64, patch_size=16, embed_dim=32, depth=2, num_heads=2, num_classes=7, **more)
    model = lively(torchvision.models.VisionTransformer(64, 16, 2, 2, 32, 128, num_classes=7))
    layer = r"encoder\.layers\.encoder_layer_(\d)\."
    rules = [
        (r"class_token", "cls_token"), (r"conv_proj\.(.*)", r"patch_embed.proj.\1"), (r"encoder\.pos_embedding", "pos_embed"),
        (layer + r"ln_(\d)\.(.*)", r"blocks.\1.norm\2.\3"), (layer + r"self_attention\.in_proj_(.*)", r"blocks.\1.attn.qkv.\2"),
        (layer + r"self_attention\.out_proj\.(.*)", r"blocks.\1.attn.proj.\2"), (layer + r"mlp\.0\.(.*)", r"blocks.\1.mlp.fc1.\2"),
        (layer + r"mlp\.3\.(.*)", r"blocks.\1.mlp.fc2.\2"), (r"encoder\.ln\.(.*)", r"norm.\1"), (r"heads\.head\.(.*)", r"head.\1"),
    ]
    note("vit", "torchvision", model, model.state_dict(), rules, new(), x, lambda m, x: m(x))

    shape = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, patch_size=16)
    model = lively(hf.ViTForImageClassification(hf.ViTConfig(**shape, image_size=64, intermediate_size=128, num_labels=7, layer_norm_eps=1e-6)))
    def vit_rules(layer, qkv, proj, fc1, fc2, before, after, top=""):
        return [
            (top + r"embeddings\.cls_token", "cls_token"), (top + r"embeddings\.position_embeddings", "pos_embed"),
            (top + r"embeddings\.register_tokens", "reg_token"), (top + r"embeddings\.mask_token", None),
            (top + r"embeddings\.patch_embeddings(?:\.projection)?\.(.*)", r"patch_embed.proj.\1"),
            (layer + qkv + r"\.(weight|bias)", lambda m: (f"blocks.{m[1]}.attn.qkv.{m[3]}", "qkv".index(m[2][0]), None)),
            (layer + proj + r"\.(.*)", r"blocks.\1.attn.proj.\2"), (layer + fc1 + r"\.(.*)", r"blocks.\1.mlp.fc1.\2"),
            (layer + fc2 + r"\.(.*)", r"blocks.\1.mlp.fc2.\2"), (layer + before + r"\.(.*)", r"blocks.\1.norm1.\2"),
            (layer + after + r"\.(.*)", r"blocks.\1.norm2.\2"), (top + r"(?:layernorm|norm)\.(.*)", r"norm.\1"),
            (r"classifier\.(.*)", r"head.\1"),
        ]
    old = vit_rules(r"vit\.encoder\.layer\.(\d)\.", r"attention\.attention\.(query|key|value)", r"attention\.output\.dense",
                    r"intermediate\.dense", r"output\.dense", "layernorm_before", "layernorm_after", r"vit\.")
    note("vit", "transformers", model, published(model), old, new(), x, lambda m, x: m(x).logits)
    now = vit_rules(r"vit\.layers\.(\d)\.", r"attention\.(q|k|v)_proj", r"attention\.o_proj", r"mlp\.fc1", r"mlp\.fc2",
                    "layernorm_before", "layernorm_after", r"vit\.")
    note("vit", "transformers 5", model, model.state_dict(), now, new(), x, lambda m, x: m(x).logits)

    # DINOv2
    model = lively(hf.Dinov2Model(hf.Dinov2Config(**shape, image_size=64, layer_norm_eps=1e-6)))
    new_dino = lambda: timm.models.vision_transformer.VisionTransformer(
        img_size=64, patch_size=16, embed_dim=32, depth=2, num_heads=2, num_classes=0, init_values=1e-5)
    scale = [(r"encoder\.layer\.(\d)\.layer_scale(\d)\.lambda1", r"blocks.\1.ls\2.gamma")]
    layer = r"encoder\.layer\.(\d)\."
    old = scale + vit_rules(layer, r"attention\.attention\.(query|key|value)", r"attention\.output\.dense", r"mlp\.fc1", r"mlp\.fc2", "norm1", "norm2")
    note("dinov2", "transformers", model, published(model), old, new_dino(), x, lambda m, x: m(x).pooler_output)
    now = scale + vit_rules(layer, r"attention\.(q|k|v)_proj", r"attention\.o_proj", r"mlp\.fc1", r"mlp\.fc2", "norm1", "norm2")
    note("dinov2", "transformers 5", model, model.state_dict(), now, new_dino(), x, lambda m, x: m(x).pooler_output)

    # DINOv3, with and without timm's separate biases
    config = hf.DINOv3ViTConfig(**shape, intermediate_size=128, num_register_tokens=4, image_size=64)
    model = lively(hf.DINOv3ViTModel(config))
    new_dino = lambda: timm.models.eva.Eva(
        img_size=64, patch_size=16, embed_dim=32, depth=2, num_heads=2, num_classes=0, qkv_bias=True, init_values=1e-5,
        rope_type="dinov3", rope_temperature=100, use_rot_pos_emb=True, use_abs_pos_emb=False, rope_rotate_half=True,
        use_fc_norm=False, num_reg_tokens=4, qkv_fused=True, global_pool="token", norm_layer=partial(nn.LayerNorm, eps=1e-5))
    dinov3 = lambda layer: [
        (layer + r"attention\.(q|v)_proj\.bias", r"blocks.\1.attn.\2_bias"),
        (layer + r"layer_scale(\d)\.lambda1", r"blocks.\1.gamma_\2"),
    ] + vit_rules(layer, r"attention\.(q|k|v)_proj", r"attention\.o_proj", r"mlp\.up_proj", r"mlp\.down_proj", "norm1", "norm2")
    note("dinov3", "transformers", model, published(model), dinov3(r"layer\.(\d)\."), new_dino(), x, lambda m, x: m(x).pooler_output)
    note("dinov3", "transformers 5", model, model.state_dict(), dinov3(r"model\.layer\.(\d)\."), new_dino(), x, lambda m, x: m(x).pooler_output)

    # SwinV2
    side = torch.randn(2, 3, 128, 128, generator=torch.Generator().manual_seed(2))
    new = lambda: timm.models.swin_transformer_v2.SwinTransformerV2(
        img_size=128, window_size=4, embed_dim=8, depths=(1, 2, 1, 1), num_heads=(1, 2, 4, 8), num_classes=7)
    config = hf.Swinv2Config(image_size=128, embed_dim=8, depths=[1, 2, 1, 1], num_heads=[1, 2, 4, 8], window_size=4, num_labels=7)
    model = lively(hf.Swinv2ForImageClassification(config))
    block = r"swinv2\.encoder\.layers\.(\d)\.blocks\.(\d)\."
    to = r"layers.\1.blocks.\2."
    rules = [
        (r"swinv2\.embeddings\.patch_embeddings\.projection\.(.*)", r"patch_embed.proj.\1"),
        (r"swinv2\.embeddings\.norm\.(.*)", r"patch_embed.norm.\1"),
        (block + r"attention\.self\.(query|key|value)\.weight",
         lambda m: (f"layers.{m[1]}.blocks.{m[2]}.attn.qkv.weight", "qkv".index(m[3][0]), None)),
        (block + r"attention\.self\.(q|v)(?:uery|alue)\.bias", to + r"attn.\3_bias"),
        (block + r"attention\.self\.logit_scale", to + "attn.logit_scale"),
        (block + r"attention\.self\.continuous_position_bias_mlp\.(.*)", to + r"attn.cpb_mlp.\3"),
        (block + r"attention\.output\.dense\.(.*)", to + r"attn.proj.\3"),
        (block + r"layernorm_before\.(.*)", to + r"norm1.\3"), (block + r"layernorm_after\.(.*)", to + r"norm2.\3"),
        (block + r"intermediate\.dense\.(.*)", to + r"mlp.fc1.\3"), (block + r"output\.dense\.(.*)", to + r"mlp.fc2.\3"),
        (r"swinv2\.encoder\.layers\.(\d)\.downsample\.(.*)", lambda m: f"layers.{int(m[1]) + 1}.downsample.{m[2]}"),
        (r"swinv2\.layernorm\.(.*)", r"norm.\1"), (r"classifier\.(.*)", r"head.fc.\1"),
    ]
    note("swinv2", "transformers", model, published(model), rules, new(), side, lambda m, x: m(x).logits)
    model = lively(torchvision.models.SwinTransformer(
        [4, 4], 8, [1, 2, 1, 1], [1, 2, 4, 8], [4, 4], num_classes=7,
        block=torchvision.models.swin_transformer.SwinTransformerBlockV2,
        downsample_layer=torchvision.models.swin_transformer.PatchMergingV2, norm_layer=partial(nn.LayerNorm, eps=1e-5)))
    at = lambda m: f"layers.{int(m[1]) // 2}.blocks.{m[2]}"
    rules = [
        (r"features\.0\.0\.(.*)", r"patch_embed.proj.\1"), (r"features\.0\.2\.(.*)", r"patch_embed.norm.\1"),
        (r".*relative_(?:coords_table|position_index)", None),
        (r"features\.([246])\.(.*)", lambda m: f"layers.{int(m[1]) // 2}.downsample.{m[2]}"),
        (r"features\.(\d)\.(\d)\.attn\.qkv\.bias", lambda m: [(f"{at(m)}.attn.q_bias", None, 0), (f"{at(m)}.attn.v_bias", None, 2)]),
        (r"features\.(\d)\.(\d)\.mlp\.0\.(.*)", lambda m: f"{at(m)}.mlp.fc1.{m[3]}"),
        (r"features\.(\d)\.(\d)\.mlp\.3\.(.*)", lambda m: f"{at(m)}.mlp.fc2.{m[3]}"),
        (r"features\.(\d)\.(\d)\.(.*)", lambda m: f"{at(m)}.{m[3]}"),
        (r"norm\.(.*)", r"norm.\1"), (r"head\.(.*)", r"head.fc.\1"),
    ]
    note("swinv2", "torchvision", model, model.state_dict(), rules, new(), side, lambda m, x: m(x))

    (HERE / "names.json").write_text(json.dumps(tables, indent=0, separators=(",", ":"), ensure_ascii=False))


if __name__ == "__main__":
    {"files": files, "names": names}[sys.argv[1]]()
