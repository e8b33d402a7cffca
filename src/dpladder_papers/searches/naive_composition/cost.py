"""What naive_composition spends of a total."""

from __future__ import annotations

from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.events import Counted, Gaussian, Relation
from dpladder_papers.searches.naive_composition.section import NaiveComposition


def price(
    search: NaiveComposition, epsilon: float, delta: float, relation: Relation
) -> tuple[Counted, ...]:
    """Trainings of equal mu, whose squares add up to the total's."""
    sigma = gdp.sigma(gdp.mu_from_epsilon(epsilon, delta), search.runs)
    return (Counted(Gaussian(sigma), search.runs),)
