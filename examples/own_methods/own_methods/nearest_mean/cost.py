"""What a training costs and draws. A plan asks here, so nothing heavy is imported."""

import math

from dpladder.learn.interface import Constants, Declaration, Hyper
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import gaussian
from dpladder.privacy.accounting.events import Counted, Gaussian
from own_methods.nearest_mean.section import NearestMean


def declare(learner: NearestMean, hyper: Hyper, constants: Constants) -> Declaration:
    """Each class's sum and its count, which is told in units of the radius: a record (x, R) has
    length sqrt(2) R at most."""
    sigma, shape = gdp.sigma(hyper.mu, 1), (constants.classes, constants.dimension + 1)
    moves = constants.moves(math.sqrt(2) * learner.radius)
    return Declaration((Counted(Gaussian(sigma), 1),), (gaussian("sums", sigma, moves, shape),))
