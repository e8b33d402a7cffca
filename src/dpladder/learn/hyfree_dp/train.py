"""HyFreeDP on a linear head: descent whose learning rate is read off a parabola through noised losses (Bu & Liu 2025,
section 3). No clip and no learning rate to choose, and so nothing to search.

Gradients are scaled to length 1 each (automatic clipping, Bu et al. 2023). The rest is post-processing of releases: the
direction, the parabola, the bound on the next losses, and all the guards, which rest on public figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpladder.config.learner_sections import Adam, Descent, HyperparameterFree
from dpladder.config.model import Resources
from dpladder.learn.bounds import normalise
from dpladder.learn.descent import SLACK, Begin, momentum, per_trial, published, released, sampled_rows
from dpladder.learn.dp_adam.train import adam
from dpladder.learn.hyfree_dp.cost import Multipliers, split
from dpladder.learn.interface import Constants, Data, Hyper, alone
from dpladder.learn.linear import clipped_sum, resident, summed_losses
from dpladder.learn.links import SOFTMAX, Link, link_of
from dpladder.learn.records import Records, Rows
from dpladder.privacy.release.meter import Meter

# The bound on a loss, in units of every record's loss at zero weights: log(classes), where the link is softmax. It follows the last noised
# mean loss at twice its height: at its height, as published, the bound could only ever fall.
FIRST, LEAST, MOST, ROOM = 2.0, 0.1, 4.0, 2.0

FACTOR = 2.0  # by which a rate changes at most
RATES = (1e-4, 1e4)  # and where it stays
SURE = 1.5  # noise deviations by which the losses ahead and behind must differ, or the rate stays


@dataclass(frozen=True)
class Rate:
    """What the releases so far say, one of each for every training: the learning rate, the bound on a record's loss."""

    eta: Tensor
    bound: Tensor


@dataclass(frozen=True, eq=False)
class Step:
    """What one step looks at: the records of its sample, and what their sums are divided by."""

    records: Records
    rows: Sequence[Rows]
    size: float
    threads: int
    link: Link = SOFTMAX


def train_many(
    data: Data,
    hypers: Sequence[Hyper],
    learner: HyperparameterFree,
    constants: Constants,
    meters: Sequence[Meter],
    resources: Resources,
) -> NDArray[np.float32]:
    """Independent trainings of equal length, one meter each: weights of shape (trainings, classes, width)."""
    if learner.sampling_rate == 1.0:
        return _descend(data, hypers, learner, constants, meters, resources)
    # Each training has samples of its own, so they share no pass.
    each = [
        _descend(data, [hyper], learner, constants, [meter], resources)
        for hyper, meter in zip(hypers, meters, strict=True)
    ]
    return np.concatenate(each)


train = alone(train_many)


@torch.inference_mode()
def _descend(
    data: Data,
    hypers: Sequence[Hyper],
    learner: HyperparameterFree,
    constants: Constants,
    meters: Sequence[Meter],
    resources: Resources,
) -> NDArray[np.float32]:
    splits = [split(learner, hyper, constants.relation) for hyper in hypers]
    records, threads = resident(data, constants, resources, bias=learner.bias)
    first = torch.zeros(constants.classes, constants.dimension + learner.bias, device=records.device)
    weights = first.double().expand(len(hypers), *first.shape).clone()
    size = constants.n0 * learner.sampling_rate
    deviation = per_trial([found.loss * constants.moves_count() for found in splits], first)[:, 0, 0]
    link = link_of(learner, constants.classes)
    unit = torch.full_like(deviation, link.first)
    rate = Rate(per_trial([hyper.eta for hyper in hypers], first)[:, 0, 0], FIRST * unit)
    update = _optimizer(learner)(weights, weights.new_zeros(len(hypers), 1, 1))
    for step in range(splits[0].steps):
        rows = sampled_rows(records, learner.sampling_rate, meters[0], data.units)
        here = Step(records, rows, size, threads, link)
        direction = update(noised_gradient(here, weights, constants, meters), weights)
        direction = direction + learner.weight_decay * weights
        if step % learner.every == 0:
            move = rate.eta[:, None, None] * direction
            losses = noised_losses(here, weights, move, rate.bound, splits, meters)
            rate = learned(rate, losses, deviation * rate.bound / size, unit)
        weights = weights - rate.eta[:, None, None] * direction
    return released(weights)


