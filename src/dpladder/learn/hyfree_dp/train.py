"""HyFreeDP: descent whose learning rate is read off a parabola through noised losses (Bu & Liu
2025, section 3), on a linear head, or on whatever sums gradients and losses. No clip and no
learning rate to choose, and so nothing to search.

Gradients are scaled to length 1 each (automatic clipping, Bu et al. 2023). The rest is
post-processing of releases: the direction, the parabola, the bound on the next losses, and all the
guards, which rest on public figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpladder.config.learner_sections import (
    Adam,
    Descent,
    HyperparameterFree,
    LossesLookedAt,
    Steering,
)
from dpladder.config.model import Resources
from dpladder.learn.bounds import SLACK, normalise
from dpladder.learn.descent import (
    Begin,
    Sums,
    momentum,
    per_trial,
    published,
    released,
    sampled_rows,
)
from dpladder.learn.heads.train import adam
from dpladder.learn.hyfree_dp.cost import Multipliers, apart, loss_moves, split
from dpladder.learn.interface import Constants, Data, Hyper, alone
from dpladder.learn.linear import resident, sums_of
from dpladder.learn.links import link_of
from dpladder.learn.records import Rows
from dpladder.privacy.release.meter import Meter
from dpladder.progress import LONG, progress

# The bound on a loss, in units of the loss of who knows nothing: every record's at zero weights,
# log(classes) of softmax. It follows the last noised mean loss at twice its height: at its height,
# as published, the bound could only ever fall.
FIRST, LEAST, MOST, ROOM = 2.0, 0.1, 4.0, 2.0

FACTOR = 2.0  # by which a rate changes at most
RATES = (1e-4, 1e4)  # and where it stays
SURE = 1.5  # noise deviations by which the losses ahead and behind must differ, or the rate stays


@dataclass(frozen=True)
class Rate:
    """What the releases so far say, one of each for every training: the learning rate, the bound on
    a record's loss."""

    eta: Tensor
    bound: Tensor


@dataclass(frozen=True, eq=False)
class Step:
    """What one step looks at: the records of its sample, and what their sums are divided by."""

    sums: Sums
    rows: list[Rows]
    size: float


@torch.inference_mode()
def train_many(
    data: Data,
    hypers: Sequence[Hyper],
    learner: HyperparameterFree,
    constants: Constants,
    meters: Sequence[Meter],
    resources: Resources,
) -> NDArray[np.float32]:
    """Independent trainings of equal length, one meter each: weights of shape (trainings, classes,
    width)."""
    sums, first = begun(data, learner, constants, resources)
    return descend(sums, first, hypers, learner, constants, meters, data.units)


train = alone(train_many)


def begun(
    data: Data, learner: HyperparameterFree, constants: Constants, resources: Resources
) -> tuple[Sums, Tensor]:
    """What a training asks of its records, and the weights that it starts from."""
    records, threads = resident(data, constants, resources, bias=learner.bias)
    first = torch.zeros(
        constants.classes, constants.dimension + learner.bias, device=records.device
    )
    return sums_of(records, threads, normalise, link_of(learner, constants)), first


def descend(
    sums: Sums,
    first: Tensor,
    hypers: Sequence[Hyper],
    learner: LossesLookedAt,
    constants: Constants,
    meters: Sequence[Meter],
    units: NDArray[np.uint8] | None = None,
) -> NDArray[np.float32]:
    """Independent trainings of equal length from the weights `first`, one meter each: released
    weights of shape (trainings, *first)."""
    if learner.sampling_rate < 1.0 and len(hypers) > 1:
        # Each training has samples of its own, so they share no pass.
        each = [
            descend(sums, first, [hyper], learner, constants, [meter], units)
            for hyper, meter in zip(hypers, meters, strict=True)
        ]
        return np.concatenate(each)
    splits = [split(learner, hyper, constants.relation) for hyper in hypers]
    weights = first.double().expand(len(hypers), *first.shape).clone()
    size = constants.n0 * learner.sampling_rate
    one = loss_moves(learner, constants)
    deviation = per_trial([found.loss * one for found in splits], first).flatten()
    unit = torch.full_like(deviation, sums.unit)
    rate = Rate(per_trial([hyper.eta for hyper in hypers], first).flatten(), FIRST * unit)
    update = _optimizer(learner)(weights, per_trial([0.0] * len(hypers), first))
    with progress("training", splits[0].steps, "steps", after=LONG) as advance:
        for step in range(splits[0].steps):
            here = Step(
                sums, sampled_rows(sums.records, learner.sampling_rate, meters[0], units), size
            )
            direction = update(noised_gradient(here, weights, constants, meters), weights)
            direction = direction + learner.weight_decay * weights
            if step % learner.every == 0:
                move = _times(rate.eta, direction)
                losses = noised_losses(here, weights, move, rate.bound, splits, meters)
                noise = deviation * rate.bound / size
                rate = learned(rate, losses, noise, unit, learner.steering)
            weights = weights - _times(rate.eta, direction)
            advance(1)
    return released(weights)


