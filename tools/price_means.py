"""From which strength on is the data's own noised mean worth its price? For features that nothing
centres for free.

python tools/price_means.py [mnist5k-112 digits mixture bible ...] [--repeats 6] [--cache FOLDER]

One training with kappa by the prior, on features as they are, and on features less their noised
mean, which takes its part of mu^2 away from the training. Prints mean test accuracy;
plan/resolve.py holds the part and the strength that it found.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import trainings
from arena import less_own_mean, stored
from terminal import print_head, print_row, read_options

from dpladder.config.sweep_sections import Search
from dpladder.methods.dp_gd.section import Descent
from dpladder.research.contest import Arena, bench_of
from dpladder.search.bench import NamedAsk, answers
from dpladder.search.prior import belief, with_prior
from dpladder.search.protocol import Ask
from dpladder.search.space import Space

STRENGTHS = (60, 120, 240, 300, 480, 960, 1920, 3840)
PARTS = (0.0, 0.02, 0.05, 0.1)


def main() -> None:
    asked = read_options(
        __doc__, problems=["mnist5k-112", "digits", "mixture"], repeats=6, cache=Path
    )
    print_head("data", "width", "n0 μ", *(f"{part:.0%} of μ²" for part in PARTS))
    for name in asked.problems:
        arena = stored(name, asked.cache, 2, 0)
        for strength in STRENGTHS:
            found = [accuracy(arena, strength, part, asked.repeats) for part in PARTS]
            print_row(name, arena.constants.dimension, strength, *found)


def accuracy(arena: Arena, strength: float, part: float, repeats: int) -> float:
    """Of a training that has what the mean left over, on average over noise."""
    mu, learner = strength / arena.constants.n0, Descent()
    search = with_prior(Search(), learner, part > 0)
    found = []
    for seed in range(repeats):
        own = less_own_mean(replace(arena, seed=seed), mu, part)
        left = mu * (1 - part) ** 0.5
        r = Space(search, learner, own.constants).r(belief(learner.name, search).median, left)
        [answer], _ = answers(
            bench_of(own), [NamedAsk(f"{strength} {part}", Ask(r, left), learner, search)]
        )
        found.append(trainings.accuracy(own, answer.weights))
    return float(np.mean(found))


if __name__ == "__main__":
    main()
