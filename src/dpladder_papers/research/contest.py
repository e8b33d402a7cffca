"""Searches against each other on public data: any of them, with any learners, at any totals, side
by side.

Each entry pays inside its total for all that it needs: its trials, their scores, its final
training. Noise is seeded and accounted as in a release; nothing here is one.

A search is a generator. It yields the trainings that it wants next, and is sent their answers. So a
contest can hold many searches at once, and train what all of them wait for in shared passes over
the data. That is what makes dozens of repeats affordable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dpladder.config.learners import Learner
from dpladder.learn.counts import right_counts
from dpladder.learn.data import Data
from dpladder.learn.interface import Declaration, Weights
from dpladder.learn.trainings import scorer_of
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import check_charge_matches_noise
from dpladder.privacy.accounting.events import Counted, Gaussian
from dpladder.privacy.release.meter import Meter
from dpladder.research.arena import Arena, PublicMeter, bench_of
from dpladder.research.without_noise import GRID
from dpladder.search.bench import NamedAsk, answers
from dpladder.search.protocol import (
    Answer,
    Ask,
    Asking,
    Searcher,
    SearchOutcome,
    Setting,
    Units,
    trainings,
)
from dpladder.search.space import Space

GRID_REPEATS = 8


@dataclass(frozen=True)
class Competitor:
    """A way to search, what it is told, and what it trains.

    Attributes:
        name: for people. It seeds noise too, so two competitors of one contest have different
            names.
        way: the search.
        setting: its total, its range and the public facts of the data.
        learner: that it trains, unless it asks for another one (`Ask.learner`).
    """

    name: str
    way: Searcher
    setting: Setting
    learner: Learner


@dataclass(frozen=True)
class Standing:
    """Test accuracy of what an entry puts out, and what a repeat takes.

    Attributes:
        name: of the competitor.
        epsilon: its total, at the delta of the arena's terms.
        mean: of the test accuracies over the repeats, from 0 to 1.
        sd: their standard deviation, n - 1 in the denominator; 0 where there is one repeat.
        p10: their 10th percentile: how bad an unlucky run is.
        repeats: how many searches these figures are of.
        trainings: mean number of trainings in a search.
        seconds: mean time of a search.
        search: mean share of mu^2 that trials and scores took.
    """

    name: str
    epsilon: float
    mean: float
    sd: float
    p10: float
    repeats: int
    trainings: float  # one on a part of the data counts by the part's size
    # of one core: a training has its share, by steps, of the time of those that it shared passes
    # with
    seconds: float
    search: float  # share of mu^2 that did not go into the weights that were put out


@dataclass(frozen=True)
class Straight:
    """No search: the whole total on one training.

    Guarantee: mu-GDP for the whole mu of the total, by one Gaussian event.
    """

    def declare(self, setting: Setting) -> Declaration:
        """One training of the whole mu, and nothing else."""
        return Declaration((Counted(Gaussian(gdp.sigma(setting.mu, 1))),), (trainings(setting.mu),))

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        """Ask for that training. Its r is 1, for a learner that searches nothing reads none."""
        [answer] = yield [Ask(1.0, setting.mu)]
        return SearchOutcome(1.0, setting.mu, answer.weights)


@dataclass
class Run:
    """One search under way: what it asks for next, and what it has used so far.

    Attributes:
        name: seeds its trainings' noise; one for each competitor, total and repeat.
        entry: that it is a repeat of.
        asking: the generator of the search.
        meter: holds its draws to what it declared.
        asks: the trainings that it waits for; empty once it has ended.
        outcome: what it ended with; None before.
        trainings: how many it has had. One on a part of the data counts by the part's size.
        seconds: that they took of one core.
    """

    name: str
    entry: Competitor
    asking: Asking
    meter: Meter
    asks: list[Ask] = field(default_factory=list)
    outcome: SearchOutcome | None = None
    trainings: float = 0.0
    seconds: float = 0.0

    def step(self, answers: list[Answer] | None = None) -> None:
        """Go on to what the search asks for next, or to its end, where the meter makes sure that
        all declared noise was drawn. `answers`: to what it asked for before, in that order; None
        at the start."""
        try:
            self.asks = next(self.asking) if answers is None else self.asking.send(answers)
        except StopIteration as done:
            self.asks, self.outcome = [], done.value
            self.meter.close()


def contest(arena: Arena, entries: Sequence[Competitor], repeats: int) -> list[Standing]:
    """Every entry's search, all of them side by side: trainings of all share passes over the data.

    Everything is public, so nothing is charged. Prices are kept all the same: the draws of a search
    must cost what it declares.

    Args:
        arena: the data, and a seed for all noise.
        entries: whose names differ, since names seed noise.
        repeats: searches of each entry, which differ in public draws and in noise.

    Returns:
        How each entry stands, in the order of `entries`.
    """
    runs = [start_search(arena, entry, repeat) for entry in entries for repeat in range(repeats)]
    # Each round serves every search that still waits. They end after different numbers of rounds.
    while pending := [run for run in runs if run.asks]:
        answer(arena, pending)
    by_entry = [runs[first : first + repeats] for first in range(0, len(runs), repeats)]
    return [
        summary(arena, entry, runs_of_entry)
        for entry, runs_of_entry in zip(entries, by_entry, strict=True)
    ]


def oracle(
    arena: Arena,
    setting: Setting,
    learner: Learner,
    grid: int = GRID,
    repeats: int = GRID_REPEATS,
) -> float:
    """The best mean test accuracy over a grid of the range: what no private search knows.

    It is chosen by the test itself, so it lies above what anything could reach for long, by a
    little.

    Args:
        arena: the data.
        setting: the total, which goes into each training whole, and the range.
        learner: that is trained.
        grid: places, spread evenly by ratio.
        repeats: trainings at each place, over whose noise the mean is.
    """
    space = Space(setting.search, learner, setting.constants)
    trainings = [
        NamedAsk(
            f"oracle {setting.epsilon} {place} {again}", Ask(r, setting.mu), learner, setting.search
        )
        for place in np.geomspace(*space.range(), grid).tolist()
        for r in [space.r(place, setting.mu)]
        for again in range(repeats)
    ]
    answers_found, _ = answers(bench_of(arena), trainings)
    right = correct_counts(arena, learner, [one.weights for one in answers_found])
    return float(right.reshape(grid, repeats).mean(axis=1).max()) / arena.tested


def correct_counts(
    arena: Arena, learner: Learner, models: Sequence[Weights]
) -> NDArray[np.float64]:
    """How many test records each model is right about, in the order of `models`; without noise.

    Args:
        arena: whose test part is counted.
        learner: that trained them, which tells how weights score a record.
        models: weights of trained models.

    Returns:
        Counts of shape (models,).
    """
    return right_counts(scorer_of(learner, arena.constants), models, arena.test)


def start_search(arena: Arena, entry: Competitor, repeat: int) -> Run:
    """A search under way, with public draws and secrets of its own: its first asks are there.

    Args:
        arena: the data.
        entry: how it searches, and what.
        repeat: seeds both. The same number begins the same search.

    Raises:
        Refused: its draws cost something else than the events that it declares.
    """
    search = entry.setting.search.model_copy(update={"seed": repeat})
    entry = replace(entry, setting=replace(entry.setting, search=search, learner=entry.learner))
    name = f"{entry.name} {entry.setting.epsilon} {repeat}"
    declared = entry.way.declare(entry.setting)
    check_charge_matches_noise(declared.events, declared.draws, entry.setting.constants.relation)
    meter = PublicMeter(declared.draws, arena, name)
    for draw in declared.draws:
        if draw.distribution == "within":
            meter.inner_meters(draw.name)  # its trainings have quick meters of their own
    run = Run(name, entry, entry.way.run(entry.setting, meter, _units(arena.train)), meter)
    run.step()
    return run


def answer(arena: Arena, pending: Sequence[Run]) -> None:
    """Train what these searches wait for, all of it together, and send each its answers: one round.

    Args:
        arena: the data.
        pending: searches that wait for trainings. Each is stepped once, and may wait again after
            it.
    """
    trainings = [
        NamedAsk(
            f"{run.name} {run.trainings} {place}",
            ask,
            ask.learner or run.entry.learner,
            run.entry.setting.search,
        )
        for run in pending
        for place, ask in enumerate(run.asks)
    ]
    answers_found, seconds = answers(bench_of(arena), trainings)
    first = 0
    for run in pending:
        # Answers come in the order of the asks: each run takes as many as it asked for.
        slice_of_run = slice(first, first := first + len(run.asks))
        run.trainings += sum(ask.share for ask in run.asks)
        run.seconds += sum(seconds[slice_of_run])
        run.step(answers_found[slice_of_run])


def summary(arena: Arena, entry: Competitor, runs: Sequence[Run]) -> Standing:
    """How an entry's repeats stand. A search that ended without weights counts as a guess, at one
    over the number of classes.

    Args:
        arena: whose test part is counted.
        entry: the competitor.
        runs: its repeats, each at its end.
    """
    outcomes = [run.outcome for run in runs if run.outcome]
    heads = [one.weights for one in outcomes if one.weights is not None]
    accuracy = np.full(len(runs), 1.0 / arena.constants.classes)  # without weights there is a guess
    if heads:
        able = [one.weights is not None for one in outcomes]
        accuracy[able] = correct_counts(arena, entry.learner, heads) / arena.tested
    return Standing(
        name=entry.name,
        epsilon=entry.setting.epsilon,
        mean=float(accuracy.mean()),
        sd=float(accuracy.std(ddof=1)) if len(runs) > 1 else 0.0,
        p10=float(np.percentile(accuracy, 10)),
        repeats=len(runs),
        trainings=float(np.mean([run.trainings for run in runs])),
        seconds=float(np.mean([run.seconds for run in runs])),
        search=1.0 - float(np.mean([one.mu**2 for one in outcomes])) / entry.setting.mu**2,
    )


def _units(data: Data) -> Units:
    """Whose each record is; in public data without units, its own number."""
    if data.units is not None:
        return data.units
    numbers = np.arange(len(data.labels), dtype=np.uint64)
    # Ids of units have 16 bytes, so a number of 8 bytes stands twice.
    return np.stack([numbers, numbers], axis=1).view(np.uint8)
