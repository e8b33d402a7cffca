"""What the candidates scored that private trials chose among, with the noise that was paid for."""

from __future__ import annotations

from pathlib import Path

from dpladder.privacy.accounting.rounding import round_up_short
from dpladder.report.reading import percent
from dpladder.report.style import BLUE, GREY, VERMILLION, panels, percent_axis
from dpladder.report.summary import Summary


def plot_choice(summary: Summary, path: Path) -> None:
    """Score of each candidate, one panel for each rung, with one standard deviation of its noise. A
    candidate that did not go on has no point in later panels.

    Args:
        summary: of an experiment with `sweep.choose`, so it has one rung at least. Its first rung
            tries every candidate.
        path: where the SVG goes.
    """
    first = summary.rungs[0]
    names = [str(trial.candidate) for trial in first.trials]
    with panels(path, len(summary.rungs), most_columns=2) as (figure, grid):
        percent_axis(grid[0].xaxis)
        grid[0].set_yticks(range(len(names)), names)
        grid[0].set_ylim(len(names) - 0.5, -0.5)
        for axes, rung in zip(grid, summary.rungs, strict=True):
            axes.set_title(f"trained at ε = {round_up_short(rung.epsilon, 3)} each")
            for trial in rung.trials:
                best = trial.trial == rung.best.trial
                axes.errorbar(
                    trial.share,
                    names.index(str(trial.candidate)),
                    xerr=trial.score_sd / trial.counted,
                    fmt="o",
                    ms=8 if best else 5,
                    color=VERMILLION if best else BLUE,
                    ecolor=GREY,
                )
        figure.supxlabel(
            f"score: {summary.scored('correct predictions')}"
            f"{', noised (± 1 sd)' if summary.noised else ''}",
            fontsize="medium",
        )
        figure.suptitle(_title(summary), fontsize="medium", x=0.02, ha="left")


def _title(summary: Summary) -> str:
    """Which candidate was chosen, and what that took of a total."""
    costs = [
        f"{percent(one.search_share)} of mu² at a total of ε = {one.total}"
        for one in summary.targets
        if one.search_share is not None
    ]
    chosen = summary.targets[0].candidate
    return f"{summary.experiment}: {chosen} was chosen, for {' and '.join(costs)}"
