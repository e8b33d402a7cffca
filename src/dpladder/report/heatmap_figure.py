"""Learning rate against steps, for research on public data: does only their product matter?"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from dpladder.privacy.accounting.rounding import round_up_short
from dpladder.privacy.arrays import Floats
from dpladder.report.reading import short_number
from dpladder.report.style import (
    BLUE,
    VERMILLION,
    dots,
    log_axis,
    log_limits,
    panels,
    percent_axis,
    score_bar,
)
from dpladder.report.summary import Summary

MOST_CELLS = 12  # along one axis; more distinct values share cells
# behind text on any colour
CARD = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.8}


def plot_heatmap(summaries: Sequence[Summary], path: Path) -> None:
    """The mean score of all repeats by T and eta, one panel for each epsilon; dashed, all with the
    best cell's r.

    If only the product r = eta * T matters, scores are equal along the dashed line (Panda et al.).

    Args:
        summaries: of one research experiment and its repeats, of a learner that searches a rate.
        path: where the SVG goes. Trials that all have one T are drawn as a line over eta.
    """
    tried = _rows_by_epsilon(summaries)
    if len({float(steps) for rows in tried.values() for steps in rows[:, 0]}) == 1:
        _plot_line(path, tried)
        return
    steps, eta = (
        _edges(np.concatenate([values[:, column] for values in tried.values()]))
        for column in (0, 1)
    )
    means = {epsilon: _means(values, steps, eta) for epsilon, values in tried.items()}
    everywhere = np.array(list(means.values()))
    # one scale of colours for all panels, so that they can be compared
    norm = Normalize(np.nanmin(everywhere), np.nanmax(everywhere))
    with panels(path, len(means), most_columns=3) as (figure, grid):
        for axes, (epsilon, cells) in zip(grid, means.items(), strict=True):
            mesh = axes.pcolormesh(steps, eta, cells.T, cmap="cividis", norm=norm)
            axes.set_title(f"ε = {round_up_short(epsilon, 3)} per trial")
            _mark_best(axes, tried[epsilon], cells, steps, eta)
        log_axis(grid[0], "x")
        log_axis(grid[0], "y")
        score_bar(figure, grid, mesh, "mean score: correct predictions")
        figure.supxlabel("steps T", fontsize="medium")
        figure.supylabel("learning rate η", fontsize="medium")


def _plot_line(path: Path, tried: Mapping[float, Floats]) -> None:
    """Where all trials have one T, a map would be a single column: the mean score over eta."""
    with panels(path, len(tried), most_columns=3) as (figure, grid):
        for axes, (epsilon, rows) in zip(grid, tried.items(), strict=True):
            rates = np.unique(rows[:, 1])
            scores = np.array([rows[rows[:, 1] == rate, 2].mean() for rate in rates])
            best = int(scores.argmax())
            dots(axes, zip(rates, scores, strict=True), "o", color=BLUE, ms=5, gid="tried")
            axes.plot(rates, scores, color=BLUE, lw=1, alpha=0.4)
            axes.plot(rates[best], scores[best], "*", color=VERMILLION, mec="white", ms=13)
            label = f"r = {short_number(rates[best] * rows[0, 0])}"
            axes.annotate(label, (rates[best], scores[best]), (8, 6), textcoords="offset points")
            axes.set_title(f"ε = {round_up_short(epsilon, 3)} per trial, T = {rows[0, 0]:.0f}")
        grid[0].set_xlim(
            log_limits([rate for rows in tried.values() for rate in rows[:, 1].tolist()])
        )
        log_axis(grid[0], "x")
        percent_axis(grid[0].yaxis)
        figure.supxlabel("learning rate η", fontsize="medium")
        figure.supylabel("mean score: correct predictions", fontsize="medium")


def _rows_by_epsilon(summaries: Sequence[Summary]) -> dict[float, Floats]:
    """For each epsilon, cheapest first, rows of (steps, eta, score)."""
    rows = defaultdict(list)
    for rung in (rung for summary in summaries for rung in summary.rungs):
        for trial in rung.trials:
            rows[rung.epsilon].append((trial.steps, trial.eta, trial.share))
    return {epsilon: np.array(rows[epsilon], np.float64) for epsilon in sorted(rows)}


def _edges(values: Floats) -> Floats:
    """Edges of cells on a logarithmic axis: one cell for each value, or an even grid where there
    are many."""
    distinct = np.unique(values)
    if len(distinct) > MOST_CELLS:
        return np.geomspace(distinct[0], distinct[-1], MOST_CELLS + 1)
    inner = np.sqrt(distinct[1:] * distinct[:-1])
    first, last = (inner[0], inner[-1]) if len(inner) else distinct[[0, 0]] * (1.25, 0.8)
    return np.array([distinct[0] ** 2 / first, *inner, distinct[-1] ** 2 / last])


def _means(tried: Floats, steps: Floats, eta: Floats) -> Floats:
    """Mean score of each cell; NaN where nothing was tried."""
    x, y, score = tried.T
    count, _, _ = np.histogram2d(x, y, (steps, eta))
    total, _, _ = np.histogram2d(x, y, (steps, eta), weights=score)
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)


def _mark_best(axes: Axes, tried: Floats, cells: Floats, steps: Floats, eta: Floats) -> None:
    """A star on the best cell, at the mean of its trials on both logarithmic axes, and the line of
    its r."""
    column, row = np.unravel_index(np.nanargmax(cells), cells.shape)
    x, y, _ = tried.T
    inside = (steps[column] <= x) & (x <= steps[column + 1]) & (eta[row] <= y) & (y <= eta[row + 1])
    x, y = (math.exp(np.log(values[inside]).mean()) for values in (x, y))
    axes.plot(steps, x * y / steps, "--", color=VERMILLION, lw=1.2)
    axes.plot(x, y, "*", color=VERMILLION, mec="white", ms=13, clip_on=False)
    axes.set_ylim(eta[0], eta[-1])
    # the label lies on the side where the panel has more room
    lift, side = ((-8, 6), "right") if 2 * column >= len(cells) else ((8, 6), "left")
    label = f"r = {short_number(x * y)}"
    axes.annotate(label, (x, y), lift, textcoords="offset points", ha=side, bbox=CARD)
