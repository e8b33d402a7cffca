"""Private selection: the best of a secret number of runs (Liu & Talwar 2019; Papernot & Steinke 2022, Algorithm 1).

Assumes that nobody learns the number of runs, the losers, their scores, or how long they took: all runs belong in one
job with one output. Each run draws its r for itself, in secret. Public draws in public order would tell which run won.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dpladder.learn import score
from dpladder.learn.interface import Constants
from dpladder.privacy import gdp, selection
from dpladder.privacy.meter import Draw, Meter
from dpladder.privacy.selection import STRAIGHT, Lean, Runs
from dpladder.search.hpo import Answer, Ask, Asking, Declared, Found, Setting, Units, split, spread

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RandomRuns:
    """Shape 0 is logarithmic, 1 geometric (Liu & Talwar's stopping with a fixed probability), inf Poisson."""

    runs: Runs

    def declare(self, setting: Setting) -> Declared:
        plan = budget(self.runs, STRAIGHT, setting.epsilon, setting.constants)
        return Declared(plan.epsilon, draws(plan))

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        plan = budget(self.runs, STRAIGHT, setting.epsilon, setting.constants)
        chance = toss(self.runs, plan, meter)
        asks = [Ask(spread(place, setting.search), plan.weights) for place in chance.places]
        answers = (yield asks) if asks else []
        return best(asks, answers, chance, setting)


@dataclass(frozen=True)
class Budget:
    """What each run may spend on its weights, the noise of its score, and where the number of runs is cut off."""

    epsilon: float  # of the whole selection
    weights: float
    scale: float
    limit: int


@dataclass(frozen=True, eq=False)
class Chance:
    """A selection's own randomness, drawn before its first run. How many places there are is the secret number."""

    places: Floats
    noise: Floats
    ties: Floats


@cache
def budget(runs: Runs, lean: Lean, epsilon: float, constants: Constants) -> Budget:
    """The dearest runs whose selection costs no more than the total."""
    delta = constants.delta * (1 - selection.TAIL)

    def cost(mu: float) -> float:
        return selection.epsilon(mu, runs, delta, lean)

    mu = selection.largest(cost, epsilon, gdp.mu(epsilon, delta))
    weights, counted = split(mu)
    limit = selection.most(runs, epsilon, constants.delta)
    return Budget(cost(mu), weights, score.noise_scale(counted, constants), limit)


def draws(plan: Budget) -> tuple[Draw, ...]:
    """Enough for the longest selection, always: how many are used must not show."""
    return (
        Draw("runs", "uniform"),
        Draw("place", "uniform", shape=(plan.limit,)),
        Draw("score", "gaussian", plan.scale, (plan.limit,)),
        Draw("tie", "uniform", shape=(plan.limit,)),
    )


def toss(runs: Runs, plan: Budget, meter: Meter) -> Chance:
    shape = (plan.limit,)
    number = selection.number(float(meter.uniform("runs", ())), runs, plan.limit)
    places, noise = meter.uniform("place", shape), meter.gaussian("score", plan.scale, shape)
    return Chance(places[:number], noise, meter.uniform("tie", shape))


def best(asks: Sequence[Ask], answers: Sequence[Answer], chance: Chance, setting: Setting) -> Found:
    """The run with the highest noised count. Equal ones are ranked at random: the theorems assume no ties."""
    if not answers:
        return Found(spread(0.5, setting.search), 0.0, None)
    won = max(range(len(answers)), key=lambda i: (answers[i].correct + chance.noise[i], chance.ties[i]))
    return Found(asks[won].r, asks[won].mu, answers[won].weights)
