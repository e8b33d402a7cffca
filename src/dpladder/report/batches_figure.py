"""Sampling rates against each other, for research on public data: does the full batch win at equal
epsilon?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev

import pandas as pd

from dpladder.privacy.accounting.rounding import round_up_short
from dpladder.report.reading import short_number
from dpladder.report.style import canvas, draw_line, log_axis, log_limits, look_of, percent_axis
from dpladder.report.summary import Summary

Accuracies = Mapping[tuple[float, float], Sequence[float]]


def plot_batches(summaries: Sequence[Summary], path: Path) -> None:
    """Test accuracy against the sampling rate, a line for each total, with one deviation over the
    repeats.

    Args:
        summaries: of research experiments that differ in their sampling rate, repeats among them.
        path: where the SVG goes.
    """
    by_setting = accuracies(summaries)
    rates, totals = (
        sorted({rate for rate, _ in by_setting}),
        sorted({total for _, total in by_setting}),
    )
    with canvas(path) as figure:
        axes = figure.subplots()
        for number, total in enumerate(totals):
            points = [
                (rate, fmean(values), _deviation(values))
                for rate in rates
                if (values := by_setting.get((rate, total)))
            ]
            label = f"total ε = {round_up_short(total, 3)}"
            draw_line(axes, points, label, *look_of(number), f"total-{number}")
        axes.set_xlim(log_limits(rates))
        log_axis(axes, "x", rates)
        percent_axis(axes.yaxis)
        axes.set(
            xlabel="sampling rate (1: full batch)", ylabel="test accuracy (± 1 sd over repeats)"
        )
        axes.legend()


def batches_table(summaries: Sequence[Summary]) -> pd.DataFrame:
    """A row for each sampling rate, a column for each total: the mean over repeats, and one
    deviation.

    Args:
        summaries: those of the figure.

    Returns:
        Cells as text, `0.912 ± 0.004`. A total that a rate was not trained at has no cell there.
    """
    by_setting = accuracies(summaries)
    rows: dict[float, dict[str, object]] = {}
    for (rate, total), values in sorted(by_setting.items()):
        cell = f"{fmean(values):.3f} ± {_deviation(values):.3f}"
        rows.setdefault(rate, {"sampling rate": short_number(rate)})[
            f"total ε = {round_up_short(total, 3)}"
        ] = cell
    return pd.DataFrame(list(rows.values()))


def accuracies(summaries: Sequence[Summary]) -> Accuracies:
    """Those of all repeats, by sampling rate and total.

    Args:
        summaries: in any order; equal settings of several experiments count as repeats.

    Returns:
        For each (sampling rate, total epsilon) the shares of the test that are right, one a repeat.
    """
    by_setting = defaultdict(list)
    for summary in summaries:
        for target in summary.targets:
            by_setting[summary.sampling_rate, target.target_epsilon].append(target.test.accuracy)
    return by_setting


def _deviation(values: Sequence[float]) -> float:
    """One deviation over repeats; 0 of a single one, which says nothing of its spread."""
    return stdev(values) if len(values) > 1 else 0.0
