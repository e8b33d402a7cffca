"""Whose data a lineage holds, as keyed ids.

So a version of the data keeps its units. And the operator is told where somebody would get a second
budget under another name.

Who shares whose data is for the operator's eyes alone (`dpladder check`). It stops no run: an exit
code would tell about whoever decides it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np

from dpladder.errors import BadInput
from dpladder.privacy.ids import Ids, contains, ids_in
from dpladder.privacy.ledger.home import Home, create_once, make_folder, replace
from dpladder.privacy.piles import large_id_set, pieces_of

NO_IDS = ids_in(b"")
FEWEST_SHARED_IDS = 50  # ids in common: fewer say nothing of whose data it is
ACCIDENT = 0.01  # of the smaller set: as much may be in common by chance, as blank images are


@dataclass(frozen=True, eq=False)
class Known:
    """What home knows of a lineage, as sets of ids (privacy/ids.py).

    Args:
        units: All that it ever held.
        numbered: Those of them that are known by a number such as a row has in any table, which
            agrees with another lineage's by accident.
        contents: Those of its records that ever counted.
    """

    units: Ids = field(default_factory=NO_IDS.copy)
    numbered: Ids = field(default_factory=NO_IDS.copy)
    contents: Ids = field(default_factory=NO_IDS.copy)

    @property
    def names(self) -> Ids:
        """The units that another lineage holds only where it is about the same people."""
        return self.units[~contains(self.numbered, self.units)]


def remember_units(home: Home, lineage: str, digest: str, units_now: Known) -> None:
    """Keep what a lineage holds, in home; what it once held it keeps.

    Args:
        home: where it is kept, for the operator's eyes alone.
        lineage: whose units they are.
        digest: what the ledger may note these very units by.
        units_now: ids keyed with home's "units" subkey, which say nothing without it.
    """
    with _lock_units(home):
        folder = home.units / lineage
        make_folder(folder / "versions")
        known = _read_known(home, lineage)
        for name in ("units", "numbered", "contents"):
            before, now = getattr(known, name), getattr(units_now, name)
            both = chain(pieces_of(before), pieces_of(now))
            replace(folder / name, large_id_set(both, len(before) + len(now), folder).data)
        create_once(folder / "versions" / digest, units_now.units.data)


def units_of(home: Home, lineage: str, digest: str) -> Ids:
    """The units that the ledger noted by this digest, as a set of keyed ids. Private.

    Raises:
        BadInput: home has lost them.
    """
    path = home.units / lineage / "versions" / digest
    try:
        return ids_in(path.read_bytes())
    except FileNotFoundError:
        raise BadInput(
            f"{path} is gone, which says whose records this version of the data holds. Restore it "
            "from a backup, or give the data a number of its own: dataset.version."
        ) from None


def same_data(one: Ids, other: Ids) -> bool:
    """Whether two sets have more in common than an accident explains: FEWEST_SHARED_IDS ids, and
    ACCIDENT of the smaller set."""
    shared = int(np.count_nonzero(contains(one, other)))
    return shared >= FEWEST_SHARED_IDS and shared > ACCIDENT * min(len(one), len(other))


def sharing(home: Home, lineage: str, known: Known) -> list[str]:
    """The other lineages that hold the same people or records as these. Private.

    Args:
        home: what it knows of all lineages.
        lineage: whose units these are.
        known: of that lineage.
    """
    names = sorted(path.name for path in home.units.iterdir() if path.name != lineage)
    return [name for name in names if _share(known, _read_known(home, name))]


def _share(one: Known, other: Known) -> bool:
    """Whether two lineages hold the same people or records."""
    return same_data(one.names, other.names) or same_data(one.contents, other.contents)


@contextlib.contextmanager
def _lock_units(home: Home) -> Iterator[None]:
    """One at a time, so that nothing is written over. Where the file system has no locks, two
    clones must not prepare one lineage at the same moment."""
    descriptor = os.open(home.units, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read_known(home: Home, lineage: str) -> Known:
    """What home knows of a lineage; nothing where it was never prepared."""

    return Known(
        *(_ids_at(home.units / lineage / name) for name in ("units", "numbered", "contents"))
    )


def _ids_at(path: Path) -> Ids:
    """The ids in a file, mapped; none where there is no file."""
    if not path.exists() or not path.stat().st_size:
        return NO_IDS
    return ids_in(np.memmap(path, np.uint8, "r"))
