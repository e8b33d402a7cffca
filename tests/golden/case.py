"""What every golden case is made of: its mechanisms, a public key, and noise that lies on no grid.

On the grid the last bit of a sum could move a release by a whole cell, so what is trained is
recorded without the grid; the grid has cases of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from support import SmoothMeter

from dpladder.privacy.accounting.draws import Draw
from dpladder.privacy.release import noise
from dpladder.privacy.release.meter import Meter, Within

KEY = b"a public key of the golden tests"
DRAWN = ("name", "distribution", "scale", "shape", "count", "sensitivity", "stack", "under")
Found = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A recorded computation. `owners`: the mechanisms that it is about. `long`: takes seconds."""

    name: str
    owners: tuple[str, ...]
    compute: Callable[[], Found]
    long: bool = False


class PlainMeter(SmoothMeter):
    def inner_meters(self, name: str) -> Within:
        found = super().inner_meters(name)
        return PlainWithin(found.source, found.mu, found.most)


class PlainWithin(Within):
    def meter(self, name: str, draws: Sequence[Draw]) -> Meter:
        super().meter(name, draws)  # refuses draws at another mu
        return PlainMeter(draws, noise.DerivedNoise(self.source.stream(name, 0)))


def drawn(draws: Sequence[Draw]) -> list[str]:
    return [repr([getattr(draw, field) for field in DRAWN]) for draw in draws]


def order(meter: Meter) -> list[list[Any]]:
    """The draws as they were made, one line for each row of one name."""
    return [[name, len(list(made))] for name, made in groupby(used.name for used in meter.used)]
