#!/usr/bin/env python3
"""What the package lpips says of pairs of pictures, over an AlexNet whose weights are a formula.

Needs lpips (made with 0.1.4), torch, numpy, Pillow, safetensors.

    python gen_lpips.py         writes lpips.safetensors beside this script

The trunk of AlexNet has 2.5 million weights, too many for a file here; `drawn` below makes them from integers, exactly, so that
the test makes the same. The learnt layers are the package's own. The file holds for each pair N, whose pictures are 8-bit
(row, column, channel), `N.a`, `N.b`, `N.distance` and the share of each layer, `N.layers`, computed in f64 from f32 weights.
"""
import contextlib
import io
from pathlib import Path

import lpips
import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageFilter
from safetensors.numpy import save_file

HERE = Path(__file__).resolve().parent
PHOTOS = HERE.parents[2] / "assets" / "photos"


def drawn(shape, stream, bound):
    """Numbers of a tensor, uniform in ±bound: a hash of their places."""
    x = np.arange(np.prod(shape), dtype=np.uint64) + np.uint64(stream * 1_000_003)
    mask = np.uint64(0xFFFFFFFF)
    for _ in range(2):
        x = ((x >> np.uint64(16)) ^ x) * np.uint64(0x45D9F3B) & mask
    x = (x >> np.uint64(16)) ^ x
    values = (x.astype(np.float64) / 2.0**31 - 1.0) * bound
    return torch.from_numpy(values.astype(np.float32).reshape(shape))


def model():
    with contextlib.redirect_stdout(io.StringIO()):
        net = lpips.LPIPS(net="alex", version="0.1", pnet_rand=True, verbose=False).eval()
    convolutions = [m for m in net.net.modules() if isinstance(m, torch.nn.Conv2d)]
    assert len(convolutions) == 5
    with torch.no_grad():
        for i, layer in enumerate(convolutions):
            fan_in = layer.weight[0].numel()
            # He's bound keeps the size of activations.
            layer.weight.copy_(drawn(layer.weight.shape, 2 * i, (6.0 / fan_in) ** 0.5))
            layer.bias.copy_(drawn(layer.bias.shape, 2 * i + 1, 0.1))
    return net.double()


def pairs():
    cat = Image.open(PHOTOS / "chelsea.png").convert("RGB").crop((140, 80, 236, 176))
    cup = Image.open(PHOTOS / "coffee.png").convert("RGB").crop((200, 120, 280, 184))
    noise = np.random.default_rng(7).normal(scale=25, size=(96, 96, 3))
    noisy = np.clip(np.asarray(cat) + noise, 0, 255).astype(np.uint8)
    return [
        (cat, Image.fromarray(noisy)),
        (cat, cat.filter(ImageFilter.GaussianBlur(2))),
        (cup, ImageEnhance.Color(cup).enhance(0.0)),
        (cup, Image.new("RGB", cup.size)),
    ]


def main():
    net = model()
    out = {}
    for n, (a, b) in enumerate(pairs()):
        tensors = [torch.from_numpy(np.asarray(p).copy()).permute(2, 0, 1)[None].double() / 255 for p in (a, b)]
        with torch.no_grad():
            total, layers = net(*tensors, retPerLayer=True, normalize=True)
        out[f"{n}.a"], out[f"{n}.b"] = np.asarray(a).copy(), np.asarray(b).copy()
        out[f"{n}.distance"] = np.array([total.item()])
        out[f"{n}.layers"] = np.array([layer.item() for layer in layers])
        print(n, out[f"{n}.distance"], out[f"{n}.layers"])
    save_file(out, HERE / "lpips.safetensors", {"lpips": "0.1.4"})


if __name__ == "__main__":
    main()
