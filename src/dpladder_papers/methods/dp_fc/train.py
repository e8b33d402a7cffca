"""DP-FC: private gradient descent on a linear head, preconditioned by the noised feature covariance
(Mehta et al.): W <- W - eta (g / n0) (G / n0 + damping I)^-1, with G and every g noised.

Turning a step is post-processing: its privacy is that of its clipped sum.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import GradientSum, LinearHead, Query
from dpladder.learn.second_order import covariance
from dpladder.privacy.accounting import gdp
from dpladder_papers.methods.dp_fc import FeatureCovariance

if TYPE_CHECKING:  # a plan asks for queries alone, and loads no torch
    from dpladder.learn.curator import PublicInputs, Training


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


def train(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: FeatureCovariance,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """W <- W - eta (g / n0) (G / n0 + damping I)^-1 at each step (Mehta et al. 2022, DP-FC).

    Guarantee: that of the releases G and g. Turning a step is post-processing.
    """
    from dpladder.learn.moments import as_weights, eigen, finite, to_matrix

    covariance, gradient = queries
    values, vectors = eigen(to_matrix((yield covariance.at())) / constants.n0, learner.damping)
    weights = inputs.zeros(constants.classes, constants.dimension)
    for _ in range(hyper.steps):
        mean = (yield gradient.at(weights)) / constants.n0
        weights = finite(weights - hyper.eta * (mean @ vectors / values) @ vectors.T)
    return as_weights(weights)
