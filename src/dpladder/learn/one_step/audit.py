"""How a single step of DP-Adam is attacked."""

from __future__ import annotations

from dpladder.config.learner_sections import OneStep
from dpladder.learn.attacks import STEADY, training
from dpladder.privacy.audit.attack import Mechanism
from dpladder.privacy.audit.cells import GridCell


def in_cell(cell: GridCell) -> Mechanism:
    learner = OneStep(stability=STEADY)

    def reach(steps: int, noise: float) -> list[float]:
        return [learner.eta / learner.stability]

    return training(learner, 1, cell.relation, reach, cap=cell.cap)
