#!/usr/bin/env python3
"""Makes assets/metrics/lpips_alex.safetensors: the learnt layers of LPIPS v0.1 over AlexNet.

    python make_lpips_asset.py [--out assets/metrics]

Takes `lpips/weights/v0.1/alex.pth` from the installed package `lpips` (made with 0.1.4, two-clause BSD licence, see NOTICES.md): five
1 × 1 convolutions to one channel without bias, here as vectors lin0 … lin4 of 64, 192, 384, 256 and 256 weights in f32,
unchanged. Needs lpips, torch and safetensors.
"""

import argparse
import hashlib
import pathlib

import lpips
import torch
from safetensors.torch import save_file

SHA256 = "df73285e35b22355a2df87cdb6b70b343713b667eddbda73e1977e0c860835c0"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--out", type=pathlib.Path, default=root / "assets/metrics")
    out = parser.parse_args().out
    source = pathlib.Path(lpips.__file__).parent / "weights/v0.1/alex.pth"
    found = hashlib.sha256(source.read_bytes()).hexdigest()
    if found != SHA256:
        raise SystemExit(f"{source.name} has SHA-256 {found}, not {SHA256}")
    layers = torch.load(source, map_location="cpu", weights_only=True)
    vectors = {name.split(".")[0]: weight.flatten().contiguous() for name, weight in layers.items()}
    assert sorted(vectors) == [f"lin{i}" for i in range(5)]
    out.mkdir(parents=True, exist_ok=True)
    save_file(vectors, out / "lpips_alex.safetensors")


if __name__ == "__main__":
    main()
