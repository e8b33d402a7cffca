"""Sealed files: HDF5 whose arrays can be memory-mapped, and whose every byte a key vouches for.

The seal is an HMAC over the attributes and a two-level hash tree of the arrays: sha256 of each 4
MiB leaf, in order. Opening hashes everything, on all cores, before a single value is used. 3.3 GB
take about a second on two cores, as long as one pass of training over the same bytes. That leaves
them in the page cache. A lazier check would let a trial release something computed from bytes
nobody vouched for. What is verified is what is used: arrays are read through the one memory map
that was hashed, never through HDF5 again. Someone who can write to the file while a job runs is
outside.
"""

from __future__ import annotations

import hmac
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import numpy as np
from numpy.typing import DTypeLike, NDArray

from dpladder import formats
from dpladder.data.files import replacing
from dpladder.data.parallel import cores
from dpladder.errors import BadInput
from dpladder.formats import FORMATS, Newer
from dpladder.privacy.piles import blocks_of, forget_pages

LEAF = 4 << 20  # bytes
MOST_MAPPED = 16 * LEAF  # that are hashed before their memory is let go
ALIGNMENT = 64  # bytes; a cache line, and enough for every number type
SEAL = "seal"

Attrs = Mapping[str, str | int]


@dataclass(frozen=True)
class Blocks:
    """An array that is written piece by piece along its first axis, so that it need not fit into
    memory.

    Attributes:
        shape: of the whole array.
        dtype: that pieces are written as.
        pieces: in order, each of any number of rows; together as many as the shape says.
    """

    shape: tuple[int, ...]
    dtype: DTypeLike
    pieces: Iterable[NDArray[Any]]


@dataclass(frozen=True)
class Sealed:
    """A file as it was sealed. `digest` is the seal: it names these exact bytes, and only a key
    holder can compute it."""

    attrs: Attrs
    arrays: Mapping[str, NDArray[Any]]
    digest: str


def write(
    path: Path, arrays: Mapping[str, NDArray[Any] | Blocks], attrs: Attrs, key: bytes
) -> None:
    """Write, seal, sync and only then give the file its name: who reads it reads all of it.

    Args:
        path: of the file.
        arrays: whole, or to be written piece by piece.
        attrs: what the file says of itself, which the seal covers too.
        key: home's, for seals: nobody without it can make a file that is taken for one of these.
    """
    blocks = {
        name: array if isinstance(array, Blocks) else rows_of(array)
        for name, array in arrays.items()
    }
    with replacing(path) as temporary:
        try:
            _lay_out(temporary, blocks, attrs)
        except RuntimeError as error:  # what h5py raises when the file cannot grow
            raise OSError("no room") from error
        places = _places(temporary)
        with temporary.open("r+b") as file:
            for name, (offset, _, _) in places.items():
                file.seek(offset)
                _fill(file, blocks[name])
        seal = _seal(attrs, {name: _map(temporary, *place) for name, place in places.items()}, key)
        with h5py.File(temporary, "r+") as file:
            file.attrs.modify(SEAL, np.frombuffer(seal, np.uint8))


def read(path: Path, key: bytes) -> Sealed:
    """Open a sealed file and verify every byte of it.

    Args:
        path: of the file.
        key: home's, for seals.

    Raises:
        BadInput: it is missing, damaged, unreadable, or another key sealed it.
        Newer: a later dpladder wrote it.
    """
    try:
        attrs, seal = read_attrs(path)
        arrays = {name: _map(path, *place) for name, place in _places(path).items()}
    except FileNotFoundError:
        raise BadInput(f"{path} does not exist. Run the rule that makes it.") from None
    except PermissionError:
        raise BadInput(
            f"{path} cannot be opened: no permission. It belongs to another user."
        ) from None
    except Newer:
        raise
    except Exception as error:  # whatever HDF5 and its binding trip over in damaged bytes
        raise BadInput(
            f"{path} is truncated, or not a file that dpladder wrote. Delete it and run again."
        ) from error
    if not hmac.compare_digest(seal, _seal(attrs, arrays, key)):
        raise BadInput(
            f"{path} was changed after it was written, or was written under another home's key. "
            "Set DPLADDER_HOME to the home it was made with, or delete it and run again."
        )
    return Sealed(attrs, arrays, seal.hex())


