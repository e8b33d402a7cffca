"""How one experiment's models do off their own distribution: over the total epsilon, and over a
corruption's severity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MultipleLocator

from dpladder.learn.measures.tested import says_little
from dpladder.privacy.accounting.rounding import NoisedFigure, round_up_short
from dpladder.report.style import (
    INK,
    Point,
    canvas,
    draw_line,
    log_axis,
    log_limits,
    look_of,
    percent_axis,
)
from dpladder.report.summary import AlsoTested, FinalFound, Summary

Corrupted = tuple[str, str, str]
HIGH = 3.4  # inches, of each panel


def plot_shift(summary: Summary, path: Path) -> None:
    """The tests on whole sources over epsilon in the first panel; each corruption over its severity
    in one of its own.

    Args:
        summary: of an experiment with further tests.
        path: where the SVG goes. It is as high as its panels need.
    """
    targets = sorted(summary.targets, key=lambda target: float(target.epsilon))
    open_one = summary.without_noise
    whole = targets if open_one is None else [*targets, open_one]
    corrupted = list(dict.fromkeys(_corruption_key(one) for one in targets[0].also if one.severity))
    rows = 1 + len(corrupted)
    with canvas(path, height=HIGH * rows) as figure:
        over, *further_axes = figure.subplots(rows, sharey=True, squeeze=False).flat
        _draw_over_epsilon(over, targets, summary)
        for axes, which in zip(further_axes, corrupted, strict=True):
            _draw_over_severity(axes, whole, which)
        percent_axis(over.yaxis)
        over.set_ylabel(summary.counted("accuracy") + ", 95 % intervals")


def _draw_over_epsilon(axes: Axes, targets: Sequence[FinalFound], summary: Summary) -> None:
    """A line for each test on whole sources, dotted below it the worst group's, and dashed the
    training without noise."""
    clean = ["test", *(one.name for one in targets[0].also if one.severity is None)]
    for number, name in enumerate(clean):
        colour, marker = look_of(number - 1)[0] if number else INK, look_of(number)[1]
        each = [(target, target.tests[name]) for target in targets]
        label = name if number else "test part"
        points = _points((target.epsilon, test.score) for target, test in each)
        if points:
            draw_line(axes, points, label, colour, marker, f"shift-epsilon-{label}")
        lowest = [(target.epsilon, test.worst) for target, test in each]
        if worst := _points((epsilon, one.score) for epsilon, one in lowest if one):
            of_worst = f"{label}, worst group"
            draw_line(
                axes, worst, of_worst, colour, marker, f"shift-epsilon-{of_worst}", filled=False
            )
        if summary.without_noise:
            open_one = summary.without_noise.tests[name]
            look: dict[str, Any] = {"color": colour, "lw": 1, "ls": (0, (4, 3)), "zorder": 1}
            axes.axhline(open_one.accuracy, label=None if number else "ε = ∞: no privacy", **look)
    epsilons = [target.epsilon for target in targets]
    axes.set_xlim(log_limits(epsilons))
    log_axis(axes, "x", epsilons)
    axes.set_xlabel(f"total ε, search included (δ = {round_up_short(summary.delta)})")
    axes.set_title(summary.experiment)
    axes.legend()


def _draw_over_severity(axes: Axes, targets: Sequence[FinalFound], which: Corrupted) -> None:
    """A line for each total, from the images as they are."""
    name, of, kind = which
    for number, target in enumerate(targets):
        tests = [
            (one.severity or 0, one.test) for one in target.also if _corruption_key(one) == which
        ]
        line_points = [(0, target.tests[of]), *sorted(tests, key=lambda one: one[0])]
        points = _points((float(severity), test.score) for severity, test in line_points)
        private = target.target_epsilon < math.inf
        label = f"total ε = {target.total}" if private else "ε = ∞: no privacy"
        draw_line(axes, points, label, *look_of(number), f"shift-{name}-{label}")
    axes.xaxis.set_major_locator(MultipleLocator(1))
    axes.set_xlabel(f"severity of {kind}")
    axes.set_title(f"{name}: {'test part' if of == 'test' else of}")
    if len(targets) > 1:
        axes.legend()


def _points(scores: Iterable[tuple[float, NoisedFigure]]) -> list[Point]:
    """Marks with their intervals, but for shares that are of too few records to be told."""
    return [(x, one.value, *one.interval) for x, one in scores if not says_little(one, "percent")]


def _corruption_key(one: AlsoTested) -> Corrupted:
    """The test that a severity belongs to, whose images it corrupts, and how."""
    return one.name.rpartition("-")[0], one.of or "test", one.corruption or ""
