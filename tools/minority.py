"""Do prototypes serve small classes better than descent? Public data, seeded, classes made unequal.

python tools/minority.py [digits mixture ...] [--ratio 20] [--epsilons 0.3 1 4] [--repeats 10]
[--cache FOLDER]

Classes shrink geometrically, the largest to the smallest by the ratio; the test part stays as it
is. Each cell is mean accuracy over classes, then that of the smaller half alone. Neither searches:
one training each, with the whole total.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from arena import load, with_units
from numpy.typing import NDArray
from terminal import print_head, print_row, read_options, totals
from trainings import trained, training_for

from dpladder.config.learners import learner_of
from dpladder.learn.data import Data
from dpladder.learn.score import logits
from dpladder.privacy.arrays import Floats
from dpladder.research.contest import Arena

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


def scores(name: str, arena: Arena, epsilon: float, seed: str) -> Floats:
    """One training without a search, at the prior's kappa where there is a rate."""
    training = training_for(arena, learner_of({"name": name}), epsilon)
    return logits(trained(arena, training, seed), arena.test.features)


def judged(scores: Floats, labels: NDArray[np.int64]) -> tuple[float, float]:
    """Mean accuracy over all classes, and over the smaller half."""
    right = scores.argmax(axis=1) == labels
    each = [right[labels == label].mean() for label in range(int(labels.max()) + 1)]
    return float(np.mean(each)), float(np.mean(each[len(each) // 2 :]))


def main() -> None:
    asked = read_options(
        __doc__,
        problems=["digits", "mixture"],
        ratio=20.0,
        epsilons=[0.3, 1.0, 4.0],
        repeats=10,
        threads=2,
        cache=Path,
    )
    print_head("data", "learner", *totals(asked.epsilons))
    for problem in asked.problems:
        arena = load(problem, asked.cache, asked.threads, 0, centre="public")
        train = thinned(arena.train, asked.ratio)
        constants = replace(arena.constants, n0=len(train.labels))
        arena = with_units(replace(arena, train=train, constants=constants))
        for learner in LEARNERS:
            cells = []
            for epsilon in asked.epsilons:
                labels = arena.test.labels
                found = [
                    judged(scores(learner, arena, epsilon, f"{learner} {epsilon} {again}"), labels)
                    for again in range(asked.repeats)
                ]
                whole, small = np.mean(found, axis=0)
                cells.append(f"{whole:.3f}, {small:.3f}")
            print_row(problem, f"`{learner}`", *cells)


if __name__ == "__main__":
    main()