def _times(numbers: Tensor, directions: Tensor) -> Tensor:
    """Each training's own direction times its own number."""
    return numbers.view(-1, *[1] * (directions.ndim - 1)) * directions


def _optimizer(learner: LossesLookedAt) -> Begin:
    """What makes a direction of noised gradients."""
    if learner.optimizer == "adamw":
        return adam(Adam())
    return momentum(Descent(momentum=0.9 if learner.optimizer == "momentum" else 0.0))


def noised_gradient(
    step: Step, weights: Tensor, constants: Constants, meters: Sequence[Meter]
) -> Tensor:
    """The mean of normalised gradients, a unit's part in its sum being 1 at most."""
    bound = (1.0 - step.sums.records.slack) / constants.cap
    return published(meters, "noise", step.sums.gradients(weights, bound, step.rows)) / step.size


def places(points: int) -> list[int]:
    """Where losses are looked at, in steps back along the direction: 1, 0, -1 or 2, 1, 0, -1,
    -2."""
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
    looked_at = torch.stack([weights + back * move for back in places(points)], dim=1).flatten(0, 1)
    bounds = bound.repeat_interleave(points)[:, None]

    def clipped(losses: Tensor) -> Tensor:
        # A loss that overflows counts as the largest: a rule that looks at this record alone.
        return (losses / bounds).nan_to_num_(nan=1.0).clamp_(0.0, 1.0 - SLACK)

    sums = step.sums.losses(looked_at, clipped, step.rows).view(len(bound), points)
    return bound[:, None] * _published_losses(meters, sums, splits[0]) / step.size


def _published_losses(meters: Sequence[Meter], sums: Tensor, found: Multipliers) -> Tensor:
    """All losses of a look in one release; one by one where each is declared so."""
    if found.apart:
        columns = zip(apart(found), sums.unbind(1), strict=True)
        return torch.stack([published(meters, name, column) for name, column in columns], dim=1)
    if all(meter.shape("losses") == tuple(sums.shape[1:]) for meter in meters):
        return published(meters, "losses", sums)
    return torch.stack([published(meters, "losses", column) for column in sums.unbind(1)], dim=1)


def learned(
    rate: Rate, losses: Tensor, deviation: Tensor, unit: Tensor, steering: Steering = "guarded"
) -> Rate:
    """The rate at the bottom of the parabola through the losses along the step, by least squares:
    of points k steps ahead, loss = c - s k + a k^2 / 2, and the bottom lies s / a steps ahead.

    A parabola that opens downwards has no bottom: the rate then goes the way the losses fall.
    Losses that differ by no more than noise of this deviation say nothing. As published (section
    3), the rate goes to each bottom that lies ahead, and otherwise stays.
    """
    ahead = -torch.tensor(places(losses.shape[1]), dtype=losses.dtype, device=losses.device)
    squares = ahead.square() - ahead.square().mean()
    slope = -(losses * ahead).sum(1) / ahead.square().sum()
    curvature = 2 * (losses * squares).sum(1) / squares.square().sum()
    room, factor, heard = 1.0, slope / curvature, (slope > 0) & (curvature > 0)
    if steering == "guarded":
        bottom = torch.where(curvature > 0, factor, math.inf)
        factor = torch.where(slope > 0, bottom, 0.0).clamp_(1.0 / FACTOR, FACTOR)
        room, heard = ROOM, slope.abs() > SURE * deviation / ahead.square().sum().sqrt()
    eta = torch.where(heard, rate.eta * factor, rate.eta).clamp_(*RATES)
    here = losses[:, losses.shape[1] // 2]
    bound = (room * here).nan_to_num_(nan=math.inf).clamp_(min=LEAST * unit, max=MOST * unit)
    return Rate(eta, bound)