def _optimizer(learner: HyperparameterFree) -> Begin:
    """What makes a direction of noised gradients."""
    if learner.optimizer == "adamw":
        return adam(Adam())
    return momentum(Descent(momentum=0.9 if learner.optimizer == "momentum" else 0.0))


def noised_gradient(step: Step, weights: Tensor, constants: Constants, meters: Sequence[Meter]) -> Tensor:
    """The mean gradient, a unit's part in its sum being 1 at most."""
    bound = (1.0 - SLACK) / constants.cap
    total = clipped_sum(step.records, weights, bound, step.rows, step.threads, normalise, step.link)
    return published(meters, "noise", total) / step.size


def places(points: int) -> list[int]:
    """Where losses are looked at, in steps back along the direction: 1, 0, -1 or 2, 1, 0, -1, -2."""
    return list(range(points // 2, -(points // 2) - 1, -1))


def noised_losses(
    step: Step,
    weights: Tensor,
    move: Tensor,
    bound: Tensor,
    splits: Sequence[Multipliers],
    meters: Sequence[Meter],
) -> Tensor:
    """Mean losses from behind to ahead, (trainings, points)."""
    points = splits[0].points
    heads = torch.stack([weights + back * move for back in places(points)], dim=1).flatten(0, 1)
    bounds = bound.repeat_interleave(points)[:, None]

    def clipped(losses: Tensor) -> Tensor:
        # A loss that overflows counts as the largest: a rule that looks at this record alone.
        return (losses / bounds).nan_to_num_(nan=1.0).clamp_(max=1.0 - SLACK)

    sums = summed_losses(step.records, heads, clipped, step.rows, step.threads, step.link)
    sums = sums.view(len(bound), points)
    return bound[:, None] * _published_losses(meters, sums) / step.size


def _published_losses(meters: Sequence[Meter], sums: Tensor) -> Tensor:
    """All losses of a look in one release; one by one where each is declared so."""
    if all(meter.shape("losses") == tuple(sums.shape[1:]) for meter in meters):
        return published(meters, "losses", sums)
    return torch.stack([published(meters, "losses", column) for column in sums.unbind(1)], dim=1)


def learned(rate: Rate, losses: Tensor, deviation: Tensor, unit: Tensor) -> Rate:
    """The rate at the bottom of the parabola through the losses along the step, by least squares: of points k steps ahead,
    loss = c - s k + a k^2 / 2, and the bottom lies s / a steps ahead.

    A parabola that opens downwards has no bottom: the rate then goes the way the losses fall. Losses that differ by no
    more than noise of this deviation say nothing.
    """
    ahead = -torch.tensor(places(losses.shape[1]), dtype=losses.dtype, device=losses.device)
    squares = ahead.square() - ahead.square().mean()
    slope = -(losses * ahead).sum(1) / ahead.square().sum()
    curvature = 2 * (losses * squares).sum(1) / squares.square().sum()
    bottom = torch.where(curvature > 0, slope / curvature, math.inf)
    factor = torch.where(slope > 0, bottom, 0.0).clamp_(1.0 / FACTOR, FACTOR)
    heard = slope.abs() > SURE * deviation / ahead.square().sum().sqrt()
    eta = torch.where(heard, rate.eta * factor, rate.eta).clamp_(*RATES)
    here = losses[:, losses.shape[1] // 2]
    bound = (ROOM * here).nan_to_num_(nan=math.inf).clamp_(min=LEAST * unit, max=MOST * unit)
    return Rate(eta, bound)
