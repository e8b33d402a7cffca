"""What descents on a linear head ask: a noised sum of clipped gradients at each step, and a look
where a public sample guides them."""

from __future__ import annotations

from dpladder.config.learner_sections import Adam, AdamNoSecondMoment, Descent
from dpladder.learn import descent_noise, guide
from dpladder.learn.descent_noise import walked
from dpladder.learn.interface import Constants, Hyper

queries = guide.queries


def logit_noise(
    learner: Descent | Adam | AdamNoSecondMoment, hyper: Hyper, constants: Constants
) -> float:
    """Adam's second moment is the noise's own, or stands for it: a step moves every weight by eta,
    whatever the noise is, and the first moment only spreads it out."""
    if isinstance(learner, Descent):
        steps = guide.of_steps(learner, hyper)
        return descent_noise.logit_noise(learner, steps, constants, learner.momentum)
    return hyper.eta * walked(learner, hyper.steps) * constants.length
