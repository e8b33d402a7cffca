"""Counts, sums, means and quantiles with noise, each one Gaussian release of a ledger's lineage.

A value is one unit's, which is called a record below. One that is missing, or no number, counts as
nothing. Bounds and levels are declared, never read off the data: values beyond bounds are cut to
them. What comes out may be used in any way, at no further cost.

Values whose type says that none of them can count are refused before anything is charged. A type is
the operator's schema. What single records hold refuses nothing, for that would tell of them: so a
list, whose items have types of their own, is taken as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.errors import BadInput

LEVELS = 10  # of the binary tree that quantiles are read from: 1,024 leaves
Floats = NDArray[np.float64]
NUMBERS, TEXTS = "biuf", "USTO"  # kinds of NumPy's types; O may hold anything


def count_present(values: Any) -> tuple[Floats, float]:
    """How many values there are. Sensitivity: a record adds 1."""
    present = [not _is_missing(value) for value in _each_value(values)]
    return np.array([sum(present)], np.float64), 1.0


def counts_of_levels(values: Any, levels: Sequence[Any]) -> tuple[Floats, float]:
    """How many values are each level. Sensitivity: a record adds 1 to one of them."""
    names = [_name(level) for level in levels]
    if len({*names}) != len(names) or not names or None in names:
        raise BadInput(
            f"levels: {len(names)} are given. Name each once, and at least one; a missing value is "
            "no level."
        )
    kind = _check_kind(values)
    if kind in NUMBERS and all(math.isnan(_number(name)) for name in names):
        raise BadInput(
            "values are numbers, and none of the levels is one. Name levels as the values are "
            "written, or give the values as texts. Nothing was charged."
        )
    value_names = [_name(value) for value in _each_value(values)]
    return np.array([value_names.count(name) for name in names], np.float64), 1.0


def clipped_sum_of_values(values: Any, bounds: tuple[float, float]) -> tuple[Floats, float]:
    """The sum of values cut to bounds. Sensitivity: a record adds the larger bound at most."""
    low, high = _check_bounds(bounds)
    inside = np.clip(numbers(values), low, high)
    return np.array([math.fsum(inside)]), max(abs(low), abs(high))


def scaled_sum_and_count(values: Any, bounds: tuple[float, float]) -> tuple[Floats, float]:
    """The sum of values as they lie between -1 and 1 within bounds, and how many there are.
    Sensitivity: a record adds at most 1 to each, which is sqrt(2) in L2."""
    low, high = _check_bounds(bounds)
    inside = np.clip(numbers(values), low, high)
    scaled = (inside - (low + high) / 2.0) / ((high - low) / 2.0)
    return np.array([math.fsum(np.clip(scaled, -1.0, 1.0)), float(len(scaled))]), math.sqrt(2.0)


def mean_of(noised: Floats, bounds: tuple[float, float]) -> float:
    """The mean within bounds from a noised sum and count of `scaled_sum_and_count`:
    post-processing.

    A count below 1 is taken for 1, for noise may bring it to 0.
    """
    low, high = bounds
    share = noised[0] / max(noised[1], 1.0)
    return float(np.clip((low + high) / 2.0 + share * (high - low) / 2.0, low, high))


def tree_of(values: Any, bounds: tuple[float, float]) -> tuple[Floats, float]:
    """How many values lie in each half of the bounds, in each quarter and so on (Hay et al. 2010,
    section 4). Sensitivity: a record adds 1 to one count of each level, sqrt(LEVELS) in L2."""
    low, high = _check_bounds(bounds)
    places = (np.clip(numbers(values), low, high) - low) / (high - low) * 2**LEVELS
    leaves = np.minimum(places.astype(np.int64), 2**LEVELS - 1)
    levels = [
        np.bincount(leaves >> (LEVELS - level), minlength=2**level)
        for level in range(1, LEVELS + 1)
    ]
    return np.concatenate(levels).astype(np.float64), math.sqrt(LEVELS)


def quantiles_of(tree: Floats, at: Sequence[float], bounds: tuple[float, float]) -> list[float]:
    """The values that shares of all lie below, from a noised tree of `tree_of`: post-processing."""
    return [_quantile(tree, share, *bounds) for share in at]


def _quantile(tree: Floats, share: float, low: float, high: float) -> float:
    """Down from the root, always into the half that the share lies in."""
    start, place = 0, 0
    for level in range(1, LEVELS + 1):
        left, right = np.maximum(tree[start + 2 * place : start + 2 * place + 2], 0.0)
        if left + right <= 0.0:
            break
        rank, middle = share * (left + right), (low + high) / 2.0
        if rank <= left:
            place, high, share = 2 * place, middle, rank / left if left else 0.0
        else:
            place, low, share = 2 * place + 1, middle, (rank - left) / right
        start += 2**level
    return float(low + share * (high - low))


def numbers(values: Any) -> Floats:
    """Those of the values that are numbers, float64. Infinite ones are cut to bounds later.

    Raises:
        BadInput: by their type none is a number.
    """
    _check_kind(values)
    as_numbers = np.array([_number(value) for value in _each_value(values)], np.float64)
    return as_numbers[~np.isnan(as_numbers)]


def _number(value: Any) -> float:
    """A value as a number; NaN of what is none."""
    if value is np.ma.masked:
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _each_value(values: Any) -> Iterable[Any]:
    """One value of each unit; None where a mask hides it.

    Raises:
        BadInput: this is no row of values.
    """
    odd = isinstance(values, Mapping | Set | str | bytes) or getattr(values, "ndim", 1) != 1
    if odd or not isinstance(values, Iterable):
        raise BadInput(
            f"values are of type {type(values).__name__}. Give one value of each unit, as a list, "
            "a Series or an array of one dimension. Nothing was charged."
        )
    if isinstance(values, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(values)
        return [None if lost else value for value, lost in zip(values.data, hidden, strict=True)]
    return np.asarray(values) if hasattr(values, "__array__") else values


def _check_kind(values: Any) -> str:
    """The kind of values by their type alone, as NumPy names it.

    Raises:
        BadInput: no value of that type is a number or a level, such as a date.
    """
    dtype = getattr(values, "dtype", None)
    dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    known = np.asarray(values).dtype if hasattr(values, "__array__") else np.dtype(object)
    kind: str = getattr(dtype, "kind", known.kind)
    # pandas has types of its own for these, all of one kind
    of_pandas = str(dtype).startswith(("period", "interval", "date", "time", "duration"))
    if kind not in NUMBERS + TEXTS or of_pandas:
        raise BadInput(
            f"values are of type {dtype}, of which none is a number or a level. Give numbers or "
            "texts. Nothing was charged."
        )
    return kind


def _is_missing(value: Any) -> bool:
    """Whether a value is not there: None, NaN, masked, or what pandas writes there."""
    try:
        return value is None or value is np.ma.masked or bool(value != value)
    except TypeError:  # pandas' NA
        return True
    except ValueError:  # several values, as a row of an array has them
        return False


def _name(value: Any) -> str | None:
    """3.0 is 3, as pandas makes one of the other where a value is missing. A truth is 1 or 0, and
    bytes are their text."""
    if _is_missing(value):
        return None
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if str(value) in ("True", "False"):
        return str(int(str(value) == "True"))
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if whole else str(value)


def _check_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    low, high = map(float, bounds)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise BadInput(
            f"bounds are {low}, {high}. They must be the smallest and the largest value, known "
            "publicly."
        )
    return low, high
