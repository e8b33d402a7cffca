"""How much noise a private descent draws, and how much of it ends up in a logit. All of it follows
from public figures; a plan asks here."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial

from dpladder.config.learner_sections import Descending
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.queries import GradientSum, LinearHead, Model
from dpladder.privacy.accounting import gdp, memo
from dpladder.privacy.accounting.booking import price
from dpladder.privacy.accounting.events import Booked, Counted, Gaussian, Relation, Sampled
from dpladder.privacy.accounting.selection import largest

CLOSE = 1e-4  # how near to the least a noise is found, where each look at its cost takes a while


def head_of(learner: Descending) -> LinearHead:
    """The linear head that a learner's keys describe."""
    return LinearHead(learner.bias, learner.link, learner.augment)


def gradient_sum(
    learner: Descending, hyper: Hyper, constants: Constants, model: Model | None = None
) -> GradientSum:
    """The noised sum of clipped gradients that a descent asks for at each step.

    Args:
        learner: clip, clipping and sampling rate.
        hyper: steps, and the mu that all of them cost together.
        constants: public sizes.
        model: a linear head where none is named.
    """
    return GradientSum(
        name="noise",
        multiplier=noise_multiplier(learner, hyper, constants),
        count=hyper.steps,
        sampling_rate=learner.sampling_rate,
        model=model or head_of(learner),
        clip=learner.clip,
        clipping=learner.clipping,
    )


def noise_multiplier(learner: Descending, hyper: Hyper, constants: Constants) -> float:
    """sigma: the noise sd of each step over the sensitivity of its sum.

    On full batches sigma = sqrt(steps) / mu (Dong, Roth & Su 2019, Corollary 3.3). On Poisson
    samples it is the least at which the steps are booked at mu.

    Returns:
        sigma, rounded up.
    """
    if learner.sampling_rate == 1.0:
        return gdp.sigma(hyper.mu, hyper.steps)
    return sampled_sigma(
        hyper.mu, hyper.delta0, hyper.steps, learner.sampling_rate, constants.relation
    )


def logit_noise(
    learner: Descending, hyper: Hyper, constants: Constants, momentum: float = 0.0
) -> float:
    """kappa: the sd of the noise that a whole training puts into a logit, for a record of the
    public length.

    Every step adds noise of the same sd to the gradient, and a step size's worth of it to the
    weights: eta sigma C / n0. With momentum m it goes on moving them, by 1 + m + ... + m^(j-1)
    where j steps are left. The free step adds m^(j-1) once more. Each counts at its step's learning
    rate. The steps' shares are independent, so their squares add. As sqrt(T) sigma C = T C / mu,
    that makes r C R / (n0 mu) times the root mean square of what momentum carries. Of samples it is
    computed as if they were full batches.

    Args:
        learner: schedule, clip and free step.
        hyper: eta, steps and mu.
        constants: n0, the relation, and the public length R of a record.
        momentum: m, from 0 to below 1.

    Returns:
        In units of a logit.
    """
    carried = _momentum_noise(relative_rates(learner, hyper.steps), momentum, learner.free_step)
    sigma = gdp.sigma(hyper.mu, hyper.steps)
    moves = GradientSum(
        name="noise", multiplier=sigma, model=head_of(learner), clip=learner.clip
    ).sensitivity(constants)
    step = hyper.eta * sigma * moves / constants.n0
    return constants.length * step * carried


def logit_noise_of_adam(learner: Descending, hyper: Hyper, constants: Constants) -> float:
    """kappa of Adam: the sd of the noise that a whole training puts into a logit.

    Its second moment is the noise's own, or stands for it. So a step moves every weight by eta,
    whatever the noise is, and the first moment only spreads it out.
    """
    return hyper.eta * random_walk_deviation(learner, hyper.steps) * constants.length


@lru_cache(maxsize=4096)
def _momentum_noise(rates: tuple[float, ...], momentum: float, free_step: bool) -> float:
    """From the last step back: what a step's noise moves is its own rate's worth, and m times what
    the next one's does."""
    moved, squares = 0.0, 0.0
    for rate in (rates[-1] * (1 + free_step), *rates[-2::-1]):
        moved = rate + momentum * moved
        squares += moved**2
    return math.sqrt(squares)


@lru_cache(maxsize=4096)
def _schedule_factors(schedule: str, steps: int) -> tuple[float, ...]:
    """Each step's learning rate over the first one's, by the name of a schedule."""
    shares = [step / steps for step in range(steps)]
    if schedule == "cosine":  # Loshchilov & Hutter 2017, Eq. 5, without restarts
        return tuple((1 + math.cos(math.pi * share)) / 2 for share in shares)
    return tuple(1 - share if schedule == "linear" else 1.0 for share in shares)


def relative_rates(learner: Descending, steps: int) -> tuple[float, ...]:
    """Each step's learning rate, over the first one's."""
    return _schedule_factors(learner.lr_schedule, steps)


def random_walk_deviation(learner: Descending, steps: int) -> float:
    """The sd of a sum of independent steps: sqrt(steps) at a constant rate. Each step has its
    learning rate over the first one's as its sd."""
    return math.hypot(*relative_rates(learner, steps))


def batch_size(learner: Descending, constants: Constants) -> float:
    """What a sum is divided by: the units expected in it, from public figures alone
    (contract: public-sizes)."""
    return constants.n0 * learner.sampling_rate


def sampled_sigma(mu: float, delta0: float, steps: int, rate: float, relation: Relation) -> float:
    """The least noise multiplier at which sampled steps are booked at no more than mu.

    Args:
        mu: that the whole training may cost.
        delta0: that it is booked at.
        steps: their number.
        rate: the probability of each unit at each step.
        relation: the lineage's.

    Returns:
        sigma, at most 1e-4 of itself above the least.
    """

    def cost(sigma: float) -> float:
        return price(_sampled_training_event(rate, sigma, steps, delta0), relation).mu

    arguments = {
        "arguments": [mu, relation],
        "prices": repr(_sampled_training_event(rate, 1.0, steps, delta0)),
    }
    return memo.memoized_figure(
        "sampled sigma", arguments, partial(least_noise, cost, mu, gdp.sigma(mu, steps))
    )


def least_noise(cost: Callable[[float], float], mu: float, enough: float) -> float:
    """The least noise, to 1e-4 of it, whose cost is mu at most.

    Cost falls with noise, nearly as its inverse. So what a noise costs that is about as much as the
    full batch needs says how far to look.

    Args:
        cost: mu of a noise multiplier.
        mu: that may not be exceeded.
        enough: a noise multiplier to begin with.

    Returns:
        A noise multiplier whose cost was computed, and is mu at most.
    """

    def of(inverse: float) -> float:
        return cost(1.0 / inverse)

    high = 2.0 * mu / (enough * cost(enough))
    while (inverse_noise := largest(of, mu, high, CLOSE)) > high * (1.0 - 2.0 * CLOSE):
        high *= 2.0
    return 1.0 / inverse_noise


def _sampled_training_event(rate: float, sigma: float, steps: int, delta0: float) -> Booked:
    return Booked((Counted(Sampled(rate, Gaussian(sigma)), steps),), delta0)
