"""Softmax against a sigmoid for each class, whose bias starts at -log(m - 1), at -10 (Mehta et al.)
or at zero.

python tools/links.py [mnist5k] [--epsilons 1] [--repeats 3] [--cache FOLDER]

`dp_gd` with the whole total in one training; its r is the best of three about the prior's, by the
mean over repeats. Public data, seeded.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

import numpy as np
from arena import DATA, DELTA, load

from dpladder.config.learners import Learner
from dpladder.config.sweep_sections import Search
from dpladder.learn.data import Data
from dpladder.learn.interface import Weights
from dpladder.learn.links import Link
from dpladder.learn.scorers import ClassScorer
from dpladder.methods.dp_gd.section import Descent
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.booking import Entry
from dpladder.research.contest import Arena, PublicMeter
from dpladder.search.prior import prior_of_learner
from dpladder.search.space import Space
from dpladder.search.training import training_of

AROUND = (0.5, 1.0, 2.0)  # the prior's median
# A link, and where its bias starts if not where dpladder has it.
ASKED: dict[str, tuple[Learner, float | None]] = {
    "softmax": (Descent(), None),
    "sigmoid, its bias from -log(m - 1) on": (Descent(link="sigmoid"), None),
    "sigmoid, its bias from -10 on": (Descent(link="sigmoid"), -10.0),
    "sigmoid, its bias from zero on": (Descent(link="sigmoid"), 0.0),
}


Measured = Callable[[Weights, Data], float]


def right(weights: Weights, test: Data) -> float:
    return ClassScorer().count(weights, test.features, test.labels) / len(test.labels)


def accuracy(
    arena: Arena, learner: Learner, epsilon: float, repeats: int, measured: Measured = right
) -> float:
    """Mean over repeats, at the best of three r."""
    around = AROUND if learner.searches else AROUND[:1]
    return max(_at(arena, learner, epsilon, each, repeats, measured) for each in around)


def _at(
    arena: Arena,
    learner: Learner,
    epsilon: float,
    around: float,
    repeats: int,
    measured: Measured,
) -> float:
    space, mu = Space(Search(), learner, arena.constants), gdp.mu_from_epsilon(epsilon, DELTA)
    place = around * prior_of_learner(learner.name, centred=True).median
    r = space.r(place, mu) if learner.searches else 1.0
    training = training_of(space, r, Entry(mu))
    found = []
    for repeat in range(repeats):
        meter = PublicMeter(training.declared.draws, arena, f"{epsilon} {around} {repeat}")
        weights = training.run(arena.train, meter, arena.resources)
        found.append(measured(weights, arena.test))
    return float(np.mean(found))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("problem", nargs="?", default="mnist5k", choices=DATA)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 4.0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", type=Path, help="where extracted features stay between runs")
    asked = parser.parse_args()
    arena = load(asked.problem, asked.cache, asked.threads, 0)
    print(f"| link | {' | '.join(f'{epsilon:g}' for epsilon in asked.epsilons)} |")
    for name, (learner, start) in ASKED.items():
        with nullcontext() if start is None else patch.object(Link, "bias", start):
            found = [accuracy(arena, learner, epsilon, asked.repeats) for epsilon in asked.epsilons]
        print(f"| {name} | {' | '.join(f'{one:.3f}' for one in found)} |", flush=True)


if __name__ == "__main__":
    main()
