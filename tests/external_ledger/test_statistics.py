"""Statistics of a ledger: what one record adds stays below the sensitivity that noise is drawn for,
and what is missing counts as nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpladder
from dpladder.errors import BadInput, Refused
from dpladder_ledger import statistics
from dpladder_ledger.ledger import OpenLedger

DELTA = 1e-5
BOUNDS = (-20.0, 100.0)
ODD = [None, "", "word", math.nan, math.inf, -math.inf, -1e300, 1e300, 40, "3.5", 100.0, -20.0]
EXACT: dict[str, Callable[[list[Any]], tuple[Any, float]]] = {
    "count": statistics.count_present,
    "histogram": lambda values: statistics.counts_of_levels(values, ["40", "word"]),
    "sum": lambda values: statistics.clipped_sum_of_values(values, BOUNDS),
    "sum below 0": lambda values: statistics.clipped_sum_of_values(values, (-9.0, 2.0)),
    "mean": lambda values: statistics.scaled_sum_and_count(values, BOUNDS),
    "quantiles": lambda values: statistics.tree_of(values, BOUNDS),
}


def opened(folder: Path, relation: Any = "add_remove", epsilon: float = 50.0) -> OpenLedger:
    return dpladder.Ledger(
        "people",
        epsilon,
        DELTA,
        relation=relation,
        results=folder / "results",
        home=folder / "home",
    )


@pytest.mark.parametrize("what", EXACT)
def test_one_record_adds_no_more_than_the_noise_is_made_for(what: str) -> None:
    before = [1.0, 50.0, "40", None]
    without, sensitivity = EXACT[what](before)
    moved = [np.linalg.norm(EXACT[what]([*before, value])[0] - without) for value in ODD]
    assert max(moved) <= sensitivity * (1 + 1e-12)
    assert max(moved) >= 0.99 * sensitivity  # and noise is made for no more than that


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_a_statistic_costs_the_epsilon_that_was_asked_for(relation: Any, tmp_path: Path) -> None:
    ledger = opened(tmp_path, relation)
    ledger.mean("age", [40.0] * 100, bounds=(0, 100), epsilon=1.0)
    assert ledger.spent == pytest.approx(1.0, abs=1e-3)
    with pytest.raises(Refused, match="was committed before"):
        ledger.mean("age", [40.0], bounds=(0, 100), epsilon=1.0)
    ledger.statement()
    assert ledger.verify() == []


@pytest.mark.parametrize(("relation", "moved"), [("add_remove", 1.0), ("replace_one", 2.0)])
def test_noise_of_a_statistic_is_what_a_count_by_hand_asks_for(
    relation: Any, moved: float, tmp_path: Path
) -> None:
    """A record in another's place moves a sum within (-1, 1) by 2. Epsilon of Gaussian noise
    follows from the normal distribution alone. The deviation of 4,000 draws is off by 1.1 %, so by
    5 % in one of 200,000 runs."""
    ledger = opened(tmp_path, relation)
    drawn = ledger.histogram("noise", [], levels=[*range(4000)], epsilon=1.0)
    found = float(np.std([*drawn.values()]))

    def delta_of(sd: float) -> float:
        above = stats.norm.cdf(moved / (2 * sd) - sd / moved)
        return float(above - math.e * stats.norm.cdf(-moved / (2 * sd) - sd / moved))

    assert delta_of(1.05 * found) < DELTA < delta_of(0.95 * found)


def test_statistics_are_near_what_they_stand_for_where_noise_is_small(tmp_path: Path) -> None:
    ledger = opened(tmp_path, epsilon=500.0)
    ages = [*np.random.default_rng(0).uniform(20, 60, 20_000), None, math.nan, "unknown"]
    assert ledger.count("n", ages, epsilon=20.0) == pytest.approx(20_001, abs=5)
    assert ledger.sum("sum", ages, bounds=(0, 100), epsilon=20.0) == pytest.approx(
        800_000, rel=0.01
    )
    assert ledger.mean("mean", ages, bounds=(0, 100), epsilon=20.0) == pytest.approx(40.0, abs=0.3)
    low, middle, high = ledger.quantiles(
        "q", ages, [0.25, 0.5, 0.75], bounds=(0, 100), epsilon=20.0
    )
    assert (low, middle, high) == pytest.approx((30.0, 40.0, 50.0), abs=0.7)
    sexes = ["f"] * 700 + ["m"] * 300 + [None]
    found = ledger.histogram("sex", sexes, levels=["f", "m", "x"], epsilon=20.0)
    assert [*found.values()] == pytest.approx([700, 300, 0], abs=5)


@pytest.mark.parametrize("levels", [[1, 2], [1.0, 2.0], ["1", "2"], np.array([1.0, 2.0])])
@pytest.mark.parametrize("kind", [int, float, str, np.float32])
def test_a_level_is_the_same_however_its_number_is_written(levels: Any, kind: Any) -> None:
    counts, _ = statistics.counts_of_levels([*map(kind, [1, 2, 2]), None], levels)
    assert counts.tolist() == [1.0, 2.0]


AGES = np.array([30.0, 70.0, 80.0])


@pytest.mark.parametrize("levels", [[0, 1], [False, True], ["False", "True"], ["0", "1"]])
@pytest.mark.parametrize(
    "values",
    [AGES > 60, [*(AGES > 60)], pd.Series(AGES > 60).astype("boolean"), [False, True, True]],
    ids=["array", "list", "nullable", "plain"],
)
def test_truths_are_counted_as_0_and_1(values: Any, levels: Any) -> None:
    counts, _ = statistics.counts_of_levels(values, levels)
    assert counts.tolist() == [1.0, 2.0]


def test_bytes_and_categories_are_levels_by_what_they_say() -> None:
    for values in (np.array([b"f", b"m", b"m"]), pd.Series(["f", "m", "m"]).astype("category")):
        assert statistics.counts_of_levels(values, ["f", "m"])[0].tolist() == [1.0, 2.0]


DATES = pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"]))
UNREADABLE: dict[str, Any] = {
    "dates": DATES,
    "dates as an array": DATES.to_numpy(),
    "dates with a zone": DATES.dt.tz_localize("UTC"),
    "periods": DATES.dt.to_period("M"),
    "times between": DATES - DATES[0],
    "complex": np.array([1j, 1.0]),
    "categories of dates": DATES.astype("category"),
}
NO_ROW: dict[str, Any] = {
    "two dimensions": np.ones((3, 2)),
    "no dimension": np.array(1.0),
    "a table": pd.DataFrame({"a": [1.0]}),
    "a dict": {"a": 1.0},
    "a set": {1.0, 2.0},
    "a text": "123",
    "a number": 3,
}


@pytest.mark.parametrize(
    "values", [*UNREADABLE.values(), *NO_ROW.values()], ids=[*UNREADABLE, *NO_ROW]
)
def test_values_that_cannot_count_by_their_type_are_refused_before_they_are_charged(
    values: Any, tmp_path: Path
) -> None:
    ledger = opened(tmp_path)
    for ask in (ledger.sum, ledger.mean):
        with pytest.raises(BadInput, match="Nothing was charged"):
            ask("x", values, bounds=(0, 1), epsilon=1.0)
    with pytest.raises(BadInput, match="Nothing was charged"):
        ledger.quantiles("x", values, [0.5], bounds=(0, 1), epsilon=1.0)
    with pytest.raises(BadInput, match="Nothing was charged"):
        ledger.histogram("x", values, levels=["2020-01-01", 1], epsilon=1.0)
    if any(values is one for one in NO_ROW.values()):
        with pytest.raises(BadInput, match="Nothing was charged"):
            ledger.count("x", values, epsilon=1.0)
    with pytest.raises(BadInput, match="none of the levels is one"):
        ledger.histogram("x", AGES, levels=["f", "m"], epsilon=1.0)
    assert ledger.spent == 0.0


def test_what_single_records_hold_refuses_nothing() -> None:
    odd = [*DATES, np.ones(3), {"a": 1}, "word", 1j, None, True]
    for exact in EXACT.values():
        exact([*odd, 1.0])
        exact(np.array([*odd, 1.0], object))


def test_what_a_mask_hides_is_missing() -> None:
    values = np.ma.masked_array([1.0, 2.0, 40.0], [False, False, True])
    for column in (values, [*values]):
        assert statistics.count_present(column)[0] == 2.0
        assert statistics.clipped_sum_of_values(column, (0.0, 100.0))[0] == 3.0
        assert statistics.counts_of_levels(column, [1, 2, 40])[0].tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("bounds", [(1.0, 0.0), (0.0, math.inf), (math.nan, 1.0)])
def test_bounds_that_are_none_are_refused_before_anything_is_spent(
    bounds: Any, tmp_path: Path
) -> None:
    ledger = opened(tmp_path)
    for ask in (ledger.sum, ledger.mean):
        with pytest.raises(BadInput, match="bounds are"):
            ask("x", [1.0], bounds=bounds, epsilon=1.0)
    with pytest.raises(BadInput, match="shares from 0 to 1"):
        ledger.quantiles("x", [1.0], [50], bounds=(0, 1), epsilon=1.0)
    with pytest.raises(BadInput, match="no list of shares"):
        ledger.quantiles("x", [1.0], 0.5, bounds=(0, 1), epsilon=1.0)
    with pytest.raises(BadInput, match="Name each once"):
        ledger.histogram("x", [1.0], levels=["a", "a"], epsilon=1.0)
    with pytest.raises(BadInput, match="a missing value is no level"):
        ledger.histogram("x", [None], levels=["a", None], epsilon=1.0)
    assert ledger.spent == 0.0


def test_nothing_but_noise_is_told_of_no_data(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    assert any(ledger.count(f"none-{k}", [], epsilon=0.2) for k in range(5))
    assert 0.0 <= ledger.mean("mean", [], bounds=(0, 1), epsilon=1.0) <= 1.0
    [median] = ledger.quantiles("q", [], [0.5], bounds=(0, 1), epsilon=1.0)
    assert 0.0 <= median <= 1.0
