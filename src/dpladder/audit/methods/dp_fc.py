"""How DP-FC is attacked."""

from __future__ import annotations

from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.engine.trainings import sums
from dpladder.config.label_sets import MANY
from dpladder.config.learner_sections import FeatureCovariance


def in_cell(cell: GridCell) -> Mechanism:
    return sums(FeatureCovariance(), 2, cell)


def others() -> tuple[Mechanism, ...]:
    each = FeatureCovariance(link="sigmoid")
    return (
        sums(FeatureCovariance(), 1, GridCell("dp_fc", "add_remove"), tight=True),
        sums(each, 1, GridCell("dp_fc", "replace_one", cap=2), labels=MANY),
    )
