#!/usr/bin/env python3
"""What Pillow, scikit-image, OpenCV, SciPy and lpips make of pictures and feature maps.

Needs numpy, scipy, Pillow (made with 13.0), torchvision, scikit-image, opencv-python-headless, lpips and
shesha-geometry (0.3), safetensors.

    python gen_pictures.py      writes manipulations.safetensors and metrics.safetensors beside this script

Pictures are 8-bit (row, column, channel). A result is named picture/manipulation, the manipulation in the form
in which the program reads it.
"""
import contextlib
import io
import json
from pathlib import Path

import cv2
import lpips
import numpy as np
import PIL
import scipy
import shesha
import skimage
import torch
from PIL import Image, ImageDraw, ImageEnhance, ImageOps, features
from safetensors.numpy import save_file
from scipy.spatial import procrustes
from scipy.spatial.distance import jensenshannon, pdist
from scipy.stats import entropy, spearmanr
from skimage.metrics import mean_squared_error, peak_signal_noise_ratio, structural_similarity
from torchvision.transforms.functional import adjust_hue

HERE = Path(__file__).resolve().parent
PHOTOS = HERE.parents[2] / "assets" / "photos"
rng = np.random.default_rng(20)


def photo(name, box):
    return Image.open(PHOTOS / name).convert("RGB").crop(box)


def cover(width, height):
    """Colours of every kind: saturated, near-grey, black and white."""
    rgb = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    rgb[::4] = rgb[::4] // 128 * 255
    rgb[1::4] = rgb[1::4, :, :1] // 2 + rgb[1::4] // 64
    return Image.fromarray(rgb)


# Odd sides, so that blocks, pairs of columns and quarter turns have remainders.
PICTURES = {
    "cat": photo("chelsea.png", (150, 60, 150 + 75, 60 + 53)),
    "coffee": photo("coffee.png", (200, 100, 200 + 64, 100 + 48)),
    "colours": cover(61, 40),
    # Narrower than a block, and than what libjpeg interpolates between.
    "dot": cover(3, 5),
    "strip": cover(5, 19),
    "line": cover(17, 2),
}
ONLY_JPEG = ("coffee", "dot", "strip", "line")


def jpeg(image, quality, subsampling):
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality, subsampling=subsampling)
    return Image.open(buffer).convert("RGB")


def crop(image, left, top, width, height):
    w, h = image.size
    box = (round(left * w), round(top * h), round((left + width) * w), round((top + height) * h))
    return image.crop(box).resize(image.size, Image.Resampling.BICUBIC)


def translate(image, right, down, colour):
    out = Image.new("RGB", image.size, colour)
    out.paste(image, (round(right * image.width), round(down * image.height)))
    return out


MANIPULATIONS = {
    "rotate:90": lambda i: i.transpose(Image.Transpose.ROTATE_90),
    "rotate:180": lambda i: i.transpose(Image.Transpose.ROTATE_180),
    "rotate:270": lambda i: i.transpose(Image.Transpose.ROTATE_270),
    "mirror:horizontal": ImageOps.mirror,
    "mirror:vertical": ImageOps.flip,
    "grayscale": lambda i: i.convert("L").convert("RGB"),
    "hue:60": lambda i: adjust_hue(i, 60 / 360),
    "hue:10": lambda i: adjust_hue(i, 10 / 360),
    "hue:-75.5": lambda i: adjust_hue(i, -75.5 / 360),
    "hue:180": lambda i: adjust_hue(i, 0.5),
    **{f"brightness:{f}": lambda i, f=f: ImageEnhance.Brightness(i).enhance(f) for f in (0.4, 1.7)},
    **{f"contrast:{f}": lambda i, f=f: ImageEnhance.Contrast(i).enhance(f) for f in (0, 0.4, 1.7)},
    **{f"saturation:{f}": lambda i, f=f: ImageEnhance.Color(i).enhance(f) for f in (0.3, 1, 2.5)},
    **{
        f"jpeg:{q}:{s.replace(':', '')}": lambda i, q=q, s=s: jpeg(i, q, s)
        for q in (1, 30, 75, 85, 95, 100)
        for s in ("4:2:0", "4:4:4")
    },
    "crop:0.25,0.1,0.5,0.6": lambda i: crop(i, 0.25, 0.1, 0.5, 0.6),
    "translate:0.25,-0.1:10,20,30": lambda i: translate(i, 0.25, -0.1, (10, 20, 30)),
}

