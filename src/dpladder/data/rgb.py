"""What an image file may hold, and its pixels in 8-bit RGB. This source is written into exported
models too, so that they see an image as training saw it."""

from __future__ import annotations

from typing import Any

import numpy as np

# What a file may hold, whatever its name says. Pillow finds out by itself otherwise, and starts
# Ghostscript for PostScript, or decodes an icon into more than its header claims.
FORMATS = ("BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")


def to_rgb(opened: Any) -> Any:
    """An image that Pillow opened, upright and in RGB of 8 bits.

    Pillow opens 16-bit grey as I;16 or I and would cut it off at 255. Its full range is scaled
    instead.

    Raises:
        ValueError: pixels are floating-point numbers, which have no declared range.
    """
    from PIL import Image, ImageOps

    upright = ImageOps.exif_transpose(opened)
    if upright.mode == "F":
        raise ValueError("floating-point images have no declared range")
    if upright.mode.startswith("I"):
        upright = Image.fromarray(high_byte(np.asarray(upright).clip(0, 65535)))
    return upright.convert("RGB")


def high_byte(pixels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Pixels of 16 bits in 8: 65535 is 255."""
    return np.rint(pixels / 257).astype(np.uint8)
