"""DP-ZO on a linear head (Tang et al. 2024): each step asks one noised number, how the loss changes
along a direction.

Directions are public, so that number is all that the data say. A pure-DP Laplace step has no mu of
its own. It is charged as the Gaussian that bounds it, and so holds whatever was released before it.
"""

from __future__ import annotations

import math

from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.queries import LinearHead, LossDifference, Query
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.events import Gaussian
from dpladder_papers.methods.dp_zo.section import ZerothOrder


def queries(learner: ZerothOrder, hyper: Hyper, constants: Constants) -> tuple[Query, ...]:
    """One noised number a step: how the loss changes along a public direction (Tang et al. 2024).

    Guarantee: mu-GDP for `hyper.mu`. A Laplace step is epsilon-DP, and is charged as the Gaussian
    that dominates it.
    """
    sigma = gdp.sigma(hyper.mu, hyper.steps)
    laplace = learner.noise == "laplace"
    return (
        LossDifference(
            name="noise",
            multiplier=1.0 / gdp.pure_of_mu(1.0 / sigma) if laplace else sigma,
            count=hyper.steps,
            distribution=learner.noise,
            charged=Gaussian(sigma),
            model=LinearHead(learner.bias, learner.link),
            clip=learner.clip,
        ),
    )


def logit_noise(learner: ZerothOrder, hyper: Hyper, constants: Constants) -> float:
    """kappa of one training: the sd of the noise that it puts into a logit.

    A direction of length 1 spreads a step's noise over all weights.
    """
    (difference,) = queries(learner, hyper, constants)
    step = hyper.eta * difference.scale(constants) / (2 * learner.smoothing * constants.n0)
    weights = constants.classes * (constants.dimension + learner.bias)
    return constants.length * step * math.sqrt(hyper.steps / weights)
