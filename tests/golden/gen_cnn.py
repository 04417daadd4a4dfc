#!/usr/bin/env python3
"""Reference values for the convolutional encoders, computed by torchvision, timm and pytorchcv.

    python gen_cnn.py

writes for each tiny network NAME, which has its library's own blocks, layer order and forward pass but
fewer channels,
  cnn/NAME.weights.safetensors   state dict in f32, every tensor at a non-trivial value
  cnn/NAME.fixture.safetensors   f32 unless said:
    input, direction             1×3×H×W in the network's own space, already normalised; unit L2 norm
    stage.<i>.<module>           outputs of the stages in the order of execution
    cotangent.pooled             a vector v of the pooled feature's length
    f64.*                        in f64: pooled, logits, jvp.pooled and jvp.logits = J(input)·direction by
                                 forward-mode differentiation, vjp.pooled = Jᵀ·v
All is computed in f64 from the f32 weights.

cnn/architectures.json holds for each network at full size, of which no weights are needed: SHA-256 of its
list of tensors (one line `name d0×d1×…` each, sorted, with batch counters left out), the number of
parameters, the stages' shapes for two input sides, the smallest side that the library names, and for some,
tensor by tensor, root mean square and largest absolute value of the library's own initialisation.

The wide residual network is pytorchcv's (tensors renamed), whose mean over 8×8 positions is replaced by
one over all; its initialisation is not the original's and is not used.

Needs torch, torchvision, timm, pytorchcv and safetensors.
"""

import copy
import hashlib
import json
import math
import pathlib
import re

import timm
import torch
import torchvision
from pytorchcv.models.wrn_cifar import CIFARWRN
from safetensors.torch import save_file
from timm.layers import BatchNormAct2d
from torch import nn
from torch.func import jvp, vjp
from torchvision.models import alexnet, resnet, squeezenet, vgg
from torchvision.models.alexnet import AlexNet

from gen_golden import LITE_STAGES, photo_like, scramble

HERE = pathlib.Path(__file__).parent
SEED = 0


