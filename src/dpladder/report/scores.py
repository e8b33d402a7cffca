"""What each rung's trials scored, with the noise that was paid to look."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes

from dpladder.report.style import (
    BLUE,
    GREY,
    VERMILLION,
    Document,
    log_axis,
    log_limits,
    noised,
    panels,
    percent_axis,
    plain,
    share,
)


def plot_scores(summary: Document, path: Path) -> None:
    """Score against r, one panel for each rung, with one standard deviation of the selection noise."""
    rungs = summary["rungs"]
    with panels(path, len(rungs), most_columns=4) as (figure, grid):
        grid[0].set_xlim(log_limits(summary["r_range"]))
        log_axis(grid[0], "x")
        percent_axis(grid[0].yaxis)
        for axes, rung in zip(grid, rungs, strict=True):
            _draw_rung(axes, rung)
        figure.supxlabel("total step size r = η·T", fontsize="medium")
        figure.supylabel(
            f"score: correct predictions{', noised (± 1 sd)' if noised(summary) else ''}", fontsize="medium"
        )
        figure.suptitle(
            f"{summary['experiment']}, each rung's best in orange", fontsize="medium", x=0.02, ha="left"
        )


def _draw_rung(axes: Axes, rung: Document) -> None:
    axes.set_title(f"ε = {plain(rung['epsilon'])} per trial")
    axes.axvline(rung["best"]["r"], color=VERMILLION, lw=1, alpha=0.4)
    for trial in rung["trials"]:
        score = share(trial)
        if score is None:
            continue
        best = trial["trial"] == rung["best"]["trial"]
        axes.errorbar(
            trial["r"],
            score,
            yerr=trial["score_sd"] / trial["counted"],
            fmt="o",
            color=VERMILLION if best else BLUE,
            ecolor=GREY,
            ms=7 if best else 5,
            gid="trial",
            zorder=3 if best else 2,
        )
        if best:
            axes.annotate(f"r = {plain(trial['r'])}", (trial["r"], score), (7, 5), textcoords="offset points")
    if all(trial["score"] is None for trial in rung["trials"]):
        axes.text(0.5, 0.5, "chosen privately,\nno scores released", ha="center", transform=axes.transAxes)
