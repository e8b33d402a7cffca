"""Private selection: the best of a secret number of runs (Liu & Talwar 2019; Papernot & Steinke
2022).

Assumes that nobody learns the number of runs, the losers, their scores, or how long they took. So
all runs belong in one job with one output. Each run draws its r for itself, in secret. Public draws
in public order would tell which run won.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpladder.learn import score
from dpladder.learn.interface import Declaration
from dpladder.privacy.accounting.draws import Draw, Law
from dpladder.privacy.accounting.events import Counted, RepeatAndSelect
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release.grid import Noise
from dpladder.privacy.release.meter import Meter
from dpladder.search.protocol import (
    Answer,
    Ask,
    Asking,
    SearchOutcome,
    Setting,
    Units,
    events_of,
    mu_of,
    split_mu,
    spread_r,
    trainings,
)
from dpladder_papers.searches.sections import Selection


@dataclass(frozen=True)
class Searcher:
    """The best of a secret number of runs, by the law of the section: logarithmic, geometric (Liu &
    Talwar's stopping by a coin), or Poisson.

    Guarantee: that of `RepeatAndSelect` (privacy/accounting/selection.py). A run is mu-GDP: its
    weights by one training and its score by one noised count, at an r that looks at nothing.
    """

    section: Selection

    def declare(self, setting: Setting) -> Declaration:
        """One event, and draws enough for the longest selection."""
        event = selection_event(self.section, setting)
        return Declaration((Counted(event),), draws(budget(event, setting)))

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        """Train all runs side by side, and put out the best one."""
        event = selection_event(self.section, setting)
        plan = budget(event, setting)
        chance = draw_run_count(plan, self.section.padded, meter)
        asks = [
            Ask(spread_r(place, setting.space, plan.weights), plan.weights)
            for place in chance.places
        ]
        answers = (yield asks) if asks else []
        return best(asks, answers, chance, setting)


@dataclass(frozen=True)
class Budget:
    """What each run may spend, and how many runs there may be.

    Attributes:
        weights: mu of the training.
        score: the noise of one count.
        law: of the number of runs: mean, shape, and where it is cut off.
    """

    weights: float
    score: Draw
    law: Law

    @property
    def limit(self) -> int:
        """The most runs there may be."""
        return self.law[-1]


@dataclass(frozen=True, eq=False)
class Chance:
    """A selection's own randomness, drawn before its first run.

    Attributes:
        number: of runs that count. It is secret.
        places: where it trains, from 0 to 1, of which the first `number` count. Padded, it trains
            at all there may ever be, so that time does not show the number.
        noise: of all scores.
        ties: that rank equal scores.
    """

    number: int
    places: Floats
    noise: Noise
    ties: Floats

    def scores(self, answers: Sequence[Answer]) -> Floats:
        """The noised counts of the runs so far. They stay secret but for which is the largest."""
        counts = np.array([answer.correct for answer in answers], np.float64)
        noised: Floats = self.noise.add_to(counts, self.noise.values[: len(counts)])
        return noised


def selection_event(section: Selection, setting: Setting) -> RepeatAndSelect:
    """The one event of the whole selection."""
    [counted] = events_of(section, setting)
    assert isinstance(counted.event, RepeatAndSelect)
    return counted.event


def budget(event: RepeatAndSelect, setting: Setting) -> Budget:
    """A run's mu, shared out between its weights and its score.

    Args:
        event: the whole selection's.
        setting: with the score's share.
    """
    weights, counted = split_mu(mu_of(event.event), setting.share)
    assert event.limit is not None, "a search declares where it cuts its runs off"
    score_draw = score.count_at(counted).draw(setting.constants)
    return Budget(weights, score_draw, (event.mean, event.shape, event.limit))


def draws(plan: Budget) -> tuple[Draw, ...]:
    """Enough for the longest selection, always: how many are used must not show."""
    return (
        Draw("runs", "uniform", law=plan.law),
        Draw("place", "uniform", shape=(plan.limit,)),
        replace(plan.score, shape=(plan.limit,), under="runs"),
        Draw("tie", "uniform", shape=(plan.limit,)),
        trainings(plan.weights, under="runs"),
    )


def draw_run_count(plan: Budget, padded: bool, meter: Meter) -> Chance:
    """All of a selection's own randomness, as `draws` declares it: as much whatever the number."""
    number = meter.runs("runs")
    places, noise = meter.uniform("place"), meter.noise("score", (plan.limit,))
    return Chance(number, places if padded else places[:number], noise, meter.uniform("tie"))


def best(
    asks: Sequence[Ask], answers: Sequence[Answer], chance: Chance, setting: Setting
) -> SearchOutcome:
    """The run with the highest noised count. Equal ones are ranked at random: the theorems assume
    no ties.

    Args:
        asks: the runs, in order.
        answers: theirs.
        chance: the secret number, noise and ranks.
        setting: names an r where no run was made.
    """
    if not chance.number:
        return SearchOutcome(spread_r(0.5, setting.space, setting.mu), setting.mu, None)
    scores = chance.scores(answers[: chance.number])
    won = int(np.lexsort((chance.ties[: chance.number], scores))[-1])
    return SearchOutcome(asks[won].r, asks[won].mu, answers[won].weights)
