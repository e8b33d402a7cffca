"""How DP-Adam is attacked."""

from __future__ import annotations

from dpladder.config.learner_sections import Adam
from dpladder.learn.attacks import ETA, STEADY, corrected, trained
from dpladder.privacy.audit.attack import Mechanism
from dpladder.privacy.audit.cells import GridCell


def in_cell(cell: GridCell) -> Mechanism:
    learner = Adam(stability=STEADY)

    def reach(steps: int, noise: float) -> list[float]:
        return [ETA / learner.stability * weight for weight in corrected(learner.betas[0], steps)]

    return trained(learner, cell, reach)
