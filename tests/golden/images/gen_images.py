#!/usr/bin/env python3
"""Makes the pictures of this folder and what Pillow makes of them.

Needs numpy, Pillow (made with 13.0, LittleCMS 2.19, libjpeg-turbo), torchvision and timm.

    python gen_images.py            writes files/, expected/ and manifest.json beside this script

files/     one small picture a case: formats, depths, alpha, orientations, profiles, animations, sizes
expected/  the same pictures as 8-bit sRGB on white (binary PPM), decoded by Pillow or, where Pillow
           loses bits, computed here from the exact values; and the encoders' inputs made by Pillow
manifest.json  digests of resized photographs, crop positions of torchvision, versions
"""
import hashlib
import io
import json
import struct
import zlib
from pathlib import Path

import numpy as np
import PIL
import timm
import torch
import torchvision
from PIL import Image, ImageCms, ImageOps
from torchvision.transforms import functional as F

HERE = Path(__file__).resolve().parent
PHOTOS = HERE.parents[2] / "assets" / "photos"
FILES, EXPECTED = HERE / "files", HERE / "expected"
W, H = 24, 16


def pattern():
    """A picture without any symmetry: gradients, a grey ramp and coloured corners."""
    y, x = np.mgrid[0:H, 0:W].astype(float)
    rgb = np.stack([255 * x / (W - 1), 255 * y / (H - 1), 255 * (1 - x / (W - 1)) * (1 - y / (H - 1))], -1)
    rgb[:3] = np.linspace(0, 255, W)[None, :, None]
    rgb[3:7, :5] = (230, 20, 40)
    rgb[11:, 17:] = (10, 60, 250)
    return rgb.round().astype(np.uint8)


RGB = pattern()
IMG = Image.fromarray(RGB)
GREY = np.asarray(IMG.convert("L"))
ALPHA = np.linspace(0, 255, W * H).round().astype(np.uint8).reshape(H, W)


def expect(name, pixels):
    """Writes pixels (height, width, 3) as a binary PPM."""
    pixels = np.ascontiguousarray(pixels, dtype=np.uint8)
    h, w, _ = pixels.shape
    (EXPECTED / f"{name}.ppm").write_bytes(b"P6\n%d %d\n255\n" % (w, h) + pixels.tobytes())


def grey_rgb(grey):
    return np.repeat(np.asarray(grey)[..., None], 3, -1)


def over(rgb, alpha, under):
    """Straight alpha over a colour, rounded to the nearest grey level."""
    a = alpha[..., None].astype(float) / 255
    return np.floor(rgb * a + np.array(under) * (1 - a) + 0.5)


# ---------------------------------------------------------------- files that Pillow cannot write

def png(name, array, colour_type, depth, extra=()):
    """A PNG of any colour type at 8 or 16 bits; `extra` chunks (type, data) before the pixels."""
    h, w = array.shape[:2]
    dtype = ">u2" if depth == 16 else "u1"
    rows = b"".join(b"\0" + row.astype(dtype).tobytes() for row in array)
    raw_png(name, w, h, depth, colour_type, zlib.compress(rows, 9), extra)


def raw_png(name, w, h, depth, colour_type, idat, extra=()):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    ihdr = struct.pack(">IIBBBBB", w, h, depth, colour_type, 0, 0, 0)
    chunks = [(b"IHDR", ihdr), *extra, (b"IDAT", idat), (b"IEND", b"")]
    (FILES / name).write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(k, d) for k, d in chunks))


def iccp(profile):
    return (b"iCCP", b"x\0\0" + zlib.compress(profile, 9))


