"""What the best of a secret number of runs spends of a total: the dearest runs that cost no more."""

from __future__ import annotations

import math

from dpladder.config.search_sections import DpHypo, SecretRuns
from dpladder.privacy.accounting import booking, gdp, selection
from dpladder.privacy.accounting.events import (
    Counted,
    Gaussian,
    Relation,
    RepeatAndSelect,
    SubsetSelect,
)
from dpladder.privacy.accounting.selection import STRAIGHT, Lean, Runs

SHAPES = {"logarithmic": 0.0, "geometric": 1.0, "poisson": math.inf}


def price(
    search: SecretRuns, epsilon: float, delta: float, relation: Relation
) -> tuple[Counted, ...]:
    return (Counted(_repeated(search, epsilon, delta)),)


def runs_of(search: SecretRuns) -> Runs:
    return Runs(search.mean, SHAPES[search.law])


def lean_of(search: SecretRuns, epsilon: float) -> Lean:
    """How far DP-HyPO's proposals may lean for its share of epsilon: (2 + shape) log(high/low) of
    it (Wang et al. 2023, Theorem 1)."""
    if not isinstance(search, DpHypo):
        return STRAIGHT
    half = search.adapting * epsilon / (2 + SHAPES[search.law]) / 2
    return Lean(math.exp(-half), math.exp(half))


def _repeated(search: SecretRuns, epsilon: float, delta: float) -> RepeatAndSelect:
    runs, lean = runs_of(search), lean_of(search, epsilon)
    limit = selection.most(runs)

    def event(mu: float) -> RepeatAndSelect:
        return RepeatAndSelect(
            Gaussian(gdp.sigma(mu, 1)), runs.mean, runs.shape, limit, lean.low, lean.high
        )

    return event(
        selection.largest(lambda mu: alone(event(mu), delta), epsilon, gdp.mu(epsilon, delta))
    )


def alone(event: RepeatAndSelect | SubsetSelect, delta: float) -> float:
    return booking.epsilon(booking.price(event, "add_remove"), delta)
