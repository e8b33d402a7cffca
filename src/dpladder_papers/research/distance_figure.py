"""How far trainings move: the distance of final weights from where they started, for research on
public data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from dpladder.privacy.accounting.rounding import round_up_short
from dpladder.report.style import CYCLE, MARKERS, canvas, dots, log_axis, log_limits
from dpladder.report.summary import Summary


def plot_distance(summaries: Sequence[Summary], path: Path) -> None:
    """Distance against the total epsilon, and against the total step size r, a mark for each final
    model.

    Args:
        summaries: of research experiments, each a line of its own.
        path: where the SVG goes. Models whose distance is not known have no mark.
    """
    looks = [(colour, marker) for marker, colour in product(MARKERS, CYCLE)]
    by_experiment = {summary.experiment: [*_measured_distances(summary)] for summary in summaries}
    every = [point for points in by_experiment.values() for point in points]
    with canvas(path, height=4.4, width=7.6) as figure:
        over, along = figure.subplots(1, 2, sharey=True)
        for place, (experiment, points) in enumerate(by_experiment.items()):
            colour, marker = looks[place % len(looks)]
            look: dict[str, Any] = {"color": colour, "mec": "white", "ms": 7, "zorder": 3}
            ways = {"epsilon": (over, [(epsilon, moved) for epsilon, _, moved in points])}
            # a learner without a step size has no place on this axis
            ways["r_star"] = (along, [(r, moved) for _, r, moved in points if r])
            for key, (axes, line) in ways.items():
                axes.plot(*zip(*line, strict=True), color=colour, lw=1, alpha=0.4)
                dots(axes, line, marker, label=experiment, gid=f"{key}-{place}", **look)
        _finish(over, [epsilon for epsilon, _, _ in every], "total ε, search included")
        _finish(along, [r for _, r, _ in every if r], "total step size r = η·T")
        if every:
            over.set_ylim(log_limits([moved for _, _, moved in every]))
            log_axis(over, "y")
        over.set_ylabel(
            f"distance of weights from their start (δ = {round_up_short(summaries[0].delta)})"
        )
        over.legend()


def _measured_distances(summary: Summary) -> Iterator[tuple[float, float | None, float]]:
    """The total, r and distance of each final model whose distance is known."""
    for target in summary.targets:
        if target.distance:
            yield target.epsilon, target.r_star, target.distance


def _finish(axes: Any, values: Sequence[float], label: str) -> None:
    """Name an axis, and make it logarithmic where there is anything to show on it."""
    axes.set_xlabel(label)
    if values:
        axes.set_xlim(log_limits(values))
        log_axis(axes, "x", sorted(set(values)))
