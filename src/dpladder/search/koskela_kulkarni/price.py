"""Tuning on a subset: every run costs as much as the final training, the same noise relative to its
own sum."""

from __future__ import annotations

from dpladder.config.search_sections import KoskelaKulkarni
from dpladder.errors import Refused
from dpladder.privacy.accounting import booking, gdp, selection
from dpladder.privacy.accounting.events import (
    Counted,
    Gaussian,
    Relation,
    RepeatAndSelect,
    SubsetSelect,
)
from dpladder.search.secret_prices import alone, runs_of


def price(
    search: KoskelaKulkarni, epsilon: float, delta: float, relation: Relation
) -> tuple[Counted, ...]:
    return (Counted(_on_subset(search, epsilon, delta, relation)),)


def _on_subset(
    search: KoskelaKulkarni, epsilon: float, delta: float, relation: Relation
) -> SubsetSelect:
    if relation != "add_remove":
        raise Refused(
            "tuning on a random subset is bounded under add_remove alone, and the lineage's "
            f"relation is {relation}. "
            "Choose another way to search."
        )
    runs = runs_of(search)
    limit = selection.most(runs)

    delta0 = booking.delta0_of(delta, booking.FINAL)

    def event(mu: float) -> SubsetSelect:
        one = Gaussian(gdp.sigma(mu, 1))
        tuning = RepeatAndSelect(one, runs.mean, runs.shape, limit)
        return SubsetSelect(search.share, tuning, one, search.apart, delta0)

    return event(
        selection.largest(lambda mu: alone(event(mu), delta), epsilon, gdp.mu(epsilon, delta), 1e-6)
    )
