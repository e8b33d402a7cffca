"""One record's image, whatever it was stored as, in 8-bit RGB. A function of that record alone."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from dpladder.config.features_sections import LARGEST_IMAGE
from dpladder.data.rgb import FORMATS, high_byte, to_rgb

# Public bounds, beyond which one small file could exhaust the memory of the whole job. It could
# when it is unpacked: the config's bound stands in place of Pillow's own. It could when its short
# side is stretched to the network's.
Image.MAX_IMAGE_PIXELS = None
LONGEST = 100  # times the short side

TILE = (322, 323)  # TIFF's tags of a tile's width and length

# DICOM's name for a file whose size after unpacking nobody knows
DEFLATED = b"1.2.840.10008.1.2.1.99"

SMALLEST = 0.75  # side of a crop over the image's own


def decode(content: Any, largest: int = LARGEST_IMAGE) -> Image.Image:
    """One record's image: the first frame, upright, in RGB of 8 bits.

    Args:
        content: a file's bytes, or pixels of 8 or 16 bits.
        largest: pixels that it may have.

    Raises:
        Exception: whatever the decoder raises. The caller makes that a bad record.
    """
    dicom = isinstance(content, bytes) and content[128:132] == b"DICM"
    image = _from_dicom(content, largest) if dicom else _open_image(content)
    _check_size(image.width, image.height, largest)
    if image.format == "TIFF":  # a tile is decoded whole, however much of it the image shows
        wide, high = (vars(image)["tag_v2"].get(tag, 1) for tag in TILE)
        _check_size(wide, high, largest)
    if max(image.size) > LONGEST * min(image.size):
        raise ValueError(f"more than {LONGEST} times as long as wide")
    upright: Image.Image = to_rgb(image)
    return upright


def image_view(image: Image.Image, number: int, mirror: bool) -> Image.Image:
    """A public variation of an image, the same for every record.

    The first is the image itself, the others are crops whose size and place everybody can draw.

    Args:
        image: one record's.
        number: of the view, from 0.
        mirror: whether every second view is mirrored, because no class minds.
    """
    if not number:
        return image
    size, left, top = np.random.default_rng(number).uniform((SMALLEST, 0.0, 0.0), 1.0)
    width, height = (max(1, round(size * length)) for length in image.size)
    x, y = round(left * (image.width - width)), round(top * (image.height - height))
    cropped = image.crop((x, y, x + width, y + height))
    return ImageOps.mirror(cropped) if mirror and number % 2 else cropped


def _check_size(width: int, height: int, largest: int) -> None:
    if width * height > largest:
        raise ValueError(f"more than {largest:,} pixels, features.largest_image")


def _from_dicom(content: bytes, largest: int) -> Image.Image:
    """Through the file's own tables, of its modality and then of what it shows (a table, a window
    or a sigmoid). They go from the least value to the most, and are turned round where less is
    brighter; in colour through its palette. Compressed pixels are not read: they could unpack to
    any size."""
    try:
        from pydicom import dcmread
        from pydicom.pixels import (
            apply_color_lut,
            apply_modality_lut,
            apply_voi_lut,
            pixel_array,
        )
    except ModuleNotFoundError:
        raise ValueError("DICOM, which the extra [dicom] reads") from None
    if DEFLATED in content:
        raise ValueError("DICOM that is deflated")
    file = dcmread(BytesIO(content))
    if file.file_meta.TransferSyntaxUID.is_compressed:
        raise ValueError("DICOM whose pixels are compressed; write them uncompressed")
    _check_size(file.Columns, file.Rows, largest)
    pixels = pixel_array(file, index=0)
    if file.PhotometricInterpretation == "PALETTE COLOR":
        pixels = apply_color_lut(pixels, file)
    if pixels.ndim == 3:
        return _from_pixels(pixels)
    values = pixels
    for tables, else_by in (
        ("ModalityLUTSequence", apply_modality_lut),
        ("VOILUTSequence", apply_voi_lut),
    ):
        tables_found = [one for one in file.get(tables) or () if "LUTData" in one]
        values = (
            _apply_dicom_table(values, tables_found[0]) if tables_found else else_by(values, file)
        )
    values = np.array(values, np.float64)
    values -= values.min()
    values *= 255.0 / max(values.max(), 1e-9)
    grey = np.rint(values).astype(np.uint8)
    return Image.fromarray(255 - grey if file.PhotometricInterpretation == "MONOCHROME1" else grey)


def _apply_dicom_table(pixels: np.ndarray, item: Any) -> np.ndarray:
    """Through a table of DICOM's (PS3.3 C.11.1.1): values beyond its ends take what stands there.

    pydicom's own keeps places in the type of the table's entries. That type is too small for an
    8-bit table of more than 256 entries. And pydicom takes no modality's table of 10 or 12 bits.
    """
    count, first, _ = item.LUTDescriptor
    data = item.LUTData
    if isinstance(data, bytes):
        data = np.frombuffer(data, "<u1" if len(data) == count else "<u2")
    table = np.atleast_1d(np.asarray(data, np.int64))
    return table[np.clip(np.asarray(pixels, np.int64) - first, 0, len(table) - 1)]


def _open_image(content: Any) -> Image.Image:
    if isinstance(content, Image.Image):
        return content
    if not isinstance(content, bytes):
        return _from_pixels(content)
    return Image.open(BytesIO(content), formats=FORMATS)


def _from_pixels(pixels: np.ndarray) -> Image.Image:
    if pixels.dtype == np.uint16:
        pixels = high_byte(pixels)
    return Image.fromarray(pixels[..., 0] if pixels.shape[-1:] == (1,) else pixels)
