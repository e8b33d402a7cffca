"""One step of DP-Adam from zero on a linear head: the whole budget on one noised gradient, and nothing to search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpladder.config.learners import Adam, OneStep
from dpladder.config.model import Resources
from dpladder.learn import dp_adam
from dpladder.learn.interface import Constants, Data, Declaration, Hyper, alone
from dpladder.privacy.meter import Meter


def declare(learner: OneStep, hyper: Hyper, constants: Constants) -> Declaration:
    return dp_adam.declare(_adam(learner), _once(learner, hyper), constants)


def train_many(
    data: Data,
    hypers: Sequence[Hyper],
    learner: OneStep,
    constants: Constants,
    meters: Sequence[Meter],
    resources: Resources,
) -> NDArray[np.float32]:
    once = [_once(learner, hyper) for hyper in hypers]
    return dp_adam.train_many(data, once, _adam(learner), constants, meters, resources)


train = alone(train_many)


def _adam(learner: OneStep) -> Adam:
    return Adam(clip=learner.clip, stability=learner.stability, bias=learner.bias)


def _once(learner: OneStep, hyper: Hyper) -> Hyper:
    return Hyper(learner.eta, 1, hyper.mu)
