"""Learners against each other at the same totals, on public data: whole ladders, many at a time over one pass.

Each contestant pays inside its total for all that it needs: its trials, their scores, its final training. One without a
ladder spends the total on one training. Noise is seeded and accounted as in a release; nothing here is one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpladder.config.learners import Learner
from dpladder.config.model import Fit, Resources, Sweep
from dpladder.learn import score
from dpladder.learn.interface import Constants, Data, Hyper, Weights
from dpladder.learn.registry import method
from dpladder.privacy import gdp
from dpladder.privacy.ledger import Terms
from dpladder.privacy.meter import Meter
from dpladder.privacy.noise import ResearchNoise
from dpladder.privacy.spend import Counted, Gaussian, Job
from dpladder.rules.training import hyper_of
from dpladder.search.hpo import Answer, Ask, Asking, Declared, Found, Setting, Units
from dpladder.search.hpo import Method as Searching
from dpladder.search.ladder import Ladder

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
WIDE = 32  # trainings that share a pass
NOBODY: Units = np.empty((0, 16), np.uint8)  # a ladder draws nothing by record


@dataclass(frozen=True)
class Contestant:
    """A learner, and how its r is found. The rungs are as for a total of `total`, and scale with the totals."""

    name: str
    learner: Learner
    sweep: Sweep
    fit: Fit
    total: float


@dataclass(frozen=True)
class Arena:
    """Public data, cut once into what is trained on and what is tested on."""

    train: Data
    test: Data
    constants: Constants
    terms: Terms
    resources: Resources
    seed: int


@dataclass(frozen=True)
class Row:
    """Test accuracy of what a contestant puts out at one total, and what a repeat takes."""

    learner: str
    epsilon: float
    mean: float
    sd: float
    repeats: int
    trainings: int
    seconds: float
    search: float  # share of mu^2 that did not go into the final training


@dataclass(frozen=True)
class Straight:
    """No search: the whole total on one training."""

    def declare(self, setting: Setting) -> Declared:
        return Declared((Counted(Gaussian(gdp.sigma(setting.mu, 1))),))

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        [answer] = yield [Ask(1.0, setting.mu)]
        return Found(1.0, setting.mu, answer.weights)


def contest(
    arena: Arena, contestants: Sequence[Contestant], repeats: int, epsilons: Sequence[float] = EPSILONS
) -> Iterator[Row]:
    for contestant in contestants:
        for epsilon in epsilons:
            yield compete(arena, contestant, epsilon, repeats)


def compete(arena: Arena, contestant: Contestant, epsilon: float, repeats: int) -> Row:
    """Repeats differ in their public draws and in their noise."""
    began, trained = time.perf_counter(), 0
    search = contestant.sweep.search
    settings = [
        Setting(epsilon, search.model_copy(update={"seed": repeat}), arena.constants)
        for repeat in range(repeats)
    ]
    way = searching(contestant)
    names = [f"{contestant.name} {epsilon} {repeat}" for repeat in range(repeats)]
    meters = [
        Meter(way.declare(setting).draws, _noise(arena, name))
        for setting, name in zip(settings, names, strict=True)
    ]

    def answer(asks: Sequence[Ask]) -> list[Answer]:
        nonlocal trained
        own = [
            f"{names[place * repeats // len(asks)]} {trained} {place}" for place in range(len(asks))
        ]  # each repeat asks for as many
        trained += len(asks)
        heads = trainings(arena, contestant, asks, own)
        counts = [score.correct_count(head, arena.train.features, arena.train.labels) for head in heads]
        return [Answer(head, count) for head, count in zip(heads, counts, strict=True)]

    askings = [way.run(setting, meter, NOBODY) for setting, meter in zip(settings, meters, strict=True)]
    found = side_by_side(askings, answer)
    for meter in meters:
        meter.close()
    accuracy = np.array([_accuracy(arena, one.weights) for one in found])
    return Row(
        learner=contestant.name,
        epsilon=epsilon,
        mean=float(accuracy.mean()),
        sd=float(accuracy.std(ddof=1)) if repeats > 1 else 0.0,
        repeats=repeats,
        trainings=trained // repeats,
        seconds=(time.perf_counter() - began) / repeats,
        search=1.0 - (found[0].mu / settings[0].mu) ** 2,
    )


def searching(contestant: Contestant) -> Searching:
    if contestant.learner.searches is None:
        return Straight()
    sweep = contestant.sweep
    rungs = tuple((rung.epsilon / contestant.total, rung.trials) for rung in sweep.rungs)
    return Ladder(rungs, sweep.search.draw, sweep.search.prior, contestant.fit, sweep.select.share)


def side_by_side(askings: Sequence[Asking], answer: Callable[[Sequence[Ask]], list[Answer]]) -> list[Found]:
    """Drives searches that ask as often and for as many trainings as each other."""
    asks = [next(asking) for asking in askings]
    while True:
        answers = iter(answer([ask for own in asks for ask in own]))
        found: list[Found] = []
        for place, asking in enumerate(askings):
            try:
                asks[place] = asking.send([next(answers) for _ in asks[place]])
            except StopIteration as done:
                found.append(done.value)
        if found:
            return found


def trainings(
    arena: Arena, contestant: Contestant, asks: Sequence[Ask], names: Sequence[str]
) -> list[Weights]:
    """Trained as a release would be, each with the noise that it declares; those of like length share a pass."""
    learner, module = contestant.learner, method(contestant.learner.name)
    search = contestant.sweep.search
    hypers = [hyper_of(learner, search, None if learner.searches is None else ask.r, ask.mu) for ask in asks]
    meters = [
        Meter(module.declare(learner, hyper, arena.constants).draws, _noise(arena, name))
        for hyper, name in zip(hypers, names, strict=True)
    ]
    weights: list[Weights] = [()] * len(asks)
    order = sorted(range(len(asks)), key=lambda place: hypers[place].steps)
    for batch in (order[start : start + WIDE] for start in range(0, len(order), WIDE)):
        heads = _together(arena, learner, [hypers[i] for i in batch], [meters[i] for i in batch])
        for place, head in zip(batch, heads, strict=True):
            weights[place] = head
            meters[place].close()
    return weights


def _together(
    arena: Arena, learner: Learner, hypers: Sequence[Hyper], meters: Sequence[Meter]
) -> list[Weights]:
    module = method(learner.name)
    if hasattr(module, "train_many"):
        heads: NDArray[np.float32] = module.train_many(
            arena.train, hypers, learner, arena.constants, meters, arena.resources
        )
        return [(head,) for head in heads]
    return [
        module.train(arena.train, hyper, learner, arena.constants, meter, arena.resources)
        for hyper, meter in zip(hypers, meters, strict=True)
    ]


def _noise(arena: Arena, name: str) -> ResearchNoise:
    return ResearchNoise(arena.terms, Job("contest", "compare_learners", (("name", name),)), arena.seed)


def _accuracy(arena: Arena, weights: Weights | None) -> float:
    assert weights is not None, "ladders put weights out"
    right = score.correct_count(weights, arena.test.features, arena.test.labels)
    return right / len(arena.test.labels)
