"""Does a bounded loss choose a better r for trials than right answers do? Public data, seeded.

python tools/score_trials.py [--data digits mnist5k] [--epsilons 1] [--repeats 20] [--cache FOLDER]

Each r of a grid has one trial with a fifth of the total's mu^2, whose margins the public law makes
less sure. A trial's score is one noised sum over the training part, a record moves it by 1 at most:
1 where it is right; one less half its Brier score; one less its log-loss, cut at the loss of the
base rate and divided by it. Of each score the r that is best under the noise of a hundredth of mu^2
is trained with what is left. Prints accuracy and log-loss of these, over repeats, beside the best r
in hindsight.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from arena import load
from terminal import print_head, print_row, read_options
from trainings import heads

from dpladder.config.learners import learner_of
from dpladder.config.sweep_sections import Search
from dpladder.learn.data import Data
from dpladder.learn.interface import Weights
from dpladder.learn.measures.calibrate import Calibrating
from dpladder.learn.score import logits, softmax
from dpladder.privacy.accounting import gdp
from dpladder.privacy.arrays import Floats
from dpladder.research.arena import Arena, PublicMeter
from dpladder.search.bench import NamedAsk
from dpladder.search.protocol import Ask
from dpladder.search.space import Space

DATA = ("digits", "mixture", "mnist5k", "clothes", "bible-auto")
EPSILONS, CANDIDATES, TRIALS, SCORES = (0.3, 1.0, 4.0), 8, 0.2, 0.01


def main() -> None:
    options = read_options(__doc__, data=list[str], epsilons=EPSILONS, repeats=20, cache=Path)
    print_head("data", "epsilon", "right answers", "Brier score", "log-loss", "best in hindsight")
    for name in options.data or DATA:
        arena = load(name, options.cache)
        for epsilon in options.epsilons:
            found = np.mean([chosen(arena, epsilon, one) for one in range(options.repeats)], axis=0)
            cells = [f"{right:.3f}, {loss:.3f}" for right, loss in found]
            print_row(name, f"{epsilon:g}", *cells)


def chosen(arena: Arena, epsilon: float, again: int) -> Floats:
    """Accuracy and log-loss on the test part: of what each score chooses, and of the best r."""
    learner, mu = learner_of({"name": "dp_gd"}), gdp.mu_from_epsilon(epsilon, arena.constants.delta)
    space = Space(Search(), learner, arena.constants)
    places = [space.clamp(r) for r in np.geomspace(*space.reach(), CANDIDATES).tolist()]

    def trained(share: float, what: str) -> list[Weights]:
        own = math.sqrt(share) * mu
        asks = [NamedAsk(f"{what} {r} {again}", Ask(r, own), learner, Search()) for r in places]
        law = Calibrating(learner, arena.constants, own)
        return [
            law.run(head, arena.train, PublicMeter((), arena, "none"))[0]
            for head in heads(arena, asks)
        ]

    trials = trained(TRIALS / CANDIDATES, "trial")
    finals = np.array([of_test(arena, one) for one in trained(1.0 - TRIALS - SCORES, "final")])
    sums = np.array([scores(arena, one) for one in trials])  # (candidates, scores)
    noise = np.random.default_rng(again).normal(size=CANDIDATES) / (
        math.sqrt(SCORES / CANDIDATES) * mu
    )
    picked = [int(np.argmax(column + noise)) for column in sums.T]
    return finals[[*picked, int(np.argmin(finals[:, 1]))]]


def scores(arena: Arena, weights: Weights) -> Floats:
    """Sums over the training part: right answers, Brier scores and log-losses, each from 0 to 1."""
    likely, labels = said(weights, arena.train)
    own = likely[np.arange(len(labels)), labels]
    brier = (likely**2).sum(axis=1) - 2.0 * own + 1.0
    loss = np.minimum(-np.log(own) / math.log(likely.shape[1]), 1.0)
    right = likely.argmax(axis=1) == labels
    return np.array([right.sum(), (1.0 - brier / 2.0).sum(), (1.0 - loss).sum()])


def of_test(arena: Arena, weights: Weights) -> tuple[float, float]:
    likely, labels = said(weights, arena.test)
    own = likely[np.arange(len(labels)), labels]
    return float(np.mean(likely.argmax(axis=1) == labels)), float(-np.log(own).mean())


def said(weights: Weights, data: Data) -> tuple[Floats, Any]:
    return np.maximum(softmax(logits(weights, data.features)), 1e-12), data.labels


if __name__ == "__main__":
    main()
