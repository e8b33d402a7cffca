"""What descents on a linear head ask: a noised sum of clipped gradients at each step, and a look
where a public sample guides them."""

from __future__ import annotations

from collections.abc import Callable

from dpladder.config.learner_sections import SHARED, Adam, AdamNoSecondMoment, Descent
from dpladder.errors import BadInput
from dpladder.learn import descent_noise, guide
from dpladder.learn.descent_noise import walked
from dpladder.learn.interface import Constants, Hyper

queries = guide.queries


def logit_noise(
    learner: Descent | Adam | AdamNoSecondMoment, hyper: Hyper, constants: Constants
) -> float:
    return KAPPA[learner.name](learner, hyper, constants)


def _by_momentum(learner: Descent, hyper: Hyper, constants: Constants) -> float:
    steps = guide.of_steps(learner, hyper)
    return descent_noise.logit_noise(learner, steps, constants, learner.momentum)


def _by_size(learner: Adam | AdamNoSecondMoment, hyper: Hyper, constants: Constants) -> float:
    """Adam's second moment is the noise's own, or stands for it: a step moves every weight by eta,
    whatever the noise is, and the first moment only spreads it out."""
    return hyper.eta * walked(learner, hyper.steps) * constants.length


KAPPA: dict[str, Callable[..., float]] = {
    "dp_gd": _by_momentum,
    "dp_adam": _by_size,
    "dp_adam_wosm": _by_size,
}
"""The law of each head's noise: none is taken for another's."""
if KAPPA.keys() != SHARED.keys():
    without = ", ".join(sorted(KAPPA.keys() ^ SHARED.keys()))
    raise BadInput(f"{without}: a descent on heads needs a law of its kappa. Add it to KAPPA.")
