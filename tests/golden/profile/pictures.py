"""References for the directions that are made from pictures: scipy's Gaussian filter with mirrored
borders, Pillow's grey (mode F, which is not rounded), NumPy's normalised difference and mask.

Run with numpy, scipy and Pillow; writes pictures.json beside itself.
"""

import json
from pathlib import Path

import numpy as np
import PIL
import scipy
from PIL import Image
from scipy.ndimage import gaussian_filter

rng = np.random.default_rng(1)
rows, columns = 7, 9
levels = rng.integers(0, 256, (rows, columns, 3), dtype=np.uint8)
other = rng.integers(0, 256, (rows, columns, 3), dtype=np.uint8)


def planes(image):
    """(row, column, channel) in grey levels to (channel, row, column) in [0, 1], as f32."""
    return (image.transpose(2, 0, 1) / np.float32(255)).astype(np.float32)


x, t = planes(levels), planes(other)
wide = x.astype(np.float64)
grey = np.asarray(Image.fromarray(levels).convert("F"), dtype=np.float64) / 255
distance = np.linalg.norm(t.astype(np.float64) - wide)

# Discs as (x, y, radius) in fractions of width and height; a pixel counts by its centre.
discs = [(0.3, 0.4, 0.25), (0.9, 1.0, 0.2)]
centre_y, centre_x = np.meshgrid(
    (np.arange(rows) + 0.5) / rows, (np.arange(columns) + 0.5) / columns, indexing="ij"
)
covered = np.zeros((rows, columns), bool)
for disc_x, disc_y, radius in discs:
    covered |= (centre_x - disc_x) ** 2 + (centre_y - disc_y) ** 2 <= radius**2


def listed(values):
    return np.asarray(values).ravel().tolist()


out = {
    "made_with": f"scipy {scipy.__version__}, numpy {np.__version__}, Pillow {PIL.__version__}",
    "shape": [3, rows, columns],
    "pixels": listed(x),
    "other": listed(t),
    "distance": distance,
    "toward": listed((t.astype(np.float64) - wide) / distance),
    "grayscale": listed(np.stack([grey] * 3)),
    "blurs": [
        {
            "sigma_px": sigma,
            "values": listed(gaussian_filter(wide, (0, sigma, sigma), mode="reflect", truncate=4.0)),
        }
        # The last is wider than the picture, so that its kernel is mirrored several times.
        for sigma in (0.5, 1.25, 6.0)
    ],
    "discs": discs,
    "covered": listed(covered),
}
Path(__file__).with_name("pictures.json").write_text(json.dumps(out, indent=0) + "\n")
