"""Whose data a lineage holds, as keyed ids, so that nobody gets a second budget under another name."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator

from dpladder.errors import BadInput, Refused
from dpladder.privacy.home import Home, replace

ID_BYTES = 16


def register_units(home: Home, lineage: str, keyed_ids: Iterable[bytes]) -> None:
    """Remember the units of a lineage, by ids keyed with home's "units" subkey; refuse any that another lineage knows.

    What a lineage once held it keeps. Its own set is written before the others are read: of two lineages that register
    at once, one sees the other.
    """
    own = set(keyed_ids)
    if any(len(unit) != ID_BYTES for unit in own):
        raise BadInput(f"keyed unit ids must have {ID_BYTES} bytes each.")
    with _alone(home):
        known = _units(home, lineage)
        replace(home.units / lineage, b"".join(sorted(known | own)))
        for other in sorted(path.name for path in home.units.glob("[!.]*")):
            if other != lineage and not own.isdisjoint(_units(home, other)):
                replace(home.units / lineage, b"".join(sorted(known)))
                raise Refused(
                    f"lineages {lineage} and {other} share units, and a person in both would have two budgets. Make them "
                    "one lineage, or take the shared units out of one of them."
                )


@contextlib.contextmanager
def _alone(home: Home) -> Iterator[None]:
    """One registration at a time, so that none is written over. Where the file system has no locks, two clones must not
    prepare one lineage at the same moment."""
    descriptor = os.open(home.units, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _units(home: Home, lineage: str) -> set[bytes]:
    path = home.units / lineage
    data = path.read_bytes() if path.exists() else b""
    return {data[start : start + ID_BYTES] for start in range(0, len(data), ID_BYTES)}
