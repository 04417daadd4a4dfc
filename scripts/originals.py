"""The original network of a registry row at its published size, with seeded weights in the layout of the row's file, and
the original's own preprocessing. Used by `scripts/parity`.

Weights are those of the library's own initialisation, changed where that would hide a part of the network: norms, biases,
class and register tokens and position embeddings are drawn anew, layer scales become 0.3 to 0.9, matrices that begin at
zero are drawn, and the running statistics of BatchNorm are those of four photographs. Nothing is downloaded.
"""

import math
import pathlib
import re
from functools import cache

import timm
import torch
import torchvision
import transformers
from safetensors.torch import load_file, save_file
from timm.data import create_transform, resolve_data_config
from timm.layers import BatchNormAct2d
from torch import nn
from torch.nn import functional
from torch.nn.modules.utils import _pair
from torchvision import models, transforms

ROOT = pathlib.Path(__file__).resolve().parent.parent
SEED = 0
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

# Attention in plain operations: the fused ones have no forward-mode differentiation on the CPU.
timm.layers.set_fused_attn(False)
torch.backends.mha.set_fastpath_enabled(False)
for switch in ("flash", "mem_efficient", "cudnn"):
    getattr(torch.backends.cuda, f"enable_{switch}_sdp")(False)


class Depthwise(torch.autograd.Function):
    """A convolution of one channel at a time, term by term of the kernel: the library's takes minutes in double precision.
    What PyTorch computes in single precision, by the library's own, holds this against it."""

    @staticmethod
    def slices(kernel, stride, size):
        for i in range(kernel[0]):
            for j in range(kernel[1]):
                rows, cols = (slice(at, at + (n - 1) * step + 1, step) for at, n, step in zip((i, j), size, stride))
                yield (slice(None), i, j), (slice(None), slice(None), rows, cols)

    @staticmethod
    def forward(x, weight, stride):
        size = [(n - k) // step + 1 for n, k, step in zip(x.shape[2:], weight.shape[1:], stride)]
        y = x.new_zeros((*x.shape[:2], *size))
        for at, window in Depthwise.slices(weight.shape[1:], stride, size):
            y.addcmul_(x[window], weight[at].view(-1, 1, 1))
        return y

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, weight, stride = inputs
        ctx.shape, ctx.stride = x.shape, stride
        ctx.save_for_backward(weight)
        ctx.save_for_forward(weight)

    @staticmethod
    def backward(ctx, y):
        (weight,) = ctx.saved_tensors
        x = y.new_zeros(ctx.shape)
        for at, window in Depthwise.slices(weight.shape[1:], ctx.stride, y.shape[2:]):
            x[window].addcmul_(y, weight[at].view(-1, 1, 1))
        return x, None, None

    @staticmethod
    def jvp(ctx, x, *_):
        return Depthwise.forward(x, ctx.saved_tensors[0], ctx.stride)


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, library=functional.conv2d):
    """The library's convolution, but for [`Depthwise`]."""
    if x.dtype != torch.float64 or groups != weight.shape[0] or groups == 1:
        return library(x, weight, bias, stride, padding, dilation, groups)
    (rows, cols), stride = _pair(padding), _pair(stride)
    y = Depthwise.apply(functional.pad(x, (cols, cols, rows, rows)), weight[:, 0], stride)
    return y if bias is None else y + bias.view(-1, 1, 1)


functional.conv2d = conv2d


@cache
def published():
    """torchvision's checkpoints by address: name of the network and its weights entry."""
    names = models.list_models(module=models)
    return {weights.url: (name, weights) for name in names for weights in models.get_model_weights(name)}


def layout(row):
    """Which library's file a row names."""
    if row.get("bundled"):
        return "bundled"
    if row.get("url") in published():
        return "torchvision"
    hub = row.get("hub", "")
    if hub.startswith("timm/"):
        return "timm"
    if hub.startswith("facebook/dinov3"):
        return "transformers"
    if hub == "madrylab/robust-imagenet-models":
        return "robustness"
    if row["name"].startswith("synclr"):
        return "SynCLR"
    return "state dictionary of torchvision"


def library(row):
    """Which library computes the reference."""
    return {"bundled": "timm or torchvision", "SynCLR": "timm"}.get(layout(row), layout(row))


# ---------------------------------------------------------------- networks


def dinov3_of_transformers():
    config = transformers.DINOv3ViTConfig(
        hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12, num_register_tokens=4,
        attn_implementation="eager")
    return transformers.DINOv3ViTModel(config)


