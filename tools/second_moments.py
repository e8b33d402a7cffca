"""Mehta et al.'s learners by their number of steps, and by two parameters at once, down to small
epsilon. Public data, seeded.

python tools/second_moments.py [mnist5k-112] [--epsilons 0.05 0.1 0.25 0.5 1 4] [--repeats 2]
[--cache FOLDER] [--figure second_moments.svg]

The whole total in one training. The first table: 1, 10 and 100 steps, each at the best of nine r,
which nobody searched for at a price, as in the paper. The others, at epsilon = 1: alpha beside
lambda of dp_ls, and the damping beside r of dp_fc.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from arena import DELTA, centred, load
from terminal import print_head, print_row, read_options, totals
from trainings import accuracies

from dpladder.config.learners import Learner
from dpladder.config.sweep_sections import Search
from dpladder.methods.dp_adam.section import Adam
from dpladder.methods.dp_fc.section import FeatureCovariance
from dpladder.methods.dp_gd.section import Descent
from dpladder.methods.dp_ls.section import LeastSquares
from dpladder.methods.dp_newton.section import Newton
from dpladder.privacy.accounting import gdp
from dpladder.report.style import CYCLE, canvas, log_axis
from dpladder.research.contest import Arena, bench_of
from dpladder.search.bench import NamedAsk, answers
from dpladder.search.prior import prior_of_learner
from dpladder.search.protocol import Ask
from dpladder.search.space import Space

STEPS = (1, 10, 100)
WAYS = tuple(float(way) for way in np.geomspace(1 / 27, 27, 9))  # times the prior's median
BY_STEPS: dict[str, Learner] = {
    "dp_gd": Descent(),
    "dp_adam": Adam(),
    "dp_fc": FeatureCovariance(),
}
ALPHAS = (0.01, 0.03, 0.1, 0.3, 1.0)
DAMPINGS = (0.001, 0.01, 0.1, 1.0, 10.0)


def main() -> None:
    asked = read_options(
        __doc__,
        problem="mnist5k-112",
        epsilons=[0.05, 0.1, 0.25, 0.5, 1.0, 4.0],
        repeats=2,
        threads=1,
        cache=Path,
        figure=Path,
    )
    arena, known = (
        load(asked.problem, asked.cache, asked.threads, 0),
        centred(asked.problem, "auto"),
    )
    curves = {}
    print_head("learner", "steps", *totals(asked.epsilons))
    for name, learner, steps in compared():
        found = [
            max(over_r(arena, learner, steps, one, asked.repeats, known)) for one in asked.epsilons
        ]
        curves[f"{name}, {steps} step{'s' * (steps > 1)}"] = found
        print_row(name, steps, *found)
    for name, rows in (
        ("dp_ls, alpha", {one: LeastSquares(alpha=one) for one in ALPHAS}),
        ("dp_fc, damping", {one: FeatureCovariance(damping=one) for one in DAMPINGS}),
    ):
        print()
        print_head(name, *(f"κ = {way:.3g} m" for way in WAYS))
        for value, learner in rows.items():
            found = over_r(arena, learner, 50, 1.0, asked.repeats, known)
            print_row(f"{value:g}", *found)
    if asked.figure:
        draw(asked.epsilons, curves, asked.figure)


def compared() -> list[tuple[str, Learner, int]]:
    by_steps = [(name, learner, steps) for name, learner in BY_STEPS.items() for steps in STEPS]
    newton = [("dp_newton", Newton(steps=1), 1)]  # more of its steps take minutes
    return [*by_steps, *newton, ("dp_ls", LeastSquares(), 1)]


def over_r(
    arena: Arena, learner: Learner, steps: int, epsilon: float, repeats: int, known: bool
) -> list[float]:
    """Mean test accuracy at each of the places around the prior's median; `known`: for centred
    features."""
    search, mu = Search(eta=(1e-9, 1e9), steps=(steps, steps)), gdp.mu_from_epsilon(epsilon, DELTA)
    space, median = (
        Space(search, learner, arena.constants),
        prior_of_learner(learner.name, known).median,
    )
    asks = [
        NamedAsk(f"{steps} {epsilon} {way} {again}", Ask(r, mu), learner, search)
        for way in WAYS
        for r in [space.r(way * median, mu)]
        for again in range(repeats)
    ]
    heads = [one.weights for one in answers(bench_of(arena), asks)[0]]
    return [float(row.mean()) for row in accuracies(arena, heads, repeats)]


def draw(epsilons: Sequence[float], curves: dict[str, list[float]], path: Path) -> None:
    lines = dict(zip(("100 steps", "10 steps", "1 step"), ("-", "--", ":"), strict=True))
    names = dict.fromkeys(told.split(",")[0] for told in curves)
    colours = dict(zip(names, CYCLE, strict=False))
    with canvas(path) as figure:
        axes = figure.subplots()
        for told, found in curves.items():
            name, _, steps = told.partition(", ")
            axes.plot(epsilons, found, lines[steps], color=colours[name], label=told)
        log_axis(axes, "x")
        axes.set(xlabel="total ε", ylabel="test accuracy")
        axes.legend(fontsize=8)


if __name__ == "__main__":
    main()
