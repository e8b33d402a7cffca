"""DP-MLP: one hidden layer under Algorithm 1. Gradients of all weights are one vector."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpladder.learn import descent_noise
from dpladder.learn.descent_noise import gradient_sum
from dpladder.learn.interface import Constants, Hyper, Shape, Weights, public_random
from dpladder.learn.queries import Flat, GradientSum, Query
from dpladder_papers.methods.dp_mlp import HiddenLayer

if TYPE_CHECKING:  # a plan asks for queries alone, and loads no torch
    from torch import Tensor

    from dpladder.learn.curator import PublicInputs, Training


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


def train(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: HiddenLayer,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """A descent with momentum on a perceptron, from a public random start.

    Guarantee: that of its gradients' releases.
    """
    from dpladder.learn.descent import descend, momentum, split_into_shapes

    gradients, shapes = queries[0], layers(learner, constants)
    assert isinstance(gradients, GradientSum)
    first = initial(learner, constants, shapes).to(inputs.device)
    update = momentum(learner.momentum)
    flat = yield from descend(gradients, first, hyper, learner, constants, update)
    return split_into_shapes(flat, shapes)


def initial(learner: HiddenLayer, constants: Constants, layers: Sequence[Shape]) -> Tensor:
    """The first weights in one vector, drawn from the public seed.

    `zero` holds for the outer layer alone: with both at zero no gradient would pass.

    Args:
        learner: its section in the config.
        constants: whose seed is drawn from.
        layers: shapes of the two matrices.
    """
    import torch

    random = public_random(constants)
    inner, outer = (random.uniform(-1.0, 1.0, shape) * shape[1] ** -0.5 for shape in layers)
    scale = {"zero": 0.0, "random": 1.0}[learner.init]
    return torch.from_numpy(np.concatenate([inner.ravel(), outer.ravel() * scale]))
