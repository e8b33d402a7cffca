"""DP-MLP: one hidden layer under Algorithm 1, per-record gradients from Opacus, all randomness from
the meter."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from opacus import GradSampleModule
from opacus.grad_sample.linear import compute_linear_grad_sample
from opacus.grad_sample.utils import register_grad_sampler
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from dpladder.config.learner_sections import Descent
from dpladder.config.model import Resources
from dpladder.learn.bounds import Scale, clip, scale_of
from dpladder.learn.descent import descend, momentum
from dpladder.learn.dp_mlp.cost import layers
from dpladder.learn.interface import Constants, Data, Hyper, Shape, Weights, public_random
from dpladder.learn.links import SOFTMAX, Link, link_of
from dpladder.learn.records import Records, Rows, load, prepare
from dpladder.network.layers import Steady
from dpladder.privacy.release.meter import Meter

CHUNK = 64  # every record in it holds a gradient of its own

register_grad_sampler(Steady)(compute_linear_grad_sample)


class Perceptron(nn.Module):
    """ReLU between two matrices. A bias is a last column, met by a constant input."""

    def __init__(self, layers: Sequence[Shape], bias: bool) -> None:
        super().__init__()
        self.inner, self.outer = (Steady(inputs, outputs, bias=False) for outputs, inputs in layers)
        self.bias = bias

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.inner(x))
        return self.outer(pad(hidden, (0, 1), value=1.0) if self.bias else hidden)


def train(
    data: Data,
    hyper: Hyper,
    learner: Descent,
    constants: Constants,
    meter: Meter,
    resources: Resources,
) -> Weights:
    shapes = layers(learner, constants)
    flat = train_flat(data, hyper, learner, constants, shapes, meter, resources)
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    return tuple(
        part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), shapes, strict=True)
    )


def train_flat(
    data: Data,
    hyper: Hyper,
    learner: Descent,
    constants: Constants,
    layers: Sequence[Shape],
    meter: Meter,
    resources: Resources,
) -> NDArray[np.float32]:
    """All weights in one vector, layer after layer."""
    device = prepare(resources)
    records = load(
        data,
        constants,
        device,
        chunk=CHUNK,
        memory_mb=resources.mem_mb,
        views=learner.augment,
        bias=learner.bias,
    )
    model = GradSampleModule(Perceptron(layers, learner.bias).to(device), loss_reduction="sum")
    link = link_of(learner, constants)
    sums = partial(clipped_sum, model, records, scale=scale_of(learner.clipping), link=link)
    first = initial(learner, constants, layers).to(device)
    with warnings.catch_warnings():
        # Opacus hooks the first layer too, whose inputs need no gradient.
        warnings.filterwarnings("ignore", "Full backward hook is firing", UserWarning)
        return descend(
            sums,
            first,
            records,
            [hyper],
            learner,
            constants,
            [meter],
            momentum(learner),
            data.units,
        )[0]


def clipped_sum(
    model: GradSampleModule,
    records: Records,
    weights: Tensor,
    bound: float,
    rows: Sequence[Rows],
    scale: Scale = clip,
    link: Link = SOFTMAX,
) -> Tensor:
    """Sum of the records' gradients, each kept within `bound`, for weights of shape (1,
    parameters)."""
    vector_to_parameters(weights[0].float(), model.parameters())
    total = torch.zeros_like(weights)
    for chunk in rows:
        x = records.block(chunk)
        views = x.shape[1]
        logits = model(x).flatten(0, 1)
        targets = records.labels[chunk].repeat_interleave(views)
        torch.autograd.backward(link.losses(logits, targets[:, None], dim=1).sum() / views)
        gradients = torch.cat([p.grad_sample.flatten(1) for p in model.parameters()], dim=1)
        model.zero_grad()
        norms = torch.linalg.vector_norm(gradients, dim=1, dtype=torch.float64)
        factor = scale(norms, bound) * records.counted[chunk]
        # A record whose gradient overflows has none: a rule that looks at this record alone.
        factor = records.summed(factor.nan_to_num_(nan=0.0).float())
        total[0] += factor @ records.summed(gradients.nan_to_num_(0.0, 0.0, 0.0))
    return total


def initial(learner: Descent, constants: Constants, layers: Sequence[Shape]) -> Tensor:
    """Drawn from the public seed. `zero` holds for the outer layer alone: with both at zero no
    gradient would pass."""
    random = public_random(constants)
    inner, outer = (random.uniform(-1.0, 1.0, shape) * shape[1] ** -0.5 for shape in layers)
    scale = {"zero": 0.0, "random": 1.0}[learner.init]
    return parameters_to_vector([torch.from_numpy(inner), torch.from_numpy(outer * scale)])
