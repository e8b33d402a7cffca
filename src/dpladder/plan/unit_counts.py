"""What the count of units before a run is bought at, and what it can tell.

A run stops where its noised count of units is below a line (config/detectability.py). The default
price follows the declared size: the least at which a run with none of its units stops but for once
in a million.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from decimal import ROUND_DOWN, ROUND_UP, Context

from dpladder.config import Config
from dpladder.config.detectability import FEWEST_UNITS, least_units, noise_margin
from dpladder.plan.rules import has_rule
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.rounding import round_up_short

MOST_SHARE = 0.01  # of mu^2 of the smallest total, that the count costs by default
SMALLEST = 1e-3  # of the smallest total
SENSITIVITY = math.sqrt(2.0)  # of these counts (learn/queries.UnitsByClass)


def resolve_unit_counts(config: Config, totals: Collection[float]) -> Config:
    """The config with a price of the count; unchanged where it has one, or counts nothing.

    Args:
        config: of an experiment.
        totals: of all experiments of its lineage, so that they share one count.
    """
    census = config.dataset.census
    if census is None or census.epsilon is not None or config.mode == "research":
        return config
    epsilon = _least_epsilon(config.dataset.nominal_size, min(totals), config.privacy.delta)
    return with_price(config, epsilon)


def with_price(config: Config, epsilon: float) -> Config:
    """The config with its units counted at this epsilon."""
    census = config.dataset.census
    assert census is not None, "only a count has a price"
    priced = census.model_copy(update={"epsilon": epsilon})
    dataset = config.dataset.model_copy(update={"census": priced})
    return config.model_copy(update={"dataset": dataset})


def _least_epsilon(size: int, total: float, delta: float) -> float:
    """The least epsilon of two digits at which a run with none of `size` units stops; at most what
    `MOST_SHARE` of a total's mu^2 buys. Where that could tell nothing, next to nothing."""
    most = math.sqrt(MOST_SHARE) * gdp.mu_from_epsilon(total, delta)
    # Two margins: the line lies one below half of the size, and noise stays below it by another.
    room = min(size / 4.0, (size - FEWEST_UNITS) / 2.0)
    needed = SENSITIVITY * noise_margin(1.0) / room if room > 0.0 else math.inf
    if least_units(size, SENSITIVITY * gdp.sigma(most, 1)) <= 0.0:
        return SMALLEST * total  # it could tell nothing, so it costs next to nothing
    # Above 0, though delta alone would pay for very many units: it stays below 1 / size.
    exact = gdp.epsilon(min(needed, most), delta)
    digits = Context(prec=2, rounding=ROUND_DOWN if needed > most else ROUND_UP)
    return float(digits.create_decimal(repr(exact)))


def note_unit_counts(config: Config) -> Iterator[str]:
    """What the count can tell at the declared size, by config alone."""
    census, size = config.dataset.census, config.dataset.nominal_size
    if census is None or not has_rule(config, "count_units"):
        return
    epsilon = census.epsilon or _least_epsilon(size, min(config.totals), config.privacy.delta)
    sd = gdp.sigma(gdp.mu_from_epsilon(epsilon, config.privacy.delta), 1) * SENSITIVITY
    line = least_units(size, sd)
    costs = f"the count of units (epsilon = {round_up_short(epsilon, 2)}) "
    if line <= 0.0:
        yield (
            f"{costs}can tell nothing at this size of {size:,}. Nothing else stops a run on wrong "
            "data, so look with `dpladder check`."
        )
        return
    surely = line - noise_margin(sd)
    yield f"{costs}stops below {line:,.0f} of {size:,}" + (
        "."
        if surely >= 0.0
        else f" (noise ± {sd:,.0f}), and may miss a run without any unit that counts: look with "
        "`dpladder check`."
    )
