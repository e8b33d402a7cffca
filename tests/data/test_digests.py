"""Digests by which rows of features are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpladder.data.digests import content_digest, prf, row_digests

KEY = b"k" * 32


def by_hand(row: Any, key: bytes) -> bytes:
    """Lemire & Kaser's multilinear hash (arXiv 1202.4961, section 2) in Python's whole numbers,
    four times."""
    halves = np.asarray(row, "<f8").view("<u4").tolist()
    size = len(halves).to_bytes(8, "little")
    stream = b"".join(
        prf(key, b"words", size, count.to_bytes(8, "little"))
        for count in range(2 * (len(halves) + 1))
    )
    words = np.frombuffer(stream, "<u8").reshape(-1, 4).tolist()
    sums = [
        sum(half * word[place] for half, word in zip([1, *halves], words, strict=True)) % 2**64
        for place in range(4)
    ]
    return b"".join((one >> 32).to_bytes(4, "little") for one in sums)


@pytest.mark.parametrize("width", [1, 2, 36, 0])
def test_digests_of_rows_are_the_multilinear_hash(width: int) -> None:
    rows = np.random.default_rng(width).normal(size=(5, width))
    rows[rows > 1] = np.nan
    digests = row_digests(rows, KEY)
    assert [one.tobytes() for one in digests] == [by_hand(row, KEY) for row in rows]


def test_a_row_alone_is_known_as_among_others() -> None:
    rows = np.random.default_rng(1).integers(0, 9, (4, 3)).astype(np.float32)
    alone = b"".join(content_digest(row, KEY) for row in rows)
    assert alone == row_digests(rows.astype(np.float64), KEY).tobytes()


def test_every_bit_of_a_row_and_of_the_key_changes_all_of_its_digest() -> None:
    row = np.array([1.5, -2.0, np.nan])
    bits = np.unpackbits(row.view(np.uint8))
    flipped = np.packbits(bits ^ np.eye(len(bits), dtype=np.uint8), axis=1).view(np.float64)
    words = row_digests(np.vstack([row, flipped]), KEY).view(np.uint32)
    assert all(len({*words[:, place].tolist()}) == len(bits) + 1 for place in range(4))
    other = row_digests(row[None], b"j" + KEY[1:]).view(np.uint32)
    assert not np.any(other == words[0])


def test_a_row_is_known_alike_wherever_it_lies() -> None:
    rows = np.random.default_rng(0).normal(size=(7, 4))
    whole = row_digests(rows, KEY)
    assert np.array_equal(row_digests(rows[::-2], KEY), whole[::-2])
    assert np.array_equal(row_digests(np.asfortranarray(rows), KEY), whole)
    assert np.array_equal(row_digests(rows[:0], KEY), whole[:0])
