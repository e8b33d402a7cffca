"""Rows of a table without ids that are equal: one record each time, though they may be different
people. Two questions decide whether that is so: what the config allows (public), and what the rows
are (private)."""

from __future__ import annotations

from math import prod

from dpladder.config.dataset_sections import Dataset
from dpladder.data.columns import levels_of, name_of
from dpladder.data.layout import layout_of
from dpladder.data.prepare import Survey
from dpladder.data.rows import COPY
from dpladder.data.sources import Source

FEWEST_ROWS = 50  # rows: fewer say nothing
SHARE = 0.05  # of all rows
WAYS_OUT = (
    "If equal rows are different people, add a column with an id for each and name it in "
    "dataset.id; if they are one record, set dataset.equal_rows: one_record"
)


def rows_can_be_equal(source: Source, dataset: Dataset) -> bool:
    """Whether equal rows of a source are one record: texts or numbers without ids. Images of two
    people do not agree in every byte."""
    without_ids = source.ids is None or source.some_have_ids
    return (
        source.kind in ("features", "texts")
        and without_ids
        and not (dataset.unit.by == "user" or dataset.equal_rows == "one_record")
    )


def most_different_rows(surveyed: Survey) -> int | None:
    """How many different rows a table can have, by its header and the config. None: any number.

    It is known where each column has declared levels or is the label, and no record has a part in
    it.
    """
    source, layout = surveyed.source, layout_of(surveyed.dataset, surveyed.grouping)
    levels = {name_of(column): len(levels_of(column)) for column in layout.columns}
    roles = {name: role for role, name in layout.columns_present(source.names).items()}
    sizes = [
        len(surveyed.names) if roles.get(name) == "label" else levels.get(name, 0)
        for name in source.names
        if name  # an unnamed column numbers rows, and is no part of a record
    ]
    certain = sizes and all(sizes) and rows_can_be_equal(source, surveyed.dataset)
    return prod(sizes) if certain else None


def equal_rows(surveyed: Survey) -> int:
    """How many rows would be lost as copies of another one, where they may be other people."""
    if not rows_can_be_equal(surveyed.source, surveyed.dataset):
        return 0
    return surveyed.problems.count(COPY)


def too_many_equal(rows: int, copies: int) -> bool:
    """Whether so many of these rows equal another one that people were lost. Private.

    Args:
        rows: all of them.
        copies: those that equal another one.
    """
    return copies >= FEWEST_ROWS and copies >= SHARE * rows
