"""How DP-Adam is attacked."""

from __future__ import annotations

from dpladder.config.learner_sections import Adam
from dpladder.learn.attacks import ETA, STEADY, corrected, several
from dpladder.privacy.audit.attack import Mechanism


def mechanisms() -> tuple[Mechanism, ...]:
    learner = Adam(stability=STEADY)

    def reach(steps: int, noise: float) -> list[float]:
        return [ETA / learner.stability * weight for weight in corrected(learner.betas[0], steps)]

    return several(learner, reach)
