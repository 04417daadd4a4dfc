"""docs/parity.md from the results of `scripts/parity`, and the photographs that it prepares."""

import io
import json
import pathlib

import numpy as np
from PIL import Image, ImageCms

# Multiply-adds of one image in thousands of millions, about: the order in which networks are computed.
COST = {
    "squeezenet1_1": 0.4, "tf_efficientnet_lite0": 0.4, "tf_efficientnet_lite1": 0.6, "alexnet": 0.7, "squeezenet1_0": 0.8,
    "tf_efficientnet_lite2": 0.9, "tf_efficientnet_lite3": 1.7, "resnet18": 1.8, "resnet34": 3.7, "tf_efficientnet_lite4": 4,
    "resnet50": 4.1, "convnext_tiny": 4.5, "vit_small_patch16_224": 4.6, "swinv2_tiny_window8_256": 6, "resnet101": 7.8,
    "convnext_small": 8.7, "wide_resnet50_2": 11.4, "resnet152": 11.5, "swinv2_small_window8_256": 12, "convnext_base": 15.4,
    "vgg16": 15.5, "vgg16_bn": 15.5, "vit_base_patch16_224": 17.5, "synclr_vit_base_patch16": 17.5,
    "vit_base_patch16_dinov3": 18, "swinv2_base_window8_256": 20, "swinv2_base_window12to16_192to256": 22,
    "wide_resnet101_2": 22.8, "convnext_large": 34, "vit_small_patch14_dinov2": 46, "vit_small_patch14_reg4_dinov2": 46,
    "swinv2_base_window12to24_192to384": 55, "vit_large_patch16_224": 61, "vit_base_patch14_dinov2": 152,
    "vit_base_patch14_reg4_dinov2": 152, "vit_large_patch14_dinov2": 507, "vit_large_patch14_reg4_dinov2": 507,
}

# The bound of every value, or so many times PyTorch's own rounding error: see the text of the page.
BOUND, TIMES = 1e-4, 3.0

# Inputs that are tried, each with noise of its own, until the products are within their bound.
DRAWS = 4


def cost(row, side):
    return COST[row["architecture"]] * side


def pictures(root):
    """Label, path, and what an original is shown: an opaque sRGB picture."""
    import skimage

    data = pathlib.Path(skimage.__file__).parent / "data"
    found = []
    for label, path in [
        ("chelsea", root / "assets/photos/chelsea.png"),
        ("coffee", root / "assets/photos/coffee.png"),
        ("astronaut", root / "assets/photos/astronaut.png"),
        ("camera (grey)", data / "camera.png"),
        ("text (grey)", data / "text.png"),
        ("page (grey, profile)", data / "page.png"),
        ("motorcycle_left", data / "motorcycle_left.png"),
        ("logo (RGBA)", data / "logo.png"),
        ("retina (JPEG)", data / "retina.jpg"),
        ("hubble_deep_field (JPEG)", data / "hubble_deep_field.jpg"),
        ("rocket (JPEG, profile)", root / "assets/photos/rocket.jpg"),
    ]:
        image = Image.open(path)
        if image.mode == "RGBA":
            white = Image.new("RGBA", image.size, "white")
            image = Image.alpha_composite(white, image)
        if profile := image.info.get("icc_profile"):
            srgb = ImageCms.createProfile("sRGB")
            image = ImageCms.profileToProfile(image, ImageCms.ImageCmsProfile(io.BytesIO(profile)), srgb, outputMode="RGB")
        found.append((label, path, image.convert("RGB")))
    return found


def number(value):
    return "" if value is None else f"{value:.1e}" if value else "0"


def summary(errors):
    """Largest over the stages, pooled feature, logits, J·t, Jᵀ·v."""
    stages = max(value for name, value in errors.items() if name.startswith("stage."))
    return [stages, errors["pooled"], errors.get("logits"), errors["jvp.pooled"], errors["vjp.pooled"]]


def passes(errors):
    ours, theirs = (summary(errors[who]) for who in ("Etascope", "PyTorch"))
    return all(a is None or a <= max(BOUND, TIMES * b) for a, b in zip(ours, theirs))


def shown(result):
    """The number of the first draw that passes, else of the last, and its errors."""
    draws = [draw["errors"] for draw in result["draws"]]
    at = next((i for i, errors in enumerate(draws) if passes(errors)), len(draws) - 1)
    return at + 1, draws[at]


