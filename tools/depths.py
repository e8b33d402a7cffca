"""Which depths of a network are worth most? The default (`features.layers: auto`) beside the last
output alone, or single depths by name, on public data.

python tools/depths.py [mnist5k digits clothes objects bible] [--repeats 5] [--cache FOLDER]
[--totals 0.1 0.3 1 2 4 8] [--depths last auto] [--fit]

One training with the whole total and kappa by the prior, everything charged: features are centred
as the plan would have it, by the network's own mean, by a noised one, or not at all. Prints mean
test accuracy. The total `inf` is the same learner without noise, at the best r. `--fit` asks what
says how much a depth loses to privacy, where the last total stands for no privacy. Objects are the
first 600 of each class of CIFAR-10's training images, as JPEG in a folder for each class
(data/cifar10/train); cifar10 is all of them, and sst2 lies in data/glue (examples/glue.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

import numpy as np
from arena import DELTA, LAST, LAST_OUTPUT, centred, less_own_mean, load_raw, mapped
from terminal import print_head, print_row, read_options, totals
from trainings import accuracy, ask_for, heads

from dpladder.data.centre import Map, network_mean
from dpladder.methods.dp_gd import Descent
from dpladder.plan.resolve import MEAN, PAYS, PAYS_AGAIN
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.booking import Entry
from dpladder.research.arena import Arena
from dpladder.research.without_noise import OPEN

SMALLEST_LOSS = 0.003  # what is lost below that is chance


@dataclass(frozen=True)
class Depth:
    """Accuracies of one depth, by total."""

    data: str
    n0: int
    width: int
    by_total: Sequence[float]


def main() -> None:
    options = read_options(
        __doc__,
        problems=[one.replace("digits-1280", "digits") for one in LAST],
        depths=["last", "auto"],
        totals=[0.1, 0.3, 1.0, 2.0, 4.0, 8.0],
        repeats=5,
        fit=False,
        cache=Path,
    )
    depths: list[Depth] = []
    print_head("data", "depths", "width", *totals(options.totals))
    for name in options.problems:
        for which in options.depths:
            last = "digits-1280" if name == "digits" else name
            data = last if which == "last" else f"{name}-{which}"
            arena = load_raw(data, options.cache)
            free, width = which == "last" and centred(data), arena.constants.dimension
            cells = [mean_accuracy(arena, total, free, options.repeats) for total in options.totals]
            print_row(name, which, width, *cells)
            depths.append(Depth(name, arena.constants.n0, width, cells))
    if options.fit:
        print_fit(depths, options.totals[:-1])


def mean_accuracy(arena: Arena, total: float, free: bool, repeats: int) -> float:
    """Over noise, centred as the plan has it. `free`: whether the network's own mean is there for
    nothing."""
    if total == inf:
        return trained(arena, OPEN, free, not free)
    mu = gdp.mu_from_epsilon(total, DELTA)
    bought = arena.constants.n0 * mu >= (PAYS_AGAIN if free else PAYS)
    each = [trained(replace(arena, seed=seed), mu, free, bought) for seed in range(repeats)]
    return float(np.mean(each))


def trained(arena: Arena, mu: float, free: bool, bought: bool) -> float:
    part = MEAN if bought else 0.0
    if free and not bought:
        seen = Map(network_mean(LAST_OUTPUT), None, 32.0, LAST_OUTPUT.constant)
        arena = mapped(arena, seen)
    else:
        arena = less_own_mean(arena, mu, part)
    left = Entry(mu if mu == OPEN else mu * (1 - part) ** 0.5)
    [head] = heads(arena, [ask_for("one", arena, Descent(), left, centred=free or bought)])
    return accuracy(arena, head)


def print_fit(depths: Sequence[Depth], private: Sequence[float]) -> None:
    """A line through the logarithms of what privacy costs, over those of n0 mu, of the width and of
    the error without privacy; and what a depth chosen by that error loses to the best."""
    cells = [
        (depth.by_total[-1] - test, depth.n0 * gdp.mu_from_epsilon(total, DELTA), depth)
        for depth in depths
        for total, test in zip(private, depth.by_total, strict=False)
    ]
    lost = np.log([max(less, SMALLEST_LOSS) for less, _, _ in cells])
    logs = np.log([(strength, depth.width, 1 - depth.by_total[-1]) for _, strength, depth in cells])
    for words, columns in (("n₀μ", [0]), ("n₀μ, width, error", [0, 1, 2])):
        known = np.column_stack([np.ones(len(cells)), logs[:, columns]])
        line, *_ = np.linalg.lstsq(known, lost, rcond=None)
        explained = 1 - np.var(lost - known @ line) / np.var(lost)
        powers = line[1:].round(2)
        print(f"\nlost, by {words}: exp({line[0]:.2f}), powers {powers}, R² {explained:.2f}")
    sets = [[d for d in depths if d.data == name] for name in {d.data for d in depths}]
    for place, total in enumerate(private):
        tests = [[depth.by_total[place] for depth in each] for each in sets]
        chosen = [max(each, key=lambda d: d.by_total[-1]).by_total[place] for each in sets]
        best = np.array([max(each) for each in tests])
        print(
            f"ε = {total:g}: the depth that is best without privacy is "
            f"{(best - chosen).mean():.3f} behind the best, {(best - chosen).max():.3f} at most; "
            f"any depth {(best - [np.mean(each) for each in tests]).mean():.3f}"
        )


if __name__ == "__main__":
    main()
