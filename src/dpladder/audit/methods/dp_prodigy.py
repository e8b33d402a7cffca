"""How DP-GD with Prodigy's step sizes is attacked."""

from __future__ import annotations

from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.engine.trainings import STEADY, of_findings, trained, training
from dpladder.config.learner_sections import StepSizeFree

LEARNER = StepSizeFree(gradient_bound=STEADY)


def in_cell(cell: GridCell) -> Mechanism:
    return trained(LEARNER, cell, _reach)


def others() -> tuple[Mechanism, ...]:
    other = LEARNER.model_copy(update={"step_sizes": "d_adaptation"})
    return (
        training(other, 3, "add_remove", _reach, note=", d_adaptation"),
        *of_findings(LEARNER, _reach, tight=False),
    )


def _reach(steps: int, noise: float) -> list[float]:
    return [LEARNER.eta / LEARNER.gradient_bound] * steps
