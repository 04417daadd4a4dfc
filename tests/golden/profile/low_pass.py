"""Reference for the low-pass directions: scipy's Gaussian filter with wrapped borders.

Run with numpy and scipy; writes low_pass.json beside itself.
"""

import json
from pathlib import Path

import numpy as np
import scipy
from scipy.ndimage import gaussian_filter

rng = np.random.default_rng(0)
shape = (2, 7, 9)
noise = rng.standard_normal(shape)
cases = [
    {
        "sigma_px": sigma,
        "values": gaussian_filter(noise, (0, sigma, sigma), mode="wrap", truncate=4.0)
        .ravel()
        .tolist(),
    }
    # The last is wider than the image, so that its kernel wraps round several times.
    for sigma in (0.5, 1.25, 6.0)
]
out = {
    "made_with": f"scipy {scipy.__version__}, numpy {np.__version__}",
    "shape": shape,
    "noise": noise.ravel().tolist(),
    "cases": cases,
}
Path(__file__).with_name("low_pass.json").write_text(json.dumps(out, indent=0) + "\n")
