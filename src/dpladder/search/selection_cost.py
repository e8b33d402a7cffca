"""What private selection spends of a total: the best of a secret number of runs."""

from __future__ import annotations

import math

from dpladder.config.search_sections import Selection
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
    search: Selection, epsilon: float, delta: float, relation: Relation
) -> tuple[Counted, ...]:
    return (Counted(event_of_repeats(search, epsilon, delta)),)


def event_of_repeats(
    search: Selection, epsilon: float, delta: float, lean: Lean = STRAIGHT
) -> RepeatAndSelect:
    """The dearest runs that cost no more than the total."""
    runs = runs_of(search)
    limit = selection.largest_count(runs)

    def event(mu: float) -> RepeatAndSelect:
        return RepeatAndSelect(
            Gaussian(gdp.sigma(mu, 1)), runs.mean, runs.shape, limit, lean.low, lean.high
        )

    return event(
        selection.largest(
            lambda mu: epsilon_alone(event(mu), delta), epsilon, gdp.mu_from_epsilon(epsilon, delta)
        )
    )


def runs_of(search: Selection) -> Runs:
    return Runs(search.mean, SHAPES[search.law])


def epsilon_alone(event: RepeatAndSelect | SubsetSelect, delta: float) -> float:
    return booking.epsilon(booking.price(event, "add_remove"), delta)
