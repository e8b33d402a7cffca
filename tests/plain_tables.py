"""Tables read row by row in plain Python, one cell after the other: slow, and easy to follow. What
reads blocks of them must find the same (tests/data/test_blocks.py)."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from dpladder.config.level_texts import level_as_text
from dpladder.data.columns import cell_as_text, is_missing, number_of, with_point
from dpladder.data.sources import text

NO_ROW = "\n"  # what no column is called: there stands a line that is no row
QUOTED_TEXT = '[^"]*(?:""[^"]*)*'
QUOTED = f'"{QUOTED_TEXT}"'
PLAIN_CELL = {delimiter: f'[^"{delimiter}]*' for delimiter in ",;"} | {"\t": '(?:[^"\t][^\t]*)?'}


@dataclass
class PlainTable:
    """Rows of a CSV file, from names to cells, and where they stand."""

    names: list[str] = field(default_factory=list)
    delimiter: str = ","
    rows: list[dict[str, Any]] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    spread: list[str] = field(default_factory=list)


def plain_table(path: Path) -> PlainTable:
    """A CSV file's rows: each line is looked at as the beginning of a row, from the last one to the
    first."""
    marked = path.read_bytes()[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    encoding, errors = ("utf-16", "replace") if marked else ("utf-8-sig", "surrogateescape")
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        header = file.readline()
    delimiter = max(",;\t", key=header.count)
    names = next(csv.reader([header], delimiter=delimiter), [])
    newline = "\r" if header.endswith("\r") else "\n"
    with path.open(encoding=encoding, errors=errors, newline=newline) as file:
        lines = [line.removesuffix(newline) for line in file][1:]
    ends = _row_ends(lines, delimiter)
    table, place = PlainTable(names, delimiter), 0
    while place < len(lines):
        end = ends[place]
        last = place if end is None else end
        row = newline.join(lines[place : last + 1]).removesuffix("\r")
        first, place = place, last + 1
        if not row:
            continue
        cells = None if end is None else _cells_of(row, delimiter)
        if first != last:
            table.spread.append(f"lines {first + 2}-{last + 2}")
        if cells is None or any(cells[len(names) :]):  # more cells than the header has
            table.unread.append(f"line {first + 2}")
            table.rows.append({**dict.fromkeys(names), NO_ROW: row})
        else:
            table.rows.append(dict(zip_longest(names, cells[: len(names)])))
        table.first.append(first + 2)
    return table


def _row_ends(lines: Sequence[str], delimiter: str) -> list[int | None]:
    """For each line the last line of the row that would begin with it; None where none would."""
    cell = f"(?:{QUOTED}|{PLAIN_CELL[delimiter]})"
    whole = re.compile(f"(?:{cell}{delimiter})*{cell}\r?")
    opening = re.compile(f'(?:{cell}{delimiter})*"{QUOTED_TEXT}')
    ends: list[int | None] = [*range(len(lines))]
    closing: int | None = None  # the line that ends the row whose cell is open before the next line

    def end(line: str, place: int) -> int | None:
        if whole.fullmatch(line):
            return place
        return closing if opening.fullmatch(line) else None

    for place in reversed(range(len(lines))):
        if '"' in lines[place]:
            ends[place], closing = end(lines[place], place), end(f'"{lines[place]}', place)
    return ends


def _cells_of(row: str, delimiter: str) -> list[str]:
    if '"' not in row:
        return row.split(delimiter)
    cells = re.findall(f"({QUOTED}|{PLAIN_CELL[delimiter]}){delimiter}", row + delimiter)
    return [cell[1:-1].replace('""', '"') if cell.startswith('"') else cell for cell in cells]


@dataclass(frozen=True)
class PlainRecord:
    """What one row of a table of features is, by a look at it alone.

    Attributes:
        said: all that its row says.
        name, user: its id and its user, empty where it has none.
        features: its numbers, as bytes.
        label: the place of its class; -1 where it has none.
    """

    said: str
    name: str
    user: str
    features: tuple[str, ...]
    label: int


def plain_number(cell: Any, comma: bool) -> float:
    """A cell's number, NaN where it is none."""
    return number_of(with_point(cell) if comma and isinstance(cell, str) else cell)


def plain_features(row: dict[str, Any], columns: Sequence[Any], comma: bool) -> tuple[str, ...]:
    """The features of one row, as texts that tell NaN and the sign of zero."""
    numbers: list[float] = []
    for column in columns:
        if isinstance(column, str):
            numbers.append(plain_number(row[column], comma))
            continue
        cell = row[column.name]
        if column.levels:
            said = level_as_text(cell)
            numbers += [float(said == level_as_text(level)) for level in column.levels]
            continue
        number, absent = plain_number(cell, comma), False
        if column.missing is not None and is_missing(cell):
            number, absent = column.missing, True
        if column.range is not None:
            low, high = column.range
            number = 2.0 * (min(max(number, low), high) - low) / (high - low) - 1.0
        numbers += [number, float(absent)] if column.mark_missing else [number]
    return tuple(map(str, numbers))


def plain_record(
    row: dict[str, Any], columns: Sequence[Any], classes: Sequence[str], comma: bool
) -> PlainRecord:
    """What one row is. The columns of roles are called by their role."""

    def name(role: str) -> str:
        cell = row.get(role)
        if cell is None or cell != cell:
            return ""
        return text(cell)

    said = [cell_as_text(cell) for name, cell in row.items() if name]
    label = name("label")
    place = [*map(text, classes)].index(label) if label in map(text, classes) else -1
    features = plain_features(row, columns, comma)
    return PlainRecord(repr(said), name("id"), name("user"), features, place)
