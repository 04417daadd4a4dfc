"""The work of benches/maps.rs and benches/decode.rs in NumPy, SciPy and PyTorch, for `benches/compare --maps`: two threads on the CPU.

Prints one JSON object a line: {"what": …, "seconds": …} with the median of a few runs. Written as its users write it: sums as one
product of matrices in float32, the closed forms and the truncation in float64, decoder and inversion in eager PyTorch with
channels-last memory.

Needs numpy, scipy, torch, timm and safetensors:
    python benches/peer_maps.py --assets assets
"""

import argparse
import json
import os
import pathlib
import statistics
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--assets", type=pathlib.Path, default=pathlib.Path("assets"))
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--runs", type=int, default=7, help="measured runs of each; one more warms up")
args = parser.parse_args()

# Thread pools read these when they are loaded.
for name in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]:
    os.environ[name] = str(args.threads)

import numpy as np  # noqa: E402
import scipy.linalg  # noqa: E402
import timm  # noqa: E402
import torch  # noqa: E402
from safetensors import safe_open  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from torch.nn import functional as F  # noqa: E402

torch.set_num_threads(args.threads)
rng = np.random.default_rng(0)

# As in benches/maps.rs.
CHANNELS, POSITIONS, PICTURES = 1024, 81, 100
# As in benches/decode.rs: stages, and the last block of timm's network before each; 7 is the head.
STAGES = {"blocks.1": 1, "blocks.2": 2, "blocks.4": 4}
INVERTED = {2: 1, 5: 4, 8: 7}
SIDE = 224


def report(what, work, runs=args.runs):
    work()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    print(json.dumps({"what": what, "seconds": statistics.median(times)}), flush=True)


def maps():
    x = rng.random((PICTURES * POSITIONS, CHANNELS), dtype=np.float32)
    y = rng.random((PICTURES * POSITIONS, CHANNELS), dtype=np.float32)
    report("sum_pairs", lambda: (x.sum(0), y.sum(0), x.T @ x, x.T @ y, y.T @ y))

    xc = (x - x.mean(0)).astype(np.float64)
    yc = (y - y.mean(0)).astype(np.float64)
    gram, cross = xc.T @ xc, xc.T @ yc
    ridged = gram + np.eye(CHANNELS)
    report("solve_ridge", lambda: scipy.linalg.solve(ridged, cross, assume_a="pos"))

    w = scipy.linalg.solve(ridged, cross, assume_a="pos").T
    operator = w - np.eye(CHANNELS)
    report("decompose", lambda: np.linalg.svd(operator), runs=3)

    features = rng.random((CHANNELS, POSITIONS))
    mean_x, mean_y = x.mean(0)[:, None].astype(np.float64), y.mean(0)[:, None].astype(np.float64)
    report("apply", lambda: w @ (features - mean_x) + mean_y)
    u, s, vt = np.linalg.svd(operator)
    scores = s[:, None] * (vt @ (features - mean_x))
    report("move_rank", lambda: features + u[:, :100] @ scores[:100] + (mean_y - mean_x))


class Decoder(torch.nn.Module):
    """A shipped decoder, read from its file."""

    def __init__(self, file):
        super().__init__()
        with safe_open(file, "pt") as opened:
            self.plan = json.loads(opened.metadata()["etascope_decoder"])["plan"]
        self.weights = {name: value.float() for name, value in load_file(file).items()}

    def conv(self, key, x):
        weight = self.weights[f"{key}.weight"]
        return F.conv2d(x, weight, self.weights[f"{key}.bias"], padding=weight.shape[-1] // 2)

    def block(self, key, x):
        return x + self.conv(f"{key}.second", F.relu(self.conv(f"{key}.first", x)))

    def forward(self, x):
        mean, scale = (self.weights[name].view(1, -1, 1, 1) for name in ["mean", "scale"])
        x = self.conv("input", (x - mean) / scale)
        for i in range(self.plan["blocks"]):
            x = self.block(f"trunk.{i}", x)
        for i in range(len(self.plan["doublings"])):
            x = self.block(f"refine.{i}", F.pixel_shuffle(self.conv(f"expand.{i}", x), 2))
        return F.pixel_shuffle(self.conv("output", x), 2).clamp(0, 1)


def encoder():
    model = timm.create_model("tf_efficientnet_lite0", pretrained=False)
    state = load_file(args.assets / "encoders" / "efficientnet_lite0.safetensors")
    model.load_state_dict(state, strict=False)
    return model.eval().requires_grad_(False).to(memory_format=torch.channels_last)


def stage(model, pixels, last):
    x = model.bn1(model.conv_stem((pixels - 127 / 255) / (128 / 255)))
    for block in model.blocks[: last + 1]:
        x = block(x)
    return model.bn2(model.conv_head(x)) if last == len(model.blocks) else x


@torch.inference_mode()
def decoding(model):
    for name, last in STAGES.items():
        decoder = Decoder(args.assets / "decoders" / f"efficientnet_lite0.{name}.safetensors").eval()
        shape = stage(model, torch.rand(1, 3, SIDE, SIDE), last).shape
        channels = shape[1]
        u, _ = np.linalg.qr(rng.random((channels, channels)))
        features = rng.random((channels, shape[2] * shape[3]))
        scores = u.T @ features

        def work(decoder=decoder, u=u, features=features, scores=scores, shape=shape):
            k = u.shape[0] // 2
            mapped = (features + u[:, :k] @ scores[:k]).astype(np.float32)
            x = torch.from_numpy(mapped.reshape(shape)).to(memory_format=torch.channels_last)
            return decoder(x).numpy()

        report(f"rank_and_decode {name}", work)


def inversion(model):
    """A step on a pyramid of levels under a logistic function, with total variation, as in the program."""
    for index, last in INVERTED.items():
        target = torch.rand_like(stage(model, torch.rand(1, 3, SIDE, SIDE), last))
        sides = [SIDE]
        while sides[-1] >= 8:
            sides.append((sides[-1] + 1) // 2)
        levels = [torch.zeros(1, 3, side, side, requires_grad=True) for side in sides]
        adam = torch.optim.Adam(levels, lr=0.05)

        def work(last=last, target=target, levels=levels, adam=adam):
            adam.zero_grad(set_to_none=True)
            large = [F.interpolate(level, SIDE, mode="bilinear") for level in levels]
            picture = torch.sigmoid(sum(large))
            error = (stage(model, picture, last) - target).square().sum() / target.square().sum()
            down = picture[..., 1:, :-1] - picture[..., :-1, :-1]
            across = picture[..., :-1, 1:] - picture[..., :-1, :-1]
            variation = ((down.square() + across.square()).sum(1) + 1e-6).sqrt().mean()
            (error + 0.5 * variation).backward()
            adam.step()

        report(f"inversion_step {index}", work)


maps()
network = encoder()
decoding(network)
inversion(network)
