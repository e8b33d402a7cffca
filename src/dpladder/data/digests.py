"""Keyed digests of what records are and say."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.privacy.ids import ID_BYTES, Ids

WIDE = 64  # bytes of a digest of which several are cut


def prf(key: bytes, *parts: bytes) -> bytes:
    """Keyed BLAKE2b, 128 bits, over parts that cannot run into one another."""
    return _hash(key, ID_BYTES, parts).digest()


def wide_digests(key: bytes, kind: bytes, said: Iterable[Any]) -> NDArray[np.uint8]:
    """Keyed BLAKE2b, 512 bits, of a kind and of what each record says: four digests of 128 bits
    each, none of which tells of another. uint8 (records, 64)."""
    begun = _hash(key, WIDE, (kind,))

    def digest(one: Any) -> bytes:
        whole = begun.copy()
        whole.update(one)
        return whole.digest()

    return np.frombuffer(b"".join(map(digest, said)), np.uint8).reshape(-1, WIDE)


def content_digest(content: Any, key: bytes) -> bytes:
    """A keyed digest of what a record says, of 16 bytes.

    It is the same for a row of float32 as for its exact copy in float64. So a table saved in
    another type makes no new people. Pixels keep their type, for 8 and 16 bits show different
    images.
    """
    if isinstance(content, bytes):
        return prf(key, b"file", content)
    array = np.ascontiguousarray(content, "<f8" if content.ndim == 1 else None)
    return prf(key, *_parts_of_array(array.dtype, array.shape), array.tobytes())


def content_digests(rows: NDArray[np.float64], key: bytes) -> Ids:
    """`content_digest` of each of some rows of features."""
    rows = np.ascontiguousarray(rows, "<f8")
    size = rows.shape[1] * rows.itemsize
    begun = _hash(key, ID_BYTES, _parts_of_array(rows.dtype, rows.shape[1:]))
    begun.update(size.to_bytes(8, "little"))
    data = memoryview(rows.reshape(-1).view(np.uint8).data)

    def digest(start: int) -> bytes:
        whole = begun.copy()
        whole.update(data[start : start + size])
        return whole.digest()

    starts = range(0, len(rows) * size, size) if size else [0] * len(rows)
    return ids_of(map(digest, starts))


def ids_of(values: Iterable[bytes]) -> Ids:
    """Digests of 16 bytes each, one below the other: uint8 (records, 16)."""
    return np.frombuffer(b"".join(values), np.uint8).reshape(-1, ID_BYTES)


def _parts_of_array(dtype: np.dtype[Any], shape: tuple[int, ...]) -> tuple[bytes, bytes]:
    return b"array", f"{dtype.str}{shape}".encode()


def _hash(key: bytes, size: int, parts: Iterable[bytes]) -> Any:
    digest = blake2b(key=key, digest_size=size)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest
