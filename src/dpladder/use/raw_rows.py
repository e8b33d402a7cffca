"""Rows of a table as an exported model takes them. Its files work by themselves, so `export` writes
what follows into each of them, in place of the import."""

from __future__ import annotations

import csv
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

MOST_SINGLE = 2.0**127  # float32 holds larger ones, and these are beyond doubt


def table_in(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a CSV with a header, between commas, semicolons or tabs: a value by each column's
    name.

    Raises:
        ValueError: a name stands twice in the header.
    """
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
        first = file.readline()
        file.seek(0)
        read = csv.DictReader(file, delimiter=max(",;\t", key=first.count))
        names = [name for name in read.fieldnames or () if name]
        if len({*names}) < len(names):
            raise ValueError(f"{path} has columns of one name")
        return [*read]


def rows_of(columns: Sequence[Any], records: Any) -> list[list[float]]:
    """Rows of a table as training prepared them.

    Numbers are cut at their range and scaled to -1 to 1, some by their logarithms. Each
    level of a column of words is 1 or 0.

    Args:
        columns: as config.json lists them, in training's order; none where all values are numbers
            as they are.
        records: a DataFrame, or for each record a value by each column's name, or all its values in
            that order.
    """
    table = records.to_dict("records") if hasattr(records, "to_dict") else records
    if not columns:
        return [[_number(value, name) for name, value in row.items() if name] for row in table]
    return [
        [number for column in columns for number in _cell(column, columns, row)] for row in table
    ]


def _cell(column: Any, columns: Sequence[Any], row: Any) -> list[float]:
    """The numbers of one cell, as its column was declared."""
    spec: dict[str, Any] = {"name": column} if isinstance(column, str) else column
    name = spec["name"]
    if isinstance(row, Mapping):
        if name not in row:
            raise ValueError(f"a record has no {name}, which this model was trained on")
        value = row[name]
    elif len(row) == len(columns):
        value = row[columns.index(column)]
    else:
        raise ValueError(f"a record has {len(row)} values, and this model takes {len(columns)}")
    if spec.get("levels"):
        return [float(_level(value) == _level(level)) for level in spec["levels"]]
    blank = value is None or str(value).strip().lower() in ("", "nan", "<na>")
    absent = "missing" in spec and blank
    number = _number(spec["missing"] if absent else value, name)
    if spec.get("range"):
        low, high = spec["range"]
        number = min(max(number, low), high)
        if spec.get("scale") == "log":
            low, high, number = np.log(np.array([low, high, number]) + (low == 0)).tolist()
        number = 2.0 * (number - low) / (high - low) - 1.0
    return [number, float(absent)] if spec.get("mark_missing") else [number]


def _number(value: Any, name: str) -> float:
    """A cell that holds a number.

    Raises:
        ValueError: it holds none.
    """
    with suppress(TypeError, ValueError):
        if (number := float(value)) == number:
            return number
    raise ValueError(f"a record has no number in {name}, which this model was trained on")


def _level(value: Any) -> str:
    """A level as training read it, by its value alone: 3.0 is 3, as a text too, and what a float32
    can hold is as short as one is written."""
    if isinstance(value, str) and (value.endswith(".0") or "e+" in value):
        with suppress(ValueError):  # a word
            value = float(value) if str(float(value)) == value else value
    if isinstance(value, Real) and not isinstance(value, Integral):
        exact = float(value)
        if exact.is_integer():
            value = int(exact)
        elif abs(exact) < MOST_SINGLE and float(np.float32(exact)) == exact:
            value = np.float32(exact)
    return unicodedata.normalize("NFC", str(value)).strip()
