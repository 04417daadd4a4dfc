#!/usr/bin/env python3
"""Holds the rows of src/encoders/registry/encoders.toml against the libraries that publish the files.

    python check_encoder_rows.py

For torchvision: address, size, number of parameters, resize, crop, interpolation, mean and standard deviation of
`get_model_weights`. For timm: repository, licence and the same of `get_pretrained_cfg`. Rows of other publishers are
listed, to be read by a person. Nothing is downloaded. Needs torchvision, timm and Python 3.11.
"""

import math
import pathlib
import sys
import tomllib

from timm.models import get_pretrained_cfg
from torchvision.models import get_model_weights, list_models

ROWS = pathlib.Path(__file__).parent.parent / "src/encoders/registry/encoders.toml"
LICENCES = {"apache-2.0": "Apache-2.0", "mit": "MIT", "dinov3-license": "DINOv3 License"}


def main():
    published = {w.url: w for model in list_models(module=__import__("torchvision").models) for w in get_model_weights(model)}
    rows = tomllib.loads(ROWS.read_text())["encoder"]
    faults, held, others = [], 0, []
    for row in rows:
        name, given = row["name"], row["input"]

        def hold(what, found, expected):
            if found != expected:
                faults.append(f"{name}: {what} is {found}, not {expected}")

        if row.get("url") in published:
            weights = published[row["url"]]
            transform, meta = weights.transforms(), weights.meta
            hold("size", row["size_mib"], meta["_file_size"])
            hold("resize", given["resize"], transform.resize_size[0])
            hold("crop", given["crop"], transform.crop_size[0])
            hold("filter", given["filter"], transform.interpolation.value)
            hold("antialias", transform.antialias, True)
            hold("mean", given["mean"], list(transform.mean))
            hold("std", given["std"], list(transform.std))
            hold("hash", row["url"].rsplit("-", 1)[1], row["sha256"] + ".pth")
        elif row.get("hub", "").startswith("timm/"):
            config = get_pretrained_cfg(row["hub"].removeprefix("timm/")).to_dict()
            sides = {config["input_size"][1]: config["crop_pct"]}
            if config.get("test_input_size"):
                sides[config["test_input_size"][1]] = config.get("test_crop_pct") or config["crop_pct"]
            hold("repository", row["hub"], config["hf_hub_id"])
            hold("licence", row["licence"], LICENCES[config["license"]])
            hold("crop", given["crop"] in sides, True)
            hold("resize", given["resize"], math.floor(given["crop"] / sides.get(given["crop"], 1)))
            hold("crop mode", config["crop_mode"], "center")
            hold("filter", given["filter"], config["interpolation"])
            hold("mean", given["mean"], list(config["mean"]))
            hold("std", given["std"], list(config["std"]))
        else:
            others.append(name)
            continue
        held += 1
    print("\n".join(faults) if faults else f"{held} rows are as published")
    print("to be read by a person:", ", ".join(others))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
