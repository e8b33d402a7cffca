"""DP-MLP: one hidden layer under Algorithm 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dpladder.learn.curator import PublicInputs, Training
from dpladder.learn.descent import descend, momentum, split_into_shapes
from dpladder.learn.interface import Constants, Hyper, Shape, Weights, public_random
from dpladder.learn.queries import GradientSum, Query
from dpladder_papers.methods.dp_mlp.queries import layers
from dpladder_papers.methods.dp_mlp.section import HiddenLayer


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
    random = public_random(constants)
    inner, outer = (random.uniform(-1.0, 1.0, shape) * shape[1] ** -0.5 for shape in layers)
    scale = {"zero": 0.0, "random": 1.0}[learner.init]
    return torch.from_numpy(np.concatenate([inner.ravel(), outer.ravel() * scale]))
