"""Does a bounded loss choose a better r in a release's search than right answers do? Public data,
seeded.

python tools/score_trials.py [--data digits clothes] [--packages PACKAGES --tables income votes]
[--epsilons 1] [--repeats 8] [--ladder bought] [--cache FOLDER]

The search is a release's own: prior, rungs, noise and fit, on features less a mean that is bought
where it pays. Trials have one noised sum over the training part, which a record moves by 1 at most:
1 where it is right; or one less its log-loss, cut at that of knowing nothing and divided by it.
Before that margins take the public law's slope, which is fitted at the prior's kappa; away from it
the best slope falls with kappa as `margins_at` says (measured at an eighth to twice the prior's).
Repeats have the same noise whatever the score. `--ladder bought` has the rungs that the plan buys,
and leaves out totals at which it buys none; by default the rungs of the strongest total are bought
everywhere. Prints accuracy and log-loss of final models that are calibrated as a release's are,
without trials and by each score, and how far each is ahead of right answers, with a standard error
over rows.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from compare_hpo import arena_at
from compare_tables import config_of, problem_of, seen, stored
from public_tables import TABLES, read
from terminal import print_head, print_row, read_options

from dpladder.config.learners import Learner
from dpladder.config.sweep_sections import Search
from dpladder.learn.data import Data
from dpladder.learn.interface import Declaration, Weights
from dpladder.learn.measures.calibrate import Calibrating
from dpladder.learn.score import logits, softmax
from dpladder.methods.dp_gd import Descent
from dpladder.plan.resolve import CALIBRATES_MORE, CALIBRATES_TWO, calibration_share
from dpladder.privacy.accounting import gdp
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release.meter import Meter
from dpladder.research.arena import Arena, PublicMeter
from dpladder.search.prior import with_prior
from dpladder.search.protocol import Ask, Asking, Setting, Units
from dpladder.search.sweep_value import best_ladder
from dpladder_papers.research.contest import Competitor, answer, start_search
from dpladder_papers.research.ladder import Climbed, LadderSearcher

DATA = ("digits", "mixture", "mnist5k", "mnist5k-auto", "clothes", "clothes-auto", "bible-auto")
SCORES = ("right answers", "log-loss")
STRONGEST = 1e5


@dataclass(frozen=True)
class Case:
    """Data at a total, as a release sees them.

    Attributes:
        arena: records as trainings see them.
        setting: of the search; its total leaves out the mean and the map of margins.
        mu: of the map of margins; None where none is bought.
    """

    arena: Arena
    setting: Setting
    mu: float | None

    @property
    def learner(self) -> Learner:
        return self.setting.learner


@dataclass(frozen=True)
class Rungs(LadderSearcher):
    """The ladder with the rungs that pay at another strength."""

    strength: float | None = None

    def _ladder_of(self, setting: Setting) -> Climbed:
        if self.strength == 0.0:
            return Climbed((), self.share, setting.mu)
        bought = best_ladder(self.strength or setting.strength, setting.centred)
        rungs = tuple((math.sqrt(rung.part) * setting.mu, rung.trials) for rung in bought.rungs)
        return Climbed(rungs, bought.share, setting.mu)


@dataclass(frozen=True)
class ScoredBy:
    """The ladder, whose trials are scored by one of SCORES."""

    ladder: Rungs
    case: Case
    score: str

    def declare(self, setting: Setting) -> Declaration:
        return self.ladder.declare(setting)

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        asking = self.ladder.run(setting, meter, units)
        asks = next(asking)
        while True:
            answers = yield asks
            if asks[0].within != "final" and self.score != SCORES[0]:
                answers = [
                    replace(one, correct=score_of(self.case, one.weights, ask))
                    for one, ask in zip(answers, asks, strict=True)
                ]
            try:
                asks = asking.send(answers)
            except StopIteration as done:
                return done.value


def main() -> None:
    options = read_options(
        __doc__,
        choices={"ladder": ["bought", "all"], "tables": TABLES},
        data=list[str],
        packages=Path,
        tables=list[str],
        epsilons=(0.3, 1.0, 4.0),
        repeats=8,
        ladder="all",
        cache=Path,
    )
    print_head("data", "total ε", "n₀·mu", "trials", "without trials", *SCORES)
    rows = [
        row for name, epsilon, case in cases(options) for row in shown(name, epsilon, case, options)
    ]
    means = np.array(rows)  # (rows, ways, figures)
    print_row("mean", "", "", "", *map(figures, means.mean(axis=0)))
    for place, way in enumerate(("without trials", *SCORES)):
        ahead = means[:, place] - means[:, 1]
        error = ahead.std(axis=0, ddof=1) / math.sqrt(len(ahead))
        print(
            f"{way} beside right answers: accuracy {ahead[:, 0].mean():+.4f} ± {error[0]:.4f}, "
            f"log-loss {ahead[:, 1].mean():+.4f} ± {error[1]:.4f}, over {len(ahead)} rows"
        )


def cases(options: Namespace) -> Iterator[tuple[str, float, Case]]:
    chosen = options.data or ([] if options.tables else DATA)
    for name in chosen:
        for epsilon in options.epsilons:
            told = Namespace(problem=name, centre="bought", cache=options.cache, seed=0)
            arena, left, centred = arena_at(told, epsilon)
            search = with_prior(Search(), Descent(), centred)
            yield name, epsilon, case_of(arena, left, search, Descent(), centred)
    for name in options.tables:
        problem = problem_of(name, read(name, options.packages), 0)
        for epsilon in options.epsilons:
            config = config_of(problem, epsilon, None, None)
            mu = gdp.mu_from_epsilon(epsilon, config.privacy.delta)
            arena, left = seen(stored(problem, config), config, mu)
            total = gdp.epsilon(left, config.privacy.delta)
            centred = config.features.mean is not None
            yield name, epsilon, case_of(arena, total, config.sweep.search, config.learner, centred)


def case_of(arena: Arena, total: float, search: Search, learner: Learner, centred: bool) -> Case:
    delta = arena.constants.delta
    mu = gdp.mu_from_epsilon(total, delta)
    strength = arena.constants.n0 * mu
    least = CALIBRATES_TWO if arena.constants.classes == 2 else CALIBRATES_MORE
    bought = math.sqrt(calibration_share(strength)) * mu if strength >= least else None
    total = gdp.epsilon(gdp.remaining(mu, [bought or 0.0]), delta)
    setting = Setting(total, search, arena.constants, centred=centred, learner=learner)
    return Case(arena, setting, bought)


def shown(name: str, epsilon: float, case: Case, options: Namespace) -> list[Floats]:
    """A row's figures, which are printed too; none where no trials are bought."""
    strength = case.setting.strength
    bought = best_ladder(strength, case.setting.centred)
    if options.ladder == "bought" and not bought.rungs:
        return []
    ladder = Rungs(strength=None if options.ladder == "bought" else STRONGEST)
    entries = [(Rungs(strength=0.0), SCORES[0]), *((ladder, score) for score in SCORES)]
    ends = np.array([measured(case, *one, options.repeats) for one in entries])
    means = ends.mean(axis=1)
    trials = "bought" if bought.rungs else "none bought"
    print_row(name, f"{epsilon:g}", f"{strength:,.0f}", trials, *map(figures, means))
    spread = (ends[2:] - ends[1]).std(axis=1, ddof=1) / math.sqrt(options.repeats)
    print("<!-- paired standard errors", *map(figures, spread), "-->", flush=True)
    return [means]


