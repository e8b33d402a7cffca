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
from arena import less_own_mean, load_raw
from terminal import print_head, print_row, read_options
from trainings import ask_for, heads, shares_right

from dpladder.methods.dp_gd import Descent
from dpladder.privacy.accounting.booking import Entry
from dpladder.research.arena import Arena

STRENGTHS = (60, 120, 240, 300, 480, 960, 1920, 3840)
PARTS = (0.0, 0.02, 0.05, 0.1)


def main() -> None:
    options = read_options(
        __doc__, problems=["mnist5k-112", "digits", "mixture"], repeats=6, cache=Path
    )
    print_head("data", "width", "n0 μ", *(f"{part:.0%} of μ²" for part in PARTS))
    for name in options.problems:
        arena = load_raw(name, options.cache)
        for strength in STRENGTHS:
            cells = [mean_accuracy(arena, strength, part, options.repeats) for part in PARTS]
            print_row(name, arena.constants.dimension, strength, *cells)


def mean_accuracy(arena: Arena, strength: float, part: float, repeats: int) -> float:
    """Of a training that has what the mean left over, on average over noise."""
    mu, each = strength / arena.constants.n0, []
    left = Entry(mu * (1 - part) ** 0.5)
    for seed in range(repeats):
        seen = less_own_mean(replace(arena, seed=seed), mu, part)
        ask = ask_for(f"{strength} {part}", seen, Descent(), left, centred=part > 0)
        each.append(float(shares_right(seen, heads(seen, [ask]))[0]))
    return float(np.mean(each))


if __name__ == "__main__":
    main()
