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
import trainings
from arena import DELTA, LAST_OUTPUT, centred, less_own_mean, stored
from terminal import print_head, print_row, read_options, totals

from dpladder.config.sweep_sections import Search
from dpladder.data.centre import Map, network_mean
from dpladder.methods.dp_gd.section import Descent
from dpladder.plan.resolve import MEAN, PAYS, PAYS_AGAIN
from dpladder.privacy.accounting import gdp
from dpladder.research.contest import Arena, bench_of
from dpladder.research.without_noise import OPEN, best
from dpladder.search.bench import NamedAsk, answers
from dpladder.search.prior import belief, with_prior
from dpladder.search.protocol import Ask
from dpladder.search.space import Space

PROBLEMS = ("mnist5k", "digits", "clothes", "objects", "bible")
TOTALS = (0.1, 0.3, 1.0, 2.0, 4.0, 8.0)
LEAST = 0.003  # what is lost below that is chance


@dataclass(frozen=True)
class Row:
    """Accuracies of one depth, by total."""

    data: str
    n0: int
    width: int
    found: Sequence[float]


def main() -> None:
    asked = read_options(
        __doc__,
        problems=[*PROBLEMS],
        depths=["last", "auto"],
        totals=TOTALS,
        repeats=5,
        fit=False,
        threads=2,
        cache=Path,
    )
    rows: list[Row] = []
    print_head("data", "depths", "width", *totals(asked.totals))
    for name in asked.problems:
        for which in asked.depths:
            last = "digits-1280" if name == "digits" else name
            data = last if which == "last" else f"{name}-{which}"
            arena = stored(data, asked.cache, asked.threads, 0)
            free = which == "last" and centred(data, "auto")
            found = [accuracy(arena, total, free, asked.repeats) for total in asked.totals]
            print_row(name, which, arena.constants.dimension, *found)
            rows.append(Row(name, arena.constants.n0, arena.constants.dimension, found))
    if asked.fit:
        print_fit(rows, asked.totals[:-1])


def print_fit(rows: Sequence[Row], private: Sequence[float]) -> None:
    """A line through the logarithms of what privacy costs, over those of n0 mu, of the width and of
    the error without privacy; and what a depth chosen by that error loses to the best."""
    cells = [
        (row.found[-1] - found, row.n0 * gdp.mu_from_epsilon(total, DELTA), row)
        for row in rows
        for total, found in zip(private, row.found, strict=False)
    ]
    lost = np.log([max(lost, LEAST) for lost, _, _ in cells])
    logs = np.log([(strength, row.width, 1 - row.found[-1]) for _, strength, row in cells])
    for words, columns in (("n₀μ", [0]), ("n₀μ, width, error", [0, 1, 2])):
        known = np.column_stack([np.ones(len(cells)), logs[:, columns]])
        line, *_ = np.linalg.lstsq(known, lost, rcond=None)
        explained = 1 - np.var(lost - known @ line) / np.var(lost)
        powers = line[1:].round(2)
        print(f"\nlost, by {words}: exp({line[0]:.2f}), powers {powers}, R² {explained:.2f}")
    for place, total in enumerate(private):
        of_sets = [[row for row in rows if row.data == name] for name in {row.data for row in rows}]
        best = [max(row.found[place] for row in own) for own in of_sets]
        chosen = [max(own, key=lambda row: row.found[-1]).found[place] for own in of_sets]
        mean = [float(np.mean([row.found[place] for row in own])) for own in of_sets]
        behind = np.subtract(best, chosen)
        print(
            f"ε = {total:g}: the depth that is best without privacy is {behind.mean():.3f} behind "
            f"the best, {behind.max():.3f} at most; any depth {np.subtract(best, mean).mean():.3f}"
        )


def accuracy(arena: Arena, total: float, free: bool, repeats: int) -> float:
    """Mean test accuracy over noise, centred as the plan has it. `free`: whether the network's own
    mean is there for nothing."""
    if total == inf:
        return _trained(arena, OPEN, free, not free)
    mu = gdp.mu_from_epsilon(total, DELTA)
    bought = arena.constants.n0 * mu >= (PAYS_AGAIN if free else PAYS)
    found = [_trained(replace(arena, seed=seed), mu, free, bought) for seed in range(repeats)]
    return float(np.mean(found))


def _trained(arena: Arena, mu: float, free: bool, bought: bool) -> float:
    part = MEAN if bought else 0.0
    network = free and not bought
    arena = _less_network_mean(arena) if network else less_own_mean(arena, mu, part)
    learner, left = Descent(), mu * (1 - part) ** 0.5
    search = with_prior(Search(), learner, free or bought)
    space = Space(search, learner, arena.constants)
    if mu == OPEN:
        r, search = best(arena, space)
    else:
        r = space.r(belief(learner.name, search).median, left)
    [found], _ = answers(bench_of(arena), [NamedAsk("one", Ask(r, left), learner, search)])
    return trainings.accuracy(arena, found.weights)


def _less_network_mean(arena: Arena) -> Arena:
    seen = Map(network_mean(LAST_OUTPUT), None, 32.0, LAST_OUTPUT.constant)
    width = seen.width(arena.constants.dimension)
    train, test = (
        replace(data, features=seen(data.features)) for data in (arena.train, arena.test)
    )
    constants = replace(arena.constants, dimension=width, length=32.0)
    return replace(arena, train=train, test=test, constants=constants)


if __name__ == "__main__":
    main()
