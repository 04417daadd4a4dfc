#!/usr/bin/env python3
"""Closed-form maps by scikit-learn, SciPy and NumPy, and singular spectra by NumPy and PyTorch.

Needs numpy, scipy, scikit-learn, torch, timm, safetensors; made with the versions in the files' headers.

    python gen_maps.py          writes maps.safetensors, maps.json and spectrum.safetensors beside this script

Vectors are rows here, f32 values in f64 arithmetic. Weights are written for columns: ŷ = W x + b.
"""
import json
import sys
from pathlib import Path

import numpy as np
import scipy
import sklearn
import torch
from safetensors.numpy import load_file, save_file
from scipy.linalg import orthogonal_procrustes
from scipy.stats import entropy, linregress
from sklearn.linear_model import LinearRegression, Ridge

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
rng = np.random.default_rng(7)


def dense_weights():
    """Vectors with a mean far from zero, channels of different spread, and an edit that is a noisy affine map."""
    n, c = 10 * 6 * 5, 12  # ten maps of 6 × 5 positions
    rotation = np.linalg.qr(rng.normal(size=(c, c)))[0]
    x = (rng.normal(size=(n, c)) * np.linspace(0.3, 2, c) @ rotation + 4).astype(np.float32)
    w = np.eye(c) + 0.4 * rng.normal(size=(c, 3)) @ rng.normal(size=(3, c))
    y = (x @ w.T + rng.normal(size=c) + 0.2 * rng.normal(size=(n, c))).astype(np.float32)
    return x, y


def maps():
    x32, y32 = dense_weights()
    x, y = x32.astype(float), y32.astype(float)
    n, c = x.shape
    out, numbers = {"x": x32, "y": y32}, {}

    def keep(name, weight, bias):
        out[f"{name}.weight"], out[f"{name}.bias"] = weight, bias

    linear = LinearRegression().fit(x, y)
    keep("linear", linear.coef_, linear.intercept_)
    ridge = Ridge(alpha=1.0).fit(x, y)
    keep("ridge", ridge.coef_, ridge.intercept_)
    mean_x, mean_y = x.mean(0), y.mean(0)
    xc, yc = x - mean_x, y - mean_y
    # orthogonal_procrustes gives R of rows: xc R ≈ yc.
    r, _ = orthogonal_procrustes(xc, yc)
    keep("procrustes", r.T, mean_y - mean_x @ r)
    # Toward the identity: ordinary least squares with √γ̄ I appended to both sides.
    penalty = 0.1 * (xc**2).sum() / c
    root = np.sqrt(penalty) * np.eye(c)
    w = np.linalg.lstsq(np.vstack([xc, root]), np.vstack([yc, root]), rcond=None)[0]
    keep("to_identity", w.T, mean_y - mean_x @ w)
    out["delta"] = mean_y - mean_x

    # Normalised by the statistics of x on both sides, fitted, and undone.
    std = x.std(0) + 1e-6
    scaled = Ridge(alpha=1.0).fit((x - mean_x) / std, (y - mean_x) / std)
    out["normalised.weight"] = scaled.coef_
    out["normalised.output"] = scaled.predict((x - mean_x) / std) * std + mean_x

    # Per position: ten pictures of 6 × 5 positions.
    grid_x, grid_y = x.reshape(10, 30, c), y.reshape(10, 30, c)
    out["per_position.output"] = np.stack(
        [Ridge(alpha=1.0).fit(grid_x[:, p], grid_y[:, p]).predict(grid_x[:, p]) for p in range(30)], 1
    ).reshape(n, c)

    # Spectra and truncations of the ridge map, on the first picture.
    w, b = ridge.coef_, ridge.intercept_
    few = x[:30]
    for name, matrix in (("map", w), ("edit", w - np.eye(c))):
        u, s, vt = np.linalg.svd(matrix)
        out[f"{name}.values"] = s
        signs = np.sign(vt[np.arange(c), np.abs(vt).argmax(1)])
        out[f"{name}.right"] = (vt * signs[:, None]).T
        out[f"{name}.left"] = u * signs
        for k in (0, 1, 3, c):
            cut = (u[:, :k] * s[:k]) @ vt[:k]
            if name == "map":
                out[f"{name}.rank_{k}"] = few @ cut.T + b
            else:
                out[f"{name}.rank_{k}"] = few + (few - mean_x) @ cut.T + (mean_y - mean_x)
        p = s**2 / (s**2).sum()
        numbers[name] = {
            "entropy": entropy(p),
            "effective_rank": float(np.exp(entropy(p))),
            "stable_rank": float(np.linalg.norm(matrix) ** 2 / np.linalg.norm(matrix, 2) ** 2),
            "energy": [float(p[:k].sum()) for k in (1, 5, 10)],
            "condition": float(np.linalg.cond(matrix)),
        }

    # Read-outs on the first picture.
    wx = few @ w.T
    whole = wx + b
    norm = lambda z: np.linalg.norm(z, axis=1)
    numbers["bias"] = {
        "share": float((norm(wx) / (norm(wx) + np.linalg.norm(b))).mean()),
        "cosine": float(((wx * whole).sum(1) / norm(wx) / norm(whole)).mean()),
        "norm": float(np.linalg.norm(b)),
    }
    target, mapped = y[:30] - few, whole - few
    line = linregress(norm(target), norm(mapped))
    numbers["displacement"] = {
        "cosine": float(((target * mapped).sum(1) / norm(target) / norm(mapped)).mean()),
        "endpoint_error": float(norm(whole - y[:30]).mean()),
        "slope": line.slope,
        "intercept": line.intercept,
        "rmse": float(np.sqrt(np.mean((norm(mapped) - line.slope * norm(target) - line.intercept) ** 2))),
    }
    fitted = {name: model.predict(x) for name, model in (("linear", linear), ("ridge", ridge))}
    numbers["mse"] = {name: float(((y - f) ** 2).mean()) for name, f in fitted.items()}
    save_file({k: np.ascontiguousarray(v) for k, v in out.items()}, HERE / "maps.safetensors",
              {"numpy": np.__version__, "scipy": scipy.__version__, "sklearn": sklearn.__version__})
    (HERE / "maps.json").write_text(json.dumps(numbers, indent=1) + "\n")


