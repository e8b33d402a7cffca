"""The rows of a source by what a key says of them, and which of them are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.privacy.ids import Ids, id_order, starts_of_equal, words_of
from dpladder.privacy.piles import ID, ArrayOnDisk, Piles

COPY = "copy of another record"


KIND = np.dtype(
    [
        *(("unit", *ID), ("record", *ID), ("content", *ID)),
        *(("label", np.int64), ("part", np.int8), ("index", np.int64), ("group", np.int64)),
        *(("span", np.int64), ("numbered", np.bool_)),
    ]
)


@dataclass(eq=False)
class Rows:
    """Rows of a source, by what their owners and a key say of them: arrays with an entry for each.

    Attributes:
        unit: whose it is, a keyed digest of 16 bytes.
        record: which record it is, within its unit: rows with one `record` are copies or conflict.
        content: a keyed digest of what is stored.
        label: below 0 where the row counts as nothing.
        part: a place in `PARTS`.
        index: its row in the source.
        group: a place among the declared groups; -1 where it is of none.
        span: which span of a document it is.
        numbered: whether its unit's id could be the number of a row in any table.
    """

    unit: Ids
    record: Ids
    content: Ids
    label: NDArray[np.int64]
    part: NDArray[np.int8]
    index: NDArray[np.int64]
    group: NDArray[np.int64]
    span: NDArray[np.int64]
    numbered: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.label)

    def table(self) -> NDArray[Any]:
        """All of it as one array, a row each."""
        table = np.empty(len(self), KIND)
        for name, column in vars(self).items():
            table[name] = column
        return table

    def keep(self, places: NDArray[Any] | slice) -> None:
        """Keep some of the rows, by their places or by a mask. One column after the other, so that
        there is never a second copy of all."""
        for name, column in vars(self).items():
            setattr(self, name, column[places])


def rows_of_piles(piles: Piles) -> Iterator[Rows]:
    """The rows of one pile after the other."""
    for pile in piles:
        # each column one after the other in memory, from which rows are taken faster
        yield Rows(**{name: np.ascontiguousarray(pile[name]) for name in KIND.names or ()})


def sorted_rows(piles: Piles, folder: Path | None) -> Rows:
    """All rows of piles by their record ids, in the order of these: arrays that are mapped."""
    columns = {name: ArrayOnDisk(KIND[name], folder) for name in KIND.names or ()}
    for pile in piles:
        in_order = pile[id_order(pile["record"])]
        for name, column in columns.items():
            column.append(in_order[name])
    return Rows(**{name: column.array() for name, column in columns.items()})


@dataclass
class Problems:
    """What is wrong with which row of a source. Private."""

    checks: list[str] = field(default_factory=list)
    places: list[NDArray[np.int64]] = field(default_factory=list)

    def note(self, check: str, indices: NDArray[np.int64]) -> None:
        """Note that these rows failed a check."""
        if len(indices):
            self.checks.append(check)
            self.places.append(np.array(indices, np.int64))

    def __len__(self) -> int:
        return sum(map(len, self.places))

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Each row and check, in the order of the rows."""
        names = sorted({*self.checks})
        lengths = [len(places) for places in self.places]
        numbers = np.array([names.index(check) for check in self.checks], np.int64)
        checks = np.repeat(numbers, lengths)
        rows = np.concatenate([*self.places, np.empty(0, np.int64)])
        for place in np.lexsort((checks, rows)):
            yield int(rows[place]), names[checks[place]]

    def count(self, check: str) -> int:
        """How many rows failed a check."""
        checked = zip(self.checks, self.places, strict=True)
        return sum(len(places) for name, places in checked if name == check)


def select_rows(
    rows: Rows,
    cap: int | None,
    problems: Problems,
    by_user: bool,
    spans: Callable[[Rows], None] | None = None,
    pool: Callable[[Rows], None] | None = None,
) -> None:
    """Keep one row per record and at most `cap` per unit, all in one part, chosen by keyed hash
    among the unit's own.

    Those that count as nothing come last: a missing one is known by its place alone, which other
    units move, so it must decide nothing.

    Args:
        rows: of a source, in its order: all that its units have.
        cap: records of a unit, at most; None for any number.
        problems: where it is noted which rows are not kept.
        by_user: whether a unit may have several records.
        spans: makes a row of each span of a document.
        pool: gives the rows of a unit one label.
    """
    _drop_copies(rows, problems)
    if by_user:
        _, first = _sort_by_unit(rows)
        unit = np.cumsum(first) - 1
        apart = rows.part != rows.part[np.flatnonzero(first)][unit]
        problems.note("in another part than its unit", rows.index[apart])
        rows.keep(~apart)
    if spans is not None:
        spans(rows)
    if by_user or spans is not None:
        places, first = _sort_by_unit(rows)
        if pool is not None:
            pool(rows)
        if cap is not None:
            starts = np.flatnonzero(first)
            over = places - starts[np.cumsum(first) - 1] >= cap
            problems.note("over its unit's cap", rows.index[over])
            rows.keep(~over)


def _drop_copies(rows: Rows, problems: Problems) -> None:
    """Keep the first row of each record, sorted by record; none of one whose rows differ."""
    order = id_order(rows.record)
    record = rows.record[order]
    first = starts_of_equal(record)
    del record
    again = np.flatnonzero(~first)
    if not len(again):
        rows.keep(order)
        return
    one, before = order[again], order[again - 1]
    differs = np.any(rows.content[one] != rows.content[before], axis=1)
    for column in (rows.label, rows.part, rows.group):
        differs |= column[one] != column[before]
    record_of = np.cumsum(first) - 1
    conflict = np.zeros(int(record_of[-1]) + 1, bool)
    conflict[record_of[again[differs]]] = True
    conflicts = conflict[record_of]
    problems.note("differs from another row with its id", rows.index[order[conflicts]])
    problems.note(COPY, rows.index[order[~first & ~conflicts]])
    rows.keep(order[first & ~conflicts])


def _sort_by_unit(rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Sort rows by their units, and those of a unit so that records that count come first, then by
    keyed id: random to everybody without the key, and the same whoever else is there.

    Returns:
        The places of all rows, and whether each is its unit's first.
    """
    (unit, of_unit), (record, of_record) = words_of(rows.unit), words_of(rows.record)
    rows.keep(np.lexsort((of_record, record, rows.label < 0, of_unit, unit)))
    return np.arange(len(rows)), starts_of_equal(rows.unit)


def unit_slices(rows: Rows) -> Iterator[slice]:
    """The rows of each unit, where they are sorted by unit."""
    starts = np.append(np.flatnonzero(starts_of_equal(rows.unit)), len(rows)).tolist()
    return (slice(start, end) for start, end in pairwise(starts))
