"""What every way to search hyperparameters under a total budget has in common.

A method is a frozen dataclass of public parameters. It declares what the whole search costs, its
final weights included, and every draw that it will make. Then it runs as a generator that asks for
trainings and is sent their answers. Whoever drives it may so train many searches' askings together.
Trainings draw their noise from meters of their own. Whatever else is random about a search is drawn
from the method's meter, because privacy rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpladder.config.learners import Learner
from dpladder.config.searches import METHODS, PrivateSearch
from dpladder.config.sweep_sections import Search
from dpladder.learn import score
from dpladder.learn.interface import Constants, Declaration, Weights
from dpladder.methods.dp_gd import Descent
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.events import Counted, Event, mu
from dpladder.privacy.release.meter import Draw, Meter
from dpladder.search.cost import price
from dpladder.search.space import Space

Mask = NDArray[np.bool_]
Units = NDArray[np.uint8]

SCORE_SHARE = 0.05  # of a run's mu^2


@dataclass(frozen=True)
class Setting:
    """What a method knows before it asks. All of it is public.

    Attributes:
        epsilon: the total, at the constants' delta.
        search: the range of r, and its unit.
        constants: public sizes and bounds.
        share: of a run's mu^2, for its score.
        reserved: the events that a ledger holds for the search; none: those that the total allows.
        learner: whose trainings are searched over.
        centred: whether features lost their mean.
    """

    epsilon: float
    search: Search
    constants: Constants
    share: float = SCORE_SHARE
    reserved: tuple[Counted, ...] = ()
    learner: Learner = field(default_factory=Descent)
    centred: bool = True

    @property
    def space(self) -> Space:
        """The axis that r is searched on."""
        return Space(self.search, self.learner, self.constants)

    def space_of(self, **changed: str) -> Space:
        """The space with some keys of the search changed."""
        return replace(self.space, search=self.search.model_copy(update=changed))

    @property
    def strength(self) -> float:
        """n0 mu: the signal of all records beside the noise that hides one of them, whatever the
        clip."""
        return (
            self.mu * self.constants.n0 / (2.0 if self.constants.relation == "replace_one" else 1.0)
        )

    @property
    def delta(self) -> float:
        """The lineage's, at which epsilon is told."""
        return self.constants.delta

    @property
    def mu(self) -> float:
        """What the total allows to a single Gaussian release."""
        return gdp.mu_from_epsilon(self.epsilon, self.delta)


@dataclass(frozen=True, eq=False)
class Ask:
    """A training that a search asks for.

    Attributes:
        r: sum of learning rates; it may be secret.
        mu: that the training may cost. The declared draw holds it to that (`meter.Within`).
        trained: on which records; None means all.
        counted: whose correct predictions to count; None means all.
        share: of the nominal size, that is expected in `trained`. Sums are divided by it.
        within: the declared draw whose streams its noise comes from.
        learner: in place of the search's own.
        delta0: what it is booked at, where it samples.
    """

    r: float
    mu: float
    trained: Mask | None = None
    counted: Mask | None = None
    share: float = 1.0
    within: str = "trainings"
    learner: Learner | None = None
    delta0: float = 0.0


@dataclass(frozen=True)
class Answer:
    """What a search is sent of a training. Both are private.

    Attributes:
        weights: of the training, which may leave where the method's theorem lets them go. Empty
            where a training costs nothing by itself: it is seen through its count alone.
        correct: how many of the counted records they are right about, exact.
    """

    weights: Weights
    correct: int


@dataclass(frozen=True)
class SearchOutcome:
    """What a method puts out, and nothing else.

    Attributes:
        r: of the training behind the weights.
        mu: of that training, or that r is told at where there is none.
        weights: None where the search made no run.
    """

    r: float
    mu: float
    weights: Weights | None


Asking = Generator[list[Ask], list[Answer], SearchOutcome]


class Searcher(Protocol):
    """A way to search, whose sensitivities are its author's word (docs/extend.md)."""

    def declare(self, setting: Setting) -> Declaration:
        """All events and draws of the whole search, final weights included, before records are
        read: by public figures alone."""
        ...

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        """The search at work. It draws all that it declared, whatever it finds.

        Args:
            setting: what it declared by.
            meter: all its randomness but the trainings' own.
            units: (records, 16), whose each record is, for masks.
        """
        ...


def searcher_of(section: PrivateSearch) -> Searcher:
    """The search that a section of the config describes."""
    searcher: Searcher = METHODS[section.name].searcher(section)
    return searcher


def run_alone(asking: Asking, answer: Callable[[list[Ask]], list[Answer]]) -> SearchOutcome:
    """Drive one search to its end.

    Args:
        asking: the search at work.
        answer: trains what it asks for, in order.
    """
    try:
        asks = next(asking)
        while True:
            asks = asking.send(answer(asks))
    except StopIteration as done:
        outcome: SearchOutcome = done.value
        return outcome


def events_of(section: PrivateSearch, setting: Setting) -> tuple[Counted, ...]:
    """The events that a search may spend: those that a ledger holds for it, or those that the total
    allows."""
    return setting.reserved or price(
        section, setting.epsilon, setting.delta, setting.constants.relation
    )


def mu_of(event: Event) -> float:
    """mu of an event that is Gaussian."""
    mu_found = mu(event)
    assert mu_found is not None, "a search's runs are Gaussian"
    return mu_found


def trainings(mu: float, number: int = 1, name: str = "trainings", under: str = "") -> Draw:
    """Streams for so many trainings.

    Args:
        mu: of each.
        number: how many; under a secret number of runs, those of one run.
        name: of the draw, which `Ask.within` names.
        under: the draw of a secret number of runs.
    """
    shape = () if under else (number,)
    return Draw(name, "within", shape=shape, sensitivity=mu * math.sqrt(number), under=under)


def scores(mu: float, number: int, constants: Constants, name: str = "score") -> Draw:
    """Noise for so many counts of right answers, each of which costs this mu.

    Sensitivity: sqrt(number) times that of one count, for a unit may be in all of them.

    Args:
        mu: of each count.
        number: of counts.
        constants: public sizes.
        name: of the draw.
    """
    draw = score.count_at(mu).draw(constants)
    moves = draw.sensitivity * math.sqrt(number)
    return replace(draw, name=name, shape=(number,), sensitivity=moves)


def split_mu(mu: float, share: float) -> tuple[float, float]:
    """A run's mu for its weights and for its score, whose squares add up to no more than the run's
    own.

    Args:
        mu: of the run.
        share: of mu^2, for its score.

    Returns:
        mu of the weights, and mu of the score.
    """
    score = math.sqrt(share) * mu
    return gdp.remaining(mu, [score]), score


def spread_r(uniform: float, space: Space, mu: float) -> float:
    """The r at this place of the range, evenly in its logarithm.

    Args:
        uniform: from 0 to 1.
        space: the axis.
        mu: of the training.
    """
    low, high = space.range()
    return space.r(low * (high / low) ** float(uniform), mu)
