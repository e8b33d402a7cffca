"""DPAdamWOSM on a linear head (Mohapatra et al. 2022): Adam without second moment, and so without a
rate to tune.

Where noise drowns the gradient, Adam's second moment settles at the noise's variance, which is
public. The root of that, sigma C / n0, stands in its place from the first step on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from dpladder.config.learner_sections import AdamNoSecondMoment
from dpladder.config.model import Resources
from dpladder.learn.descent import Begin, Update
from dpladder.learn.interface import Constants, Data, Hyper, alone
from dpladder.learn.linear import descend_heads
from dpladder.privacy.release.meter import Meter


def train_many(
    data: Data,
    hypers: Sequence[Hyper],
    learner: AdamNoSecondMoment,
    constants: Constants,
    meters: Sequence[Meter],
    resources: Resources,
) -> NDArray[np.float32]:
    return descend_heads(data, hypers, learner, constants, meters, resources, first_moment(learner))


train = alone(train_many)


def first_moment(learner: AdamNoSecondMoment) -> Begin:
    """Steps alpha / (sigma C / n0 + xi) times Adam's corrected first moment (the form of the
    authors' code)."""

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
