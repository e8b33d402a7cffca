"""Where the budget goes: what each step takes of what a final model may cost in all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.patches import Patch

from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.rounding import percent, round_up_short
from dpladder.privacy.statement.build import lines_of_model
from dpladder.privacy.statement.documents import Cost, StatedSpend, Statement
from dpladder.privacy.statement.facts import BOUGHT
from dpladder.report.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PALE,
    PURPLE,
    SKY,
    VERMILLION,
    canvas,
    percent_axis,
    say,
)

EVERY_PART = "all"
COLOURS = {
    "units by class": "#B0C4DE",
    "feature mean": SKY,
    "shared sums": BLUE,
    "first head": BLUE,
    "trial scores": GREEN,
    "final training": ORANGE,
    "private search": VERMILLION,
    "test count": PURPLE,
    "further test counts": "#E8B8D4",
    "this workflow": INK,
    "outside this workflow": GREY,
}


@dataclass(frozen=True)
class Bar:
    """What one unit bears, as shares of what it may bear. The shares are of mu^2: that adds up,
    epsilon does not (Dong, Roth & Su 2019, Corollary 3.3).

    Attributes:
        label: which model and parts, or which lineage for life.
        shares: by the names of `COLOURS`, or `rung <number>`. Where their sum passes 1, the axis
            goes on.
        before: of what a model bears in training, the share that was spent before it.
    """

    label: str
    shares: dict[str, float]
    before: float | None = None


def plot_budget(statement: Statement, path: Path) -> None:
    """One bar for each final model and part of the data, and one for the life of each lineage that
    has a limit.

    Args:
        statement: its stated charges are drawn, so the figure shows no price that the statement
            lacks.
        path: where the SVG goes. The figure grows with the number of bars.
    """
    bars = [bar for lineage in statement.datasets for bar in _bars(statement, lineage)]
    names = sorted(
        {name for bar in bars for name, share in bar.shares.items() if share}, key=_order
    )
    colours = _colours(names)
    with canvas(path, height=1.4 + 0.62 * len(bars)) as figure:
        axes = figure.subplots()
        for place, bar in enumerate(bars):
            _draw(axes, place, bar, colours)
        axes.set_yticks([])
        axes.set_ylim(len(bars) - 0.6, -0.8)
        axes.set_xlim(0, max(1.0, *(sum(bar.shares.values()) for bar in bars)))
        axes.set_xlabel("share of the budget, in μ²")
        axes.spines["left"].set_visible(False)
        percent_axis(axes.xaxis)
        handles = [Patch(color=colour, label=name) for name, colour in colours.items()]
        figure.legend(handles=handles, loc="outside upper center", ncols=3, fontsize=9)


def _bars(statement: Statement, lineage: str) -> Iterator[Bar]:
    """The bars of one lineage: each final model's for the parts that one unit lies in, then its
    life's."""
    dataset = statement.datasets[lineage]
    delta = dataset.delta
    for artifact in dataset.artifacts.values():
        lines = lines_of_model(artifact, dataset.spends)
        budget = gdp.mu_from_epsilon(artifact.target_epsilon, delta) ** 2
        for parts in _parts_of_one_unit(lines, dataset.relation):
            shares: dict[str, float] = defaultdict(float)
            for line in lines:
                # one line may read several parts, and a unit of any of them bears it
                if {EVERY_PART, *parts} & set(line.partition.split(",")):
                    shares[_name(line)] += _mu(line, delta) ** 2 / budget
            whose = f"{artifact.experiment}, ε = {round_up_short(artifact.target_epsilon)}"
            before = artifact.search_share if "train" in parts else None
            yield Bar(f"{whose}: {' + '.join(parts) or 'all data'}", dict(shares), before)
    if dataset.lifetime_epsilon is not None:
        # what other tools booked on the lineage uses up the same limit
        limit = gdp.mu_from_epsilon(dataset.lifetime_epsilon, delta) ** 2
        spent: dict[str, Cost] = {
            "this workflow": dataset,
            "outside this workflow": dataset.outside_this_dag,
        }
        of_life = {name: _mu(figures, delta) ** 2 / limit for name, figures in spent.items()}
        yield Bar(f"{lineage} for life, ε = {round_up_short(dataset.lifetime_epsilon)}", of_life)


def _parts_of_one_unit(lines: Sequence[StatedSpend], relation: str) -> Iterator[tuple[str, ...]]:
    """The parts whose spends one unit bears: its own; replaced, those of its old and of its new
    version."""
    parts = {part for line in lines for part in line.partition.split(",")} - {EVERY_PART}
    trained_first = sorted(parts, key=lambda part: (part != "train", part))
    return combinations(trained_first, min(2 if relation == "replace_one" else 1, len(parts)))


def _mu(figures: Cost | StatedSpend, delta: float) -> float:
    """mu; where the spends are not Gaussian, the Gaussian mu of the same epsilon, near enough for a
    picture."""
    return gdp.mu_from_epsilon(figures.epsilon, delta) if figures.mu is None else figures.mu


def _name(line: StatedSpend) -> str:
    """What a charge is called in the legend. A rule that is missing here stops the picture, so that
    no charge is left out of a bar unseen."""
    if line.rule == "run_trial":
        return "trial scores" if line.label == "score" else f"rung {line.wildcards['rung']}"
    return BOUGHT[line.rule]


def _order(name: str) -> tuple[int, int]:
    """What trainings share first, then the rungs as they are climbed, then
    the rest as COLOURS has it."""
    if name not in COLOURS:
        return 1, int(name.removeprefix("rung "))
    place, trials = list(COLOURS).index(name), list(COLOURS).index("trial scores")
    return (0 if place < trials else 2), place


def _colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each name: rungs from light to dark blue, all else as `COLOURS` has it."""
    rungs = [name for name in names if name not in COLOURS]
    blues = {
        name: colormaps["Blues"](0.4 + 0.5 * (k + 1) / len(rungs)) for k, name in enumerate(rungs)
    }
    return {name: COLOURS.get(name) or to_hex(blues[name]) for name in names}


def _draw(axes: Axes, place: int, bar: Bar, colours: Mapping[str, str]) -> None:
    """One bar from left to right in the order of the legend, on a pale one that is the whole
    budget. Above it stands what was spent, and how much of that before the training."""
    axes.barh(place, 1.0, height=0.45, color=PALE)
    left = 0.0
    for name, colour in colours.items():
        width = bar.shares.get(name, 0.0)
        if width:
            gid = f"bar-{place}-{name}"
            axes.barh(place, width, 0.45, left, gid=gid, color=colour, ec="white", lw=0.5)
            say(axes, gid, f"{bar.label}: {name} {percent(width)}")
            left += width
    note = f"{percent(left)}{f', {percent(bar.before)} before training' if bar.before else ''}"
    for x, text, side in ((0.0, bar.label, "left"), (max(left, 1.0), note, "right")):
        axes.annotate(text, (x, place - 0.3), ha=side, va="bottom", fontsize=9)
