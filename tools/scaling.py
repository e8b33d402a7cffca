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
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from arena import DELTA, centred, load
from terminal import print_head, print_row, read_options
from trainings import accuracies

from dpladder.config.sweep_sections import Search
from dpladder.methods.dp_gd.section import Descent
from dpladder.privacy.accounting import gdp
from dpladder.privacy.arrays import Floats
from dpladder.report.style import BLUE, GREEN, GREY, VERMILLION, canvas, log_axis
from dpladder.research.contest import Arena, bench_of
from dpladder.search.bench import NamedAsk, answers
from dpladder.search.prior import prior_of_learner
from dpladder.search.protocol import Ask
from dpladder.search.space import Space

R = tuple(float(r) for r in np.geomspace(0.1, 500.0, 15))
WIDE = Search(unit="r", eta=(0.001, 5.0), steps=(5, 100), decompose="balanced")
ETAS = tuple(float(eta) for eta in np.geomspace(0.01, 5.0, 8))
STEPS = (5, 10, 20, 50, 100)
CLOSE = 0.01  # accuracy
CHEAP = 3  # totals that the line is fitted to
AT = 1.0  # the total of the heatmap


@dataclass(frozen=True)
class Place:
    """At one total: the mean accuracy of each r, of the line's and of the prior's."""

    epsilon: float
    over_r: Floats
    line: float = 0.0
    prior: float = 0.0

    @property
    def best(self) -> float:
        return R[int(np.argmax(self.over_r))]

    @property
    def good(self) -> tuple[float, float]:
        near = np.flatnonzero(self.over_r >= self.over_r.max() - CLOSE)
        return R[near[0]], R[near[-1]]


def main() -> None:
    asked = read_options(
        __doc__,
        problem="digits",
        epsilons=[0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0],
        repeats=5,
        threads=1,
        cache=Path,
        figure=Path,
    )
    arena = load(asked.problem, asked.cache, asked.threads, 0)
    median = prior_of_learner("dp_gd", centred(asked.problem, "auto")).median
    grids = [
        Place(one, trained(arena, one, [(r, WIDE) for r in R], asked.repeats))
        for one in asked.epsilons
    ]
    cheap = grids[:CHEAP]
    slope, start = np.polyfit([one.epsilon for one in cheap], [one.best for one in cheap], 1)
    print_head("ε", "best r", "good r", "its accuracy", "r by the line", "accuracy", "by the prior")
    places = []
    for one in grids:
        r = float(np.clip(start + slope * one.epsilon, R[0], R[-1]))
        [line] = trained(arena, one.epsilon, [(r, WIDE)], asked.repeats)
        own = Space(Search(), Descent(), arena.constants)
        kappa = own.r(median, gdp.mu_from_epsilon(one.epsilon, DELTA))
        [prior] = trained(arena, one.epsilon, [(kappa, own.search)], asked.repeats)
        places.append(Place(one.epsilon, one.over_r, float(line), float(prior)))
        low, high = one.good
        print_row(
            f"{one.epsilon:g}",
            f"{one.best:.3g}",
            f"{low:.2g} to {high:.2g}",
            one.over_r.max(),
            f"{r:.3g}",
            line,
            prior,
        )
    if asked.figure:
        draw(places, (start, slope), heat(arena, asked.repeats), asked.figure)


def trained(
    arena: Arena, epsilon: float, asked: Sequence[tuple[float, Search]], repeats: int
) -> Floats:
    """Mean test accuracy at each r."""
    mu = gdp.mu_from_epsilon(epsilon, DELTA)
    asks = [
        NamedAsk(f"{epsilon} {r} {again}", Ask(r, mu), Descent(), search)
        for r, search in asked
        for again in range(repeats)
    ]
    heads = [one.weights for one in answers(bench_of(arena), asks)[0]]
    found: Floats = accuracies(arena, heads, repeats).mean(axis=1)
    return found


def heat(arena: Arena, repeats: int) -> Floats:
    """Accuracy over steps and learning rates, at one total."""
    fixed = [
        (eta * steps, Search(unit="r", eta=(eta, eta), steps=(steps, steps)))
        for steps in STEPS
        for eta in ETAS
    ]
    return trained(arena, AT, fixed, repeats).reshape(len(STEPS), len(ETAS))


def draw(places: Sequence[Place], line: tuple[float, float], heated: Floats, path: Path) -> None:
    epsilons = [one.epsilon for one in places]
    with canvas(path, height=3.4, width=11.0) as figure:
        scale, both, over = figure.subplots(1, 3)
        lows, highs = zip(*(one.good for one in places), strict=True)
        scale.fill_between(epsilons, lows, highs, color=GREY, alpha=0.3, label="good r")
        scale.plot(epsilons, [one.best for one in places], "o", color=BLUE, label="best r")
        fine = np.geomspace(epsilons[0], epsilons[-1], 50)
        drawn = np.clip(line[0] + line[1] * fine, R[0], R[-1])
        scale.plot(fine, drawn, color=VERMILLION, label=f"line by the first {CHEAP}")
        scale.set(xlabel="total ε", ylabel="total step size r = η·T")
        scale.legend(fontsize=8)
        shown = both.imshow(heated, origin="lower", aspect="auto", cmap="viridis")
        both.set_xticks(range(len(ETAS)), [f"{eta:.2g}" for eta in ETAS], fontsize=7)
        both.set_yticks(range(len(STEPS)), [f"{steps}" for steps in STEPS])
        both.set(xlabel="η", ylabel="T", title=f"test accuracy at ε = {AT:g}")
        figure.colorbar(shown, ax=both)
        best = [float(one.over_r.max()) for one in places]
        over.plot(epsilons, best, "o-", color=BLUE, label="best r, in hindsight")
        over.plot(epsilons, [one.line for one in places], color=VERMILLION, label="line")
        over.plot(epsilons, [one.prior for one in places], color=GREEN, label="prior")
        over.set(xlabel="total ε", ylabel="test accuracy")
        over.legend(fontsize=8)
        log_axis(scale, "y")
        for axes in (scale, over):
            log_axis(axes, "x")


if __name__ == "__main__":
    main()
