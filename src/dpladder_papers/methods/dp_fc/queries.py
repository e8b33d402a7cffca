"""DP-FC: private gradient descent on a linear head, preconditioned by the noised feature covariance
(Mehta et al.)."""

from __future__ import annotations

import math

from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.queries import GradientSum, LinearHead, Query
from dpladder.learn.second_order import covariance
from dpladder.privacy.accounting import gdp
from dpladder_papers.methods.dp_fc.section import FeatureCovariance


def queries(learner: FeatureCovariance, hyper: Hyper, constants: Constants) -> tuple[Query, ...]:
    """The noised feature covariance, once, and a noised sum of clipped gradients at each step.

    Guarantee: mu-GDP for `hyper.mu`; a shared covariance (learner.shared) is charged by itself.
    """
    shared = learner.shared is not None
    sigma = gdp.sigma(hyper.mu, hyper.steps + (not shared))
    gradient = GradientSum(
        name="gradient",
        multiplier=sigma,
        count=hyper.steps,
        model=LinearHead(link=learner.link),
        clip=learner.clip,
        clipping=learner.clipping,
    )
    return covariance(math.inf if shared else sigma, learner.radius), gradient


def logit_noise(learner: FeatureCovariance, hyper: Hyper, constants: Constants) -> float:
    """kappa of one training: the sd of the noise that it puts into a logit.

    It is that in the directions that hardly vary, where all that holds the steps back is the
    damping.
    """
    *_, gradient = queries(learner, hyper, constants)
    step = gradient.scale(constants) / constants.n0
    length = min(constants.length, learner.radius)
    return length * hyper.eta * step * math.sqrt(hyper.steps) / learner.damping
