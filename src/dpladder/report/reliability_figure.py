"""How often one experiment's predictions are right, against how sure they are."""

from __future__ import annotations

from pathlib import Path

from dpladder.privacy.accounting.rounding import sampling_spread
from dpladder.report.style import CYCLE, GREY, MARKERS, canvas, dots, percent_axis
from dpladder.report.summary import Summary


def plot_reliability(summary: Summary, path: Path) -> None:
    """A line for each final model, beside the diagonal of one that is as often right as it is
    sure."""
    with canvas(path) as figure:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=GREY, lw=1, ls=(0, (4, 3)), label="right as often as sure")
        for number, target in enumerate(summary.targets):
            bins = [one for one in target.test.reliability or () if one.accuracy is not None]
            colour = CYCLE[number % len(CYCLE)]
            sure = [one.confidence or 0.0 for one in bins]
            right = [one.accuracy.value for one in bins if one.accuracy]
            sd = [
                sampling_spread(one.accuracy.value, one.accuracy.sd, one.total)
                for one in bins
                if one.accuracy
            ]
            label = f"total ε = {target.total}"
            axes.errorbar(sure, right, yerr=sd, color=colour, lw=1, alpha=0.5, capsize=3)
            look = {"color": colour, "mec": "white", "ms": 7, "zorder": 3, "label": label}
            marker = MARKERS[number % len(MARKERS)]
            dots(axes, zip(sure, right, strict=True), marker, gid=f"reliability-{label}", **look)
        for axis in (axes.xaxis, axes.yaxis):
            percent_axis(axis)
        axes.set_xlim(0, 1)
        axes.set_xlabel("confidence, the mean of each bin")
        axes.set_ylabel("accuracy (± 1 sd, noise and sampling)")
        axes.set_title(summary.experiment)
        axes.legend()
