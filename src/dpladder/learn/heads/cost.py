"""What descents on a linear head cost: a noised sum of clipped gradients at each step."""

from __future__ import annotations

from dpladder.config.learner_sections import Adam, AdamNoSecondMoment, Descent
from dpladder.learn import interface
from dpladder.learn.interface import Constants, Hyper, declare_head, walked

declare = declare_head


def logit_noise(
    learner: Descent | Adam | AdamNoSecondMoment, hyper: Hyper, constants: Constants
) -> float:
    """Adam's second moment is the noise's own, or stands for it: a step moves every weight by eta,
    whatever the noise is, and the first moment only spreads it out."""
    if isinstance(learner, Descent):
        return interface.logit_noise(learner, hyper, constants, learner.momentum)
    return hyper.eta * walked(learner, hyper.steps) * constants.length
