"""DP-FC: private gradient descent on a linear head, preconditioned by the noised feature covariance
(Mehta et al.)."""

from __future__ import annotations

import math

from dpladder.config.learner_sections import FeatureCovariance
from dpladder.learn.interface import Constants, Declaration, Hyper
from dpladder.learn.second_order import covariance_draw
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import gaussian
from dpladder.privacy.accounting.events import Counted, Gaussian


def declare(learner: FeatureCovariance, hyper: Hyper, constants: Constants) -> Declaration:
    own = learner.covariance is None
    sigma = gdp.sigma(hyper.mu, hyper.steps + own)
    shape = (constants.classes, constants.dimension)
    moves = constants.moves(learner.clip / constants.cap)
    draws = (
        *((covariance_draw(sigma, learner.radius, constants),) if own else ()),
        gaussian("gradient", sigma, moves, shape, hyper.steps),
    )
    return Declaration((Counted(Gaussian(sigma), hyper.steps + own),), draws)


def logit_noise(learner: FeatureCovariance, hyper: Hyper, constants: Constants) -> float:
    """In the directions that hardly vary, where all that holds the steps back is the damping."""
    own = learner.covariance is None
    step = (
        gdp.sigma(hyper.mu, hyper.steps + own)
        * constants.moves(learner.clip / constants.cap)
        / constants.n0
    )
    length = min(constants.length, learner.radius)
    return length * hyper.eta * step * math.sqrt(hyper.steps) / learner.damping