def network(row):
    """The network as its library makes it, in evaluation mode."""
    torch.manual_seed(SEED)
    kind = layout(row)
    if kind == "torchvision":
        model = models.get_model(published()[row["url"]][0])
    elif kind == "timm":
        # The class token as in the original, where timm's own configuration averages.
        options = {"global_pool": "token"} if "dinov3" in row["hub"] else {}
        model = timm.create_model(row["hub"].removeprefix("timm/"), pretrained=False, **options)
    elif kind == "transformers":
        model = dinov3_of_transformers()
    elif kind == "SynCLR":
        model = timm.create_model("vit_base_patch16_224", num_classes=0)
    elif row["architecture"] == "tf_efficientnet_lite0":
        model = timm.create_model(row["architecture"])
    else:
        model = models.get_model(row["architecture"])
    model.eval()
    for module in model.modules():
        if isinstance(module, (nn.ReLU, nn.ReLU6)):
            module.inplace = False
        if isinstance(module, BatchNormAct2d) and hasattr(module.act, "inplace"):
            module.act.inplace = False
    if kind == "bundled":
        state = load_file(ROOT / "assets/encoders" / row["bundled"])
        missing = model.load_state_dict({key: value.float() for key, value in state.items()}, strict=False)
        assert not missing.unexpected_keys
        assert all(key.endswith("num_batches_tracked") for key in missing.missing_keys), missing
    else:
        redraw(model)
    return model.requires_grad_(False)


@torch.no_grad()
def redraw(model):
    generator = torch.Generator().manual_seed(SEED + 1)

    def normal(tensor, std):
        tensor.copy_(torch.randn(tensor.shape, generator=generator) * std)

    def uniform(tensor, low, high):
        tensor.copy_(torch.rand(tensor.shape, generator=generator) * (high - low) + low)

    for name, tensor in model.named_parameters():
        last = name.rsplit(".", 1)[-1]
        is_vector = sum(side > 1 for side in tensor.shape) <= 1
        if last == "logit_scale":
            uniform(tensor, math.log(2), math.log(40))
        elif last in ("gamma", "gamma_1", "gamma_2", "layer_scale", "lambda1"):
            uniform(tensor, 0.3, 0.9)
        elif re.search("cls_token|class_token|reg_token|register_tokens|pos_embed", name):
            normal(tensor, 0.5)
        elif isinstance(model, transformers.PreTrainedModel) and re.search("[qv]_proj.bias", name):
            tensor.zero_()  # as published
        elif is_vector and last == "weight":
            uniform(tensor, 0.6, 1.4)
        elif is_vector:
            normal(tensor, 0.1)
            if isinstance(model, models.SwinTransformer) and name.endswith("attn.qkv.bias"):
                third = tensor.numel() // 3
                tensor[third : 2 * third] = 0  # the keys have none
        elif not tensor.any():
            normal(tensor, 1 / math.sqrt(tensor[0].numel()))


@torch.no_grad()
def calibrate(model, inputs):
    """Running statistics of BatchNorm from these inputs."""
    norms = [module for module in model.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
        norm.train()
    if norms:
        model(inputs)
        model.eval()


def save(row, model, folder):
    """Writes the weights as the row's file holds them; its path."""
    kind = layout(row)
    state = {key: value.contiguous() for key, value in model.state_dict().items()}
    if kind == "bundled":
        return None
    if kind == "timm":
        save_file(state, folder / "model.safetensors")
        return folder / "model.safetensors"
    if kind == "transformers":
        model.save_pretrained(folder)
        return folder / "model.safetensors"
    if kind == "robustness":
        # The attacker carries the same network along.
        wrapped = {f"module.{part}model.{key}": value for part in ("", "attacker.") for key, value in state.items()}
        for part in ("normalizer", "attacker.normalize"):
            wrapped |= {f"module.{part}.new_mean": torch.zeros(3, 1, 1), f"module.{part}.new_std": torch.ones(3, 1, 1)}
        content, name = {"model": wrapped, "epoch": 90, "schedule": None}, "model.ckpt"
    elif kind == "SynCLR":
        content, name = {"model": {f"module.visual.{key}": value for key, value in state.items()}}, "model.pth"
    else:
        content, name = state, "model.pth"
    torch.save(content, folder / name)
    return folder / name


# ---------------------------------------------------------------- outputs


def module_of(model, stage):
    """The module whose output is the stage that Etascope calls so."""
    if isinstance(model, timm.models.resnet.ResNet) and stage == "relu":
        return "act1"
    if isinstance(model, (models.ConvNeXt, models.SwinTransformer)):
        return re.sub(r"^\w+\.(\d)$", lambda match: f"features.{2 * int(match[1]) + 1}", stage)
    if isinstance(model, models.VisionTransformer):
        return "encoder.ln" if stage == "norm" else stage.replace("blocks.", "encoder.layers.encoder_layer_")
    if isinstance(model, transformers.PreTrainedModel):
        return stage.replace("blocks.", "model.layer.")
    return stage


def as_map(model, tensor):
    """A stage as (1, channel, row, column), of patches only."""
    tensor = tensor[0] if isinstance(tensor, tuple) else tensor
    if tensor.ndim == 3:
        prefix = getattr(model, "num_prefix_tokens", 1)
        if isinstance(model, transformers.PreTrainedModel):
            prefix = 1 + model.config.num_register_tokens
        patches = tensor[:, prefix:]
        side = math.isqrt(patches.shape[1])
        return patches.reshape(1, side, side, -1).permute(0, 3, 1, 2)
    nhwc = (models.SwinTransformer, timm.models.swin_transformer_v2.SwinTransformerV2)
    return tensor.permute(0, 3, 1, 2) if isinstance(model, nhwc) else tensor


def outputs(model, x, stages=()):
    """Stages by their names, pooled feature and logits of normalised inputs."""
    found, hooks = {}, []

    def watch(module, hook):
        hooks.append(model.get_submodule(module).register_forward_hook(hook))

    for stage in stages:
        watch(module_of(model, stage.split(".", 2)[2]),
              lambda _, __, y, stage=stage: found.__setitem__(stage, as_map(model, y)))
    if isinstance(model, transformers.PreTrainedModel):
        found["pooled"] = model(pixel_values=x).pooler_output
    elif isinstance(model, models.SqueezeNet):
        watch("features", lambda _, __, y: found.__setitem__("pooled", y.mean((2, 3))))
        found["logits"] = model(x)
    elif model.__module__.startswith("torchvision"):
        last = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)][-1]
        watch(last, lambda _, arguments, __: found.__setitem__("pooled", arguments[0]))
        found["logits"] = model(x)
    else:
        features = model.forward_features(x)
        found["pooled"] = model.forward_head(features, pre_logits=True)
        if model.num_classes > 0:
            found["logits"] = model.forward_head(features)
    for hook in hooks:
        hook.remove()
    return found


