"""What privacy costs in accuracy: over the totals of one experiment, and over all experiments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from matplotlib.axes import Axes

from dpladder.privacy.accounting.rounding import percent, round_up_short
from dpladder.report.style import (
    BLUE,
    CYCLE,
    GREY,
    INK,
    MARKERS,
    canvas,
    dots,
    log_axis,
    log_limits,
    percent_axis,
)
from dpladder.report.summary import Summary

BESIDE = 1.03  # of an epsilon, from one mark to the next that stands beside it
LEAST_HEIGHT = 0.1  # of the accuracy axis: small differences should look small
NOISE = "noise and sampling"
# epsilon as composed, test accuracy, and its deviation over noise and sampling
Point = tuple[float, float, float]


def plot_utility(summary: Summary, path: Path) -> None:
    """Test accuracy against the total epsilon of one experiment's final models.

    Args:
        summary: of an experiment with several totals, or with a training without noise.
        path: where the SVG goes.
    """
    points = _points(summary)
    with canvas(path) as figure:
        axes = figure.subplots()
        _draw_models(axes, points, summary.experiment, BLUE, "o")
        for x, y, _ in points:
            axes.annotate(percent(y), (x, y), (8, -5), textcoords="offset points", va="top")
        if summary.open:
            draw_without_privacy(axes, summary.open.test.accuracy, summary.experiment)
            axes.legend()
        _finish(axes, points, summary)
        axes.set_title(summary.experiment)


def plot_pareto(
    summaries: Sequence[Summary],
    cells: Mapping[str, Mapping[str, str]],
    path: Path,
) -> None:
    """All experiments' final models, one panel for each lineage, with the frontier of those that
    none beats.

    Args:
        summaries: of all experiments.
        cells: each experiment's values on the axes of `grid:`. Repeats, which share a cell, are one
            mark at their mean, with their deviation; others have that of their test's noise.
        path: where the SVG goes.
    """
    lineages = list(dict.fromkeys(summary.lineage for summary in summaries))
    with canvas(path, height=0.6 + 3.8 * len(lineages)) as figure:
        panels = figure.subplots(len(lineages), squeeze=False).flat
        for axes, lineage in zip(panels, lineages, strict=True):
            of_lineage = [summary for summary in summaries if summary.lineage == lineage]
            _draw_lineage(axes, of_lineage, cells)
            axes.set_title(lineage)


def frontier(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The (epsilon, accuracy) pairs whose accuracy no other reaches at as small an epsilon.

    Args:
        points: in any order. Of equal epsilon the best alone can be among them.

    Returns:
        Pairs in which both numbers ascend.
    """
    best: list[tuple[float, float]] = []
    for epsilon, accuracy in sorted(points, key=lambda point: (point[0], -point[1])):
        if not best or accuracy > best[-1][1]:
            best.append((epsilon, accuracy))
    return best


def draw_without_privacy(axes: Axes, accuracy: float, name: str) -> None:
    """A dashed line at what the same learner reaches without noise, on data declared public.

    Args:
        axes: a panel of accuracies.
        accuracy: a share of the test.
        name: of the experiment or lineage, for the id of the line in the file.
    """
    look: dict[str, Any] = {"color": INK, "lw": 1, "ls": (0, (4, 3)), "zorder": 1}
    axes.axhline(accuracy, label="ε = ∞: no privacy", gid=f"open-{name}", **look)


def _points(summary: Summary) -> list[Point]:
    targets = summary.targets
    return sorted((one.epsilon, one.test.accuracy, one.test.spread) for one in targets)


def over_repeats(repeats: Sequence[Summary]) -> list[Point]:
    """The mean over repeats at each total, and the deviation between them.

    Args:
        repeats: of one experiment, with the same totals.

    Returns:
        Points in the order of epsilon, which is a mean too: repeats may be composed at slightly
        other figures. A single one keeps the deviation of its own test.
    """
    by_total: dict[float, list[Point]] = {}
    for summary in repeats:
        for one in summary.targets:
            point = (one.epsilon, one.test.accuracy, one.test.spread)
            by_total.setdefault(one.target_epsilon, []).append(point)
    return sorted(
        (fmean(x for x, _, _ in points), fmean(y for _, y, _ in points), _deviation(points))
        for points in by_total.values()
    )


