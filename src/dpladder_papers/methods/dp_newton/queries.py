"""DP-Newton: noised gradients and per-class Hessians of ridge logistic regression, every step
(Mehta et al.)."""

from __future__ import annotations

from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.queries import Curvatures, Query, ResidualSum
from dpladder.privacy.accounting import gdp
from dpladder_papers.methods.dp_newton.section import Newton


def queries(learner: Newton, hyper: Hyper, constants: Constants) -> tuple[Query, ...]:
    """A noised gradient and each class's noised Hessian block, at every step.

    Guarantee: mu-GDP for `hyper.mu`, by 2 `hyper.steps` releases of one multiplier.
    """
    sigma, radius, link = gdp.sigma(hyper.mu, 2 * hyper.steps), learner.radius, learner.link
    return (
        ResidualSum(name="gradient", multiplier=sigma, count=hyper.steps, radius=radius, link=link),
        Curvatures(name="hessian", multiplier=sigma, count=hyper.steps, radius=radius, link=link),
    )


def logit_noise(learner: Newton, hyper: Hyper, constants: Constants) -> float:
    """kappa of one training: the sd of the noise that it puts into a logit.

    It is that of the last step: the noise on the gradient over the ridge, in the directions that
    hardly vary.
    """
    gradient, _ = queries(learner, hyper, constants)
    scale = gradient.scale(constants)
    return min(constants.length, learner.radius) * scale / constants.n0 / hyper.ridge
