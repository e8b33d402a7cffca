"""DP-MLP: one hidden layer, trained on Opacus' per-record gradients."""

from __future__ import annotations

import math

import numpy as np

from dpladder.config.learners import Descent
from dpladder.config.model import Resources
from dpladder.learn.interface import Constants, Data, Declaration, Hyper, Shape, Weights, declaration
from dpladder.privacy.meter import Meter

HIDDEN = 128


def declare(learner: Descent, hyper: Hyper, constants: Constants) -> Declaration:
    size = sum(math.prod(shape) for shape in layers(learner, constants))
    return declaration(learner, hyper, constants, (size,))


def train(
    data: Data, hyper: Hyper, learner: Descent, constants: Constants, meter: Meter, resources: Resources
) -> Weights:
    from dpladder.learn.perceptron import train_flat

    shapes = layers(learner, constants)
    flat = train_flat(data, hyper, learner, constants, shapes, meter, resources)
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    return tuple(part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), shapes, strict=True))


def layers(learner: Descent, constants: Constants) -> tuple[Shape, Shape]:
    """Shapes of the two weight matrices; a bias is a last column."""
    return (HIDDEN, constants.dimension + learner.bias), (constants.classes, HIDDEN + learner.bias)
