"""Rows that may be too many for memory, on disk in piles: temporary files, one for each range of
the first two bytes of an id.

All rows of an id are in one pile, and a pile is small enough to be sorted. So what follows from an
id's own rows is found pile by pile, in the memory of one of them. Piles come in the order of their
ids. Keyed ids are as good as random, so piles are about as large as one another.

The files have no name, only their owner can read them, and they are gone with the process. Over NFS
a machine that crashes leaves them behind, under names that begin with .nfs.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dpladder.privacy.ids import ID_BYTES, Ids, id_set

ID = (np.uint8, ID_BYTES)  # an id, as an entry of an array
BYTES_OF_A_PILE = 2**26
ROWS_OF_A_PILE = 2**21
MOST_PILES = 128  # files that are open at once, of which there are three such sets
BYTES_AT_ONCE = 2**24  # of an array that is read piece by piece


class Piles:
    """Rows in piles.

    Args:
        kind: of a row, such as a structured type.
        count: how many rows there will be, at most; of more, piles are larger.
        folder: where the files lie, which is private; None: where the system keeps such files.
    """

    def __init__(self, kind: DTypeLike, count: int, folder: Path | None) -> None:
        self._kind, self._count = np.dtype(kind), count
        shares = count * self._kind.itemsize / BYTES_OF_A_PILE, count / ROWS_OF_A_PILE
        self._number = min(MOST_PILES, max(1, math.ceil(max(shares))))
        self._files = [TemporaryFile(dir=folder) for _ in range(self._number)]  # noqa: SIM115

    def add(self, ids: Ids, rows: NDArray[Any]) -> None:
        """Lay rows on the piles of their ids. Within a pile they keep the order in which they
        come."""
        leading = ids[:, 0].astype(np.int64) * 256 + ids[:, 1]
        self._lay(leading * self._number >> 16, rows)

    def add_at(self, places: NDArray[np.int64], rows: NDArray[Any]) -> None:
        """Lay rows on piles by their places, from 0 to the count."""
        self._lay(places * self._number // max(1, self._count), rows)

    def ranges(self) -> Iterator[range]:
        """Which places lie on each pile, where rows were added by these."""
        ends = [math.ceil(pile * self._count / self._number) for pile in range(self._number + 1)]
        return (range(first, end) for first, end in pairwise(ends))

    def _lay(self, pile: NDArray[np.int64], rows: NDArray[Any]) -> None:
        """Lay each row on the pile of this number."""
        if self._number > 1:
            rows = rows[np.argsort(pile.astype(np.uint8), kind="stable")]
        ends = np.cumsum(np.bincount(pile, minlength=self._number))
        for file, some in zip(self._files, np.split(rows, ends[:-1]), strict=True):
            file.write(np.ascontiguousarray(some).view(np.uint8).data)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """The rows of one pile after the other, each once: its file is gone then."""
        for file in self._files:
            with file:
                file.seek(0)
                rows = np.frombuffer(file.read(), self._kind)
            yield rows


class ArrayOnDisk:
    """An array on disk, that is written piece by piece.

    Args:
        kind: of an entry, such as a number or an id.
        folder: where the file lies, as that of piles.
    """

    def __init__(self, kind: DTypeLike, folder: Path | None) -> None:
        self._kind, self._count = np.dtype(kind), 0
        # it is closed when nobody asks for the array any more
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115

    def append(self, piece: NDArray[Any]) -> None:
        """Write the next entries."""
        self._file.write(np.ascontiguousarray(piece).view(np.uint8).data)
        self._count += len(piece)

    def array(self) -> NDArray[Any]:
        """All entries, once the last is written: mapped, so that memory holds those alone that are
        looked at. They can be changed."""
        self._file.flush()
        shape = (self._count, *self._kind.shape)
        if not self._count:
            return np.empty(shape, self._kind.base)
        return np.memmap(self._file, self._kind.base, "r+", shape=shape)


def mapped_zeros(count: int, kind: DTypeLike, folder: Path | None) -> NDArray[Any]:
    """An array of zeros on disk. Its room is taken at once, for where a disk is full a mapped array
    would end the process."""
    if not count:
        return np.zeros(0, kind)
    with TemporaryFile(dir=folder) as file:
        size = count * np.dtype(kind).itemsize
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:  # on macOS
            file.truncate(size)
        return np.memmap(file, kind, "r+", shape=(count,))


def forget_pages(array: NDArray[Any]) -> None:
    """Let the kernel take back the memory of a mapped array. What was written stays in the file,
    and what is read again comes from the page cache."""
    mapping = getattr(array, "_mmap", None)
    if mapping is not None:
        mapping.madvise(mmap.MADV_DONTNEED)


def blocks_of(count: int, size: int = ID_BYTES) -> Iterator[slice]:
    """Places from 0 to the count, some at a time, of entries that have so many bytes each."""
    step = max(1, BYTES_AT_ONCE // max(1, size))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


def pieces_of(ids: Ids, where: NDArray[np.bool_] | None = None) -> Iterator[Ids]:
    """Ids, some at a time, whose memory is let go where they are mapped.

    Args:
        ids: of any number.
        where: which of them; None: all.
    """
    for some in blocks_of(len(ids)):
        yield ids[some] if where is None else ids[some][where[some]]
        forget_pages(ids)


def large_id_set(pieces: Iterable[Ids], count: int, folder: Path | None) -> Ids:
    """Each of some ids once, sorted (`id_set`), in the memory of a pile.

    Args:
        pieces: the ids, some at a time.
        count: how many there are, at most.
        folder: where piles lie.
    """
    piles, ids = Piles(ID, count, folder), ArrayOnDisk(ID, folder)
    for piece in pieces:
        piles.add(piece, piece)
    for pile in piles:
        ids.append(id_set(pile))
    return ids.array()
