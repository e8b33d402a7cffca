"""What DP-GD costs: a noised sum of clipped gradients at each step."""

from __future__ import annotations

from dpladder.config.learner_sections import Descent
from dpladder.learn import interface
from dpladder.learn.interface import Constants, Declaration, Hyper, declaration


def declare(learner: Descent, hyper: Hyper, constants: Constants) -> Declaration:
    return declaration(
        learner, hyper, constants, (constants.classes, constants.dimension + learner.bias)
    )


def logit_noise(learner: Descent, hyper: Hyper, constants: Constants) -> float:
    return interface.logit_noise(learner, hyper, constants, learner.momentum)
