"""What DP-GD with Prodigy's step sizes costs: a noised sum of clipped gradients at each step."""

from __future__ import annotations

from dpladder.config.learner_sections import StepSizeFree
from dpladder.learn.interface import Constants, Declaration, Hyper, declaration


def declare(learner: StepSizeFree, hyper: Hyper, constants: Constants) -> Declaration:
    return declaration(
        learner, hyper, constants, (constants.classes, constants.dimension + learner.bias)
    )
