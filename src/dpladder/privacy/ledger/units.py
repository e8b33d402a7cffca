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
    """What home knows of a lineage.

    Args:
        units: All that it ever held.
        numbered: Those of them that are known by a number such as a row has in any table.
        contents: Those of its records that ever counted.
        sizes: How many units its versions had, each beside the kind of their records.
        by_ids: Whether ids of their own decided where its units lie.
        apart: The lineages that are about other people, by the operator's word.
    """

    units: frozenset[bytes] = frozenset()
    numbered: frozenset[bytes] = frozenset()
    contents: frozenset[bytes] = frozenset()
    sizes: frozenset[tuple[str, int]] = frozenset()
    by_ids: bool = False
    apart: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[bytes]:
        """The units that another lineage holds only where it is about the same people."""
        return self.units - self.numbered

    def __or__(self, other: Known) -> Known:
        return Known(
            self.units | other.units,
            self.numbered | other.numbered,
            self.contents | other.contents,
            self.sizes | other.sizes,
            self.by_ids or other.by_ids,
            self.apart | other.apart,
        )


def register_units(
    home: Home,
    lineage: str,
    units: Iterable[bytes],
    records: Collection[tuple[bytes, bytes]],
    confirmed: bool,
    by_ids: bool = False,
    kind: str = "",
    numbered: Iterable[bytes] = (),
) -> None:
    """Remember a version of a lineage by ids keyed with home's "units" subkey: its units, and the
    contents of its records that count, each with its unit, by which the same data under other ids
    is found. Refuse it where another lineage holds the same records; where it is not `confirmed`,
    and another one holds the same units, or it is new and as large as one of the same `kind` that
    may be its older self in another encoding; or where this lineage's own records come under other
    ids. `numbered`: units whose ids are numbers such as rows have, which agree by accident.

    What a lineage once held it keeps. It is written before the others are read: of two lineages
    that register at once, one sees the other.
    """
    own = Known(frozenset(units), frozenset(numbered), frozenset(content for content, _ in records))
    if any(len(identity) != ID_BYTES for identity in own.units | own.contents):
        raise BadInput(f"keyed unit ids must have {ID_BYTES} bytes each.")
    own = own | Known(sizes=frozenset([(kind, len(own.units))]), by_ids=by_ids)
    with _alone(home):
        before = _read(home, lineage)
        if confirmed:
            own = own | Known(apart=frozenset(_others(home, lineage)))
        if own.by_ids and before.by_ids:
            _refuse_other_ids(lineage, records, before)
        if not (confirmed or before.units):
            _refuse_renamed(lineage, own, _others(home, lineage))
        _write(home, lineage, before | own)
        try:
            _refuse_shared(lineage, before | own, own, _others(home, lineage))
        except Refused:
            _write(home, lineage, before)
            raise


def same_data(one: Set[object], other: Set[object]) -> bool:
    """Whether two sets have more in common than an accident explains."""
    shared = len(one & other)
    return shared >= LEAST and shared > ACCIDENT * min(len(one), len(other))


def _refuse_shared(lineage: str, whole: Known, own: Known, others: dict[str, Known]) -> None:
    """The operator's word that a lineage is about other people makes equal ids an accident, and
    never equal records."""
    for name, other in others.items():
        apart = name in whole.apart or lineage in other.apart
        if same_data(own.contents, other.contents):
            raise Refused(
                f"lineages {lineage} and {name} share records, and a person in both would have two "
                "budgets. Make them one lineage, or take the shared records out of one of them."
            )
        if not apart and same_data(own.names, other.names):
            raise Refused(
                f"lineages {lineage} and {name} share units, and a person in both would have two "
                "budgets. Make them one lineage, or take the shared units out of one of them. If "
                "their ids agree by accident and they are about other people, say so with "
                "dataset.new_lineage: true."
            )


def _refuse_renamed(lineage: str, own: Known, others: dict[str, Known]) -> None:
    for name, other in others.items():
        if any(
            kind == known and _alike(len(own.units), size)
            for kind, _ in own.sizes
            for known, size in other.sizes
        ):
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
        _split(data("numbered")),
        _split(data("contents")),
        frozenset(_size(line) for line in data("kinds").decode().splitlines()),
        bool(data("by_ids")),
        frozenset(data("apart").decode().split()),
    )


def _size(line: str) -> tuple[str, int]:
    kind, _, size = line.rpartition(" ")
    return kind, int(size)


def _write(home: Home, lineage: str, known: Known) -> None:
    folder = home.units / lineage
    make_folder(folder)
    replace(folder / "units", b"".join(sorted(known.units)))
    replace(folder / "contents", b"".join(sorted(known.contents)))
    replace(folder / "numbered", b"".join(sorted(known.numbered)))
    sizes = "".join(f"{kind} {size}\n" for kind, size in sorted(known.sizes))
    replace(folder / "kinds", sizes.encode())
    replace(folder / "by_ids", b"yes" if known.by_ids else b"")
    replace(folder / "apart", " ".join(sorted(known.apart)).encode())


def _split(data: bytes) -> frozenset[bytes]:
    return frozenset(data[start : start + ID_BYTES] for start in range(0, len(data), ID_BYTES))
