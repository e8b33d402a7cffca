"""What random_search spends of a total."""

from __future__ import annotations

from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.events import Counted, Gaussian, Relation
from dpladder_papers.searches.random_search.section import RandomSearch


def price(
    search: RandomSearch, epsilon: float, delta: float, relation: Relation
) -> tuple[Counted, ...]:
    """The whole total, on one training."""
    return (Counted(Gaussian(gdp.sigma(gdp.mu_from_epsilon(epsilon, delta), 1))),)
