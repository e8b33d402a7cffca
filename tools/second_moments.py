"""Mehta et al.'s learners by their number of steps, and by two parameters at once, down to small
epsilon. Public data, seeded.

python tools/second_moments.py [mnist5k-112] [--epsilons 0.05 0.1 0.25 0.5 1 4] [--repeats 2]
[--cache FOLDER] [--figure second_moments.svg]

The whole total in one training. The first table: 1, 10 and 100 steps, each at the best of nine r,
which nobody searched for at a price, as in the paper. The others, at epsilon = 1: alpha beside
lambda of dp_ls, and the damping beside r of dp_fc.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from arena import centred, load
from terminal import plot_lines, print_head, print_row, read_options, totals
from trainings import accuracies, ask_for

from dpladder.config.learners import Learner
from dpladder.config.sweep_sections import Search
from dpladder.methods.dp_gd import Descent
from dpladder.methods.dp_ls import LeastSquares
from dpladder.report.style import canvas
from dpladder.research.arena import Arena
from dpladder.search.prior import prior_of_learner
from dpladder_papers.methods.dp_adam import Adam
from dpladder_papers.methods.dp_fc import FeatureCovariance
from dpladder_papers.methods.dp_newton import Newton

WAYS = tuple(float(way) for way in np.geomspace(1 / 27, 27, 9))  # times the prior's median
STEPS = {100: "-", 10: "--", 1: ":"}  # and their lines
SLOW_LEARNERS: dict[str, Learner] = {
    "dp_newton": Newton(steps=1),
    "dp_ls": LeastSquares(),
}  # slow beyond 1
FAST_LEARNERS: dict[str, Learner] = {
    "dp_gd": Descent(),
    "dp_adam": Adam(),
    "dp_fc": FeatureCovariance(),
}
ALPHAS = (0.01, 0.03, 0.1, 0.3, 1.0)
DAMPINGS = (0.001, 0.01, 0.1, 1.0, 10.0)


def main() -> None:
    options = read_options(
        __doc__,
        problem="mnist5k-112",
        epsilons=[0.05, 0.1, 0.25, 0.5, 1.0, 4.0],
        repeats=2,
        cache=Path,
        figure=Path,
    )
    arena, repeats = load(options.problem, options.cache, threads=1), options.repeats
    known, lines = centred(options.problem), {}
    print_head("learner", "steps", *totals(options.epsilons))
    compared = [(name, steps) for name in FAST_LEARNERS for steps in sorted(STEPS)]
    for name, steps in [*compared, *((name, 1) for name in SLOW_LEARNERS)]:
        learner = (FAST_LEARNERS | SLOW_LEARNERS)[name]
        best = [max(over_r(arena, learner, steps, e, repeats, known)) for e in options.epsilons]
        lines[f"{name}, {steps} step{'s' * (steps > 1)}"] = (options.epsilons, best, STEPS[steps])
        print_row(name, steps, *best)
    alphas = {alpha: LeastSquares(alpha=alpha) for alpha in ALPHAS}
    dampings = {damping: FeatureCovariance(damping=damping) for damping in DAMPINGS}
    for name, rows in (("dp_ls, alpha", alphas), ("dp_fc, damping", dampings)):
        print()
        print_head(name, *(f"κ = {way:.3g} m" for way in WAYS))
        for value, learner in rows.items():
            print_row(f"{value:g}", *over_r(arena, learner, 50, 1.0, repeats, known))
    if options.figure:
        with canvas(options.figure) as figure:
            plot_lines(figure.subplots(), lines, "total ε", "test accuracy")


def over_r(
    arena: Arena, learner: Learner, steps: int, epsilon: float, repeats: int, known: bool
) -> list[float]:
    """Mean test accuracy at each of the places around the prior's median; `known`: for centred
    features."""
    search = Search(eta=(1e-9, 1e9), steps=(steps, steps))
    median = prior_of_learner(learner.name, known).median
    asks = [
        ask_for(f"{steps} {epsilon} {way}", arena, learner, epsilon, way * median, search)
        for way in WAYS
    ]
    return [float(row.mean()) for row in accuracies(arena, asks, repeats)]


if __name__ == "__main__":
    main()
