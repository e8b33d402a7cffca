"""How many records there are decides nothing: with what the meter puts out pinned, data of other
sizes, labels and lengths is asked the same, and the same is released (contract: no-tell,
public-sizes)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support import Seeded

from dpladder.config.learners import method
from dpladder.config.model import Resources
from dpladder.learn.curator import Curator
from dpladder.learn.data import Data
from dpladder.learn.finetune.descent import sample_worth
from dpladder.learn.interface import Claim, Constants, Hyper
from dpladder.learn.linear import resident
from dpladder.learn.queries import declared
from dpladder.methods.dp_finetune import FineTune
from dpladder.privacy.arrays import Floats
from dpladder_audit import rules, searches
from dpladder_audit.engine.mechanism import Mechanism
from dpladder_audit.learners import PinnedMeter
from dpladder_audit.scene import SceneFolder, scene_folder

SLOW = {"dp_hypo"}


def sizes_of(mechanism: Mechanism) -> Iterator[tuple[Any, ...]]:
    """Data of two, of seven and of some sixty units, of every kind that tempts a clip."""
    units = list(
        dict.fromkeys(unit for pair in mechanism.neighbours for data in pair for unit in data)
    )
    least = mechanism.neighbours[0][0]
    yield least
    yield (*least, *units[:5])
    yield tuple(units[place % len(units)] for place in range(61))


def released(mechanism: Mechanism, data: Any) -> tuple[Floats, list[Any]]:
    asked: list[Any] = []
    found = mechanism.run(data, PinnedMeter(mechanism.draws, Seeded(), asked))
    return np.ravel(found), sorted(map(str, asked))


def check(mechanism: Mechanism) -> None:
    first, *others = (released(mechanism, data) for data in sizes_of(mechanism))
    for other in others:
        assert other[1] == first[1], f"{mechanism.name} is asked by how many records there are"
        assert np.array_equal(other[0], first[0]), f"{mechanism.name} follows from sizes"


@pytest.fixture(scope="module")
def scenes() -> Iterator[SceneFolder]:
    with scene_folder(b"k" * 32) as folder:
        yield folder


def test_what_a_networks_look_finds_is_by_declaration() -> None:
    """As many right answers mean as much, however many records there are."""
    constants, learner = Constants(50, 2, 3), FineTune(trains="head", public="gradient", look=0.3)
    hyper = Hyper(0.5, 2, 50.0, 1e-7)
    queries = method(learner.name).queries(learner, hyper, constants)
    draws = declared(queries, constants).draws
    random = np.random.default_rng(0)

    def records(count: int) -> Data:
        features = random.normal(size=(count, 3)).astype(np.float32)
        return Data(features, np.arange(count) % 2)

    def worth(count: int) -> float:
        sample, start = records(20), np.zeros((2, 3), np.float32)
        data = replace(records(count), sample=sample, start=start, claim=Claim(0.9, 0.1))
        meter = PinnedMeter(draws, Seeded(), [], level=35.0)
        [found] = Curator(data, constants, Resources()).run(
            lambda given, asks: sample_worth(given, asks, learner, constants),
            [queries],
            [meter],
            guided=True,
        )
        return found

    assert worth(10) == worth(50) == worth(300)
    assert 0 < worth(10) < 20, "the look decides nothing here"


def test_the_room_for_rounding_is_by_declaration() -> None:
    def room(count: int) -> float:
        data = Data(np.ones((count, 3), np.float32), np.zeros(count, np.int64))
        return resident(data, Constants(50, 2, 3), Resources()).slack

    assert room(10) == room(40_000)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.ci] if name in SLOW else [])
        for name in searches.ATTACKED
    ],
)
def test_no_search_follows_from_how_many_records_there_are(name: str, scenes: SceneFolder) -> None:
    for mechanism in searches.attacks(scenes, name):
        check(mechanism)


@pytest.mark.ci
@pytest.mark.parametrize("name", rules.ATTACKED)
def test_no_rule_follows_from_how_many_records_there_are(name: str, scenes: SceneFolder) -> None:
    for mechanism in rules.attacks(scenes, name):
        check(mechanism)
