"""Runs of a mechanism: through a meter, or through one that adds no noise, so that what is left is
what the data alone do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpladder.errors import BadInput
from dpladder.privacy.accounting.draws import Shape
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release.grid import Noise
from dpladder.privacy.release.meter import Draw, Meter, Streams, Within
from dpladder.privacy.release.noise import DerivedNoise
from dpladder_audit.engine.mechanism import Mechanism

MOST_RELEASED_NUMBERS = 1000  # released numbers: their correlation matrix must fit in memory
RUNS_PER_PASS = 100  # runs that share a pass, of a mechanism that can make many


@dataclass(frozen=True)
class _None(Noise):
    """The total as it is: what rounding to the grid hides must be seen here."""

    seen: list[Floats]

    def add_to(self, total: Any, values: Any = None) -> Any:
        on_host = total.cpu() if hasattr(total, "cpu") else total
        self.seen.append(np.array(on_host, np.float64))
        return total


class Bare(Meter):
    """No noise, and everybody in every sample: what is left is what the data alone do.

    Never for private records: what it answers is exact.

    Attributes:
        totals: what noise was asked for, by the name of its draw.
    """

    def __init__(self, draws: Sequence[Draw], source: Streams, without_last: bool = False) -> None:
        super().__init__(draws, source)
        self._without_last = without_last
        self.totals: dict[str, list[Floats]] = {draw.name: [] for draw in draws}

    def noise(self, name: str, shape: Shape) -> Noise:
        super().noise(name, shape)
        return _None(np.zeros(shape), self._declared[name].scale, self.totals[name])

    def mask(self, name: str, ids: NDArray[np.uint8]) -> NDArray[np.bool_]:
        super().mask(name, ids)
        in_sample = np.ones(len(ids), dtype=np.bool_)
        return (ids != ids[-1:]).any(axis=1) if self._without_last else in_sample

    def inner_meters(self, name: str) -> Within:
        inner = super().inner_meters(name)
        return _BareWithin(inner.source, inner.mu, inner.most)


class _BareWithin(Within):
    def meter(self, name: str, draws: Sequence[Draw]) -> Meter:
        super().meter(name, draws)
        return Bare(draws, DerivedNoise(self.source.stream(name, 0)))


def release(mechanism: Mechanism, data: Any, meter: Meter) -> Floats:
    """What one run publishes, in units of the claimed noise: float64 (numbers,).

    Raises:
        BadInput: it publishes more than MOST_RELEASED_NUMBERS numbers.
        Refused: it did not draw exactly what it declares.
    """
    return _in_units(mechanism, mechanism.run(data, meter), meter)


def releases(mechanism: Mechanism, data: Any, meters: Sequence[Meter]) -> list[Floats]:
    """What many runs publish, each with a meter of its own, in units of the claimed noise.

    A mechanism that can make many at a time does so: the workflow runs a rung's trials in one pass.
    """
    many = getattr(mechanism.run, "many", None)
    if many is None:
        return [release(mechanism, data, meter) for meter in meters]
    parts = [
        meters[start : start + RUNS_PER_PASS] for start in range(0, len(meters), RUNS_PER_PASS)
    ]
    pairs = (pair for part in parts for pair in zip(many(data, part), part, strict=True))
    return [_in_units(mechanism, released, meter) for released, meter in pairs]


def _in_units(mechanism: Mechanism, published: ArrayLike, meter: Meter) -> Floats:
    """A release over the claimed scale of its noise. The meter is closed, so that a draw that was
    declared and not made is seen."""
    released = np.ravel(np.asarray(published, dtype=np.float64) / mechanism.scale)
    meter.close()
    if released.size > MOST_RELEASED_NUMBERS:
        raise BadInput(
            f"mechanism {mechanism.name} publishes {released.size} numbers and an audit takes at "
            f"most {MOST_RELEASED_NUMBERS}. Register it on smaller made-up data."
        )
    return released


NoiselessRun = tuple[Floats, dict[str, list[Floats]]]
"""What a run without noise releases, and what noise was asked for, by the name of its draw."""


class Still:
    """What data sets alone do, without noise. Each is asked once: a few canaries make many pairs of
    neighbours."""

    def __init__(self, mechanism: Mechanism, stream: Streams) -> None:
        self._mechanism, self._stream = mechanism, stream
        self._told: dict[tuple[Any, ...], NoiselessRun] = {}

    def released(self, data: Any, without_last: bool = False) -> Floats:
        """What is released of some data without noise, with everybody in the sample.

        Args:
            data: units.
            without_last: whether the last unit is left out of every sample.
        """
        return self._of(data, without_last)[0]

    def totals(self, data: Any, without_last: bool = False) -> dict[str, list[Floats]]:
        """What noise was asked for on some data, by the name of its draw: a list of arrays, one for
        each time."""
        return self._of(data, without_last)[1]

    def shift(self, pair: tuple[Any, Any]) -> tuple[Floats, Floats]:
        """Where the releases of two neighbours lie: the first, and the step from it to the
        second."""
        first, second = map(self.released, pair)
        return first, second - first

    def _of(self, data: Any, without_last: bool = False) -> NoiselessRun:
        # units may be arrays, and live as long as their neighbours
        which = (without_last, *map(id, data))
        if which not in self._told:
            meter = Bare(self._mechanism.draws, self._stream, without_last)
            self._told[which] = release(self._mechanism, data, meter), meter.totals
        return self._told[which]
