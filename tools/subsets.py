"""What do fewer records cost at equal epsilon, and what do models of disjoint parts give together?
Public data, seeded.

python tools/subsets.py [mnist5k ...] [--epsilons 0.5 1 4] [--repeats 5] [--cache FOLDER]

A model of a share of the records is trained on those alone. Models of disjoint parts cost together
what the dearest of them costs (parallel composition), so each has the whole total; their weights
are averaged, which is free. No search: the prior's kappa.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from arena import DATA, DELTA, load

from dpladder.config.sweep_sections import Search
from dpladder.learn.data import Data
from dpladder.learn.interface import Weights
from dpladder.learn.scorers import ClassScorer
from dpladder.methods.dp_gd.section import Descent
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.booking import Entry
from dpladder.research.contest import Arena, PublicMeter
from dpladder.search.prior import prior_of_learner
from dpladder.search.space import Space
from dpladder.search.training import training_of

SHARES = (1.0, 0.5, 0.25, 0.1)
PARTS = (2, 5, 10)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("problems", nargs="*", default=["mnist5k"], choices=DATA)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 4.0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", type=Path, help="where extracted features stay between runs")
    asked = parser.parse_args()
    print(f"| data | trained on | {' | '.join(f'ε = {epsilon:g}' for epsilon in asked.epsilons)} |")
    print(f"|---|---|{'---|' * len(asked.epsilons)}", flush=True)
    for problem in asked.problems:
        arena = load(problem, asked.cache, asked.threads, 0, centre="public")
        ways: dict[str, Callable[[float, str], Weights]] = {
            **{f"{share:.0%} of the records": partial(on_share, arena, share) for share in SHARES},
            **{
                f"{parts} disjoint parts, weights averaged": partial(averaged, arena, parts)
                for parts in PARTS
            },
        }
        for about, way in ways.items():
            cells = [
                np.mean(
                    [
                        accuracy(arena, way(epsilon, f"{about} {epsilon} {again}"))
                        for again in range(asked.repeats)
                    ]
                )
                for epsilon in asked.epsilons
            ]
            print(
                f"| {problem} | {about} | {' | '.join(f'{cell:.3f}' for cell in cells)} |",
                flush=True,
            )


def part_of(arena: Arena, rows: Sequence[int]) -> Arena:
    """These records alone; their number is public here, and by declaration in a run."""
    train = Data(np.asarray(arena.train.features)[rows], arena.train.labels[rows])
    return replace(arena, train=train, constants=replace(arena.constants, n0=len(train.labels)))


def on_share(arena: Arena, share: float, epsilon: float, seed: str) -> Weights:
    return trained(part_of(arena, range(round(share * arena.constants.n0))), epsilon, seed)


def averaged(arena: Arena, parts: int, epsilon: float, seed: str) -> Weights:
    each = [
        trained(part_of(arena, range(place, arena.constants.n0, parts)), epsilon, f"{seed} {place}")
        for place in range(parts)
    ]
    return tuple(np.mean(layers, axis=0) for layers in zip(*each, strict=True))


def trained(arena: Arena, epsilon: float, seed: str) -> Weights:
    mu, space = gdp.mu_from_epsilon(epsilon, DELTA), Space(Search(), Descent(), arena.constants)
    training = training_of(
        space, space.r(prior_of_learner("dp_gd", centred=True).median, mu), Entry(mu)
    )
    meter = PublicMeter(training.declared.draws, arena, seed)
    found: Weights = training.run(arena.train, meter, arena.resources)
    return found


def accuracy(arena: Arena, weights: Weights) -> float:
    return ClassScorer().count(weights, arena.test.features, arena.test.labels) / len(
        arena.test.labels
    )


if __name__ == "__main__":
    main()
