"""What privacy costs in accuracy, over all totals and experiments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes

from dpladder.privacy.accounting.rounding import percent, round_up_short
from dpladder.report.style import (
    CYCLE,
    GREY,
    INK,
    MARKERS,
    Point,
    canvas,
    draw_line,
    log_axis,
    log_limits,
    percent_axis,
)
from dpladder.report.summary import FinalFound, Summary
from dpladder.report.tables import mean_score

BESIDE = 1.03  # of an epsilon, from one mark to the next that stands beside it
LEAST_HEIGHT = 0.1  # of the accuracy axis: small differences should look small


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
            mark at their mean, with an interval that holds them; others have their test's.
        path: where the SVG goes.
    """
    lineages = list(dict.fromkeys(summary.lineage for summary in summaries))
    with canvas(path, height=0.6 + 3.6 * len(lineages)) as figure:
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


def over_repeats(repeats: Sequence[Summary]) -> list[Point]:
    """The mean over repeats at each total, and an interval that holds 95 % of them.

    Args:
        repeats: of one experiment, with the same totals.

    Returns:
        Points in the order of epsilon, which is a mean too: repeats may be composed at slightly
        other figures. A single one keeps the interval of its own test.
    """
    by_total: dict[float, list[FinalFound]] = {}
    for one in (target for summary in repeats for target in summary.targets):
        by_total.setdefault(one.target_epsilon, []).append(one)
    return sorted(
        (fmean(one.epsilon for one in models), *mean_score([one.test for one in models]))
        for models in by_total.values()
    )


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
    experiments.sort(key=lambda pair: -max(y for _, y, _, _ in pair[1]))
    looks = [(colour, marker) for marker, colour in product(MARKERS, CYCLE)]
    for place, (name, points) in enumerate(experiments):
        aside = (
            # marks at one epsilon stand beside each other; the shift is too small to be read as a
            # price
            BESIDE ** (place - (len(experiments) - 1) / 2) if _marks_overlap(experiments) else 1.0
        )
        beside = [(x * aside, y, low, high) for x, y, low, high in points]
        draw_line(axes, beside, name, *looks[place % len(looks)], f"models-{name}")
        for x, y, _, _ in beside if len(experiments) == 1 else ():
            axes.annotate(percent(y), (x, y), (8, -5), textcoords="offset points", va="top")
    open_ones = [summary.open.test.accuracy for summary in summaries if summary.open]
    if open_ones:
        look: dict[str, Any] = {"color": INK, "lw": 1, "ls": (0, (4, 3)), "zorder": 1}
        gid = f"open-{summaries[0].lineage}"
        axes.axhline(max(open_ones), label="ε = ∞: no privacy", gid=gid, **look)
    everything = [point for _, points in experiments for point in points]
    over = any(len(repeats) > 1 for repeats in by_cell.values())
    _finish(axes, everything, summaries[0], " over repeats" if over else "")
    best = frontier((x, y) for x, y, _, _ in everything)
    ends = [*best, (axes.get_xlim()[1], best[-1][1])]
    stairs: dict[str, Any] = {
        "where": "post",
        "color": GREY,
        "lw": 1,
        "label": "frontier",
        "zorder": 1,
    }
    axes.step([x for x, _ in ends], [y for _, y in ends], **stairs)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)


def _marks_overlap(experiments: Sequence[tuple[str, Sequence[Point]]]) -> bool:
    """Whether models of several experiments stand at one epsilon, where marks would overlap."""
    places = [x for _, points in experiments for x in {round(x, 6) for x, *_ in points}]
    return len(set(places)) < len(places)


def _finish(axes: Axes, points: Sequence[Point], summary: Summary, over: str) -> None:
    """Name both axes, and leave the axis of accuracy a least height, so that noise does not look
    like a gain."""
    axes.set_xlabel(f"total ε, search included (δ = {round_up_short(summary.delta)})")
    axes.set_ylabel(f"{summary.counted('test accuracy')}, 95 % intervals{over}")
    percent_axis(axes.yaxis)
    epsilons = [x for x, *_ in points]
    axes.set_xlim(log_limits(epsilons))
    log_axis(axes, "x", epsilons)
    low, high = axes.get_ylim()
    room = max(0.0, LEAST_HEIGHT - (high - low)) / 2
    axes.set_ylim(low - room, high + room)
