"""One training with a whole total, repeated with other noise, and how much of a test it has right.

Booked, noised and accounted as in a release; the records are public, and the noise is seeded by
name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from arena import DELTA

from dpladder.config.learners import Learner
from dpladder.config.sweep_sections import Search
from dpladder.learn.counts import right_counts
from dpladder.learn.data import Data
from dpladder.learn.interface import Weights
from dpladder.learn.scorers import ClassScorer
from dpladder.learn.trainings import weights_of
from dpladder.privacy.accounting import booking, gdp
from dpladder.privacy.accounting.booking import Entry
from dpladder.privacy.arrays import Floats
from dpladder.research.arena import Arena, PublicMeter, bench_of
from dpladder.research.without_noise import OPEN, best
from dpladder.search.bench import NamedAsk, answers
from dpladder.search.prior import prior_of_learner
from dpladder.search.protocol import Ask
from dpladder.search.space import Space
from dpladder.search.training import Training, training_of


def entry_for(learner: Learner, epsilon: float) -> Entry:
    """The whole total in one event; a training on samples is booked at its part of delta."""
    if epsilon == inf:
        return Entry(OPEN)
    if learner.sampling == 1.0:
        return Entry(gdp.mu_from_epsilon(epsilon, DELTA))
    delta0 = booking.delta0_of(DELTA, booking.FINAL, booking.SAMPLED_SHARE)
    return Entry(booking.largest_mu(epsilon, DELTA, Entry(delta0=delta0)), delta0=delta0)


def ask_for(
    name: str,
    arena: Arena,
    learner: Learner,
    total: float | Entry,
    kappa: float | None = None,
    search: Search | None = None,
    centred: bool = True,
) -> NamedAsk:
    """A training with a whole total.

    Args:
        name: Seeds its noise.
        arena: Where it trains.
        learner: Its section.
        total: Epsilon, or the entry that it costs. Infinity, or a mu of OPEN, is no noise, at the r
            that does best on records held out.
        kappa: By default the prior's median.
        search: Where r may lie.
        centred: Whether the prior is that of centred features.
    """
    entry = total if isinstance(total, Entry) else entry_for(learner, total)
    space, r = Space(search or Search(), learner, arena.constants), 1.0
    if entry.mu == OPEN:
        r, search = best(arena, space)
    elif learner.searches is not None:
        r = space.r(kappa or prior_of_learner(learner.name, centred).median, entry.mu)
    ask = Ask(r, entry.mu, delta0=entry.delta0)
    return NamedAsk(name, ask, learner, search or space.search)


def training_for(arena: Arena, ask: NamedAsk) -> Training:
    space = Space(ask.search, ask.learner, arena.constants)
    r = None if ask.learner.searches is None else ask.ask.r
    return training_of(space, r, Entry(ask.ask.mu, delta0=ask.ask.delta0))


def trained(arena: Arena, training: Training, name: str, data: Data | None = None) -> Weights:
    meter = PublicMeter(training.declared.draws, arena, name)
    return training.run(data or arena.train, meter, arena.resources)


def heads(arena: Arena, asks: Sequence[NamedAsk]) -> list[Weights]:
    """Those of linear learners, trained side by side."""
    return [answer.weights for answer in answers(bench_of(arena), asks)[0]]


def accuracies(
    arena: Arena,
    asks: Sequence[NamedAsk],
    repeats: int,
    measure: Callable[[Arena, Weights], Any] | None = None,
) -> Floats:
    """Test accuracy, or another measure, of linear learners: a row for each ask, a column for each
    repeat."""
    repeated = [
        replace(ask, name=f"{ask.name} {again}") for ask in asks for again in range(repeats)
    ]
    weights = heads(arena, repeated)
    if measure is None:
        return shares_right(arena, weights).reshape(len(asks), repeats)
    return np.array([measure(arena, one) for one in weights]).reshape(len(asks), repeats, -1)


def shares_right(arena: Arena, weights: Sequence[Weights], data: Data | None = None) -> Floats:
    """Accuracy of linear heads, each on the test or on other data."""
    data = data or arena.test
    counts: Floats = right_counts(ClassScorer(), weights, data)
    return counts / len(data.labels)


def accuracy(arena: Arena, weights: Weights, learner: Learner | None = None) -> float:
    """The share of the test records that are right; a network needs its learner to say what its
    logits are."""
    if learner is None:
        return float(shares_right(arena, [weights])[0])
    scorer = ClassScorer(weights_of(learner).logits(learner, arena.constants))
    return float(right_counts(scorer, [weights], arena.test)[0]) / len(arena.test.labels)


def mean_and_sd(values: Sequence[float] | Floats) -> str:
    spread = f" ± {np.std(values, ddof=1):.3f}" if np.size(values) > 1 else ""
    return f"{np.mean(values):.3f}{spread}"
