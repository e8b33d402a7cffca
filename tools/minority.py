"""Do prototypes serve small classes better than descent? Public data, seeded, classes made unequal.

python tools/minority.py [digits mixture ...] [--ratio 20] [--epsilons 0.3 1 4] [--repeats 10]
[--cache FOLDER]

Classes shrink geometrically, the largest to the smallest by the ratio; the test part stays as it
is. Each cell is mean accuracy over classes, then that of the smaller half alone. Neither searches:
one training each, with the whole total.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from arena import DATA, DELTA, load
from batch_size import with_units
from numpy.typing import NDArray

from dpladder.config.learners import learner_of
from dpladder.config.sweep_sections import Search
from dpladder.learn.data import Data
from dpladder.learn.score import logits
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.booking import Entry
from dpladder.privacy.arrays import Floats
from dpladder.research.contest import Arena, PublicMeter
from dpladder.search.prior import prior_of_learner
from dpladder.search.space import Space
from dpladder.search.training import training_of

LEARNERS = ("dp_gd", "dp_prototypes")


def thinned(data: Data, ratio: float) -> Data:
    """Class c keeps ratio^(-c / (C - 1)) of the records that the first one has."""
    counts = np.bincount(data.labels)
    keep = counts.min() * ratio ** (-np.arange(len(counts)) / (len(counts) - 1))
    rows = np.concatenate(
        [np.flatnonzero(data.labels == label)[: round(kept)] for label, kept in enumerate(keep)]
    )
    rows.sort()
    return replace(
        data, features=np.asarray(data.features)[rows], labels=data.labels[rows], units=None
    )


def scores(name: str, arena: Arena, mu: float, seed: str) -> Floats:
    """One training without a search, at the prior's kappa where there is a rate."""
    learner = learner_of({"name": name})
    space = Space(Search(), learner, arena.constants)
    r = (
        None
        if learner.searches is None
        else space.r(prior_of_learner(name, centred=True).median, mu)
    )
    training = training_of(space, r, Entry(mu))
    weights = training.run(
        arena.train, PublicMeter(training.declared.draws, arena, seed), arena.resources
    )
    return logits(weights, arena.test.features)


def judged(scores: Floats, labels: NDArray[np.int64]) -> tuple[float, float]:
    """Mean accuracy over all classes, and over the smaller half."""
    right = scores.argmax(axis=1) == labels
    each = [right[labels == label].mean() for label in range(int(labels.max()) + 1)]
    return float(np.mean(each)), float(np.mean(each[len(each) // 2 :]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("problems", nargs="*", default=["digits", "mixture"], choices=DATA)
    parser.add_argument("--ratio", type=float, default=20.0)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0, 4.0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", type=Path, help="where extracted features stay between runs")
    asked = parser.parse_args()
    print(f"| data | learner | {' | '.join(f'ε = {epsilon:g}' for epsilon in asked.epsilons)} |")
    print(f"|---|---|{'---|' * len(asked.epsilons)}", flush=True)
    for problem in asked.problems:
        arena = load(problem, asked.cache, asked.threads, 0, centre="public")
        train = thinned(arena.train, asked.ratio)
        constants = replace(arena.constants, n0=len(train.labels))
        arena = with_units(replace(arena, train=train, constants=constants))
        for learner in LEARNERS:
            cells = []
            for epsilon in asked.epsilons:
                mu, labels = gdp.mu_from_epsilon(epsilon, DELTA), arena.test.labels
                found = [
                    judged(scores(learner, arena, mu, f"{learner} {epsilon} {again}"), labels)
                    for again in range(asked.repeats)
                ]
                whole, small = np.mean(found, axis=0)
                cells.append(f"{whole:.3f}, {small:.3f}")
            print(f"| {problem} | `{learner}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