def spectrum():
    from gen_golden import MEAN, STD, TINY, load_file as load_torch, pooled_and_logits

    # A wide matrix with singular values from 10 to 1e-3 and random singular vectors.
    rows, columns = 24, 400
    u = np.linalg.qr(rng.normal(size=(rows, rows)))[0]
    v = np.linalg.qr(rng.normal(size=(columns, rows)))[0]
    matrix = ((u * np.logspace(1, -3, rows)) @ v.T).astype(np.float32)
    _, values, vt = np.linalg.svd(matrix.astype(float), full_matrices=False)
    out = {"dense": matrix, "dense.values": values, "dense.right": vt}
    for name, (constructor, side, _) in TINY.items():
        model = constructor()
        model.load_state_dict(load_torch(HERE.parent / f"{name}.weights.safetensors"), strict=False)
        model.double().eval()
        is_bgr = name == "tiny_squeezenet"
        photo = load_file(HERE.parent / f"{name}.profile.safetensors")["photo"]
        x = (torch.from_numpy(photo).float() / 255).double()[None]

        def feature(pixels):
            pixels = pixels.flip(1) if is_bgr else pixels
            return pooled_and_logits(model, (pixels - MEAN) / STD)[0][0]

        jacobian = torch.autograd.functional.jacobian(feature, x).reshape(-1, x.numel())
        _, s, vt = torch.linalg.svd(jacobian, full_matrices=False)
        out[f"{name}.values"] = s.numpy()
        out[f"{name}.right"] = vt[:3].float().numpy()
    save_file({k: np.ascontiguousarray(v) for k, v in out.items()}, HERE / "spectrum.safetensors",
              {"numpy": np.__version__, "torch": torch.__version__})


if __name__ == "__main__":
    maps()
    spectrum()
