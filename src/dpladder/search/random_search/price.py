"""The whole total, on one training."""

from __future__ import annotations

from dpladder.config.search_sections import RandomSearch
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.events import Counted, Gaussian, Relation


def price(
    search: RandomSearch, epsilon: float, delta: float, relation: Relation
) -> tuple[Counted, ...]:
    return (Counted(Gaussian(gdp.sigma(gdp.mu(epsilon, delta), 1))),)