def tiff(name, array, photometric, extra_samples=None, planar=False, profile=None, size=None):
    """An uncompressed little-endian TIFF in one strip (or one strip a plane)."""
    h, w, n = array.shape
    bits = array.dtype.itemsize * 8
    planes = [array[..., i] for i in range(n)] if planar else [array]
    strips = [np.ascontiguousarray(p).astype(array.dtype.newbyteorder("<")).tobytes() for p in planes]
    width, height = size or (w, h)
    tags = [
        (256, 4, [width]), (257, 4, [height]), (258, 3, [bits] * n), (259, 3, [1]), (262, 3, [photometric]),
        (273, 4, [0] * len(strips)), (277, 3, [n]), (278, 4, [height]), (279, 4, [len(s) for s in strips]),
        (284, 3, [2 if planar else 1]), (339, 3, [3 if array.dtype.kind == "f" else 1] * n),
    ]
    if extra_samples is not None:
        tags.append((338, 3, [extra_samples]))
    if profile is not None:
        tags.append((34675, 7, list(profile)))
    tags.sort()
    code = {3: "H", 4: "I", 7: "B"}
    at = 8 + 2 + 12 * len(tags) + 4
    blobs = b""
    entries = []
    for tag, kind, values in tags:
        data = struct.pack(f"<{len(values)}{code[kind]}", *values)
        entries.append([tag, kind, len(values), data])
    big = sum(len(e[3]) + len(e[3]) % 2 for e in entries if len(e[3]) > 4)
    offsets, start = [], at + big
    for s in strips:
        offsets.append(start)
        start += len(s)
    out = b""
    for tag, kind, count, data in entries:
        if tag == 273:
            data = struct.pack(f"<{len(offsets)}I", *offsets)
        if len(data) <= 4:
            out += struct.pack("<HHI", tag, kind, count) + data.ljust(4, b"\0")
        else:
            out += struct.pack("<HHII", tag, kind, count, at + len(blobs))
            blobs += data + b"\0" * (len(data) % 2)
    body = struct.pack("<2sHI", b"II", 42, 8) + struct.pack("<H", len(tags)) + out + b"\0" * 4 + blobs
    (FILES / name).write_bytes(body + b"".join(strips))


# ---------------------------------------------------------------- colour profiles

def profile(colour_space, profile_class, pcs, description, tags):
    """An ICC profile of version 2.4. `tags` maps signatures to data."""
    text = description.encode() + b"\0"
    desc = b"desc\0\0\0\0" + struct.pack(">I", len(text)) + text + b"\0" * (4 + 4 + 2 + 1 + 67)
    all_tags = {b"desc": desc, b"cprt": b"text\0\0\0\0made for a test, no rights reserved\0",
                b"wtpt": xyz(0.9642, 1.0, 0.8249), **tags}
    at = 128 + 4 + 12 * len(all_tags)
    table, data = struct.pack(">I", len(all_tags)), b""
    for signature, value in all_tags.items():
        value += b"\0" * (-len(value) % 4)
        table += struct.pack(">4sII", signature, at + len(data), len(value))
        data += value
    size = at + len(data)
    header = struct.pack(">I4sI4s4s4s12s4s4sIIIQI12s4s44s", size, b"\0" * 4, 0x02400000, profile_class, colour_space,
                         pcs, struct.pack(">6H", 2026, 1, 1, 0, 0, 0), b"acsp", b"\0" * 4, 0, 0, 0, 0, 0,
                         struct.pack(">3i", *(round(v * 65536) for v in (0.9642, 1.0, 0.8249))), b"\0" * 4, b"\0" * 44)
    assert len(header) == 128
    return header + table + data


def xyz(x, y, z):
    return b"XYZ \0\0\0\0" + struct.pack(">3i", *(round(v * 65536) for v in (x, y, z)))


def gamma(value):
    return b"curv\0\0\0\0" + struct.pack(">IH", 1, round(value * 256))


def lab_from_srgb(rgb):
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    # sRGB to XYZ under D50 (Bradford), as in every sRGB profile.
    m = np.array([[0.43607, 0.38515, 0.14307], [0.22249, 0.71687, 0.06061], [0.01392, 0.09708, 0.71410]])
    t = linear @ m.T / np.array([0.9642, 1.0, 0.8249])
    f = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return np.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], -1)


def ink_profile(grid=9):
    """A printer's profile with a table from CMYK to Lab: inks with dot gain on ivory paper."""
    levels = np.linspace(0, 1, grid) ** 0.8
    c, m, y, k = np.meshgrid(levels, levels, levels, levels, indexing="ij")
    rgb = np.stack([0.98 * (1 - 0.95 * c), 0.97 * (1 - 0.9 * m), 0.92 * (1 - 0.85 * y)], -1) * (1 - 0.9 * k[..., None])
    lab = lab_from_srgb(rgb).reshape(-1, 3)
    table = np.clip(np.stack([lab[:, 0] * 2.55, lab[:, 1] + 128, lab[:, 2] + 128], -1).round(), 0, 255)
    ramp = bytes(range(256))
    identity = struct.pack(">9i", *(65536 * v for v in (1, 0, 0, 0, 1, 0, 0, 0, 1)))
    lut = b"mft1\0\0\0\0" + bytes([4, 3, grid, 0]) + identity + ramp * 4 + table.astype(np.uint8).tobytes() + ramp * 3
    return profile(b"CMYK", b"prtr", b"Lab ", "Test inks", {b"A2B0": lut})


