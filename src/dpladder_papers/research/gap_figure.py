"""Every r that was tried, for research on public data: where the good ones lie, and what a wrong
one costs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from dpladder.privacy.accounting.rounding import round_up_short
from dpladder.report.style import (
    CYCLE,
    MARKERS,
    VERMILLION,
    canvas,
    dots,
    log_axis,
    log_limits,
    percent_axis,
    score_bar,
)
from dpladder.report.summary import Summary

NEAR = 0.02  # a score so close to the best is as good


@dataclass(frozen=True)
class Tried:
    """A place of the ladder: all repeats' trials at one r and epsilon, by their mean score.

    Attributes:
        epsilon: of one trial, its score included.
        r: what the ladder searches, the total step size or 1/lambda.
        score: a share of the records that are counted by declaration.
    """

    epsilon: float
    r: float
    score: float


def plot_gap(summaries: Sequence[Summary], path: Path) -> None:
    """Left: r against a trial's epsilon, coloured by score, and between dashes all that is within
    NEAR of the best. Right: how much worse than its rung's best each is, against how far its r is
    from that one's.

    Args:
        summaries: of one research experiment and its repeats, with a ladder. At least one trial was
            made.
        path: where the SVG goes.
    """
    places = scores_by_place(summaries)
    by_epsilon = {
        epsilon: [*places_here] for epsilon, places_here in groupby(places, lambda one: one.epsilon)
    }
    with canvas(path, height=4.2, width=9.0) as figure:
        left, right = figure.subplots(1, 2)
        scores = [one.score for one in places]
        scatter = left.scatter(
            [one.epsilon for one in places],
            [one.r for one in places],
            c=scores,
            norm=Normalize(min(scores), max(scores)),
            cmap="cividis",
            gid="tried",
        )
        edges = [_edges(places_here) for places_here in by_epsilon.values()]
        for side in zip(*edges, strict=True):
            left.plot([*by_epsilon], side, "--", color=VERMILLION, lw=1.0)
        _logarithmic(
            left, "ε of one trial", summaries[0].r_label, [*by_epsilon], [one.r for one in places]
        )
        score_bar(figure, left, scatter, "mean score")
        ratios = []
        for place, (epsilon, places_here) in enumerate(by_epsilon.items()):
            best = _best(places_here)
            points = [(one.r / best.r, one.score - best.score) for one in places_here]
            ratios += [ratio for ratio, _ in points]
            look = {
                "color": CYCLE[place % len(CYCLE)],
                "label": f"ε = {round_up_short(epsilon, 3)}",
                "ms": 6,
            }
            dots(right, points, MARKERS[place % len(MARKERS)], gid=f"gap-{place}", **look)
        right.set(xlabel="r over its rung's best", ylabel="score less its rung's best")
        right.set_xlim(log_limits(ratios))
        log_axis(right, "x")
        percent_axis(right.yaxis)
        right.legend()


def scores_by_place(summaries: Sequence[Summary]) -> list[Tried]:
    """Repeats that tried the same r at the same epsilon are one place. In the order of epsilon.

    Args:
        summaries: of an experiment and its repeats.

    Returns:
        Places sorted by epsilon, then by r, as `groupby` needs them.
    """
    scores_found = defaultdict(list)
    for rung in (rung for summary in summaries for rung in summary.rungs):
        for trial in rung.trials:
            scores_found[rung.epsilon, trial.r].append(trial.share)
    return [
        Tried(epsilon, r, fmean(scores)) for (epsilon, r), scores in sorted(scores_found.items())
    ]


def _best(places: Sequence[Tried]) -> Tried:
    return max(places, key=lambda one: one.score)


def _edges(places: Sequence[Tried]) -> tuple[float, float]:
    """The smallest and largest r whose score is within `NEAR` of the best."""
    good = [one.r for one in places if one.score >= _best(places).score - NEAR]
    return min(good), max(good)


def _logarithmic(axes: Axes, across: str, up: str, x: Sequence[float], y: Sequence[float]) -> None:
    """Both axes logarithmic; a tick stands at each epsilon that was tried."""
    axes.set(xlabel=across, ylabel=up)
    axes.set_xlim(log_limits(x))
    axes.set_ylim(log_limits(y))
    log_axis(axes, "x", x)
    log_axis(axes, "y")