def _deviation(points: Sequence[Point]) -> float:
    return stdev(y for _, y, _ in points) if len(points) > 1 else points[0][2]


def _draw_lineage(
    axes: Axes, summaries: Sequence[Summary], cells: Mapping[str, Mapping[str, str]]
) -> None:
    """One panel: experiments from the best down, repeats as one mark, and the stairs of what none
    beats."""
    by_cell: dict[tuple[str, ...], list[Summary]] = {}
    for summary in summaries:
        cell = tuple(cells.get(summary.experiment, {}).values())
        by_cell.setdefault(cell or (summary.experiment,), []).append(summary)
    experiments = [(repeats[0].experiment, over_repeats(repeats)) for repeats in by_cell.values()]
    experiments.sort(key=lambda pair: -max(y for _, y, _ in pair[1]))
    looks = [(colour, marker) for marker, colour in product(MARKERS, CYCLE)]
    for place, (name, points) in enumerate(experiments):
        aside = (
            # marks at one epsilon stand beside each other; the shift is too small to be read as a
            # price
            BESIDE ** (place - (len(experiments) - 1) / 2) if _marks_overlap(experiments) else 1.0
        )
        beside = [(x * aside, y, sd) for x, y, sd in points]
        _draw_models(axes, beside, name, *looks[place % len(looks)])
    open_ones = [summary.open.test.accuracy for summary in summaries if summary.open]
    if open_ones:
        draw_without_privacy(axes, max(open_ones), summaries[0].lineage)
    everything = [point for _, points in experiments for point in points]
    over = any(len(repeats) > 1 for repeats in by_cell.values())
    _finish(axes, everything, summaries[0], "over repeats" if over else NOISE)
    best = frontier((x, y) for x, y, _ in everything)
    ends = [*best, (axes.get_xlim()[1], best[-1][1])]
    stairs: dict[str, Any] = {
        "where": "post",
        "color": GREY,
        "lw": 1,
        "label": "frontier",
        "zorder": 1,
    }
    axes.step([x for x, _ in ends], [y for _, y in ends], **stairs)
    axes.legend(
        loc="center left", bbox_to_anchor=(1.0, 0.5), ncols=math.ceil(len(experiments) / 14)
    )


def _marks_overlap(experiments: Sequence[tuple[str, Sequence[Point]]]) -> bool:
    """Whether models of several experiments stand at one epsilon, where marks would overlap."""
    places = [x for _, points in experiments for x in {round(x, 6) for x, _, _ in points}]
    return len(set(places)) < len(places)


def _draw_models(axes: Axes, points: Sequence[Point], name: str, colour: str, marker: str) -> None:
    """One experiment's models: marks, their deviations, and a pale line between them."""
    x, y, sd = ([point[k] for point in points] for k in range(3))
    axes.plot(x, y, color=colour, lw=1, alpha=0.4, zorder=2)
    axes.errorbar(x, y, yerr=sd, fmt="none", ecolor=colour, capsize=3, zorder=3)
    look = {"color": colour, "mec": "white", "ms": 7, "zorder": 4}
    dots(axes, zip(x, y, strict=True), marker, label=name, gid=f"models-{name}", **look)


def _finish(axes: Axes, points: Sequence[Point], summary: Summary, over: str = NOISE) -> None:
    """Name both axes, and leave the axis of accuracy a least height, so that noise does not look
    like a gain."""
    axes.set_xlabel(f"total ε, search included (δ = {round_up_short(summary.delta)})")
    axes.set_ylabel(f"{summary.counted('test accuracy')} (± 1 sd, {over})")
    percent_axis(axes.yaxis)
    epsilons = [x for x, _, _ in points]
    axes.set_xlim(log_limits(epsilons))
    log_axis(axes, "x", epsilons)
    low, high = axes.get_ylim()
    room = max(0.0, LEAST_HEIGHT - (high - low)) / 2
    axes.set_ylim(low - room, high + room)