class TinyResNet(resnet.ResNet):
    """torchvision's network with other widths; `cifar` exchanges the stem."""

    def __init__(self, block, depths, stem, widths, base_width=64, cifar=False, classes=10):
        nn.Module.__init__(self)
        self._norm_layer = nn.BatchNorm2d
        self.inplanes, self.dilation, self.groups, self.base_width = stem, 1, 1, base_width
        self.conv1 = nn.Conv2d(3, stem, 3, 1, 1, bias=False) if cifar else nn.Conv2d(3, stem, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(stem)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.Identity() if cifar else nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        for i, (depth, width) in enumerate(zip(depths, widths)):
            setattr(self, f"layer{i + 1}", self._make_layer(block, width, depth, stride=1 if i == 0 else 2))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(self.inplanes, classes)


class TinyVgg(vgg.VGG):
    """torchvision's network with other widths."""

    def __init__(self, groups, norm, grid, width, classes=10):
        nn.Module.__init__(self)
        self.features = vgg.make_layers([v for group in groups for v in [*group, "M"]], norm)
        self.avgpool = nn.AdaptiveAvgPool2d((grid, grid))
        self.classifier = nn.Sequential(
            nn.Linear(groups[-1][-1] * grid * grid, width),
            nn.ReLU(True),
            nn.Dropout(),
            nn.Linear(width, width),
            nn.ReLU(True),
            nn.Dropout(),
            nn.Linear(width, classes),
        )


class CifarVgg(vgg.VGG):
    """torchvision's convolutions, the mean over positions and one linear layer."""

    def __init__(self, groups, classes=10):
        nn.Module.__init__(self)
        self.features = vgg.make_layers([v for group in groups for v in [*group, "M"]], True)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.classifier = nn.Linear(groups[-1][-1], classes)


class TinyAlexNet(AlexNet):
    """torchvision's network with other widths: its modules are taken over and made smaller."""

    def __init__(self, channels, grid, hidden, classes=10):
        nn.Module.__init__(self)
        with torch.device("meta"):
            full = AlexNet()
        self.features, self.classifier = full.features, full.classifier
        sizes = [3, *channels]
        convolutions = [(i, module) for i, module in enumerate(full.features) if isinstance(module, nn.Conv2d)]
        for (i, old), inputs, outputs in zip(convolutions, sizes, sizes[1:]):
            self.features[i] = nn.Conv2d(inputs, outputs, old.kernel_size, old.stride, old.padding)
        self.avgpool = nn.AdaptiveAvgPool2d((grid, grid))
        sizes = [channels[-1] * grid * grid, hidden, hidden, classes]
        places = [i for i, module in enumerate(full.classifier) if isinstance(module, nn.Linear)]
        for i, inputs, outputs in zip(places, sizes, sizes[1:]):
            self.classifier[i] = nn.Linear(inputs, outputs)


class TinySqueezeNet(squeezenet.SqueezeNet):
    """torchvision's network with one of `parts` parts of the channels."""

    def __init__(self, version, parts, classes=10):
        nn.Module.__init__(self)
        with torch.device("meta"):
            full = squeezenet.SqueezeNet(version)
        self.features, self.classifier = full.features, full.classifier
        for i, module in enumerate(full.features):
            if isinstance(module, squeezenet.Fire):
                inputs = module.squeeze.in_channels // parts
                sizes = [conv.out_channels // parts for conv in (module.squeeze, module.expand1x1, module.expand3x3)]
                self.features[i] = squeezenet.Fire(inputs, *sizes)
        stem = full.features[0]
        self.features[0] = nn.Conv2d(3, stem.out_channels // parts, stem.kernel_size, stem.stride, stem.padding)
        self.classifier[1] = nn.Conv2d(512 // parts, classes, 1)


def tiny_lite(padding):
    """timm's network with few channels and its own conventions for padding and ε."""
    from functools import partial

    from timm.models._efficientnet_builder import decode_arch_def, round_channels
    from timm.models.efficientnet import EfficientNet

    blocks = [["ds_r1_k3_s1_e1_c4"], ["ir_r2_k3_s2_e6_c4"], ["ir_r1_k5_s2_e6_c8"], ["ir_r2_k5_s1_e6_c8"]]
    return EfficientNet(
        decode_arch_def(blocks),
        num_classes=10,
        num_features=16,
        stem_size=4,
        fix_stem=True,
        round_chs_fn=partial(round_channels, divisor=4),
        act_layer=nn.ReLU6,
        norm_layer=partial(nn.BatchNorm2d, eps=1e-3 if padding == "same" else 1e-5),
        pad_type=padding,
    )


def wide_resnet(stem, widths, blocks, classes=10):
    """pytorchcv's network; its mean is taken over all positions."""
    network = CIFARWRN([[width] * blocks for width in widths], stem, num_classes=classes)
    network.features.final_pool = nn.AdaptiveAvgPool2d(1)
    return network


def wide_resnet_name(name):
    """pytorchcv's tensor name in the manner of xternalz/WideResNet-pytorch."""
    for pattern, target in [
        (r"features\.init_block\.", "conv1."),
        (r"features\.stage(\d+)\.unit(\d+)\.identity_conv\.", "block{}.layer.{}.convShortcut."),
        (r"features\.stage(\d+)\.unit(\d+)\.body\.conv(\d)\.bn\.", "block{}.layer.{}.bn{}."),
        (r"features\.stage(\d+)\.unit(\d+)\.body\.conv(\d)\.conv\.", "block{}.layer.{}.conv{}."),
        (r"features\.post_activ\.bn\.", "bn1."),
        (r"output\.", "fc."),
    ]:
        if match := re.match(pattern, name):
            parts = list(match.groups())
            if len(parts) > 1:
                parts[1] = str(int(parts[1]) - 1)
            return target.format(*parts) + name[match.end() :]
    raise ValueError(name)


def tensors_of(model):
    """The state dict under our names, without batch counters."""
    rename = wide_resnet_name if isinstance(model, CIFARWRN) else lambda name: name
    return {rename(name): value for name, value in model.state_dict().items() if not name.endswith("num_batches_tracked")}


RESNET = ["relu", "maxpool", "layer1", "layer2", "layer3", "layer4"]
CIFAR_RESNET = ["relu", *RESNET[2:]]
# Our stage names are the modules' own but for the wide residual network.
WIDE = {
    "conv1": "features.init_block",
    **{f"block{i}": f"features.stage{i}" for i in (1, 2, 3)},
    "relu": "features.post_activ",
}
VGG = [f"features.{i}" for i in (3, 8, 15, 22, 29, 30)]
VGG_BN = [f"features.{i}" for i in (5, 12, 22, 32, 42, 43)]
ALEXNET = [f"features.{i}" for i in (1, 4, 7, 9, 11, 12)]
SQUEEZENET1_0 = [f"features.{i}" for i in (0, 2, 5, 6, 10, 11, 12)]
SQUEEZENET1_1 = [f"features.{i}" for i in (0, 2, 4, 5, 7, 8, 12)]
TINY_LITE = ["bn1", *(f"blocks.{i}" for i in range(4)), "bn2"]

GROUPS = [[3, 2], [3, 4], [8, 8, 8], [8, 12, 8], [8, 8, 12]]

# Name: constructor, input side, stages. Sides are odd where the layout allows, so that windows end unevenly.
TINY = {
    "basic": (lambda: TinyResNet(resnet.BasicBlock, (2, 1, 1, 1), 6, (6, 8, 12, 16)), 33, RESNET),
    "bottleneck": (lambda: TinyResNet(resnet.Bottleneck, (2, 1, 1, 1), 6, (3, 4, 5, 6)), 34, RESNET),
    "wide_bottleneck": (lambda: TinyResNet(resnet.Bottleneck, (1, 1, 1, 2), 4, (2, 2, 3, 4), 128, True), 19, CIFAR_RESNET),
    "timm_resnet": (
        lambda: timm.models.resnet.ResNet(timm.models.resnet.Bottleneck, (1, 1, 1, 1), 10, channels=(4, 4, 6, 8)),
        24,
        {name: "act1" if name == "relu" else name for name in RESNET},
    ),
    "vgg": (lambda: TinyVgg(GROUPS, False, 3, 16), 64, VGG),
    "vgg_bn": (lambda: TinyVgg(GROUPS, True, 2, 16), 35, VGG_BN),
    "vgg_cifar": (lambda: CifarVgg(GROUPS), 33, VGG_BN),
    "wide_resnet": (lambda: wide_resnet(4, (4, 8, 12), 2), 21, WIDE),
    "alexnet": (lambda: TinyAlexNet((8, 12, 12, 8, 8), 2, 16), 67, ALEXNET),
    "squeezenet1_0": (lambda: TinySqueezeNet("1_0", 8), 42, SQUEEZENET1_0),
    "squeezenet1_1": (lambda: TinySqueezeNet("1_1", 8), 33, SQUEEZENET1_1),
    "lite_symmetric": (lambda: tiny_lite(""), 37, TINY_LITE),
    "lite_same": (lambda: tiny_lite("same"), 37, TINY_LITE),
}


def penultimate(model, x):
    """The pooled feature and the class scores."""
    if isinstance(model, squeezenet.SqueezeNet):
        features = model.features(x)
        return features.mean((2, 3)), model.classifier(features).flatten(1)
    if isinstance(model, CIFARWRN):
        pooled = model.features(x).flatten(1)
        return pooled, model.output(pooled)
    if isinstance(model, resnet.ResNet):
        last = model.fc
    elif isinstance(model, (vgg.VGG, AlexNet)):
        last = model.classifier if isinstance(model.classifier, nn.Linear) else model.classifier[-1]
    else:
        return model.forward_head(model.forward_features(x), pre_logits=True), model(x)
    found = []
    hook = last.register_forward_hook(lambda _, inputs, __: found.append(inputs[0]))
    logits = model(x)
    hook.remove()
    return found[0], logits


def record(model, stages, x):
    """Outputs of the stages in one forward pass."""
    stages = stages if isinstance(stages, dict) else {name: name for name in stages}
    found, hooks = {}, []
    for i, (name, module) in enumerate(stages.items()):
        keep = lambda _, __, y, key=f"stage.{i}.{name}": found.setdefault(key, (y[0] if isinstance(y, tuple) else y).clone())
        hooks.append(model.get_submodule(module).register_forward_hook(keep))
    with torch.no_grad():
        model(x)
    for hook in hooks:
        hook.remove()
    return found


def without_inplace(model):
    for module in model.modules():
        if isinstance(module, (nn.ReLU, nn.ReLU6)):
            module.inplace = False
        if isinstance(module, BatchNormAct2d) and hasattr(module.act, "inplace"):
            module.act.inplace = False
    return model


def write_tiny(name, out):
    constructor, side, stages = TINY[name]
    torch.manual_seed(SEED)
    model = without_inplace(constructor().eval())
    scramble(model, SEED + 1)
    state = {key: value.detach().clone().contiguous() for key, value in tensors_of(model).items()}

    x = photo_like(side, SEED + 2)
    u = torch.randn(x.shape, generator=torch.Generator().manual_seed(SEED + 3))
    u = u / u.norm()
    model = copy.deepcopy(model).double()
    run = lambda x: penultimate(model, x)
    (pooled, logits), (jvp_pooled, jvp_logits) = jvp(run, (x.double(),), (u.double(),))
    v = torch.randn(pooled.shape, generator=torch.Generator().manual_seed(SEED + 4))
    _, pull = vjp(lambda x: run(x)[0], x.double())
    (vjp_pooled,) = pull(v.double())
    # Forward mode against what it is the limit of; ReLUs at a kink would show here.
    step = 1e-6
    with torch.no_grad():
        ahead, behind = (run(x.double() + sign * step * u.double())[0] for sign in (1, -1))
    difference = ((ahead - behind) / (2 * step) - jvp_pooled).norm() / jvp_pooled.norm()
    assert difference < 1e-5, (name, difference)
    assert pooled.count_nonzero() > 2, name

    tensors = {
        "input": x,
        "direction": u,
        **{key: value.float() for key, value in record(model, stages, x.double()).items()},
        "cotangent.pooled": v,
        "f64.pooled": pooled,
        "f64.logits": logits,
        "f64.jvp.pooled": jvp_pooled,
        "f64.jvp.logits": jvp_logits,
        "f64.vjp.pooled": vjp_pooled,
    }
    tensors = {key: value.detach().contiguous().clone() for key, value in tensors.items()}
    versions = {"torch": torch.__version__, "torchvision": torchvision.__version__, "timm": timm.__version__}
    # One entry: the order of several in the file changes from run to run.
    metadata = {"made": json.dumps({"model": name, "seed": SEED, "side_px": side, **versions})}
    save_file(tensors, out / f"{name}.fixture.safetensors", metadata)
    save_file(state, out / f"{name}.weights.safetensors", metadata)


# Name: constructor, stages, two sides, smallest side (of torchvision's table, else 1).
TORCHVISION_RESNETS = ["resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "wide_resnet50_2", "wide_resnet101_2"]
FULL = {
    **{name: (getattr(resnet, name), RESNET, (224, 289), 1) for name in TORCHVISION_RESNETS},
    "resnet18_cifar": (lambda: TinyResNet(resnet.BasicBlock, (2, 2, 2, 2), 64, (64, 128, 256, 512), 64, True), CIFAR_RESNET, (32, 33), 1),
    "vgg16": (vgg.vgg16, VGG, (224, 289), 32),
    "vgg16_bn": (vgg.vgg16_bn, VGG_BN, (224, 289), 32),
    "vgg16_cifar": (lambda: CifarVgg([[64] * 2, [128] * 2, [256] * 3, [512] * 3, [512] * 3]), VGG_BN, (32, 70), 32),
    "wrn28_10_cifar": (lambda: wide_resnet(16, (160, 320, 640), 4), WIDE, (32, 37), 1),
    "alexnet": (alexnet, ALEXNET, (224, 289), 63),
    "squeezenet1_0": (squeezenet.squeezenet1_0, SQUEEZENET1_0, (224, 289), 21),
    "squeezenet1_1": (squeezenet.squeezenet1_1, SQUEEZENET1_1, (224, 227), 17),
    **{
        f"{prefix}efficientnet_lite{i}": (
            lambda name=f"{prefix}efficientnet_lite{i}": timm.create_model(name),
            LITE_STAGES,
            (side, side + 37),
            1,
        )
        for prefix in ("", "tf_")
        for i, side in enumerate((224, 240, 260, 280, 300))
    },
}
# The libraries' own initialisation, one network of each kind; those of few parameters.
INITIALISED = ["resnet18", "alexnet", "squeezenet1_0", "vgg16_bn", "vgg16_cifar", "tf_efficientnet_lite1"]
# torchvision's table of smallest inputs, where it has one.
for name, (_, _, _, smallest) in FULL.items():
    if hasattr(torchvision.models, name):
        weights = torchvision.models.get_model_weights(name).DEFAULT
        assert weights.meta["min_size"] == (smallest, smallest), (name, weights.meta["min_size"])


def describe(name):
    constructor, stages, sides, smallest = FULL[name]
    with torch.device("meta"):
        model = without_inplace(constructor().eval())
        shapes = {}
        for side in sides:
            found = record(model, stages, torch.empty(1, 3, side, side))
            shapes[side] = [[key.split(".", 2)[2], *value.shape[1:]] for key, value in found.items()]
    lines = sorted(f"{key} {'×'.join(map(str, value.shape))}\n" for key, value in tensors_of(model).items())
    found = {
        "tensors": hashlib.sha256("".join(lines).encode()).hexdigest(),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "smallest_side": smallest,
        "stages": shapes,
    }
    if name in INITIALISED:
        torch.manual_seed(SEED)
        found["initial"] = {
            key: [float(f"{value:.4g}") for value in (tensor.square().mean().sqrt().item(), tensor.abs().max().item())]
            for key, tensor in tensors_of(constructor()).items()
        }
    return found


def main():
    out = HERE / "cnn"
    out.mkdir(exist_ok=True)
    for name in TINY:
        write_tiny(name, out)
    lines = [f" {json.dumps(name)}: {json.dumps(describe(name))}" for name in FULL]
    (out / "architectures.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
