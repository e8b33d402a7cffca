"""The iteration behind DP-Newton, one class at a time: beside the records, weights and a few d x d
matrices are held.

A step's Hessians all belong to the weights before it. Softmax couples the classes, and the diagonal
blocks alone would overshoot: diag(p) - p p^T <= 2 diag(p_j (1 - p_j)), from (v_j - v_k)^2 <= 2
v_j^2 + 2 v_k^2 in its quadratic form. With twice the blocks a step bounds the loss from above to
second order.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor

from dpladder.config.learner_sections import Newton
from dpladder.config.model import Resources
from dpladder.learn.interface import Constants, Data, Hyper, Publish, Weights, metered
from dpladder.learn.links import Link, link_of
from dpladder.learn.moments import (
    as_weights,
    class_by_class,
    finite,
    in_ball,
    load_records,
    second_moment,
    solve,
    threads_of,
    to_matrix,
)
from dpladder.learn.records import Records, Rows

MAJORANT = {"softmax": 2.0, "sigmoid": 1.0}


@torch.inference_mode()
def fit(
    data: Data,
    hyper: Hyper,
    learner: Newton,
    constants: Constants,
    release: Publish,
    resources: Resources,
) -> Weights:
    """Newton's method on two noised sums a step: the gradient, and each class's Hessian block at
    the weights that the gradient was taken at."""
    records = load_records(data, constants, resources)
    threads, link = threads_of(records, resources), link_of(learner, constants)
    shape = (constants.classes, constants.dimension)
    weights = torch.zeros(shape, dtype=torch.float64, device=records.device)
    for _ in range(hyper.steps):
        total, levels = _gradient(records, weights, learner.radius, link)
        slope = release("gradient", total) / constants.n0 + hyper.ridge * weights
        observe = partial(_hessian, records, weights, levels, learner.radius, link)
        move = partial(_move, slope, hyper.ridge, MAJORANT[learner.link] / constants.n0)
        moves = class_by_class(constants.classes, threads, observe, release, move)
        weights = finite(weights - torch.stack(moves))
        # a shift of all classes alike changes no probability, but the penalty
        if learner.link == "softmax":
            weights -= weights.mean(0)
    return as_weights(weights)


def _move(
    slope: Tensor, ridge: float, scale: float, label: int, sums: Mapping[str, Tensor]
) -> Tensor:
    return solve(scale * to_matrix(sums["hessian"]), ridge, slope[label])


def _gradient(
    records: Records, weights: Tensor, radius: float, link: Link
) -> tuple[Tensor, Tensor]:
    """The sum of (p - y) x^T, and what makes a record's probability of one class from that class's
    logit alone: the log of the softmax's denominator."""
    total = torch.zeros_like(weights)
    levels = torch.zeros(len(records), dtype=torch.float64, device=records.device)
    for rows in records.chunks():
        x = in_ball(records, rows, radius)
        logits = x.double() @ weights.T
        if link.name == "softmax":
            levels[rows] = logits.logsumexp(1)
        residual = _probability(logits, levels[rows][:, None], link)
        residual.scatter_add_(
            1, records.labels[rows][:, None], residual.new_full((len(x), 1), -1.0)
        )
        total += records.summed(residual.float()).T @ records.summed(x)
    return total, levels


def _hessian(
    records: Records, weights: Tensor, levels: Tensor, radius: float, link: Link, label: int
) -> dict[str, Tensor]:
    """Coordinates of one class's sum of p (1 - p) x x^T."""

    def weigh(rows: Rows, x: Tensor) -> Tensor:
        p = _probability(x.double() @ weights[label], levels[rows], link)
        return (p * (1.0 - p)).float()

    return {"hessian": second_moment(records, radius, records.chunks(), weigh)}


def _probability(logits: Tensor, levels: Tensor, link: Link) -> Tensor:
    if link.name == "sigmoid":
        return link.probabilities(logits, dim=-1)
    return (logits - levels).exp().clamp_(max=1.0)


train = metered(fit)
