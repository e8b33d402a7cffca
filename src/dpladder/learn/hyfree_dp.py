"""HyFreeDP on a linear head (Bu & Liu 2025): no clip and no learning rate to choose, and so nothing to search.

Every record's gradient is scaled to length 1, and every K steps three noised losses say how long a step should be. They
are paid for by a little more noise on the gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpladder.config.learners import HyperparameterFree
from dpladder.config.model import Resources
from dpladder.learn.interface import Constants, Data, Declaration, Hyper, alone
from dpladder.privacy import gdp
from dpladder.privacy.meter import Draw, Meter
from dpladder.privacy.spend import Composed, Counted, Gaussian, Sampled

LOSSES = 3  # behind, here, ahead


@dataclass(frozen=True)
class Split:
    """Noise multipliers of the gradients and of the losses, and at how many of the steps losses are looked at."""

    gradient: float
    loss: float
    steps: int
    looks: int


def split(learner: HyperparameterFree, hyper: Hyper) -> Split:
    """mu^2 = T / sigma_g^2 + 3 looks / sigma_l^2 exactly, with sigma_g = gamma sigma where sigma = sqrt(T) / mu. For
    looks = T / K that is sigma_l = sigma sqrt(3 / (K (1 - gamma^-2)))."""
    looks = -(-hyper.steps // learner.every)
    of_gradients = hyper.mu / learner.gamma
    of_losses = gdp.remaining(hyper.mu, [of_gradients])
    return Split(
        gdp.sigma(of_gradients, hyper.steps), gdp.sigma(of_losses, LOSSES * looks), hyper.steps, looks
    )


def events(found: Split, sampling_rate: float = 1.0) -> tuple[Counted, ...]:
    """What the run costs. On a Poisson sample, a step's losses see the records that its gradient sees, so the four compose
    inside the sampling. Composed outside it, as published, they would pass for four independent samples."""
    gradient, loss = Gaussian(found.gradient), Gaussian(found.loss)
    if sampling_rate == 1.0:
        return Counted(gradient, found.steps), Counted(loss, LOSSES * found.looks)
    looking = Sampled(sampling_rate, Composed((Counted(gradient), Counted(loss, LOSSES))))
    blind = Sampled(sampling_rate, gradient)
    counts = ((looking, found.looks), (blind, found.steps - found.looks))
    return tuple(Counted(event, count) for event, count in counts if count)


def declare(learner: HyperparameterFree, hyper: Hyper, constants: Constants) -> Declaration:
    found = split(learner, hyper)
    shape = (constants.classes, constants.dimension + learner.bias)
    scale = found.gradient * constants.doubling  # a unit's gradient has length 1 at most
    return Declaration(
        events(found),
        (
            Draw("noise", "gaussian", scale, shape, found.steps),
            Draw("losses", "gaussian", loss_scale(found, constants), (LOSSES,), found.looks),
        ),
    )


def loss_scale(found: Split, constants: Constants) -> float:
    """In units of the bound on a record's loss, which moves. A loss is never negative, so a unit replaced moves no sum by
    more than a unit added does."""
    return found.loss * constants.cap


def train_many(
    data: Data,
    hypers: Sequence[Hyper],
    learner: HyperparameterFree,
    constants: Constants,
    meters: Sequence[Meter],
    resources: Resources,
) -> NDArray[np.float32]:
    """Independent trainings of equal length, one meter each."""
    from dpladder.learn.parabola import descend_by_losses

    splits = [split(learner, hyper) for hyper in hypers]
    return descend_by_losses(data, hypers, splits, learner, constants, meters, resources)


train = alone(train_many)
