"""How one experiment's models do off their own distribution: over the total epsilon, and over a
corruption's severity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MultipleLocator

from dpladder.report.reading import Document, counted, open_target, plain
from dpladder.report.style import (
    CYCLE,
    INK,
    MARKERS,
    canvas,
    dots,
    log_axis,
    log_limits,
    percent_axis,
)

# where, accuracy, and the deviation its noise gives it
Points = Sequence[tuple[float, float, float]]
WIDE = 3.8  # inches, of each panel


def plot_shift(summary: Document, path: Path) -> None:
    """The tests on whole sources over epsilon in the first panel; each corruption over its severity
    in one of its own."""
    targets = sorted(summary["targets"], key=lambda target: float(target["epsilon"]))
    whole = [*targets, *open_target(summary)]
    corrupted = list(
        dict.fromkeys(_of(one) for one in targets[0]["also"] if one["severity"] is not None)
    )
    with canvas(path, width=max(7.6, WIDE * (1 + len(corrupted)))) as figure:
        over, *others = figure.subplots(1, 1 + len(corrupted), sharey=True, squeeze=False)[0]
        _over_epsilon(over, targets, summary)
        for axes, which in zip(others, corrupted, strict=True):
            _over_severity(axes, whole, which)
        percent_axis(over.yaxis)
        over.set_ylabel(
            counted(summary, "accuracy") + (" (± 1 sd of its noise)" if _noised(targets) else "")
        )


def _over_epsilon(axes: Axes, targets: Sequence[Document], summary: Document) -> None:
    tests = {"test part": [target["test"] for target in targets]}
    for place, one in enumerate(targets[0]["also"]):
        if one["severity"] is None:
            tests[one["name"]] = [target["also"][place]["test"] for target in targets]
    for number, (name, found_by) in enumerate(tests.items()):
        colour = INK if not number else CYCLE[(number - 1) % len(CYCLE)]
        marker, each = MARKERS[number % len(MARKERS)], [*zip(targets, found_by, strict=True)]
        _line(axes, [_point(*pair) for pair in each], name, colour, marker)
        if worst := [_worst(*pair) for pair in each if pair[1].get("worst")]:
            _line(axes, worst, f"{name}, worst group", colour, marker, filled=False)
        for found in open_target(summary):
            test = found["test"] if not number else _named(found, name)
            if test is None:
                continue
            look: dict[str, Any] = {"color": colour, "lw": 1, "ls": (0, (4, 3)), "zorder": 1}
            axes.axhline(test["accuracy"], label=None if number else "ε = ∞: no privacy", **look)
    epsilons = [target["epsilon"] for target in targets]
    axes.set_xlim(log_limits(epsilons))
    log_axis(axes, "x", epsilons)
    axes.set_xlabel(f"total ε, search included (δ = {plain(summary['delta'])})")
    axes.set_title(summary["experiment"])
    axes.legend()


def _over_severity(axes: Axes, targets: Sequence[Document], which: tuple[str, str, str]) -> None:
    """A line for each total, from the images as they are."""
    name, of, kind = which
    for number, target in enumerate(targets):
        own = [one for one in target["also"] if _of(one) == which]
        clean = target["test"] if of == "test" else _named(target, of)
        found = [
            (0, clean),
            *sorted(((one["severity"], one["test"]) for one in own), key=_severity),
        ]
        points = [
            (float(severity), test["accuracy"], test["accuracy_sd"]) for severity, test in found
        ]
        total = target["target_epsilon"]
        label = "ε = ∞: no privacy" if total == math.inf else f"total ε = {plain(total)}"
        _line(axes, points, label, CYCLE[number % len(CYCLE)], MARKERS[number % len(MARKERS)], name)
    axes.xaxis.set_major_locator(MultipleLocator(1))
    axes.set_xlabel(f"severity of {kind}")
    axes.set_title(f"{name}: {'test part' if of == 'test' else of}")
    if len(targets) > 1:
        axes.legend()


def _severity(found: tuple[int, Any]) -> int:
    return found[0]


def _line(
    axes: Axes,
    points: Points,
    label: str,
    colour: str,
    marker: str,
    where: str = "epsilon",
    filled: bool = True,
) -> None:
    x, y, sd = ([point[k] for point in points] for k in range(3))
    style = "-" if filled else ":"
    axes.errorbar(
        x, y, yerr=sd if any(sd) else None, color=colour, lw=1, ls=style, alpha=0.5, capsize=3
    )
    inside, edge = (colour, "white") if filled else ("white", colour)
    look = {"color": colour, "mfc": inside, "mec": edge, "ms": 7, "zorder": 3}
    dots(axes, zip(x, y, strict=True), marker, label=label, gid=f"shift-{where}-{label}", **look)


def _point(target: Document, test: Document) -> tuple[float, float, float]:
    return target["epsilon"], test["accuracy"], test["accuracy_sd"]


def _worst(target: Document, test: Document) -> tuple[float, float, float]:
    return target["epsilon"], test["worst"]["value"], test["worst"]["sd"]


def _of(one: Mapping[str, Any]) -> tuple[str, str, str]:
    """The test that a severity belongs to, whose images it corrupts, and how."""
    return one["name"].rpartition("-")[0], one["of"], one["corruption"]


def _named(target: Document, name: str) -> Document | None:
    return next((one["test"] for one in target["also"] if one["name"] == name), None)


def _noised(targets: Sequence[Document]) -> bool:
    return any(test["noised"] for target in targets for test in (target["test"], *_tests(target)))


def _tests(target: Document) -> list[Document]:
    return [one["test"] for one in target["also"]]
