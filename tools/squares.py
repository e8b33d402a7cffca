"""DP-LS at ever larger totals against least squares without privacy. Public data, seeded.

python tools/squares.py [mnist5k-112 ...] [--epsilons 1 4 16 64] [--repeats 5] [--cache FOLDER]

The whole total in one training at the prior's kappa, beside dp_gd; inf is the same learner as
`final.without_noise` trains it: a noise of a millionth, at the best r by a fifth of the training
part. "least squares" is numpy's, of the classes' indicators, with nothing held back.
"""

from __future__ import annotations

from math import inf
from pathlib import Path

import numpy as np
from arena import centred, load
from shift import heads
from terminal import print_head, print_row, read_options, totals
from trainings import accuracies

from dpladder.config.learners import Learner
from dpladder.methods.dp_gd.section import Descent
from dpladder.methods.dp_ls.section import LeastSquares
from dpladder.research.contest import Arena

COMPARED: dict[str, Learner] = {
    "dp_ls, alpha 0.1": LeastSquares(alpha=0.1),
    "dp_ls, alpha 1": LeastSquares(),
    "dp_gd": Descent(),
}


def main() -> None:
    asked = read_options(
        __doc__,
        problems=["mnist5k-112"],
        epsilons=[1.0, 4.0, 16.0, 64.0],
        repeats=5,
        threads=1,
        cache=Path,
    )
    epsilons = [*asked.epsilons, inf]
    print_head("data", "learner", *totals(epsilons))
    for problem in asked.problems:
        arena, known = load(problem, asked.cache, asked.threads, 0), centred(problem, "auto")
        for about, learner in COMPARED.items():
            cells = [
                accuracies(arena, heads(arena, learner, epsilon, many, known), many).mean()
                for epsilon in epsilons
                for many in [1 if epsilon == inf else asked.repeats]
            ]
            print_row(problem, about, *map(float, cells))
        print_row(problem, "least squares", *[""] * len(asked.epsilons), plain(arena))


def plain(arena: Arena) -> float:
    """Each class's indicator, by all records."""
    x, labels = np.asarray(arena.train.features, np.float64), arena.train.labels
    weights = np.linalg.lstsq(x, np.eye(arena.constants.classes)[labels], rcond=None)[0]
    return float(np.mean((arena.test.features @ weights).argmax(1) == arena.test.labels))


if __name__ == "__main__":
    main()
