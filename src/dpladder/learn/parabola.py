"""Descent whose learning rate is read off a parabola through three noised losses (Bu & Liu 2025, section 3).

Gradients are scaled to length 1 each (automatic clipping, Bu et al. 2023). The rest is post-processing of releases: the
parabola, the bound on the next losses, and all the guards, which rest on public figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpladder.config.learners import HyperparameterFree
from dpladder.config.model import Resources
from dpladder.learn.descent import SLACK, noise, released
from dpladder.learn.engine import clipped_sum, resident, summed_losses
from dpladder.learn.hyfree_dp import LOSSES, Split, loss_scale
from dpladder.learn.interface import Constants, Data, Hyper
from dpladder.learn.records import Records
from dpladder.privacy.meter import Meter

STABILITY = 0.01  # added to a gradient's norm, so that a small gradient stays small (Bu et al. 2023)

# The bound on a loss, in units of log(classes), which is every record's loss at zero weights. It follows the last noised
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


@torch.inference_mode()
def descend_by_losses(
    data: Data,
    hypers: Sequence[Hyper],
    splits: Sequence[Split],
    learner: HyperparameterFree,
    constants: Constants,
    meters: Sequence[Meter],
    resources: Resources,
) -> NDArray[np.float32]:
    """Independent trainings of equal length, one meter each: weights of shape (trainings, classes, width)."""
    records, threads = resident(data, constants, resources, bias=learner.bias)
    first = torch.zeros(constants.classes, constants.dimension + learner.bias, device=records.device)
    weights = first.double().expand(len(hypers), *first.shape).clone()
    scales = [loss_scale(found, constants) for found in splits]
    deviation = torch.tensor(scales, dtype=torch.float64, device=first.device)
    unit = torch.full_like(deviation, math.log(max(2, constants.classes)))
    eta = torch.tensor([hyper.eta for hyper in hypers], dtype=torch.float64, device=first.device)
    rate = Rate(eta, FIRST * unit)
    for step in range(splits[0].steps):
        gradient = noised_gradient(records, weights, splits, constants, meters, threads)
        if step % learner.every == 0:
            move = rate.eta[:, None, None] * gradient
            losses = noised_losses(records, weights, move, rate.bound, splits, constants, meters, threads)
            rate = learned(rate, losses, deviation * rate.bound / constants.n0, unit)
        weights -= rate.eta[:, None, None] * gradient
    return released(weights)


def noised_gradient(
    records: Records,
    weights: Tensor,
    splits: Sequence[Split],
    constants: Constants,
    meters: Sequence[Meter],
    threads: int = 1,
) -> Tensor:
    """The mean gradient, a unit's part in its sum being 1 at most."""
    bound = (1.0 - SLACK) / constants.cap
    total = clipped_sum(records, weights, bound, records.chunks(), threads, normalise)
    scales = [found.gradient * constants.doubling for found in splits]
    return (total + noise(meters, scales, total[0])) / constants.n0


def normalise(norms: Tensor, bound: float) -> Tensor:
    """g / (|g| + gamma), with `bound` for 1: shorter than the bound whatever the gradient."""
    return bound / (norms + STABILITY)


def noised_losses(
    records: Records,
    weights: Tensor,
    move: Tensor,
    bound: Tensor,
    splits: Sequence[Split],
    constants: Constants,
    meters: Sequence[Meter],
    threads: int = 1,
) -> Tensor:
    """Mean losses behind, here and ahead, (trainings, 3)."""
    heads = torch.stack([weights + move, weights, weights - move], dim=1).flatten(0, 1)
    bounds = bound.repeat_interleave(LOSSES)[:, None]

    def clipped(losses: Tensor) -> Tensor:
        # A loss that overflows counts as the largest: a rule that looks at this record alone.
        return (losses / bounds).nan_to_num_(nan=1.0).clamp_(max=1.0 - SLACK)

    sums = summed_losses(records, heads, clipped, records.chunks(), threads).view(len(bound), LOSSES)
    drawn = [
        meter.gaussian("losses", loss_scale(found, constants), (LOSSES,))
        for meter, found in zip(meters, splits, strict=True)
    ]
    return bound[:, None] * (sums + torch.from_numpy(np.stack(drawn)).to(sums)) / constants.n0


def learned(rate: Rate, losses: Tensor, deviation: Tensor, unit: Tensor) -> Rate:
    """The rate at the bottom of the parabola through the losses at -eta, 0 and eta along the step: b / a times eta.

    A parabola that opens downwards has no bottom: the rate then goes the way the losses fall. Losses that differ by no
    more than noise of this deviation say nothing.
    """
    behind, here, ahead = losses.unbind(dim=1)
    slope, curvature = (behind - ahead) / 2, behind + ahead - 2 * here
    bottom = torch.where(curvature > 0, slope / curvature, math.inf)
    factor = torch.where(slope > 0, bottom, 0.0).clamp_(1.0 / FACTOR, FACTOR)
    heard = slope.abs() > SURE * deviation / math.sqrt(2.0)
    eta = torch.where(heard, rate.eta * factor, rate.eta).clamp_(*RATES)
    bound = (ROOM * here).nan_to_num_(nan=math.inf).clamp_(min=LEAST * unit, max=MOST * unit)
    return Rate(eta, bound)
