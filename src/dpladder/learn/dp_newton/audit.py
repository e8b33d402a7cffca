"""How DP-Newton is attacked."""

from __future__ import annotations

from dpladder.config.learner_sections import Newton
from dpladder.learn.attacks import sums
from dpladder.privacy.audit.attack import Mechanism
from dpladder.privacy.audit.cells import GridCell


def in_cell(cell: GridCell) -> Mechanism:
    return sums(Newton(), 2, cell)


def others() -> tuple[Mechanism, ...]:
    return (sums(Newton(link="sigmoid"), 2, GridCell("dp_newton", "replace_one")),)
