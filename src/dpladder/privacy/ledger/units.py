"""Whose data a lineage holds, as keyed ids, so that nobody gets a second budget under another name.

What is refused here shows in an exit code. Sources and lineages belong to the operator, so nobody
else may ask; and a refusal needs so many units that none of them decides it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Collection, Iterable, Iterator, Set
from dataclasses import dataclass

from dpladder.errors import BadInput, Refused
from dpladder.privacy.ledger.home import Home, make_folder, replace

ID_BYTES = 16
LEAST = 50  # ids in common: fewer say nothing, so that nobody learns about one person
ACCIDENT = 0.01  # of the smaller set: as much may be in common by chance, as blank images are
ALIKE = 0.1  # by how much the sizes of two versions of one lineage may differ


@dataclass(frozen=True)
class Known:
    """What home knows of a lineage: all that it ever held, how large its versions were, and whether
    ids of their own decided where its units lie."""

    units: frozenset[bytes] = frozenset()
    contents: frozenset[bytes] = frozenset()
    sizes: frozenset[int] = frozenset()
    by_ids: bool = False

    def __or__(self, other: Known) -> Known:
        return Known(
            self.units | other.units,
            self.contents | other.contents,
            self.sizes | other.sizes,
            self.by_ids or other.by_ids,
        )


def register_units(
    home: Home,
    lineage: str,
    units: Iterable[bytes],
    records: Collection[tuple[bytes, bytes]],
    confirmed: bool,
    by_ids: bool = False,
) -> None:
    """Remember a version of a lineage by ids keyed with home's "units" subkey: its units, and the
    contents of its records that count, each with its unit, by which the same data under other ids
    is found. Refuse it where another lineage holds the same; where it is new, not `confirmed`, and
    as large as one that may be its older self in another encoding; or where this lineage's own
    records come under other ids.

    What a lineage once held it keeps. It is written before the others are read: of two lineages
    that register at once, one sees the other.
    """
    own = Known(frozenset(units), frozenset(content for content, _ in records))
    if any(len(identity) != ID_BYTES for identity in own.units | own.contents):
        raise BadInput(f"keyed unit ids must have {ID_BYTES} bytes each.")
    own = own | Known(sizes=frozenset([len(own.units)]), by_ids=by_ids)
    with _alone(home):
        before = _read(home, lineage)
        if own.by_ids and before.by_ids:
            _refuse_other_ids(lineage, records, before)
        if not (confirmed or before.units):
            _refuse_renamed(lineage, own, _others(home, lineage))
        _write(home, lineage, before | own)
        try:
            _refuse_shared(lineage, own, _others(home, lineage))
        except Refused:
            _write(home, lineage, before)
            raise


def same_data(one: Set[object], other: Set[object]) -> bool:
    """Whether two sets have more in common than an accident explains."""
    shared = len(one & other)
    return shared >= LEAST and shared > ACCIDENT * min(len(one), len(other))


def _refuse_shared(lineage: str, own: Known, others: dict[str, Known]) -> None:
    for name, other in others.items():
        if same_data(own.units, other.units) or same_data(own.contents, other.contents):
            raise Refused(
                f"lineages {lineage} and {name} share units, and a person in both would have two "
                "budgets. Make them one lineage, or take the shared units out of one of them."
            )


def _refuse_renamed(lineage: str, own: Known, others: dict[str, Known]) -> None:
    for name, other in others.items():
        if any(_alike(len(own.units), size) for size in other.sizes):
            raise Refused(
                f"lineage {lineage} is new, and about as large as {name}, which this home knows. "
                "The same data renamed, or in another encoding, is the same lineage and has one "
                f"budget: then call it {name}. If it is about other people, say so with "
                "dataset.new_lineage: true. Nothing was read for a release, and nothing is spent."
            )


def _refuse_other_ids(
    lineage: str, records: Collection[tuple[bytes, bytes]], before: Known
) -> None:
    """A unit's part follows from its id, so under another one it may be trained on where it was
    tested, and parts would not be disjoint. Where somebody else has the same record, or as many
    records are alike by chance, they say nothing of whose they are."""
    owners: dict[bytes, bytes | None] = {}  # None of several
    for content, unit in records:
        owners[content] = unit if owners.get(content, unit) == unit else None
    alike = sum(owners[content] is None for content, _ in records)
    moved = sum(
        unit is not None and unit not in before.units and content in before.contents
        for content, unit in owners.items()
    )
    if moved >= LEAST and moved > max(alike, ACCIDENT * len(owners)):
        raise Refused(
            f"lineage {lineage}: records that this home knows come under other ids. A unit's part "
            "follows from its id, so that somebody who was tested on would be trained on. Write "
            "ids as they were before (1 and not 1.0, which whole numbers become in a table where "
            "one is missing), or ask for the ids of before where they were drawn anew. Nothing "
            "was read for a release, and nothing is spent."
        )


def _alike(one: int, other: int) -> bool:
    return min(one, other) >= LEAST and abs(one - other) <= ALIKE * max(one, other)


@contextlib.contextmanager
def _alone(home: Home) -> Iterator[None]:
    """One registration at a time, so that none is written over. Where the file system has no locks,
    two clones must not prepare one lineage at the same moment."""
    descriptor = os.open(home.units, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _others(home: Home, lineage: str) -> dict[str, Known]:
    names = sorted(path.name for path in home.units.iterdir() if path.name != lineage)
    return {name: _read(home, name) for name in names}


def _read(home: Home, lineage: str) -> Known:
    folder = home.units / lineage

    def data(name: str) -> bytes:
        path = folder / name
        return path.read_bytes() if path.exists() else b""

    return Known(
        _split(data("units")),
        _split(data("contents")),
        frozenset(map(int, data("sizes").split())),
        bool(data("by_ids")),
    )


def _write(home: Home, lineage: str, known: Known) -> None:
    folder = home.units / lineage
    make_folder(folder)
    replace(folder / "units", b"".join(sorted(known.units)))
    replace(folder / "contents", b"".join(sorted(known.contents)))
    replace(folder / "sizes", " ".join(map(str, sorted(known.sizes))).encode())
    replace(folder / "by_ids", b"yes" if known.by_ids else b"")


def _split(data: bytes) -> frozenset[bytes]:
    return frozenset(data[start : start + ID_BYTES] for start in range(0, len(data), ID_BYTES))
