"""Tests of a shift: images corrupted as a function of each image alone, and another source's labels
by their names.

Blur and noise are ImageNet-C's Gaussian ones (Hendrycks & Dietterich 2019, ICLR, appendix B), on
the image that the network sees. There the deviation of a blur is so many of 224 pixels, and that of
noise a share of the full range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from dpladder.config.records import Corruption, Matching
from dpladder.data.datasets import class_count, classes_of
from dpladder.data.sources import text

Pixels = NDArray[np.uint8]

BLUR = (1.0, 2.0, 3.0, 4.0, 6.0)  # pixels of an image with a side of SIDE
NOISE = (0.08, 0.12, 0.18, 0.26, 0.38)  # of the full range
SIDE = 224
DIGITS = 20  # of a class's number, at most: Python refuses to read very many


def corrupt_image(image: Pixels, how: Corruption) -> Pixels:
    """An 8-bit RGB image, blurred or with noise: the same every time.

    Noise is drawn from a seed that is a digest of the image. So it is a function of the record, and
    no mechanism's.

    Args:
        image: uint8 (height, width, 3).
        how: the kind, and a severity from 1 to 5.
    """
    place = how.severity - 1
    if how.kind == "blur":
        from scipy.ndimage import gaussian_filter  # half a second that every other job saves

        sd = BLUR[place] * min(image.shape[:2]) / SIDE
        pixels = gaussian_filter(image.astype(np.float64), (sd, sd, 0.0), mode="nearest")
    else:
        seed = int.from_bytes(blake2b(image.tobytes(), digest_size=16).digest(), "little")
        # no noise of a mechanism: a part of the record
        drawn = np.random.default_rng(seed).normal(size=image.shape)
        pixels = image + 255.0 * NOISE[place] * drawn
    return np.rint(pixels.clip(0.0, 255.0)).astype(np.uint8)


def class_mapping(how: Matching) -> tuple[Callable[[object], int], int]:
    """From another source's label to the model's own class, by name, or to -1; and how many classes
    there are."""
    counts_as = {text(label): text(name) for label, name in how.counts_as}
    # classes that have no names are meant by their numbers, and where the config says so alone
    if how.names is None:
        count = class_count(classes_of(how.classes, how.source))
        numbers = {str(place): place for place in range(count)}
        return lambda label: numbers.get(counts_as.get(text(label), ""), -1), count
    places = {text(name): place for place, name in enumerate(how.names)}

    def place(label: object) -> int:
        label_text = text(label)
        name = _label_name(label_text, how.labels)
        return places.get(counts_as.get(label_text) or counts_as.get(name, name), -1)

    return place, len(places)


def _label_name(label: str, names: Sequence[str]) -> str:
    """What a label is called: where its source numbers them, by the list of their names."""
    known = (
        label.isdecimal() and len(label) < DIGITS and label not in names and int(label) < len(names)
    )
    return text(names[int(label)]) if known else label
