"""How DPAdamWOSM is attacked."""

from __future__ import annotations

from dpladder.config.learner_sections import AdamNoSecondMoment
from dpladder.learn.attacks import ETA, corrected, trained
from dpladder.privacy.audit.attack import Mechanism
from dpladder.privacy.audit.cells import GridCell


def in_cell(cell: GridCell) -> Mechanism:
    learner = AdamNoSecondMoment()

    def reach(steps: int, noise: float) -> list[float]:
        return [ETA / (noise + learner.stability) * weight for weight in corrected(learner.beta, steps)]

    return trained(learner, cell, reach)
