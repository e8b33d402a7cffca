"""What a search spends of a total, from public figures alone."""

import math

from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.events import Counted, Gaussian, Relation
from own_methods.halving.section import Halving


def price(search: Halving, epsilon: float, delta: float, relation: Relation) -> tuple[Counted, ...]:
    """Every round costs the same, for it has half of the last one's trainings at twice its mu
    squared. The last comes first: its model is put out."""
    mu = gdp.mu_from_epsilon(epsilon, delta)
    runs = [2**number for number in range(search.rounds)]
    each = [mu / math.sqrt(search.rounds * count) for count in runs]
    return tuple(
        Counted(Gaussian(gdp.sigma(one, 1)), count) for one, count in zip(each, runs, strict=True)
    )
