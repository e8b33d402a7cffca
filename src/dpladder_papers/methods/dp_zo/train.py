"""DP-ZO on a linear head (Tang et al. 2024): descent by differences of the loss along public random
directions; no gradient is ever taken. Each step asks one noised number, how the loss changes along
a direction.

Directions are public, so that number is all that the data say. A pure-DP Laplace step has no mu of
its own. It is charged as the Gaussian that bounds it, and so holds whatever was released before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpladder.learn.interface import Constants, Hyper, Weights, public_random
from dpladder.learn.queries import LinearHead, LossDifference, Query
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.events import Gaussian
from dpladder_papers.methods.dp_zo import ZerothOrder

if TYPE_CHECKING:  # a plan asks for queries alone, and loads no torch
    from dpladder.learn.curator import PublicInputs, Training


def queries(learner: ZerothOrder, hyper: Hyper, constants: Constants) -> tuple[Query, ...]:
    """One noised number a step: how the loss changes along a public direction (Tang et al. 2024).

    Guarantee: mu-GDP for `hyper.mu`. A Laplace step is epsilon-DP, and is charged as the Gaussian
    that dominates it.
    """
    sigma = gdp.sigma(hyper.mu, hyper.steps)
    laplace = learner.noise == "laplace"
    return (
        LossDifference(
            name="noise",
            multiplier=1.0 / gdp.pure_of_mu(1.0 / sigma) if laplace else sigma,
            count=hyper.steps,
            distribution=learner.noise,
            charged=Gaussian(sigma),
            model=LinearHead(learner.bias, learner.link),
            clip=learner.clip,
        ),
    )


def logit_noise(learner: ZerothOrder, hyper: Hyper, constants: Constants) -> float:
    """kappa of one training: the sd of the noise that it puts into a logit.

    A direction of length 1 spreads a step's noise over all weights.
    """
    (difference,) = queries(learner, hyper, constants)
    step = hyper.eta * difference.scale(constants) / (2 * learner.smoothing * constants.n0)
    weights = constants.classes * (constants.dimension + learner.bias)
    return constants.length * step * math.sqrt(hyper.steps / weights)


DIRECTIONS = 0x5A4F  # keeps the directions' public stream apart from that of a random start


def train(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: ZerothOrder,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """Steps along public random directions, by noised differences (Tang et al. 2024).

    Guarantee: that of the noised differences. Directions come from the public seed.
    """
    import torch

    from dpladder.learn.descent import released

    (difference,) = queries
    public = directions(constants, inputs.number, learner.bias)
    weights = inputs.zeros(constants.classes, constants.dimension + learner.bias)
    rate = hyper.eta / (2 * learner.smoothing * constants.n0)
    for _ in range(hyper.steps):
        along = torch.from_numpy(next(public)).to(weights)
        step = learner.smoothing * along
        changed = yield difference.at(weights + step, weights - step)
        weights = weights - rate * changed * along
    return (released(weights),)


def directions(
    constants: Constants, trial: int, bias: bool = False
) -> Iterator[NDArray[np.float64]]:
    """A trial's public directions, uniform on the unit sphere: (classes, dimension), a column more
    with a bias. Another trial has others, so that its noised numbers say something else."""
    random = public_random(constants, DIRECTIONS, trial)
    while True:
        drawn = random.normal(size=(constants.classes, constants.dimension + bias))
        yield drawn / np.linalg.norm(drawn)
