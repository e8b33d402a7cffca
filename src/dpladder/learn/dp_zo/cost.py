"""DP-ZO on a linear head (Tang et al. 2024): each step asks one noised number, how the loss changes
along a direction.

Directions are public, so that number is all that the data say. A pure-DP Laplace step has no mu of
its own; it is charged as the Gaussian that bounds it, and so holds whatever was released before it.
"""

from __future__ import annotations

import math

from dpladder.config.learner_sections import ZerothOrder
from dpladder.learn.interface import Constants, Declaration, Hyper
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import Draw
from dpladder.privacy.accounting.events import Counted, Gaussian


def declare(learner: ZerothOrder, hyper: Hyper, constants: Constants) -> Declaration:
    # A record's difference lies between -C and C, so a unit replaced moves a sum of them by 2 C.
    moves = constants.moves(learner.clip / constants.cap)
    return Declaration(
        (Counted(Gaussian(gdp.sigma(hyper.mu, hyper.steps)), hyper.steps),),
        (
            Draw(
                "noise",
                learner.noise,
                noise_multiplier(learner, hyper) * moves,
                (),
                hyper.steps,
                moves,
            ),
        ),
    )


def noise_multiplier(learner: ZerothOrder, hyper: Hyper) -> float:
    """The noise's scale over what a unit moves."""
    sigma = gdp.sigma(hyper.mu, hyper.steps)
    return sigma if learner.noise == "gaussian" else 1.0 / gdp.pure_of_mu(1.0 / sigma)


def logit_noise(learner: ZerothOrder, hyper: Hyper, constants: Constants) -> float:
    """A direction of length 1 spreads a step's noise over all weights."""
    scale = noise_multiplier(learner, hyper) * constants.moves(learner.clip / constants.cap)
    step = hyper.eta * scale / (2 * learner.smoothing * constants.n0)
    weights = constants.classes * (constants.dimension + learner.bias)
    return constants.length * step * math.sqrt(hyper.steps / weights)
