"""Bags: an HDF5 file with many rows of features, as CLAM and STAMP write one for each slide. Such a
file is one record, the mean of its rows.

How wide rows are is public, from the config: no file decides it for another one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np

from dpladder.data.arrays import claims_too_much, is_self_contained

SUFFIXES = (".h5", ".hdf5")
NAMES = ("feats", "features")
LARGEST = 2**30  # numbers of a bag: some 700,000 rows of 1,536
BLOCK = 2**22  # numbers that are added up at a time


def bag_of(file: Path, width: int) -> Any:
    """The mean of the rows that are finite, float64 (width,), in which nothing is a number where
    there are none.

    A file that is no bag of this width gives bytes that say why, and none where there is no file.
    So it is one bad record.

    Args:
        file: of one record.
        width: numbers of a row, from the config.
    """
    if not file.is_file():
        return b""
    try:
        with h5py.File(file, "r", locking=False) as bag, np.errstate(all="ignore"):
            name = next((name for name in NAMES if is_self_contained(bag, name)), None)
            return b"it holds no feats" if name is None else _mean(bag[name], width)
    except Exception:  # whatever HDF5 and its binding trip over in damaged bytes
        return b"it is not readable as HDF5"


def _mean(rows: Any, width: int) -> Any:
    """The mean of a bag's finite rows, read block by block, or bytes that say what is wrong with
    it."""
    if not isinstance(rows, h5py.Dataset) or rows.ndim != 2 or rows.dtype.kind not in "fiu":
        return b"its feats are no rows of numbers"
    if rows.shape[1] != width:
        return f"its feats are {rows.shape[1]} wide".encode()
    if rows.size > LARGEST:
        return b"its feats are too many"
    if claims_too_much(rows, width):
        return b"its feats are more than it holds, or lie in too large a chunk"
    total, count, step = np.zeros(width), 0, max(1, BLOCK // width)
    # Whole chunks, so that none is decoded twice.
    tall = step if rows.chunks is None else rows.chunks[0] * max(1, step // rows.chunks[0])
    for start in range(0, len(rows), tall):
        rows_read = rows[start : start + tall]
        for part in range(0, len(rows_read), step):
            block = rows_read[part : part + step].astype(np.float64)
            finite = np.isfinite(block).all(axis=1)
            total += block[finite].sum(axis=0)
            count += int(finite.sum())
    return total / count if count else np.full(width, np.nan)