def network_table(results, groups):
    lines = [
        "| architecture | file | side | parameters | rows | | stages | pooled | logits | J·t | Jᵀ·v | double | |",
        "|---|---|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    for result in sorted(results, key=lambda r: (r["architecture"], r["layout"], r["side"])):
        draw, errors = shown(result)
        ours, theirs = (summary(errors[who]) for who in ("Etascope", "PyTorch"))
        cells = ["" if a is None else f"{number(a)} – {number(b)}" for a, b in zip(ours, theirs)]
        double = number(max(result["double"].values())) if "double" in result else ""
        verdict = ("✓" if passes(errors) else "✗") + (f" {draw}" if draw > 1 else "")
        file = result["layout"]
        naming = result["metadata"]["naming"]
        prefix = result["metadata"]["prefix"]
        recognised = naming + (f", after `{prefix}`" if prefix else "")
        lines.append(
            f"| {result['architecture']} | {file} | {result['side']} | {result['parameters']:,} "
            f"| {len(groups[result['row']])} | {recognised} | {' | '.join(cells)} | {double} | {verdict} |")
    return lines


TEXT = """# Parity with the original libraries

Made by `scripts/parity`; see there and in `scripts/originals.py` for what is computed. {versions}.

## Networks at full size

Every row of the registry, its network at its published size with seeded weights in the layout of the file that the row names
(for the two bundled encoders their trained weights), a photograph as input. Each cell: relative L2 difference
from PyTorch in **double** precision, of Etascope in single precision – of PyTorch in single precision. `stages` is the largest
over all stages; J·t and Jᵀ·v are products of the pooled feature's Jacobian with respect to raw pixels with a random tangent and
cotangent. The column after the number of rows says how Etascope recognised the names in the file. `double`: the largest of all
these where both programs compute in double precision, which tells a difference of functions from rounding (timm keeps some
tables in single precision; there 1e-7 is the limit).

✓: every value within {bound:.0e}, or {times:g} times PyTorch's own rounding error where that is larger. The reason for the second:
single precision puts some units on the other side of a kink or of a maximum, and J is another matrix there, in PyTorch as here;
that is rounding, not another function.{deep} Which units those are is chance, and one of them can change a product by 1e-3 where the other program met
none. So where the bound is missed, up to {draws} inputs are tried, with other noise, tangent and cotangent: a number after ✓ says how many it
took, and the cells are those of the last. A function that differs is within the bound at none of them.

"""


def write(path, cache, rows, group, versions):
    members = {}
    for row in rows:
        members.setdefault(group(row), []).append(row["name"])
    results = {"cpu": [], "adapter": []}
    done = {"cpu": set(), "adapter": set()}
    for kind in results:
        for key in members:
            file = cache / f"results/{key}.{kind}.json"
            if file.exists():
                results[kind].append(json.loads(file.read_text()))
                done[kind].add(key)
    groups = {result["row"]: names for names in members.values() for result in results["cpu"] + results["adapter"]
              if result["row"] in names}
    deep = sorted({result["architecture"] for result in results["cpu"]
                   if any(value is not None and value > BOUND for value in summary(shown(result)[1]["Etascope"])[:3])})
    deep = f" Of stages, pooled features and logits it is needed by: {', '.join(deep)} (untrained weights)." if deep else ""
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    text = TEXT.format(versions=named, bound=BOUND, times=TIMES, draws=DRAWS, deep=deep).splitlines()
    text += network_table(results["cpu"], groups)
    shared = [(result["row"], groups[result["row"]]) for result in results["cpu"] if len(groups[result["row"]]) > 1]
    if shared:
        text += ["", "Rows that share a computation, because architecture, layout, input side and normalisation are the same:", ""]
        text += [f"- {', '.join(names)}" for _, names in shared]
    missing = [name for key, names in members.items() if key not in done["cpu"] for name in names]
    if missing:
        text += ["", f"Not run, for want of time on the machine where this table was made: {', '.join(missing)}."]
    if results["adapter"]:
        device = results["adapter"][0]["device"]
        text += ["", f"## On a graphics adapter ({device})", "", "The same through wgpu, for some of the rows.", ""]
        text += network_table([result for result in results["adapter"] if "draws" in result], groups)
        for result in results["adapter"]:
            if "refused" in result:
                text += ["", f"{result['row']} was refused by the adapter's driver: {result['refused']}."]
    photographs = cache / "photographs.json"
    if photographs.exists():
        text += preprocessing_table(json.loads(photographs.read_text()), rows)
    path.write_text("\n".join(text) + "\n")


def preprocessing_table(content, rows):
    sizes = content["sizes"]
    labels = list(sizes)
    profiled = [label for label in labels if "profile" in label]
    jpegs = [label for label in labels if "JPEG" in label and label not in profiled]
    lossless = [label for label in labels if label not in profiled + jpegs]
    listed = ", ".join(f"{label} {width} × {height}" for label, (width, height) in sizes.items())
    lines = [
        "", "## Preprocessing", "",
        "The prepared input, before normalisation, beside that of the original's own transform: difference in grey levels of 255, "
        "largest and mean, over photographs stored without loss, over JPEGs, and over those with a colour profile. "
        f"Photographs of the program and of scikit-image: {listed}.", "",
        "The originals read no profiles and drop transparency; they are shown what Etascope decides on opening: transparent pixels "
        "over white, colours in sRGB (by LittleCMS). So the second column also holds two JPEG decoders and the third two colour "
        "engines against each other, and the first the resize and the crop alone. 0 stands for less than 1e-3 levels: normalisation is "
        "undone in single precision, and transformers resizes in it.", "",
        "| row | original | lossless: largest, mean | JPEG | profile |", "|---|---|--:|--:|--:|",
    ]
    for row in rows:
        found = content["differences"].get(row["name"])
        if found is None:
            continue

        def cell(labels):
            largest, mean = max(found[label][0] for label in labels), np.mean([found[label][1] for label in labels])
            return ", ".join("0" if value < 1e-3 else f"{value:.2g}" for value in (largest, mean))

        lines.append(f"| {row['name']} | {content['sources'][row['name']]} | {cell(lossless)} | {cell(jpegs)} | {cell(profiled)} |")
    return lines
