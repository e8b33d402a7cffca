"""The sum of clipped gradients of a perceptron with one hidden layer, by Opacus' gradients of
single records."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial

import torch
from opacus import GradSampleModule
from opacus.grad_sample.linear import compute_linear_grad_sample
from opacus.grad_sample.utils import register_grad_sampler
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.utils import vector_to_parameters

from dpladder.config.model import Resources
from dpladder.learn.bounds import Scale, clip, without_infinities
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants, Shape
from dpladder.learn.links import SOFTMAX, Link
from dpladder.learn.queries import Flat
from dpladder.learn.records import Records, Rows, Sums, load, no_losses, prepare
from dpladder.network.layers import Steady

CHUNK = 64  # every record in it holds a gradient of its own

register_grad_sampler(Steady)(compute_linear_grad_sample)


class Perceptron(nn.Module):
    """ReLU between two matrices. A bias is a last column, met by a constant input."""

    def __init__(self, layers: Sequence[Shape], bias: bool) -> None:
        super().__init__()
        self.inner, self.outer = (Steady(inputs, outputs, bias=False) for outputs, inputs in layers)
        self.bias = bias

    def forward(self, x: Tensor) -> Tensor:
        """Logits (..., classes), of features (..., inputs)."""
        hidden = torch.relu(self.inner(x))
        return self.outer(pad(hidden, (0, 1), value=1.0) if self.bias else hidden)


def sums_of(model: Flat, data: Data, constants: Constants, resources: Resources) -> Sums:
    """The gradients of a perceptron, whose weights lie in one vector: the engine that `Flat` names.

    Args:
        model: whose options are the shapes of its layers, whether there is a bias, and the link.
        data: private features and labels.
        constants: public sizes.
        resources: threads, memory and device.
    """
    shapes, bias, link = model.options
    records = load(
        data,
        constants,
        prepare(resources),
        chunk=CHUNK,
        memory_mb=resources.mem_mb,
        views=model.views,
        bias=bias,
    )
    module = Perceptron(shapes, bias).to(records.device)
    watched = GradSampleModule(module, loss_reduction="sum")
    loss = Link(link, constants.classes, constants.labels)

    return Sums(records, partial(clipped_sum, watched, records, link=loss), no_losses)


def clipped_sum(
    model: GradSampleModule,
    records: Records,
    weights: Tensor,
    bound: float,
    rows: Sequence[Rows],
    scale: Scale = clip,
    link: Link = SOFTMAX,
) -> Tensor:
    """The sum of the records' gradients, each kept within `bound`.

    Sensitivity: the bound. Each record's gradient is made by itself, as Opacus does it, and its
    norm is taken in float64.

    Args:
        model: the perceptron, hooked by Opacus.
        records: with their views.
        weights: (trainings, parameters).
        bound: the largest L2 length of one record's gradient, the mean over its views.
        rows: the chunks to add up.
        scale: `clip` or `normalise` (learn/bounds.py).
        link: from logits to the loss.

    Returns:
        float64 (trainings, parameters).
    """
    total = torch.zeros_like(weights)
    for place, layer_weights in enumerate(weights):
        vector_to_parameters(layer_weights.float(), model.parameters())
        for chunk in rows:
            x = records.block(chunk)
            views = x.shape[1]
            targets = records.labels[chunk].repeat_interleave(views)[:, None]
            with torch.enable_grad(), warnings.catch_warnings():
                # Opacus hooks the first layer too, whose inputs need no gradient.
                warnings.filterwarnings("ignore", "Full backward hook is firing", UserWarning)
                losses = link.losses(model(x).flatten(0, 1), targets, dim=1)
                torch.autograd.backward(losses.sum() / views)
            gradients = torch.cat([p.grad_sample.flatten(1) for p in model.parameters()], dim=1)
            model.zero_grad()
            norms = torch.linalg.vector_norm(gradients, dim=1, dtype=torch.float64)
            factor = (scale(norms, bound) * records.counted[chunk]).float()
            # a record whose gradient overflows has none: a rule that looks at this record alone
            gradients = records.as_summable(without_infinities(gradients))
            total[place] += records.as_summable(factor) @ gradients
    return total
