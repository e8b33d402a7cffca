"""Step sizes that grow with what gradients show, on a linear head."""

from __future__ import annotations

from typing import ClassVar, Literal

from dpladder.config.learner_sections import Descending
from dpladder.config.method import LearnerMethod, later
from dpladder.section import Count, NonNegative, Positive


class GrowingSteps(Descending):
    """Step sizes that grow with what the released gradients show (Prodigy, D-Adaptation)."""

    steps: Count = 50
    """Number of training steps."""
    eta: Positive = 1.0
    """d0, a first estimate of how far the optimum is. It only grows."""
    gradient_bound: NonNegative = 0.0
    """G, added under the root of the squared gradients."""
    step_sizes: Literal["prodigy", "d_adaptation"] = "prodigy"
    """Whose step sizes. prodigy: gradients met at smaller steps count for less. d_adaptation: all
    count alike."""


class StepSizeFree(GrowingSteps):
    """Gradient descent on a linear head whose step sizes grow with what the released gradients show
    (Prodigy, D-Adaptation)."""

    linear_head: ClassVar[bool] = True
    name: Literal["dp_prodigy"] = "dp_prodigy"


METHOD = LearnerMethod(
    section=StepSizeFree,
    queries=later("dpladder.learn.guide:queries"),
    train=later("dpladder_papers.methods.dp_prodigy.train:train"),
)
