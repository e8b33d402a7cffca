"""Softmax against a sigmoid for each class, whose bias starts at -log(m - 1), at -10 (Mehta et al.)
or at zero.

python tools/links.py [mnist5k] [--epsilons 1] [--repeats 3] [--cache FOLDER]

`dp_gd` with the whole total in one training; its r is the best of three about the prior's, by the
mean over repeats. Public data, seeded.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

import numpy as np
import trainings
from arena import load
from terminal import print_head, print_row, read_options, totals

from dpladder.config.learners import Learner
from dpladder.learn.interface import Weights
from dpladder.learn.links import Link
from dpladder.methods.dp_gd.section import Descent
from dpladder.research.contest import Arena
from dpladder.search.prior import prior_of_learner

AROUND = (0.5, 1.0, 2.0)  # the prior's median
# A link, and where its bias starts if not where dpladder has it.
COMPARED: dict[str, tuple[Learner, float | None]] = {
    "softmax": (Descent(), None),
    "sigmoid, its bias from -log(m - 1) on": (Descent(link="sigmoid"), None),
    "sigmoid, its bias from -10 on": (Descent(link="sigmoid"), -10.0),
    "sigmoid, its bias from zero on": (Descent(link="sigmoid"), 0.0),
}

Measure = Callable[[Arena, Weights], float]


def best_accuracy(
    arena: Arena,
    learner: Learner,
    epsilon: float,
    repeats: int,
    measure: Measure = trainings.accuracy,
) -> float:
    """Mean over repeats, at the best of three r."""
    found = []
    for around in AROUND if learner.searches else AROUND[:1]:
        kappa = around * prior_of_learner(learner.name, centred=True).median
        training = trainings.training_for(arena, learner, epsilon, kappa)
        names = [f"{epsilon} {around} {repeat}" for repeat in range(repeats)]
        found.append(
            np.mean([measure(arena, trainings.trained(arena, training, name)) for name in names])
        )
    return float(max(found))


def main() -> None:
    options = read_options(
        __doc__, problem="mnist5k", epsilons=[0.5, 1.0, 4.0], repeats=3, threads=2, cache=Path
    )
    arena = load(options.problem, options.cache, options.threads, 0)
    print_head("link", *totals(options.epsilons))
    for name, (learner, start) in COMPARED.items():
        with nullcontext() if start is None else patch.object(Link, "bias", start):
            print_row(
                name,
                *(best_accuracy(arena, learner, one, options.repeats) for one in options.epsilons),
            )


if __name__ == "__main__":
    main()
