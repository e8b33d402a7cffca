"""How many records there are decides nothing: with what the meter puts out pinned, data of other
sizes, labels and lengths is asked the same, and the same is released (docs/design.md, lines 1 and
12)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from support import Seeded

from dpladder.audit import learners, rules, searches
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.scene import SceneFolder, stage
from dpladder.config.learner_sections import FineTune
from dpladder.config.model import Resources
from dpladder.learn import guide
from dpladder.learn.dp_finetune.train import followed
from dpladder.learn.interface import Claim, Constants, Data, Hyper
from dpladder.learn.linear import resident
from dpladder.learn.registry import LEARNERS
from dpladder.privacy.accounting.draws import Draw, Shape
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release import noise
from dpladder.privacy.release.grid import Noise
from dpladder.privacy.release.meter import Meter, Within

SLOW = {"dp_finetune", "hyfree_finetune", "prodigy_finetune", "dp_mlp", "dp_hypo"}


@dataclass(frozen=True)
class Pinned(Noise):
    """Noise that lies on one level whatever the total is."""

    level: float = 0.0

    def onto(self, total: Any, values: Any = None) -> Any:
        return super().onto(0 * total + self.level, values)


class PinnedMeter(Meter):
    """Notes what it is asked, inside a search too, and tells nothing of the data."""

    def __init__(
        self, draws: Sequence[Draw], source: Any, asked: list[Any], level: float = 0.0
    ) -> None:
        super().__init__(draws, source)
        self.asked, self.level = asked, level
        self.asked += [repr(draws)]

    def noise(self, name: str, shape: Shape) -> Noise:
        self.asked += [(name, shape)]
        found = super().noise(name, shape)
        return Pinned(found.values, found.scale, self.level)

    def within(self, name: str) -> Within:
        found = super().within(name)
        return PinnedWithin(found.source, found.mu, found.most, asked=self.asked)


@dataclass(frozen=True)
class PinnedWithin(Within):
    asked: list[Any] = field(default_factory=list, kw_only=True)

    def meter(self, name: str, draws: Sequence[Draw]) -> Meter:
        super().meter(name, draws)  # refuses draws at another mu
        return PinnedMeter(draws, noise.DerivedNoise(self.source.stream(name, 0)), self.asked)


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
    with stage(b"k" * 32) as folder:
        yield folder


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.ci] if name in SLOW else []) for name in LEARNERS],
)
def test_no_learner_follows_from_how_many_records_there_are(name: str) -> None:
    for mechanism in learners.mechanisms(name):
        check(mechanism)


def test_what_a_networks_look_finds_is_by_declaration() -> None:
    """As many right answers mean as much, however many records there are."""
    constants, learner = Constants(50, 2, 3), FineTune(trains="head", public="gradient", look=0.3)
    draws = guide.look(learner, Hyper(0.5, 2, 50.0, 1e-7), constants).draws
    random = np.random.default_rng(0)

    def records(count: int) -> Data:
        features = random.normal(size=(count, 3)).astype(np.float32)
        return Data(features, np.arange(count) % 2)

    def worth(count: int) -> float | None:
        sample, start = records(20), np.zeros((2, 3), np.float32)
        data = replace(records(count), sample=sample, start=start, claim=Claim(0.9, 0.1))
        meter = PinnedMeter(draws, Seeded(), [], level=35.0)
        return followed(data, learner, constants, meter).worth

    assert worth(10) == worth(50) == worth(300)
    assert 0 < (worth(10) or 0) < 20, "the look decides nothing here"


def test_the_room_for_rounding_is_by_declaration() -> None:
    def room(count: int) -> float:
        data = Data(np.ones((count, 3), np.float32), np.zeros(count, np.int64))
        return resident(data, Constants(50, 2, 3), Resources())[0].slack

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