WIDE = profile(b"RGB ", b"mntr", b"XYZ ", "Test wide RGB", {
    # Primaries of Adobe RGB (1998) under D50, gamma 2.2.
    b"rXYZ": xyz(0.60974, 0.31111, 0.01947), b"gXYZ": xyz(0.20528, 0.62567, 0.06087),
    b"bXYZ": xyz(0.14919, 0.06322, 0.74457), b"rTRC": gamma(2.2), b"gTRC": gamma(2.2), b"bTRC": gamma(2.2)})
GREY_GAMMA = profile(b"GRAY", b"mntr", b"XYZ ", "Test grey gamma 1.4", {b"kTRC": gamma(1.4)})
INKS = ink_profile()
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))


def to_srgb(image, icc):
    source = ImageCms.ImageCmsProfile(io.BytesIO(icc))
    return np.asarray(ImageCms.profileToProfile(image, source, SRGB, renderingIntent=0, outputMode="RGB"))


# ---------------------------------------------------------------- the cases

def formats():
    IMG.save(FILES / "rgb.png")
    IMG.save(FILES / "rgb.bmp")
    IMG.save(FILES / "rgb.webp", lossless=True)
    IMG.save(FILES / "rgb.tiff", compression="tiff_lzw")
    IMG.save(FILES / "deflate.tiff", compression="tiff_adobe_deflate")
    for name in ("rgb.png", "rgb.bmp", "rgb.webp", "rgb.tiff", "deflate.tiff"):
        expect(name, RGB)
    IMG.save(FILES / "lossy.webp", quality=90)
    IMG.save(FILES / "rgb.jpg", quality=95, subsampling=0)
    IMG.save(FILES / "subsampled.jpg", quality=90, subsampling=2)
    IMG.save(FILES / "progressive.jpg", quality=90, subsampling=0, progressive=True)
    IMG.convert("L").save(FILES / "grey.jpg", quality=95)
    IMG.quantize(32).save(FILES / "rgb.gif")
    IMG.quantize(16).save(FILES / "palette.png")
    IMG.quantize(16).save(FILES / "palette.bmp")
    IMG.convert("1").save(FILES / "bits1.png")
    IMG.convert("1").save(FILES / "bits1.tiff")
    for name in ("lossy.webp", "rgb.jpg", "subsampled.jpg", "progressive.jpg", "grey.jpg", "rgb.gif", "palette.png",
                 "palette.bmp", "bits1.png", "bits1.tiff"):
        expect(name, np.asarray(Image.open(FILES / name).convert("RGB")))


def orientations():
    for value in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = value
        for name in [f"orient{value}.jpg"] + ([f"orient{value}.{e}" for e in ("png", "webp", "tiff")] if value in (5, 6) else []):
            options = {"webp": {"lossless": True}, "jpg": {"quality": 95, "subsampling": 0}}.get(name.split(".")[1], {})
            IMG.save(FILES / name, exif=exif, **options)
            expect(name, np.asarray(ImageOps.exif_transpose(Image.open(FILES / name)).convert("RGB")))


