"""Records of a table, a block of rows at a time: so a table of any length is read in the memory of
a few blocks."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count as count_up
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpladder.data.cells import Cells, joined
from dpladder.data.layout import OF_CLASS
from dpladder.data.parallel import ordered_map

AHEAD = 1  # blocks that are read while one is worked on


@dataclass(frozen=True)
class CellRows:
    """Rows of a table, as they were read.

    Attributes:
        columns: cells by the name of the column.
        said: of each row all that it says, as columns of bytes; empty where nobody asks.
    """

    columns: Mapping[str, Cells]
    said: Sequence[Any] = ()

    def some(self, mask: NDArray[np.bool_]) -> CellRows:
        """The rows that a mask names, without what they say beside their columns."""
        return CellRows({name: cells.some(mask) for name, cells in self.columns.items()})


@dataclass(frozen=True)
class Block:
    """Consecutive records of a table. Private.

    Attributes:
        start: the index of the first.
        features: float64 (records, width).
        rows: their cells.
        column_of: the column of each role.
        number_roles: roles whose cells are read as numbers.
    """

    start: int
    features: NDArray[np.float64]
    rows: CellRows
    column_of: Mapping[str, str]
    number_roles: Collection[str] = ()

    def __len__(self) -> int:
        return len(self.features)

    def values(self, role: str) -> tuple[NDArray[np.int64], Sequence[Any]] | None:
        """The different values of a role, and of each record which one it has; None where no column
        has the role."""
        return self._values_by_role[role]

    @cached_property
    def _values_by_role(self) -> Mapping[str, tuple[NDArray[np.int64], Sequence[Any]] | None]:
        """The values of each role."""
        distinct: defaultdict[str, Any] = defaultdict(lambda: None)
        for role, name in self.column_of.items():
            distinct[role] = values_of(self.rows.columns[name], role in self.number_roles)
        of_classes = [both for role, both in distinct.items() if role.startswith(OF_CLASS)]
        if of_classes:
            columns = ([values[code] for code in codes] for codes, values in of_classes)
            distinct["label"] = np.arange(len(self)), [*zip(*columns, strict=True)]
        return distinct

    def lines(self) -> tuple[NDArray[np.int64], memoryview]:
        """All that each record says, one after the other, and where each begins."""
        return joined(self.rows.said, len(self))


def values_of(cells: Cells, as_numbers: bool) -> tuple[NDArray[np.int64], Sequence[Any]]:
    """The different values of cells, and of each cell which one it has; of numbers, all of them."""
    if as_numbers:
        return np.arange(len(cells)), cells.numbers().tolist()
    return cells.values()


class Size(Protocol):
    """How many rows a table has that was not read yet.

    Attributes:
        likely_count: by some of them.
        largest_count: by what none of them decides alone.
    """

    @property
    def likely_count(self) -> int: ...

    @property
    def largest_count(self) -> int: ...


class TableBlocks:
    """The blocks of a table, which are found as they are asked for.

    Args:
        count: how many rows a block has, by its number; None behind the last one.
        read: the features and the cells of one, by its number. A mask names the rows whose
            features alone are needed.
        column_of: the column of each role.
        number_roles: roles whose cells are read as numbers.
        size: how many rows there are, without a look at each; None where that is known.
    """

    def __init__(
        self,
        count: Callable[[int], int | None],
        read: Callable[[int, NDArray[np.bool_] | None], tuple[NDArray[np.float64], CellRows]],
        column_of: Mapping[str, str],
        number_roles: Collection[str] = (),
        size: Size | None = None,
    ) -> None:
        self._count, self._starts, self._complete = count, [0], False
        self._read, self.column_of, self._number_roles = read, column_of, number_roles
        self._kept = lru_cache(maxsize=2)(self._block)
        self._size = size

    @property
    def likely_count(self) -> int:
        """How many rows there may be, for a bar."""
        return len(self) if self._size is None else self._size.likely_count

    @property
    def largest_count(self) -> int:
        """How many rows there are at most, whatever one of them says."""
        return len(self) if self._size is None else self._size.largest_count

    def __len__(self) -> int:
        if not self._complete:
            for _ in self._numbers():
                pass
        return self._starts[-1]

    def __iter__(self) -> Iterator[Block]:
        """All blocks, in order."""
        return ordered_map(self._block, self._numbers(), AHEAD)

    def features(
        self, wanted: Callable[[slice], NDArray[np.bool_]]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Records in order, some at a time: their indices and features.

        Args:
            wanted: of some records, whether each is wanted.
        """

        def read(number: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            start, end = self._starts[number : number + 2]
            mask = wanted(slice(start, end))
            features, _ = self._read(number, mask)
            return start + np.flatnonzero(mask), features

        return ordered_map(read, self._numbers(), AHEAD)

    def _numbers(self) -> Iterator[int]:
        """The numbers of all blocks. Of one that is given, it is known where it starts and ends."""
        for number in count_up():
            if number + 1 == len(self._starts):
                rows = self._count(number)
                if rows is None:
                    self._complete = True
                    return
                self._starts.append(self._starts[-1] + rows)
            yield number

    def row(self, index: int) -> NDArray[np.float64]:
        """The features of one record."""
        block = self._with(index)
        features: NDArray[np.float64] = block.features[index - block.start]
        return features

    def line(self, index: int) -> bytes:
        """All that one record says."""
        block = self._with(index)
        offsets, data = block.lines()
        place = index - block.start
        return bytes(data[offsets[place] : offsets[place + 1]])

    def value(self, role: str, index: int) -> Any:
        """What one record has of a role."""
        block = self._with(index)
        distinct = block.values(role)
        return None if distinct is None else distinct[1][distinct[0][index - block.start]]

    def _with(self, index: int) -> Block:
        """The block of a record. The last ones are kept."""
        if index >= len(self):
            raise IndexError(index)
        return self._kept(bisect_right(self._starts, index) - 1)

    def _block(self, number: int) -> Block:
        features, rows = self._read(number, None)
        start = self._starts[number]
        return Block(start, features, rows, self.column_of, self._number_roles)


@dataclass(frozen=True)
class RoleColumn(Sequence[Any]):
    """What every record of a table has of one role, read where it is asked for."""

    blocks: TableBlocks
    role: str

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self.blocks.value(self.role, index)
