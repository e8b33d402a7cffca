"""What DP-Adam costs: a noised sum of clipped gradients at each step."""

from __future__ import annotations

from dpladder.config.learner_sections import Adam
from dpladder.learn.interface import Constants, Declaration, Hyper, declaration, walked


def declare(learner: Adam, hyper: Hyper, constants: Constants) -> Declaration:
    return declaration(
        learner, hyper, constants, (constants.classes, constants.dimension + learner.bias)
    )


def logit_noise(learner: Adam, hyper: Hyper, constants: Constants) -> float:
    """The second moment is the noise's own, so a step moves every weight by eta, whatever the noise
    is; the first moment only spreads it out."""
    return hyper.eta * walked(learner, hyper.steps) * constants.length
