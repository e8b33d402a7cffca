"""How DP-Newton is attacked."""

from __future__ import annotations

from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.engine.trainings import sums
from dpladder.config.learner_sections import Newton


def in_cell(cell: GridCell) -> Mechanism:
    return sums(Newton(), 2, cell)


def others() -> tuple[Mechanism, ...]:
    return (sums(Newton(link="sigmoid"), 2, GridCell("dp_newton", "replace_one")),)
