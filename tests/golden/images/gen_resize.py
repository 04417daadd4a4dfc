#!/usr/bin/env python3
"""Resizes and crops of every kind by torchvision: of Pillow pictures, in grey levels, and of tensors, in fractions of them.

    python gen_resize.py            writes resize.safetensors beside this script

Each tensor is (3, side, side) in grey levels, under the name `photo resize crop filter aspect precision`: shorter side (or, with
`squash`, both sides) and crop in pixels; `levels` in u8 or `fractions` in f32, computed in f64. Odd and even remainders, shrinking and enlarging.

Made with torch 2.15.0, torchvision 0.29.2 and Pillow 13.0.0.
"""

import pathlib

import torchvision.transforms.functional as F
from PIL import Image
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent
PATHS = {"chelsea": HERE.parents[2] / "assets/photos/chelsea.png", "rgb": HERE / "files/rgb.png"}
# chelsea is 451 × 300, rgb is 24 × 16.
CASES = [("chelsea", 40, 33), ("chelsea", 41, 33), ("chelsea", 33, 30), ("chelsea", 31, 31), ("rgb", 35, 31), ("rgb", 16, 13)]


def main():
    tensors = {}
    for photo, resize, crop in CASES:
        image = Image.open(PATHS[photo]).convert("RGB")
        for filter_ in ("bilinear", "bicubic"):
            for aspect, size in (("keep", resize), ("squash", [resize, resize])):
                for precision, source in (("levels", image), ("fractions", F.to_tensor(image).double())):
                    made = F.resize(source, size, F.InterpolationMode(filter_), antialias=True)
                    made = F.center_crop(made, [crop, crop])
                    made = F.pil_to_tensor(made) if precision == "levels" else (made * 255).float()
                    tensors[f"{photo} {resize} {crop} {filter_} {aspect} {precision}"] = made.contiguous()
    save_file(tensors, HERE / "resize.safetensors")


if __name__ == "__main__":
    main()
