"""The audit's grid: each learner under each relation, on full batches and samples, with caps of 1
and 2, and 1 and 2 views."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import get_args

from dpladder.privacy.accounting.events import Relation

CAPS = (1, 2)  # records per unit
VIEWS = (1, 2)  # of a record


@dataclass(frozen=True)
class GridCell:
    """One way to run a learner."""

    learner: str
    relation: Relation
    sampled: bool = False
    cap: int = 1
    views: int = 1

    def __str__(self) -> str:
        marks = (" sampled" * self.sampled, f" cap {self.cap}" * (self.cap > 1))
        return "".join(
            (f"{self.learner} {self.relation}", *marks, f" {self.views} views" * (self.views > 1))
        )


@dataclass(frozen=True)
class LeftOut:
    """What an audit does not run, by name, and the reason."""

    what: str
    why: str


def grid(learner: str) -> Iterator[GridCell]:
    """Yield all cells of a learner, whether a config can ask for them or not."""
    for relation, sampled, cap, views in product(get_args(Relation), (False, True), CAPS, VIEWS):
        yield GridCell(learner, relation, sampled, cap, views)
