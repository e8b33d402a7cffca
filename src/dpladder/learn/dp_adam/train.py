"""DP-Adam on a linear head (Mehta et al. 2023): Adam's moments of gradients that are noised
already."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from dpladder.config.learner_sections import Adam, FineTune
from dpladder.config.model import Resources
from dpladder.learn.descent import Begin, Update
from dpladder.learn.interface import Constants, Data, Hyper, alone
from dpladder.learn.linear import descend_heads
from dpladder.privacy.release.meter import Meter


def train_many(
    data: Data,
    hypers: Sequence[Hyper],
    learner: Adam,
    constants: Constants,
    meters: Sequence[Meter],
    resources: Resources,
) -> NDArray[np.float32]:
    return descend_heads(data, hypers, learner, constants, meters, resources, adam(learner))


train = alone(train_many)


def adam(learner: Adam | FineTune) -> Begin:
    """Kingma & Ba 2015, Algorithm 1, on the noised mean gradient. The noise is divided by the size
    like the gradient: Mehta et al. do so in Eq. 3, and forget it in their Algorithm 1."""
    decay, decay_of_squares = learner.betas

    def begin(first: Tensor, _: Tensor) -> Update:
        mean, square = first.new_zeros(first.shape), first.new_zeros(first.shape)
        step = 0

        def update(gradient: Tensor, _: Tensor) -> Tensor:
            nonlocal step
            step += 1
            on = slice(len(gradient))
            mean[on].lerp_(gradient, 1.0 - decay)
            square[on].lerp_(gradient.square(), 1.0 - decay_of_squares)
            root = (square[on] / (1.0 - decay_of_squares**step)).sqrt_()
            return mean[on] / (1.0 - decay**step) / root.add_(learner.stability)

        return update

    return begin
