"""The same work in PyTorch and onnxruntime, for `benches/compare`: one encoder, two threads, float32 on the CPU.

Prints one JSON object a line: {"what": …, "seconds": …}. Written as its users write it: eager mode, inference mode and
channels-last memory for the forward pass, forward-mode automatic differentiation for J·u, reverse mode with frozen
parameters for Jᵀ·v.

Needs torch, timm, torchvision and safetensors, with --make also onnx and onnxscript, with --onnx onnxruntime:
    python benches/peer.py efficientnet_lite0 --weights assets/encoders/efficientnet_lite0.safetensors
    python benches/peer.py resnet50 --make FOLDER
    python benches/peer.py resnet50 --weights FOLDER/resnet50.safetensors --sweep
    python benches/peer.py resnet50 --onnx FOLDER/resnet50.onnx --sweep
"""

import argparse
import json
import math
import os
import pathlib
import resource
import statistics
import time

BUNDLED = ["efficientnet_lite0", "squeezenet1_1"]
LARGE = ["resnet50", "convnext_tiny", "vit_small_patch16_224", "swinv2_tiny_window8_256"]
BATCHES = [1, 2, 4, 8, 16]
PRODUCT_BATCHES = [1, 2, 4, 8]
SHOWN = 64  # values of the feature that are printed

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("encoder", choices=BUNDLED + LARGE)
parser.add_argument("--make", metavar="FOLDER", help="write random weights and the network as ONNX, and end")
parser.add_argument("--weights", help="a safetensors file that Etascope reads")
parser.add_argument("--onnx", help="measure this network in onnxruntime instead")
parser.add_argument("--sweep", action="store_true", help="least times for an image at growing batches, and memory")
parser.add_argument("--batch", type=int, default=8, help="without --sweep")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--runs", type=int, default=9, help="measured runs of each; one more warms up")
args = parser.parse_args()

# Thread pools read these when they are loaded.
os.environ["OMP_NUM_THREADS"] = str(args.threads)

import numpy as np  # noqa: E402


def show(what, **details):
    print(json.dumps({"what": what, **details}), flush=True)


def runs_of(work, runs=None):
    """Seconds of a few runs of `work`, after one that is not counted."""
    work()
    seconds = []
    for _ in range(runs or args.runs):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return seconds


def timed(what, work, runs=None, **details):
    show(what, seconds=statistics.median(runs_of(work, runs)), **details)


def sweep(what, work_at, batches=BATCHES):
    """The least time for an image or vector at growing batches, until a larger one is slower."""
    best = math.inf
    for batch in batches:
        each = min(runs_of(work_at(batch))) / batch
        show(what, batch=batch, seconds=each)
        if each > best:
            return
        best = each


def memory_mib(key):
    """A line of Linux's account of this process."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024


def grown_by(work):
    """The result of `work`, its seconds, and by how many MiB the process grew at most meanwhile."""
    try:
        pathlib.Path("/proc/self/clear_refs").write_text("5")
        before = memory_mib("VmRSS:")
    except OSError:
        before = None
    start = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    return result, seconds, None if before is None else memory_mib("VmHWM:") - before


def photo(side):
    """Pixels that need no seed, so that Etascope can be shown the same."""
    pixels = (37 * np.arange(3 * side * side) % 256).astype(np.float32) / np.float32(255)
    return pixels.reshape(1, 3, side, side)


def measure_onnx():
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    options.inter_op_num_threads = 1

    def load():
        return onnxruntime.InferenceSession(args.onnx, options, providers=["CPUExecutionProvider"])

    session, _, peak = grown_by(load)
    show("load", seconds=min(runs_of(load)), bytes=os.path.getsize(args.onnx), peak_mib=peak)
    side = session.get_inputs()[0].shape[2]
    pixels = photo(side)
    show("feature", values=session.run(None, {"pixels": pixels})[0][0, :SHOWN].tolist())

    def forward(batch):
        batch = np.repeat(pixels, batch, 0)
        return lambda: session.run(None, {"pixels": batch})

    sweep("forward", forward)


if args.onnx:
    measure_onnx()
    raise SystemExit

import torch  # noqa: E402
import torch.autograd.forward_ad as forward_ad  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

torch.set_num_threads(args.threads)
torch.manual_seed(0)
IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])


class Pooled(torch.nn.Module):
    """Pixels in [0, 1] to the pooled penultimate feature, normalisation included."""

    def __init__(self, network, mean, std, reverse_channels=False, pool=lambda x: x.mean((2, 3))):
        super().__init__()
        self.network = network
        self.pool = pool
        self.reverse_channels = reverse_channels
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1))

    def forward(self, pixels):
        if self.reverse_channels:
            pixels = pixels.flip(1)
        x = (pixels - self.mean) / self.std
        return self.pool(self.network(x))


def efficientnet_lite0():
    import timm

    model = timm.create_model("tf_efficientnet_lite0", pretrained=False)

    class Features(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            return self.model.forward_features(x)

    return Pooled(Features(), [127 / 255] * 3, [128 / 255] * 3), model, 224


def squeezenet1_1():
    import torchvision

    model = torchvision.models.squeezenet1_1(weights=None)
    mean = [103.939 / 255, 116.779 / 255, 123.68 / 255]
    return Pooled(model.features, mean, [1 / 255] * 3, reverse_channels=True), model, 227


class WithoutClasses(torch.nn.Module):
    """A network of timm up to the vector before its classifier."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model.forward_head(self.model.forward_features(x), pre_logits=True)


