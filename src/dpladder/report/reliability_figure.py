"""How often one experiment's predictions are right, against how sure they are."""

from __future__ import annotations

from pathlib import Path

from dpladder.report.style import GREY, canvas, draw_line, look_of, percent_axis
from dpladder.report.summary import Summary


def plot_reliability(summary: Summary, path: Path) -> None:
    """A line for each final model, beside the diagonal of one that is as often right as it is sure.

    Args:
        summary: of an experiment with `evaluate.measures: calibration`. Bins that noise hides have
            no mark.
        path: where the SVG goes.
    """
    with canvas(path) as figure:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=GREY, lw=1, ls=(0, (4, 3)), label="right as often as sure")
        for number, target in enumerate(summary.targets):
            points = [
                (one.confidence or 0.0, right.value, *right.interval)
                for one in target.test.reliability or ()
                if (right := one.accuracy)
            ]
            label = f"total ε = {target.total}"
            draw_line(axes, points, label, *look_of(number), f"reliability-{label}")
        for axis in (axes.xaxis, axes.yaxis):
            percent_axis(axis)
        axes.set_xlim(0, 1)
        axes.set_xlabel("confidence, the mean of each bin")
        axes.set_ylabel("accuracy, 95 % intervals")
        axes.set_title(summary.experiment)
        axes.legend()
