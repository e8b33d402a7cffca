"""The columns of a table in words, for its owner's eyes. They say what each holds, how much of it
is missing, and what a run makes of it. Where that is not what was meant, they say what to declare.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import yaml
from numpy.typing import NDArray

from dpladder.config.dataset_sections import Chosen
from dpladder.config.sources import kind_of
from dpladder.data import tables
from dpladder.data.cells import Cells, TextCells, data_of, offsets_of
from dpladder.data.columns import levels_of, matrix_of, name_of
from dpladder.data.layout import OF_CLASS, Layout
from dpladder.data.sources import Source
from dpladder.progress import progress
from dpladder.wording import MOST_NAMES, first_of

A_DATE = re.compile(r"\d{4}-\d\d-\d\d")
MOST_LEVELS = 50
"""More words than that are names or free text, which no levels fit."""


@dataclass(frozen=True)
class ColumnReport:
    """A column of a table in figures. Private.

    Attributes:
        name: of the column.
        words, missing: shares, from 0 to 1: of the values that are there, those that are no
            numbers; of all rows, those without a value.
        role: what it holds beside features, such as the label; None of another column.
        feature: what the config makes of it; None where it is no feature.
        lost: rows that count as nothing because of it, or, of levels, hold none of them.
        empty_levels: declared levels that no row holds.
        unfit: why it is no feature by the look of it; None where it may be one.
    """

    name: str
    words: float
    missing: float
    role: str | None
    feature: Chosen | None
    lost: int
    empty_levels: tuple[str, ...]
    unfit: str | None

    @property
    def kind(self) -> str:
        """What its values are, in words."""
        if self.missing == 1:
            return "empty"
        return "numbers" if not self.words else "words" if self.words == 1 else "numbers and words"

    @property
    def encoding_text(self) -> str:
        """What a run makes of it, in words."""
        if self.role is not None:
            if self.role.startswith(OF_CLASS):
                return "what each record has of one class"
            return f"the {self.role} of each record"
        if self.feature is None:
            return "not read"
        lost = f"; {self.lost:,} records count as nothing: a record without a number is lost"
        lost = lost if self.lost else ""
        if isinstance(self.feature, str):
            return f"a feature as it is{lost}"
        if self.feature.levels:
            text = f"a feature for each of {len(self.feature.levels)} levels"
            return text + (f"; {self.lost:,} records hold none of them" if self.lost else "")
        text = "a feature"
        if self.feature.range is not None:
            text += ", cut to {:g} to {:g}".format(*self.feature.range)
        if isinstance(self.feature.missing, float):
            text += f", {self.feature.missing:g} where missing"
        return text + lost


def columns_of(source: Source, layout: Layout) -> list[ColumnReport]:
    """The columns of a table of features; of any other source none. The table is read once more for
    it."""
    kind, path = kind_of(source.name), source.name.partition(":")[2]
    if source.kind != "features" or kind is None or not kind.columns:
        return []
    return columns_at(Path(path).expanduser(), layout)


def columns_at(path: Path, layout: Layout) -> list[ColumnReport]:
    """The columns of a table at a path, in the order of the table. A row's features in one list
    column give none."""
    table = tables.blocks_in(path)
    roles = {name: role for role, name in layout.columns_present(table.names).items()}
    chosen = {name_of(one): one for one in tables.features_in(path, [*table.names], layout)}
    tallies = [_Tally(name, roles.get(name), chosen.get(name)) for name in table.names]
    with progress("looking at columns", table.count, "rows", after=2.0) as advance:
        for block in table.blocks:
            if [*chosen] == ["features"] and _is_of_lists(block["features"]):
                return []  # a row's features in one column
            for tally in tallies:
                tally.add(block[tally.name])
            advance(len(block[table.names[0]]))
    return [tally.report() for tally in tallies]


@dataclass
class _Tally:
    """One column in figures, as its blocks come: what is missing or no number, and what the
    config's use of it loses.

    Attributes:
        name: of the column.
        role: what it holds beside features, if anything.
        feature: what the config makes of it, if anything.
        rows, missing, words, lost: how many rows there are, have nothing, have no number, or are
            lost.
        levels_there: declared levels that a row holds.
        dates: whether all that is there begins as a date does.
        different: values, each once, up to one more than levels may be.
        numbers: of all rows that have one, where each is a whole number; None where one is not.
    """

    name: str
    role: str | None
    feature: Chosen | None
    rows: int = 0
    missing: int = 0
    words: int = 0
    lost: int = 0
    levels_there: set[str] = field(default_factory=set)
    dates: bool = True
    different: set[str] = field(default_factory=set)
    numbers: list[NDArray[np.float64]] | None = field(default_factory=list)

    def add(self, cells: Cells) -> None:
        """Take the cells of some more rows."""
        present, numbers = ~_absent(cells), cells.numbers()
        is_number = np.isfinite(numbers)
        self.rows += len(present)
        self.missing += int(np.count_nonzero(~present))
        self.words += int(np.count_nonzero(present & ~is_number))
        if self.feature is not None:
            matrix = matrix_of([self.feature], lambda _: cells)
            levels = levels_of(self.feature)
            self.levels_there.update(np.array(levels)[matrix.any(0)] if levels else ())
            lost = matrix.sum(1) == 0 if levels else ~np.isfinite(matrix[:, 0])
            self.lost += int(np.count_nonzero(lost))
        here = numbers[present]
        self.dates &= not is_number[present].any()
        if self.dates or len(self.different) <= MOST_LEVELS:
            codes, values = cells.values()
            texts = [str(values[code]) for code in np.unique(codes[present])]
            self.dates = self.dates and all(map(A_DATE.match, texts))
            self.different.update(islice(texts, MOST_LEVELS + 1))
        if self.numbers is not None:
            is_whole = is_number[present].all() and np.all((here >= 0) & (np.floor(here) == here))
            self.numbers = [*self.numbers, here] if is_whole and _may_number(cells) else None

    def report(self) -> ColumnReport:
        """The column in figures."""
        there = self.rows - self.missing
        return ColumnReport(
            self.name,
            self.words / there if there else 0.0,
            self.missing / self.rows if self.rows else 0.0,
            self.role,
            self.feature,
            self.lost,
            tuple(one for one in levels_of(self.feature or "") if one not in self.levels_there),
            self._reason_to_skip(there),
        )

    def _reason_to_skip(self, there: int) -> str | None:
        """Why a column is no feature by the look of it, from what is there of it."""
        if self.missing > 0.5 * self.rows:
            return "mostly missing"
        if self.dates:
            return "dates"
        if self.words:
            return "names or free text" if len(self.different) > MOST_LEVELS else None
        if self.numbers is None or there <= MOST_LEVELS:
            return None
        all_differ = len(np.unique(np.concatenate(self.numbers))) == there
        return "a number for each row" if all_differ else None


def _absent(cells: Cells) -> NDArray[np.bool_]:
    """Of each cell whether nothing stands there."""
    if isinstance(cells, TextCells):
        return np.diff(offsets_of(cells.array)) == 0
    return np.asarray(cells.array.is_null(nan_is_null=True))


def _may_number(cells: Cells) -> bool:
    """Whether cells are written as what numbers rows."""
    if isinstance(cells, TextCells):
        text = np.frombuffer(data_of(cells.array), np.uint8)
        return bool(np.all((text >= ord("0")) & (text <= ord("9"))))
    return bool(pa.types.is_integer(cells.array.type))


def _is_of_lists(cells: Cells) -> bool:
    """Whether each cell is a row of numbers."""
    return isinstance(cells.array, pa.FixedSizeListArray | pa.ListArray | pa.LargeListArray)


def hint_at_encoding(source: Source) -> str:
    """What to do with a file of text that is no UTF-8. Empty where it is, or where the file says
    itself that it is UTF-16."""
    kind, path = kind_of(source.name), Path(source.name.partition(":")[2]).expanduser()
    if kind is None or source.name.partition(":")[0] not in ("csv", "jsonl"):
        return ""
    with path.open("rb") as file:
        if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return ""
        file.seek(0)
        wrong = sum(line.decode("utf-8", "ignore").encode() != line for line in file)
    return (
        f"encoding {wrong:,} lines are no UTF-8, so that their letters name other levels and "
        f"classes. Write the file anew: iconv -f WINDOWS-1252 -t UTF-8 {path} > new{path.suffix}"
        if wrong
        else ""
    )


def lines(reports: Sequence[ColumnReport], declared: bool) -> Iterator[str]:
    """The columns in words, and a proposal where the config names no features.

    Args:
        reports: of the columns.
        declared: whether the config names the features. It should: a column that joins the table
            later would be one.
    """
    for one in reports[:MOST_NAMES]:
        yield f"column   {one.name}: {one.kind}, {one.missing:.1%} missing; {one.encoding_text}"
    if len(reports) > MOST_NAMES:
        yield f"column   and {len(reports) - MOST_NAMES:,} more"
    for one in (one for one in reports if one.empty_levels and one.lost):
        yield (
            f"warning  {one.name}: no record holds {first_of(one.empty_levels)}, and {one.lost:,} "
            "hold no declared level. Write levels as the table does, capitals too (dataset.columns)"
        )
    if not reports or declared:
        return
    features = [one for one in reports if one.feature is not None]
    unfit = [f"{one.name} ({one.unfit})" for one in features if one.unfit]
    fit = [_proposed_entry(one) for one in features if not one.unfit]
    if not fit:
        yield (
            f"propose  nothing: no column looks like a feature: {first_of(unfit)}. Texts are read "
            "from a column that is called text"
        )
        return
    yield (
        "propose  name the features, with levels and ranges from public knowledge, never from "
        "this data (without a range a column of large numbers outweighs all others, and none is a "
        f"curve): dataset.columns: [{first_of(fit)}]"
        + (f"; left out: {first_of(unfit)}" if unfit else "")
    )


def _proposed_entry(one: ColumnReport) -> str:
    """A column as `dataset.columns` would name it. Its levels are left open: read off private data
    they would be a leak."""
    # as YAML inside brackets: quoted where a colon, a comma or a number would be read otherwise
    name = yaml.safe_dump([one.name], default_flow_style=True, allow_unicode=True, width=math.inf)
    name = name.strip()[1:-1]
    return f"{{name: {name}, levels: [...]}}" if one.words else name