def depths():
    x = np.linspace(0, 65535, W * H).round().astype(np.uint16).reshape(H, W)
    wide = np.stack([x, x[::-1], x[:, ::-1]], -1)
    eight = np.floor(wide / 257 + 0.5)
    png("rgb16.png", wide, 2, 16)
    tiff("rgb16.tiff", wide, 2)
    tiff("planar16.tiff", wide, 2, planar=True)
    for name in ("rgb16.png", "rgb16.tiff", "planar16.tiff"):
        expect(name, eight)
    png("grey16.png", x[..., None], 0, 16)
    expect("grey16.png", grey_rgb(np.floor(x / 257 + 0.5)))
    png("rgba16.png", np.concatenate([wide, (ALPHA.astype(np.uint16) * 257)[..., None]], -1), 6, 16)
    expect("rgba16.png", over(eight, ALPHA, (255, 255, 255)))
    png("grey8.png", GREY[..., None], 0, 8)
    expect("grey8.png", grey_rgb(GREY))
    # Four-bit grey: two pixels a byte.
    four = (GREY >> 4).astype(np.uint8)
    raw_png("grey4.png", W, H, 4, 0, zlib.compress(b"".join(b"\0" + bytes((r[0::2] << 4 | r[1::2]).tolist()) for r in four)))
    expect("grey4.png", grey_rgb(four * 17))
    unit = (np.arange(W * H, dtype=np.float32) / (W * H - 1)).reshape(H, W, 1)
    tiff("float_grey.tiff", unit, 1)
    expect("float_grey.tiff", grey_rgb(np.floor(unit[..., 0] * 255 + 0.5)))
    tiff("double_grey.tiff", unit.astype(np.float64), 1)
    expect("double_grey.tiff", grey_rgb(np.floor(unit[..., 0] * 255 + 0.5)))
    tiff("float_rgb.tiff", (wide / 65535).astype(np.float32), 2)
    expect("float_rgb.tiff", eight)
    beyond = (unit * 850 - 50).astype(np.float32)
    tiff("float_beyond.tiff", beyond, 1)
    expect("float_beyond.tiff", grey_rgb(np.floor(unit[..., 0] * 255 + 0.5)))


def transparency():
    rgba = np.dstack([RGB, ALPHA])
    Image.fromarray(rgba).save(FILES / "rgba.png")
    Image.fromarray(rgba).save(FILES / "rgba.webp", lossless=True, exact=True)
    tiff("rgba.tiff", rgba, 2, extra_samples=2)
    for name in ("rgba.png", "rgba.webp", "rgba.tiff"):
        expect(name, over(RGB, ALPHA, (255, 255, 255)))
    expect("rgba.png.black", over(RGB, ALPHA, (0, 0, 0)))
    expect("rgba.png.336699", over(RGB, ALPHA, (0x33, 0x66, 0x99)))
    # Colours multiplied by alpha, at 16 bits so that dividing again loses nothing at 8.
    a = ALPHA.astype(np.uint32) * 257
    multiplied = (RGB.astype(np.uint32) * 257 * a[..., None] + 32767) // 65535
    tiff("premultiplied.tiff", np.dstack([multiplied, a]).astype(np.uint16), 2, extra_samples=1)
    expect("premultiplied.tiff", over(RGB, ALPHA, (255, 255, 255)))
    png("grey_alpha.png", np.dstack([GREY, ALPHA]), 4, 8)
    expect("grey_alpha.png", over(grey_rgb(GREY), ALPHA, (255, 255, 255)))
    palette = IMG.quantize(16)
    palette.save(FILES / "palette_alpha.png", transparency=3)
    shown = np.asarray(palette.convert("RGB")).copy()
    shown[np.asarray(palette) == 3] = 255
    expect("palette_alpha.png", shown)


def animations():
    frames = [IMG.quantize(32).convert("RGB"), ImageOps.invert(IMG), ImageOps.mirror(IMG)]
    frames[0].save(FILES / "animated.gif", save_all=True, append_images=frames[1:], duration=100)
    frames[0].save(FILES / "animated.webp", save_all=True, append_images=frames[1:], duration=100, lossless=True)
    frames[0].save(FILES / "animated.png", save_all=True, append_images=frames[1:], duration=100)
    for name in ("animated.gif", "animated.webp", "animated.png"):
        expect(name, np.asarray(Image.open(FILES / name).convert("RGB")))
    IMG.save(FILES / "pages.tiff", save_all=True, append_images=frames[1:])
    expect("pages.tiff", RGB)


