"""What HyFreeDP asks: a noised sum of gradients at each step, and noised losses at every K-th (Bu &
Liu 2025)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dpladder.learn.descent_noise import least_noise
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.queries import GradientSum, LinearHead, LossSums, Model, Query, declared
from dpladder.privacy.accounting import gdp, memo
from dpladder.privacy.accounting.booking import price
from dpladder.privacy.accounting.events import Laplace, Relation
from dpladder_papers.methods.hyfree_dp.section import HyperparameterFree, LossesLookedAt


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
