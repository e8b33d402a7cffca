"""Whole ladders on a synthetic mixture: the search beats one random draw, and carries r to other budgets.

Noise is seeded, so a result moves only with the code or the machine's arithmetic. Over 8 seeds the unlucky ladder won by
0.058 to 0.072 where 0.02 is asked, and the final budget's loss was 0.01 to 0.14 where 0.4 is allowed.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from dpladder.config.model import Search, Select, Sweep

REPEATS = 16


@pytest.fixture(scope="module")
def quality():
    path = Path(__file__).parents[1] / "benchmarks" / "quality_search.py"
    spec = importlib.util.spec_from_file_location("quality_search", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def mixture(quality):
    return quality.load("mixture")


def ours(quality, mixture, epsilon):
    sweep = Sweep(rungs=quality.LADDER, search=Search(), select=Select())
    return quality.ladder(mixture, sweep, quality.Fit(using="pooled"), REPEATS, seed=0, epsilon=epsilon)


def test_even_an_unlucky_ladder_beats_the_average_random_draw(quality, mixture):
    random = quality.random_search(mixture, Search(draw="uniform"), REPEATS, seed=0)
    assert np.percentile(ours(quality, mixture, 1.0).accuracy, 10) > random.accuracy.mean() + 0.02


@pytest.mark.parametrize("epsilon", [0.7, 3.0])
def test_the_ladder_ends_near_the_best_r_of_its_budget(quality, mixture, epsilon):
    r = np.geomspace(0.5, 500.0, 7)
    runs = [
        quality.Run(float(x), quality.gdp.mu(epsilon, 1e-5), 1.0, f"{x} {again}")
        for x in r
        for again in range(4)
    ]
    grid = quality.train(mixture, runs, seed=0)[1].reshape(7, 4).mean(axis=1)
    found = ours(quality, mixture, epsilon)
    lost = (grid.max() - found.accuracy.mean()) / (grid.max() - grid.min())
    assert lost < 0.4
