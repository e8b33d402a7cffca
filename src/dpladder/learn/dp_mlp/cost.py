"""What DP-MLP costs: a noised sum of clipped gradients at each step, of all weights in one
vector."""

from __future__ import annotations

import math

from dpladder.config.learner_sections import Descent
from dpladder.learn import interface
from dpladder.learn.interface import Constants, Declaration, Hyper, Shape, declaration

HIDDEN = 128


def declare(learner: Descent, hyper: Hyper, constants: Constants) -> Declaration:
    size = sum(math.prod(shape) for shape in layers(learner, constants))
    return declaration(learner, hyper, constants, (size,))


def layers(learner: Descent, constants: Constants) -> tuple[Shape, Shape]:
    """Shapes of the two weight matrices; a bias is a last column."""
    return (HIDDEN, constants.dimension + learner.bias), (constants.classes, HIDDEN + learner.bias)


def logit_noise(learner: Descent, hyper: Hyper, constants: Constants) -> float:
    """As if the last layer were all: its inputs are about as long as the features."""
    return interface.logit_noise(learner, hyper, constants, learner.momentum)
