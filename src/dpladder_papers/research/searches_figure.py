"""Ways to search against each other: tables, and how far below the oracle each one's models are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from dpladder.report.style import CYCLE, GREY, canvas, percent_axis
from dpladder.report.tables import short_number
from dpladder_papers.research.comparison_table import Document, epsilons, names, write_csv

NOBODY_ASKED = "Not compared: research.searches does not name it."


def write_results(
    rows: Sequence[Document], about: str, csv: Path, table: Path, figure: Path
) -> None:
    """A table for machines, one for people, and a figure. Without rows each of them says that
    nothing was compared, for the workflow expects all three.

    Args:
        rows: one search at one total each, as `Standing` has them. Beside it stand the oracle's
            accuracy and the share of its lead that the search closes (`rerr`).
        about: data and repeats, in words.
        csv: for machines.
        table: for people, in Markdown.
        figure: how far below the oracle each search ends.
    """
    if not rows:
        csv.write_text("", "utf-8")
        table.write_text(f"{NOBODY_ASKED}\n", "utf-8")
        with canvas(figure, height=0.6, width=7.6) as drawing:
            drawing.suptitle(NOBODY_ASKED)
        return
    write_csv(rows, csv)
    write_markdown(rows, about, table)
    plot_searches(rows, about, figure)


def write_markdown(rows: Sequence[Document], about: str, path: Path) -> None:
    """The means of all totals, then each total in full, the best first.

    The arguments are those of `write_results`, whose `table` is the path here. There is one row at
    least.
    """
    totals = epsilons(rows)
    lines = [
        f"Test accuracy of what each search puts out, {about}. Everything is paid for inside each "
        "total.",
        "",
    ]
    if len(totals) > 1:
        lines += [*_means(rows), ""]
    for epsilon in totals:
        lines += [*_details([row for row in rows if row["epsilon"] == epsilon]), ""]
    path.write_text("\n".join(lines), "utf-8")


def plot_searches(rows: Sequence[Document], about: str, path: Path) -> None:
    """Draw how far below the oracle each search's models are: the mean as a dot, and a thin line to
    the 10th percentile. Each total has a colour, and its dots lie a little beside the others'."""
    order, totals = names(rows), epsilons(rows)
    with canvas(path, height=1.2 + 0.36 * len(order), width=7.6) as figure:
        axes = figure.subplots()
        for row in rows:
            number = totals.index(row["epsilon"])
            place = order.index(row["name"]) + 0.12 * (number - (len(totals) - 1) / 2)
            below, low = row["oracle"] - row["mean"], row["oracle"] - row["p10"]
            color = CYCLE[number % len(CYCLE)]
            axes.plot([below, low], [place, place], color=color, lw=1, alpha=0.5)
            label = f"total ε = {short_number(row['epsilon'])}" if row["name"] == order[0] else None
            axes.plot(below, place, "o", ms=4, color=color, label=label)
        axes.axvline(0, color=GREY, lw=0.8)
        axes.set(
            yticks=range(len(order)), yticklabels=order, xlabel="test accuracy below the oracle's"
        )
        axes.set_title(about)
        axes.invert_yaxis()
        percent_axis(axes.xaxis)
        axes.legend(loc="lower right")


def _means(rows: Sequence[Document]) -> list[str]:
    """A line for each method, the best of each total in bold, and the oracle's below."""
    totals = epsilons(rows)
    here = {(row["name"], row["epsilon"]): row for row in rows}
    best = {
        epsilon: max(row["mean"] for row in rows if row["epsilon"] == epsilon) for epsilon in totals
    }
    tops = {row["epsilon"]: row["oracle"] for row in rows}

    def cell(name: str, epsilon: float) -> str:
        mean = here[name, epsilon]["mean"]
        return f"**{mean:.3f}**" if mean == best[epsilon] else f"{mean:.3f}"

    return [
        f"| total ε | {' | '.join(map(short_number, totals))} |",
        f"|---|{'---|' * len(totals)}",
        *(
            f"| {name} | {' | '.join(cell(name, epsilon) for epsilon in totals)} |"
            for name in names(rows)
        ),
        f"| oracle | {' | '.join(f'{tops[epsilon]:.3f}' for epsilon in totals)} |",
    ]


def _details(rows: Sequence[Document]) -> list[str]:
    """One total in full, the best mean first. RERR is a dash where random search was not compared,
    or where the oracle does not beat it."""
    first = rows[0]
    return [
        f"Total ε = {short_number(first['epsilon'])}. The oracle has {first['oracle']:.3f}, by a "
        f"grid that honestly costs ε = {short_number(first['oracle_epsilon'])}. RERR is the share "
        "of its lead over random search that a method closes.",
        "",
        "| method | mean | sd | 10th percentile | RERR | trainings | core seconds | search's share "
        "of μ² |",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {row['name']} | {row['mean']:.3f} | {row['sd']:.3f} | {row['p10']:.3f} | "
            f"{_share(row['rerr'])} | {row['trainings']:.1f} | {row['seconds']:.2f} | "
            f"{_share(row['search'])} |"
            for row in sorted(rows, key=lambda row: -row["mean"])
        ),
    ]


def _share(value: float) -> str:
    return "–" if math.isnan(value) else f"{round(value, 2) + 0.0:.0%}"  # never -0%
