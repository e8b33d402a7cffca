"""Trainings of equal mu, whose squares add up to the total's."""

from __future__ import annotations

from dpladder.config.search_sections import NaiveComposition
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.events import Counted, Gaussian, Relation


def price(
    search: NaiveComposition, epsilon: float, delta: float, relation: Relation
) -> tuple[Counted, ...]:
    return (Counted(Gaussian(gdp.sigma(gdp.mu(epsilon, delta), search.runs)), search.runs),)
