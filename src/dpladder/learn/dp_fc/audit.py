"""How DP-FC is attacked."""

from __future__ import annotations

from dpladder.config.learner_sections import FeatureCovariance
from dpladder.learn.attacks import sums
from dpladder.privacy.audit.attack import Mechanism
from dpladder.privacy.audit.cells import GridCell


def in_cell(cell: GridCell) -> Mechanism:
    return sums(FeatureCovariance(), 2, cell)


def others() -> tuple[Mechanism, ...]:
    return (sums(FeatureCovariance(), 1, GridCell("dp_fc", "add_remove"), tight=True),)
