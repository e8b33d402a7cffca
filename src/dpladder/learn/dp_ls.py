"""DP-LS: every class's ridge regression from noised second moments, each summed once (Mehta et al.).

theta_j = (A_j + alpha G + lambda I)^-1 b_j, where A_j and b_j sum x x^T and x over the class's own records and G sums
x x^T over all. A record enters G and its own class alone, so each of the three costs what one record moves it by.
alpha and lambda are post-processing, so one release of the sums answers any number of them.
"""

from __future__ import annotations

from dpladder.config.learners import LeastSquares
from dpladder.config.model import Resources
from dpladder.learn.interface import Constants, Data, Declaration, Hyper, Release, Weights, metered
from dpladder.learn.second_order import (
    coordinates,
    covariance_draw,
    moment_sensitivity,
    vector_sensitivity,
)
from dpladder.privacy import gdp
from dpladder.privacy.meter import Draw
from dpladder.privacy.spend import Counted, Gaussian


def declare(learner: LeastSquares, hyper: Hyper, constants: Constants) -> Declaration:
    if hyper.mu == 0.0:  # shared statistics are all that it stands on
        return Declaration((), ())
    return declare_sums(hyper.mu, learner.radius, constants, own=learner.covariance is None)


def declare_sums(mu: float, radius: float, constants: Constants, own: bool = True) -> Declaration:
    """Noised A_j and b_j of every class, and G where it is the release's own."""
    sigma = gdp.sigma(mu, 2 + own)
    classes, dimension = constants.classes, constants.dimension
    moments = sigma * moment_sensitivity(radius**2, constants)
    targets = sigma * vector_sensitivity(radius, constants)
    draws = (
        *((covariance_draw(sigma, radius, constants),) if own else ()),
        Draw("moments", "gaussian", moments, (coordinates(dimension),), classes),
        Draw("targets", "gaussian", targets, (dimension,), classes),
    )
    return Declaration((Counted(Gaussian(sigma), 2 + own),), draws)


def fit(
    data: Data,
    hyper: Hyper,
    learner: LeastSquares,
    constants: Constants,
    release: Release,
    resources: Resources,
) -> Weights:
    from dpladder.learn import least_squares

    return least_squares.fit(data, hyper, learner, constants, release, resources)


train = metered(declare, fit)
