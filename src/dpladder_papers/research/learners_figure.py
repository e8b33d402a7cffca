"""Learners against each other: a table, and accuracy against the total epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from dpladder.privacy.accounting.rounding import SDS_OF_95_PERCENT
from dpladder.report.style import CYCLE, MARKERS, canvas, dots, log_axis, log_limits, percent_axis
from dpladder.report.tables import short_number
from dpladder_papers.research.comparison_table import Document, epsilons, names

REFERENCE = "dp_gd"
# standard errors, of few repeats, by which two means must differ before one is called better
ERROR_BAR_SDS = 3.0


def write_markdown(rows: Sequence[Document], about: str, path: Path) -> None:
    """A table for people: a line for each learner, its mean and deviation at each total, the best
    of each total in bold. Beside them trainings, and seconds of one core, of a repeat.

    Args:
        rows: one learner at one total each, as `Standing` has them.
        about: data and repeats, in words.
        path: where it goes.
    """
    learners, totals = names(rows), epsilons(rows)
    by_place = {(row["name"], row["epsilon"]): row for row in rows}
    # Rows of another total sort below all of this one, for False comes before True.
    best = {
        epsilon: max(rows, key=lambda r: (r["epsilon"] == epsilon, r["mean"])) for epsilon in totals
    }

    def cell(learner: str, epsilon: float) -> str:
        row = by_place[learner, epsilon]
        text = f"{row['mean']:.3f} ± {row['sd']:.3f}"
        return f"**{text}**" if row is best[epsilon] else text

    lines = [
        f"Test accuracy, {about}. The sweep is inside each total. Mean ± sd over the repeats.",
        "",
        f"| total ε | {' | '.join(map(short_number, totals))} | trainings | core s per repeat |",
        f"|---|{'---|' * (len(totals) + 2)}",
    ]
    for learner in learners:
        rows_of_learner = [row for row in rows if row["name"] == learner]
        seconds = sum(row["seconds"] for row in rows_of_learner) / len(rows_of_learner)
        cells = " | ".join(cell(learner, epsilon) for epsilon in totals)
        lines.append(
            f"| {learner} | {cells} | {rows_of_learner[0]['trainings']:g} | {seconds:.1f} |"
        )
    if REFERENCE in learners and rows[0]["repeats"] > 1:  # one repeat says nothing about chance
        lines += ["", *(verdict(rows, epsilon) for epsilon in totals)]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def verdict(rows: Sequence[Document], epsilon: float) -> str:
    """Who beats DP-GD at a total, and whom it beats, beyond chance.

    A difference counts where it is above ERROR_BAR_SDS standard errors of a difference of two
    means: sqrt(sd1^2 / n1 + sd2^2 / n2).

    Args:
        rows: of all learners and totals, with several repeats each.
        epsilon: the total that is looked at.

    Returns:
        One line of Markdown.
    """
    here = [row for row in rows if row["epsilon"] == epsilon]
    (reference,) = (row for row in here if row["name"] == REFERENCE)

    def clearly(row: Document, sign: int) -> bool:
        error = math.sqrt(
            row["sd"] ** 2 / row["repeats"] + reference["sd"] ** 2 / reference["repeats"]
        )
        return bool(sign * (row["mean"] - reference["mean"]) > ERROR_BAR_SDS * error)

    better = [row["name"] for row in here if clearly(row, 1)]
    worse = [row["name"] for row in here if clearly(row, -1)]
    return (
        f"- ε = {short_number(epsilon)}: {REFERENCE} loses to {', '.join(better) or 'none'}, wins "
        f"over {', '.join(worse) or 'none'}."
    )


def plot_learners(rows: Sequence[Document], about: str, path: Path) -> None:
    """Test accuracy against the total epsilon, a line for each learner, its deviation as bars. The
    arguments are those of `write_markdown`."""
    totals = epsilons(rows)
    # All colours with one marker first, then all with the next: more learners than colours stay
    # apart.
    looks = [(colour, marker) for marker, colour in product(MARKERS, CYCLE)]
    with canvas(path, height=4.4, width=7.6) as figure:
        axes = figure.subplots()
        for number, learner in enumerate(names(rows)):
            rows_of_learner = sorted(
                (row for row in rows if row["name"] == learner), key=lambda row: row["epsilon"]
            )
            colour, marker = looks[number % len(looks)]
            x, y = (
                [row["epsilon"] for row in rows_of_learner],
                [row["mean"] for row in rows_of_learner],
            )
            axes.plot(x, y, color=colour, lw=2 if learner == REFERENCE else 1, alpha=0.5)
            half = [SDS_OF_95_PERCENT * row["sd"] for row in rows_of_learner]
            axes.errorbar(x, y, yerr=half, fmt="none", ecolor=colour, alpha=0.5)
            points = zip(x, y, strict=True)
            look = {"color": colour, "mec": "white", "ms": 7}
            dots(axes, points, marker, label=learner, gid=f"learner-{learner}", **look)
        axes.set_xlim(log_limits(totals))
        log_axis(axes, "x", totals)
        percent_axis(axes.yaxis)
        axes.set(xlabel="total ε, search included", ylabel="test accuracy, 95 % of repeats")
        axes.set_title(about)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
