"""Sets of keyed ids of 16 bytes, as arrays: a hundred million take no more memory than their
bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ID_BYTES = 16
Ids = NDArray[np.uint8]  # (ids, 16); as a set each once, in the order of their bytes


def words_of(ids: Ids) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The first and the last eight bytes of each id, as numbers in the order of the bytes."""
    words = np.ascontiguousarray(ids).view(">u8").reshape(-1, 2)
    return words[:, 0].astype(np.uint64), words[:, 1].astype(np.uint64)


def id_order(ids: Ids) -> NDArray[np.int64]:
    """Where ids stand in the order of their bytes; of equal ones the earlier comes first."""
    first, last = words_of(ids)
    order = np.argsort(first)
    sorted_words = first[order]
    if np.any(
        sorted_words[1:] == sorted_words[:-1]
    ):  # copies, or a coincidence: the latter half decides
        return np.lexsort((last, first))
    return order


def starts_of_equal(ids: Ids) -> NDArray[np.bool_]:
    """Of each of some sorted ids whether it differs from the one before."""
    differs = np.ones(len(ids), bool)
    np.any(ids[1:] != ids[:-1], axis=1, out=differs[1:])
    return differs


def id_set(ids: Ids) -> Ids:
    """Each of some ids once, sorted."""
    ids_in_order = ids[id_order(ids)]
    first = starts_of_equal(ids_in_order)
    return ids_in_order if first.all() else ids_in_order[first]


def contains(known: Ids, ids: Ids) -> NDArray[np.bool_]:
    """Of each id whether a set has it."""
    both = np.concatenate([known, ids])
    order = id_order(both)
    first = starts_of_equal(both[order])
    # of equal ids the set's own comes first, for the order is stable
    from_set = order[np.flatnonzero(first)] < len(known)
    is_known = np.empty(len(both), bool)
    is_known[order] = from_set[np.cumsum(first) - 1]
    return is_known[len(known) :]


def ids_in(data: bytes | NDArray[np.uint8]) -> Ids:
    """Ids that lie one after the other."""
    flat = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
    return flat.reshape(-1, ID_BYTES)
