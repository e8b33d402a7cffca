"""DP-FC: private gradient descent on a linear head, preconditioned by the noised feature covariance (Mehta et al.)."""

from __future__ import annotations

from dpladder.config.learners import FeatureCovariance
from dpladder.config.model import Resources
from dpladder.learn.interface import Constants, Data, Declaration, Hyper, Release, Weights, metered
from dpladder.learn.second_order import covariance_draw
from dpladder.privacy import gdp
from dpladder.privacy.meter import Draw
from dpladder.privacy.spend import Counted, Gaussian


def declare(learner: FeatureCovariance, hyper: Hyper, constants: Constants) -> Declaration:
    own = learner.covariance is None
    sigma = gdp.sigma(hyper.mu, hyper.steps + own)
    shape = (constants.classes, constants.dimension)
    scale = sigma * learner.clip * constants.doubling
    draws = (
        *((covariance_draw(sigma, learner.radius, constants),) if own else ()),
        Draw("gradient", "gaussian", scale, shape, hyper.steps),
    )
    return Declaration((Counted(Gaussian(sigma), hyper.steps + own),), draws)


def fit(
    data: Data,
    hyper: Hyper,
    learner: FeatureCovariance,
    constants: Constants,
    release: Release,
    resources: Resources,
) -> Weights:
    from dpladder.learn import preconditioned

    return preconditioned.fit(data, hyper, learner, constants, release, resources)


train = metered(declare, fit)
