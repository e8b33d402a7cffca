"""The linear scaling rule at CPU size: r against epsilon with its line, accuracy over learning
rates and steps, and accuracy over epsilon. Public data, seeded.

python tools/scaling.py [digits] [--epsilons 0.1 0.2 0.5 1 2 4 8] [--repeats 5] [--cache FOLDER]
[--figure scaling.svg]

Every training has the whole total. Good are those r whose mean is within a point of the best one's.
The line is fitted to the best r of the three smallest totals, as Panda et al. fit theirs to those
of cheap trials; here they are known in hindsight, and cost nothing. "line": the r that it gives.
"prior": the r that dpladder takes without a search.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from arena import DELTA, centred, load
from terminal import plot_lines, print_head, print_row, read_options
from trainings import accuracies, ask_for

from dpladder.config.sweep_sections import Search
from dpladder.methods.dp_gd import Descent
from dpladder.privacy.accounting import gdp
from dpladder.privacy.arrays import Floats
from dpladder.report.style import GREY, canvas
from dpladder.research.arena import Arena
from dpladder.search.bench import NamedAsk
from dpladder.search.protocol import Ask

R = tuple(float(r) for r in np.geomspace(0.1, 500.0, 15))
WIDE = Search(unit="r", eta=(0.001, 5.0), steps=(5, 100), decompose="balanced")
ETAS = tuple(float(eta) for eta in np.geomspace(0.01, 5.0, 8))
STEPS = (5, 10, 20, 50, 100)
CLOSE = 0.01  # accuracy
CHEAP = 3  # totals that the line is fitted to
AT = 1.0  # the total of the heatmap


def main() -> None:
    options = read_options(
        __doc__,
        problem="digits",
        epsilons=[0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0],
        repeats=5,
        cache=Path,
        figure=Path,
    )
    arena, repeats = load(options.problem, options.cache, threads=1), options.repeats
    epsilons: Sequence[float] = options.epsilons
    known, in_hindsight, by_line, by_prior, good = centred(options.problem), [], [], [], []
    grids = [mean_accuracies(arena, [ask_at(e, r, WIDE) for r in R], repeats) for e in epsilons]
    best = [R[int(np.argmax(grid))] for grid in grids]
    slope, start = np.polyfit(epsilons[:CHEAP], best[:CHEAP], 1)
    print_head("ε", "best r", "good r", "its accuracy", "r by the line", "accuracy", "by the prior")
    for epsilon, grid, best_r in zip(epsilons, grids, best, strict=True):
        r = float(np.clip(start + slope * epsilon, R[0], R[-1]))
        prior = ask_for("", arena, Descent(), epsilon, centred=known)
        [line] = mean_accuracies(arena, [ask_at(epsilon, r, WIDE)], repeats)
        [free] = mean_accuracies(arena, [ask_at(epsilon, prior.ask.r, Search())], repeats)
        near = np.flatnonzero(grid >= grid.max() - CLOSE)
        low, high = R[near[0]], R[near[-1]]
        places = f"{best_r:.3g}", f"{low:.2g} to {high:.2g}", grid.max(), f"{r:.3g}"
        print_row(f"{epsilon:g}", *places, float(line), float(free))
        in_hindsight.append(grid.max())
        by_line.append(line)
        by_prior.append(free)
        good.append((low, high))
    if not options.figure:
        return
    fine = np.geomspace(epsilons[0], epsilons[-1], 50)
    with canvas(options.figure, height=3.4, width=11.0) as figure:
        scale, both, over = figure.subplots(1, 3)
        scale.fill_between(
            epsilons, *zip(*good, strict=True), color=GREY, alpha=0.3, label="good r"
        )
        fitted = np.clip(start + slope * fine, R[0], R[-1])
        scaled = {
            "best r": (epsilons, best, "o"),
            f"line by the first {CHEAP}": (fine, fitted, "-"),
        }
        plot_lines(scale, scaled, "total ε", "total step size r = η·T", "yx")
        heat = both.imshow(over_both(arena, repeats), origin="lower", aspect="auto", cmap="viridis")
        both.set_xticks(range(len(ETAS)), [f"{eta:.2g}" for eta in ETAS], fontsize=7)
        both.set_yticks(range(len(STEPS)), [f"{steps}" for steps in STEPS])
        both.set(xlabel="η", ylabel="T", title=f"test accuracy at ε = {AT:g}")
        figure.colorbar(heat, ax=both)
        by_total = {
            "best r, in hindsight": (epsilons, in_hindsight, "o-"),
            "line": (epsilons, by_line, "-"),
            "prior": (epsilons, by_prior, "-"),
        }
        plot_lines(over, by_total, "total ε", "test accuracy")


def ask_at(epsilon: float, r: float, search: Search) -> NamedAsk:
    mu = gdp.mu_from_epsilon(epsilon, DELTA)
    return NamedAsk(f"{epsilon} {r}", Ask(r, mu), Descent(), search)


def mean_accuracies(arena: Arena, asks: Sequence[NamedAsk], repeats: int) -> Floats:
    means: Floats = accuracies(arena, asks, repeats).mean(axis=1)
    return means


def over_both(arena: Arena, repeats: int) -> Floats:
    """Accuracy over steps and learning rates, at one total."""
    asks = [
        ask_at(AT, eta * steps, Search(unit="r", eta=(eta, eta), steps=(steps, steps)))
        for steps in STEPS
        for eta in ETAS
    ]
    return mean_accuracies(arena, asks, repeats).reshape(len(STEPS), len(ETAS))


if __name__ == "__main__":
    main()
