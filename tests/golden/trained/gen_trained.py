#!/usr/bin/env python3
"""Trained maps by PyTorch: losses with their gradients, steps of AdamW, and each network's pass and gradients.

Needs torch, numpy, safetensors; made with torch 2.15.

    python gen_trained.py       writes trained.safetensors beside this script

Vectors are [batch, position, channel]. Networks are built from PyTorch's own modules, in double precision, so that what
differs is the rounding of the program under test. The values are those of `eval()`; of BatchNorm also the running
statistics after one pass in training. Names of parameters are PyTorch's.
"""
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import nn
from torch.nn import functional as F

BATCH, ROWS, COLUMNS, CHANNELS, HIDDEN = 3, 3, 4, 6, 16
HERE = Path(__file__).resolve().parent
torch.manual_seed(11)
torch.set_default_dtype(torch.float64)


def rounded(*shape):
    """Normal numbers that f32 holds exactly."""
    return torch.randn(shape).float().double()


def cosines(a, b):
    return F.cosine_similarity(a, b, dim=-1, eps=1e-8)


LOSSES = {
    # quantile(0.5) takes the mean of the middle two, where torch.median would take the lower.
    "blend": lambda a, b: 0.3 * F.mse_loss(a, b) + 0.7 * (1 - cosines(a, b).quantile(0.5, dim=1)).mean(),
    "mse": F.mse_loss,
    "huber": F.huber_loss,
    "mean_cosine": lambda a, b: (1 - cosines(a, b)).mean(),
}


class Positions(nn.Module):
    def __init__(self, network, positions):
        super().__init__()
        self.input, self.encoder, self.output = network.input, network.encoder, network.output
        self.positions = nn.Parameter(rounded(positions, HIDDEN))

    def forward(self, x):
        return self.output(self.encoder(self.input(x) + self.positions))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.input = nn.Linear(CHANNELS, HIDDEN)
        layer = nn.TransformerEncoderLayer(HIDDEN, 8, 4 * HIDDEN, 0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.output = nn.Linear(HIDDEN, CHANNELS)

    def forward(self, x):
        return self.output(self.encoder(self.input(x)))


class Grid(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(CHANNELS, HIDDEN, 3, padding=1)
        self.norm = nn.BatchNorm2d(HIDDEN)
        self.conv2 = nn.Conv2d(HIDDEN, CHANNELS, 3, padding=1)

    def forward(self, x):
        x = x.transpose(1, 2).reshape(-1, CHANNELS, ROWS, COLUMNS)
        x = self.conv2(F.dropout2d(F.relu(self.norm(self.conv1(x))), 0.2, self.training))
        return x.flatten(2).transpose(1, 2)


class Pointwise(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.output = nn.Linear(CHANNELS, HIDDEN), nn.Linear(HIDDEN, CHANNELS)

    def forward(self, x):
        return self.output(F.dropout(F.relu(self.hidden(x)), 0.2, self.training))


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(CHANNELS, CHANNELS)

    def forward(self, x):
        return self.linear(x)


def ours(name):
    """Names under which the program keeps a parameter."""
    return name.removeprefix("encoder.").replace("positions", "positions.weight")


def networks():
    transformer = Transformer()
    return {
        "linear": Shared(),
        "mlp": Pointwise(),
        "cnn": Grid(),
        "transformer": transformer,
        "transformer_with_positions": Positions(Transformer(), ROWS * COLUMNS),
    }


def main():
    out = {}
    for positions in (9, 10):
        a, b = rounded(BATCH, positions, CHANNELS), rounded(BATCH, positions, CHANNELS) * 1.5
        out[f"loss.{positions}.mapped"], out[f"loss.{positions}.target"] = a, b
        for name, loss in LOSSES.items():
            leaf = a.clone().requires_grad_()
            value = loss(leaf, b)
            value.backward()
            out[f"loss.{positions}.{name}"] = value.detach().reshape(1)
            out[f"loss.{positions}.{name}.gradient"] = leaf.grad

    parameter = nn.Parameter(rounded(7))
    optimiser = torch.optim.AdamW([parameter], lr=0.01, weight_decay=0.1)
    out["adamw.start"] = parameter.detach().clone()
    for step in range(5):
        parameter.grad = rounded(7) * 10.0 ** (step - 2)
        out[f"adamw.{step}.gradient"] = parameter.grad.clone()
        optimiser.step()
        out[f"adamw.{step}.value"] = parameter.detach().clone()

    x, y = rounded(BATCH, ROWS * COLUMNS, CHANNELS), rounded(BATCH, ROWS * COLUMNS, CHANNELS)
    out["x"], out["y"] = x, y
    for kind, network in networks().items():
        with torch.no_grad():
            for name, value in network.named_parameters():
                # Other than their first values, so that each has its say.
                value.add_(0.1 * torch.randn_like(value)).copy_(value.float().double())
            for name, value in network.named_buffers():
                if value.dim():
                    value.copy_((value + 0.2 * torch.rand_like(value)).float().double())
        state = {name: value.clone() for name, value in network.state_dict().items()}
        for name, value in state.items():
            if value.dim():
                out[f"{kind}.value.{ours(name)}"] = value
        network.eval()
        mapped = network(x)
        out[f"{kind}.mapped"] = mapped.detach()
        loss = LOSSES["blend"](mapped, y)
        loss.backward()
        for name, value in network.named_parameters():
            out[f"{kind}.gradient.{ours(name)}"] = value.grad
        if kind == "cnn":
            network.train()
            network(x)
            for name in ("running_mean", "running_var"):
                out[f"cnn.after.norm.{name}"] = getattr(network.norm, name).clone()
    single = {name: np.ascontiguousarray(value.detach().numpy(), np.float32) for name, value in out.items()}
    save_file(single, HERE / "trained.safetensors", {"torch": torch.__version__.split("+")[0]})


if __name__ == "__main__":
    main()
