"""DP-LS at ever larger totals against least squares without privacy. Public data, seeded.

python tools/squares.py [mnist5k-112 ...] [--epsilons 1 4 16 64] [--repeats 5] [--cache FOLDER]

The whole total in one training at the prior's kappa, beside dp_gd; inf is the same learner as
`final.without_noise` trains it: a noise of a millionth, at the best r by a fifth of the training
part. "least squares" is numpy's, of the classes' indicators, with nothing held back.
"""

from __future__ import annotations

import argparse
from math import inf
from pathlib import Path

import numpy as np
from arena import DATA, centred, load
from shift import heads

from dpladder.config.learners import Learner
from dpladder.learn.scorers import ClassScorer
from dpladder.methods.dp_gd.section import Descent
from dpladder.methods.dp_ls.section import LeastSquares
from dpladder.research.contest import Arena

COMPARED: dict[str, Learner] = {
    "dp_ls, alpha 0.1": LeastSquares(alpha=0.1),
    "dp_ls, alpha 1": LeastSquares(),
    "dp_gd": Descent(),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("problems", nargs="*", default=["mnist5k-112"], choices=DATA)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 4.0, 16.0, 64.0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cache", type=Path, help="where extracted features stay between runs")
    asked = parser.parse_args()
    totals = [*asked.epsilons, inf]
    print(f"| data | learner | {' | '.join(f'ε = {epsilon:g}' for epsilon in totals)} |")
    print(f"|---|---|{'---|' * len(totals)}", flush=True)
    for problem in asked.problems:
        arena, known = load(problem, asked.cache, asked.threads, 0), centred(problem, "auto")
        for about, learner in COMPARED.items():
            cells = [cell(arena, learner, epsilon, known, asked.repeats) for epsilon in totals]
            print(f"| {problem} | {about} | {' | '.join(cells)} |", flush=True)
        print(
            f"| {problem} | least squares |{' |' * len(asked.epsilons)} {plain(arena):.3f} |",
            flush=True,
        )


def cell(arena: Arena, learner: Learner, epsilon: float, known: bool, repeats: int) -> str:
    found = heads(arena, learner, epsilon, 1 if epsilon == inf else repeats, known)
    counts = ClassScorer().counts(found, arena.test.features, arena.test.labels)
    return f"{np.mean(counts) / len(arena.test.labels):.3f}"


def plain(arena: Arena) -> float:
    """Each class's indicator, by all records."""
    x, labels = np.asarray(arena.train.features, np.float64), arena.train.labels
    weights = np.linalg.lstsq(x, np.eye(arena.constants.classes)[labels], rcond=None)[0]
    return float(np.mean((arena.test.features @ weights).argmax(1) == arena.test.labels))


if __name__ == "__main__":
    main()
