"""What private selection spends of a total: the best of a secret number of runs."""

from __future__ import annotations

import math

from dpladder.privacy.accounting import booking, gdp, selection
from dpladder.privacy.accounting.events import (
    Counted,
    Gaussian,
    Relation,
    RepeatAndSelect,
    SubsetSelect,
)
from dpladder.privacy.accounting.selection import STRAIGHT, Lean, Runs
from dpladder_papers.searches.sections import Selection

SHAPES = {"logarithmic": 0.0, "geometric": 1.0, "poisson": math.inf}


def price(
    search: Selection, epsilon: float, delta: float, relation: Relation
) -> tuple[Counted, ...]:
    """One event: the whole selection, its winner's weights included. Under either relation.

    Args:
        search: its section in the config.
        epsilon: the total, final weights included.
        delta: the lineage's.
        relation: what neighbours are.
    """
    return (Counted(event_of_repeats(search, epsilon, delta)),)


def event_of_repeats(
    search: Selection, epsilon: float, delta: float, lean: Lean = STRAIGHT
) -> RepeatAndSelect:
    """The dearest runs that cost no more than the total.

    Args:
        search: the law of the number of runs.
        epsilon: the total.
        delta: the lineage's.
        lean: how far proposals may lean away from their prior.
    """
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
    """The law of the number of runs that a section names."""
    return Runs(search.mean, SHAPES[search.law])


def epsilon_alone(event: RepeatAndSelect | SubsetSelect, delta: float) -> float:
    """The epsilon of one search and nothing else. A selection's entry is the same under both
    relations; a subset's exists under add_remove alone."""
    return booking.epsilon(booking.price(event, "add_remove"), delta)
