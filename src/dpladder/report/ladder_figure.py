"""The ladder in one picture: where the trials looked, which of them won, what the fit made of
it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.lines import Line2D
from numpy.polynomial import Polynomial

from dpladder.privacy.accounting.rounding import percent, round_up_short
from dpladder.report.style import (
    GREY,
    INK,
    PALE,
    VERMILLION,
    canvas,
    dots,
    log_axis,
    log_limits,
    say,
    score_bar,
)
from dpladder.report.summary import FinalFound, FitFound, RungFound, Summary
from dpladder.report.tables import short_number

AXIS = {
    "epsilon": "ε of one trial or final training (δ = {})",
    "mu": "μ of one trial or final training",
}
# each at its place on the axis of the fit
Rungs = Sequence[tuple[float, RungFound]]
Targets = Sequence[tuple[float, FinalFound, FitFound]]


def plot_ladder(summary: Summary, path: Path) -> None:
    """r against the axis that the fit runs along: all trials, each rung's best, the fit, and r* of
    each target.

    Args:
        summary: of an experiment with trials and at least one fit. Its scores are noised, unless
            the part that they are of is public.
        path: where the SVG goes.
    """
    fits = [(target, target.fit) for target in summary.targets if target.fit is not None]
    against = "epsilon" if fits[0][1].against == "epsilon" else "mu"  # one kappa grows with mu
    rungs = [(getattr(rung, against), rung) for rung in summary.rungs]
    targets = [(getattr(fit, against), target, fit) for target, fit in fits]
    places = [*(x for x, _ in rungs), *(x for x, _, _ in targets)]
    with canvas(path, height=4.2) as figure:
        axes = figure.subplots()
        axes.set_xlabel(AXIS[against].format(round_up_short(summary.delta)))
        axes.set_ylabel(summary.r_label)
        # what the fit did, once for each way that some target needed
        ways = [f"{fit.method} ({fit.fallback})" if fit.fallback else fit.method for _, fit in fits]
        axes.set_title(fill(f"{summary.experiment}: {', or '.join(dict.fromkeys(ways))}", 58))
        axes.set_xlim(log_limits(places, margin=0.15))
        axes.set_ylim(log_limits(summary.r_range))
        log_axis(axes, "x", places)
        log_axis(axes, "y")
        _draw_range(axes, summary.r_range)
        points = _draw_trials(axes, rungs)
        _draw_fits(axes, min(x for x, _ in rungs), targets)
        _draw_targets(axes, targets)
        _name_totals(axes, targets)
        noised = ", noised" if summary.noised else ""
        label = f"score: {summary.scored('correct predictions')}{noised}"
        score_bar(figure, axes, points, label)
        figure.legend(handles=_keys(), loc="outside lower center", ncols=3, fontsize=9)


def _draw_range(axes: Axes, limits: Sequence[float]) -> None:
    """A band over the r that could be tried at all, with its two limits in words."""
    axes.axhspan(*limits, color=PALE, zorder=0)
    for r, name, side in ((limits[0], "smallest", "top"), (limits[1], "largest", "bottom")):
        text = f" {name} r of the search: {short_number(r)}"
        axes.text(0, r, text, va=side, color=GREY, fontsize=8, transform=axes.get_yaxis_transform())


def _draw_trials(axes: Axes, rungs: Rungs) -> PathCollection:
    """All trials, coloured by their scores, and a ring around each rung's best."""
    trials = [(x, trial.r, trial.share) for x, rung in rungs for trial in rung.trials]
    best = [(x, rung.best.r) for x, rung in rungs]
    ring = {"mfc": "none", "mec": INK, "mew": 1.4, "ms": 11, "zorder": 4}
    dots(axes, best, "o", label="best of its rung", gid="best", **ring)
    places, radii, scores = zip(*trials, strict=True)
    texts = [
        f"rung {place}, trial {one.trial}: r = {short_number(one.r)}, score {percent(one.share)}"
        for place, (_, rung) in enumerate(rungs)
        for one in rung.trials
    ]
    say(axes, "trials", *texts)
    return axes.scatter(places, radii, c=scores, s=45, cmap="cividis", gid="trials", zorder=3)


def _draw_fits(axes: Axes, first: float, targets: Targets) -> None:
    """Targets of one sweep mostly share one curve: each curve is drawn once, as far as its furthest
    target."""
    # in kappa, r is proportional to mu, a line through 0
    ends = {
        (0.0, fit.r_star / fit.mu) if fit.against == "kappa" else fit.coefficients: x
        for x, _, fit in sorted(targets, key=lambda one: one[0])
    }
    for coefficients, end in ends.items():
        x = np.geomspace(min(first, end), max(first, end), 200)
        r = Polynomial(coefficients)(x)
        # a line in epsilon may fall below 0, which a logarithmic axis cannot show
        axes.plot(x, np.where(r > 0, r, np.nan), color=VERMILLION, lw=1.4, zorder=2)


def _draw_targets(axes: Axes, targets: Targets) -> None:
    """A diamond at r* of each target, on a bar that is the fit's own 80 % interval."""
    for x, _, fit in targets:
        axes.plot([x, x], fit.uncertainty, color=VERMILLION, lw=2.5, alpha=0.5, zorder=4)
        label = f"r* = {short_number(fit.r_star)}{', the limit' if fit.clamped else ''}"
        place = (x, fit.r_star)
        axes.annotate(
            label, place, (6, -5), textcoords="offset points", va="top", fontsize=8, zorder=6
        )
    points = [(x, fit.r_star) for x, _, fit in targets]
    look = {"color": VERMILLION, "mec": "white", "ms": 8, "zorder": 5}
    dots(axes, points, "D", label="final training", gid="r_star", **look)


def _name_totals(axes: Axes, targets: Targets) -> None:
    """The totals stand above the final trainings, which cost less: the search has taken its
    part."""
    top = axes.secondary_xaxis("top")
    top.set_xticks([x for x, _, _ in targets], [target.total for _, target, _ in targets])
    top.set_xticks([], minor=True)
    top.set_xlabel("total ε of the final model", loc="right")
    top.spines["top"].set_visible(False)


def _keys() -> list[Line2D]:
    """The legend, by hand: marks are drawn by colour and group, and have no labels of their own."""
    return [
        Line2D([], [], ls="", marker="o", color=GREY, ms=6.5, label="trial"),
        Line2D(
            [], [], ls="", marker="o", mfc="none", mec=INK, mew=1.4, ms=11, label="best of its rung"
        ),
        Line2D([], [], color=VERMILLION, lw=1.4, label="fit"),
        Line2D(
            [],
            [],
            ls="",
            color=VERMILLION,
            marker="D",
            mec="white",
            ms=8,
            label="r* of a final model",
        ),
        Line2D([], [], color=VERMILLION, lw=2.5, alpha=0.5, label="80% interval of r*"),
    ]
