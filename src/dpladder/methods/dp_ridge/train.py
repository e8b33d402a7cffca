"""Least squares of a number: theta = V max(v, lambda)^-1 V^T b, where v and V are eigenvalues and
vectors of G. G sums x x^T over all records, and b sums y x (Wang 2018, Algorithm 2, at Gaussian
prices).

y is where the target lies in its public range, from -1 to 1. So a record moves b by the radius at
most, and G by its square. Both are asked once, and what follows is post-processing.

Noise hides the smaller eigenvalues. Wang adds a ridge to all of them. To raise those below lambda
to it does better, for it leaves alone what is known, and one lambda does for tables of any width:
it follows from kappa, the noise of b in a prediction (docs/measurements/regression.md).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query, SecondMoments, WeighedSums
from dpladder.methods.dp_ridge import Ridge
from dpladder.privacy.accounting import gdp

if TYPE_CHECKING:  # a plan asks for queries alone, and loads no torch
    from dpladder.learn.curator import PublicInputs, Training


def queries(learner: Ridge, hyper: Hyper, constants: Constants) -> tuple[Query, ...]:
    """G and b.

    Guarantee: mu-GDP for `hyper.mu`: b has `share` of its square, and G the rest, and squares add
    up (Dong, Roth & Su 2022, Corollary 3.3).
    """
    radius = learner.radius * constants.length
    of_targets = hyper.mu * math.sqrt(learner.share)
    of_moments = hyper.mu * math.sqrt(1.0 - learner.share)
    return (
        SecondMoments(
            name="moments",
            multiplier=gdp.sigma(of_moments, 1),
            radius=radius,
            constant=learner.constant,
        ),
        WeighedSums(
            name="targets",
            multiplier=gdp.sigma(of_targets, 1),
            radius=radius,
            by="number",
            constant=learner.constant,
        ),
    )


def logit_noise(learner: Ridge, hyper: Hyper, constants: Constants) -> float:
    """kappa of one training: the sd of the noise that it puts into a prediction, in units of half
    the range, along directions that hardly vary: lambda is what it is divided by there."""
    _, targets = queries(learner, hyper, constants)
    length = math.hypot(min(1.0, learner.radius), learner.radius * learner.constant)
    noise = constants.length * length * targets.scale(constants)
    return noise / constants.n0 / hyper.ridge


def train(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: Ridge,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """theta = V max(v, lambda)^-1 V^T b.

    Guarantee: that of the noised sums. Solving is post-processing.
    """
    import torch

    from dpladder.learn.moments import as_weights, to_matrix

    moments, targets = yield [query.at() for query in queries]
    values, vectors = torch.linalg.eigh(to_matrix(moments) / constants.n0)
    known = (vectors.T @ targets[0]) / constants.n0 / values.clamp(min=hyper.ridge)
    theta = vectors @ known
    if learner.constant:  # whose feature is 1 in predictions
        theta[-1] *= learner.constant * learner.radius * constants.length
    return as_weights(theta[None])
