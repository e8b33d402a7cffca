"""Figures that follow from noised counts, and so cost nothing. A new one is an object here.

Each has a formula for every table that it follows from, with the deviation that the noise gives it
and a 95 % interval (learn/measures/intervals.py). A formula returns None where noise hides the
figure. Of findings a formula is about one class, and the figure of all is the mean over them.
tests/coverage_of_intervals draws every figure many times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpladder.config.detectability import detectable_count
from dpladder.learn.measures.intervals import (
    Counts,
    NoisedTables,
    around,
    mean_of,
    share,
)
from dpladder.learn.measures.ranking import BoughtScores, area, area_under_curve, ranking_of
from dpladder.privacy.accounting.rounding import SDS_OF_95_PERCENT, NoisedFigure

Formula = Callable[[NoisedTables, int], NoisedFigure | None]


@dataclass(frozen=True)
class MeasuredFigure:
    """A figure that follows from released counts.

    Attributes:
        name: in files.
        heading: in tables.
        of: a formula for each table that it follows from, by what the table holds, of the tables
            and, of findings, the class; empty where its own table computes it.
        style: how it is shown.
    """

    name: str
    heading: str
    of: Mapping[str, Formula]
    style: Literal["percent", "area", "number"] = "percent"


# --- right and wrong ---


def share_of_row(tables: NoisedTables, holds: str, *row: int) -> NoisedFigure | None:
    """The share that is right of a row of right and wrong."""
    return share(tables, tables.at(holds, (*row, 0)), tables.at(holds, row))


def balanced_accuracy(tables: NoisedTables, _: int) -> NoisedFigure | None:
    """The mean accuracy over classes."""
    classes = range(len(tables["by_class"]))
    return mean_of([share_of_row(tables, "by_class", one) for one in classes])


def balanced_accuracy_of_finding(tables: NoisedTables, place: int) -> NoisedFigure | None:
    """The mean of sensitivity and specificity."""
    return mean_of([share_of_row(tables, "by_finding", place, one) for one in (0, 1)])


BALANCED = MeasuredFigure(
    "balanced",
    "balanced accuracy",
    {"by_class": balanced_accuracy, "by_finding": balanced_accuracy_of_finding},
)
SENSITIVITY = MeasuredFigure(
    "sensitivity",
    "sensitivity",
    {"by_finding": lambda tables, place: share_of_row(tables, "by_finding", place, 1)},
)
SPECIFICITY = MeasuredFigure(
    "specificity",
    "specificity",
    {"by_finding": lambda tables, place: share_of_row(tables, "by_finding", place, 0)},
)

# --- decisions ---


def _share_at_threshold(right: tuple[int, int], wrong: tuple[int, int]) -> Mapping[str, Formula]:
    """The share that one cell of a decision is of two: of a class, or of who acts."""

    def formula(tables: NoisedTables, holds: str, *place: int) -> NoisedFigure | None:
        part = tables.at(holds, (*place, *right))
        return share(tables, part, part + tables.at(holds, (*place, *wrong)))

    return {
        "decision": lambda tables, _: formula(tables, "decision"),
        "decision_by_finding": lambda tables, place: formula(tables, "decision_by_finding", place),
    }


DECISIONS = tuple(
    MeasuredFigure(f"{name.replace(' ', '_')}_at_threshold", f"{name} at the threshold", of)
    for name, of in {
        "sensitivity": _share_at_threshold((1, 0), (1, 1)),
        "specificity": _share_at_threshold((0, 0), (0, 1)),
        "positive predictive value": _share_at_threshold((1, 0), (0, 1)),
        "negative predictive value": _share_at_threshold((0, 0), (1, 1)),
    }.items()
)
ELSEWHERE = MeasuredFigure("elsewhere", "score on other groups", {})


# --- ranking ---


def look_of_tables(bought: Mapping[str, tuple[Counts, float]], place: int | None) -> BoughtScores:
    """What a test bought of scores before they were ranked.

    Args:
        bought: its tables as they were released; more may follow.
        place: of a finding; None of two classes.
    """
    at = ... if place is None else place
    look, sd = bought["score_look" if place is None else "score_look_by_finding"]
    answers, sd_of_sides = bought["by_class" if place is None else "by_finding"]
    first, second = answers[at]
    # the model is right about the first class below 0, and about the second above
    return BoughtScores(look[at], sd, np.stack([first, second[::-1]]), sd_of_sides)


def auc_of_standings(tables: NoisedTables, holds: str, place: int | None) -> NoisedFigure | None:
    """The AUC of two classes, or of one finding.

    Args:
        tables: the counts.
        holds: the table of standings.
        place: of a finding; None of two classes.
    """
    answers, at = ("by_class", ()) if place is None else ("by_finding", (place,))
    look, sums = look_of_tables(tables.bought, place), []
    ranking = ranking_of(look)
    for one in (0, 1):
        right = tables.at(answers, (*at, one, 0))
        part = ranking.left_open(1 - one)
        standing = part * tables.at(holds, (*at, one, 0)) + (1.0 - part) * right
        sums.append((standing, tables.at(holds, (*at, one))))
    return area_under_curve(tables, sums, look)


def auc_of_bins(counts: Counts, sd: float) -> NoisedFigure | None:
    """The AUC of scores in bins, which tests of before bought. A tie may hide half a point.

    Of noised counts it is sum_i n1_i (sum_{j<i} n0_j + n0_i / 2) / (N0 N1). A count of the second
    class in bin i moves it by (F0_i - A) / N1. One of the first class moves it by (1 - F1_i - A) /
    N0. F is the share below, half the bin included.

    Args:
        counts: (2, bins), of each class.
        sd: of the noise in each count.
    """
    totals = counts.sum(axis=1)
    if (totals <= detectable_count(sd, counts.shape[1])).any():
        return None
    shares = counts / totals[:, None]
    below = np.cumsum(shares, axis=1) - shares / 2
    value = float(area(*shares))
    moved = np.stack([(1.0 - below[1] - value) / totals[0], (below[0] - value) / totals[1]])
    ties = float(np.maximum(shares[0] * shares[1], 0.0).sum()) / 2
    sampled = float((np.maximum(counts, 0.0) * moved**2).sum())
    return around(
        value, float((sd * moved).ravel() @ (sd * moved).ravel()), sampled + ties**2, 0, 1
    )


AUC = MeasuredFigure(
    "auc",
    "AUC",
    {
        "standings": lambda tables, _: auc_of_standings(tables, "standings", None),
        "standings_by_finding": lambda tables, place: auc_of_standings(
            tables, "standings_by_finding", place
        ),
        "scores": lambda tables, _: auc_of_bins(*tables.bought["scores"]),
        "scores_by_finding": lambda tables, place: auc_of_bins(
            tables.bought["scores_by_finding"][0][place], tables.bought["scores_by_finding"][1]
        ),
    },
    "area",
)

# --- F1 ---


def f1_of_answers(tables: NoisedTables, _: int) -> NoisedFigure | None:
    """The mean over classes of 2 c_ii / (row i + column i).

    A count moves it by 2 (1 - F_i) / D_i where it is right. Where class i is taken for j, it moves
    it by -F_i / D_i - F_j / D_j.
    """
    counts, sd = tables["answers"], tables.bought["answers"][1]
    sums = counts.sum(axis=0) + counts.sum(axis=1)
    if (sums <= detectable_count(sd, 2 * len(counts))).any():
        return None
    each = 2.0 * np.diag(counts) / sums
    moved = -(each / sums)[:, None] - (each / sums)
    np.fill_diagonal(moved, 2.0 * (1.0 - each) / sums)
    by = tables.total("answers", moved / len(counts))
    return around(float(each.mean()), tables.noise(by), tables.sampling(by), 0.0, 1.0)


def f1_of_finding(tables: NoisedTables, place: int) -> NoisedFigure | None:
    """The F1 of one finding: 2 right / (2 right + said without having it + missed)."""
    present = tables.at("by_finding", (place, 1))
    if present.value <= detectable_count(math.sqrt(tables.noise(present)), 1):
        return None
    right = 2.0 * tables.at("by_finding", (place, 1, 0))
    wrong = tables.at("by_finding", (place, 0, 1)) + tables.at("by_finding", (place, 1, 1))
    # 2 right is a of the whole, so 4 right (1 - a)^2 + wrong a^2 is this much of it
    return share(tables, right, right + wrong, lambda a: a * (1.0 - a) * (2.0 - a))


F1 = MeasuredFigure("f1", "F1", {"answers": f1_of_answers, "by_finding": f1_of_finding})

# --- numbers ---

RMSE = MeasuredFigure("rmse", "RMSE", {}, "number")
MAE = MeasuredFigure("mae", "mean absolute error", {}, "number")
R2 = MeasuredFigure("r2", "R²", {}, "area")  # a share, and so it may say little
RMSE_OF_MEAN = MeasuredFigure("rmse_of_mean", "RMSE of always saying the mean", {}, "number")

# --- calibration ---


def calibration_error(tables: NoisedTables, _: int) -> NoisedFigure | None:
    """The expected calibration error (Guo et al. 2017, Eq. 3).

    It is how far confidence and the share that is right lie apart, bin by bin, weighed by the
    predictions in each. Noise alone makes each difference larger: what it adds to the square is
    taken off (Kumar et al. 2019, section 4). The interval is that of a sum of absolute
    values, each with its own (Donner & Zou 2012).
    """
    counts, sd = tables["confidence"], tables.bought["confidence"][1]
    total = counts.sum()
    if total <= detectable_count(sd, counts.size):
        return None
    value, noise, below, above = 0.0, 0.0, 0.0, 0.0
    each = _differences(len(counts))
    for place, cells in enumerate(counts):
        weights = np.zeros_like(counts)
        weights[place] = each[place]
        gap = tables.total("confidence", weights)
        sampling = float((np.maximum(cells, 0.0) * each[place] ** 2).sum())
        moved = tables.noise(gap) + sampling
        size, half = abs(gap.value), SDS_OF_95_PERCENT * math.sqrt(moved)
        size_left = math.sqrt(max(size**2 - tables.noise(gap), 0.0))
        value, noise = value + size_left, noise + tables.noise(gap)
        below += (size_left - min(max(size - half, 0.0), size_left)) ** 2
        above += (size + half - size_left) ** 2
    low, high = max(value - math.sqrt(below), 0.0), value + math.sqrt(above)
    return NoisedFigure(
        min(value / total, 1.0), math.sqrt(noise) / total, low / total, min(high / total, 1.0)
    )


def overconfidence(tables: NoisedTables, _: int) -> NoisedFigure | None:
    """The mean confidence, less the share that is right."""
    counts, sd = tables["confidence"], tables.bought["confidence"][1]
    total = counts.sum()
    if total <= detectable_count(sd, counts.size):
        return None
    each = _differences(len(counts))
    value = float((counts * each).sum() / total)
    by = tables.total("confidence", (each - value) / total)
    return around(value, tables.noise(by), tables.sampling(by), -1.0, 1.0)


def _differences(bins: int) -> Counts:
    """For each cell (bin, right or wrong, lower or upper edge), confidence less what is right."""
    edge = np.stack([np.arange(bins), np.arange(1, bins + 1)], axis=1) / bins
    return np.stack([edge - 1.0, edge], axis=1)


CALIBRATION_ERROR = MeasuredFigure(
    "calibration_error", "expected calibration error", {"confidence": calibration_error}
)
OVERCONFIDENCE = MeasuredFigure(
    "overconfidence", "confidence less accuracy", {"confidence": overconfidence}
)

FIGURES = (
    SENSITIVITY,
    SPECIFICITY,
    BALANCED,
    F1,
    AUC,
    *DECISIONS,
    ELSEWHERE,
    CALIBRATION_ERROR,
    OVERCONFIDENCE,
    RMSE,
    MAE,
    R2,
    RMSE_OF_MEAN,
)
# tables of each class by itself
PER_FINDING = ("by_finding", "standings_by_finding", "scores_by_finding", "decision_by_finding")
OF_FINDINGS = tuple(figure for figure in FIGURES if not {*PER_FINDING}.isdisjoint(figure.of))


def figures_of(tables: NoisedTables) -> dict[str, NoisedFigure | None]:
    """All figures of a test by name; None for what noise hides. Of findings the mean over them."""
    each = figures_of_findings(tables)
    means = {
        name: mean_of([figures[name] for figures in each], same_records=True)
        for name in (each[0] if each else ())
    }
    return means | {
        figure.name: formula(tables, 0)
        for figure in FIGURES
        for holds, formula in figure.of.items()
        if holds in tables and holds not in PER_FINDING
    }


def figures_of_findings(tables: NoisedTables) -> list[dict[str, NoisedFigure | None]]:
    """The figures of each finding by itself, class by class."""
    apart = [holds for holds in PER_FINDING if holds in tables]
    return [
        {
            figure.name: formula(tables, place)
            for figure in FIGURES
            for holds, formula in figure.of.items()
            if holds in apart
        }
        for place in range(len(tables[apart[0]]) if apart else 0)
    ]
