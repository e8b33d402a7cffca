"""Counts of a test that nobody ran, for tests of what follows from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpladder.learn.counts import right_counts, sum_of
from dpladder.learn.data import Data
from dpladder.learn.measures.tables import CellTable, MeasuredModel, figures_of_counts
from dpladder.learn.measures.tested import CountTable, GroupNames, ReleasedCounts, Tested
from dpladder.learn.scorers import Scorer, TaskName


def counts_of(
    names: tuple[str, ...] = (),
    task: TaskName = "classes",
    groups: GroupNames | None = None,
    **tables: tuple[Any, float],
) -> ReleasedCounts:
    """`tables`: each by what it holds, with the deviation of its noise."""
    cells = {
        holds: CountTable(np.asarray(counts, float).tolist(), sd)
        for holds, (counts, sd) in tables.items()
    }
    return ReleasedCounts(task, names, cells, groups)


def figures_from(*args: Any, **tables: Any) -> Tested:
    """The figures that follow from such counts."""
    return figures_of_counts(counts_of(*args, **tables))


def cells_of(table: CellTable, model: MeasuredModel, data: Data) -> Any:
    """A table's counts, without noise."""
    return sum_of(table.question(model), data, model.constants)


def right_of(scorer: Scorer, weights: Any, features: Any, labels: Any) -> float:
    """What all records count together, without noise."""
    return float(right_counts(scorer, [weights], Data(features, labels))[0])
