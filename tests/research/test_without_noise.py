"""What is trained without noise has the r that is best for it, wherever that lies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpladder.config.learners import learner_of
from dpladder.config.model import Resources
from dpladder.config.sweep_sections import Search
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.privacy.ledger.state import Terms
from dpladder.research.arena import Arena
from dpladder.research.without_noise import DOUBLINGS, best
from dpladder.search.space import Space

GD = learner_of({"name": "dp_gd"})
RECORDS = 400


@pytest.fixture
def slow() -> Arena:
    """Two classes, which a large feature tells roughly and a small one without fail: it takes many
    steps to trust that."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, RECORDS)
    large = random.normal(size=RECORDS) + labels
    data = Data(np.stack([large, 0.1 * (2 * labels - 1)], axis=1).astype(np.float32), labels)
    terms = Terms("public", "add_remove", "record", 1, 1e-5, "given", mode="research")
    return Arena(data, data, Constants(RECORDS, 2, 2), terms, Resources(threads=1), 0)


def test_steps_double_where_the_most_that_the_search_allows_are_best(slow: Arena) -> None:
    search = Search(eta=(0.01, 0.5), steps=(1, 16))
    r, reached = best(slow, Space(search, GD, slow.constants))
    assert 8.0 < r <= 8.0 * 2**DOUBLINGS
    assert reached.steps == (1, 2 * r)


def test_the_search_stays_as_it_is_where_fewer_steps_are_as_good(slow: Arena) -> None:
    clear = replace(
        slow, train=replace(slow.train, features=slow.train.features * np.float32([0, 100]))
    )
    search = Search(eta=(0.01, 0.5), steps=(1, 500))
    r, reached = best(clear, Space(search, GD, clear.constants))
    assert r < 250.0
    assert reached == search
