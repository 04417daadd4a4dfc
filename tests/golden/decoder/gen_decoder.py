#!/usr/bin/env python3
"""A tiny decoder by the network of scripts/train-decoder in PyTorch: its file, features, and the picture of them.

Needs what scripts/train-decoder needs; made with torch 2.15.

    python gen_decoder.py       writes tiny.safetensors and tiny.fixture.safetensors beside this script
"""
import importlib.machinery
import importlib.util
import json
from pathlib import Path

import torch
from safetensors.torch import save_file

HERE = Path(__file__).resolve().parent
SCRIPT = HERE.parents[2] / "scripts/train-decoder"
PLAN = {"channels": 5, "width": 6, "blocks": 2, "doublings": [4, 3]}


def script():
    loader = importlib.machinery.SourceFileLoader("train_decoder", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("train_decoder", loader))
    loader.exec_module(module)
    return module


def main():
    torch.manual_seed(4)
    model = script().Decoder(PLAN)
    with torch.no_grad():
        for value in model.parameters():
            value.add_(0.1 * torch.randn_like(value))
        model.mean.copy_(torch.randn(5))
        model.scale.copy_(0.5 + torch.rand(5))
    tensors = {name: value.half() for name, value in model.state_dict().items()}
    tensors["mean"], tensors["scale"] = model.mean.clone(), model.scale.clone()
    model.load_state_dict({name: value.float() for name, value in tensors.items()})
    model.double().eval()
    features = torch.randn(2, 5, 3, 4)
    # The network's own `float()` before the last layer would undo the double precision.
    torch.Tensor.float = lambda tensor: tensor
    with torch.no_grad():
        picture = model(features.double())
    header = {
        "format": 1,
        "encoder": "tiny",
        "weights_id": "seed 0",
        "stage": "blocks.2",
        "plan": PLAN,
        "data_sha256": "00",
        "photographs": 0,
        "steps": 0,
        "batch": 0,
        "seed": 4,
        "held_out_photographs": 0,
        "held_out_psnr_db": None,
        "held_out_lpips": None,
        "made_by": "tests/golden/decoder/gen_decoder.py",
    }
    save_file(tensors, HERE / "tiny.safetensors", {"etascope_decoder": json.dumps(header, sort_keys=True)})
    save_file(
        {"features": features, "picture": picture.to(torch.float32).contiguous()},
        HERE / "tiny.fixture.safetensors",
        {"torch": torch.__version__.split("+")[0]},
    )


if __name__ == "__main__":
    main()
