"""What DP-MLP asks: a noised sum of clipped gradients at each step, of all weights in one
vector."""

from __future__ import annotations

import math

from dpladder.learn import descent_noise
from dpladder.learn.descent_noise import gradient_sum
from dpladder.learn.interface import Constants, Hyper, Shape
from dpladder.learn.queries import Flat, Query
from dpladder_papers.methods.dp_mlp.section import HiddenLayer

HIDDEN = 128


def queries(learner: HiddenLayer, hyper: Hyper, constants: Constants) -> tuple[Query, ...]:
    """Gradients of both layers at each step.

    Guarantee: mu-GDP for `hyper.mu` on full batches; on samples, what the steps are booked at.
    """
    shapes = layers(learner, constants)
    size = sum(math.prod(shape) for shape in shapes)
    options = (shapes, learner.bias, learner.link)
    model = Flat("dpladder.learn.perceptron", options, size, learner.augment)
    return (gradient_sum(learner, hyper, constants, model),)


def layers(learner: HiddenLayer, constants: Constants) -> tuple[Shape, Shape]:
    """Shapes of the two weight matrices; a bias is a last column."""
    return (HIDDEN, constants.dimension + learner.bias), (constants.classes, HIDDEN + learner.bias)


def logit_noise(learner: HiddenLayer, hyper: Hyper, constants: Constants) -> float:
    """kappa of one training: the sd of the noise that it puts into a logit.

    It is computed as if the last layer were all: its inputs are about as long as the features.
    """
    return descent_noise.logit_noise(learner, hyper, constants, learner.momentum)
