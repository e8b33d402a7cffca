"""Descent by differences of the loss along public random directions; no gradient is ever taken."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from dpladder.learn.curator import PublicInputs, Training
from dpladder.learn.descent import released
from dpladder.learn.interface import Constants, Hyper, Weights, public_random
from dpladder.learn.queries import Query
from dpladder_papers.methods.dp_zo.section import ZerothOrder

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
