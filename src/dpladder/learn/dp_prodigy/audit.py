"""How DP-GD with Prodigy's step sizes is attacked."""

from __future__ import annotations

from dpladder.config.learner_sections import StepSizeFree
from dpladder.learn.attacks import STEADY, several, training
from dpladder.privacy.audit.attack import Mechanism


def mechanisms() -> tuple[Mechanism, ...]:
    learner = StepSizeFree(gradient_bound=STEADY)
    other = learner.model_copy(update={"step_sizes": "d_adaptation"})

    def reach(steps: int, noise: float) -> list[float]:
        return [learner.eta / learner.gradient_bound] * steps

    return (*several(learner, reach), training(other, 3, "add_remove", reach, note=" d_adaptation"))
