"""What every way to search hyperparameters under a total budget has in common.

A method is a frozen dataclass of public parameters. It declares what the whole search costs, its final weights
included, and every draw that it will make; then it runs as a generator that asks for trainings and is sent their
answers. Whoever drives it may so train many searches' askings together. Trainings draw their noise from meters of
their own; whatever else is random about a search is drawn from the method's meter, because privacy rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpladder.config.model import Search
from dpladder.config.searches import PrivateSearch
from dpladder.learn.interface import Constants, Weights
from dpladder.privacy import gdp
from dpladder.privacy.meter import Draw, Meter
from dpladder.privacy.price import price
from dpladder.privacy.spend import Counted, Event, mu
from dpladder.search.space import bounds, clamp

Mask = NDArray[np.bool_]
Units = NDArray[np.uint8]

SCORE_SHARE = 0.05  # of a run's mu^2


@dataclass(frozen=True)
class Setting:
    """What a method is told. All of it is public."""

    epsilon: float  # the total, at the constants' delta
    search: Search
    constants: Constants
    share: float = SCORE_SHARE  # of a run's mu^2, for its score
    # The events that a ledger holds for the search; none: those that the total allows.
    reserved: tuple[Counted, ...] = ()

    @property
    def delta(self) -> float:
        return self.constants.delta

    @property
    def mu(self) -> float:
        """What the total allows to a single Gaussian release."""
        return gdp.mu(self.epsilon, self.delta)


@dataclass(frozen=True, eq=False)
class Ask:
    """A training: on which records, and whose correct predictions to count. No mask means all records."""

    r: float
    mu: float
    trained: Mask | None = None
    counted: Mask | None = None
    share: float = 1.0  # of the nominal size, that is expected in `trained`


@dataclass(frozen=True)
class Answer:
    """Private, both: `correct` always, the weights unless the method's theorem lets them go."""

    weights: Weights
    correct: int


@dataclass(frozen=True)
class Found:
    """What a method puts out, and nothing else. No weights: it made no run."""

    r: float
    mu: float  # of the training behind the weights
    weights: Weights | None


@dataclass(frozen=True)
class Declared:
    """What a search costs in all, and every draw beside those of its trainings."""

    events: tuple[Counted, ...]
    draws: tuple[Draw, ...] = ()


Asking = Generator[list[Ask], list[Answer], Found]


class Method(Protocol):
    def declare(self, setting: Setting) -> Declared: ...

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking: ...


def alone(asking: Asking, answer: Callable[[list[Ask]], list[Answer]]) -> Found:
    """Drives one search to its end."""
    try:
        asks = next(asking)
        while True:
            asks = asking.send(answer(asks))
    except StopIteration as done:
        found: Found = done.value
        return found


def events_of(section: PrivateSearch, setting: Setting) -> tuple[Counted, ...]:
    """The events that a search may spend."""
    return setting.reserved or price(section, setting.epsilon, setting.delta, setting.constants.relation)


def mu_of(event: Event) -> float:
    """mu of an event that is Gaussian."""
    found = mu(event)
    assert found is not None, "a search's runs are Gaussian"
    return found


def split(mu: float, share: float) -> tuple[float, float]:
    """A run's mu for its weights and for its score, which gets this share of mu^2."""
    score = math.sqrt(share) * mu
    return gdp.remaining(mu, [score]), score


def spread(uniform: float, search: Search) -> float:
    """The r at this place of the range, evenly in log r."""
    low, high = bounds(search)
    return clamp(low * (high / low) ** float(uniform), search)
