"""Of all figures that the product states, 95 % intervals hold the truth in 93 to 98 % of draws of
records and noise.

Each assertion fails by chance once in 10,000 runs at most, of other seeds. A figure that is new has
no row, and fails here."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from coverage_of_intervals.worlds import World, figures_of, told_of, words, worlds
from scipy.stats import binom

from dpladder.learn.measures.figures import FIGURES

LEAST, MOST = 0.93, 0.98  # of draws, that an interval holds the truth in
CHANCE = 1e-4


def check(world: World, draws: int) -> dict[str, int]:
    """Set each figure of so many draws beside the truth; return how often each was told."""
    held: dict[str, list[bool]] = {}
    for told in world.draws(draws):
        truth = world.truth(told)
        for name, figure in figures_of(told).items():
            if figure is None or name not in truth:
                continue
            low, high = figure.interval
            assert low <= figure.value <= high
            held.setdefault(name, []).append(low <= truth[name] <= high)
    for name, each in held.items():
        missed = len(each) - sum(each)
        most = binom.ppf(1.0 - CHANCE, len(each), 1.0 - LEAST)
        assert missed <= most, f"{world.name}: {name} held in {np.mean(each):.1%} of {len(each)}"
        if name not in world.wide:
            least = binom.ppf(CHANCE, len(each), 1.0 - MOST)
            assert missed >= least, f"{world.name}: {name} held in {np.mean(each):.1%}"
    return {name: len(each) for name, each in held.items()}


WORLDS = [pytest.param(world, id=world.name) for world in worlds()]


@pytest.mark.parametrize("world", WORLDS)
def test_an_interval_holds_the_truth_as_often_as_it_says(world: World) -> None:
    """Few draws see what is badly wrong, such as a bias of two deviations."""
    told = check(world, 40)
    assert told
    assert min(told.values()) > 20, "a world where noise hides a figure says nothing of it"


@pytest.mark.long
@pytest.mark.parametrize("world", WORLDS)
def test_an_interval_holds_the_truth_in_400_draws(world: World) -> None:
    check(world, 400)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("records", [500, 2000, 10_000])
def test_auc_holds_at_every_budget_where_it_is_told_at_all(epsilon: float, records: int) -> None:
    """Where noise hides it nothing is stated, and nothing is wrong."""
    rare = worlds()[0]
    truth, missed, draws = rare.truth(None), 0, 400  # type: ignore[arg-type]
    for told in replace(rare, epsilon=epsilon, records=records, measures=("auc",)).draws(draws):
        figure = told.figures["auc"]
        if figure is not None:
            low, high = figure.interval
            missed += not low <= truth["auc"] <= high
    assert missed <= binom.ppf(1.0 - CHANCE, draws, 1.0 - LEAST)


def test_every_figure_has_a_row_in_some_world() -> None:
    rows = {name for world in worlds() for told in world.draws(1) for name in world.truth(told)}
    assert {figure.name for figure in FIGURES} <= rows
    assert {"score", "worst", "class a", "group x", "a: accuracy", "bin 1.0"} <= rows


def test_perplexity_holds_what_the_records_themselves_come_to() -> None:
    """Its interval is over noise alone, and says so."""
    world, random = words(), np.random.default_rng(6)
    truth = world.truth(None)["perplexity"]  # type: ignore[arg-type]
    rows, draws = np.arange(world.records), 400
    held = [
        told.low <= truth <= told.high
        for _ in range(draws)
        if (told := told_of(world, rows, random).perplexity) is not None
    ]
    missed = draws - sum(held)
    assert len(held) == draws
    assert missed <= binom.ppf(1.0 - CHANCE, draws, 1.0 - LEAST)
    assert missed >= binom.ppf(CHANCE, draws, 1.0 - MOST)


def test_errors_that_noise_hides_are_seldom_told_and_wrong() -> None:
    """Of 500 records at a small epsilon, one draw in twenty said 8.5 of errors of 1.0."""
    [world] = [one for one in worlds() if one.name == "a line, rmse"]
    wrong, draws = 0, 200
    for told in replace(world, records=500, epsilon=0.5).draws(draws):
        error = told.figures["rmse"]
        wrong += error is not None and not error.interval[0] <= 1.0 <= error.interval[1]
    assert wrong <= binom.ppf(1.0 - CHANCE, draws, 0.003)


def test_errors_of_a_good_regression_are_told_as_they_are() -> None:
    """A page said 5.1 ± 1.0 of a model that is 1.0 off."""
    [world] = [one for one in worlds() if one.name == "a line, rmse"]
    for told in replace(world, records=1250).draws(20):
        error = told.figures["rmse"]
        assert error is not None
        assert math.isclose(error.value, 1.0, abs_tol=0.1)
        assert error.spread < 0.1
