"""How DP-GD with Prodigy's step sizes is attacked."""

from __future__ import annotations

from dpladder.config.learner_sections import StepSizeFree
from dpladder.learn.attacks import STEADY, trained, training
from dpladder.privacy.audit.attack import Mechanism
from dpladder.privacy.audit.cells import GridCell

LEARNER = StepSizeFree(gradient_bound=STEADY)


def in_cell(cell: GridCell) -> Mechanism:
    return trained(LEARNER, cell, _reach)


def others() -> tuple[Mechanism, ...]:
    other = LEARNER.model_copy(update={"step_sizes": "d_adaptation"})
    return (training(other, 3, "add_remove", _reach, note=", d_adaptation"),)


def _reach(steps: int, noise: float) -> list[float]:
    return [LEARNER.eta / LEARNER.gradient_bound] * steps
