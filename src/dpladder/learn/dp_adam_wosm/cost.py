"""What DPAdamWOSM costs: a noised sum of clipped gradients at each step."""

from __future__ import annotations

from dpladder.config.learner_sections import AdamNoSecondMoment
from dpladder.learn.interface import Constants, Declaration, Hyper, declaration, walked


def declare(learner: AdamNoSecondMoment, hyper: Hyper, constants: Constants) -> Declaration:
    return declaration(
        learner, hyper, constants, (constants.classes, constants.dimension + learner.bias)
    )


def logit_noise(learner: AdamNoSecondMoment, hyper: Hyper, constants: Constants) -> float:
    """A step moves every weight by eta times noise of sd 1, which the first moment spreads out."""
    return hyper.eta * walked(learner, hyper.steps) * constants.length
