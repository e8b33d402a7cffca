"""DP-ZO on a linear head (Tang et al. 2024): each step asks one noised number, how the loss changes along a direction.

Directions are public, so that number is all that the data say. A pure-DP Laplace step has no mu of its own; it is charged
as the Gaussian that bounds it, and so holds whatever was released before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpladder.config.learners import ZerothOrder
from dpladder.config.model import Resources
from dpladder.learn.interface import Constants, Data, Declaration, Hyper, alone
from dpladder.privacy import gdp
from dpladder.privacy.meter import Draw, Meter
from dpladder.privacy.spend import Counted, Gaussian


def declare(learner: ZerothOrder, hyper: Hyper, constants: Constants) -> Declaration:
    scale = noise_scale(learner, hyper, constants)
    return Declaration(
        (Counted(Gaussian(gdp.sigma(hyper.mu, hyper.steps)), hyper.steps),),
        (Draw("noise", learner.noise, scale, count=hyper.steps),),
    )


def noise_scale(learner: ZerothOrder, hyper: Hyper, constants: Constants) -> float:
    """Of the noise on a sum of clipped differences, which a unit moves by C, and by 2 C when it is replaced."""
    sensitivity = learner.clip * constants.doubling
    if learner.noise == "gaussian":
        return gdp.sigma(hyper.mu, hyper.steps) * sensitivity
    return sensitivity / gdp.pure_of_mu(1.0 / gdp.sigma(hyper.mu, hyper.steps))


def train_many(
    data: Data,
    hypers: Sequence[Hyper],
    learner: ZerothOrder,
    constants: Constants,
    meters: Sequence[Meter],
    resources: Resources,
) -> NDArray[np.float32]:
    """Independent trials of equal length, one meter each, each along directions of its own."""
    from dpladder.learn.zeroth_order import descend_along_directions

    scales = [noise_scale(learner, hyper, constants) for hyper in hypers]
    return descend_along_directions(data, hypers, scales, learner, constants, meters, resources)


train = alone(train_many)
