"""HyFreeDP: descent whose learning rate is read off a parabola through noised losses (Bu & Liu
2025, section 3). It works on a linear head, or on whatever sums gradients and losses. There is no
clip and no learning rate to choose, and so nothing to search.

Gradients are scaled to length 1 each (automatic clipping, Bu et al. 2023). The rest is
post-processing of releases: the direction, the parabola, the bound on the next losses, and all the
guards, which rest on public figures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpladder.learn.descent_noise import least_noise
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import GradientSum, LinearHead, LossSums, Model, Query, declared
from dpladder.privacy.accounting import gdp, memo
from dpladder.privacy.accounting.booking import price
from dpladder.privacy.accounting.events import Laplace, Relation
from dpladder_papers.methods.hyfree_dp import HyperparameterFree, LossesLookedAt, Steering

if TYPE_CHECKING:  # a plan asks for queries alone, and loads no torch
    from torch import Tensor

    from dpladder.learn.curator import PublicInputs, Training
    from dpladder.learn.descent import UpdateFactory


@dataclass(frozen=True)
class Multipliers:
    """How a training's mu is shared out.

    Attributes:
        gradient, loss: noise multipliers of a gradient and of each loss.
        steps: how many there are.
        looks: at how many of them losses are looked at.
    """

    gradient: float
    loss: float
    steps: int
    looks: int


def queries(
    learner: LossesLookedAt, hyper: Hyper, constants: Constants, model: Model | None = None
) -> tuple[Query, ...]:
    """A gradient at each step, and losses at every K-th.

    Guarantee: mu-GDP for `hyper.mu` on full batches, all of it together; on samples, what the run
    is booked at.

    Args:
        learner: its section in the config.
        hyper: steps, and the mu that all of them cost together.
        constants: public sizes.
        model: a linear head where none is named.
    """
    multipliers = split(learner, hyper, constants.relation)
    if model is None:
        assert isinstance(learner, HyperparameterFree)
        model = LinearHead(learner.bias, learner.link)
    return step_queries(learner, multipliers, model)


def step_queries(
    learner: LossesLookedAt, multipliers: Multipliers, model: Model
) -> tuple[Query, ...]:
    """The gradient, and the losses of a look.

    Losses are one release; by Laplace noise they come one by one, for several are no more than pure
    together. On a sample those of one step compose inside it, so that each place along the step has
    a name.

    Args:
        learner: sampling rate, kind of noise, and number of places.
        multipliers: of the noise.
        model: whose gradients and losses are asked for.
    """
    rate = learner.sampling_rate
    gradient = GradientSum(
        name="noise",
        multiplier=multipliers.gradient,
        count=multipliers.steps,
        sampling_rate=rate,
        model=model,
        clipping="automatic",
    )
    losses = LossSums(
        name="losses",
        multiplier=multipliers.loss,
        count=multipliers.looks,
        sampling_rate=rate,
        model=model,
        points=learner.points,
    )
    if learner.loss_noise == "gaussian":
        return gradient, losses
    alone = replace(losses, distribution="laplace", points=1)
    if rate == 1.0:
        return gradient, replace(alone, count=learner.points * multipliers.looks)
    return gradient, *(replace(alone, name=f"losses {place}") for place in range(learner.points))


def split(learner: LossesLookedAt, hyper: Hyper, relation: Relation = "add_remove") -> Multipliers:
    """Noise multipliers that come to mu together.

    sigma_g = gamma sigma, where sigma is what T steps would need without losses to look at. On full
    batches, exactly mu^2 = T / sigma_g^2 + points looks / sigma_l^2. For looks = T / K that is
    sigma_l = sigma sqrt(points / (K (1 - gamma^-2))). On samples all multipliers grow or shrink
    together until the run is booked at mu.

    Args:
        learner: gamma, K, the points of a look, and the kind of noise.
        hyper: steps, and the mu that all of it costs together.
        relation: what neighbours are.
    """
    looks = -(-hyper.steps // learner.every)
    of_gradients = hyper.mu / learner.gamma
    of_losses = gdp.remaining(hyper.mu, [of_gradients])
    gradient = gdp.sigma(of_gradients, hyper.steps)
    loss = gdp.sigma(of_losses, learner.points * looks)
    if learner.loss_noise == "laplace":
        loss = least_noise(lambda scale: price(Laplace(scale), relation).mu, 1.0 / loss, loss)
    whole = Multipliers(gradient, loss, hyper.steps, looks)
    if learner.sampling_rate == 1.0:
        return whole
    return _scale_noise(whole, _least_scale(whole, learner, hyper, relation))


def _least_scale(
    whole: Multipliers, learner: LossesLookedAt, hyper: Hyper, relation: Relation
) -> float:
    """By how much all multipliers grow so that the run on samples is booked at mu."""

    def cost(scale: float) -> float:
        (run,) = _events(learner, _scale_noise(whole, scale), hyper)
        return price(run.event, relation).mu

    arguments: dict[str, Any] = {
        "split": [whole.gradient, whole.loss, whole.steps, whole.looks, learner.points],
        "run": [hyper.mu, hyper.delta0, learner.sampling_rate],
        "prices": repr(_events(learner, whole, hyper)),
    }
    question = f"hyfree_dp under {relation}"
    return memo.memoized_figure(question, arguments, partial(least_noise, cost, hyper.mu, 1.0))


def _events(learner: LossesLookedAt, multipliers: Multipliers, hyper: Hyper) -> Any:
    """Events hang on no constants, and on no model."""
    queries = step_queries(learner, multipliers, LinearHead())
    return declared(queries, Constants(1, 1, 1), hyper.delta0).events


def _scale_noise(whole: Multipliers, scale: float) -> Multipliers:
    """All multipliers, so many times as large."""
    return replace(whole, gradient=whole.gradient * scale, loss=whole.loss * scale)


# The bound on a loss, in units of the loss of who knows nothing: every record's at zero weights,
# log(classes) of softmax. It follows the last noised mean loss at twice its height: at its height,
# as published, the bound could only ever fall.
FIRST, LOW, HIGH, ROOM = 2.0, 0.1, 4.0, 2.0

FACTOR = 2.0  # by which a rate changes at most
RATES = (1e-4, 1e4)  # and where it stays
# noise deviations by which the losses ahead and behind must differ, or the rate stays
LOSS_GAP_SDS = 1.5


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
    from dpladder.learn.links import link_of

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
    import torch

    from dpladder.learn.descent import released

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
    from dpladder.learn.descent import adam, momentum

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
    import torch

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
    import torch

    ahead = -torch.tensor(places(len(losses)), dtype=losses.dtype, device=losses.device)
    squares = ahead.square() - ahead.square().mean()
    slope = -(losses * ahead).sum() / ahead.square().sum()
    curvature = 2 * (losses * squares).sum() / squares.square().sum()
    room, factor, heard = 1.0, slope / curvature, (slope > 0) & (curvature > 0)
    if steering == "guarded":
        bottom = torch.where(curvature > 0, factor, math.inf)
        factor = torch.where(slope > 0, bottom, 0.0).clamp_(1.0 / FACTOR, FACTOR)
        room, heard = ROOM, slope.abs() > LOSS_GAP_SDS * deviation / ahead.square().sum().sqrt()
    eta = torch.where(heard, rate.eta * factor, rate.eta).clamp_(*RATES)
    here = losses[len(losses) // 2]
    bound = (room * here).nan_to_num_(nan=math.inf).clamp_(min=LOW * unit, max=HIGH * unit)
    return Rate(eta, bound)
