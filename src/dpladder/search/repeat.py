"""Private selection: the best of a secret number of runs (Liu & Talwar 2019; Papernot & Steinke 2022, Algorithm 1).

Assumes that nobody learns the number of runs, the losers, their scores, or how long they took: all runs belong in one
job with one output. Each run draws its r for itself, in secret. Public draws in public order would tell which run won.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpladder.config.searches import SecretRuns
from dpladder.learn import score
from dpladder.privacy import selection
from dpladder.privacy.meter import Draw, Meter
from dpladder.privacy.selection import Runs
from dpladder.privacy.spend import Counted, RepeatAndSelect
from dpladder.search.hpo import (
    Answer,
    Ask,
    Asking,
    Declared,
    Found,
    Setting,
    Units,
    events_of,
    mu_of,
    split,
    spread,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RandomRuns:
    """By the law of the section: logarithmic, geometric (Liu & Talwar's stopping by a coin), or Poisson."""

    section: SecretRuns

    def declare(self, setting: Setting) -> Declared:
        event = selected(self.section, setting)
        return Declared((Counted(event),), draws(budget(event, setting)))

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        event = selected(self.section, setting)
        plan = budget(event, setting)
        chance = toss(event, plan, self.section.padded, meter)
        asks = [Ask(spread(place, setting.search), plan.weights) for place in chance.places]
        answers = (yield asks) if asks else []
        return best(asks, answers, chance, setting)


@dataclass(frozen=True)
class Budget:
    """What each run may spend on its weights, the noise of its score, and where the number of runs is cut off."""

    weights: float
    scale: float
    limit: int


@dataclass(frozen=True, eq=False)
class Chance:
    """A selection's own randomness, drawn before its first run. `places` are those where it trains, of which the first
    `number` count: the secret number. Padded, it trains at all there may ever be."""

    number: int
    places: Floats
    noise: Floats
    ties: Floats


def selected(section: SecretRuns, setting: Setting) -> RepeatAndSelect:
    """The one event of the whole selection."""
    [counted] = events_of(section, setting)
    assert isinstance(counted.event, RepeatAndSelect)
    return counted.event


def budget(event: RepeatAndSelect, setting: Setting) -> Budget:
    weights, counted = split(mu_of(event.event), setting.share)
    assert event.limit is not None, "a search declares where it cuts its runs off"
    return Budget(weights, score.noise_scale(counted, setting.constants), event.limit)


def draws(plan: Budget) -> tuple[Draw, ...]:
    """Enough for the longest selection, always: how many are used must not show."""
    return (
        Draw("runs", "uniform"),
        Draw("place", "uniform", shape=(plan.limit,)),
        Draw("score", "gaussian", plan.scale, (plan.limit,)),
        Draw("tie", "uniform", shape=(plan.limit,)),
    )


def toss(event: RepeatAndSelect, plan: Budget, padded: bool, meter: Meter) -> Chance:
    shape, runs = (plan.limit,), Runs(event.mean, event.shape)
    number = selection.number(float(meter.uniform("runs", ())), runs, plan.limit)
    places, noise = meter.uniform("place", shape), meter.gaussian("score", plan.scale, shape)
    trained = places if padded else places[:number]
    return Chance(number, trained, noise, meter.uniform("tie", shape))


def best(asks: Sequence[Ask], answers: Sequence[Answer], chance: Chance, setting: Setting) -> Found:
    """The run with the highest noised count. Equal ones are ranked at random: the theorems assume no ties."""
    if not chance.number:
        return Found(spread(0.5, setting.search), 0.0, None)
    won = max(range(chance.number), key=lambda i: (answers[i].correct + chance.noise[i], chance.ties[i]))
    return Found(asks[won].r, asks[won].mu, answers[won].weights)
