"""The keys of DP-GD with Prodigy's step sizes."""

from __future__ import annotations

from typing import ClassVar, Literal

from dpladder.config.learner_sections import GrowingSteps


class StepSizeFree(GrowingSteps):
    """Gradient descent on a linear head whose step sizes grow with what the released gradients show
    (Prodigy, D-Adaptation)."""

    linear_head: ClassVar[bool] = True
    name: Literal["dp_prodigy"] = "dp_prodigy"
