"""What each rung's trials scored, with the noise that was paid to look."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes

from dpladder.privacy.accounting.rounding import round_up_short
from dpladder.report.style import (
    BLUE,
    GREY,
    VERMILLION,
    dots,
    log_axis,
    log_limits,
    panels,
    percent_axis,
)
from dpladder.report.summary import RungFound, Summary
from dpladder.report.tables import short_number


def plot_scores(summary: Summary, path: Path) -> None:
    """Score against r, one panel for each rung, with one standard deviation of the selection noise.

    Args:
        summary: of an experiment with a ladder that looks for r.
        path: where the SVG goes. All panels share both axes.
    """
    rungs = summary.rungs
    with panels(path, len(rungs), most_columns=4) as (figure, grid):
        grid[0].set_xlim(log_limits(summary.r_range))
        log_axis(grid[0], "x")
        percent_axis(grid[0].yaxis)
        for number, (axes, rung) in enumerate(zip(grid, rungs, strict=True)):
            _draw_rung(axes, rung, number)
        figure.supxlabel(summary.r_label, fontsize="medium")
        figure.supylabel(
            f"score: {summary.scored('correct predictions')}"
            f"{', noised (± 1 sd)' if summary.noised else ''}",
            fontsize="medium",
        )
        figure.suptitle(
            f"{summary.experiment}, each rung's best in orange",
            fontsize="medium",
            x=0.02,
            ha="left",
        )


def _draw_rung(axes: Axes, rung: RungFound, number: int) -> None:
    """One panel: all trials with their noise, and the best of them, which has its r beside it."""
    best = rung.best
    axes.set_title(f"rung {number}, trained at ε = {round_up_short(rung.epsilon, 3)}")
    axes.axvline(best.r, color=VERMILLION, lw=1, alpha=0.4)
    scored = [(trial, trial.share) for trial in rung.trials]
    for trial, score in scored:
        axes.errorbar(trial.r, score, yerr=trial.score_sd / trial.counted, ecolor=GREY)
        if trial.trial == best.trial:
            axes.plot(trial.r, score, "o", color=VERMILLION, ms=8, zorder=4)
            axes.annotate(
                f"r = {short_number(best.r)}", (best.r, score), (7, 5), textcoords="offset points"
            )
    # all trials in one group, the best too, so that the file has every point once by its id
    points = [(trial.r, score) for trial, score in scored]
    dots(axes, points, "o", color=BLUE, ms=5, gid=f"rung-{number}", zorder=3)
