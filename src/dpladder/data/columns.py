"""A table's columns as features, by what the config declares of them: numbers, numbers of a public
range, or one of public levels. A function of each row alone: no value decides what another one
means."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

from dpladder.config.curves import place_in_column
from dpladder.config.dataset_sections import Chosen, Column
from dpladder.config.level_texts import bytes_as_text, level_as_text, number_as_text
from dpladder.section import from_document, values_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

Find = Callable[[str], Any]


def name_of(column: Chosen) -> str:
    """The name of a column that the config chooses, declared or not."""
    return column if isinstance(column, str) else column.name


def levels_of(column: Chosen) -> tuple[str, ...]:
    """Its declared levels; none where it holds numbers."""
    return () if isinstance(column, str) else column.levels


def matrix_of(columns: Sequence[Chosen], find: Find) -> Matrix:
    """Rows of features, float64 (rows, numbers).

    A number that is missing, or none, is not finite, and its record counts as nothing. A level that
    was not declared is none of them, so all its numbers are 0.

    Args:
        columns: those that are features, in order. One of levels makes a number for each level, one
            with marks for missing values makes two.
        find: from a column's name to its cells, or to a list of values.
    """
    import numpy as np

    cells_of_column = ((column, find(name_of(column))) for column in columns)
    return np.column_stack(
        [
            _encode_column(column, cells if hasattr(cells, "numbers") else Listed(cells))
            for column, cells in cells_of_column
        ]
    )


class ColumnCells(Protocol):
    """A column's cells, whatever holds them."""

    def numbers(self) -> Matrix:
        """Of each cell its number, NaN where it is none: float64 (rows,)."""

    def missing(self) -> NDArray[np.bool_]:
        """Of each cell whether it is missing (`is_missing`)."""

    def values(self) -> tuple[NDArray[np.int64], Sequence[Any]]:
        """Different values, and of each cell which one it is."""


@dataclass(frozen=True)
class Listed:
    """Cells as values of Python, one after the other."""

    cells: Sequence[Any]

    def numbers(self) -> Matrix:
        """Of each cell its number, NaN where it is none."""
        import numpy as np

        if isinstance(self.cells, np.ndarray) and self.cells.dtype.kind in "fiub":
            return self.cells.astype(np.float64)
        return np.array([number_of(value) for value in self.cells], np.float64)

    def missing(self) -> NDArray[np.bool_]:
        """Of each cell whether it is missing."""
        import numpy as np

        return np.array([is_missing(value) for value in self.cells], bool)

    def values(self) -> tuple[NDArray[np.int64], Sequence[Any]]:
        """The cells themselves, and their places."""
        import numpy as np

        return np.arange(len(self.cells)), self.cells


def _encode_column(column: Chosen, cells: ColumnCells) -> Matrix:
    """A column's numbers, (rows, 1) or more: numbers of a range are scaled to -1 to 1, levels are 0
    or 1."""
    import numpy as np

    if isinstance(column, str):
        return cells.numbers()[:, None]
    if column.levels:
        places, values = cells.values()
        texts = [level_as_text(value) for value in values]
        levels = [level_as_text(level) for level in column.levels]
        shape = (len(texts), len(levels))
        return np.array(
            [[text == level for level in levels] for text in texts], np.float64
        ).reshape(shape)[places]
    numbers = cells.numbers()
    absent = np.zeros(len(numbers), bool)
    if column.missing is not None:
        absent = cells.missing()
        numbers = np.where(absent, column.missing, numbers)
    if column.range is not None:
        numbers = place_in_column(column, np.clip(numbers, *column.range), np.log)
    return np.column_stack([numbers, absent]) if column.mark_missing else numbers[:, None]


def is_missing(value: Any) -> bool:
    """Whether a number was left out: nothing, blank, or what pandas writes there. Other words are
    no numbers, and nothing fills them in."""
    if value is None or (isinstance(value, str) and value.strip().lower() in ("", "nan")):
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas' NA; an array
        return True


def number_of(value: Any) -> float:
    """The number that a cell is, or says; NaN where it is none."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*")


def with_point(cell: str | None) -> str | None:
    """A number as Python writes it: 1,5 becomes 1.5. Only for tables between semicolons or tabs,
    where a comma can begin decimals."""
    return cell.replace(",", ".") if cell and DECIMAL_COMMA.fullmatch(cell) else cell


def cell_as_text(value: Any) -> str:
    """All that a cell, or a row of them, says, by its values alone: 3, 3.0 and "3.0" are 3, a truth
    is 1 or 0, and whatever stands for a missing value is nothing. What others hold decides the type
    of a column, so a type is no part of what a record is known by."""
    texts = _as_texts(value)
    return texts if isinstance(texts, str) else json.dumps(texts)


def _as_texts(value: Any) -> Any:
    """Lists and mappings as they are, with texts in place of values."""
    value = bytes_as_text(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_as_texts(one) for one in value]
    if isinstance(value, dict):
        return {name: _as_texts(one) for name, one in value.items()}
    if is_missing(value):
        return ""
    if isinstance(value, Decimal):  # one of more decimals gives zeros to all others
        digits = f"{value:f}"
        return digits.rstrip("0").rstrip(".") if "." in digits else digits
    return number_as_text(int(value) if isinstance(value, bool) else value)


def column_as_json(column: Chosen) -> Any:
    """A column of the config, as JSON has it: `restored_columns` turned around."""
    return column if isinstance(column, str) else values_of(column)


def restored_columns(columns: Sequence[Any]) -> tuple[Chosen, ...]:
    """Columns of the config, from what `column_as_json` made of them."""
    return tuple(
        column if isinstance(column, str) else from_document(Column, column) for column in columns
    )
