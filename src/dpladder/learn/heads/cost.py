"""What descents on a linear head cost: a noised sum of clipped gradients at each step."""

from __future__ import annotations

from dpladder.config.learner_sections import Adam, AdamNoSecondMoment, Descent
from dpladder.learn import guide, interface
from dpladder.learn.interface import Constants, Hyper, walked

declare = guide.declare


def logit_noise(
    learner: Descent | Adam | AdamNoSecondMoment, hyper: Hyper, constants: Constants
) -> float:
    """Adam's second moment is the noise's own, or stands for it: a step moves every weight by eta,
    whatever the noise is, and the first moment only spreads it out."""
    if isinstance(learner, Descent):
        steps = guide.of_steps(learner, hyper)
        return interface.logit_noise(learner, steps, constants, learner.momentum)
    return hyper.eta * walked(learner, hyper.steps) * constants.length
