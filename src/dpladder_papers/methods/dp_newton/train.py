"""DP-Newton: noised gradients and per-class Hessians of ridge logistic regression, every step
(Mehta et al.).

Classes are solved one at a time: beside the records, weights and a few d x d matrices are held. A
step's Hessians all belong to the weights before it. Softmax couples the classes, and the diagonal
blocks alone would overshoot. For diag(p) - p p^T <= 2 diag(p_j (1 - p_j)), from (v_j - v_k)^2 <= 2
v_j^2 + 2 v_k^2 in its quadratic form. With twice the blocks a step bounds the loss from above to
second order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Curvatures, Query, QueryCall, ResidualSum
from dpladder.learn.second_order import class_by_class
from dpladder.privacy.accounting import gdp
from dpladder_papers.methods.dp_newton import Newton

if TYPE_CHECKING:  # a plan asks for queries alone, and loads no torch
    from torch import Tensor

    from dpladder.learn.curator import PublicInputs, Training


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


MAJORANT = {"softmax": 2.0, "sigmoid": 1.0}


def train(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: Newton,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """Newton's method on two noised sums a step. These are the gradient, and each class's Hessian
    block at the weights that the gradient was taken at (Mehta et al. 2022, DP-Newton).

    Guarantee: that of the noised sums. Solving is post-processing.
    """
    import torch

    from dpladder.learn.moments import as_weights, finite, solve, to_matrix

    gradient, hessian = queries
    weights = inputs.zeros(constants.classes, constants.dimension)
    scale = MAJORANT[learner.link] / constants.n0
    for _ in range(hyper.steps):
        slope = (yield gradient.at(weights)) / constants.n0 + hyper.ridge * weights

        def ask(label: int, at: Tensor = weights) -> list[QueryCall]:
            return [hessian.at(at, label)]

        def move(label: int, sums: list[Tensor], slope: Tensor = slope) -> Tensor:
            return solve(scale * to_matrix(sums[0]), hyper.ridge, slope[label])

        moves = yield from class_by_class(inputs, constants, ask, move)
        weights = finite(weights - torch.stack(moves))
        # a shift of all classes alike changes no probability, but the penalty
        if learner.link == "softmax":
            weights -= weights.mean(0)
    return as_weights(weights)
