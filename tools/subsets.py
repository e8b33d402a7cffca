"""What do fewer records cost at equal epsilon, and what do models of disjoint parts give together?
Public data, seeded.

python tools/subsets.py [mnist5k ...] [--epsilons 0.5 1 4] [--repeats 5] [--cache FOLDER]

A model of a share of the records is trained on those alone. Models of disjoint parts cost together
what the dearest of them costs (parallel composition), so each has the whole total; their weights
are averaged, which is free. No search: the prior's kappa.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from arena import load
from terminal import print_head, print_row, read_options, totals
from trainings import accuracy, trained, training_for

from dpladder.learn.data import Data
from dpladder.learn.interface import Weights
from dpladder.methods.dp_gd.section import Descent
from dpladder.research.contest import Arena

SHARES = (1.0, 0.5, 0.25, 0.1)
PARTS = (2, 5, 10)


def main() -> None:
    asked = read_options(
        __doc__, problems=["mnist5k"], epsilons=[0.5, 1.0, 4.0], repeats=5, threads=2, cache=Path
    )
    print_head("data", "trained on", *totals(asked.epsilons))
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
            print_row(problem, about, *cells)


def part_of(arena: Arena, rows: Sequence[int]) -> Arena:
    """These records alone; their number is public here, and by declaration in a run."""
    train = Data(np.asarray(arena.train.features)[rows], arena.train.labels[rows])
    return replace(arena, train=train, constants=replace(arena.constants, n0=len(train.labels)))


def on_share(arena: Arena, share: float, epsilon: float, seed: str) -> Weights:
    return trained_alone(part_of(arena, range(round(share * arena.constants.n0))), epsilon, seed)


def averaged(arena: Arena, parts: int, epsilon: float, seed: str) -> Weights:
    each = [
        trained_alone(
            part_of(arena, range(place, arena.constants.n0, parts)), epsilon, f"{seed} {place}"
        )
        for place in range(parts)
    ]
    return tuple(np.mean(layers, axis=0) for layers in zip(*each, strict=True))


def trained_alone(arena: Arena, epsilon: float, seed: str) -> Weights:
    return trained(arena, training_for(arena, Descent(), epsilon), seed)


if __name__ == "__main__":
    main()
