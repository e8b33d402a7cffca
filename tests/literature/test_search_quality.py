"""Whole ladders on a synthetic mixture: the search beats one random draw, and carries r to other
budgets.

Noise is seeded, so a result moves only with the code or the machine's arithmetic. Over 8 seeds the
unlucky ladder won by 0.061 to 0.073 where 0.02 is asked. Over 4 seeds the final budget's loss was
0.03 to 0.33 where 0.4 is allowed; with ladders deaf to their scores, 0.49 to 0.88.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest

from dpladder.config.sweep_sections import Search
from dpladder.learn.interface import Declaration
from dpladder.methods.dp_gd import Descent
from dpladder.search.protocol import Ask, SearchOutcome, Setting
from dpladder_papers.research.contest import Competitor, contest
from dpladder_papers.research.contestants import METHODS

TOOLS = Path(__file__).parents[2] / "tools"
REPEATS = 16


@dataclass(frozen=True)
class At:
    """The whole total on one training at a given r."""

    r: float

    def declare(self, setting):
        return Declaration(())

    def run(self, setting, meter, units):
        [answer] = yield [Ask(self.r, setting.mu)]
        return SearchOutcome(self.r, setting.mu, answer.weights)


@pytest.fixture(scope="module")
def mixture():
    return run_path(str(TOOLS / "arena.py"))["load"]("mixture", None, threads=1)


def rows(arena, epsilon, ways, search=None):
    setting = Setting(epsilon, search or Search(), arena.constants)
    return contest(arena, [Competitor(str(way), way, setting, Descent()) for way in ways], REPEATS)


@pytest.mark.ci
def test_even_an_unlucky_ladder_beats_the_average_random_draw(mixture):
    ladder, random = rows(mixture, 1.0, [METHODS["ladder"], METHODS["random_search_uniform"]])
    assert ladder.p10 > random.mean + 0.02


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.7, 3.0])
def test_the_ladder_ends_near_the_best_r_of_its_budget(mixture, epsilon):
    """In a range that reaches over eight decades."""
    fixed = map(At, np.geomspace(2.0, 5000.0, 7).tolist())
    ladder, *grid = rows(mixture, epsilon, [METHODS["ladder"], *fixed], Search(eta=(1e-6, 100.0)))
    means = [row.mean for row in grid]
    assert (max(means) - ladder.mean) / (max(means) - min(means)) < 0.4