# ---------------------------------------------------------------- preprocessing


def preprocessing(row):
    """Where the original's preprocessing is from, the transform of a PIL picture, its mean and its standard deviation."""
    kind, given = layout(row), row["input"]
    if kind == "torchvision":
        transform = published()[row["url"]][1].transforms()
        return "`weights.transforms()` of torchvision", transform, transform.mean, transform.std
    if kind == "timm":
        config = timm.get_pretrained_cfg(row["hub"].removeprefix("timm/")).to_dict()
        at_test_size = config["input_size"][1] != given["crop"]
        config = resolve_data_config({}, pretrained_cfg=config, use_test_size=at_test_size)
        transform = create_transform(**config, is_training=False)
        return "`create_transform` of timm", transform, config["mean"], config["std"]
    if kind == "transformers":
        processor = transformers.DINOv3ViTImageProcessor()
        return ("`DINOv3ViTImageProcessor` of transformers", lambda image: processor(image, return_tensors="pt").pixel_values[0],
                processor.image_mean, processor.image_std)
    resize, crop, filter_ = 256, 224, "bilinear"
    if kind == "SynCLR":
        resize, filter_ = 224, "bicubic"
    elif row["name"] == "efficientnet_lite0":
        filter_ = "bicubic"
    elif row["name"] == "squeezenet1_1":
        resize, crop, filter_ = (227, 227), 227, "bicubic"
    steps = [
        transforms.Resize(resize, interpolation=transforms.InterpolationMode(filter_)),
        transforms.CenterCrop(crop),
        transforms.ToTensor(),
    ]
    source = {
        "robustness": "`TEST_TRANSFORMS_IMAGENET` of robustness, written out",
        "SynCLR": "the authors' linear evaluation, written out",
        "bundled": "the documented protocol, written out",
    }.get(kind, "ImageNet evaluation as usual, written out")
    return source, transforms.Compose(steps), (0.0,) * 3, (1.0,) * 3


def pixels(row, image):
    """The picture in [0, 1] as the original network sees it before normalisation: (3, side, side)."""
    _, transform, mean, std = preprocessing(row)
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (mean, std))
    return transform(image) * std + mean


def normaliser(row):
    """Mean, standard deviation and order of channels that the network expects."""
    if row["name"] == "squeezenet1_1":
        # Keras's means of Caffe networks, in grey levels, BGR.
        return [value / 255 for value in (103.939, 116.779, 123.68)], [1 / 255] * 3, [2, 1, 0]
    if row["name"] == "efficientnet_lite0":
        return [127 / 255] * 3, [128 / 255] * 3, [0, 1, 2]
    _, _, mean, std = preprocessing(row)
    if mean == (0.0,) * 3:
        mean, std = MEAN, STD
    return list(mean), list(std), [0, 1, 2]


def versions():
    named = {"PyTorch": torch, "torchvision": torchvision, "timm": timm, "transformers": transformers}
    return {name: module.__version__.split("+")[0] for name, module in named.items()}
