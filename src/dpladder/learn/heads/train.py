"""Private gradient descents on a linear head: with momentum (Panda et al., Algorithm 1), by Adam's
moments of gradients that are noised already (Mehta et al. 2023), and by DPAdamWOSM (Mohapatra et
al. 2022)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from dpladder.config.learner_sections import Adam, AdamNoSecondMoment, Descent, FineTune
from dpladder.config.model import Resources
from dpladder.learn.descent import Begin, Update, momentum
from dpladder.learn.interface import Constants, Data, Hyper, alone
from dpladder.learn.linear import descend_heads
from dpladder.privacy.release.meter import Meter


def train_many(
    data: Data,
    hypers: Sequence[Hyper],
    learner: Descent | Adam | AdamNoSecondMoment,
    constants: Constants,
    meters: Sequence[Meter],
    resources: Resources,
) -> NDArray[np.float32]:
    """Independent trials, one meter each: weights of shape (trials, classes, width)."""
    return descend_heads(data, hypers, learner, constants, meters, resources, _begin(learner))


train = alone(train_many)


def _begin(learner: Descent | Adam | AdamNoSecondMoment) -> Begin:
    match learner:
        case Descent():
            return momentum(learner)
        case Adam():
            return adam(learner)
    return first_moment(learner)


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


def first_moment(learner: AdamNoSecondMoment) -> Begin:
    """Adam without second moment, and so without a rate to tune: where noise drowns the gradient,
    that settles at the noise's variance, which is public. The root of it, sigma C / n0, stands in
    its place from the first step on. Steps are alpha / (sigma C / n0 + xi) times Adam's corrected
    first moment (the form of the authors' code)."""

    def begin(first: Tensor, noise: Tensor) -> Update:
        mean = first.new_zeros(first.shape)
        step = 0

        def update(gradient: Tensor, _: Tensor) -> Tensor:
            nonlocal step
            step += 1
            on = slice(len(gradient))
            mean[on].lerp_(gradient, 1.0 - learner.beta)
            return mean[on] / (1.0 - learner.beta**step) / (noise[on] + learner.stability)

        return update

    return begin
