"""How prototypes are attacked."""

from __future__ import annotations

from dpladder.audit.engine.attack import Mechanism
from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.trainings import sums
from dpladder.config.learner_sections import Prototypes


def in_cell(cell: GridCell) -> Mechanism:
    return sums(Prototypes(), 1, cell, tight=cell == GridCell("dp_prototypes", "add_remove"))
