"""How far trainings move: the distance of final weights from where they started, for research on
public data."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from dpladder.report.reading import Document, plain
from dpladder.report.style import CYCLE, MARKERS, canvas, dots, log_axis, log_limits


def plot_distance(summaries: Sequence[Document], path: Path) -> None:
    """Distance against the total epsilon, and against the total step size r, a mark for each final
    model."""
    looks = [(colour, marker) for marker, colour in product(MARKERS, CYCLE)]
    with canvas(path) as figure:
        over, along = figure.subplots(1, 2, sharey=True)
        for place, summary in enumerate(summaries):
            found = [target for target in summary["targets"] if target.get("distance")]
            colour, marker = looks[place % len(looks)]
            look: dict[str, Any] = {"color": colour, "mec": "white", "ms": 7, "zorder": 3}
            for axes, key in ((over, "epsilon"), (along, "r_star")):
                points = [(target[key], target["distance"]) for target in found if target.get(key)]
                axes.plot(
                    [x for x, _ in points], [y for _, y in points], color=colour, lw=1, alpha=0.4
                )
                dots(
                    axes, points, marker, label=summary["experiment"], gid=f"{key}-{place}", **look
                )
        every = [
            target
            for summary in summaries
            for target in summary["targets"]
            if target.get("distance")
        ]
        _finish(over, [target["epsilon"] for target in every], "total ε, search included")
        _finish(
            along,
            [target["r_star"] for target in every if target["r_star"]],
            "total step size r = η·T",
        )
        distances = [target["distance"] for target in every]
        if distances:
            over.set_ylim(log_limits(distances))
            log_axis(over, "y")
        over.set_ylabel(
            f"distance of weights from their start (δ = {plain(summaries[0]['delta'])})"
        )
        over.legend()


def _finish(axes: Any, values: Sequence[float], label: str) -> None:
    axes.set_xlabel(label)
    if values:
        axes.set_xlim(log_limits(values))
        log_axis(axes, "x", sorted(set(values)))
