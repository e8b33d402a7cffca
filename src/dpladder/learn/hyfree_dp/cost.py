"""What HyFreeDP costs: a noised sum of gradients at each step, and noised losses at every K-th (Bu
& Liu 2025)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dpladder.config.learner_sections import HyperparameterFree, LossesLookedAt
from dpladder.learn.interface import Constants, Declaration, Hyper, Shape, head_shape, least_noise
from dpladder.privacy.accounting import gdp, memo
from dpladder.privacy.accounting.booking import price
from dpladder.privacy.accounting.draws import Draw, gaussian
from dpladder.privacy.accounting.events import (
    Booked,
    Composed,
    Counted,
    Gaussian,
    Laplace,
    Relation,
    Sampled,
)


@dataclass(frozen=True)
class Multipliers:
    """Noise multipliers of the gradients and of each loss, and at how many of the steps how many
    losses are looked at. `apart`: each of them is a draw by itself."""

    gradient: float
    loss: float
    steps: int
    looks: int
    points: int = 3
    apart: bool = False


def split(learner: LossesLookedAt, hyper: Hyper, relation: Relation = "add_remove") -> Multipliers:
    """sigma_g = gamma sigma, where sigma is what T steps would need without losses to look at. On
    full batches, exactly mu^2 = T / sigma_g^2 + points looks / sigma_l^2; for looks = T / K that is
    sigma_l = sigma sqrt(points / (K (1 - gamma^-2))). On samples all multipliers grow or shrink
    together until the run is booked at mu."""
    looks = -(-hyper.steps // learner.every)
    of_gradients = hyper.mu / learner.gamma
    of_losses = gdp.remaining(hyper.mu, [of_gradients])
    gradient = gdp.sigma(of_gradients, hyper.steps)
    loss = gdp.sigma(of_losses, learner.points * looks)
    if learner.loss_noise == "laplace":
        loss = least_noise(lambda scale: price(Laplace(scale), relation).mu, 1.0 / loss, loss)
    whole = Multipliers(gradient, loss, hyper.steps, looks, learner.points)
    if learner.sampling_rate == 1.0:
        return whole
    whole = replace(whole, apart=learner.loss_noise == "laplace")
    return _scaled(whole, _least_scale(whole, hyper, learner.sampling_rate, relation))


def _least_scale(whole: Multipliers, hyper: Hyper, rate: float, relation: Relation) -> float:
    def cost(scale: float) -> float:
        return price(Booked(events(_scaled(whole, scale), rate), hyper.delta0), relation).mu

    arguments: dict[str, Any] = {
        "split": [whole.gradient, whole.loss, whole.steps, whole.looks, whole.points]
    }
    arguments |= {"run": [hyper.mu, hyper.delta0, rate], "prices": repr(events(whole, rate))}
    question = f"hyfree_dp under {relation}"
    return memo.remembered(question, arguments, partial(least_noise, cost, hyper.mu, 1.0))


def _scaled(whole: Multipliers, scale: float) -> Multipliers:
    return replace(whole, gradient=whole.gradient * scale, loss=whole.loss * scale)


def events(
    found: Multipliers, sampling_rate: float = 1.0, loss_noise: str = "gaussian"
) -> tuple[Counted, ...]:
    """What the run costs. On a Poisson sample, a step's losses see the records that its gradient
    sees, so they all compose inside the sampling. Composed outside it, as published, they would
    pass for independent samples."""
    gradient = Gaussian(found.gradient)
    if sampling_rate == 1.0:
        loss = Laplace(found.loss) if loss_noise == "laplace" else Gaussian(found.loss)
        return Counted(gradient, found.steps), Counted(loss, found.points * found.looks)
    loss = Laplace(found.loss) if found.apart else Gaussian(found.loss)
    together = Composed((Counted(gradient), Counted(loss, found.points)))
    kinds = (
        (Sampled(sampling_rate, together), found.looks),
        (Sampled(sampling_rate, gradient), found.steps - found.looks),
    )
    return tuple(Counted(event, count) for event, count in kinds if count)


def declare(learner: HyperparameterFree, hyper: Hyper, constants: Constants) -> Declaration:
    return declaration(learner, hyper, constants, head_shape(learner, constants))


def declaration(
    learner: LossesLookedAt, hyper: Hyper, constants: Constants, shape: Shape
) -> Declaration:
    """Of gradients of this shape."""
    found = split(learner, hyper, constants.relation)
    charged = events(found, learner.sampling_rate, learner.loss_noise)
    bound = 1.0 / constants.cap  # a unit's gradient has length 1 at most
    one = constants.moves(bound)
    if learner.sampling_rate == 1.0:
        noise = gaussian("noise", found.gradient, one, shape, found.steps)
        return Declaration(charged, (noise, *_losses(learner, found, constants)))
    sample = Draw("sample", "mask", learner.sampling_rate, count=found.steps)
    entering = constants.enters(bound)
    noise = gaussian(
        "noise", found.gradient, one, shape, found.steps, under=sample.name, entering=entering
    )
    losses = _losses(learner, found, constants, sample.name)
    return Declaration((Counted(Booked(charged, hyper.delta0)),), (noise, *losses, sample))


def _losses(
    learner: LossesLookedAt, found: Multipliers, constants: Constants, under: str = ""
) -> tuple[Draw, ...]:
    """A unit moves each of a look's losses by `loss_moves`. Together they move by the root of their
    number; each Laplace release is an event of its own, and moves alone. On a sample those of one
    step compose inside it, so that each place along the step has a draw."""
    one, entering = loss_moves(learner, constants), constants.enters(1.0) if under else 0.0
    if found.apart:
        alone = Draw(
            "", "laplace", found.loss * one, (), found.looks, one, under=under, entering=entering
        )
        return tuple(replace(alone, name=name) for name in apart(found))
    if learner.loss_noise == "laplace":
        count = found.points * found.looks
        return (Draw("losses", "laplace", found.loss * one, (), count, one),)
    together = math.sqrt(found.points)
    losses = Draw(
        "losses",
        "gaussian",
        found.loss * one,
        (found.points,),
        found.looks,
        one * together,
        under=under,
    )
    return (replace(losses, entering=entering * together),)


def apart(found: Multipliers) -> list[str]:
    """The names of draws of single losses, from behind to ahead."""
    return [f"losses {place}" for place in range(found.points)]


def loss_moves(learner: LossesLookedAt, constants: Constants) -> float:
    """How far a unit moves the sum of one look's losses, in units of the bound on one record's
    loss.

    On a full batch a unit's losses l are replaced by losses l'. Both lie between 0 and the bound on
    each record, so the sum moves by |l - l'|, which is no more than one unit's bounds under either
    relation.

    On a Poisson sample the sum under replace_one is that of the others, plus l if the unit was
    sampled, against plus l' if its replacement was: 0 and l on the one side, 0 and l' on the other.
    The accountant prices neighbours at -m/2 and m/2 around "nobody sampled", where the sum is 0,
    and so covers a unit whose l is no more than m/2. A loss at its bound is one unit's bounds away
    from 0, not half of them: so m has to be twice one unit's bounds, as for a gradient. With m of
    one unit's bounds, gamma 2, every 1, q 0.02 and 50 steps, an epsilon of 8.0 was stated and 31.3
    was true.
    """
    return constants.moves_count() if learner.sampling_rate == 1.0 else constants.moves(1.0)
