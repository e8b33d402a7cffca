"""The learners, as `dpladder audit` looks at them: each by its blind check, and those of other
packages by attacks on what they ask too.

The blind check: with its answers pinned, what a learner returns is the same to the last byte,
whatever the records are. A method holds no records: its curator does. So all that could follow from
them are the answers, and this finds a method that reaches around its curator. It finds mistakes and
not malice (SECURITY.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np

from dpladder.config.label_sets import NUMBER
from dpladder.config.learners import METHODS, method
from dpladder.config.model import Resources
from dpladder.learn.data import Data
from dpladder.learn.interface import Claim, Constants, Hyper
from dpladder.learn.trainings import declare, train
from dpladder.network.cut import network_of
from dpladder.privacy.accounting.events import Relation
from dpladder.privacy.release.grid import Noise
from dpladder.privacy.release.meter import Draw, Meter, Within
from dpladder.privacy.release.noise import DerivedNoise, SecretNoise
from dpladder_audit.engine.findings import Finding, LeftOut
from dpladder_audit.engine.mechanism import Mechanism
from dpladder_audit.engine.records import (
    GUIDES,
    ZERO_RECORD,
    Record,
    canaries_of,
    constants_of,
    data_of,
)
from dpladder_audit.kinds import Asking, GridCell
from dpladder_audit.scene import SceneFolder

HYPER = Hyper(0.5, 3, 2.0, 1e-7)
CUT = "test_vit", "blocks.4", 32
ATTACKED = METHODS


@dataclass(frozen=True)
class Pinned(Noise):
    """Noise that lies on one level whatever the total is."""

    level: float = 0.0

    def add_to(self, total: Any, values: Any = None) -> Any:
        return (
            super().add_to(total.new_zeros(total.shape) + self.level, values)
            if hasattr(total, "new_zeros")
            else super().add_to(np.zeros(np.shape(total)) + self.level, values)
        )


class PinnedMeter(Meter):
    """Notes what it is asked, inside a search too, and tells nothing of the data.

    Attributes:
        asked: every question, in order; searches share one list.
        level: on which every answer lies, whatever the records are.
    """

    def __init__(
        self, draws: Sequence[Draw], source: Any, questions: list[Any], level: float = 0.0
    ) -> None:
        super().__init__(draws, source)
        self.asked, self.level = questions, level
        self.asked += [repr(draws)]

    def noise(self, name: str, shape: tuple[int, ...]) -> Noise:
        self.asked += [(name, shape)]
        inner = super().noise(name, shape)
        return Pinned(inner.values, inner.scale, self.level)

    def inner_meters(self, name: str) -> Within:
        inner = super().inner_meters(name)
        return PinnedWithin(inner.source, inner.mu, inner.most, questions=self.asked)


@dataclass(frozen=True)
class PinnedWithin(Within):
    """Meters of a private selection, each pinned as the outer one is."""

    questions: list[Any] = field(default_factory=list, kw_only=True)

    def meter(self, name: str, draws: Sequence[Draw]) -> Meter:
        super().meter(name, draws)  # refuses draws at another mu
        return PinnedMeter(draws, DerivedNoise(self.source.stream(name, 0)), self.questions)


def learner_variants(name: str) -> Iterator[tuple[Any, Constants]]:
    """The learner as a config may have it: as it is by default, of numbers, on samples, and guided.
    One that trains above a cut comes twice: with a network, and with its head alone."""
    section = method(name).section
    constants = constants_of(section)
    plain = section(name=name)
    if plain.above_cut:
        network = network_of(*CUT)
        yield plain, replace(constants, dimension=int(np.prod(network.shape)), network=network)
        plain = plain.model_copy(update={"trains": "head"})
    yield plain, constants
    if plain.numbers and plain.classes:
        of_number = replace(constants, classes=1, labels=NUMBER)
        yield plain.model_copy(update={"link": "identity"}), of_number
    if "sampling_rate" in section.model_fields:
        yield plain.model_copy(update={"sampling_rate": 0.5}), constants
    if plain.guidance == "auto" and plain.has_head:
        for look in (0.0, 0.5):  # followed for sure, and by what pinned answers say
            yield plain.model_copy(update={"public": "gradient", "look": look}), constants


def data_sets(learner: Any, constants: Constants) -> Iterator[Data]:
    """Made-up data of two, no, ten and some sixty units, of every kind that tempts a clip."""
    base, units = (ZERO_RECORD, ZERO_RECORD), canaries_of(constants.labels)
    crowd = tuple(units[place % len(units)] for place in range(61))
    for some in (base, (), (*base, *units), crowd):
        yield add_public_inputs(some, learner, constants)


def add_public_inputs(units: Sequence[Record], learner: Any, constants: Constants) -> Data:
    """Made-up units with what is public beside them, where the learner uses it: a head, and public
    records. These are the same on every data set, so that units alone differ."""
    data = data_of(units, learner.views, constants.dimension)
    if not learner.uses_public_gradient:
        return data
    start = np.eye(constants.classes, constants.dimension, dtype=np.float32)
    sample = data_of(GUIDES, width=constants.dimension)
    return replace(data, sample=sample, start=start, claim=Claim(0.9, 0.1))


def findings(name: str, key: bytes) -> Iterator[Finding]:
    """One for each way to set the learner: how many data sets left other bytes than the first.

    Args:
        name: of the learner.
        key: home's subkey for audits; the same noise is drawn on every data set.
    """
    for learner, constants in learner_variants(name):
        outputs = [
            _returned(learner, constants, data, key) for data in data_sets(learner, constants)
        ]
        differing = sum(one != outputs[0] for one in outputs[1:])
        note = ", sampled" * (learner.sampling < 1.0)
        note += ", numbers" * (constants.labels == NUMBER)
        note += f", guided, look {learner.look_share:g}" * learner.uses_public_gradient
        note += ", a network" * (constants.network is not None)
        yield Finding(f"{name}{note}", "weights that follow records", 0, differing, 0, 0)


def _returned(learner: Any, constants: Constants, data: Data, key: bytes) -> bytes:
    """What a training returns, and what it asked for, as bytes. Both must be the same whatever the
    records are."""
    draws = declare(learner, HYPER, constants).draws
    questions: list[Any] = []
    meter = PinnedMeter(draws, SecretNoise(key, f"{learner.name} blind", "0"), questions)
    weights = train(data, HYPER, learner, constants, meter, Resources(threads=1))
    meter.close()
    layers = b"".join(np.ascontiguousarray(layer).tobytes() for layer in weights)
    return repr(sorted(map(str, questions))).encode() + layers


def attacks(_: SceneFolder, name: str) -> tuple[Mechanism, ...]:
    """On the very queries of a plug-in. Those of dpladder's own are attacked as kinds."""
    return tuple(default_queries(name)) if not method(name).built_in else ()


def default_queries(name: str) -> Iterator[Mechanism]:
    """What a learner asks by default, under both relations and with both caps."""
    learner = method(name).section(name=name)
    for relation in get_args(Relation):
        for cap in (1, 2):
            constants = constants_of(learner, relation, cap)
            queries = method(name).queries(learner, Hyper(0.5, 2, 2.0, 1e-7), constants)
            yield Asking(queries, constants).mechanism(f"{name} {GridCell(relation, cap=cap)}")


def skipped_combinations(_: str) -> tuple[LeftOut, ...]:
    """None: a plug-in is attacked under both relations and both caps."""
    return ()
