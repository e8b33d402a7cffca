"""How prototypes are attacked."""

from __future__ import annotations

from dpladder.config.learner_sections import Prototypes
from dpladder.learn.attacks import sums
from dpladder.privacy.audit.attack import Mechanism
from dpladder.privacy.audit.cells import GridCell


def in_cell(cell: GridCell) -> Mechanism:
    return sums(Prototypes(), 1, cell, tight=cell == GridCell("dp_prototypes", "add_remove"))
