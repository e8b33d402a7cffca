"""Which of a table's numbers are curves, and where those bend: public facts of its columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dpladder.config.dataset_sections import Chosen, Column, Cross

Basis = tuple[int, int | tuple[float, ...]]
"""Functions of a column: the place of its number and knots from -1 to 1, or that of its first level
and how many there are."""
Curves = tuple[tuple[Basis, ...], ...]
"""The blocks of numbers that a row gains: one basis each, or the products of two."""
LINE = (-1.0, 1.0)  # the knots of a number in a cross that is a line by itself


def place_in_column(column: Column, number: Any, log: Callable[[Any], Any] = math.log) -> Any:
    """Where a number lies in its column's range, from -1 to 1 by its scale; or several at once.

    Args:
        column: with a range.
        number: within it.
        log: of such numbers.
    """
    assert column.range is not None, "only what has a range is scaled"
    low, high = column.range
    if column.scale == "log":
        one_more = low == 0
        low, high, number = log(low + one_more), log(high + one_more), log(number + one_more)
    return 2.0 * (number - low) / (high - low) - 1.0


def curves_of(columns: Sequence[Chosen], pieces: int, crosses: Sequence[Cross] = ()) -> Curves:
    """What trainings see of a table's rows beside their numbers (`with_curves` of
    privacy/arrays.py).

    Args:
        columns: those that are features, in order.
        pieces: that a range falls into where its column says nothing; 0 where it stays a line.
        crosses: pairs of columns by name, whose hats or levels are multiplied.
    """
    place, curves, bases = 0, [], dict[str, Basis]()
    for column in columns:
        if not isinstance(column, str):
            knots = knots_of(column, pieces)
            if knots:
                curves.append(((place, knots),))
            bases[column.name] = (place, len(column.levels) or knots or LINE)
        place += width_of(column)
    return (*curves, *((bases[one], bases[other]) for one, other in crosses))


def width_of_block(bases: tuple[Basis, ...]) -> int:
    """How many numbers a block of a row's curves has."""
    return math.prod(n if isinstance(n, int) else len(n) for _, n in bases)


def width_of(column: Chosen) -> int:
    """How many numbers a column makes of a cell."""
    return 1 if isinstance(column, str) else len(column.levels) or 1 + column.mark_missing


def knots_of(column: Column, pieces: int) -> tuple[float, ...]:
    """The places of a column's knots, from -1 to 1; none where it is a line."""
    count = pieces if column.knots is None else column.knots
    if column.range is None or not column.curve or not count:
        return ()
    if isinstance(count, tuple):
        return (-1.0, *(float(place_in_column(column, knot)) for knot in count), 1.0)
    return tuple(2.0 * one / count - 1.0 for one in range(count + 1))
