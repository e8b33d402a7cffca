"""Public data, cut once into what is trained on and what is tested on, and quick noise for it."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpladder.config.model import Resources
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.privacy.accounting.draws import Shape
from dpladder.privacy.ledger.state import Terms
from dpladder.privacy.release.grid import Noise
from dpladder.privacy.release.meter import Draw, Meter
from dpladder.privacy.release.noise import ResearchNoise
from dpladder.search.bench import Bench, NamedAsk


@dataclass(frozen=True)
class Arena:
    """Public data, cut once into what is trained on and what is tested on.

    Attributes:
        train: features of shape (records, dimension), with a label and perhaps a unit for each.
        test: the same of other records. Every figure of a contest is an exact count on them.
        constants: the public facts of a training on `train`; n0 and the number of classes among
            them.
        terms: of a lineage that is declared public. Noise that may be seeded refuses all others.
        resources: of the whole job; all competitors share them.
        seed: of all noise, by which a contest can be repeated. A release never has one.
    """

    train: Data
    test: Data
    constants: Constants
    terms: Terms
    resources: Resources
    seed: int

    @property
    def tested(self) -> int:
        """Test records that count; a label of -1 marks those that do not."""
        return int(np.count_nonzero(np.asarray(self.test.labels) >= 0))


class PublicMeter(Meter):
    """Quick draws for public data alone: a hash for each stream, and normals straight from numpy.

    Hardened noise (privacy/release/noise.py) would be half of the time. The stem comes from a
    `ResearchNoise` that this meter makes itself, which refuses every lineage that is not public. So
    no release can ever draw from it.

    Args:
        draws: all that may be drawn, as for any meter.
        arena: its terms must be of public data.
        name: seeds all streams, together with the arena's seed.
    """

    def __init__(self, draws: Sequence[Draw], arena: Arena, name: str) -> None:
        super().__init__(draws, self)
        self._stem = ResearchNoise(arena.terms, f"contest {name}", arena.seed).stream("contest", 0)

    def stream(self, name: str, index: int) -> bytes:
        """The key of one stream, 32 bytes: an HMAC of its name and index under the stem.
        Predictable for whoever knows the seed, which is the point here and would be a breach in a
        release."""
        return hmac.digest(self._stem, f"{name} {index}".encode(), "sha256")

    def noise(self, name: str, shape: Shape) -> Noise:
        """Noise of a declared draw: unit normals and the scale that they are to be multiplied by.
        Laplace noise has no quick way, so it is drawn as a release draws it."""
        if self._declared[name].distribution == "laplace":
            return super().noise(name, shape)
        seed = np.frombuffer(self._take_stream(name, "gaussian", shape), np.uint32)
        drawn = np.random.Generator(np.random.SFC64(seed)).normal(0.0, 1.0, shape)
        return Noise(drawn, self._declared[name].scale)


def bench_of(arena: Arena) -> Bench:
    """Where its searches train."""

    def meter(training: NamedAsk, draws: Sequence[Draw]) -> Meter:
        return PublicMeter(draws, arena, training.name)

    return Bench(arena.train, arena.constants, arena.resources, meter)
