"""Keyed digests of what records are and say."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
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
    begin, digests = _hash(key, WIDE, (kind,)).copy, []
    for one in said:
        whole = begin()
        whole.update(one)
        digests.append(whole.digest())
    return np.frombuffer(b"".join(digests), np.uint8).reshape(-1, WIDE)


def content_digest(content: Any, key: bytes) -> bytes:
    """A keyed digest of what a record says, of 16 bytes.

    It is the same for a row of float32 as for its exact copy in float64. So a table saved in
    another type makes no new people. Pixels keep their type, for 8 and 16 bits show different
    images.
    """
    if isinstance(content, bytes):
        return prf(key, b"file", content)
    if content.ndim == 1:
        return row_digests(content[None], key).tobytes()
    array = np.ascontiguousarray(content)
    kind = f"{array.dtype.str}{array.shape}".encode()
    return prf(key, b"array", kind, array.tobytes())


def row_digests(rows: NDArray[Any], key: bytes) -> Ids:
    """`content_digest` of each of some rows of features.

    Four multilinear hashes of 32 bits under secret words (Lemire & Kaser, arXiv 1202.4961, section
    2): two rows that differ in any bit agree with probability 2^-128, whoever wrote them without
    the key. They work on a block as a whole. Where a record is known by it, a keyed BLAKE2b follows
    (`wide_digests`), which makes the two together as good as random.
    """
    rows = np.ascontiguousarray(rows, "<f8")
    halves = rows.view(np.uint32).reshape(len(rows), 2 * rows.shape[1])
    secret = _secret_words(key, 2 * rows.shape[1])
    # modulo 2^64; a product by @ takes half as long again
    sums = secret[:, 0] + np.einsum("rh,kh->rk", halves.astype(np.uint64), secret[:, 1:])
    return (sums >> np.uint64(32)).astype("<u4").view(np.uint8)


@lru_cache(maxsize=4)
def _secret_words(key: bytes, length: int) -> NDArray[np.uint64]:
    """Words of 64 bits for four hashes of rows of this length: uint64 (4, length + 1)."""
    size, counts = length.to_bytes(8, "little"), range(2 * (length + 1))
    words = ids_of(prf(key, b"words", size, count.to_bytes(8, "little")) for count in counts)
    by_hash = words.view("<u8").reshape(length + 1, 4).T
    return np.ascontiguousarray(by_hash, np.uint64)


def ids_of(values: Iterable[bytes]) -> Ids:
    """Digests of 16 bytes each, one below the other: uint8 (records, 16)."""
    return np.frombuffer(b"".join(values), np.uint8).reshape(-1, ID_BYTES)


def _hash(key: bytes, size: int, parts: Iterable[bytes]) -> Any:
    digest = blake2b(key=key, digest_size=size)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest
