"""How DP-Adam is attacked."""

from __future__ import annotations

from dpladder.audit.engine.attack import Mechanism
from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.trainings import ETA, STEADY, corrected, trained
from dpladder.config.learner_sections import Adam


def in_cell(cell: GridCell) -> Mechanism:
    learner = Adam(stability=STEADY)

    def reach(steps: int, noise: float) -> list[float]:
        return [ETA / learner.stability * weight for weight in corrected(learner.betas[0], steps)]

    return trained(learner, cell, reach)
