"""DP-GD with Prodigy's or D-Adaptation's step sizes on a linear head: they follow from the noised
gradients alone, so they are free.

No library in the lock offers them for a gradient that is computed elsewhere, and they are a few
lines.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from dpladder.learn.curator import PublicInputs, Training
from dpladder.learn.descent import Update, UpdateFactory, descend_head
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query
from dpladder_papers.methods.dp_prodigy import GrowingSteps, StepSizeFree


def train(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: StepSizeFree,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """Descent with Prodigy's or D-Adaptation's step sizes, on a linear head.

    Guarantee: mu-GDP for `hyper.mu`, by noised sums of clipped gradients. Step sizes are
    post-processing.
    """
    # the update is the step, its size included
    whole = replace(hyper, eta=1.0)
    return descend_head(inputs, queries, learner, whole, constants, prodigy(learner))


def prodigy(learner: GrowingSteps) -> UpdateFactory:
    """An update whose step size grows with the noised gradients, Prodigy's or D-Adaptation's.

    Prodigy (Mishchenko & Defazio 2024, Algorithm 1, with weights 1) has the step size

        d^2 / sqrt(d^2 G^2 + sum of d^2 |g|^2 so far).

    d is the largest estimate so far of the distance from x0 to the optimum, sum of eta <g, x0 - x>
    over |x - x0|. What is released is the last iterate, not their average: under noise it predicts
    better.

    D-Adaptation (Defazio & Mishchenko 2023, its gradient descent) has the step size

        d / sqrt(G^2 + sum of |g|^2 so far)

    and the estimate (|s|^2 - sum of eta^2 |g|^2) / 2 |s| with s = x0 - x. It is the same one, for
    |s|^2 gains 2 eta <g, x0 - x> + eta^2 |g|^2 in a step.
    """

    def begin(first: Tensor, _: float) -> Update:
        start = first.clone()
        d = first.new_tensor(learner.eta)
        squares, progress = torch.zeros_like(d), torch.zeros_like(d)

        def update(gradient: Tensor, weights: Tensor) -> Tensor:
            nonlocal d
            weight = d if learner.step_sizes == "prodigy" else torch.ones_like(d)
            squares.add_(weight.square() * _inner_product(gradient, gradient))
            eta = d * weight / (weight.square() * learner.gradient_bound**2 + squares).sqrt_()
            eta.nan_to_num_(0.0, 0.0)  # no gradient yet, no step
            progress.add_(eta * _inner_product(gradient, start - weights))
            moved = weights - eta * gradient - start
            estimate = (progress / _inner_product(moved, moved).sqrt_()).nan_to_num_(0.0, 0.0, 0.0)
            d = d.maximum(estimate)
            return eta * gradient

        return update

    return begin


def _inner_product(one: Tensor, other: Tensor) -> Tensor:
    """The sum of products, number by number."""
    return (one * other).sum()
