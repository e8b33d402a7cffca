"""How a single step of DP-Adam is attacked."""

from __future__ import annotations

from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.engine.trainings import STEADY, training
from dpladder.config.learner_sections import OneStep


def in_cell(cell: GridCell) -> Mechanism:
    learner = OneStep(stability=STEADY)

    def reach(steps: int, noise: float) -> list[float]:
        return [learner.eta / learner.stability]

    return training(learner, 1, cell.relation, reach, cap=cell.cap)