def of_timm(name, mean, std, side):
    import timm

    model = timm.create_model(name, pretrained=False)
    return Pooled(WithoutClasses(model), mean, std, pool=torch.nn.Identity()), model, side


def resnet50():
    return of_timm("resnet50", *IMAGENET, 224)


def convnext_tiny():
    return of_timm("convnext_tiny", *IMAGENET, 224)


def vit_small_patch16_224():
    return of_timm("vit_small_patch16_224", [0.5] * 3, [0.5] * 3, 224)


def swinv2_tiny_window8_256():
    return of_timm("swinv2_tiny_window8_256", *IMAGENET, 256)


def make():
    """Weights as an untrained network has them, but for scales and shifts, which move away from 0 and 1: some networks
    begin with blocks that do nothing."""
    pooled, model, side = globals()[args.encoder]()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    folder = pathlib.Path(args.make)
    parameters = {name: value for name, value in model.state_dict().items() if value.is_floating_point()}
    save_file({name: value.contiguous() for name, value in parameters.items()}, folder / f"{args.encoder}.safetensors")
    torch.onnx.export(
        pooled.eval(),
        (torch.rand(2, 3, side, side),),
        folder / f"{args.encoder}.onnx",
        input_names=["pixels"],
        dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=64)},),
        external_data=False,
        verbose=False,
    )


def read_weights():
    return {name: value.float() for name, value in load_file(args.weights).items()}


def measure():
    pooled, model, side = globals()[args.encoder]()

    def load():
        return model.load_state_dict(read_weights(), strict=False)

    timed("load", load)
    missing = load().missing_keys
    assert all(name.endswith("num_batches_tracked") for name in missing), missing
    pooled = pooled.eval().requires_grad_(False).to(memory_format=torch.channels_last)
    pixels = torch.rand(args.batch, 3, side, side).to(memory_format=torch.channels_last)
    with torch.inference_mode():
        timed("forward", lambda: pooled(pixels), batch=args.batch)
    timed("jvp", lambda: jvp(pooled, pixels), batch=args.batch)
    timed("vjp", lambda: vjp(pooled, pixels), batch=args.batch)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    show("peak memory", mib=peak_mib)


def measure_sweep():
    """As `measure`, for growing batches. `vjp, graph kept` repeats the backward pass alone, which is what a user does
    who takes many products at one input; forward mode has no such way."""

    def load():
        pooled, model, side = globals()[args.encoder]()
        model.load_state_dict(load_file(args.weights), strict=False)
        return pooled, side

    (pooled, side), _, peak = grown_by(load)
    model = pooled.network.model
    seconds = min(runs_of(lambda: model.load_state_dict(load_file(args.weights), strict=False)))
    show("load", seconds=seconds, bytes=os.path.getsize(args.weights), peak_mib=peak)
    pooled = pooled.eval().requires_grad_(False).to(memory_format=torch.channels_last)
    one = torch.from_numpy(photo(side))

    def batch_of(batch):
        return one.repeat(batch, 1, 1, 1).to(memory_format=torch.channels_last)

    with torch.inference_mode():
        show("feature", values=pooled(batch_of(1))[0, :SHOWN].tolist())

        def forward(batch):
            pixels = batch_of(batch)
            return lambda: pooled(pixels)

        sweep("forward", forward)

    def at(product):
        def work(batch):
            pixels = batch_of(batch)
            return lambda: product(pooled, pixels)

        return work

    def kept(batch):
        x = batch_of(batch).requires_grad_(True)
        features = pooled(x)
        ones = torch.ones_like(features)
        return lambda: torch.autograd.grad(features, x, ones, retain_graph=True)

    sweep("jvp", at(jvp), PRODUCT_BATCHES)
    sweep("vjp", at(vjp), PRODUCT_BATCHES)
    sweep("vjp, graph kept", kept, PRODUCT_BATCHES)


def jvp(pooled, pixels):
    # The fused attention has no forward mode.
    with forward_ad.dual_level(), sdpa_kernel(SDPBackend.MATH):
        dual = forward_ad.make_dual(pixels, torch.randn_like(pixels))
        return forward_ad.unpack_dual(pooled(dual)).tangent


def vjp(pooled, pixels):
    x = pixels.clone().requires_grad_(True)
    features = pooled(x)
    return torch.autograd.grad(features, x, torch.ones_like(features))[0]


if args.make:
    make()
elif not args.weights:
    parser.error("either --make, --weights or --onnx")
elif args.sweep:
    measure_sweep()
else:
    measure()