def read_attrs(path: Path) -> tuple[dict[str, str | int], bytes]:
    """The attributes as they stand, not yet vouched for, and the seal that `read` compares them
    with. The format's number is under no seal: what a cache is known by must not hang on which
    dpladder wrote it."""
    with h5py.File(path, "r", locking=False) as file:
        values: dict[str, Any] = {
            name: value if isinstance(value, str) else value.tolist()
            for name, value in file.attrs.items()
        }
    formats.check("cache", path, values.pop(formats.KEY, None))
    return values, bytes(values.pop(SEAL))


def rows_of(array: NDArray[Any], places: NDArray[np.int64] | None = None) -> Blocks:
    """An array, or some of its rows, as it is written: some at a time, whose memory is let go where
    it is mapped."""

    def pieces() -> Iterator[NDArray[Any]]:
        for some in blocks_of(count, array.dtype.itemsize * math.prod(array.shape[1:])):
            yield array[some] if places is None else array[places[some]]
            forget_pages(array)

    count = len(array if places is None else places)
    return Blocks((count, *array.shape[1:]), array.dtype, pieces())


def _lay_out(path: Path, blocks: Mapping[str, Blocks], attrs: Attrs) -> None:
    """Room for every array, contiguous and aligned, and a seal that cannot yet be right."""
    with h5py.File(path, "w", alignment_threshold=1, alignment_interval=ALIGNMENT) as file:
        file.attrs.update(attrs)
        file.attrs[formats.KEY] = FORMATS["cache"]
        file.attrs[SEAL] = np.zeros(sha256().digest_size, np.uint8)
        for name, array in blocks.items():
            creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            creation.set_layout(h5py.h5d.CONTIGUOUS)
            creation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
            creation.set_obj_track_times(False)  # the same content is the same file
            space = h5py.h5s.create_simple(array.shape)
            h5py.h5d.create(
                file.id, name.encode(), h5py.h5t.py_create(np.dtype(array.dtype)), space, creation
            )


def _places(path: Path) -> dict[str, tuple[int, np.dtype, tuple[int, ...]]]:
    """Where each array lies in the file: offset, type, shape."""
    size = path.stat().st_size
    places = {}
    with h5py.File(path, "r", locking=False) as file:
        for name, array in sorted(file.items()):
            offset = array.id.get_offset() if array.nbytes else size
            if offset is None or array.dtype.hasobject or offset + array.nbytes > size:
                raise ValueError("an array is not contiguous in this file")
            places[name] = (offset, array.dtype, array.shape)
    return places


def _map(path: Path, offset: int, dtype: np.dtype, shape: tuple[int, ...]) -> NDArray[Any]:
    """An array in the file, as memory that is read when it is used."""
    if 0 in shape:  # nothing to map
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", offset, shape)


def _fill(file: BinaryIO, array: Blocks) -> None:
    """Write an array's pieces one after the other."""
    dtype = np.dtype(array.dtype)
    rows = 0
    for piece in array.pieces:
        file.write(np.ascontiguousarray(piece, dtype).data)
        rows += len(piece)
    if rows != array.shape[0]:
        raise ValueError("the pieces of an array do not add up to its length")


def _seal(attrs: Attrs, arrays: Mapping[str, NDArray[Any]], key: bytes) -> bytes:
    """An HMAC over the attributes and, of each array, type, shape and hash tree."""
    described = {
        name: [array.dtype.str, array.shape, _tree(array).hex()]
        for name, array in sorted(arrays.items())
    }
    return hmac.digest(key, json.dumps([dict(attrs), described], sort_keys=True).encode(), "sha256")


def _tree(array: NDArray[Any]) -> bytes:
    """The hash of the hashes of an array's leaves, in order."""
    data = memoryview(array.reshape(-1).view(np.uint8).data)
    whole = sha256()
    with ThreadPoolExecutor(cores()) as pool:  # hashing large buffers releases the GIL
        for first in range(0, len(data), MOST_MAPPED):
            some = data[first : first + MOST_MAPPED]
            leaves = (some[start : start + LEAF] for start in range(0, len(some), LEAF))
            whole.update(b"".join(pool.map(lambda leaf: sha256(leaf).digest(), leaves)))
            forget_pages(array)
    return whole.digest()
