"""DP-GD, the paper's learner: private gradient descent on a linear head (Panda et al., Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpladder.config.learners import Descent
from dpladder.config.model import Resources
from dpladder.learn.interface import Constants, Data, Declaration, Hyper, alone, declaration
from dpladder.privacy.meter import Meter


def declare(learner: Descent, hyper: Hyper, constants: Constants) -> Declaration:
    return declaration(learner, hyper, constants, (constants.classes, constants.dimension + learner.bias))


def train_many(
    data: Data,
    hypers: Sequence[Hyper],
    learner: Descent,
    constants: Constants,
    meters: Sequence[Meter],
    resources: Resources,
) -> NDArray[np.float32]:
    from dpladder.learn import engine

    return engine.train_many(data, hypers, learner, constants, meters, resources)


train = alone(train_many)