SQUARES = [("red", 26, 103), ("green", 180, 270), ("blue", 90, 193), ("yellow", 116, 154)]


def squares(image):
    image = image.copy()
    draw = ImageDraw.Draw(image)
    for colour, first, last in SQUARES:
        place = lambda c, side: int(np.floor(c * side / 288 + 0.5))
        corner = lambda c: (place(c, image.width), place(c, image.height))
        draw.rectangle([corner(first), corner(last)], fill=colour)
    return image


def manipulations():
    out = {}
    for name, image in PICTURES.items():
        out[name] = np.asarray(image)
        for text, change in MANIPULATIONS.items():
            if name in ONLY_JPEG and not text.startswith("jpeg"):
                continue
            out[f"{name}/{text}"] = np.asarray(change(image))
        if name not in ONLY_JPEG:
            out[f"{name}/squares"] = np.asarray(squares(image))
    # At the paper's own side the corners are its own; the rest of the picture is white.
    at_288 = np.asarray(squares(Image.new("RGB", (288, 288), "white")))
    colours = [(255, 255, 255), (255, 0, 0), (0, 128, 0), (0, 0, 255), (255, 255, 0)]
    labels = sum(i * (at_288 == colour).all(-1) for i, colour in enumerate(colours))
    assert all((labels == i).any() for i in range(1, 5))
    out["squares_288"] = labels.astype(np.uint8)
    # Pillow's hue, one step of the recursion after another.
    image = PICTURES["cat"]
    for _ in range(36):
        image = adjust_hue(image, 10 / 360)
    out["cat/hue:10 × 36"] = np.asarray(image)
    save_file({k: np.ascontiguousarray(v) for k, v in out.items()}, HERE / "manipulations.safetensors",
              {"pillow": PIL.__version__, "libjpeg_turbo": features.version("libjpeg_turbo")})


def picture_metrics(out, numbers):
    a = np.asarray(PICTURES["cat"])
    noisy = np.clip(a + rng.normal(0, 40, a.shape), 0, 255).round().astype(np.uint8)
    edits = {"noisy": noisy, "hue": np.asarray(adjust_hue(PICTURES["cat"], 60 / 360)),
             "spot": np.asarray(translate(PICTURES["cat"], 0.5, 0.6, (255, 0, 0)))}
    out["picture"] = a
    for name, b in edits.items():
        out[f"picture/{name}"] = b
        same = dict(channel_axis=-1, data_range=255)
        numbers[name] = {
            "ssim_uniform": structural_similarity(a, b, **same),
            "ssim_gaussian": structural_similarity(a, b, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, **same),
            "mse": mean_squared_error(a, b),
            "psnr": peak_signal_noise_ratio(a, b, data_range=255),
        }
        blur = lambda x: cv2.GaussianBlur(x, (5, 5), 0).astype(float)
        differs = np.linalg.norm(blur(a) - blur(b), axis=-1) > 50
        for rows, columns in ((9, 9), (4, 7), (53, 75)):
            pool = torch.nn.functional.adaptive_max_pool2d(torch.from_numpy(differs[None].astype(np.float32)), (rows, columns))
            out[f"mask/{name}/{rows}x{columns}"] = pool[0].numpy().astype(np.uint8)


