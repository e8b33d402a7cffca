"""How DPAdamWOSM is attacked."""

from __future__ import annotations

from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.engine.trainings import ETA, corrected, trained
from dpladder.config.learner_sections import AdamNoSecondMoment


def in_cell(cell: GridCell) -> Mechanism:
    learner = AdamNoSecondMoment()

    def reach(steps: int, noise: float) -> list[float]:
        return [
            ETA / (noise + learner.stability) * weight for weight in corrected(learner.beta, steps)
        ]

    return trained(learner, cell, reach)
