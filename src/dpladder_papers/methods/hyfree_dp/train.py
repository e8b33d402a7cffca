"""HyFreeDP: descent whose learning rate is read off a parabola through noised losses (Bu & Liu
2025, section 3). It works on a linear head, or on whatever sums gradients and losses. There is no
clip and no learning rate to choose, and so nothing to search.

Gradients are scaled to length 1 each (automatic clipping, Bu et al. 2023). The rest is
post-processing of releases: the direction, the parabola, the bound on the next losses, and all the
guards, which rest on public figures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpladder.learn.curator import PublicInputs, Training
from dpladder.learn.descent import UpdateFactory, adam, momentum, released
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.links import link_of
from dpladder.learn.queries import Query
from dpladder_papers.methods.hyfree_dp.section import HyperparameterFree, LossesLookedAt, Steering

# The bound on a loss, in units of the loss of who knows nothing: every record's at zero weights,
# log(classes) of softmax. It follows the last noised mean loss at twice its height: at its height,
# as published, the bound could only ever fall.
FIRST, LEAST, MOST, ROOM = 2.0, 0.1, 4.0, 2.0

FACTOR = 2.0  # by which a rate changes at most
RATES = (1e-4, 1e4)  # and where it stays
SURE = 1.5  # noise deviations by which the losses ahead and behind must differ, or the rate stays


@dataclass(frozen=True)
class Rate:
    """What the releases so far say.

    Attributes:
        eta: the learning rate.
        bound: on a record's loss, that the next losses are cut to.
    """

    eta: Tensor
    bound: Tensor


def train(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: HyperparameterFree,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """Descent with step sizes from noised losses, on a linear head (Bu & Liu 2025, section 3).

    Guarantee: mu-GDP for `hyper.mu` on full batches, over all gradients and all looks at losses; on
    samples, what the run is booked at. Rates, bounds and guards are post-processing.
    """
    first = inputs.zeros(constants.classes, constants.dimension + learner.bias)
    unit = link_of(learner, constants).loss_at_zero
    return ((yield from descend(queries, first, unit, learner, hyper, constants)),)


def descend(
    queries: tuple[Query, ...],
    first: Tensor,
    unit: float,
    learner: LossesLookedAt,
    hyper: Hyper,
    constants: Constants,
) -> Training[NDArray[np.float32]]:
    """Descent whose rate follows from noised losses.

    Guarantee: that of the noised gradients and losses. Rates, bounds and guards follow from them
    alone.

    Args:
        queries: the gradients', then those of losses.
        first: weights to start from.
        unit: how wrong about a record is who knows nothing, a public figure.
        learner: its section in the config.
        hyper: the first rate, and the number of steps.
        constants: public sizes.

    Returns:
        Released weights, in the shape of `first`.
    """
    gradients, *losses = queries
    size = constants.n0 * learner.sampling_rate
    weights = first.double().clone()
    rate = Rate(weights.new_tensor(hyper.eta), weights.new_tensor(FIRST * unit))
    update = _optimizer(learner)(weights, 0.0)
    for step in range(hyper.steps):
        gradient = (yield gradients.at(weights)) / size
        direction = update(gradient, weights) + learner.weight_decay * weights
        if step % learner.every == 0:
            move = rate.eta * direction
            looked_at = torch.stack([weights + back * move for back in places(learner.points)])
            losses_seen = yield from noised_losses(losses, looked_at, rate.bound)
            noise = losses[0].scale(constants) * rate.bound / size
            rate = fit_rate(rate, rate.bound * losses_seen / size, noise, unit, learner.steering)
        weights = weights - rate.eta * direction
    return released(weights)


def _optimizer(learner: LossesLookedAt) -> UpdateFactory:
    """What makes a direction of noised gradients."""
    if learner.optimizer == "adamw":
        return adam(betas=(0.9, 0.999), stability=1e-8)
    return momentum(0.9 if learner.optimizer == "momentum" else 0.0)


def places(points: int) -> list[int]:
    """Where losses are looked at, in steps back along the direction: 1, 0, -1 or 2, 1, 0, -1,
    -2."""
    return list(range(points // 2, -(points // 2) - 1, -1))


def noised_losses(losses: list[Query], looked_at: Tensor, bound: Tensor) -> Training[Tensor]:
    """Sums of losses from behind to ahead, in units of their bound: (places,).

    They come in one release, or one by one. These have each a name of its own, or all one name.

    Args:
        losses: the queries of one look.
        looked_at: weights at each place, from behind to ahead.
        bound: on a record's loss, public by now.
    """
    if losses[0].numbers > 1:
        return (yield losses[0].at(looked_at, bound))
    each = losses if len(losses) > 1 else losses * len(looked_at)
    pairs = zip(each, looked_at, strict=True)
    return torch.stack((yield [query.at(one[None], bound) for query, one in pairs]))


def fit_rate(
    rate: Rate, losses: Tensor, deviation: Tensor, unit: float, steering: Steering = "guarded"
) -> Rate:
    """The rate at the bottom of the parabola through the losses along the step, by least squares.
    Of points k steps ahead, loss = c - s k + a k^2 / 2, and the bottom lies s / a steps ahead.

    A parabola that opens downwards has no bottom: the rate then goes the way the losses fall.
    Losses that differ by no more than noise of this deviation say nothing. As published (section
    3), the rate goes to each bottom that lies ahead, and otherwise stays.

    Args:
        rate: so far.
        losses: noised mean losses, from behind to ahead (`places`).
        deviation: of their noise.
        unit: the loss of who knows nothing.
        steering: `guarded`, or as published.

    Returns:
        The next rate, and the bound that the next losses are cut to.
    """
    ahead = -torch.tensor(places(len(losses)), dtype=losses.dtype, device=losses.device)
    squares = ahead.square() - ahead.square().mean()
    slope = -(losses * ahead).sum() / ahead.square().sum()
    curvature = 2 * (losses * squares).sum() / squares.square().sum()
    room, factor, heard = 1.0, slope / curvature, (slope > 0) & (curvature > 0)
    if steering == "guarded":
        bottom = torch.where(curvature > 0, factor, math.inf)
        factor = torch.where(slope > 0, bottom, 0.0).clamp_(1.0 / FACTOR, FACTOR)
        room, heard = ROOM, slope.abs() > SURE * deviation / ahead.square().sum().sqrt()
    eta = torch.where(heard, rate.eta * factor, rate.eta).clamp_(*RATES)
    here = losses[len(losses) // 2]
    bound = (room * here).nan_to_num_(nan=math.inf).clamp_(min=LEAST * unit, max=MOST * unit)
    return Rate(eta, bound)