def ink():
    # Pillow wants Adobe's inverted values in a JPEG and inverts them itself.
    cmyk = np.stack([255 - RGB[..., 0], 255 - RGB[..., 1], 255 - RGB[..., 2], GREY // 3], -1).astype(np.uint8)
    image = Image.fromarray(cmyk, "CMYK")
    image.save(FILES / "cmyk.jpg", quality=95, subsampling=0)
    image.save(FILES / "cmyk_icc.jpg", quality=95, subsampling=0, icc_profile=INKS)
    # YCCK: the same container with the Adobe segment's colour transform set to 2. Pillow writes the four
    # channels as they are, so they are given as the YCbCr form of the inks.
    ycc = np.asarray(Image.fromarray(cmyk[..., :3]).convert("YCbCr"))
    ycck = Image.fromarray(np.dstack([255 - ycc, cmyk[..., 3]]).astype(np.uint8), "CMYK")
    for name, subsampling in (("ycck.jpg", 0), ("ycck_subsampled.jpg", 2)):
        buffer = io.BytesIO()
        ycck.save(buffer, "JPEG", quality=95, subsampling=subsampling)
        data = bytearray(buffer.getvalue())
        at = data.index(b"Adobe")
        assert data[at + 11] == 0
        data[at + 11] = 2
        (FILES / name).write_bytes(bytes(data))
    tiff("cmyk.tiff", cmyk, 5)
    tiff("cmyk_icc.tiff", cmyk, 5, profile=INKS)
    for name in ("cmyk.jpg", "ycck.jpg", "ycck_subsampled.jpg", "cmyk.tiff"):
        expect(name, np.asarray(Image.open(FILES / name).convert("RGB")))
    for name in ("cmyk_icc.jpg", "cmyk_icc.tiff"):
        expect(name, to_srgb(Image.open(FILES / name), INKS))


def profiles():
    png("icc_rgb.png", RGB, 2, 8, [iccp(WIDE)])
    expect("icc_rgb.png", to_srgb(IMG, WIDE))
    IMG.save(FILES / "icc_rgb.jpg", quality=95, subsampling=0, icc_profile=WIDE)
    expect("icc_rgb.jpg", to_srgb(Image.open(FILES / "icc_rgb.jpg"), WIDE))
    IMG.save(FILES / "icc_rgb.webp", lossless=True, icc_profile=WIDE)
    expect("icc_rgb.webp", to_srgb(IMG, WIDE))
    IMG.save(FILES / "icc_rgb.tiff", icc_profile=WIDE)
    expect("icc_rgb.tiff", to_srgb(IMG, WIDE))
    png("icc_rgb16.png", RGB.astype(np.uint16) * 257, 2, 16, [iccp(WIDE)])
    expect("icc_rgb16.png", to_srgb(IMG, WIDE))
    png("icc_rgba.png", np.dstack([RGB, ALPHA]), 6, 8, [iccp(WIDE)])
    expect("icc_rgba.png", over(to_srgb(IMG, WIDE), ALPHA, (255, 255, 255)))
    png("icc_grey.png", GREY[..., None], 0, 8, [iccp(GREY_GAMMA)])
    expect("icc_grey.png", to_srgb(Image.fromarray(GREY), GREY_GAMMA))
    png("icc_srgb.png", RGB, 2, 8, [iccp(SRGB.tobytes())])
    png("icc_malformed.png", RGB, 2, 8, [iccp(b"not a profile " * 20)])
    png("icc_cut.png", RGB, 2, 8, [iccp(WIDE[:200])])
    png("icc_other.png", RGB, 2, 8, [iccp(GREY_GAMMA)])
    for name in ("icc_srgb.png", "icc_malformed.png", "icc_cut.png", "icc_other.png"):
        expect(name, RGB)


def sizes():
    """Headers that announce what must not be allocated, and pictures too small to use."""
    few = zlib.compress(b"\0" * 64)
    raw_png("huge.png", 20000, 20000, 8, 6, few)
    raw_png("widest.png", 2_000_000_000, 2_000_000_000, 16, 6, few)
    png("line.png", np.zeros((1, 30000), np.uint8), 0, 8)
    png("dot.png", np.zeros((1, 1), np.uint8), 0, 8)
    raw_png("long.png", 70000, 64, 8, 0, few)
    bmp = bytearray((FILES / "rgb.bmp").read_bytes())
    bmp[18:26] = struct.pack("<ii", 20000, 20000)
    (FILES / "huge.bmp").write_bytes(bmp)
    gif = bytearray((FILES / "rgb.gif").read_bytes())
    gif[6:10] = struct.pack("<HH", 60000, 60000)
    (FILES / "huge.gif").write_bytes(gif)
    jpeg = bytearray((FILES / "rgb.jpg").read_bytes())
    at = jpeg.index(b"\xff\xc0")
    jpeg[at + 5:at + 9] = struct.pack(">HH", 60000, 60000)
    (FILES / "huge.jpg").write_bytes(jpeg)
    tiff("huge.tiff", RGB, 2, size=(20000, 20000))
    # VP8L: 14 bits each of width − 1 and height − 1 after the signature byte.
    webp = bytearray((FILES / "rgb.webp").read_bytes())
    at = webp.index(b"VP8L") + 9
    webp[at:at + 4] = struct.pack("<I", 15999 | 15999 << 14)
    (FILES / "huge.webp").write_bytes(webp)


# ---------------------------------------------------------------- encoders' inputs

def recipes():
    lite = timm.data.create_transform(input_size=(3, 224, 224), interpolation="bicubic", crop_pct=0.875, mean=(0, 0, 0), std=(1, 1, 1))
    filters = {"bicubic": Image.BICUBIC, "bilinear": Image.BILINEAR, "nearest": Image.NEAREST}

    def shorter_side(image, filter_, side=256, crop=224):
        w, h = image.size
        size = (side, int(side * h / w)) if w <= h else (int(side * w / h), side)
        return F.center_crop(image.resize(size, filter_), [crop, crop])

    digests = {}
    for name in ("chelsea", "coffee", "astronaut", "rgb"):
        image = Image.open(FILES / "rgb.png" if name == "rgb" else PHOTOS / f"{name}.png").convert("RGB")
        timm_pixels = (lite(image).numpy().transpose(1, 2, 0) * 255).round().astype(np.uint8)
        assert (timm_pixels == np.asarray(shorter_side(image, Image.BICUBIC))).all(), "timm is Pillow and this crop"
        for label, filter_ in filters.items():
            for recipe, made in (("crop", shorter_side(image, filter_)), ("squash", image.resize((227, 227), filter_))):
                digests[f"{name} {recipe} {label}"] = hashlib.sha256(np.asarray(made).tobytes()).hexdigest()
    expect("chelsea.efficientnet_lite0", np.asarray(shorter_side(Image.open(PHOTOS / "chelsea.png").convert("RGB"), Image.BICUBIC)))
    rocket = Image.open(PHOTOS / "rocket.jpg")
    srgb = Image.fromarray(to_srgb(rocket, rocket.info["icc_profile"]))
    expect("rocket.efficientnet_lite0", np.asarray(shorter_side(srgb, Image.BICUBIC)))

    # A strip whose resize is 33 times wider than what the crop keeps.
    strip = np.random.default_rng(0).integers(0, 256, (9, 297, 3), dtype=np.uint8)
    Image.fromarray(strip).save(FILES / "strip.png")
    for label, filter_ in filters.items():
        made = shorter_side(Image.fromarray(strip), filter_)
        digests[f"strip crop {label}"] = hashlib.sha256(np.asarray(made).tobytes()).hexdigest()

    # Where torchvision crops: a picture whose pixel values are their own positions tells.
    crops = []
    for length in range(224, 240):
        ramp = Image.fromarray(np.tile(np.arange(length, dtype=np.uint8), (224, 1)))
        crops.append([length, int(np.asarray(F.center_crop(ramp, [224, 224]))[0, 0])])
    return digests, crops


if __name__ == "__main__":
    FILES.mkdir(exist_ok=True)
    EXPECTED.mkdir(exist_ok=True)
    for old in [*FILES.iterdir(), *EXPECTED.iterdir()]:
        old.unlink()
    for case in (formats, orientations, depths, transparency, animations, ink, profiles, sizes):
        case()
    digests, crops = recipes()
    versions = {"pillow": PIL.__version__, "littlecms": ImageCms.core.littlecms_version, "numpy": np.__version__,
                "torch": torch.__version__, "torchvision": torchvision.__version__, "timm": timm.__version__}
    manifest = {"versions": versions, "digests": digests, "torchvision_center_crop_224": crops}
    (HERE / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    total = sum(f.stat().st_size for d in (FILES, EXPECTED) for f in d.iterdir())
    print(len(list(FILES.iterdir())), "files,", total // 1000, "kB in all")
