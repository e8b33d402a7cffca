"""DP-Newton: noised gradients and per-class Hessians of ridge logistic regression, every step (Mehta et al.).

What one record x with |x| <= R moves, over all classes together:
- softmax: the gradient (p - y) x^T by |p - y| R <= sqrt(2) R; the stack of Hessians p_j (1 - p_j) x x^T by
  |(p_j (1 - p_j))_j| R^2 <= 2 / (3 sqrt(3)) R^2, reached at three equal probabilities;
- one sigmoid per class, as published: by sqrt(m) R and sqrt(m) / 4 R^2.
"""

from __future__ import annotations

import math

from dpladder.config.learners import Newton
from dpladder.config.model import Resources
from dpladder.learn.interface import Constants, Data, Declaration, Hyper, Release, Weights, metered
from dpladder.learn.second_order import coordinates, moment_sensitivity, vector_sensitivity
from dpladder.privacy import gdp
from dpladder.privacy.meter import Draw
from dpladder.privacy.spend import Counted, Gaussian


def declare(learner: Newton, hyper: Hyper, constants: Constants) -> Declaration:
    sigma = gdp.sigma(hyper.mu, 2 * hyper.steps)
    classes, dimension = constants.classes, constants.dimension
    slope, curvature = bounds(learner, classes)
    gradient = sigma * vector_sensitivity(slope * learner.radius, constants)
    hessian = sigma * moment_sensitivity(curvature * learner.radius**2, constants)
    draws = (
        Draw("gradient", "gaussian", gradient, (classes, dimension), hyper.steps),
        Draw("hessian", "gaussian", hessian, (coordinates(dimension),), hyper.steps * classes),
    )
    return Declaration((Counted(Gaussian(sigma), 2 * hyper.steps),), draws)


def bounds(learner: Newton, classes: int) -> tuple[float, float]:
    """Largest norms, over all classes together, of the loss's first and second derivatives in the logits."""
    if learner.link == "softmax":
        return math.sqrt(2.0), 2.0 / (3.0 * math.sqrt(3.0))
    return math.sqrt(classes), math.sqrt(classes) / 4.0


def fit(
    data: Data, hyper: Hyper, learner: Newton, constants: Constants, release: Release, resources: Resources
) -> Weights:
    from dpladder.learn import newton

    return newton.fit(data, hyper, learner, constants, release, resources)


train = metered(declare, fit)
