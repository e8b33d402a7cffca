"""How DP-Adam is attacked."""

from __future__ import annotations

from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.engine.trainings import ETA, STEADY, corrected, of_findings, trained
from dpladder.config.learner_sections import Adam

LEARNER = Adam(stability=STEADY)


def in_cell(cell: GridCell) -> Mechanism:
    return trained(LEARNER, cell, _reach)


def others() -> tuple[Mechanism, ...]:
    return of_findings(LEARNER, _reach)


def _reach(steps: int, noise: float) -> list[float]:
    return [ETA / LEARNER.stability * weight for weight in corrected(LEARNER.betas[0], steps)]
