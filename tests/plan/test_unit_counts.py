"""What the count of units is bought at, and what the plan says that it can tell."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpladder.config.load import overlay, resolve
from dpladder.data.stops import reason_to_stop
from dpladder.learn.queries import UnitsByClass
from dpladder.plan.notes import notes
from dpladder.plan.resolve import resolve_defaults
from dpladder.plan.unit_counts import SENSITIVITY
from dpladder.privacy.accounting import gdp

DELTA = 1e-5
CONFIG: dict[str, Any] = {
    "dataset": {"lineage": "people", "source": "mnist5k"},
    "privacy": {"delta": DELTA, "lifetime": {"epsilon": 20.0}},
}


def priced(size: int, total: float, **experiments: Any) -> dict[str, float]:
    values = overlay(CONFIG, {"dataset": {"nominal_size": size}, "privacy": {"epsilon": total}})
    project = resolve(values | ({"experiments": experiments} if experiments else {}))
    resolved = resolve_defaults(project).experiments
    prices = {}
    for name, config in resolved.items():
        assert config.dataset.census is not None
        assert config.dataset.census.epsilon is not None
        prices[name] = config.dataset.census.epsilon
    return prices


def noise(epsilon: float) -> float:
    return SENSITIVITY / gdp.mu_from_epsilon(epsilon, DELTA)


@pytest.mark.parametrize("total", [0.5, 1.0, 4.0, 10.0])
@pytest.mark.parametrize("size", [60, 120, 450, 1000, 2400, 4000, 60_000, 90_000])
def test_a_run_without_its_units_stops_where_a_hundredth_of_the_budget_can_tell(
    size: int, total: float
) -> None:
    [epsilon] = priced(size, total).values()
    share = (gdp.mu_from_epsilon(epsilon, DELTA) / gdp.mu_from_epsilon(total, DELTA)) ** 2
    assert 0.0 < share <= 0.01
    sd = noise(epsilon)

    def stops(counts: list[float]) -> bool:
        return reason_to_stop(np.array(counts), size, "lost", sd=sd) is not None

    strays = 4.7534 * sd  # once in a million
    assert not stops([size / 2 - strays, size / 2, 0.0])
    if share < 0.009 and size > 1.3 * strays:  # else it costs all, or next to nothing
        assert stops([strays, 0.0, 0.0])
        assert size / 2 < 1.2 * (max(strays, 25.0) + strays)  # and no less would do
    else:
        assert size <= 2000 or total < 1.0


def test_the_count_s_sensitivity_is_the_query_s() -> None:
    query = UnitsByClass(name="units", multiplier=1.0, classes=3)
    assert query.bound(None) == SENSITIVITY == math.sqrt(2.0)


def told(size: int, **census: Any) -> str:
    dataset = {"nominal_size": size, **census}
    values = overlay(CONFIG, {"dataset": dataset, "privacy": {"epsilon": 1.0}})
    [line] = [one for one in notes(resolve_defaults(resolve(values))) if "count of units" in one]
    return line


def test_the_plan_says_what_the_count_can_tell() -> None:
    assert told(2400) == "main: the count of units (epsilon = 0.031) stops below 602 of 2,400."
    assert "may miss a run without any unit that counts" in told(1000)
    assert "can tell nothing at this size of 120" in told(120)
    assert "(epsilon = 0.5) stops below 453 of 1,000." in told(1000, census={"epsilon": 0.5})


def test_experiments_of_a_lineage_share_one_count() -> None:
    each = {name: {"privacy": {"epsilon": total}} for name, total in (("a", 1.0), ("b", 4.0))}
    assert len({*priced(1000, 1.0, **each).values()}) == 1


def test_a_count_that_is_not_made_is_not_told_of() -> None:
    dataset = {"nominal_size": 2400, "census": None}
    values = overlay(CONFIG, {"dataset": dataset, "privacy": {"epsilon": 1.0}})
    assert not [one for one in notes(resolve_defaults(resolve(values))) if "count of" in one]
