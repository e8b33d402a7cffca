"""One training with a whole total, repeated with other noise, and how much of a test it has right.

Booked, noised and accounted as in a release; the records are public, and the noise is seeded by
name.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from arena import DELTA

from dpladder.config.learners import Learner
from dpladder.config.sweep_sections import Search
from dpladder.learn.counts import right_counts
from dpladder.learn.interface import Weights
from dpladder.learn.scorers import ClassScorer
from dpladder.learn.trainings import weights_of
from dpladder.privacy.accounting import booking
from dpladder.privacy.accounting.booking import Entry
from dpladder.privacy.arrays import Floats
from dpladder.research.contest import Arena, PublicMeter
from dpladder.search.prior import prior_of_learner
from dpladder.search.space import Space
from dpladder.search.training import Training, training_of


def entry_for(learner: Learner, epsilon: float) -> Entry:
    """The whole total in one event; a training on samples is booked at its part of delta."""
    sampled = learner.sampling < 1.0
    delta0 = booking.delta0_of(DELTA, booking.FINAL, booking.SAMPLED_SHARE) if sampled else 0.0
    return Entry(booking.largest_mu(epsilon, DELTA, Entry(delta0=delta0)), delta0=delta0)


def training_for(
    arena: Arena,
    learner: Learner,
    epsilon: float,
    kappa: float | None = None,
    search: Search | None = None,
) -> Training:
    """At this kappa; without one, at the prior's median for centred features."""
    space, entry = Space(search or Search(), learner, arena.constants), entry_for(learner, epsilon)
    if learner.searches is None:
        return training_of(space, None, entry)
    kappa = kappa or prior_of_learner(learner.name, centred=True).median
    return training_of(space, space.r(kappa, entry.mu), entry)


def trained(arena: Arena, training: Training, name: str) -> Weights:
    meter = PublicMeter(training.declared.draws, arena, name)
    weights: Weights = training.run(arena.train, meter, arena.resources)
    return weights


def accuracy(arena: Arena, weights: Weights, learner: Learner | None = None) -> float:
    """The share of the test records that are right; a network needs its learner to say what its
    logits are."""
    scorer = ClassScorer()
    if learner is not None:
        scorer = ClassScorer(weights_of(learner).logits(learner, arena.constants))
    return float(right_counts(scorer, [weights], arena.test)[0]) / len(arena.test.labels)


def accuracies(arena: Arena, weights: Sequence[Weights], repeats: int) -> Floats:
    """Those of linear heads, a row for so many repeats."""
    counts: Floats = right_counts(ClassScorer(), weights, arena.test)
    return counts.reshape(-1, repeats) / len(arena.test.labels)


def mean_and_sd(values: Sequence[float] | Floats) -> str:
    spread = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{spread}"
