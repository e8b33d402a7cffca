"""One step of DP-Adam from zero on a linear head: the whole budget on one noised gradient, and
nothing to search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpladder.config.learner_sections import OneStep
from dpladder.config.model import Resources
from dpladder.learn.heads import train as heads
from dpladder.learn.interface import Constants, Data, Hyper, alone
from dpladder.learn.one_step.cost import as_adam, once
from dpladder.privacy.release.meter import Meter


def train_many(
    data: Data,
    hypers: Sequence[Hyper],
    learner: OneStep,
    constants: Constants,
    meters: Sequence[Meter],
    resources: Resources,
) -> NDArray[np.float32]:
    single = [once(learner, hyper) for hyper in hypers]
    return heads.train_many(data, single, as_adam(learner), constants, meters, resources)


train = alone(train_many)
