"""The same work in PyTorch, for `benches/compare`: one encoder, two threads, float32 on the CPU.

Prints one JSON object a line: {"what": …, "seconds": …} with the median of a few runs. Written as its users
write it: eager mode, inference mode and channels-last memory for the forward pass, forward-mode automatic
differentiation for J·u, reverse mode with frozen parameters for Jᵀ·v.

Needs torch, timm, torchvision and safetensors:
    python benches/peer.py efficientnet_lite0 --weights assets/encoders/efficientnet_lite0.safetensors
"""

import argparse
import json
import os
import resource
import statistics
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("encoder", choices=["efficientnet_lite0", "squeezenet1_1"])
parser.add_argument("--weights", required=True, help="the safetensors file that Etascope ships")
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--runs", type=int, default=9, help="measured runs of each; one more warms up")
args = parser.parse_args()

# Thread pools read these when they are loaded.
os.environ["OMP_NUM_THREADS"] = str(args.threads)

import torch  # noqa: E402
import torch.autograd.forward_ad as forward_ad  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

torch.set_num_threads(args.threads)
torch.manual_seed(0)


class Pooled(torch.nn.Module):
    """Pixels in [0, 1] to the pooled penultimate feature, normalisation included."""

    def __init__(self, network, mean, std, reverse_channels):
        super().__init__()
        self.network = network
        self.reverse_channels = reverse_channels
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1))

    def forward(self, pixels):
        if self.reverse_channels:
            pixels = pixels.flip(1)
        x = (pixels - self.mean) / self.std
        return self.network(x).mean((2, 3))


def efficientnet_lite0():
    import timm

    model = timm.create_model("tf_efficientnet_lite0", pretrained=False)
    load = model.load_state_dict

    class Features(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            return self.model.forward_features(x)

    return Pooled(Features(), [127 / 255] * 3, [128 / 255] * 3, False), load, 224


def squeezenet1_1():
    import torchvision

    model = torchvision.models.squeezenet1_1(weights=None)
    mean = [103.939 / 255, 116.779 / 255, 123.68 / 255]
    return Pooled(model.features, mean, [1 / 255] * 3, True), model.load_state_dict, 227


def timed(what, work, runs=None, **details):
    """The median time of `work`, after one run that is not counted."""
    work()
    seconds = []
    for _ in range(runs or args.runs):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"what": what, "seconds": statistics.median(seconds), **details}), flush=True)


def read_weights():
    return {name: value.float() for name, value in load_file(args.weights).items()}


model, load_state_dict, side = globals()[args.encoder]()
timed("load", lambda: load_state_dict(read_weights(), strict=False))
missing = load_state_dict(read_weights(), strict=False).missing_keys
assert all(name.endswith("num_batches_tracked") for name in missing), missing
model = model.eval().requires_grad_(False).to(memory_format=torch.channels_last)
pixels = torch.rand(args.batch, 3, side, side).to(memory_format=torch.channels_last)

with torch.inference_mode():
    features = model(pixels)
    timed("forward", lambda: model(pixels), batch=args.batch)


def jvp():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(pixels, torch.randn_like(pixels))
        return forward_ad.unpack_dual(model(dual)).tangent


def vjp():
    x = pixels.clone().requires_grad_(True)
    return torch.autograd.grad(model(x), x, torch.ones_like(features))[0]


timed("jvp", jvp, batch=args.batch)
timed("vjp", vjp, batch=args.batch)
peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"what": "peak memory", "mib": peak_mib}), flush=True)