def feature_metrics(out, numbers):
    # Median cosine, with zero vectors on one side and on both.
    a, b = rng.normal(size=(2, 5, 6, 7)).astype(np.float32)
    b += 0.5 * a
    a[0, 0] = b[0, 0] = 0
    a[1, 2] = 0
    out["map.a"], out["map.b"] = a, b
    mask = rng.random((5, 6)) < 0.4
    mask[0, 0] = True
    out["map.mask"] = mask.astype(np.uint8)
    wide_a, wide_b = a.astype(float), b.astype(float)
    norms = np.linalg.norm(wide_a, axis=-1) * np.linalg.norm(wide_b, axis=-1)
    cosines = (wide_a * wide_b).sum(-1) / np.maximum(norms, 1e-8)
    kept = ~((wide_a == 0).all(-1) & (wide_b == 0).all(-1))
    numbers["mdncs"] = float(np.median(cosines[kept]))
    numbers["mdncs_masked"] = float(np.median(cosines[kept & mask]))

    # Predictions.
    p, q = rng.normal(size=(2, 12)) * 3
    softmax = lambda x: scipy.special.softmax(x)
    numbers["logits"] = [p.tolist(), q.tolist()]
    numbers["js_bits"] = float(jensenshannon(softmax(p), softmax(q), base=2) ** 2)
    numbers["entropy_share"] = float(entropy(softmax(p)) / np.log(12))

    # Representations: more pictures than coordinates, and fewer.
    for name, n, width, other in (("tall", 40, 9, 12), ("wide", 14, 50, 30)):
        x = rng.normal(size=(n, width)) * np.linspace(0.2, 2, width) + 1
        y = np.tanh(x @ rng.normal(size=(width, other)) / 3) + 0.3 * rng.normal(size=(n, other))
        out[f"{name}.x"], out[f"{name}.y"] = x, y
        xc, yc = x - x.mean(0), y - y.mean(0)
        k, l = xc @ xc.T, yc @ yc.T
        numbers[f"{name}.cka"] = float((k * l).sum() / np.sqrt((k * k).sum() * (l * l).sum()))
        padded = lambda z: np.pad(z, ((0, 0), (0, max(width, other) - z.shape[1])))
        # SciPy also fits the scale: its disparity is 1 − ‖AᵀB‖_*².
        disparity = procrustes(padded(x), padded(y))[2]
        numbers[f"{name}.procrustes"] = float(2 - 2 * np.sqrt(1 - disparity))
        for metric in ("correlation", "cosine"):
            numbers[f"{name}.rdm_{metric}"] = float(spearmanr(pdist(x, metric), pdist(y, metric))[0])
    numbers["ties"] = [[1, 2, 2, 3, 3, 3, 0.5], [2, 2, 1, 5, 4, 4, 4]]
    numbers["ties_spearman"] = float(spearmanr(*numbers["ties"])[0])

    # Shesha: its own splits, replayed from its generator.
    x = rng.normal(size=(25, 5)) @ rng.normal(size=(5, 11)) + 0.5 * rng.normal(size=(25, 11))
    theirs = shesha.feature_split(x, n_splits=6, seed=320, return_all_splits=True)
    replay = np.random.default_rng(320)
    orders = np.array([replay.permutation(11) for _ in range(6)])
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    mine = [spearmanr(*(pdist(unit[:, half], "cosine") for half in (o[:5], o[5:10])))[0] for o in orders]
    assert np.allclose(mine, theirs["split_scores"], atol=1e-12), (mine, theirs)
    out["shesha.x"], out["shesha.orders"] = x, orders.astype(np.uint8)
    numbers["shesha"] = theirs["mean"]

    # LPIPS: the package's head for AlexNet, with weights and feature maps of our own.
    with contextlib.redirect_stdout(io.StringIO()):
        model = lpips.LPIPS(net="alex", pnet_rand=True, verbose=False).eval()
    maps = [rng.normal(size=(2, c, s, s)).clip(0).astype(np.float32) for c, s in zip((64, 192, 384, 256, 256), (5, 3, 2, 2, 2))]
    maps[0][:, :, 0, 0] = 0
    for layer in model.lins:
        weight = layer.model[1].weight.requires_grad_(False)
        weight.copy_(torch.from_numpy(rng.random(weight.shape).astype(np.float32)))
    calls = iter((0, 1))
    model.net.forward = lambda _: (lambda i: [torch.from_numpy(m[i : i + 1]) for m in maps])(next(calls))
    with torch.no_grad():
        numbers["lpips"] = model(torch.zeros(1, 3, 8, 8), torch.zeros(1, 3, 8, 8)).item()
    for i, m in enumerate(maps):
        out[f"lpips.maps.{i}"] = m
        out[f"lpips.weights.{i}"] = model.lins[i].model[1].weight.numpy().ravel()


def metrics():
    out, numbers = {}, {}
    picture_metrics(out, numbers)
    feature_metrics(out, numbers)
    save_file({k: np.ascontiguousarray(v) for k, v in out.items()}, HERE / "metrics.safetensors",
              {"skimage": skimage.__version__, "opencv": cv2.__version__, "scipy": scipy.__version__, "shesha": shesha.__version__})
    (HERE / "metrics.json").write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    manipulations()
    metrics()
