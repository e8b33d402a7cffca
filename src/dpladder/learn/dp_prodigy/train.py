"""DP-GD with Prodigy's or D-Adaptation's step sizes on a linear head: they follow from the noised
gradients alone, so they are free.

No library in the lock offers them for a gradient that is computed elsewhere, and they are a few
lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpladder.config.learner_sections import GrowingSteps, StepSizeFree
from dpladder.config.model import Resources
from dpladder.learn.descent import Begin, Update
from dpladder.learn.interface import Constants, Data, Hyper, alone
from dpladder.learn.linear import descend_heads
from dpladder.privacy.release.meter import Meter


def train_many(
    data: Data,
    hypers: Sequence[Hyper],
    learner: StepSizeFree,
    constants: Constants,
    meters: Sequence[Meter],
    resources: Resources,
) -> NDArray[np.float32]:
    # the update is the step, its size included
    whole = [replace(hyper, eta=1.0) for hyper in hypers]
    return descend_heads(data, whole, learner, constants, meters, resources, prodigy(learner))


train = alone(train_many)


def prodigy(learner: GrowingSteps) -> Begin:
    """Mishchenko & Defazio 2024, Algorithm 1, with weights 1: the step size is d^2 over the root of
    d^2 G^2 plus the sum of all d^2 |g|^2 so far, and d is the largest estimate so far, sum of eta
    <g, x0 - x> over |x - x0|, of the distance from x0 to the optimum. What is released is the last
    iterate, not their average: under noise it predicts better.

    D-Adaptation (Defazio & Mishchenko 2023, its gradient descent) has the step size d over the root
    of G^2 plus the sum of all |g|^2, and the estimate (|s|^2 - sum of eta^2 |g|^2) / 2 |s| with s =
    x0 - x, which is the same one: what |s|^2 gains in a step is 2 eta <g, x0 - x> + eta^2 |g|^2."""

    def begin(first: Tensor, like_trials: Tensor) -> Update:
        start = first.clone()
        distance = like_trials.new_full(like_trials.shape, learner.eta)
        squares, progress = distance.new_zeros(distance.shape), distance.new_zeros(distance.shape)

        def update(gradient: Tensor, weights: Tensor) -> Tensor:
            on = slice(len(gradient))
            d = distance[on]
            weight = d if learner.step_sizes == "prodigy" else torch.ones_like(d)
            squares[on] += weight.square() * _inner(gradient, gradient)
            eta = d * weight / (weight.square() * learner.gradient_bound**2 + squares[on]).sqrt_()
            eta.nan_to_num_(0.0, 0.0)  # no gradient yet, no step
            progress[on] += eta * _inner(gradient, start[on] - weights)
            moved = weights - eta * gradient - start[on]
            estimate = (progress[on] / _inner(moved, moved).sqrt_()).nan_to_num_(0.0, 0.0, 0.0)
            distance[on] = d.maximum(estimate)
            return eta * gradient

        return update

    return begin


def _inner(one: Tensor, other: Tensor) -> Tensor:
    """Inner products, one for each trial."""
    return (one * other).sum(dim=tuple(range(1, one.ndim)), keepdim=True)