def figures(both: Floats) -> str:
    return ", ".join(f"{one:.3f}" for one in both)


def measured(case: Case, ladder: Rungs, score: str, repeats: int) -> Floats:
    """Accuracy and log-loss of each repeat's final model."""
    entry = Competitor("search", ScoredBy(ladder, case, score), case.setting, case.learner)
    runs = [start_search(case.arena, entry, repeat) for repeat in range(repeats)]
    while pending := [run for run in runs if run.asks]:
        answer(case.arena, pending)
    found = []
    for again, run in enumerate(runs):
        assert run.outcome is not None
        assert run.outcome.weights is not None
        model = calibrated(case, run.outcome.weights, run.outcome.mu, case.mu, again)
        likely, own = said(model, case.arena.test)
        right = likely.argmax(axis=1) == case.arena.test.labels
        found.append((right.mean(), -np.log(own).mean()))
    return np.array(found)


def calibrated(
    case: Case, weights: Weights, mu: float, bought: float | None = None, again: int = 0
) -> Weights:
    """By the public law, and by a map where one is bought."""
    way = Calibrating(case.learner, case.arena.constants, mu, bought)
    meter = PublicMeter(way.declared.draws, case.arena, f"map {again}")
    return way.run(weights, case.arena.train, meter)[0]


def score_of(case: Case, weights: Weights, ask: Ask) -> int:
    """The sum of what records count by their losses, from 0 to 1 each."""
    head = np.float32(margins_at(case, ask)) * calibrated(case, weights, ask.mu)[0]
    likely, own = said((head,), case.arena.train)
    return round((1.0 - np.minimum(-np.log(own) / math.log(likely.shape[1]), 1.0)).sum())


def margins_at(case: Case, ask: Ask) -> float:
    """What margins of a trial are multiplied by after the law, which knows nothing of its kappa."""
    space, strength = case.setting.space, case.setting.constants.n0 * ask.mu
    belief = space.belief()
    assert belief is not None
    falls = min(max(0.6 - 0.2 * math.log(strength / 500.0), 0.2), 0.9)
    return float((space.kappa(ask.r, ask.mu) / belief.median) ** -falls)


def said(weights: Weights, data: Data) -> tuple[Floats, Any]:
    """The probability of each class, and of a record's own."""
    likely = np.maximum(softmax(logits(weights, data.features)), 1e-12)
    return likely, likely[np.arange(len(data.labels)), data.labels]


if __name__ == "__main__":
    main()
