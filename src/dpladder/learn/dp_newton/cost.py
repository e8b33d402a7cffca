"""DP-Newton: noised gradients and per-class Hessians of ridge logistic regression, every step
(Mehta et al.).

What one record x with |x| <= R moves, over all classes together:
- softmax: the gradient (p - y) x^T by |p - y| R <= sqrt(2) R; the stack of Hessians p_j (1 - p_j) x
  x^T by
  |(p_j (1 - p_j))_j| R^2 <= 2 / (3 sqrt(3)) R^2, reached at three equal probabilities;
- one sigmoid per class, as published: by sqrt(m) R and sqrt(m) / 4 R^2.
"""

from __future__ import annotations

import math

from dpladder.config.learner_sections import Newton
from dpladder.learn.interface import Constants, Declaration, Hyper
from dpladder.learn.second_order import coordinates
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import gaussian
from dpladder.privacy.accounting.events import Counted, Gaussian


def declare(learner: Newton, hyper: Hyper, constants: Constants) -> Declaration:
    sigma = gdp.sigma(hyper.mu, 2 * hyper.steps)
    classes, dimension = constants.classes, constants.dimension
    slope, curvature = bounds(learner, classes)
    gradient = constants.moves(slope * learner.radius)
    hessian = constants.moves_apart(curvature * learner.radius**2)  # over all classes together
    draws = (
        gaussian("gradient", sigma, gradient, (classes, dimension), hyper.steps),
        gaussian(
            "hessian",
            sigma,
            hessian,
            (coordinates(dimension),),
            hyper.steps * classes,
            stack=classes,
        ),
    )
    return Declaration((Counted(Gaussian(sigma), 2 * hyper.steps),), draws)


def bounds(learner: Newton, classes: int) -> tuple[float, float]:
    """Largest norms, over all classes together, of the loss's first and second derivatives in the
    logits."""
    if learner.link == "softmax":
        return math.sqrt(2.0), 2.0 / (3.0 * math.sqrt(3.0))
    return math.sqrt(classes), math.sqrt(classes) / 4.0


def logit_noise(learner: Newton, hyper: Hyper, constants: Constants) -> float:
    """That of the last step: the noise on the gradient over the ridge, in the directions that
    hardly vary."""
    slope, _ = bounds(learner, constants.classes)
    scale = gdp.sigma(hyper.mu, 2 * hyper.steps) * constants.moves(slope * learner.radius)
    return min(constants.length, learner.radius) * scale / constants.n0 / hyper.ridge
