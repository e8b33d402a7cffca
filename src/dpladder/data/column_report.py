"""The columns of a table in words, for its owner's eyes. They say what each holds, how much of it
is missing, and what a run makes of it. Where that is not what was meant, they say what to declare.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpladder.config.dataset_sections import Chosen
from dpladder.config.sources import kind_of
from dpladder.data import tables
from dpladder.data.columns import levels_of, matrix_of, name_of, with_point
from dpladder.data.csv_rows import delimiter_in
from dpladder.data.layout import OF_CLASS, Layout
from dpladder.data.sources import Source

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
        unfit: why it is no feature by the look of it; None where it may be one.
    """

    name: str
    words: float
    missing: float
    role: str | None
    feature: Chosen | None
    lost: int
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
        if isinstance(self.feature, str):
            return "a feature as it is" + self._lost_records_text(
                "a record without a number is lost"
            )
        if self.feature.levels:
            text = f"a feature for each of {len(self.feature.levels)} levels"
            return text + (f"; {self.lost:,} records hold none of them" if self.lost else "")
        low, high = self.feature.range or (0.0, 0.0)
        text = (
            "a feature" if self.feature.range is None else f"a feature, cut to {low:g} to {high:g}"
        )
        return text + self._lost_records_text("a record without a number is lost")

    def _lost_records_text(self, why: str) -> str:
        return f"; {self.lost:,} records count as nothing: {why}" if self.lost else ""


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
    table = tables.columns_in(path).columns
    if path.suffix not in (".parquet", tables.FRAME) and delimiter_in(path) != ",":
        table = {name: [*map(with_point, cells)] for name, cells in table.items()}
    roles = {name: role for role, name in layout.columns_present(table).items()}
    chosen = {name_of(one): one for one in tables.features_in(path, [*table], layout)}
    if [*chosen] == ["features"] and any(isinstance(row, list) for row in table["features"]):
        return []  # a row's features in one column
    return [
        _report_column(name, values, roles.get(name), chosen.get(name))
        for name, values in table.items()
    ]


def _report_column(
    name: str, values: Sequence[Any], role: str | None, feature: Chosen | None
) -> ColumnReport:
    """One column in figures: what is missing or no number, and what the config's use of it loses.

    Args:
        name: of the column.
        values: a cell for each row, as the table's reader gives it.
        role: what it holds beside features, if anything.
        feature: what the config makes of it, if anything.
    """
    missing = np.array([value is None or value != value or value == "" for value in values], bool)
    number = np.isfinite(matrix_of([name], lambda _: values)[:, 0])
    words = float(np.mean(~number[~missing])) if not missing.all() else 0.0
    if feature is None:
        lost = 0
    elif levels_of(feature):
        lost = int((matrix_of([feature], lambda _: values).sum(1) == 0).sum())
    else:
        lost = int((~np.isfinite(matrix_of([feature], lambda _: values)[:, 0])).sum())
    share = float(missing.mean()) if len(missing) else 0.0
    here = [str(value) for value, none in zip(values, missing, strict=True) if not none]
    return ColumnReport(
        name, words, share, role, feature, lost, _reason_to_skip(here, words, share)
    )


def _reason_to_skip(here: Sequence[str], words: float, missing: float) -> str | None:
    """Why a column is no feature by the look of it, from what is there of it."""
    if missing > 0.5:
        return "mostly missing"
    if all(re.match(r"\d{4}-\d\d-\d\d", value) for value in here):
        return "dates"
    if words:
        return "names or free text" if len({*here}) > MOST_LEVELS else None
    numbered = len(here) > MOST_LEVELS and len({*here}) == len(here)
    return "a number for each row" if numbered and all(map(str.isdigit, here)) else None


def hint_at_encoding(source: Source) -> str:
    """What to do with a file of text that is no UTF-8. Empty where it is, or where the file says
    itself that it is UTF-16."""
    kind, path = kind_of(source.name), Path(source.name.partition(":")[2]).expanduser()
    if kind is None or source.name.partition(":")[0] not in ("csv", "jsonl"):
        return ""
    content = path.read_bytes()
    if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return ""
    wrong = sum(not _is_utf8(line) for line in content.split(b"\n"))
    return (
        f"encoding {wrong:,} lines are no UTF-8, so that their letters name other levels and "
        f"classes. Write the file anew: iconv -f WINDOWS-1252 -t UTF-8 {path} > new{path.suffix}"
        if wrong
        else ""
    )


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def lines(reports: Sequence[ColumnReport], declared: bool) -> Iterator[str]:
    """The columns in words, and a proposal where the config names no features.

    Args:
        reports: of the columns.
        declared: whether the config names the features. It should: a column that joins the table
            later would be one.
    """
    for one in reports:
        yield f"column   {one.name}: {one.kind}, {one.missing:.1%} missing; {one.encoding_text}"
    if not reports or declared:
        return
    features = [one for one in reports if one.feature is not None]
    unfit = [f"{one.name} ({one.unfit})" for one in features if one.unfit]
    fit = [_proposed_entry(one) for one in features if not one.unfit]
    if not fit:
        yield (
            f"propose  nothing: no column looks like a feature: {', '.join(unfit)}. Texts are read "
            "from a column that is called text"
        )
        return
    yield (
        "propose  name the features, with levels and ranges from public knowledge, never from "
        "this data (without a range a column of large numbers outweighs all others): "
        f"dataset.columns: [{', '.join(fit)}]"
        + (f"; left out: {', '.join(unfit)}" if unfit else "")
    )


def _proposed_entry(one: ColumnReport) -> str:
    """A column as `dataset.columns` would name it. Its levels are left open: read off private data
    they would be a leak."""
    return one.name if not one.words else f"{{name: {one.name}, levels: [...]}}"
