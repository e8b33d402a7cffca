"""From which strength on is the data's own noised mean worth its price? For features that nothing
centres for free.

python tools/price_means.py [mnist5k-112 digits mixture bible ...] [--repeats 6] [--cache FOLDER]

One training with kappa by the prior, on features as they are, and on features less their noised
mean, which takes its part of mu^2 away from the training. Prints mean test accuracy;
plan/resolve.py holds the part and the strength that it found.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from arena import DATA, less_own_mean, stored

from dpladder.config.sweep_sections import Search
from dpladder.learn.scorers import ClassScorer
from dpladder.methods.dp_gd.section import Descent
from dpladder.research.contest import Arena, bench_of
from dpladder.search.bench import NamedAsk, answers
from dpladder.search.prior import belief, with_prior
from dpladder.search.protocol import Ask
from dpladder.search.space import Space

STRENGTHS = (60, 120, 240, 300, 480, 960, 1920, 3840)
PARTS = (0.0, 0.02, 0.05, 0.1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "problems", nargs="*", default=["mnist5k-112", "digits", "mixture"], metavar="data"
    )
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--cache", type=Path, help="where extracted features stay between runs")
    asked = parser.parse_args()
    print("| data | width | n0 μ | " + " | ".join(f"{part:.0%} of μ²" for part in PARTS) + " |")
    print("|---|---|---|" + "---|" * len(PARTS))
    for name in asked.problems:
        assert name in DATA, f"{name} is not among {', '.join(DATA)}"
        arena = stored(name, asked.cache, 2, 0)
        for strength in STRENGTHS:
            found = [accuracy(arena, strength, part, asked.repeats) for part in PARTS]
            shown = " | ".join(f"{one:.3f}" for one in found)
            print(f"| {name} | {arena.constants.dimension} | {strength} | {shown} |", flush=True)


def accuracy(arena: Arena, strength: float, part: float, repeats: int) -> float:
    """Of a training that has what the mean left over, on average over noise."""
    mu, learner = strength / arena.constants.n0, Descent()
    search = with_prior(Search(), learner, part > 0)
    right = 0
    for seed in range(repeats):
        own = less_own_mean(replace(arena, seed=seed), mu, part)
        left = mu * (1 - part) ** 0.5
        r = Space(search, learner, own.constants).r(belief(learner.name, search).median, left)
        [found], _ = answers(
            bench_of(own), [NamedAsk(f"{strength} {part}", Ask(r, left), learner, search)]
        )
        right += ClassScorer().counts([found.weights], own.test.features, own.test.labels)[0]
    return right / repeats / len(arena.test.labels)


if __name__ == "__main__":
    main()
