"""How prototypes are attacked."""

from __future__ import annotations

from typing import get_args

from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.engine.trainings import sums
from dpladder.config.label_sets import MANY
from dpladder.config.learner_sections import Prototypes
from dpladder.privacy.accounting.events import Relation


def in_cell(cell: GridCell) -> Mechanism:
    return sums(Prototypes(), 1, cell, tight=cell == GridCell("dp_prototypes", "add_remove"))


def others() -> tuple[Mechanism, ...]:
    cells = (GridCell("dp_prototypes", relation, cap=2) for relation in get_args(Relation))
    return tuple(sums(Prototypes(), 1, cell, tight=True, labels=MANY) for cell in cells)
